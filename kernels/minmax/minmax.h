// maximum, minimum: the larger or the smaller of two elements, broadcast as NumPy does.
//
//   out = a > b ? a : b    maximum
//   out = a < b ? a : b    minimum
//
// The two inputs and the output have one dtype, int8, uint8 or int16, and one quantisation, which plays no
// part: the larger of two integers stands for the larger of the two reals. docs/numerics/data_movement.md.
#ifndef QPLAN_KERNELS_MINMAX_MINMAX_H_
#define QPLAN_KERNELS_MINMAX_MINMAX_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct MinmaxArgs {
  bool is_maximum = false;
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_MINMAX_VARIANTS \
  QPLAN_SIMD_VARIANTS(minmax) \
  QPLAN_VARIANT(minmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MinmaxArgs)
QPLAN_MINMAX_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_MINMAX_MINMAX_H_
