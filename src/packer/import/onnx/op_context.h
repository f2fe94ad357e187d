// What the rows of ops.def work with: the function that is built, the view of one node, and what several rows
// share.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_OP_CONTEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_OP_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/ir/module.h"

namespace qplan::onnx {

// A constant, a value of the function, or, after an operator that is not imported, nothing.
struct Value {
  ir::ConstantRef constant;
  ir::ValueId id;
  std::string name = {};  // of a constant
  // int16 in the place of the model's uint16: each element and the zero point are 2^15 less. QuantizeLinear
  // makes such values, and DequantizeLinear alone reads them.
  bool is_shifted = false;

  Value() = default;
  Value(ir::ConstantRef c) : constant(std::move(c)) {}  // NOLINT: rows return either kind
  Value(ir::ValueId i) : id(i) {}                       // NOLINT
  bool is_constant() const { return constant != nullptr; }
  bool is_known() const { return is_constant() || id.valid(); }
};

// The function that is built, and the map from names of the file to its values. Constants stay outside of the
// function until a node needs them: shape arithmetic is done on them at once, and may be done on tensors
// without elements, which no value of a function may be.
class Graph {
 public:
  Graph(const Model& model, ir::Function& function, const LogFunction& log);

  const Model& model() const { return model_; }
  ir::Function& function() const { return function_; }
  const LogFunction& log() const { return log_; }

  // Names of initializers, whose contents are read when they are used.
  void declare(const Tensor& initializer);
  void declare_sparse(const std::string& name);
  // PackError when the name is taken.
  void define(const std::string& name, Value value);
  bool is_defined(const std::string& name) const { return entries_.contains(name); }
  const Value& value(const std::string& name);
  // Whether a node or an output of the model reads it.
  bool is_read(const std::string& name) const { return read_.contains(name); }

  // Hands the nodes to the importer below.
  void import_nodes(const std::vector<NodeInfo>& nodes) { import_nodes_(nodes); }
  // Reads the nodes of a subgraph as if they were in this graph. Returns the values of its outputs; its names
  // are gone after it, as another subgraph may have them too.
  std::vector<Value> import_subgraph(const Subgraph& subgraph);
  // Reads the nodes of a function, which see the inputs under their names there and nothing else.
  std::vector<Value> import_function(const std::unordered_map<std::string, Value>& inputs,
                                     const std::vector<NodeInfo>& nodes,
                                     const std::vector<std::string>& outputs);
  void set_node_importer(std::function<void(const std::vector<NodeInfo>&)> import_nodes) {
    import_nodes_ = std::move(import_nodes);
  }

  // The value as an operand; a constant enters the function now.
  ir::ValueId id(const Value& value);
  const ir::TensorType& type(const Value& value) const;
  // The node's results. A node whose operands are all constants is computed at once, if its operator can be.
  std::vector<Value> emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                          const std::string& name);

  // The constant as float32 where it is float16: networks of float16 are computed in float32.
  ir::ConstantRef in_float32(const ir::ConstantRef& constant);

  // A warning that concerns the whole model, written once.
  void warn_once(const std::string& text) {
    if (log_ && warned_.insert(text).second) log_(QPLAN_LOG_WARNING, "onnx: " + text);
  }

  // Count bytes of constants, and of what is read and written in computing them: a small file could ask for
  // any amount of both.
  void charge(uint64_t bytes);
  void charge_work(uint64_t bytes);

 private:
  struct Entry {
    Value value;
    const Tensor* initializer = nullptr;  // not read yet
    bool is_sparse = false;
  };
  void read_names(const std::vector<NodeInfo>& nodes);
  std::vector<Value> evaluate(const ir::Node& node, const std::vector<ir::ConstantRef>& operands);

  const Model& model_;
  ir::Function& function_;
  const LogFunction& log_;
  std::function<void(const std::vector<NodeInfo>&)> import_nodes_;
  class Scope;
  bool add_entry(const std::string& name, Entry entry);
  std::vector<Value> values(const std::vector<std::string>& names);
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string>* scope_ = nullptr;  // names of the subgraph that is read
  std::unordered_set<std::string_view> read_;
  std::unordered_set<std::string> warned_;
  uint64_t constant_bytes_ = 0;
  uint64_t work_bytes_ = 0;
};

// Inputs and outputs of the model as parameters and outputs of the function.

// Declares the initializers and defines the inputs: parameters, or constants where they are bound.
void define_inputs(Graph& graph, const ImportOptions& options);
// Sets the function's outputs, and the quantisation of its inputs and outputs as their operators state it.
void define_outputs(Graph& graph);

// Scale (float32) and zero point (int32) as the IR wants them: scalars, or one value per index of an axis.
struct QParams {
  ir::ConstantRef scale;
  ir::ConstantRef zero_point;
  bool per_axis() const { return !scale->type().shape.empty(); }
};

// The view of one node that an importer row has, and its way to write the IR. A row reads inputs and
// attributes, refuses what it cannot express (throwing Unsupported) or what is broken (invalid()), emits
// nodes and defines the outputs. Attributes that a row does not read are refused after it: they may change
// what the operator means.
class OpContext {
 public:
  // opset: of the node's domain.
  OpContext(Graph& graph, const NodeInfo& node, size_t index, int64_t opset);

  // Name of the nodes: the node's, or its first output's, or "<Op>_<index>".
  const std::string& name() const { return name_; }
  int64_t opset() const { return opset_; }
  void warn(const std::string& text) const;
  Graph& graph() const { return graph_; }

  // -- inputs and outputs. Of an operator that takes any number of them, at most:
  static constexpr size_t kMaxOperands = 4096;
  void expect_counts(size_t min_inputs, size_t max_inputs, size_t max_outputs = 1) const;
  size_t num_inputs() const { return node_.inputs.size(); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  bool has_output(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  // Unsupported where the value is_shifted.
  const Value& input(size_t i) const;
  // Whatever it is.
  const Value& quantised_input(size_t i) const;
  const ir::TensorType& type(const Value& value) const { return graph_.type(value); }
  const ir::Shape& shape(const Value& value) const { return type(value).shape; }
  // Contents of an input that must be a constant; what: "axes".
  ir::ConstantRef constant(size_t i, const std::string& what) const;
  std::vector<int64_t> ints(size_t i, const std::string& what) const;  // int32 or int64
  // The scale at input i and the zero point after it, which may be absent: 0.
  QParams qparams(size_t i) const { return qparams(i, i + 1); }
  QParams qparams(size_t scale, size_t zero_point) const;
  QParams per_tensor_qparams(size_t i) const;
  // A constant of 4-bit integers with 8 bits to each; others as they are.
  ir::ConstantRef widened(const ir::ConstantRef& constant) const;
  // The dtype of the zero point at input i, uint8 where it is absent: that of the quantised tensor.
  ir::DType zero_point_dtype(size_t i) const;

  // -- attributes
  bool has_attr(std::string_view name) const { return find_attr(name) != nullptr; }
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  float attr_float(std::string_view name, float fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  std::optional<ir::Ints> attr_ints(std::string_view name) const;
  const Attribute* find_attr(std::string_view name, AttributeKind kind) const;
  // Finds an attribute of any kind; it then counts as read.
  const Attribute* find_attr(std::string_view name) const;
  // All of them; they then count as read.
  const std::vector<Attribute>& all_attributes() const;
  // Unsupported where one was never read.
  void refuse_unread_attributes() const;

  // An axis in [-rank, rank) as [0, rank).
  static int64_t axis_of(int64_t axis, size_t rank);

  // -- writing the IR
  Value emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs = {}) const;
  std::vector<Value> emit_many(std::string_view op, const std::vector<Value>& operands,
                               ir::Attrs attrs = {}) const;
  Value reshape(const Value& value, const ir::Shape& shape) const;
  // Operators on a quantised tensor and its parameters, with contract F32E.
  Value quantize(const Value& data, const QParams& params, ir::DType dtype, int64_t axis = -1) const;
  Value dequantize(const Value& data, const QParams& params, int64_t axis = -1) const;
  void define(size_t output, Value value) const;

 private:
  Graph& graph_;
  const NodeInfo& node_;
  std::string name_;
  int64_t opset_;
  mutable std::vector<bool> read_;  // by attribute
};

// A scalar or a vector of one dtype as a constant.
template <typename T>
ir::ConstantRef make_vector(ir::DType dtype, const std::vector<T>& values) {
  return ir::make_constant(dtype, {static_cast<int64_t>(values.size())}, values);
}
// The number as a scalar of the dtype; Unsupported where arithmetic does not support the dtype.
ir::ConstantRef scalar_of(double value, ir::DType dtype);
// All values of a constant of a number dtype.
std::vector<double> numbers_of(const ir::Constant& constant);

// A node that calls a function of the model.
struct FunctionCall {
  std::unordered_map<std::string, Value> inputs;  // by their names in the function; without absent ones
  std::vector<NodeInfo> nodes;                    // with the node's attributes in the place of references
  std::vector<std::string> outputs;               // as many as the node has
};
// name: of the node, which the names of its nodes begin with.
FunctionCall read_call(Graph& graph, const Function& function, const NodeInfo& node, const std::string& name);

// The rows of ops.def.
struct ImportRow {
  std::string_view domain;
  std::string_view op_type;
  int64_t oldest;  // opset versions of the domain
  int64_t newest;
  void (*import_op)(const OpContext& op);
};

// An operator of the caller's.
void import_custom(const OpContext& op, const qplan_custom_operator& custom_operator);

std::span<const ImportRow> rows();
// Null when the operator is not imported.
const ImportRow* find_row(std::string_view domain, std::string_view op_type);

#define QPLAN_ONNX_OP(domain, name, oldest, newest, function) void function(const OpContext& op);
#include "src/packer/import/onnx/ops.def"
#undef QPLAN_ONNX_OP

// Which axis a Softmax works on, for the float operator and the quantised one.

// The data as this shape, along this axis.
struct SoftmaxShape {
  ir::Shape shape;
  int64_t axis;
};
// Reads attribute axis. From opset 13 on it names the axis. Before, it names the first of the axes that are
// flattened into one.
SoftmaxShape softmax_shape(const OpContext& op, const ir::Shape& shape, int64_t opset);

// The results of DynamicQuantizeLinear: uint8 data, with a scale and a zero point that the network computes.
struct DynamicallyQuantized {
  Value data, scale, zero_point;
};
DynamicallyQuantized dynamically_quantized(const OpContext& op, const Value& x);

// DequantizeLinear with a scale for each block of elements along an axis: a constant.
Value dequantized_in_blocks(const OpContext& op, int64_t axis_attr, int64_t block);

// The place of an operand that an operator does not have.
inline constexpr size_t kNoInput = SIZE_MAX;

// The sum of the data and the operand at `i`, where there is one.
Value with_addend(const OpContext& op, const Value& x, size_t i);

// (x - mean) / sqrt(variance + epsilon) over the last axis.
Value normalized_rows(const OpContext& op, const Value& x, float epsilon);

// What attributes activation and activation_params (of a convolution) or activation_alpha, ... (of a product)
// make of x, for operators that ONNX Runtime fuses with it.
Value activated(const OpContext& op, const Value& x);

// log(1 + exp(x)).
Value softplus(const OpContext& op, const Value& x);

// What MatMul makes of two tensors of matrices.
Value matrix_product(const OpContext& op, const Value& a, const Value& b);

// The product of inputs 0 and 1, integers, in float32: which inputs its scales, zero points and addend are.
struct IntegerProductInputs {
  size_t scale, weights_scale, zero_point, weights_zero_point, bias;
};
Value integer_product_to_float(const OpContext& op, const IntegerProductInputs& at);

// Constants of integers, as lists that the importer works with.

// The product of the extents from `begin` to before `end`; invalid() where it wraps.
int64_t num_elements(const ir::Shape& shape, size_t begin, size_t end);
// A list of `count` zeros, charged to the model.
ir::Ints list_of(const OpContext& op, int64_t count);
// The contents of a constant, and a constant of these contents.
ir::Ints integers_of(const OpContext& op, const ir::ConstantRef& constant);
Value integers(const OpContext& op, ir::DType dtype, const ir::Shape& shape, const ir::Ints& values);

// Pow and CumSum of integers that are all constant; nothing for other operands.
std::optional<Value> integer_power(const OpContext& op);
std::optional<Value> integer_cumulative_sum(const OpContext& op, int64_t axis_of, bool exclusive,
                                            bool reverse);

// |x|; of int32 and int64 as kernels compute it.
Value absolute(const OpContext& op, const Value& x);

// Whether the value is made of constants alone: weights, however they are dequantised, moved or scaled.
bool depends_on_constants(const OpContext& op, const Value& value);

// The elements at `positions` of the axis; the value itself where these are all of them in their order.
Value taken(const OpContext& op, const Value& data, size_t axis, const ir::Ints& positions);
// The parts of the axis that integers name, constant or not: Gather.
Value rows_of_table(const OpContext& op, const Value& table, const Value& indices, int64_t axis);
// Positions are lists of numbers. No network has an axis of so many.
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;
// The product of the two, the positions that a window reads along an axis. Unsupported beyond kMaxPositions.
int64_t num_positions(int64_t outputs, int64_t kernel);

// Windows of convolutions and pools. Data with one spatial axis is imported with a height of 1.
enum class Layout { kNchw, kNhwc };

inline std::string layout_name(Layout layout) { return layout == Layout::kNchw ? "NCHW" : "NHWC"; }
// Attribute channels_last of ONNX Runtime's own operators.
Layout layout_of(const OpContext& op);

// Gives a value [n, c, w] the shape [n, c, 1, w]. Returns values of other ranks as they are.
Value with_height(const OpContext& op, const Value& value);
// Takes the height away again from `value`, which an operator computed of with_height(data): it gets the rank
// of `data`.
Value without_height(const OpContext& op, const Value& value, const Value& data);
// Height and width of rank 4. Unsupported for other ranks. ranks: those that the operator may have in the
// file, for the message: "3 or 4".
ir::Ints spatial(const ir::Shape& shape, Layout layout, const char* ranks);

// A window along one axis of `extent` elements. The default window leaves an axis of one element as it is.
struct WindowAxis {
  int64_t extent = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  int64_t ceil_pad = 0;  // the part of pad_end that is there only for attribute ceil_mode

  // Splits `total` elements of padding; the end or the beginning of the data gets the odd one.
  void split_pads(int64_t total, bool is_odd_at_end);
  int64_t covered() const { return (kernel - 1) * dilation + 1; }
  // Only for a window that fits the padded data.
  int64_t outputs() const { return (extent + pad_begin + pad_end - covered()) / stride + 1; }
};
struct Window {
  std::vector<WindowAxis> axes;  // depth, height, width, as far as the data has them

  bool has_ceil_pads() const;
  bool has_dilations() const;
  // The attributes of operators over height and width, the last two axes: kernel_name, strides, padding, and
  // dilation if one of the two has any.
  ir::Attrs plane_attrs(const char* kernel_name) const;
};

// The largest number of a window that the IR accepts; sums and products of two such numbers do not wrap.
inline constexpr int64_t kMaxWindow = int64_t{1} << 31;

enum class AutoPad : uint8_t { kNotSet, kValid, kSameUpper, kSameLower };
struct WindowAttributes {
  std::vector<WindowAxis> axes;  // with the pads of attribute pads if auto_pad is kNotSet, else without pads
  AutoPad auto_pad;
};
// Reads auto_pad, dilations, kernel_shape, pads, strides. extents: of the data's axes. kernel: the weights'
// extents; if it is empty, the node must have attribute kernel_shape. least_pad: 0 or -kMaxWindow.
WindowAttributes read_window_attributes(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel,
                                        int64_t least_pad);
// The window that these attributes and ceil_mode mean. It fits the padded data.
Window read_window(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel);
// The same for height and width: `extents` has both, `kernel` has both or is empty, and the result has both.
// one_axis: the attributes of the file are of the width alone, and the height becomes a default WindowAxis.
Window read_plane_window(const OpContext& op, const ir::Ints& extents, const ir::Ints& kernel, bool one_axis);

// Layers over depth, height and width, of data [n, c, d, h, w]: Conv with its bias, and pools.
Value volume_conv(const OpContext& op, const Value& data, const Value& weights);
Value volume_average_pool(const OpContext& op, const Value& data);
Value volume_max_pool(const OpContext& op, const Value& data);
// Computes MaxPool with dilations over any number of axes. Returns nullopt if the node has no dilations.
std::optional<Value> dilated_max_pool(const OpContext& op, const Value& data);
// The average over height and width of data [n, c, h, w], with any dilations.
Value average_plane(const OpContext& op, Value data, WindowAxis h, WindowAxis w, bool include_padding);

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_OP_CONTEXT_H_
