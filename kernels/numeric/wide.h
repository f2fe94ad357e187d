// Integers of 64 bits on processors of 32, whose compilers call functions of a kilobyte for what few steps
// ever need. Internal linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_NUMERIC_WIDE_H_
#define QPLAN_KERNELS_NUMERIC_WIDE_H_

#include <stdint.h>

namespace qplan {

// n / d, bit by bit. d: not 0, below 2^63.
static constexpr uint64_t wide_quotient_by_bits(uint64_t n, uint64_t d) {
  uint64_t quotient = 0, rest = 0;
  for (uint32_t i = 0; i < 64; ++i) {
    rest = rest << 1 | n >> 63;
    n <<= 1;
    quotient <<= 1;
    if (rest < d) continue;
    rest -= d;
    quotient |= 1;
  }
  return quotient;
}

// n / d. d: not 0, below 2^63.
static constexpr uint64_t wide_quotient(uint64_t n, uint64_t d) {
  if (sizeof(void*) > 4) return n / d;
  if ((n | d) >> 32 == 0) return static_cast<uint32_t>(n) / static_cast<uint32_t>(d);
  return wide_quotient_by_bits(n, d);
}

// The nearest float, ties to even, of numbers that 32 bits do not hold, too: their upper 32 bits, the last of
// which says whether anything follows, round as the whole number does.
static constexpr float wide_float_by_words(uint64_t n) {
  uint32_t shift = 0;
  uint64_t upper = n;
  for (; upper >> 32 != 0; upper >>= 1) ++shift;
  if (upper << shift != n) upper |= 1;
  float value = static_cast<float>(static_cast<uint32_t>(upper));
  for (; shift > 0; --shift) value *= 2.0f;
  return value;
}

// static_cast<float>(n)
static constexpr float wide_float(uint64_t n) {
  return sizeof(void*) > 4 ? static_cast<float>(n) : wide_float_by_words(n);
}
static constexpr float wide_float(int64_t n) {
  return n < 0 ? -wide_float(uint64_t{0} - static_cast<uint64_t>(n)) : wide_float(static_cast<uint64_t>(n));
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_WIDE_H_
