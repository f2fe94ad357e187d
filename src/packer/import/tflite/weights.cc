#include <algorithm>
#include <cmath>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

// Half away from zero. |value| < 2^31; a float32 converts exactly and so does its integer part.
int64_t round_half_away(float value) {
  const auto whole = static_cast<int64_t>(value);
  const double rest = static_cast<double>(value) - static_cast<double>(whole);
  return rest >= 0.5 ? whole + 1 : rest <= -0.5 ? whole - 1 : whole;
}

// The bound as a quantised value, which may be outside the dtype.
int64_t quantized_bound(float bound, QuantParams quantization) {
  const float units = bound / quantization.scale;
  if (!(std::fabs(units) < 2147483648.0f)) {
    invalid("scale " + to_text(quantization.scale) + " is too small for the activation's bound " +
            to_text(bound));
  }
  return quantization.zero_point + round_half_away(units);
}

void check_positive(int64_t value, const char* what) {
  if (value < 1) invalid(std::string(what) + " " + std::to_string(value) + " must be at least 1");
}

}  // namespace

RealRange activation_range(tflite::ActivationFunctionType activation) {
  switch (activation) {
    case tflite::ActivationFunctionType_NONE:
      return {};
    case tflite::ActivationFunctionType_RELU:
      return {.min = 0.0f};
    case tflite::ActivationFunctionType_RELU_N1_TO_1:
      return {-1.0f, 1.0f};
    case tflite::ActivationFunctionType_RELU6:
      return {0.0f, 6.0f};
    case tflite::ActivationFunctionType_TANH:
      throw Unsupported{"fused activation TANH, which TFLite's kernels leave out"};
    case tflite::ActivationFunctionType_SIGN_BIT:
      throw Unsupported{"fused activation SIGN_BIT, which TFLite's kernels leave out"};
  }
  invalid("fused activation " + std::to_string(activation) + " is unknown");
}

ir::ValueId emit_clamp(OpContext& op, ir::ValueId value, RealRange range, QuantParams quantization) {
  const ir::DType dtype = op.type(value).dtype;
  int64_t min = dtype.min(), max = dtype.max();
  if (std::isfinite(range.min)) min = std::max(min, quantized_bound(range.min, quantization));
  if (std::isfinite(range.max)) max = std::min(max, quantized_bound(range.max, quantization));
  if (min == dtype.min() && max == dtype.max()) return value;
  // Every range holds 0, whose quantised value is the zero point, a value of the dtype: min <= max.
  return op.emit("clip", {value}, {{"a_min", static_cast<double>(min)}, {"a_max", static_cast<double>(max)}});
}

ir::Ints padding_of(tflite::Padding padding, int64_t input, WindowAxis axis) {
  if (padding == tflite::Padding_VALID) return {0, 0};
  if (padding != tflite::Padding_SAME) invalid("padding " + std::to_string(padding) + " is unknown");
  const int64_t output = (input - 1) / axis.stride + 1;
  const int64_t covered = (output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  const int64_t total = std::max<int64_t>(covered - input, 0);
  return {total / 2, total - total / 2};
}

ir::Ints padding_2d(tflite::Padding padding, const ir::Shape& data, WindowAxis h, WindowAxis w) {
  if (data.size() != 4) invalid("the input has shape " + to_text(data) + ", expected rank 4");
  for (const WindowAxis& axis : {h, w}) {
    check_positive(axis.kernel, "window extent");
    check_positive(axis.stride, "stride");
    check_positive(axis.dilation, "dilation");
  }
  const ir::Ints rows = padding_of(padding, data[1], h);
  const ir::Ints columns = padding_of(padding, data[2], w);
  return {rows[0], columns[0], rows[1], columns[1]};
}

namespace {

// The most that a bias scale may differ from input scale * weight scale, in units of the output scale: beyond
// it TFLite refuses to run the model. The kernels use the product in any case.
constexpr double kBiasScaleTolerance = 0.02;

ir::ValueId bias_constant(OpContext& op, const TensorInfo* bias, int64_t channels, ir::DType dtype) {
  const ir::TensorType type{dtype, {channels}};
  if (bias == nullptr) {
    return op.constant(std::make_shared<const ir::Constant>(
        type, std::vector<uint8_t>(static_cast<size_t>(channels) * static_cast<size_t>(dtype.bits / 8))));
  }
  if (bias->dtype != dtype) throw Unsupported{type_name(bias->file_type) + " bias"};
  if (!bias->is_constant()) throw Unsupported{"bias that is not constant"};
  if (ir::TensorType{dtype, bias->shape}.num_elements() != channels) {
    invalid("the bias has shape " + to_text(bias->shape) + ", expected one value for each of " +
            std::to_string(channels) + " output channels");
  }
  return op.constant(
      std::make_shared<const ir::Constant>(type, std::vector<uint8_t>(bias->data.begin(), bias->data.end())),
      bias->name);
}

// Only what one scale says: per-channel scales and the axis of a bias are not looked at, TFLite does not
// either (person_detect names an axis that its bias does not have).
void check_bias_scale(const OpContext& op, const MatmulTail& tail, QuantParams output) {
  if (tail.bias == nullptr || tail.bias->num_scales() != 1 || tail.weights.per_channel()) return;
  const double product = tail.input.scale * tail.weights.scales[0];
  const double bias = tail.bias->quantization->scale()->Get(0);
  if (std::fabs(product - bias) / output.scale <= kBiasScaleTolerance) return;
  op.warn("bias scale " + to_text(static_cast<float>(bias)) + " is not input scale * weight scale, " +
          to_text(static_cast<float>(product)) + "; the product is used");
}

}  // namespace

ir::ValueId scales_constant(OpContext& op, std::vector<float> scales) {
  if (scales.size() == 1) return op.scale(scales[0]);
  const auto count = static_cast<int64_t>(scales.size());
  return op.constant(ir::make_constant(ir::kFloat32, {count}, scales));
}

WeightQuantization weight_quantization(const OpContext& op, const TensorInfo& weights, size_t rank,
                                       size_t channel_axis) {
  op.require_8bit(weights, "weights");
  if (weights.shape.size() != rank) {
    invalid("the weights have shape " + to_text(weights.shape) + ", expected rank " + std::to_string(rank));
  }
  // DENSIFY and what moves a constant make constants, too.
  if (!weights.is_constant() && op.constant_of(op.value(weights)) == nullptr)
    throw Unsupported{"weights that are not constant"};
  WeightQuantization result;
  if (weights.num_scales() <= 1) {
    const QuantParams one = op.quantization(weights);
    result.scales = {one.scale};
    result.zero_point = one.zero_point;
    return result;
  }

  const tflite::QuantizationParameters& q = *weights.quantization;
  if (weights.dtype != ir::kInt8) throw Unsupported{"per-channel uint8 weights"};
  if (q.details_type() != tflite::QuantizationDetails_NONE) throw Unsupported{"custom quantisation"};
  if (q.quantized_dimension() != static_cast<int32_t>(channel_axis)) {
    throw Unsupported{"weights quantised along axis " + std::to_string(q.quantized_dimension())};
  }
  const int64_t channels = weights.shape[channel_axis];
  if (static_cast<int64_t>(q.scale()->size()) != channels) {
    invalid("the weights have " + std::to_string(q.scale()->size()) + " scales, expected " +
            std::to_string(channels) + ", one per output channel");
  }
  result.scales.assign(q.scale()->begin(), q.scale()->end());
  for (const float scale : result.scales) {
    if (std::isfinite(scale) && scale > 0) continue;
    invalid("the weights have scale " + to_text(scale) + ", expected positive finite numbers");
  }
  if (q.zero_point() != nullptr) {
    for (const int64_t zero_point : *q.zero_point()) {
      if (zero_point != 0) throw Unsupported{"per-channel weights whose zero points are not 0"};
    }
  }
  return result;
}

ir::ValueId depthwise_to_ohwi(OpContext& op, const TensorInfo& weights) {
  return op.emit("transpose", {op.value(weights)}, {{"axes", ir::Ints{3, 1, 2, 0}}});
}

ir::ValueId rows_of(OpContext& op, bool keep_num_dims, const TensorInfo& weights) {
  const int64_t depth = weights.shape[1];
  const ir::ValueId data = op.value(op.input(0));
  const int64_t elements = op.type(data).num_elements();
  if (elements % depth != 0 ||
      (keep_num_dims && (op.shape(data).empty() || op.shape(data).back() != depth))) {
    invalid("the input has shape " + to_text(op.shape(data)) + ", which does not fit weights of shape " +
            to_text(weights.shape));
  }
  if (keep_num_dims || op.shape(data) == ir::Shape{elements / depth, depth}) return data;
  return op.emit("reshape", {data}, {{"newshape", ir::Ints{elements / depth, depth}}});
}

ir::DType accumulator_dtype(const TensorInfo& input, const TensorInfo* bias, tflite::TensorType bias_type) {
  if (input.dtype != ir::kInt16) return ir::kInt32;
  const bool is_narrow = bias != nullptr ? bias->dtype == ir::kInt32 : bias_type == tflite::TensorType_INT32;
  return is_narrow ? ir::kInt32 : ir::kInt64;
}

ir::ValueId emit_tail(OpContext& op, ir::ValueId accumulator, const MatmulTail& tail) {
  const QuantParams output = op.quantization(tail.output);
  check_bias_scale(op, tail, output);
  const ir::ValueId bias = bias_constant(op, tail.bias, tail.channels, op.type(accumulator).dtype);
  ir::ValueId value = op.emit("nn.bias_add", {accumulator, bias}, {{"axis", tail.channel_axis}});

  std::vector<float> scales = tail.weights.scales;
  for (float& scale : scales) {
    const float weight_scale = scale;
    scale = tail.input.scale * weight_scale;
    if (!std::isfinite(scale) || scale <= 0) {  // channels that training left unused are subnormal
      invalid("input scale " + to_text(tail.input.scale) + " times weight scale " + to_text(weight_scale) +
              " leaves the range of float32");
    }
  }
  ir::Attrs attrs{{"out_dtype", ir::to_string(*tail.output.dtype)}};
  if (scales.size() > 1) attrs.set("axis", tail.channel_axis);
  if (tail.multiplier == Multiplier::kProductF32) attrs.set("multiplier", std::string("product_f32"));
  value = op.emit("qnn.requantize",
                  {value, scales_constant(op, std::move(scales)), op.zero_point(0), op.scale(output.scale),
                   op.zero_point(output.zero_point)},
                  std::move(attrs));
  return emit_activation(op, value, tail.activation, output);
}

std::vector<ir::ValueId> matmul_operands(OpContext& op, ir::ValueId data, ir::ValueId weights,
                                         QuantParams input, const WeightQuantization& quantization) {
  return {data,
          weights,
          op.zero_point(input.zero_point),
          op.zero_point(quantization.zero_point),
          op.scale(input.scale),
          scales_constant(op, quantization.scales)};
}

}  // namespace qplan::tfl
