// mul: the product of two quantised tensors, broadcast as NumPy does.
//
//   out = clamp(output_zero_point + requantize_tfl2((a - input1_zero_point) * (b - input2_zero_point),
//                                                   output_multiplier, output_shift), clamp_min, clamp_max)
//
// That is contract TFL2. Contract F32E, in float32, each operation rounded:
//
//   product = (float(a - input1_zero_point) * input1_scale) * (float(b - input2_zero_point) * input2_scale)
//   out     = clamp(output_zero_point + round half even (product / output_scale), clamp_min, clamp_max)
//
// The two inputs and the output have one dtype, int8, uint8 or int16 (TFL2 alone, all zero points 0).
// docs/numerics/mul.md.
#ifndef QPLAN_KERNELS_MUL_MUL_H_
#define QPLAN_KERNELS_MUL_MUL_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

struct MulArgs {
  Contract contract = Contract::kTfl2;  // or kF32e
  Dtype dtype = Dtype::kOther;          // kU8, kS8, kS16
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
  // F32E, which does not look at multiplier and shift: in (0, 2^100].
  float input1_scale = 0.0f;
  float input2_scale = 0.0f;
  float output_scale = 0.0f;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_MUL_VARIANTS \
  QPLAN_SIMD_VARIANTS(mul) QPLAN_FILE_VARIANTS(mul) QPLAN_VARIANT(mul_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MulArgs)
QPLAN_MUL_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_MUL_MUL_H_
