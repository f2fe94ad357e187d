// CONV_2D and DEPTHWISE_CONV_2D. Multipliers as TFLite forms them (PopulateConvolutionQuantizationParams):
// uint8 from the float32 product of the scales, int8 in double, whether per channel or not.
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/import/tflite/weights.h"

namespace qplan::tfl {
namespace {

struct ConvOptions {
  tflite::Padding padding;
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  tflite::ActivationFunctionType activation;
};

struct ConvWeights {
  ir::ValueId ohwi;
  int64_t groups;
  WeightQuantization quantization;
};

constexpr size_t kWeightRank = 4;

void check_weights(const TensorInfo& weights, const TensorInfo& data) {
  if (weights.dtype != data.dtype) {
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
  op.require_same_8bit({&op.input(0), &op.output()});
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
  emit_conv(op, data, {op.value(weights), in_channels / weight_channels, quantization},
            {options.padding(), options.stride_h(), options.stride_w(), options.dilation_h_factor(),
             options.dilation_w_factor(), options.fused_activation_function()});
}

void import_depthwise_conv_2d(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::DepthwiseConv2DOptions>();
  op.require_same_8bit({&op.input(0), &op.output()});
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
  emit_conv(op, data, {op.constant(depthwise_to_ohwi(weights), weights.name), in_channels, quantization},
            {options.padding(), options.stride_h(), options.stride_w(), options.dilation_h_factor(),
             options.dilation_w_factor(), options.fused_activation_function()});
}

// FULLY_CONNECTED. With one scale for all weights TFLite forms the multiplier from the float32 product of the
// scales, for int8 too (GetQuantizedConvolutionMultipler); per channel in double.
void import_fully_connected(OpContext& op) {
  op.expect_counts(2, 3, 1);
  const auto& options = op.options<tflite::FullyConnectedOptions>();
  const TensorInfo& input = op.input(0);
  const TensorInfo& weights = op.input(1);
  op.require_same_8bit({&input, &op.output()});
  const WeightQuantization quantization = weight_quantization(op, weights, 2, 0);
  if (weights.dtype != input.dtype) {
    throw Unsupported{type_name(weights.file_type) + " weights and " + type_name(input.file_type) + " input"};
  }
  if (options.weights_format() != tflite::FullyConnectedOptionsWeightsFormat_DEFAULT) {
    throw Unsupported{"shuffled weights"};
  }
  const int64_t units = weights.shape[0];
  const ir::ValueId data = rows_of(op, options.keep_num_dims(), weights);
  const QuantParams input_quantization = op.quantization(input);
  const ir::ValueId accumulator =
      op.emit("qnn.dense", matmul_operands(op, data, op.value(weights), input_quantization, quantization),
              {{"units", units}});
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

}  // namespace qplan::tfl
