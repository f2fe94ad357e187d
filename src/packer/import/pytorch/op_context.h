// What the rows of ops.def work with: calls of operators, the view of one call, and what several rows share.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/module.h"

namespace qplan::pt {

using importer::in_quotes;
using importer::invalid;
using importer::to_text;
using importer::Unsupported;

// Calls of operators by name: the rows of ops.def write the IR, and what has no row is collected. The walkers
// of both formats (script.h, exported_program.h) share one OperatorCalls for an import.

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

// What a model returns.
struct Output {
  Ref value;
  std::string name = "";  // a key of a dict or a field of a NamedTuple, or empty
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

using PlainNumber = std::variant<int64_t, double>;

// The view of one call of an operator that an importer row has, and its way to write the IR. A row reads the
// arguments, refuses what it cannot express (throwing Unsupported) or what is broken (invalid()), emits nodes
// and returns the result.
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
  // The same for what is a number on its own, whose arithmetic is that of sizes and Python's numbers: no
  // tensor of floats, but a double in a tensor without axes, as a trace writes Python's numbers.
  std::optional<PlainNumber> as_plain_number(Ref ref);
  std::optional<PlainNumber> plain_number(size_t i) { return as_plain_number(ref(i)); }
  std::optional<ir::Shape> shape_of(Ref ref) const;  // of a tensor
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
#undef QPLAN_PYTORCH_OP

// The arithmetic of arguments 0 and 1; nullopt unless both are plain numbers.
std::optional<Ref> number_arithmetic(OpContext& op, char sign);  // + - *
std::optional<Ref> number_quotient(OpContext& op, const std::string& rounding);
std::optional<Ref> number_power(OpContext& op);
Ref number_negative(OpContext& op, const PlainNumber& number);
// Argument 0, a number, as this ScalarType has it.
Ref number_to(OpContext& op, int64_t type);

// Comparisons of arguments 0 and 1, of which the model computes at least one: bools.
enum class Comparison : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
Ref compare_tensors(OpContext& op, Comparison comparison);
// What a condition chooses, and 1 and 0 of bools.
ir::ValueId emit_choice(OpContext& op, ir::ValueId condition, ir::ValueId yes, ir::ValueId no);
ir::ValueId emit_ones_where(OpContext& op, ir::ValueId condition);

// How PyTorch quantises a number: q(x) = zero_point + round_half_even(x * (1 / scale)), product and
// reciprocal in float32 (at::native::quantize_val, fbgemm::Quantize).

// |value| < 2^52, independent of the rounding mode.
int64_t round_half_even(double value);
// Clamped to the dtype; infinities go to its ends.
int64_t quantize_value(double value, QuantParams quantization, ir::DType dtype);
// PackError unless the scale is a positive finite float32 number and the zero point one of the dtype.
QuantParams checked_quantization(double scale, int64_t zero_point, ir::DType dtype);

// Which tensors of a program share elements. In the IR every value is its own; in PyTorch a view has the
// elements of its source, so that what an operator in place changes is changed in the others, too. These are
// stale from then on: the importer has only their old value. Both walkers call operators through this.
class Sharing {
 public:
  explicit Sharing(OperatorCalls& calls) : calls_(calls) {}

  // OperatorCalls::call, whose first operand may be changed and may share elements with the result.
  // Unsupported where elements of the archive would keep their change from one run to the next.
  Ref call(const std::string& name, const std::vector<Argument>& arguments, const std::string& node_name);
  // Unsupported for a stale tensor.
  void expect_fresh(Ref tensor) const;

 private:
  // Elements that tensors may share: all of a tensor that is its own, or one part of a split. Parts of one
  // split share no elements with each other; parts of two splits of one region may.
  struct Region {
    size_t parent;
    size_t split;                                                    // of the parent, which made this
    bool is_stored;                                                  // in the archive
    std::vector<Ref> tensors = {};                                   // that are not stale
    std::vector<std::pair<size_t, std::vector<size_t>>> parts = {};  // regions by split
  };

  // Before an operator, which may change its first operand.
  void add_operand(Ref operand) {
    if (is_tensor(operand)) region_of(operand);
  }
  // The operator ("aten::view") has made the result out of its first operand. Returns the result, or another
  // name of it where PyTorch may or may not have copied.
  Ref add_result(std::string_view name, Ref operand, Ref result);
  // An operator in place has changed the tensor: all others that may have elements of it are stale.
  void change(Ref tensor);
  ir::ValueId value_of(Ref ref) const;
  bool is_tensor(Ref ref) const;
  size_t add_region(Region region);
  size_t region_of(Ref tensor);
  void put(Ref tensor, size_t region);
  void add_parts(const std::vector<Ref>& parts, Ref source);
  void forget_tensors(size_t region, Ref changed);
  void forget_all(std::vector<size_t> regions, Ref changed);

  OperatorCalls& calls_;
  std::vector<Region> regions_;
  std::unordered_map<uint32_t, size_t> region_by_tensor_;
  std::unordered_set<uint32_t> stale_;
  size_t num_splits_ = 0;
};

// The parts that layers share: data over height and width, packed parameters, weights, the clamp, and the
// products of integers that dynamic quantisation makes of them.

// What a convolution or a pool slides over, NCHW. A sequence has a height of 1, and its lists of numbers have
// one, for the width. Data without a batch is a batch of one.
class Plane {
 public:
  // spatial_axes: 1 for a sequence, or 2.
  Plane(OpContext& op, const Flow& input, size_t spatial_axes);

  const Flow& input() const { return input_; }
  bool is_sequence() const { return is_sequence_; }
  // The argument's numbers for height and width. The fallback is for a list that is empty, absent or None,
  // and for the height of a sequence.
  std::vector<int64_t> numbers(OpContext& op, size_t argument, const std::vector<int64_t>& fallback) const;
  // The result, NCHW, with as many axes as the data had.
  Ref result(OpContext& op, ir::ValueId value, std::optional<QuantParams> quantization = std::nullopt) const;

 private:
  Flow input_;
  bool is_sequence_, has_batch_;
};

// torch.classes.quantized.Conv2dPackedParamsBase.
struct ConvParameters {
  Ref weight;  // Tensor, qint8 OIHW
  Ref bias;    // Tensor float32, or None
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups = 1;
};
ConvParameters conv_parameters(OpContext& op, size_t argument);

// torch.classes.quantized.LinearPackedParamsBase.
struct LinearParameters {
  Ref weight;  // Tensor, qint8 [outputs, inputs]
  Ref bias;
};
LinearParameters linear_parameters(OpContext& op, size_t argument);

// An object of packed parameters as the prepack operators make it.
Ref make_packed(OpContext& op, const char* class_name, std::map<std::string, Ref, std::less<>> members);

struct Weights {
  ir::ValueId value;
  int64_t channels = 0;
  TensorScales scales;  // of axis 0, or one
};
// Unsupported unless the tensor is qint8 and quantised along axis 0 or as a whole.
Weights read_weights(OpContext& op, Ref tensor, size_t rank);

// A transposed convolution; each list has the value of the height, then of the width.
struct TransposedConv {
  std::vector<int64_t> stride, padding, output_padding, dilation;
  int64_t groups;
};
// Data NCHW, weights [in, out / groups, h, w].
ir::ValueId emit_conv_transpose(OpContext& op, const Flow& input, const Flow& weights,
                                const TransposedConv& conv);

// Operand i of an operator on float32 tensors beside operand `other`: a number as a scalar, and of bools
// beside floats 1 and 0, as PyTorch promotes them.
ir::ValueId float_operand(OpContext& op, size_t i, size_t other);
bool is_wide_integer(ir::DType dtype);  // int32, int64
// Arguments 0 and 1 where both are integers of one dtype, or one is such a tensor and the other an integer.
std::optional<std::array<ir::ValueId, 2>> integer_operands(OpContext& op);
// These, or the two operands of an operator on float32.
std::array<ir::ValueId, 2> two_operands(OpContext& op);

// A quantised tensor, argument 0, plus or times a number.
Ref add_number(OpContext& op, double number, bool relu);
Ref multiply_number(OpContext& op, double number, bool relu);
// A quantised tensor NCHW with other extents; attrs: of image.resize2d.
Ref interpolated(OpContext& op, const Flow& input, const std::vector<int64_t>& sizes, ir::Attrs attrs,
                 bool aligned);

// Clamps of quantised tensors.
struct RealRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

// The clamp to the range in quantised units, or the value itself where that would do
// nothing.
ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization);

// Dynamic quantisation as PT2E writes it: choose_qparams takes scale and zero point from a tensor while the
// network runs; quantize and dequantize have both as tensors. A layer of what dequantize makes of integers,
// and of constant integers as weights, is a product of integers. docs/numerics.md, "Programs of PyTorch that
// quantise while they run".

// Whether scale and zero point, arguments 1 and 2, are tensors that the model computes. Unsupported for one
// without the other.
bool has_dynamic_scale(OpContext& op);
// The integers of argument 0, a float32 tensor, in [min, max] of the dtype.
Ref emit_dynamic_quantize(OpContext& op, int64_t min, int64_t max, ir::DType dtype);
// What the integers of the input stand for.
Ref emit_dynamic_dequantize(OpContext& op, const Flow& input);

// The sums of the layer in float32, without its bias; nothing where it is no product of integers. weights:
// [o, k] of a linear layer, or the transpose of such.
std::optional<ir::ValueId> emit_dynamic_dense(OpContext& op, const Flow& input, const Flow& weights);
// weights: OIHW; attrs: of nn.conv2d, NCHW.
std::optional<ir::ValueId> emit_dynamic_conv(OpContext& op, const Flow& input, const Flow& weights,
                                             ir::Attrs attrs);

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_OP_CONTEXT_H_
