// Functions of real numbers with the same bits everywhere, without libm: of one float32 in single operations,
// and those that are computed in double. docs/numerics/float32.md has the formulas and their errors. Internal
// linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_
#define QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_

#include <stdint.h>

namespace qplan {

// ---- in operations on float32 that are each rounded to nearest even; lane by lane in
// kernels/simd/float_functions.h

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

// ---- in double: exp and log; functions of float32, which are rounded once, so that a result has an error of
// at most half a unit in the last place and a little more; the logistic function of a byte

// exp(x), relative error below 4e-16, for x in [-700, 700]; 0 below, exp(700) above, NaN gives exp(0).
static inline double exp_double(double x) {
  constexpr double kLog2E = 1.4426950408889634;
  // ln 2 = kLn2High + kLn2Low; the high part ends in zeros, so that its product with k is exact.
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  if (x != x) x = 0.0;
  if (x < -700.0) return 0.0;
  if (x > 700.0) x = 700.0;
  // x = k * ln 2 + r, |r| <= 0.35.
  const double scaled = x * kLog2E;
  const int32_t k = static_cast<int32_t>(scaled + (scaled < 0.0 ? -0.5 : 0.5));
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // Taylor's series up to r^14 / 14!: what is left out is below 2e-19.
  double sum = 1.0;
  for (int32_t n = 14; n >= 1; --n) sum = 1.0 + sum * r / n;
  union {
    uint64_t bits;
    double value;
  } power = {static_cast<uint64_t>(1023 + k) << 52};
  return sum * power.value;
}

// log(x), relative error below 1e-15 or, near 1, absolute error below 1e-16, for positive numbers that are
// not subnormal; what is less counts as the least of them.
static inline double log_double(double x) {
  constexpr double kLeast = 2.2250738585072014e-308;
  constexpr double kLn2High = 6.93147180369123816490e-01;  // as in exp_double
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  union {
    double value;
    uint64_t bits;
  } number = {x >= kLeast ? x : kLeast};
  int32_t exponent = static_cast<int32_t>(number.bits >> 52) - 1023;
  number.bits = (number.bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1023} << 52;
  if (number.value > 1.4142135623730951) {
    number.value *= 0.5;
    ++exponent;
  }
  // x = m * 2^exponent, m in [0.7, 1.42): log m = 2 * artanh z, |z| <= 0.172.
  const double z = (number.value - 1.0) / (number.value + 1.0), square = z * z;
  double sum = 0.0;
  for (int32_t n = 25; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * kLn2High + (2.0 * z * sum + exponent * kLn2Low);
}

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

// x - quarters * pi/2 in about [-pi/4, pi/4], for |x| < 2^30, exact to 2^-53.
static inline double turned(float x, uint32_t* quarters) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  // pi/2 in three parts, of which the first two have 21 and 23 bits: their products with a number of 30 bits
  // are exact.
  constexpr double kHigh = 0x1.921fbp+0, kMiddle = 0x1.5110b4p-22, kLow = 0x1.8469898cc517p-48;
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

// The logistic function 1 / (1 + exp(-x)) of one 8-bit value, with which packers fill the table of a lut8
// step. The output has scale 1/256 and the dtype's least value as zero point. The rule is that of TFLite's
// own kernels; all operations are in float32 but exp, which is computed in double and then rounded:
//   v   = input_scale * (x - input_zero_point)
//   out = min + clamp(round half away (256 / (1 + exp(-v))), 0, 255)

// In units of 1/256: [0, 255].
static inline int32_t logistic_256(int32_t centered, float scale) {
  const float v = scale * static_cast<float>(centered);
  // Beyond +-88 the result is 0 or 256, and exp would leave float32.
  const float bounded = v < -88.0f ? -88.0f : v > 88.0f ? 88.0f : v;
  const float e = static_cast<float>(exp_double(-static_cast<double>(bounded)));
  const float value = 256.0f * (1.0f / (1.0f + e));  // [0, 256]
  const int32_t whole = static_cast<int32_t>(value);
  const int32_t rounded = value - static_cast<float>(whole) >= 0.5f ? whole + 1 : whole;
  return rounded < 255 ? rounded : 255;
}

// input_scale is positive and finite, input_zero_point of the dtype.
static inline uint8_t logistic_u8(uint8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<uint8_t>(logistic_256(x - input_zero_point, input_scale));
}

static inline int8_t logistic_s8(int8_t x, float input_scale, int32_t input_zero_point) {
  return static_cast<int8_t>(logistic_256(x - input_zero_point, input_scale) - 128);
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_FLOAT_FUNCTIONS_H_
