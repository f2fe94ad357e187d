// Functions of one float32, made of single operations that are each rounded to nearest even, so that they
// have one result everywhere. docs/numerics/float32.md has the formulas and their errors;
// kernels/simd/float_functions.h is the same lane by lane.
#ifndef QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_
#define QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_

#include <stdint.h>

namespace qplan {

// exp(r) = 1 + r + r^2 * (...), |r| <= ln(2) / 2, highest power first; and ln(2) in two parts, of which the
// first has so few bits that its product with an exponent is exact.
constexpr float kExpTerms[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                               4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
constexpr float kFloatLog2E = 1.44269504088896341f;
constexpr float kFloatLn2High = 0.693359375f;
constexpr float kFloatLn2Low = -2.12194440e-4f;
// What is beyond has the results of these ends: 0 and infinity.
constexpr float kExpMin = -104.0f;
constexpr float kExpMax = 89.0f;
// 1.5 * 2^23: a number below 2^22 that is added to it loses its fraction, half to even.
constexpr float kRoundMagic = 12582912.0f;
// tanh(x) = x + x * x^2 * (...), |x| < kTanhSmall.
constexpr float kTanhTerms[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                -3.33332819422e-1f};
constexpr float kTanhSmall = 0.625f;

static inline uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}
static inline float float_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}
static inline float float_abs(float x) { return float_of_bits(float_bits(x) & 0x7fffffffu); }
static inline float float_negative(float x) { return float_of_bits(float_bits(x) ^ 0x80000000u); }

// 2^n for n in [-126, 127].
static inline float power_of_two(uint32_t n) { return float_of_bits((n + 127u) << 23); }

static inline float exp_f32(float x) {
  const float within = x < kExpMin ? kExpMin : kExpMax < x ? kExpMax : x;
  const float shifted = within * kFloatLog2E + kRoundMagic;
  const uint32_t n = float_bits(shifted) - float_bits(kRoundMagic);  // modulo 2^32; anything for NaN
  const float whole = shifted - kRoundMagic;
  const float high = within - whole * kFloatLn2High;
  const float r = high - whole * kFloatLn2Low;
  float sum = kExpTerms[0];
  for (uint32_t i = 1; i < 6; ++i) sum = sum * r + kExpTerms[i];
  const float mantissa = (sum * (r * r) + r) + 1.0f;
  // Half of the exponent at a time, so that subnormal results are rounded once.
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  return mantissa * power_of_two(half) * power_of_two(n - half);
}

static inline float logistic_f32(float x) {
  const float e = exp_f32(float_negative(float_abs(x)));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float tanh_f32(float x) {
  const float size = float_abs(x);
  if (size < kTanhSmall) {
    const float square = x * x;
    float sum = kTanhTerms[0];
    for (uint32_t i = 1; i < 5; ++i) sum = sum * square + kTanhTerms[i];
    return sum * square * x + x;
  }
  const float positive = 1.0f - 2.0f / (exp_f32(size + size) + 1.0f);
  return x < 0.0f ? float_negative(positive) : positive;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_
