// Follows `forward` of an archive's module: calls of modules and functions of the archive are followed in
// place, calls of operators go to the rows of ops.def, which write the IR. Everything except tensors that the
// model computes is known, and so are conditions and sizes. No code runs: names mean only what this file and
// ops.def define.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EVALUATOR_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EVALUATOR_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/sharing.h"
#include "src/packer/import/pytorch/value.h"

namespace qplan::pt {

class Evaluator {
 public:
  Evaluator(Archive& archive, OperatorCalls& calls) : archive_(archive), calls_(calls), sharing_(calls) {}

  // Returns forward's results for the inputs, in the order of its parameters after self. An Unknown, or the
  // end of the walk before it, means that the calls' unsupported() is not empty.
  Ref run(const std::vector<Ref>& inputs);

 private:
  struct Scope {
    const FunctionBody* body;
    std::string path;       // of the module whose method this is: "features.0"
    std::string target;     // the variable that the statement assigns, or empty
    ExprId right_side = 0;  // of the statement
    std::map<std::string, Ref, std::less<>> locals;
  };
  class Depth;

  // True when it returned; then *result is what.
  bool run_block(Scope& scope, const std::vector<Statement>& block, Ref* result);
  void assign(Scope& scope, const Statement& statement);
  void store(Scope& scope, ExprId target, Ref value);
  Ref evaluate(Scope& scope, ExprId id);
  Ref evaluate_call(Scope& scope, ExprId id);
  Ref call_operator(const std::string& name, const std::vector<Argument>& arguments,
                    const std::string& node_name);
  void expect_fresh(Ref ref);
  Ref call_builtin(const std::string& name, const std::vector<Argument>& arguments,
                   const std::string& node_name);
  Ref bind_and_call(const FunctionBody& body, const std::string& path, Ref self,
                    const std::vector<Argument>& arguments);
  Ref attribute(Ref object, const std::string& name);
  Ref subscript(Ref container, Ref index);
  void initialise(Ref object);
  // "torch.relu" for an attribute chain that begins with no local variable; empty otherwise.
  std::string qualified_name(const Scope& scope, ExprId id);
  std::string node_name(const Scope& scope, ExprId call, std::string_view op_name) const;
  void name_value(const Scope& scope, const std::string& variable, Ref value);
  ValueTable& values() { return calls_.values(); }
  void charge(size_t steps) { calls_.charge(steps); }  // texts and lists that are looked through, too
  Ref not_imported(const std::string& what, const std::string& node_name) {
    return calls_.not_imported(what, node_name);
  }

  Archive& archive_;
  OperatorCalls& calls_;
  Sharing sharing_;
  size_t depth_ = 0;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EVALUATOR_H_
