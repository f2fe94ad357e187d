// div: the quotient of two quantised tensors, broadcast as NumPy does, in fixed point under TFL2.
//
//   v, w     = a - input1_zero_point, b - input2_zero_point; both negated where w < 0
//   k        = floor(log2 w);  h = the largest shift with v * 2^h in int32
//   inverse  = 1 / (w / 2^k)                                           Q0.31 (kernels/numeric/fixed_point.h)
//   quotient = doubling_high_mul(doubling_high_mul(v * 2^h, inverse), output_multiplier)
//   out      = clamp(output_zero_point + round(quotient / 2^(k + h - output_shift)), clamp_min, clamp_max)
//
// where w is not 0. Divided by 0, a positive v gives clamp_max, a negative one clamp_min, and 0 gives 0. The
// inputs and the output have one dtype, int8 or uint8. docs/numerics/div.md.
#ifndef QPLAN_KERNELS_DIV_DIV_H_
#define QPLAN_KERNELS_DIV_DIV_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct DivArgs {
  // h is at least 23 of 8 bits, so that the last shift goes to the right.
  static constexpr int32_t kMaxShift = 23;

  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
  int32_t input1_zero_point = 0;  // zero points and clamps: of the dtype
  int32_t input2_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;  // [0, 2^31)
  int32_t output_shift = 0;       // [-31, kMaxShift]
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
};

#define QPLAN_DIV_VARIANTS QPLAN_VARIANT(div_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, DivArgs)
QPLAN_DIV_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_DIV_DIV_H_
