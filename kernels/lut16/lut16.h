// lut16: logistic and tanh of int16, interpolated in one table of the logistic function.
//
//   v = floor((x * multiplier + half) / 2^shift)                  half = 2^(shift - 1), 0 where shift is 0
//   logistic: h = |v| / 2^9, t = |v| mod 2^9, f = table[h] * 2^9 + t * (table[h + 1] - table[h]),
//             32767 * 2^10 where h >= 255
//             out = (f + 2^9) / 2^10 where v >= 0, (2^25 - f + 2^9 - 1) / 2^10 where v < 0
//   tanh:     h = |v| / 2^8, t = |v| mod 2^8, f = table[h] * 2^8 + t * (table[h + 1] - table[h]),
//             65535 * 2^8 where h >= 255
//             out = (f - 2^23 + 2^7) / 2^8 where v >= 0, (2^23 - f + 2^7 - 1) / 2^8 where v < 0
//
// All divisions round down; arithmetic is modulo 2^32. Zero points are 0. docs/numerics/logistic.md.
#ifndef QPLAN_KERNELS_LUT16_LUT16_H_
#define QPLAN_KERNELS_LUT16_LUT16_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct Lut16Args {
  static constexpr uint32_t kTableEntries = 256;

  const int16_t* input = nullptr;
  const int32_t* table = nullptr;  // kTableEntries
  int16_t* output = nullptr;
  uint64_t elements = 0;
  bool is_tanh = false;
  int32_t multiplier = 0;  // [0, 2^15)
  uint32_t shift = 0;      // [0, 31)
};

#define QPLAN_LUT16_VARIANTS QPLAN_VARIANT(lut16_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Lut16Args)
QPLAN_LUT16_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_LUT16_LUT16_H_
