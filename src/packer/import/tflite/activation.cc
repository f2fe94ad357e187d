#include "src/packer/import/tflite/activation.h"

#include <algorithm>
#include <cmath>

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
      throw Unsupported{"fused activation TANH"};
    case tflite::ActivationFunctionType_SIGN_BIT:
      throw Unsupported{"fused activation SIGN_BIT"};
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

}  // namespace qplan::tfl
