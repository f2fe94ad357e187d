#include "kernels/logistic/logistic.h"

#include "kernels/numeric/exp.h"

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

}  // namespace

uint8_t logistic_u8(uint8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<uint8_t>(logistic_256(x - input_zero_point, input_scale));
}

int8_t logistic_s8(int8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<int8_t>(logistic_256(x - input_zero_point, input_scale) - 128);
}

}  // namespace qplan
