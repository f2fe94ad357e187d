// lut8: out = table[x], x taken as the byte that it is (for int8 that is x + 256 where x < 0). Any function
// of one 8-bit value: activations, rescaling, chains of both.
#ifndef QPLAN_KERNELS_LUT8_LUT8_H_
#define QPLAN_KERNELS_LUT8_LUT8_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct Lut8Args {
  static constexpr uint32_t kTableEntries = 256;

  const uint8_t* input = nullptr;
  const uint8_t* table = nullptr;  // kTableEntries
  uint8_t* output = nullptr;
  uint64_t elements = 0;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_LUT8_VARIANTS \
  QPLAN_SIMD_VARIANTS(lut8) QPLAN_FILE_VARIANTS(lut8) QPLAN_VARIANT(lut8_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Lut8Args)
QPLAN_LUT8_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_LUT8_LUT8_H_
