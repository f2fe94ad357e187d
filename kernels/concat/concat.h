// concat: n inputs, one after the other along an axis; all dtypes and other extents agree. Elements are only
// moved, or are there already: with one row an input may be at its place in the output. Inputs whose
// quantisation differs from the output's are rescaled before (docs/numerics/data_movement.md).
#ifndef QPLAN_KERNELS_CONCAT_CONCAT_H_
#define QPLAN_KERNELS_CONCAT_CONCAT_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct ConcatArgs {
  // Wider concatenations are made of several.
  static constexpr uint32_t kMaxInputs = 24;

  uint8_t* output = nullptr;
  uint64_t output_row_bytes = 0;  // the sum of all row_bytes
  uint32_t rows = 1;              // the product of the extents before the axis; fits int32
  uint32_t num_inputs = 0;        // [1, kMaxInputs]
  const uint8_t* inputs[kMaxInputs] = {};
  // From the axis on: what input i adds to each row of the output.
  uint64_t row_bytes[kMaxInputs] = {};
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_CONCAT_VARIANTS QPLAN_VARIANT(concat_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ConcatArgs)
QPLAN_CONCAT_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_CONCAT_CONCAT_H_
