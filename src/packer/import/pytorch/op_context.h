// The view of one call of an operator that an importer row has, and its way to write the IR. A row reads the
// arguments, refuses what it cannot express (throwing Unsupported) or what is broken (invalid()), emits nodes
// and returns the result.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/messages.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/value.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {

using importer::in_quotes;
using importer::invalid;
using importer::to_text;
using importer::Unsupported;

// Calls of operators by name: the rows of ops.def write the IR, and what has no row is collected. The walkers
// of both formats (evaluator.h, exported_program.h) share one OperatorCalls for an import.

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

class OpContext {
 public:
  // arguments: in the order of the row's names; an invalid Ref where a call leaves one out.
  OpContext(OperatorCalls& calls, std::string op_name, std::string node_name, std::vector<Ref> arguments)
      : calls_(calls),
        op_name_(std::move(op_name)),
        node_name_(std::move(node_name)),
        arguments_(std::move(arguments)) {}

  // The operator without its namespace: "conv2d_relu".
  std::string_view short_name() const;
  BiasCounts& biases() { return calls_.biases(); }
  TensorReader& tensors() { return calls_.tensors(); }
  ValueTable& values() { return calls_.values(); }
  const ir::Function& function() const { return calls_.function(); }
  void warn(const std::string& text) const;
  // Counts a constant of so many elements that a call makes out of nothing.
  void charge_elements(int64_t count) { calls_.charge(static_cast<size_t>(count) / kElementsPerStep); }

  // -- arguments; a fallback is for one that the call leaves out or that is None
  bool has(size_t i) const;
  Ref ref(size_t i) const;  // PackError when it is left out
  int64_t integer(size_t i, std::optional<int64_t> fallback = std::nullopt);
  double number(size_t i, std::optional<double> fallback = std::nullopt);
  bool boolean(size_t i, std::optional<bool> fallback = std::nullopt);
  std::vector<int64_t> integers(size_t i);  // an integer counts as a list of one
  std::string text(size_t i, std::string_view fallback);
  // A number in any of the forms that code has them in: a constant tensor of one element, too.
  std::optional<double> as_number(Ref ref);
  // Operand i as a number that operand `other` is combined with; nullopt: it must stay a tensor. A constant
  // tensor of one element stays one if its rank is above the other's, because the result has that rank.
  std::optional<double> scalar_beside(size_t i, size_t other);
  // Unsupported where the argument, a dtype, is given and is not float32.
  void expect_float_result(size_t dtype);
  // One value for each of height and width; one may stand for both.
  std::vector<int64_t> pair(size_t i, std::optional<std::vector<int64_t>> fallback = std::nullopt);

  // A tensor that the model computes, or a constant one.
  Flow flow(size_t i) { return as_flow(ref(i)); }
  Flow as_flow(Ref ref);
  bool is_flow(size_t i) const;
  Flow quantized_flow(size_t i);      // Unsupported unless it is quantised, qint8 or quint8
  Flow float_flow(size_t i);          // Unsupported unless it is float32
  std::vector<Flow> flows(size_t i);  // a list of tensors
  // A constant, or one that is only moved, quantised or dequantised.
  bool is_constant(const Flow& flow) const;
  ir::DType dtype(const Flow& flow) const { return calls_.function().type(flow.value).dtype; }
  const ir::Shape& shape(const Flow& flow) const { return calls_.function().type(flow.value).shape; }
  // Scale and zero point that the call gives its result, of this dtype.
  QuantParams quantization(size_t scale, size_t zero_point, ir::DType dtype);
  // An axis in [-rank, rank) as [0, rank).
  static int64_t axis_of(int64_t axis, size_t rank);

  // -- writing the IR
  ir::ValueId constant(ir::ConstantRef constant) {
    return calls_.function().add_constant(std::move(constant));
  }
  ir::ValueId scale(float value) { return constant(ir::make_scalar(value)); }
  ir::ValueId zero_point(int32_t value) { return constant(ir::make_scalar(value)); }
  ir::ValueId emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs);
  // The same for an operator with several results, in their order.
  std::vector<ir::ValueId> emit_many(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs);
  ir::ValueId reshape(ir::ValueId value, const ir::Shape& shape) {
    return emit("reshape", {value}, {{"newshape", shape}});
  }
  // Operands, then scale and zero point of each of params; contract f32e.
  ir::ValueId emit_quantized(std::string_view op, std::vector<ir::ValueId> operands,
                             const std::vector<QuantParams>& params, ir::Attrs attrs);
  Ref result(ir::ValueId value, std::optional<QuantParams> quantization = std::nullopt);
  Ref result(const Flow& like, ir::ValueId value) { return result(value, like.quantization); }
  // From here on, all names of the first argument refer to the result.
  Ref write_back(Ref result);
  Ref add(Value value) { return values().add(std::move(value)); }

 private:
  std::optional<ir::Shape> shape_of(Ref ref) const;  // of a tensor

  static constexpr size_t kElementsPerStep = 64;

  OperatorCalls& calls_;
  std::string op_name_;
  std::string node_name_;
  std::vector<Ref> arguments_;
};

// The rows of ops.def.
struct ImportRow {
  const char* name;       // "quantized::conv2d"
  const char* arguments;  // names in order, separated by spaces
  Ref (*import_op)(OpContext& op);
};

// Null when the operator is not imported.
const ImportRow* find_row(std::string_view name);

#define QPLAN_PYTORCH_OP(name, function, arguments) Ref function(OpContext& op);
#include "src/packer/import/pytorch/ops.def"
#include "src/packer/ir/module.h"
#undef QPLAN_PYTORCH_OP

// How PyTorch quantises a number: q(x) = zero_point + round_half_even(x * (1 / scale)), product and
// reciprocal in float32 (at::native::quantize_val, fbgemm::Quantize).

// |value| < 2^52, independent of the rounding mode.
int64_t round_half_even(double value);
// Clamped to the dtype; infinities go to its ends.
int64_t quantize_value(double value, QuantParams quantization, ir::DType dtype);
// PackError unless the scale is a positive finite float32 number and the zero point one of the dtype.
QuantParams checked_quantization(double scale, int64_t zero_point, ir::DType dtype);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_
