// mul: the product of two quantised tensors, broadcast as NumPy does.
//
//   out = clamp(output_zero_point + requantize_tfl2((a - input1_zero_point) * (b - input2_zero_point),
//                                                   output_multiplier, output_shift), clamp_min, clamp_max)
//
// Contract TFL2; the two inputs and the output have one dtype, int8 or uint8. docs/numerics/mul.md.
#ifndef QPLAN_KERNELS_MUL_MUL_H_
#define QPLAN_KERNELS_MUL_MUL_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct MulArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
  int32_t input1_zero_point = 0;  // zero points and clamps: of the dtype
  int32_t input2_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;  // [0, 2^31)
  int32_t output_shift = 0;       // [-31, 30]
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
};

#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MulArgs)
#include "kernels/mul/variants.def"
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_MUL_MUL_H_
