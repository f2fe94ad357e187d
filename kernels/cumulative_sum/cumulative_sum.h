// cumulative_sum: running sums along an axis, of int32, modulo 2^32, or of float32, each sum rounded to
// float32 by itself.
//
//   out[o, i, c] = sum over j <= i, in the order of j and beginning as 0, of in[o, j, c]
//   exclusive: j < i.  reverse: from the other end of the axis, j >= i in descending order
#ifndef QPLAN_KERNELS_CUMULATIVE_SUM_CUMULATIVE_SUM_H_
#define QPLAN_KERNELS_CUMULATIVE_SUM_CUMULATIVE_SUM_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct CumulativeSumArgs {
  Dtype dtype = Dtype::kOther;  // kS32, kF32
  const void* input = nullptr;  // [outer, depth, inner]
  void* output = nullptr;
  uint64_t outer = 1;  // below 2^31
  uint64_t depth = 1;
  uint64_t inner = 1;
  bool exclusive = false;
  bool reverse = false;
};

// Work items of the reference: indices of the outer axes.
#define QPLAN_CUMULATIVE_SUM_VARIANTS QPLAN_VARIANT(cumulative_sum_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CumulativeSumArgs)
QPLAN_CUMULATIVE_SUM_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_CUMULATIVE_SUM_CUMULATIVE_SUM_H_
