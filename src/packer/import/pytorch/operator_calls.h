// Calls of operators by name: the rows of ops.def write the IR, and what has no row is collected. The walkers
// of both formats (evaluator.h, exported_graph.h) share one of these for an import.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPERATOR_CALLS_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPERATOR_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/value.h"
#include "src/packer/ir/module.h"

namespace qplan::pt {

// Counters of one import, for its log.
struct BiasCounts {
  uint64_t total = 0;         // values made from float32
  uint64_t truncated = 0;     // of these, what torch.onnx.export's truncation would make another number
  uint64_t float_layers = 0;  // layers whose sums int32 might not hold
};

struct Argument {
  std::string name;  // empty: by position
  Ref value;
};

// PyTorch's "relu_" writes its result over its operand; "__is__" does not.
bool is_in_place(std::string_view name);

class OperatorCalls {
 public:
  OperatorCalls(ValueTable& values, TensorReader& tensors, ir::Function& function, const LogFunction& log)
      : values_(values), tensors_(tensors), function_(function), log_(log) {}

  // name: "aten::conv2d". The result of an operator that is not imported, or that reads such a result, is
  // Unknown. PackError names the operator.
  Ref call(const std::string& name, const std::vector<Argument>& arguments, const std::string& node_name);
  // The argument that the row names first: the one that operators in place change. Not valid if the call has
  // no such argument.
  static Ref operand_of(std::string_view name, const std::vector<Argument>& arguments);
  // What the last call added to unsupported(), "aten::x with ..."; takes it away.
  std::string take_missing() { return std::exchange(last_missing_, ""); }
  // Adds to unsupported(); the result is Unknown.
  Ref not_imported(const std::string& what, const std::string& node_name);
  bool mentions_unknown(const std::vector<Argument>& arguments);
  // Counts work; PackError where it is more than kMaxSteps.
  void charge(size_t steps);

  ValueTable& values() { return values_; }
  TensorReader& tensors() { return tensors_; }
  ir::Function& function() { return function_; }
  const LogFunction& log() const { return log_; }
  const importer::UnsupportedList& unsupported() const { return unsupported_; }
  BiasCounts& biases() { return biases_; }

 private:
  ValueTable& values_;
  TensorReader& tensors_;
  ir::Function& function_;
  const LogFunction& log_;
  importer::UnsupportedList unsupported_;
  std::string last_missing_;
  BiasCounts biases_;
  size_t steps_ = 0;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPERATOR_CALLS_H_
