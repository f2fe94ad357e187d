#include "kernels/logistic/logistic.h"

#include "kernels/numeric/exp.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/quantize_multiplier.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

// In units of 1/256: [0, 255].
int32_t logistic_256(int32_t centered, float scale) {
  const float v = scale * static_cast<float>(centered);
  // Beyond +-88 the result is 0 or 256, and exp would leave float32.
  const float bounded = v < -88.0f ? -88.0f : v > 88.0f ? 88.0f : v;
  const float e = static_cast<float>(exp_double(-static_cast<double>(bounded)));
  const float value = 256.0f * (1.0f / (1.0f + e));  // [0, 256]
  const int32_t whole = static_cast<int32_t>(value);
  const int32_t rounded = value - static_cast<float>(whole) >= 0.5f ? whole + 1 : whole;
  return rounded < 255 ? rounded : 255;
}

// 1 / (1 + exp(-a)) in Q0.31 for a in Q4.27.
int32_t fixed_logistic(int32_t a) {
  if (a == 0) return int32_t{1} << 30;
  const int32_t positive = fixed_reciprocal_one_plus(fixed_exp_negative<4>(a > 0 ? -a : a));
  return a > 0 ? positive : INT32_MAX - positive;
}

}  // namespace

uint8_t logistic_u8(uint8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<uint8_t>(logistic_256(x - input_zero_point, input_scale));
}

int8_t logistic_s8(int8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<int8_t>(logistic_256(x - input_zero_point, input_scale) - 128);
}

int8_t logistic_s8_fixed_point(int8_t x, float input_scale, int32_t input_zero_point) {
  const QuantizedMultiplier q = quantize_multiplier(static_cast<double>(input_scale) * (1 << 27));
  const int32_t centered = x - input_zero_point;
  // The least magnitude that Q4.27 would not hold after the left shift.
  const int64_t largest = int64_t{15} << 27;
  const int64_t radius = q.shift > 31 ? 0 : q.shift >= 0 ? largest >> q.shift : largest << -q.shift;
  if (centered <= -radius) return INT8_MIN;
  if (centered >= radius) return INT8_MAX;
  const int32_t result = fixed_logistic(requantize_tfl2(centered, q.multiplier, q.shift));
  return static_cast<int8_t>(clamp_s32(rounding_shift_right(result, 23) - 128, INT8_MIN, INT8_MAX));
}

}  // namespace qplan
