// The functions of float32 that networks compute at run time, from docs/numerics/float32.md: chains of
// operations that are each rounded by themselves. Each result is also compared with the real function, within
// the error that the page promises.
#ifndef QPLAN_TESTS_PACKER_PIPELINE_FLOAT_FUNCTIONS_H_
#define QPLAN_TESTS_PACKER_PIPELINE_FLOAT_FUNCTIONS_H_

#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

#include "tests/packer/pipeline/naive_interpreter.h"

namespace qplan::naive {

inline double f32(double x) { return static_cast<double>(static_cast<float>(x)); }

// Highest power first. The terms are written as decimal numbers and are those of float32.
inline double horner(double x, std::initializer_list<double> terms) {
  double sum = 0;
  bool first = true;
  for (const double term : terms) {
    sum = first ? f32(term) : f32(f32(sum * x) + f32(term));
    first = false;
  }
  return sum;
}

// The result, if it is so near to the exact one; ulp counts steps of float32 at the exact result.
inline double within(double result, double exact, double ulp, const char* name) {
  if (std::isnan(exact) ? std::isnan(result) : f32(exact) == result) return result;
  const double step = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  if (std::fabs(result - exact) <= ulp * step || (std::isinf(result) && exact > 0x1.fp127)) return result;
  throw std::logic_error(std::string(name) + " is " + std::to_string(result) + ", but the function is " +
                         std::to_string(exact));
}

inline double float_exp(double x) {
  if (std::isnan(x)) return x;
  const double held = std::clamp(x, -104.0, 89.0), n = half_even(f32(held * f32(1.44269504088896341)));
  const double r = f32(f32(held - f32(n * 0.693359375)) - f32(n * f32(-2.12194440e-4)));
  const double sum = horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                                1.6666665459e-1, 5.0000001201e-1});
  const double mantissa = f32(f32(f32(sum * f32(r * r)) + r) + 1);
  return within(f32(std::ldexp(mantissa, static_cast<int>(n))), std::exp(x), 2, "exp");
}

inline double float_logistic(double x) {
  const double e = float_exp(-std::fabs(x));
  return within(f32((x < 0 ? e : 1) / f32(1 + e)), 1 / (1 + std::exp(-x)), 4, "logistic");
}

inline double float_tanh(double x) {
  const double size = std::fabs(x);
  if (size < 0.625) {
    const double square = f32(x * x);
    const double sum = horner(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                                       1.33314422036e-1, -3.33332819422e-1});
    return within(f32(f32(f32(sum * square) * x) + x), std::tanh(x), 4, "tanh");
  }
  const double y = f32(1 - f32(2 / f32(float_exp(f32(size + size)) + 1)));
  return within(x < 0 ? -y : y, std::tanh(x), 4, "tanh");
}

inline double float_log(double x) {
  if (!(x > 0) || std::isinf(x)) return x == 0 ? -HUGE_VAL : x > 0 ? x : std::nan("");
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < f32(0.70710677)) {
    --e;
    m *= 2;
  }
  m -= 1;
  const double square = f32(m * m);
  const double sum =
      horner(m, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                 -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  const double low = f32(f32(f32(sum * m) * square) + f32(f32(-2.12194440e-4) * e));
  return within(f32(f32(m + f32(low - f32(0.5 * square))) + f32(0.693359375 * e)), std::log(x), 4, "log");
}

inline double float_erf(double x) {
  if (std::isnan(x)) return x;
  const double held = std::clamp(x, -4.0, 4.0), square = f32(held * held);
  const double p = horner(
      square, {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
               -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02});
  const double q = horner(square, {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                                   -7.37332916720468e-03, -1.42647390514189e-02});
  return within(f32(held * f32(p / q)), std::erf(x), 10, "erf");
}

}  // namespace qplan::naive

#endif  // QPLAN_TESTS_PACKER_PIPELINE_FLOAT_FUNCTIONS_H_
