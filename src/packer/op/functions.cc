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
