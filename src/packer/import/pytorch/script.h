// TorchScript: the code of an archive, the archive, and the walk through its `forward`.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/zip_archive.h"

namespace qplan::pt {

// Tokens of the code that TorchScript writes (code/**.py): the subset of Python's tokens that it uses, with
// line breaks and indentation as tokens.

enum class TokenKind : uint8_t {
  kName,
  kInteger,
  kFloat,
  kString,
  kPunctuation,
  kNewline,
  kIndent,
  kDedent,
  kEnd
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of strings: what they mean; of punctuation: one character, or "->"
  int64_t integer = 0;
  double number = 0;
  size_t line = 1;
};

// Ends with kEnd; lines within brackets are joined. PackError "line 12: ...".
// PackError where there are more tokens than most.
std::vector<Token> lex_script(std::string_view text, size_t most);

// The code of an archive as trees. Nodes are in vectors and refer to each other by index.

using ExprId = uint32_t;

enum class ExprKind : uint8_t {
  kNone,
  kTrue,
  kFalse,
  kInteger,
  kFloat,
  kString,
  kName,       // text
  kAttribute,  // children[0].text
  kSubscript,  // children[0][children[1]]
  kCall,       // children[0](children[1], ..., names[i]=...): the named arguments are the last children
  kList,
  kTuple,
  kDict,  // children: each key, then its value
  kNegative,
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  std::vector<ExprId> children;
  std::vector<std::string> names;  // of the last arguments of a call
  size_t line = 0;
};

enum class StatementKind : uint8_t { kAssign, kExpression, kReturn, kIf, kPass };

struct Statement {
  StatementKind kind = StatementKind::kPass;
  std::vector<ExprId> targets;  // kAssign: names and attributes; several take a tuple apart
  bool unpacks = false;         // kAssign: `a, = x`, `a, b = x`
  ExprId value = 0;             // what is assigned, returned, or the condition
  std::vector<Statement> then, otherwise;
  size_t line = 0;
};

struct Parameter {
  std::string name;
  std::string type;  // as written, without spaces
  bool has_fallback = false;
  ExprId fallback = 0;
};

struct FunctionBody {
  std::vector<Expr> exprs;
  std::vector<Parameter> parameters;
  std::vector<Statement> statements;
};

// Reads code/**.py of an archive: classes with methods, and functions. A function that is not called is not
// parsed beyond its name, so that unsupported code does no harm where it is not needed.
class ScriptFile {
 public:
  // PackError "line 3: ..."; also where there are more tokens than max_tokens.
  ScriptFile(std::string_view text, size_t max_tokens);
  size_t num_tokens() const { return tokens_.size(); }

  // A function of the file (class_name empty) or a method; null if it does not exist. Parsed when first asked
  // for.
  const FunctionBody* find(std::string_view class_name, std::string_view function);
  // The fields of a class that is a NamedTuple, in their order; null for everything else.
  const std::vector<std::string>* find_fields(std::string_view class_name) const;

 private:
  struct Function {
    size_t begin = 0;  // token after the name
    std::unique_ptr<FunctionBody> body;
  };

  void find_functions();

  std::vector<Token> tokens_;
  std::map<std::pair<std::string, std::string>, Function, std::less<>> functions_;  // (class, name)
  std::map<std::string, std::vector<std::string>, std::less<>> fields_;             // of NamedTuples
};

// A TorchScript archive (.pt): a zip with data.pkl (the module), constants.pkl (CONSTANTS of the code),
// storages and code/**.py. The file is untrusted.
class Archive {
 public:
  // Reads both pickles. PackError: QPLAN_MODEL_INVALID for damage, QPLAN_MODEL_UNSUPPORTED for a zip that is
  // another kind of PyTorch file.
  explicit Archive(importer::ZipArchive zip);

  ValueTable& values() { return values_; }
  TensorReader& tensors() { return tensors_; }
  Ref module() const { return module_; }      // an Object
  Ref constant(std::string_view name) const;  // "c12"; PackError if it does not exist
  bool is_frozen() const { return frozen_; }  // the module holds no parameters and no other modules

  // "__torch__.torch.nn.functional.relu6", and method "forward" of class "__torch__.Net"; null where the
  // archive has no code for it. PackError where its file cannot be read.
  const FunctionBody* find_function(std::string_view qualified_name);
  const FunctionBody* find_method(std::string_view class_name, std::string_view method);
  // The fields of "__torch__.Out", a NamedTuple; null for everything else.
  const std::vector<std::string>* find_fields(std::string_view class_name);

 private:
  ScriptFile* find_file(std::string_view qualified_name);

  importer::ZipArchive zip_;
  std::string prefix_;  // "net/"
  ValueTable values_;
  TensorReader tensors_;
  Ref module_;
  std::vector<Ref> constants_;
  bool frozen_ = false;
  size_t num_tokens_ = 0;  // of files_
  std::map<std::string, std::unique_ptr<ScriptFile>, std::less<>> files_;
};

// Follows `forward` of an archive's module: calls of modules and functions of the archive are followed in
// place, calls of operators go to the rows of ops.def, which write the IR. Everything except tensors that the
// model computes is known, and so are conditions and sizes. No code runs: names mean only what evaluator.cc
// and ops.def define.
class Evaluator {
 public:
  Evaluator(Archive& archive, OperatorCalls& calls) : archive_(archive), calls_(calls), sharing_(calls) {}

  // Returns forward's results for the inputs, in the order of its parameters after self: a tensor, or what
  // tuples, lists and dicts hold. An Unknown, or the end of the walk before it, means that the calls'
  // unsupported() is not empty.
  std::vector<Output> run(const std::vector<Ref>& inputs);

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
  void add_outputs(Ref ref, const std::string& name, size_t depth, std::vector<Output>* outputs);
  // A NamedTuple of these arguments.
  Ref named_tuple(const std::vector<std::string>& fields, const std::vector<Argument>& arguments);
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
  size_t initialising_ = 0;  // __setstate__ of so many objects runs, one inside the other
  size_t first_own_ = 0;     // values from here on are the walk's, not the archive's
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_SCRIPT_H_
