// Functions of float32 that are computed in double and rounded once: a result has an error of at most half a
// unit in the last place and a little more, and the same bits everywhere. docs/numerics/float32.md. Internal
// linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_WIDE_FUNCTIONS_H_
#define QPLAN_KERNELS_NUMERIC_WIDE_FUNCTIONS_H_

#include <stdint.h>

#include "kernels/numeric/exp.h"
#include "kernels/numeric/float_functions.h"

namespace qplan {

// To the nearest float32, infinity beyond its range.
static inline float narrowed(double x) {
  constexpr double kLimit = 0x1.ffffffp127;
  if (x >= kLimit) return __builtin_inff();
  if (x <= -kLimit) return -__builtin_inff();
  return static_cast<float>(x);
}

// exp(x) - 1, without the cancellation near 0.
static inline float exp_less_one_f32(float x) {
  const double wide = x;
  if (!(wide < 0.3 && wide > -0.3)) return x != x ? x : narrowed(exp_double(wide) - 1.0);
  // x + x^2/2! + ...: what is left out is below 1e-18.
  double sum = 1.0;
  for (int32_t n = 14; n >= 2; --n) sum = 1.0 + sum * wide / n;
  return static_cast<float>(sum * wide);
}

// x - quarters * pi/2 in about [-pi/4, pi/4], for |x| < 2^30; exact to 2^-53 for |x| < 2^20, and to about
// 2^-40 beyond.
static inline double turned(float x, uint32_t* quarters) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  // pi/2 in three parts, of which the first two have so few bits that their products are exact.
  constexpr double kHigh = 0x1.921fb544p+0, kMiddle = 0x1.0b4611a6p-34, kLow = 2.0222662487959506e-21;
  const double wide = x;
  const double count = wide * kTwoOverPi;
  const auto whole = static_cast<int64_t>(count < 0 ? count - 0.5 : count + 0.5);
  *quarters = static_cast<uint32_t>(static_cast<uint64_t>(whole) & 3);
  const auto n = static_cast<double>(whole);
  return ((wide - n * kHigh) - n * kMiddle) - n * kLow;
}

// The sine of x + quarters * pi/2; NaN from 2^30 on, where neighbouring float32 are many turns apart.
static inline float sine_from(float x, uint32_t quarters) {
  if (!(float_abs(x) < 1073741824.0f)) return __builtin_nanf("");
  uint32_t of_x = 0;
  const double r = turned(x, &of_x), square = r * r;
  quarters = (quarters + of_x) & 3;
  // Taylor's series, of which what is left out is below 1e-19.
  double sum = 1.0;
  if ((quarters & 1) == 0) {
    for (int32_t n = 18; n >= 2; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
    sum = sum * r;
  } else {
    for (int32_t n = 19; n >= 1; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
  }
  return static_cast<float>((quarters & 2) == 0 ? sum : -sum);
}

static inline float sin_f32(float x) { return x == 0.0f ? x : sine_from(x, 0); }
static inline float cos_f32(float x) { return sine_from(x, 1); }

// As C's pow: 1 where b is 0 or a is 1; NaN for negative a unless b is an integer.
static inline float power_f32(float a, float b) {
  if (b == 0.0f || a == 1.0f) return 1.0f;
  if (a != a || b != b) return __builtin_nanf("");
  const float size = float_abs(a);
  const bool is_whole = floor_f32(b) == b;
  const bool is_odd = is_whole && float_abs(b) < 16777216.0f && floor_f32(b * 0.5f) != b * 0.5f;
  const bool is_negative = (float_bits(a) >> 31) != 0;
  float power = 0.0f;
  if (size == 0.0f || size == __builtin_inff()) {
    power = (size == 0.0f) == (b < 0.0f) ? __builtin_inff() : 0.0f;
  } else if (is_negative && !is_whole) {
    return __builtin_nanf("");
  } else if (size == 1.0f) {
    power = 1.0f;
  } else {
    power = narrowed(exp_double(static_cast<double>(b) * log_double(static_cast<double>(size))));
  }
  return is_negative && is_odd ? float_negative(power) : power;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_WIDE_FUNCTIONS_H_
