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

// The correctly rounded square root; NaN of negative numbers but -0.
static inline float sqrt_f32(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? x : __builtin_nanf("");
  uint32_t bits = float_bits(x);
  if (bits >= 0x7f800000u) return x;
  int32_t exponent = 0;
  if (bits < 0x00800000u) {  // subnormal
    bits = float_bits(x * 16777216.0f);
    exponent = -24;
  }
  exponent += static_cast<int32_t>(bits >> 23) - 127;
  uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
  if ((exponent & 1) != 0) {
    mantissa *= 2;
    --exponent;
  }
  // The root of mantissa * 2^25 has 25 bits, the last of which rounds; it is never a tie.
  const uint64_t square = mantissa << 25;
  uint64_t root = 0;
  for (int32_t bit = 24; bit >= 0; --bit) {
    const uint64_t next = root | uint64_t{1} << bit;
    if (next * next <= square) root = next;
  }
  const auto rounded = static_cast<float>(static_cast<uint32_t>((root >> 1) + (root & 1)));
  return rounded * power_of_two(static_cast<uint32_t>(exponent / 2 - 23));
}

// log(1 + m) = m - m^2 / 2 + m^3 * (...), sqrt(1/2) - 1 <= m < sqrt(2) - 1, highest power first.
constexpr float kLogTerms[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                               -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                               2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
constexpr float kSqrtHalf = 0.70710677f;

static inline float log_f32(float x) {
  if (!(x > 0.0f)) return x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  uint32_t bits = float_bits(x);
  if (bits >= 0x7f800000u) return x;
  int32_t exponent = 0;
  if (bits < 0x00800000u) {
    bits = float_bits(x * 16777216.0f);
    exponent = -24;
  }
  exponent += static_cast<int32_t>(bits >> 23) - 126;
  float m = float_of_bits((bits & 0x7fffffu) | 0x3f000000u);  // [1/2, 1)
  if (m < kSqrtHalf) {
    --exponent;
    m = m + m;
  }
  m = m - 1.0f;
  const float square = m * m;
  float sum = kLogTerms[0];
  for (uint32_t i = 1; i < 9; ++i) sum = sum * m + kLogTerms[i];
  const auto e = static_cast<float>(exponent);
  const float low = sum * m * square + kFloatLn2Low * e;
  return (m + (low - 0.5f * square)) + kFloatLn2High * e;
}

// erf(x) = x * P(x^2) / Q(x^2), x held in [-4, 4].
constexpr float kErfTerms[] = {-2.72614225801306e-10f, 2.77068142495902e-08f,  -2.10102402082508e-06f,
                               -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                               -1.60960333262415e-02f};
constexpr float kErfDivisorTerms[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                                      -7.37332916720468e-03f, -1.42647390514189e-02f};

static inline float erf_f32(float x) {
  const float within = x < -4.0f ? -4.0f : 4.0f < x ? 4.0f : x;
  const float square = within * within;
  float sum = kErfTerms[0], divisor = kErfDivisorTerms[0];
  for (uint32_t i = 1; i < 7; ++i) sum = sum * square + kErfTerms[i];
  for (uint32_t i = 1; i < 5; ++i) divisor = divisor * square + kErfDivisorTerms[i];
  return within * (sum / divisor);  // the quotient first: near 0 a product would lose digits
}

static inline float floor_f32(float x) {
  if (!(float_abs(x) < 8388608.0f) || x == 0.0f) return x;  // 2^23: there are no fractions
  const auto whole = static_cast<float>(static_cast<int32_t>(x));
  return whole > x ? whole - 1.0f : whole;
}
static inline float ceil_f32(float x) { return float_negative(floor_f32(float_negative(x))); }

// Half to even: a number from 2^23 on has no fraction, so that adding it to a smaller one rounds.
static inline float round_f32(float x) {
  const float size = float_abs(x);
  if (!(size < 8388608.0f)) return x;
  const float rounded = (size + 8388608.0f) - 8388608.0f;
  return float_of_bits(float_bits(rounded) | (float_bits(x) & 0x80000000u));
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_
