// Operators over windows: CONV_2D and DEPTHWISE_CONV_2D, AVERAGE_POOL_2D and MAX_POOL_2D. Multipliers of
// convolutions as TFLite forms them (PopulateConvolutionQuantizationParams): uint8 from the float32 product
// of the scales, int8 in double, whether per channel or not.
#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

struct ConvOptions {
  tflite::Padding padding;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  tflite::ActivationFunctionType activation;
  tflite::TensorType bias_type = tflite::TensorType_FLOAT32;  // of layers without a bias; FLOAT32: any
};

struct ConvWeights {
  ir::ValueId ohwi;
  int64_t groups;
  WeightQuantization quantization;
};

constexpr size_t kWeightRank = 4;

// int16 activations have int8 weights.
void check_weights(const TensorInfo& weights, const TensorInfo& data) {
  const bool fits = data.dtype == ir::kInt16 ? weights.dtype == ir::kInt8 : weights.dtype == data.dtype;
  if (!fits) {
    throw Unsupported{type_name(weights.file_type) + " weights and " + type_name(data.file_type) + " input"};
  }
}

void emit_conv(OpContext& op, ir::ValueId data, const ConvWeights& weights, const ConvOptions& options) {
  const bool is_uint8 = op.type(data).dtype == ir::kUint8;
  // TFLite's int8 kernels never subtract a zero point of the weights.
  if (!is_uint8 && weights.quantization.zero_point != 0)
    throw Unsupported{"int8 weights whose zero point is not 0"};
  const ir::Shape& ohwi = op.shape(weights.ohwi);
  const int64_t channels = ohwi[0], kernel_h = ohwi[1], kernel_w = ohwi[2];
  const QuantParams input = op.quantization(op.input(0));

  ir::Attrs attrs{{"strides", ir::Ints{options.stride_h, options.stride_w}},
                  {"padding", padding_2d(options.padding, op.shape(data),
                                         {kernel_h, options.stride_h, options.dilation_h},
                                         {kernel_w, options.stride_w, options.dilation_w})},
                  {"dilation", ir::Ints{options.dilation_h, options.dilation_w}},
                  {"groups", weights.groups},
                  {"channels", channels},
                  {"kernel_size", ir::Ints{kernel_h, kernel_w}},
                  {"data_layout", std::string("NHWC")},
                  {"kernel_layout", std::string("OHWI")}};
  const ir::DType sums = accumulator_dtype(op.input(0), op.optional_input(2), options.bias_type);
  if (sums != ir::kInt32) attrs.set("out_dtype", ir::to_string(sums));
  const ir::ValueId accumulator = op.emit(
      "qnn.conv2d", matmul_operands(op, data, weights.ohwi, input, weights.quantization), std::move(attrs));
  op.define(op.output(),
            emit_tail(op, accumulator,
                      {.bias = op.optional_input(2),
                       .output = op.output(),
                       .input = input,
                       .weights = weights.quantization,
                       .channels = channels,
                       .channel_axis = 3,
                       .multiplier = is_uint8 ? Multiplier::kProductF32 : Multiplier::kProductF64,
                       .activation = options.activation}));
}

}  // namespace

void import_conv_2d(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::Conv2DOptions>();
  op.require_same_quantized({&op.input(0), &op.output()});
  const TensorInfo& weights = op.input(1);
  const WeightQuantization quantization = weight_quantization(op, weights, kWeightRank, 0);
  check_weights(weights, op.input(0));
  const ir::ValueId data = op.value(op.input(0));
  if (op.shape(data).size() != 4)
    invalid("the input has shape " + to_text(op.shape(data)) + ", expected rank 4");
  const int64_t in_channels = op.shape(data)[3], weight_channels = weights.shape[3];
  if (in_channels % weight_channels != 0) {
    invalid("input channels " + std::to_string(in_channels) + " are not a multiple of the weights' " +
            std::to_string(weight_channels));
  }
  emit_conv(
      op, data, {op.value(weights), in_channels / weight_channels, quantization},
      {options.padding(), options.stride_h(), options.stride_w(), options.dilation_h_factor(),
       options.dilation_w_factor(), options.fused_activation_function(), options.quantized_bias_type()});
}

void import_depthwise_conv_2d(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::DepthwiseConv2DOptions>();
  op.require_same_quantized({&op.input(0), &op.output()});
  const TensorInfo& weights = op.input(1);
  const WeightQuantization quantization = weight_quantization(op, weights, kWeightRank, 3);
  check_weights(weights, op.input(0));
  if (weights.shape[0] != 1) {
    invalid("the weights have shape " + to_text(weights.shape) + ", expected a first extent of 1");
  }
  const ir::ValueId data = op.value(op.input(0));
  if (op.shape(data).size() != 4)
    invalid("the input has shape " + to_text(op.shape(data)) + ", expected rank 4");
  const int64_t in_channels = op.shape(data)[3];
  if (weights.shape[3] % in_channels != 0) {
    invalid("the weights' " + std::to_string(weights.shape[3]) +
            " channels are not a multiple of the input's " + std::to_string(in_channels));
  }
  emit_conv(op, data, {depthwise_to_ohwi(op, weights), in_channels, quantization},
            {options.padding(), options.stride_h(), options.stride_w(), options.dilation_h_factor(),
             options.dilation_w_factor(), options.fused_activation_function()});
}

void check_transposed_shape(const ir::Shape& given, const ir::Shape& made) {
  if (given == made) return;
  invalid("the output's shape is given as " + to_text(given) + ", but data and weights make " +
          to_text(made));
}

// TRANSPOSE_CONV. Inputs: the output's shape, weights [o, h, w, i], data, bias. The output's shape may be an
// input of the model: then the model's own word for the output counts.
void import_transpose_conv(OpContext& op) {
  op.expect_counts(3, 4, 1);
  const auto& options = op.options<tflite::TransposeConvOptions>();
  const TensorInfo& weights = op.input(1);
  const TensorInfo& input = op.input(2);
  if (input.dtype == ir::kFloat32) return import_float_transpose_conv(op);
  op.require_same_quantized({&input, &op.output()});
  const WeightQuantization quantization = weight_quantization(op, weights, kWeightRank, 0);
  check_weights(weights, input);
  const bool is_uint8 = input.dtype == ir::kUint8;
  if (!is_uint8 && quantization.zero_point != 0) throw Unsupported{"int8 weights whose zero point is not 0"};
  ir::Shape output = op.output().shape;
  if (op.input(0).is_constant()) {
    output = op.constant_ints(op.input(0), "extents");
  } else if (!op.output().has_shape) {
    throw Unsupported{"an output shape that is not constant"};
  } else {
    op.warn("the shape of the output is an input of the model; it is taken to be " + to_text(output));
  }
  const ir::ValueId data = op.value(input);
  if (output.size() != 4 || op.shape(data).size() != 4)
    invalid("input and output have shapes " + to_text(op.shape(data)) + " and " + to_text(output) +
            ", expected rank 4");
  // Padding is that of the convolution from the output to the input.
  const ir::Ints pads = padding_2d(options.padding(), output, {weights.shape[1], options.stride_h(), 1},
                                   {weights.shape[2], options.stride_w(), 1});
  ir::Attrs attrs{{"strides", ir::Ints{options.stride_h(), options.stride_w()}},
                  {"crop", ir::Ints{pads[0], pads[1]}},
                  {"output_size", ir::Ints{output[1], output[2]}}};
  const ir::DType sums = accumulator_dtype(input, op.optional_input(3), options.quantized_bias_type());
  if (sums != ir::kInt32) attrs.set("out_dtype", ir::to_string(sums));
  const QuantParams input_quantization = op.quantization(input);
  const ir::ValueId accumulator = op.emit(
      "qnn.conv2d_transpose", matmul_operands(op, data, op.value(weights), input_quantization, quantization),
      std::move(attrs));
  check_transposed_shape(output, op.shape(accumulator));
  op.define(op.output(),
            emit_tail(op, accumulator,
                      {.bias = op.optional_input(3),
                       .output = op.output(),
                       .input = input_quantization,
                       .weights = quantization,
                       .channels = weights.shape[0],
                       .channel_axis = 3,
                       .multiplier = is_uint8 ? Multiplier::kProductF32 : Multiplier::kProductF64,
                       .activation = options.fused_activation_function()}));
}

ir::ValueId swapped_matrices(OpContext& op, ir::ValueId data) {
  const auto rank = static_cast<int64_t>(op.shape(data).size());
  if (rank < 2) invalid("the input has shape " + to_text(op.shape(data)) + ", expected rank 2 or more");
  ir::Ints axes;
  for (int64_t i = 0; i + 2 < rank; ++i) axes.push_back(i);
  axes.push_back(rank - 1);
  axes.push_back(rank - 2);
  return op.emit("transpose", {data}, {{"axes", axes}});
}

namespace {

// The product of the first two inputs, of which data is the first as matrices.
ir::ValueId emit_matmul(OpContext& op, ir::ValueId data, bool transpose_b) {
  const TensorInfo& lhs = op.input(0);
  const TensorInfo& rhs = op.input(1);
  op.require_same_quantized({&lhs, &rhs, &op.output()});
  const QuantParams left = op.quantization(lhs), right = op.quantization(rhs),
                    out = op.quantization(op.output());
  return op.emit(
      "qnn.batch_matmul",
      {data, op.value(rhs), op.scale(left.scale), op.zero_point(left.zero_point), op.scale(right.scale),
       op.zero_point(right.zero_point), op.scale(out.scale), op.zero_point(out.zero_point)},
      {{"transpose_b", transpose_b}});
}

// FULLY_CONNECTED whose weights the network computes: a product of two activations, which has no bias.
void import_computed_weights(OpContext& op, const tflite::FullyConnectedOptions& options) {
  op.require_same_8bit({&op.input(0), &op.input(1), &op.output()});
  if (const TensorInfo* bias = op.optional_input(2)) {
    const bool is_zero = std::ranges::all_of(bias->data, [](uint8_t byte) { return byte == 0; });
    if (!bias->is_constant() || !is_zero) throw Unsupported{"weights that are not constant, and a bias"};
  }
  const ir::ValueId data = rows_of(op, options.keep_num_dims(), op.input(1));
  op.define(op.output(), emit_activation(op, emit_matmul(op, data, /*transpose_b=*/true),
                                         options.fused_activation_function(), op.quantization(op.output())));
}

}  // namespace

// BATCH_MATMUL of two activations, or of one and a constant.
void import_batch_matmul(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const auto* options = op.optional_options<tflite::BatchMatMulOptions>();
  ir::ValueId data = op.value(op.input(0));
  if (options != nullptr && options->adj_x()) data = swapped_matrices(op, data);
  op.define(op.output(), emit_matmul(op, data, options != nullptr && options->adj_y()));
}

// FULLY_CONNECTED. With one scale for all weights TFLite forms the multiplier from the float32 product of the
// scales, for int8 too (GetQuantizedConvolutionMultipler); per channel in double.
void import_fully_connected(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::FullyConnectedOptions>();
  const TensorInfo& input = op.input(0);
  const TensorInfo& weights = op.input(1);
  op.require_same_quantized({&input, &op.output()});
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat_DEFAULT) {
    throw Unsupported{"shuffled weights"};
  }
  if (weights.shape.size() == 2 && op.constant_of(op.value(weights)) == nullptr)
    return import_computed_weights(op, options);
  const WeightQuantization quantization = weight_quantization(op, weights, 2, 0);
  check_weights(weights, input);
  if (input.dtype == ir::kInt16 && quantization.zero_point != 0)
    throw Unsupported{"int8 weights whose zero point is not 0 beside int16"};
  const int64_t units = weights.shape[0];
  const ir::ValueId data = rows_of(op, options.keep_num_dims(), weights);
  const QuantParams input_quantization = op.quantization(input);
  ir::Attrs attrs{{"units", units}};
  const ir::DType sums = accumulator_dtype(input, op.optional_input(2), options.quantized_bias_type());
  if (sums != ir::kInt32) attrs.set("out_dtype", ir::to_string(sums));
  const ir::ValueId accumulator =
      op.emit("qnn.dense", matmul_operands(op, data, op.value(weights), input_quantization, quantization),
              std::move(attrs));
  const auto channel_axis = static_cast<int64_t>(op.shape(accumulator).size()) - 1;
  op.define(op.output(), emit_tail(op, accumulator,
                                   {.bias = op.optional_input(2),
                                    .output = op.output(),
                                    .input = input_quantization,
                                    .weights = quantization,
                                    .channels = units,
                                    .channel_axis = channel_axis,
                                    .multiplier = quantization.per_channel() ? Multiplier::kProductF64
                                                                             : Multiplier::kProductF32,
                                    .activation = options.fused_activation_function()}));
}

// AVERAGE_POOL_2D and MAX_POOL_2D. Neither changes the quantisation: TFLite demands equal scales and zero
// points.
namespace {

constexpr float kScaleTolerance = 1e-6f;  // absolute, TFLite's

struct Pool {
  ir::ValueId data;
  QuantParams quantization;
  ir::Attrs attrs;
};

Pool read_pool(OpContext& op, const tflite::Pool2DOptions& options) {
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  const QuantParams in = op.quantization(input), out = op.quantization(op.output());
  if (in.zero_point != out.zero_point || std::fabs(in.scale - out.scale) > kScaleTolerance) {
    throw Unsupported{"different quantisation of input and output"};
  }
  Pool pool;
  pool.data = op.value(input);
  pool.quantization = out;
  pool.attrs = {{"pool_size", ir::Ints{options.filter_height(), options.filter_width()}},
                {"strides", ir::Ints{options.stride_h(), options.stride_w()}},
                {"padding", padding_2d(options.padding(), op.shape(pool.data),
                                       {options.filter_height(), options.stride_h(), 1},
                                       {options.filter_width(), options.stride_w(), 1})},
                {"layout", std::string("NHWC")}};
  return pool;
}

}  // namespace

void import_average_pool_2d(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto& options = op.options<tflite::Pool2DOptions>();
  Pool pool = read_pool(op, options);
  const ir::ValueId scale = op.scale(pool.quantization.scale);
  const ir::ValueId zero_point = op.zero_point(pool.quantization.zero_point);
  const ir::ValueId value =
      op.emit("qnn.avg_pool2d", {pool.data, scale, zero_point, scale, zero_point}, std::move(pool.attrs));
  op.define(op.output(), emit_activation(op, value, options.fused_activation_function(), pool.quantization));
}

void import_max_pool_2d(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto& options = op.options<tflite::Pool2DOptions>();
  Pool pool = read_pool(op, options);
  const ir::ValueId value = op.emit("nn.max_pool2d", {pool.data}, std::move(pool.attrs));
  op.define(op.output(), emit_activation(op, value, options.fused_activation_function(), pool.quantization));
}

// MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL; ARG_MAX, ARG_MIN.

ir::Ints reduced_axes(OpContext& op, size_t rank) {
  ir::Ints axes = op.constant_ints(op.input(1), "axes");
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ir::ValueId emit_reduction(OpContext& op, const char* ir_op, std::vector<ir::ValueId> operands) {
  const ir::Shape shape = op.shape(operands[0]);
  const ir::Ints axes = reduced_axes(op, shape.size());
  if (axes.empty()) {
    operands[0] = op.reshaped(operands[0], {op.type(operands[0]).num_elements(), 1});
    return op.reshaped(op.emit(ir_op, std::move(operands), {{"axis", ir::Ints{1}}, {"keepdims", false}}),
                       shape);
  }
  const auto* options = op.optional_options<tflite::ReducerOptions>();
  return op.emit(ir_op, std::move(operands),
                 {{"axis", axes}, {"keepdims", options != nullptr && options->keep_dims()}});
}

void reduce_numbers(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  op.define(op.output(), emit_reduction(op, ir_op, {op.value(op.input(0))}));
}

namespace {

struct Reduction {
  ir::ValueId data;
  QuantParams in, out;
};

Reduction read_reduction(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  op.require_same_quantized({&input, &op.output()});
  return {op.value(input), op.quantization(input), op.quantization(op.output())};
}

void import_quantized_reduction(OpContext& op, const char* ir_op) {
  const Reduction r = read_reduction(op);
  op.define(op.output(), emit_reduction(op, ir_op,
                                        {r.data, op.scale(r.in.scale), op.zero_point(r.in.zero_point),
                                         op.scale(r.out.scale), op.zero_point(r.out.zero_point)}));
}

// TFLite demands one quantisation.
void reduce_to_extremum(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  if (is_integer(op.input(0))) return reduce_numbers(op, ir_op);
  const Reduction r = read_reduction(op);
  if (r.in != r.out) throw Unsupported{"input and output of different quantisation"};
  op.define(op.output(), emit_reduction(op, ir_op, {r.data}));
}

void reduce_bools(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  if (op.input(0).dtype != ir::kBool) throw Unsupported{type_name(op.input(0).file_type) + " input"};
  reduce_numbers(op, ir_op);
}

// Whether there is no axis to reduce: the output is the input then.
bool copies_input(OpContext& op) {
  op.expect_counts(2, 2, 1);
  op.require_same_quantized({&op.input(0), &op.output()});
  if (!op.constant_ints(op.input(1), "axes").empty()) return false;
  if (op.quantization(op.input(0)) != op.quantization(op.output()))
    throw Unsupported{"no axes and an output of another quantisation"};
  op.define(op.output(), op.value(op.input(0)));
  return true;
}

}  // namespace

void import_mean(OpContext& op) {
  if (is_integer(op.input(0))) return reduce_numbers(op, "mean");
  if (!copies_input(op)) import_quantized_reduction(op, "qnn.mean");
}

void import_sum(OpContext& op) {
  op.expect_counts(2, 2, 1);
  if (is_integer(op.input(0))) return reduce_numbers(op, "sum");
  op.require_same_8bit({&op.input(0), &op.output()});
  if (copies_input(op)) return;
  // TFLite then adds the integers as they are and lets the sum wrap.
  if (op.quantization(op.input(0)) == op.quantization(op.output()))
    throw Unsupported{"input and output of one quantisation, whose sums TFLite lets wrap"};
  import_quantized_reduction(op, "qnn.sum");
}

void import_reduce_prod(OpContext& op) {
  op.expect_counts(2, 2, 1);
  if (is_integer(op.input(0))) return reduce_numbers(op, "prod");
  if (op.input(0).dtype == ir::kUint8) throw Unsupported{"uint8 input"};
  import_quantized_reduction(op, "qnn.prod");
}

void import_reduce_max(OpContext& op) { reduce_to_extremum(op, "max"); }
void import_reduce_min(OpContext& op) { reduce_to_extremum(op, "min"); }
void import_reduce_any(OpContext& op) { reduce_bools(op, "max"); }
void import_reduce_all(OpContext& op) { reduce_bools(op, "min"); }

namespace {

// takes_floats: as well as 8 bits.
void import_position(OpContext& op, const char* ir_op, bool takes_floats) {
  op.expect_counts(2, 2, 1);
  const TensorInfo& input = op.input(0);
  if (!takes_floats || input.dtype != ir::kFloat32) op.require_8bit(input, "input");
  const ir::ValueId data = op.value(input);
  const std::vector<int64_t> axis = op.constant_ints(op.input(1), "axis");
  if (axis.size() != 1) invalid("there are " + std::to_string(axis.size()) + " axes, expected 1");
  const TensorInfo& output = op.output();
  if (output.dtype != ir::kInt32 && output.dtype != ir::kInt64) {
    throw Unsupported{type_name(output.file_type) + " output"};
  }
  op.define(output, op.emit(ir_op, {data},
                            {{"axis", OpContext::axis_of(axis[0], op.shape(data).size())},
                             {"dtype", ir::to_string(*output.dtype)}}));
}

}  // namespace

void import_arg_max(OpContext& op) { import_position(op, "argmax", /*takes_floats=*/true); }
void import_arg_min(OpContext& op) { import_position(op, "argmin", /*takes_floats=*/false); }

}  // namespace qplan::tfl
