// The device's scaling of sums to results.
#ifndef QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_
#define QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_

#include <algorithm>
#include <cstdint>

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu::sim {

__extension__ using Int128 = __int128;

// acc * multiplier / 2^shift. kDouble: to 2^31 half up, then half away from zero. kNatural: half up, once.
inline int64_t scale(Int128 acc, const Scale& by, Rounding rounding) {
  const Int128 product = acc * static_cast<int64_t>(by.multiplier);
  const auto half = [](uint32_t shift) { return shift == 0 ? Int128{0} : Int128{1} << (shift - 1); };
  if (rounding == Rounding::kNatural) return static_cast<int64_t>((product + half(by.shift)) >> by.shift);
  const uint32_t first = std::min(by.shift, 31u), rest = by.shift - first;
  const auto q = static_cast<int64_t>((product + half(first)) >> first);
  const int64_t mask = (int64_t{1} << rest) - 1;
  return (q >> rest) + ((q & mask) > ((mask >> 1) + (q < 0 ? 1 : 0)) ? 1 : 0);
}

// A sum divided by a count, half away from zero.
inline int64_t rounded_quotient(int64_t sum, int64_t count) {
  return sum >= 0 ? (sum + count / 2) / count : -((-sum + count / 2) / count);
}

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_ARITHMETIC_H_
