// What the rows of ops.def work with: the function that is built, the view of one operator, and what several
// rows share.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_OP_CONTEXT_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_OP_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qplan/custom_operator.h"
#include "src/packer/error.h"
#include "src/packer/import/tflite/model_file.h"
#include "src/packer/ir/module.h"

namespace qplan::tfl {

// The function that is built, and the map from tensors to its values.
class Graph {
 public:
  Graph(ModelFile& file, ir::Function& function, const LogFunction& log)
      : file_(file), function_(function), log_(log), values_(file.num_tensors()) {}
  // The graph of a subgraph of the caller's file that an operator of the caller runs. Its values enter the
  // same function.
  Graph(Graph& caller, ModelFile& file);

  ModelFile& file() const { return file_; }
  ir::Function& function() const { return function_; }
  const LogFunction& log() const { return log_; }

  // The value of a tensor that is read: a constant enters the function now, anything else must be defined
  // before.
  ir::ValueId value(const TensorInfo& tensor);
  void define(const TensorInfo& tensor, ir::ValueId value);
  bool is_defined(const TensorInfo& tensor) const {
    return values_[static_cast<size_t>(tensor.index)].valid();
  }
  // The tensor's contents, where they are known: the file has them, or shape arithmetic made them. Null
  // otherwise.
  ir::ConstantRef known_contents(const TensorInfo& tensor);
  // Counts bytes of constants. Tensors may share a buffer, so that a small file could ask for any amount of
  // them.
  void charge(uint64_t bytes);
  uint64_t charged_bytes() const { return constant_bytes_; }

  // A tensor without elements that shape arithmetic made, as a loop's first round does.
  void define_empty(const TensorInfo& tensor) { empty_.insert(tensor.index); }
  bool is_empty(const TensorInfo& tensor) const { return tensor.is_empty || empty_.contains(tensor.index); }

  // -- subgraphs that WHILE and IF run (op_control.cc)
  uint32_t depth() const { return depth_; }
  // Adds to the operators of all subgraphs so far, and returns their number.
  uint64_t count_operators(uint64_t count);
  void mark_imported(int32_t subgraph);
  const std::set<size_t>& imported_subgraphs() const { return imported_subgraphs_; }
  // The values of the file's constants, for another round of the same subgraph.
  std::vector<ir::ValueId> constants();
  void take_constants(const std::vector<ir::ValueId>& constants) { values_ = constants; }

  // -- complex numbers, which are two tensors (op_float_other.cc)
  struct Complex {
    ir::ValueId real, imaginary;
  };
  void define_complex(const TensorInfo& tensor, Complex value) { complex_[tensor.index] = value; }
  const Complex* find_complex(const TensorInfo& tensor) const {
    const auto found = complex_.find(tensor.index);
    return found == complex_.end() ? nullptr : &found->second;
  }

  // -- lists of tensors, whose elements are known on import (op_control.cc)
  struct List {
    std::vector<ir::ValueId> elements;  // invalid: not set yet
  };
  using ListRef = std::shared_ptr<const List>;
  void define_list(const TensorInfo& tensor, ListRef list) { lists_[tensor.index] = std::move(list); }
  // Adds to the elements of all lists so far, and returns their number.
  uint64_t count_list_elements(uint64_t count) {
    return caller_ != nullptr ? caller_->count_list_elements(count) : num_list_elements_ += count;
  }
  // Null where the tensor is no list.
  ListRef find_list(const TensorInfo& tensor) const {
    const auto found = lists_.find(tensor.index);
    return found == lists_.end() ? nullptr : found->second;
  }

  // -- what is kept between runs (variables.cc)
  // Unsupported in a subgraph that WHILE or IF runs.
  void refuse_variables_of_subgraphs() const;
  // The name of a resource variable that a handle refers to, and a tensor that is such a handle.
  std::string variable_key(const TensorInfo& handle) const;
  void add_handle(const TensorInfo& handle, std::string key) { handles_[handle.index] = std::move(key); }
  void will_be_assigned(const std::string& key) { variables_[key].is_assigned = true; }
  void set_first_value(const std::string& key, ir::ConstantRef value);
  // What the variable is at this operator: the last value that was assigned, or the parameter of a state. as:
  // its type, where nothing else tells it.
  ir::ValueId read_variable(const std::string& key, const TensorInfo& as);
  void assign_variable(const std::string& key, ir::ValueId value);
  // The same of a tensor with is_variable, for operators that update such a tensor.
  ir::ValueId variable_tensor(const TensorInfo& tensor);
  void set_variable_tensor(const TensorInfo& tensor, ir::ValueId value);
  bool has_variables() const { return !variables_.empty(); }
  // Appends what the states are after a run, and their names; the states, for ir::set_states.
  std::vector<ir::State> finish_states(std::vector<ir::ValueId>* outputs, std::vector<std::string>* names);

 private:
  struct Variable {
    ir::ConstantRef first_value;  // null: all bytes are first_byte
    uint8_t first_byte = 0;
    bool is_assigned = false;  // by some operator of the graph
    ir::ValueId value;         // at the operator that is imported; invalid: not read or written yet
  };

  ModelFile& file_;
  ir::Function& function_;
  const LogFunction& log_;
  Graph* caller_ = nullptr;
  uint32_t depth_ = 0;
  uint64_t num_unrolled_ = 0;
  uint64_t num_list_elements_ = 0;
  std::set<size_t> imported_subgraphs_;
  std::vector<ir::ValueId> values_;  // by tensor index
  std::set<int32_t> empty_;          // by tensor index, these two
  std::map<int32_t, Complex> complex_;
  std::map<int32_t, ListRef> lists_;
  uint64_t constant_bytes_ = 0;
  std::map<std::string, Variable> variables_;
  std::set<std::string> param_names_;                    // from the first state on
  std::map<int32_t, std::string> handles_;               // by tensor index
  std::vector<std::pair<Variable*, ir::State>> states_;  // variables that are read before they are written
};

// One scale and one zero point.
struct QuantParams {
  float scale;
  int32_t zero_point;
  bool operator==(const QuantParams&) const = default;
};
// Returns the quantisation of a tensor with one scale: a positive finite number, and a zero point in the
// range of its integer dtype.
QuantParams checked_quantization(const TensorInfo& tensor);

// The numbers of an int32, int64 or bool constant, and a constant of them, which wraps as C++ does.
std::vector<int64_t> integers_of(const ir::Constant& constant);
ir::ConstantRef integers_as(const std::vector<int64_t>& values, const ir::Shape& shape, ir::DType dtype);

// The view of one operator that an importer row has, and its way to write the IR. A row reads the operator's
// tensors and options, refuses what it cannot express (throwing Unsupported) or what is broken (invalid()),
// emits nodes and defines the outputs.
class OpContext {
 public:
  OpContext(Graph& graph, const tflite::Operator& op, std::string op_name, size_t index);

  Graph& graph() const { return graph_; }
  // Name of the nodes: of the first output, or "<OP>_<index>".
  const std::string& name() const { return name_; }
  void warn(const std::string& text) const;

  // -- the operator as the file has it
  size_t num_inputs() const { return op_.inputs() == nullptr ? 0 : op_.inputs()->size(); }
  size_t num_outputs() const { return op_.outputs() == nullptr ? 0 : op_.outputs()->size(); }
  void expect_counts(size_t min_inputs, size_t max_inputs, size_t outputs) const;
  const TensorInfo& input(size_t i) const;
  const TensorInfo* optional_input(size_t i) const;  // null: absent
  const TensorInfo& output(size_t i = 0) const;
  // A tensor that only describes a value inside the operator; null if the model has none.
  const TensorInfo* intermediate(size_t i) const;
  // The options table; null when the operator has none, or another kind.
  template <typename Options>
  const Options* optional_options() const {
    return op_.builtin_options_as<Options>();
  }
  template <typename Options>
  const Options& options() const {
    const Options* found = optional_options<Options>();
    if (found == nullptr) missing_options(tflite::BuiltinOptionsTraits<Options>::enum_value);
    return *found;
  }
  // The options of an operator that is not TFLite's; may be empty.
  std::span<const uint8_t> custom_options() const {
    if (op_.custom_options() == nullptr) return {};
    return {op_.custom_options()->data(), op_.custom_options()->size()};
  }
  // The tensor's contents where they are known on import; null otherwise.
  ir::ConstantRef known_contents(const TensorInfo& tensor) const { return graph_.known_contents(tensor); }
  bool is_known(const TensorInfo& tensor) const { return known_contents(tensor) != nullptr; }
  // Contents of an int32 or int64 tensor that must be known on import, at most `limit` numbers; what: "axes".
  std::vector<int64_t> constant_ints(const TensorInfo& tensor, const std::string& what,
                                     size_t limit = 16) const;
  // The same of a tensor of one number.
  int64_t constant_int(const TensorInfo& tensor, const std::string& what) const;
  // An axis that an operand names, of a tensor of this rank.
  int64_t constant_axis(const TensorInfo& tensor, size_t rank) const;
  // An axis in [-rank, rank) as [0, rank).
  static int64_t axis_of(int64_t axis, size_t rank);

  // -- refusals
  // Unsupported unless int8 or uint8; what: "input", "weights".
  void require_8bit(const TensorInfo& tensor, const std::string& what) const;
  // Unsupported unless both have one dtype, and elements that a plan can move: 8 bits and more.
  void require_movable(const TensorInfo& from, const TensorInfo& to) const;
  // Unsupported where both have one scale and zero point, and not the same: TFLite copies elements between
  // them only where they mean the same.
  void require_one_quantization(const TensorInfo& a, const TensorInfo& b) const;
  // All of them int8, or all uint8.
  void require_same_8bit(std::initializer_list<const TensorInfo*> tensors) const;
  // The same, or all int16, whose zero points are 0 as TFLite demands.
  void require_same_quantized(std::initializer_list<const TensorInfo*> tensors) const;
  // One scale for the whole tensor, in range; Unsupported when it has one per channel.
  QuantParams quantization(const TensorInfo& tensor) const;

  // -- writing the IR
  ir::ValueId value(const TensorInfo& tensor) const;
  const ir::TensorType& type(ir::ValueId value) const { return graph_.function().type(value); }
  const ir::Shape& shape(ir::ValueId value) const { return type(value).shape; }
  // The contents of a constant; null for other values.
  ir::ConstantRef constant_of(ir::ValueId value) const { return graph_.function().value(value).constant; }
  void charge(uint64_t bytes) const { graph_.charge(bytes); }  // of constants that are about to be made
  ir::ValueId constant(ir::ConstantRef constant, const std::string& name = "");
  ir::ValueId scale(float scale) { return constant(ir::make_scalar(scale)); }
  ir::ValueId zero_point(int32_t zero_point) { return constant(ir::make_scalar(zero_point)); }
  ir::ValueId emit(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs);
  std::vector<ir::ValueId> emit_many(std::string_view op, std::vector<ir::ValueId> operands, ir::Attrs attrs);
  ir::ValueId reshaped(ir::ValueId data, const ir::Shape& shape) {
    return this->shape(data) == shape ? data : emit("reshape", {data}, {{"newshape", shape}});
  }
  // A vector of indices or of extents.
  ir::ValueId int_vector(const std::vector<int64_t>& values, ir::DType dtype = ir::kInt64);
  // value becomes the tensor; its type must be the one that the file declares, but for extents that the file
  // leaves open.
  void define(const TensorInfo& tensor, ir::ValueId value);

 private:
  [[noreturn]] static void missing_options(tflite::BuiltinOptions kind);
  std::vector<ir::ValueId> evaluated(const op::OpDef& def, const std::vector<ir::ValueId>& operands,
                                     const ir::Attrs& attrs);

  Graph& graph_;
  const tflite::Operator& op_;
  std::string op_name_;
  std::string name_;
};

// Whether the operator was shape arithmetic: integers that are known on import, which it computed. Not so an
// operator that has a row and moves elements, which emit() folds.
bool fold_integers(OpContext& op, int32_t builtin_code);

// TensorFlow's operators on lists of tensors, by their names; import_list returns false for others.
bool is_list_operator(std::string_view custom_code);
bool import_list(OpContext& op, std::string_view custom_code);

// Before the operators: handles, variables that are assigned, and the subgraphs that CALL_ONCE runs.
void prepare_variables(Graph& graph, importer::UnsupportedList* unsupported);

// The rows of ops.def.
struct ImportRow {
  int32_t builtin_code;
  const char* name;
  void (*import_op)(OpContext& op);
};

// Null when the operator is not imported.
const ImportRow* find_row(int32_t builtin_code);
// The row of the operator's float32 form (op_float.cc), where its first input and output are float32 and it
// has one; null elsewhere.
const ImportRow* find_float_row(const OpContext& op, int32_t builtin_code);

// Its rows outside of op_float.cc (op_float_other.cc).
std::span<const ImportRow> other_float_rows();
// Integers that stand for themselves: int32 and int64 (op_integers.cc).
bool is_integer(const TensorInfo& tensor);
// An operator of the IR on two inputs of one dtype; "divide" rounds towards zero.
void import_integers(OpContext& op, const char* ir_op, tflite::ActivationFunctionType activation);
// 0 - x of the first input.
ir::ValueId negated_integers(OpContext& op);

// TRANSPOSE_CONV, whose data is not the first input.
void import_float_transpose_conv(OpContext& op);
// Its output has the batch of the data and the channels of the weights, whatever the operand says that is its
// shape.
void check_transposed_shape(const ir::Shape& given, const ir::Shape& made);
// Input 1, indices, as kernels read them: int32 names every element.
ir::ValueId int32_indices(OpContext& op);
// A tensor of matrices with rows and columns exchanged.
ir::ValueId swapped_matrices(OpContext& op, ir::ValueId data);
// The axes that input 1 of a reduction names, in ascending order, each once, as TFLite takes them.
ir::Ints reduced_axes(OpContext& op, size_t rank);
// The reduction of the first operand along these axes. Where the list is empty, TFLite
// reduces each element on its own, as along an axis of extent 1.
ir::ValueId emit_reduction(OpContext& op, const char* ir_op, std::vector<ir::ValueId> operands);
// The output is that of numbers that stand for themselves.
void reduce_numbers(OpContext& op, const char* ir_op);

// An operator of the caller's (op_opaque.cc).
void import_custom(OpContext& op, const qplan_custom_operator& custom_operator);

// A program of Arm's compiler, custom operator `ethos-u` (op_opaque.cc).
void import_ethosu(OpContext& op);

// TANH of 8 bits (op_table.cc).
void import_tanh_table(OpContext& op);

#define QPLAN_TFLITE_OP(number, name, function) void function(OpContext& op);
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP

// Fused activations as clamps in quantised units, and the padding rules. Formulas: TFLite's
// CalculateActivationRangeQuantized and ComputePaddingWithOffset.

// The interval of real numbers that an activation keeps.
struct RealRange {
  float min = -std::numeric_limits<float>::infinity();
  float max = std::numeric_limits<float>::infinity();
};

// The activation's interval; Unsupported for those that are not a clamp. NONE keeps everything.
RealRange activation_range(tflite::ActivationFunctionType activation);

// Emits the clamp to the range, in the units of a tensor of this dtype and quantisation, unless it would do
// nothing: q(r) = zero_point + round_half_away(r / scale), the division in float32.
ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization);
inline ir::ValueId emit_activation(OpContext& op, ir::ValueId value,
                                   tflite::ActivationFunctionType activation, QuantParams quantization) {
  return emit_clamp(op, value, activation_range(activation), quantization);
}

// A window along one axis.
struct WindowAxis {
  int64_t kernel, stride, dilation;
};
// [before, after]. SAME: output extent ceil(input / stride), the smaller half of the padding before.
ir::Ints padding_of(tflite::Padding padding, int64_t input, WindowAxis axis);
// Checks that kernel, stride and dilation are at least 1, then pads: {top, left, bottom, right}. data is
// NHWC.
ir::Ints padding_2d(tflite::Padding padding, const ir::Shape& data, WindowAxis h, WindowAxis w);

// The parts that convolutions and fully connected layers share: quantisation of weights, bias, and the path
// from the accumulator to the output.

struct WeightQuantization {
  std::vector<float> scales;  // one, or one per output channel
  int32_t zero_point = 0;

  bool per_channel() const { return scales.size() > 1; }
};

// Unsupported unless the weights are int8 or uint8 constants, invalid unless they have this rank.
// channel_axis: of the output channels in the file's layout. uint8 weights have one scale; int8 weights of
// convolutions have no zero point.
WeightQuantization weight_quantization(const OpContext& op, const TensorInfo& weights, size_t rank,
                                       size_t channel_axis);

// The scales as a scalar, or as one for each channel.
ir::ValueId scales_constant(OpContext& op, std::vector<float> scales);

// Weights [1, h, w, c] as [c, h, w, 1]: a group per input channel.
ir::ValueId depthwise_to_ohwi(OpContext& op, const TensorInfo& weights);

// The input of a fully connected layer as rows that fit weights [units, depth]: leading extents are batches,
// unless the last extent is not the depth.
ir::ValueId rows_of(OpContext& op, bool keep_num_dims, const TensorInfo& weights);

// How the real multiplier is formed from the scales (src/packer/op/README.md).
enum class Multiplier { kProductF32, kProductF64 };

struct MatmulTail {
  const TensorInfo* bias;  // may be null: zeros
  const TensorInfo& output;
  QuantParams input;
  const WeightQuantization& weights;
  int64_t channels;
  int64_t channel_axis;  // of the accumulator
  Multiplier multiplier;
  tflite::ActivationFunctionType activation;
};
// The type of a layer's sums. Layers with int16 activations have int64, unless the bias is int32, or there is
// no bias and the options name int32; others have int32.
ir::DType accumulator_dtype(const TensorInfo& input, const TensorInfo* bias, tflite::TensorType bias_type);
// accumulator -> nn.bias_add -> qnn.requantize -> clip where the activation needs one.
ir::ValueId emit_tail(OpContext& op, ir::ValueId accumulator, const MatmulTail& tail);

// The operands of qnn.conv2d and qnn.dense.
std::vector<ir::ValueId> matmul_operands(OpContext& op, ir::ValueId data, ir::ValueId weights,
                                         QuantParams input, const WeightQuantization& quantization);

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_OP_CONTEXT_H_
