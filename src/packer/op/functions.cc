#include <cmath>
#include <limits>

#include "kernels/numeric/exp.h"
#include "src/packer/op/evaluate.h"

namespace qplan::op {
namespace {

// exp(x) - 1 for |x| <= 0.5, where the difference would cancel: x + x^2/2! + ... , what is left out is below
// 1e-19.
double expm1_series(double x) {
  double sum = 1.0;
  for (int n = 16; n >= 2; --n) sum = 1.0 + sum * x / n;
  return sum * x;
}

}  // namespace

double exp_function(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return std::numeric_limits<double>::infinity();  // ln of the largest double
  // exp_double ends at 700.
  return x > 700.0 ? exp_double(x - 100.0) * exp_double(100.0) : exp_double(x);
}

double sigmoid_function(double x) {
  if (std::isnan(x)) return x;
  if (x >= 0.0) return 1.0 / (1.0 + exp_function(-x));
  const double e = exp_function(x);  // no large number for a small result
  return e / (1.0 + e);
}

double tanh_function(double x) {
  if (std::isnan(x)) return x;
  if (x < 0.0) return -tanh_function(-x);
  if (x > 20.0) return 1.0;  // 1 - tanh(20) is below 1e-17
  const double e = x <= 0.25 ? expm1_series(2.0 * x) : exp_function(2.0 * x) - 1.0;
  return e / (e + 2.0);
}

double log_function(double x) {
  if (std::isnan(x) || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.7071067811865476) {
    m *= 2.0;
    --exponent;
  }
  // 2 atanh(t) with |t| < 0.172: what is left out is below 1e-18.
  const double t = (m - 1.0) / (m + 1.0), square = t * t;
  double sum = 0.0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return 2.0 * t * sum + exponent * 0.6931471805599453;
}

double erf_function(double x) {
  if (std::isnan(x)) return x;
  if (x < 0.0) return -erf_function(-x);
  if (x > 6.0) return 1.0;  // 1 - erf(6) is below 1e-16
  // exp(-x^2) * (x + 2/3 x^3 + 4/15 x^5 + ...), whose terms are all positive.
  double term = x, sum = x;
  for (int n = 1; n < 200; ++n) {
    term *= 2.0 * x * x / (2 * n + 1);
    sum += term;
  }
  return 1.1283791670955126 * exp_function(-x * x) * sum;  // 2 / sqrt(pi)
}

double exp_less_one_function(double x) {
  if (std::isnan(x)) return x;
  return std::fabs(x) <= 0.5 ? expm1_series(x) : exp_function(x) - 1.0;
}

// kernels/numeric/wide_functions.h has the same reduction.
double sine_function(double x, uint32_t quarters) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHigh = 0x1.921fb544p+0, kMiddle = 0x1.0b4611a6p-34, kLow = 2.0222662487959506e-21;
  if (!(std::fabs(x) < 1073741824.0)) return std::numeric_limits<double>::quiet_NaN();
  const double count = round_half_even(x * kTwoOverPi);
  const double r = ((x - count * kHigh) - count * kMiddle) - count * kLow, square = r * r;
  quarters += static_cast<uint32_t>(static_cast<uint64_t>(static_cast<int64_t>(count)) & 3);
  double sum = 1.0;
  if (quarters % 2 == 0) {
    for (int n = 18; n >= 2; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
    sum *= r;
  } else {
    for (int n = 19; n >= 1; n -= 2) sum = 1.0 - sum * square / (n * (n + 1));
  }
  return quarters % 4 < 2 ? sum : -sum;
}

double round_half_even(double x) {
  // From 2^52 on every double is an integer; below, adding it leaves no bits for the fraction.
  constexpr double kTwo52 = 4503599627370496.0;
  if (!(std::fabs(x) < kTwo52)) return x;
  const double magnitude = (std::fabs(x) + kTwo52) - kTwo52;
  return std::copysign(magnitude, x);
}

float to_float32(double x) {
  // Half a step beyond the largest float32, from where on rounding goes to infinity.
  constexpr double kLimit = 0x1.ffffffp127;
  if (x >= kLimit) return std::numeric_limits<float>::infinity();
  if (x <= -kLimit) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(x);
}

}  // namespace qplan::op
