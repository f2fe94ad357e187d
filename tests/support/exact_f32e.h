// Contract F32E by its definition, in double: an oracle for kernels/numeric. A sum, difference, product or
// quotient of two floats taken in double and rounded to float is the float operation's result (53 >= 2 * 24 +
// 2).
#ifndef QPLAN_TESTS_SUPPORT_EXACT_F32E_H_
#define QPLAN_TESTS_SUPPORT_EXACT_F32E_H_

#include <cmath>
#include <cstdint>

#include "kernels/numeric/requantize.h"
#include "tests/support/exact_requantize.h"

namespace qplan::testing {

// Rounded to float.
inline double f32(double x) { return static_cast<double>(static_cast<float>(x)); }

// An integer as a float: 24 bits of it, to nearest, ties to even.
inline double f32_of_integer(int64_t a) {
  int128 magnitude = a < 0 ? -int128{a} : int128{a};
  int128 unit = 1;
  while (magnitude / unit >= int128{1} << 24) unit *= 2;
  const int128 quotient = magnitude / unit, rest = 2 * (magnitude % unit);
  const bool up = rest > unit || (rest == unit && quotient % 2 != 0);
  magnitude = (quotient + (up ? 1 : 0)) * unit;
  return static_cast<double>(a < 0 ? -magnitude : magnitude);
}

// The nearest integer, ties to even, plus zero point, clamped. real may be infinite.
inline int64_t exact_quantize_f32e(double real, int64_t zero_point, int64_t lo, int64_t hi) {
  if (real < -1e6) return lo;
  if (real > 1e6) return hi;
  const double below = std::floor(real), rest = real - below;
  auto rounded = static_cast<int64_t>(below);
  if (rest > 0.5 || (rest == 0.5 && rounded % 2 != 0)) ++rounded;
  return exact_clamp(rounded + zero_point, lo, hi);
}

inline int64_t exact_f32e(int64_t accumulator, float scale, int64_t zero_point, int64_t lo, int64_t hi) {
  return exact_quantize_f32e(f32(f32_of_integer(accumulator) * static_cast<double>(scale)), zero_point, lo,
                             hi);
}

// The output of channel o under the contract of args, whose parameters `problem` has.
template <typename Args, typename Problem>
int32_t exact_output(const Args& args, const Problem& problem, int64_t accumulator, size_t o) {
  if (args.contract == Contract::kAcc32) return static_cast<int32_t>(accumulator);
  if (args.contract == Contract::kF32e) {
    return static_cast<int32_t>(
        exact_f32e(accumulator, problem.scale[o], args.output_zero_point, args.clamp_min, args.clamp_max));
  }
  const int64_t scaled = args.contract == Contract::kTfl1
                             ? exact_tfl1(accumulator, problem.multiplier[o], problem.shift[o])
                             : exact_tfl2(accumulator, problem.multiplier[o], problem.shift[o]);
  return static_cast<int32_t>(exact_clamp(scaled + args.output_zero_point, args.clamp_min, args.clamp_max));
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_EXACT_F32E_H_
