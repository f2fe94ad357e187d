// add, sub: sums and differences of two quantised tensors, broadcast as NumPy does.
//
//   a' = rescale((a - input1_zero_point) << left_shift, input1_multiplier, input1_shift)
//   b' = rescale((b - input2_zero_point) << left_shift, input2_multiplier, input2_shift)
//   c   = a' + b' for add, a' - b' for sub
//   out = clamp(output_zero_point + rescale(c, output_multiplier, output_shift), clamp_min, clamp_max)
//
// where rescale(x, multiplier, shift) is requantize_tfl2 with shift <= 0: two roundings. That is contract
// TFL2. Contract F32E, in float32, each operation rounded:
//
//   a'  = float(a - input1_zero_point) * input1_scale
//   b'  = float(b - input2_zero_point) * input2_scale
//   c   = a' + b' for add, a' - b' for sub
//   out = clamp(output_zero_point + round half even (c / output_scale), clamp_min, clamp_max)
//
// The two inputs and the output have one dtype, int8, uint8 or int16 (TFL2 alone). docs/numerics/add.md.
//
// squared_difference: the same under TFL2 with c = (a' - b')^2, of int8 and uint8 alone, and a shift of the
// output that may be positive.
#ifndef QPLAN_KERNELS_ADD_ADD_H_
#define QPLAN_KERNELS_ADD_ADD_H_

#include <stdint.h>

#include "kernels/add/add_formula.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/variant.h"

namespace qplan {

struct AddArgs : AddFormula {
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_ADD_VARIANTS \
  QPLAN_SIMD_VARIANTS(add) QPLAN_FILE_VARIANTS(add) QPLAN_VARIANT(add_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SUB_VARIANTS \
  QPLAN_SIMD_VARIANTS(sub) QPLAN_FILE_VARIANTS(sub) QPLAN_VARIANT(sub_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SQUARED_DIFFERENCE_VARIANTS QPLAN_VARIANT(squared_difference_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, AddArgs)
QPLAN_ADD_VARIANTS
QPLAN_SUB_VARIANTS
QPLAN_SQUARED_DIFFERENCE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_H_
