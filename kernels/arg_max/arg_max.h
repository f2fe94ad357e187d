// arg_max: the index of the largest element along an axis; the first of equal ones.
//
//   out[o, i] = min { k : x[o, k, i] = max over k of x[o, k, i] }
//
// arg_min is the same of the smallest element, with integers alone.
//
// float32: a NaN is less than every number; where all are NaN the result is 0.
#ifndef QPLAN_KERNELS_ARG_MAX_ARG_MAX_H_
#define QPLAN_KERNELS_ARG_MAX_ARG_MAX_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct ArgMaxArgs {
  Dtype input_dtype = Dtype::kOther;   // kU8, kS8, kF32
  Dtype output_dtype = Dtype::kOther;  // kS32, kS64
  const void* input = nullptr;
  void* output = nullptr;
  // x is [outer, extent, inner], the output [outer, inner].
  uint64_t outer = 1;
  uint64_t inner = 1;
  uint32_t extent = 1;
  bool is_minimum = false;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_ARG_MAX_VARIANTS                      \
  QPLAN_SIMD_VARIANTS_AFTER(arg_max, arg_max_short) \
  QPLAN_VARIANT(arg_max_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ArgMaxArgs)
QPLAN_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_ARG_MAX_ARG_MAX_H_
