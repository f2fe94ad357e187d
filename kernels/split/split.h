// split: one input, cut into n outputs along an axis; all dtypes and other extents agree. Elements are only
// moved, or are there already: with one row an output may be at its place in the input.
#ifndef QPLAN_KERNELS_SPLIT_SPLIT_H_
#define QPLAN_KERNELS_SPLIT_SPLIT_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct SplitArgs {
  // What is cut into more parts is cut several times.
  static constexpr uint32_t kMaxOutputs = 24;

  const uint8_t* input = nullptr;
  uint64_t input_row_bytes = 0;  // the sum of all row_bytes
  uint32_t rows = 1;             // the product of the extents before the axis; fits int32
  uint32_t num_outputs = 0;      // [1, kMaxOutputs]
  uint8_t* outputs[kMaxOutputs] = {};
  // From the axis on: what output i takes of each row of the input.
  uint64_t row_bytes[kMaxOutputs] = {};
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_SPLIT_VARIANTS QPLAN_VARIANT(split_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SplitArgs)
QPLAN_SPLIT_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SPLIT_SPLIT_H_
