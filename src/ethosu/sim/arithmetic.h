// The device's scaling of sums to results.
#ifndef QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_
#define QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_

#include <algorithm>
#include <cstdint>

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu::sim {

// floor((acc * multiplier + 2^(shift - 1)) / 2^shift), without the addend where shift is 0. The product has
// 96 bits, in two words: 32-bit machines have no wider type. |acc| < 2^62, shift < 96.
inline int64_t scaled_half_up(int64_t acc, uint32_t multiplier, uint32_t shift) {
  const uint64_t low_product = (static_cast<uint64_t>(acc) & UINT32_MAX) * multiplier;
  int64_t high = (acc >> 32) * int64_t{multiplier} + static_cast<int64_t>(low_product >> 32);
  uint64_t low = low_product & UINT32_MAX;
  if (shift > 32) {
    high += int64_t{1} << (shift - 33);
  } else if (shift > 0) {
    low += uint64_t{1} << (shift - 1);
    high += static_cast<int64_t>(low >> 32);
    low &= UINT32_MAX;
  }
  if (shift >= 32) return high >> (shift - 32);
  return static_cast<int64_t>(static_cast<uint64_t>(high) << (32 - shift) | low >> shift);
}

// acc * multiplier / 2^shift. kDouble: to 2^31 half up, then half away from zero. kNatural: half up, once.
inline int64_t scale(int64_t acc, const Scale& by, Rounding rounding) {
  if (rounding == Rounding::kNatural) return scaled_half_up(acc, by.multiplier, by.shift);
  const uint32_t first = std::min<uint32_t>(by.shift, 31), rest = by.shift - first;
  const int64_t q = scaled_half_up(acc, by.multiplier, first);
  const int64_t mask = (int64_t{1} << rest) - 1;
  return (q >> rest) + ((q & mask) > ((mask >> 1) + (q < 0 ? 1 : 0)) ? 1 : 0);
}

// A sum divided by a count, half away from zero.
inline int64_t rounded_quotient(int64_t sum, int64_t count) {
  return sum >= 0 ? (sum + count / 2) / count : -((-sum + count / 2) / count);
}

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_
