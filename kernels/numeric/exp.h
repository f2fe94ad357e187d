// exp in double without libm: the same bits on every machine, for tables that packers compute.
#ifndef QPLAN_KERNELS_NUMERIC_EXP_H_
#define QPLAN_KERNELS_NUMERIC_EXP_H_

#include <stdint.h>

namespace qplan {

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

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_EXP_H_
