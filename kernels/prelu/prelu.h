// prelu: negative values are multiplied with a factor that is a tensor of its own, broadcast as NumPy does.
//
//   v   = x - input_zero_point
//   out = clamp(output_zero_point + requantize_tfl2(v, above_multiplier, above_shift))             v >= 0
//   out = clamp(output_zero_point + requantize_tfl2(v * (alpha - alpha_zero_point),
//                                                   below_multiplier, below_shift))                v < 0
//
// x, alpha and the output have one dtype, int8, uint8 or int16 (all zero points 0); the clamp is its range.
// That is contract TFL2; there is no other. docs/numerics/leaky_relu.md.
#ifndef QPLAN_KERNELS_PRELU_PRELU_H_
#define QPLAN_KERNELS_PRELU_PRELU_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

struct PreluArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16
  const void* input = nullptr;
  const void* alpha = nullptr;
  void* output = nullptr;
  Broadcast broadcast;           // a is the input, b is alpha
  int32_t input_zero_point = 0;  // zero points: of the dtype
  int32_t alpha_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t above_multiplier = 0;  // multipliers: [0, 2^31)
  int32_t above_shift = 0;       // shifts: [-31, 30]
  int32_t below_multiplier = 0;
  int32_t below_shift = 0;
};

// Best first; the reference is the last.
#define QPLAN_PRELU_VARIANTS \
  QPLAN_SIMD_VARIANTS(prelu) \
  QPLAN_VARIANT(prelu_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, PreluArgs)
QPLAN_PRELU_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_PRELU_PRELU_H_
