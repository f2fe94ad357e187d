// pad: a constant around a tensor.
//
//   out[i] = in[i - before] where that exists, value elsewhere
//
// Elements are only moved; docs/numerics/data_movement.md says what value means for each dtype.
#ifndef QPLAN_KERNELS_PAD_PAD_H_
#define QPLAN_KERNELS_PAD_PAD_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct PadArgs {
  static constexpr uint32_t kMaxRank = 6;

  const uint8_t* input = nullptr;
  uint8_t* output = nullptr;
  uint32_t element_bytes = 1;  // 1, 2, 4, 8
  uint64_t value = 0;          // its low element_bytes are the element
  uint32_t rows = 1;           // the product of output_extents but the last; fits int32
  // Outermost first; an axis that is not padded is merged into the one before it. before + input <= output.
  uint32_t rank = 1;  // at least 1
  uint64_t input_extents[kMaxRank] = {1};
  uint64_t output_extents[kMaxRank] = {1};
  uint64_t before[kMaxRank] = {};
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_PAD_VARIANTS QPLAN_VARIANT(pad_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, PadArgs)
QPLAN_PAD_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_PAD_PAD_H_
