// top_k: the k largest elements of each row, in descending order, and where they were. Of equal elements the
// one that comes first in the row comes first; a NaN is less than every number, as for arg_max.
#ifndef QPLAN_KERNELS_TOP_K_TOP_K_H_
#define QPLAN_KERNELS_TOP_K_TOP_K_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct TopKArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16, kS32, kF32
  const void* input = nullptr;  // [rows, depth]
  void* values = nullptr;       // [rows, k]
  int32_t* indices = nullptr;   // [rows, k]
  uint64_t rows = 1;            // below 2^31
  uint32_t depth = 1;
  uint32_t k = 1;  // at most depth
};

// Work items of the reference: rows.
#define QPLAN_TOP_K_VARIANTS QPLAN_VARIANT(top_k_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, TopKArgs)
QPLAN_TOP_K_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_TOP_K_TOP_K_H_
