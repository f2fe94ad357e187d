// The float32 forms of operators: those whose first input and first output are float32, with weights of
// float32 or of int8. They have the order of operations that TFLite's reference kernels have
// (docs/numerics/float32.md, docs/numerics/dynamic_quantize.md).
#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

void require_float(const TensorInfo& tensor, const char* what) {
  if (tensor.is_variable) throw Unsupported{"variable tensor " + tfl::in_quotes(tensor.name)};
  if (tensor.dtype != ir::kFloat32) {
    throw Unsupported{std::string("float32 input and ") + type_name(tensor.file_type) + " " + what};
  }
}

// ---- activations ----

ir::ValueId emit_clip(OpContext& op, ir::ValueId value, RealRange range) {
  if (range.min == 0.0f && std::isinf(range.max)) return op.emit("nn.relu", {value}, {});
  return op.emit("clip", {value},
                 {{"a_min", static_cast<double>(range.min)}, {"a_max", static_cast<double>(range.max)}});
}

// value, which becomes the operator's output after its fused activation.
void define_activated(OpContext& op, ir::ValueId value, tflite::ActivationFunctionType activation) {
  if (activation != tflite::ActivationFunctionType_NONE)
    value = emit_clip(op, value, activation_range(activation));
  op.define(op.output(), value);
}

// An operator of the IR with one input, with these attributes.
void emit_unary(OpContext& op, const char* ir_op, ir::Attrs attrs = {}) {
  op.expect_counts(1, 1, 1);
  op.define(op.output(), op.emit(ir_op, {op.value(op.input(0))}, std::move(attrs)));
}

void import_float_clamp(OpContext& op, RealRange range) {
  op.expect_counts(1, 1, 1);
  op.define(op.output(), emit_clip(op, op.value(op.input(0)), range));
}
void import_relu(OpContext& op) { import_float_clamp(op, {.min = 0.0f}); }
void import_relu6(OpContext& op) { import_float_clamp(op, {0.0f, 6.0f}); }
void import_relu_n1_to_1(OpContext& op) { import_float_clamp(op, {-1.0f, 1.0f}); }
void import_relu_0_to_1(OpContext& op) { import_float_clamp(op, {0.0f, 1.0f}); }

void import_leaky_relu(OpContext& op) {
  emit_unary(op, "nn.leaky_relu",
             {{"alpha", static_cast<double>(op.options<tflite::LeakyReluOptions>().alpha())}});
}
void import_logistic(OpContext& op) { emit_unary(op, "sigmoid"); }
void import_tanh(OpContext& op) { emit_unary(op, "tanh"); }
void import_exp(OpContext& op) { emit_unary(op, "exp"); }
void import_neg(OpContext& op) { emit_unary(op, "negative"); }
void import_abs(OpContext& op) { emit_unary(op, "abs"); }
void import_sqrt(OpContext& op) { emit_unary(op, "sqrt"); }
void import_rsqrt(OpContext& op) { emit_unary(op, "rsqrt"); }
void import_log(OpContext& op) { emit_unary(op, "log"); }
void import_floor(OpContext& op) { emit_unary(op, "floor"); }
void import_ceil(OpContext& op) { emit_unary(op, "ceil"); }
void import_round(OpContext& op) { emit_unary(op, "round"); }
void import_log_softmax(OpContext& op) { emit_unary(op, "nn.log_softmax", {{"axis", int64_t{-1}}}); }

// x * clamp(x + 3, 0, 6) / 6
void import_hard_swish(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const ir::ValueId x = op.value(op.input(0));
  const auto constant = [&](float value) { return op.constant(ir::make_scalar(value)); };
  const ir::ValueId gate = emit_clip(op, op.emit("add", {x, constant(3.0f)}, {}), {0.0f, 6.0f});
  op.define(op.output(), op.emit("divide", {op.emit("multiply", {x, gate}, {}), constant(6.0f)}, {}));
}

// x < 0 ? alpha * x : x, as the sum of two parts one of which is 0.
void import_prelu(OpContext& op) {
  op.expect_counts(2, 2, 1);
  require_float(op.input(1), "alpha");
  const ir::ValueId x = op.value(op.input(0));
  const ir::ValueId below = op.emit("minimum", {x, op.constant(ir::make_scalar(0.0f))}, {});
  const ir::ValueId scaled = op.emit("multiply", {below, op.value(op.input(1))}, {});
  op.define(op.output(), op.emit("add", {op.emit("nn.relu", {x}, {}), scaled}, {}));
}

void import_softmax(OpContext& op) {
  const double beta = static_cast<double>(op.options<tflite::SoftmaxOptions>().beta());
  emit_unary(op, "nn.softmax", {{"axis", int64_t{-1}}, {"beta", beta}});
}

// ---- two tensors ----

ir::ValueId emit_binary(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  require_float(op.input(1), "input");
  return op.emit(ir_op, {op.value(op.input(0)), op.value(op.input(1))}, {});
}

template <typename Options>
void import_float_binary(OpContext& op, const char* ir_op) {
  const auto* options = op.optional_options<Options>();  // absent: no activation
  define_activated(
      op, emit_binary(op, ir_op),
      options == nullptr ? tflite::ActivationFunctionType_NONE : options->fused_activation_function());
}
void import_add(OpContext& op) { import_float_binary<tflite::AddOptions>(op, "add"); }
void import_sub(OpContext& op) { import_float_binary<tflite::SubOptions>(op, "subtract"); }
void import_mul(OpContext& op) { import_float_binary<tflite::MulOptions>(op, "multiply"); }
void import_div(OpContext& op) { import_float_binary<tflite::DivOptions>(op, "divide"); }
void import_maximum(OpContext& op) { op.define(op.output(), emit_binary(op, "maximum")); }
void import_minimum(OpContext& op) { op.define(op.output(), emit_binary(op, "minimum")); }

void import_squared_difference(OpContext& op) {
  const ir::ValueId difference = emit_binary(op, "subtract");
  op.define(op.output(), op.emit("multiply", {difference, difference}, {}));
}

// ---- layers of weights ----

const TensorInfo& weights_of(OpContext& op, size_t rank) {
  const TensorInfo& weights = op.input(1);
  if (weights.dtype != ir::kInt8) require_float(weights, "weights");
  if (weights.shape.size() != rank) {
    invalid("the weights have shape " + to_text(weights.shape) + ", expected rank " + std::to_string(rank));
  }
  return weights;
}

// The layer's output: its sums, their bias, the activation.
void define_layer(OpContext& op, ir::ValueId sums, tflite::ActivationFunctionType activation) {
  if (const TensorInfo* bias = op.optional_input(2)) {
    require_float(*bias, "bias");
    ir::ValueId values = op.value(*bias);
    const ir::Shape shape = op.shape(sums);  // not a reference: values that are made move the others
    const int64_t channels = shape.back();
    if (op.type(values).num_elements() != channels) {
      invalid("the bias has shape " + to_text(bias->shape) + ", expected one value for each of " +
              std::to_string(channels) + " output channels");
    }
    if (op.shape(values).size() != 1)
      values = op.emit("reshape", {values}, {{"newshape", ir::Ints{channels}}});
    sums = op.emit("nn.bias_add", {sums, values}, {{"axis", static_cast<int64_t>(shape.size()) - 1}});
  }
  define_activated(op, sums, activation);
}

// ---- dynamic range quantisation: int8 weights and float32 activations ----

// How a kernel of TFLite's quantises its input and scales its sums.
struct Hybrid {
  int64_t rows;    // axes of the data that have scales of their own
  bool symmetric;  // no zero points
  bool in_turn;    // sums times the weights' scale, times the input's
  ir::Ints padding = {0, 0, 0, 0};
};

// The layer's sums in float: the data becomes int8 with scales of its own, the product is one of integers.
// weights: [o, ...], of which `emit_product` makes the product of such data.
template <typename EmitProduct>
ir::ValueId emit_hybrid(OpContext& op, ir::ValueId data, ir::ValueId weights,
                        const WeightQuantization& quantization, const Hybrid& hybrid,
                        const EmitProduct& emit_product) {
  const ir::ConstantRef constant = op.constant_of(weights);
  if (constant == nullptr) throw Unsupported{"weights that are not constant"};
  if (quantization.zero_point != 0) throw Unsupported{"int8 weights whose zero point is not 0"};
  const auto channels = static_cast<size_t>(constant->type().shape[0]);
  std::vector<float> scales(channels, quantization.scales[0]);
  if (quantization.per_channel()) scales = quantization.scales;
  std::vector<int32_t> sums(channels);
  const auto values = constant->as<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) sums[i / (values.size() / channels)] += values[i];

  const std::vector<ir::ValueId> quantized =
      op.emit_many("nn.dynamic_quantize", {data},
                   {{"rows", hybrid.rows}, {"symmetric", hybrid.symmetric}, {"padding", hybrid.padding}});
  const ir::ValueId product = emit_product(std::vector<ir::ValueId>{
      quantized[0], weights, op.zero_point(0), op.zero_point(0), op.scale(1.0f), op.scale(1.0f)});
  const auto count = static_cast<int64_t>(channels);
  return op.emit(
      "nn.dynamic_dequantize",
      {product, quantized[1], quantized[2], op.constant(ir::make_constant(ir::kFloat32, {count}, scales)),
       op.constant(ir::make_constant(ir::kInt32, {count}, sums))},
      {{"rows", hybrid.rows}, {"in_turn", hybrid.in_turn}});
}

// TFLite's convolutions quantise each image. With one scale for all weights they do so without zero points,
// with one for each channel with them; a depthwise one forms the product of the scales first.
Hybrid hybrid_of_conv(const WeightQuantization& quantization, bool is_depthwise, const ir::Ints& padding) {
  const bool per_channel = is_depthwise || quantization.scales.size() > 1;
  return {.rows = 1, .symmetric = !per_channel, .in_turn = per_channel && !is_depthwise, .padding = padding};
}

template <typename Options>
void emit_conv(OpContext& op, const Options& options, ir::ValueId data, ir::ValueId ohwi, int64_t groups,
               bool is_depthwise) {
  const ir::Shape shape = op.shape(ohwi);
  const int64_t stride_h = options.stride_h(), stride_w = options.stride_w();
  const int64_t dilation_h = options.dilation_h_factor(), dilation_w = options.dilation_w_factor();
  const ir::Ints padding = padding_2d(options.padding(), op.shape(data), {shape[1], stride_h, dilation_h},
                                      {shape[2], stride_w, dilation_w});
  ir::Attrs attrs{{"strides", ir::Ints{stride_h, stride_w}},
                  {"padding", padding},
                  {"dilation", ir::Ints{dilation_h, dilation_w}},
                  {"groups", groups},
                  {"channels", shape[0]},
                  {"kernel_size", ir::Ints{shape[1], shape[2]}},
                  {"data_layout", std::string("NHWC")},
                  {"kernel_layout", std::string("OHWI")}};
  ir::ValueId sums;
  if (op.type(ohwi).dtype == ir::kInt8) {
    const WeightQuantization quantization = weight_quantization(op, op.input(1), 4, is_depthwise ? 3 : 0);
    attrs.set("padding", ir::Ints{0, 0, 0, 0});
    sums = emit_hybrid(op, data, ohwi, quantization, hybrid_of_conv(quantization, is_depthwise, padding),
                       [&](std::vector<ir::ValueId> operands) {
                         return op.emit("qnn.conv2d", std::move(operands), std::move(attrs));
                       });
  } else {
    sums = op.emit("nn.conv2d", {data, ohwi}, std::move(attrs));
  }
  define_layer(op, sums, options.fused_activation_function());
}

ir::ValueId image_of(OpContext& op) {
  const ir::ValueId data = op.value(op.input(0));
  if (op.shape(data).size() != 4)
    invalid("the input has shape " + to_text(op.shape(data)) + ", expected rank 4");
  return data;
}

void import_conv_2d(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const TensorInfo& weights = weights_of(op, 4);
  const ir::ValueId data = image_of(op);
  const int64_t in_channels = op.shape(data)[3], weight_channels = weights.shape[3];
  if (in_channels % weight_channels != 0) {
    invalid("input channels " + std::to_string(in_channels) + " are not a multiple of the weights' " +
            std::to_string(weight_channels));
  }
  emit_conv(op, op.options<tflite::Conv2DOptions>(), data, op.value(weights), in_channels / weight_channels,
            /*is_depthwise=*/false);
}

void import_depthwise_conv_2d(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const TensorInfo& weights = weights_of(op, 4);
  if (weights.shape[0] != 1) {
    invalid("the weights have shape " + to_text(weights.shape) + ", expected a first extent of 1");
  }
  const ir::ValueId data = image_of(op);
  const int64_t in_channels = op.shape(data)[3];
  if (weights.shape[3] % in_channels != 0) {
    invalid("the weights' " + std::to_string(weights.shape[3]) +
            " channels are not a multiple of the input's " + std::to_string(in_channels));
  }
  emit_conv(op, op.options<tflite::DepthwiseConv2DOptions>(), data, depthwise_to_ohwi(op, weights),
            in_channels,
            /*is_depthwise=*/true);
}

// Whether the value is a constant, or what one operator makes of constants, as DEQUANTIZE of weights.
bool is_fixed(const OpContext& op, ir::ValueId value) {
  const auto is_constant = [&](ir::ValueId v) { return op.constant_of(v) != nullptr; };
  if (is_constant(value)) return true;
  const ir::Node* producer = op.graph().function().producer(value);
  return producer != nullptr && std::ranges::all_of(producer->operands, is_constant);
}

void import_fully_connected(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::FullyConnectedOptions>();
  const TensorInfo& weights = weights_of(op, 2);
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat_DEFAULT) {
    throw Unsupported{"shuffled weights"};
  }
  const ir::ValueId data = rows_of(op, options.keep_num_dims(), weights);
  const ir::Attrs attrs{{"units", weights.shape[0]}};
  if (weights.dtype == ir::kFloat32 && !is_fixed(op, op.value(weights))) {
    return define_layer(op, op.emit("nn.batch_matmul", {data, op.value(weights)}, {{"transpose_b", true}}),
                        options.fused_activation_function());
  }
  if (weights.dtype != ir::kInt8) {
    return define_layer(op, op.emit("nn.dense", {data, op.value(weights)}, attrs),
                        options.fused_activation_function());
  }
  const Hybrid hybrid = {.rows = static_cast<int64_t>(op.shape(data).size()) - 1,
                         .symmetric = !options.asymmetric_quantize_inputs(),
                         .in_turn = false};
  const ir::ValueId sums = emit_hybrid(
      op, data, op.value(weights), weight_quantization(op, weights, 2, 0), hybrid,
      [&](std::vector<ir::ValueId> operands) { return op.emit("qnn.dense", std::move(operands), attrs); });
  define_layer(op, sums, options.fused_activation_function());
}

// BATCH_MATMUL subtracts in float32 what the zero points contribute, exactly while sums stay within 2^24.
void check_float_sums(const ir::ConstantRef& weights, int64_t depth) {
  constexpr int64_t kLimit = int64_t{1} << 24, kMostOfInput = 255;
  if (weights == nullptr) return;
  const auto values = weights->as<int8_t>();
  for (size_t begin = 0; begin < values.size(); begin += static_cast<size_t>(depth)) {
    int64_t sum = 0;
    for (const int8_t value : values.subspan(begin, static_cast<size_t>(depth))) sum += std::abs(value);
    if (sum * kMostOfInput > kLimit) throw Unsupported{"asymmetric_quantize_inputs and sums beyond 2^24"};
  }
}

void import_batch_matmul(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& rhs = op.input(1);
  if (rhs.dtype != ir::kInt8) require_float(rhs, "input");
  const auto* options = op.optional_options<tflite::BatchMatMulOptions>();
  const bool transpose_b = options != nullptr && options->adj_y();
  ir::ValueId data = op.value(op.input(0));
  if (options != nullptr && options->adj_x()) data = swapped_matrices(op, data);
  ir::ValueId matrices = op.value(rhs);
  if (rhs.dtype == ir::kFloat32) {
    return op.define(op.output(),
                     op.emit("nn.batch_matmul", {data, matrices}, {{"transpose_b", transpose_b}}));
  }
  // One matrix is the weights of a fully connected layer.
  const QuantParams quantization = op.quantization(rhs);
  if (!transpose_b) matrices = swapped_matrices(op, matrices);
  const ir::Shape shape = op.shape(matrices);
  const size_t rank = op.shape(data).size();
  const size_t axes = shape.size();
  if (axes < 2 || axes > rank || op.type(matrices).num_elements() != shape[axes - 2] * shape[axes - 1])
    throw Unsupported{"float32 input and several int8 matrices"};
  const ir::Attrs attrs{{"units", shape[axes - 2]}};
  const Hybrid hybrid = {.rows = static_cast<int64_t>(rank) - 1,
                         .symmetric = options == nullptr || !options->asymmetric_quantize_inputs(),
                         .in_turn = false};
  if (!hybrid.symmetric) check_float_sums(op.constant_of(matrices), shape.back());
  op.define(op.output(), emit_hybrid(op, data, op.reshaped(matrices, {shape.end() - 2, shape.end()}),
                                     {{quantization.scale}, quantization.zero_point}, hybrid,
                                     [&](std::vector<ir::ValueId> operands) {
                                       return op.emit("qnn.dense", std::move(operands), attrs);
                                     }));
}

// ---- pools, reductions ----

void import_pool(OpContext& op, const char* ir_op) {
  op.expect_counts(1, 1, 1);
  const auto& options = op.options<tflite::Pool2DOptions>();
  const ir::ValueId data = image_of(op);
  const ir::Ints padding =
      padding_2d(options.padding(), op.shape(data), {options.filter_height(), options.stride_h(), 1},
                 {options.filter_width(), options.stride_w(), 1});
  const ir::ValueId value = op.emit(ir_op, {data},
                                    {{"pool_size", ir::Ints{options.filter_height(), options.filter_width()}},
                                     {"strides", ir::Ints{options.stride_h(), options.stride_w()}},
                                     {"padding", padding},
                                     {"layout", std::string("NHWC")}});
  define_activated(op, value, options.fused_activation_function());
}
void import_average_pool_2d(OpContext& op) { import_pool(op, "nn.avg_pool2d"); }
void import_max_pool_2d(OpContext& op) { import_pool(op, "nn.max_pool2d"); }

void import_mean(OpContext& op) { reduce_numbers(op, "mean"); }

constexpr ImportRow kFloatRows[] = {
    {tflite::BuiltinOperator_ADD, "ADD", import_add},
    {tflite::BuiltinOperator_AVERAGE_POOL_2D, "AVERAGE_POOL_2D", import_average_pool_2d},
    {tflite::BuiltinOperator_CONV_2D, "CONV_2D", import_conv_2d},
    {tflite::BuiltinOperator_DEPTHWISE_CONV_2D, "DEPTHWISE_CONV_2D", import_depthwise_conv_2d},
    {tflite::BuiltinOperator_FULLY_CONNECTED, "FULLY_CONNECTED", import_fully_connected},
    {tflite::BuiltinOperator_BATCH_MATMUL, "BATCH_MATMUL", import_batch_matmul},
    {tflite::BuiltinOperator_LOGISTIC, "LOGISTIC", import_logistic},
    {tflite::BuiltinOperator_MAX_POOL_2D, "MAX_POOL_2D", import_max_pool_2d},
    {tflite::BuiltinOperator_MUL, "MUL", import_mul},
    {tflite::BuiltinOperator_RELU, "RELU", import_relu},
    {tflite::BuiltinOperator_RELU_N1_TO_1, "RELU_N1_TO_1", import_relu_n1_to_1},
    {tflite::BuiltinOperator_RELU6, "RELU6", import_relu6},
    {tflite::BuiltinOperator_SOFTMAX, "SOFTMAX", import_softmax},
    {tflite::BuiltinOperator_TANH, "TANH", import_tanh},
    {tflite::BuiltinOperator_MEAN, "MEAN", import_mean},
    {tflite::BuiltinOperator_SUB, "SUB", import_sub},
    {tflite::BuiltinOperator_DIV, "DIV", import_div},
    {tflite::BuiltinOperator_EXP, "EXP", import_exp},
    {tflite::BuiltinOperator_PRELU, "PRELU", import_prelu},
    {tflite::BuiltinOperator_MAXIMUM, "MAXIMUM", import_maximum},
    {tflite::BuiltinOperator_MINIMUM, "MINIMUM", import_minimum},
    {tflite::BuiltinOperator_NEG, "NEG", import_neg},
    {tflite::BuiltinOperator_LEAKY_RELU, "LEAKY_RELU", import_leaky_relu},
    {tflite::BuiltinOperator_SQUARED_DIFFERENCE, "SQUARED_DIFFERENCE", import_squared_difference},
    {tflite::BuiltinOperator_ABS, "ABS", import_abs},
    {tflite::BuiltinOperator_SQRT, "SQRT", import_sqrt},
    {tflite::BuiltinOperator_RSQRT, "RSQRT", import_rsqrt},
    {tflite::BuiltinOperator_LOG, "LOG", import_log},
    {tflite::BuiltinOperator_FLOOR, "FLOOR", import_floor},
    {tflite::BuiltinOperator_CEIL, "CEIL", import_ceil},
    {tflite::BuiltinOperator_ROUND, "ROUND", import_round},
    {tflite::BuiltinOperator_LOG_SOFTMAX, "LOG_SOFTMAX", import_log_softmax},
    {tflite::BuiltinOperator_HARD_SWISH, "HARD_SWISH", import_hard_swish},
    {tflite::BuiltinOperator_RELU_0_TO_1, "RELU_0_TO_1", import_relu_0_to_1},
};

}  // namespace

const ImportRow* find_float_row(const OpContext& op, int32_t builtin_code) {
  if (op.num_inputs() == 0 || op.num_outputs() == 0 || op.optional_input(0) == nullptr) return nullptr;
  if (op.input(0).dtype != ir::kFloat32 || op.output().dtype != ir::kFloat32) return nullptr;
  for (const std::span<const ImportRow> rows : {std::span<const ImportRow>(kFloatRows), other_float_rows()}) {
    const auto row =
        std::ranges::find_if(rows, [&](const ImportRow& r) { return r.builtin_code == builtin_code; });
    if (row != rows.end()) return &*row;
  }
  return nullptr;
}

}  // namespace qplan::tfl
