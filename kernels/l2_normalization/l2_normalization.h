// l2_normalization: rows divided by their length, along the last axis.
//
//   v   = x - input_zero_point
//   m,s = fixed_inverse_sqrt(sum of v * v)                              (kernels/numeric/fixed_point.h)
//   out = clamp(requantize_tfl2(v, m, s + 7), -128, 127)                int8
//   out = clamp(128 + requantize_tfl2(128 * v, m, s), 0, 255)           uint8
//
// The output has scale 1/128, and zero point 0 or 128. That is contract TFL2; there is no other.
// docs/numerics/softmax.md.
#ifndef QPLAN_KERNELS_L2_NORMALIZATION_L2_NORMALIZATION_H_
#define QPLAN_KERNELS_L2_NORMALIZATION_L2_NORMALIZATION_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct L2NormalizationArgs {
  // So that the sum of squares fits int32.
  static constexpr uint32_t kMaxDepth = uint32_t{1} << 15;

  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t rows = 1;
  uint32_t depth = 1;            // [1, kMaxDepth]
  int32_t input_zero_point = 0;  // of the dtype
};

// Work items of the reference: 4096 rows.
#define QPLAN_L2_NORMALIZATION_VARIANTS QPLAN_VARIANT(l2_normalization_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, L2NormalizationArgs)
QPLAN_L2_NORMALIZATION_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_L2_NORMALIZATION_L2_NORMALIZATION_H_
