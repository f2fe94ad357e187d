// The contracts by their definition as roundings of exact rationals, in 128 bits: an oracle for
// kernels/numeric.
#ifndef QPLAN_TESTS_SUPPORT_EXACT_REQUANTIZE_H_
#define QPLAN_TESTS_SUPPORT_EXACT_REQUANTIZE_H_

#include <cstdint>

namespace qplan::testing {

// 64 bits do, for the factors of the contracts, where there is no wider integer.
#if defined(__SIZEOF_INT128__)
__extension__ typedef __int128 int128;
#else
typedef int64_t int128;
#endif

// numerator / denominator rounded to an integer, denominator > 0.
inline int128 floor_divide(int128 numerator, int128 denominator) {
  const int128 quotient = numerator / denominator;
  return numerator % denominator < 0 ? quotient - 1 : quotient;
}
inline int128 round_half_up(int128 numerator, int128 denominator) {
  const int128 quotient = floor_divide(numerator, denominator), rest = numerator - quotient * denominator;
  return rest >= denominator - rest ? quotient + 1 : quotient;
}
inline int128 round_half_away(int128 numerator, int128 denominator) {
  return numerator < 0 ? -round_half_up(-numerator, denominator) : round_half_up(numerator, denominator);
}

// The number congruent to value modulo 2^32 in [-2^31, 2^31).
inline int128 wrap32(int128 value) {
  const int128 modulus = int128{1} << 32;
  return value - floor_divide(value + (modulus >> 1), modulus) * modulus;
}

inline int64_t exact_tfl2(int64_t accumulator, int64_t multiplier, int32_t shift) {
  int128 a = accumulator;
  if (shift > 0) a = wrap32(a * (int128{1} << shift));
  a = round_half_up(a * multiplier, int128{1} << 31);
  if (shift < 0) a = round_half_away(a, int128{1} << -shift);
  return static_cast<int64_t>(a);
}

inline int64_t exact_tfl1(int64_t accumulator, int64_t multiplier, int32_t shift) {
  return static_cast<int64_t>(
      wrap32(round_half_up(int128{accumulator} * multiplier, int128{1} << (31 - shift))));
}

inline int64_t exact_clamp(int64_t value, int64_t lo, int64_t hi) {
  if (value < lo) return lo;
  return value > hi ? hi : value;
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_EXACT_REQUANTIZE_H_
