// transpose: output axis i is input axis permutation[i]; elements are only moved.
#ifndef QPLAN_KERNELS_TRANSPOSE_TRANSPOSE_H_
#define QPLAN_KERNELS_TRANSPOSE_TRANSPOSE_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct TransposeArgs {
  static constexpr uint32_t kMaxRank = 6;

  const void* input = nullptr;
  void* output = nullptr;
  uint32_t element_bytes = 1;  // 1, 2, 4, 8
  uint64_t elements = 1;
  // Axes of the output, outermost first; without those of extent 1, and neighbours that stay neighbours
  // merged.
  uint32_t rank = 1;  // at least 1
  uint64_t extents[kMaxRank] = {1};
  uint64_t input_strides[kMaxRank] = {};  // in elements
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_TRANSPOSE_VARIANTS \
  QPLAN_SIMD_VARIANTS(transpose) \
  QPLAN_VARIANT(transpose_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, TransposeArgs)
QPLAN_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_TRANSPOSE_TRANSPOSE_H_
