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
// The two inputs and the output have one dtype, int8 or uint8. docs/numerics/add.md.
#ifndef QPLAN_KERNELS_ADD_ADD_H_
#define QPLAN_KERNELS_ADD_ADD_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

struct AddArgs {
  // With zero points of the dtype, |x - zero_point| <= 255, so that nothing overflows up to this left shift.
  static constexpr int32_t kMaxLeftShift = 22;

  Contract contract = Contract::kTfl2;  // or kF32e
  Dtype dtype = Dtype::kOther;          // kU8, kS8
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
  int32_t left_shift = 0;         // [0, kMaxLeftShift]
  int32_t input1_zero_point = 0;  // zero points: of the dtype
  int32_t input1_multiplier = 0;  // multipliers: [0, 2^31)
  int32_t input1_shift = 0;       // shifts: [-31, 0]
  int32_t input2_zero_point = 0;
  int32_t input2_multiplier = 0;
  int32_t input2_shift = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t clamp_min = 0;  // clamps: of the dtype, min <= max
  int32_t clamp_max = 0;
  // F32E, which does not look at left_shift, multipliers and shifts: in (0, 2^100].
  float input1_scale = 0.0f;
  float input2_scale = 0.0f;
  float output_scale = 0.0f;
  // TFL2, where float_scale1 is not 0: a plan's word (format/README.md, "Float forms") that the output is
  // clamp(round half even (fma(float(a), float_scale1, fma(float(b), float_scale2, float_offset))), ...) as
  // well.
  float float_scale1 = 0.0f;
  float float_scale2 = 0.0f;
  float float_offset = 0.0f;
};

#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, AddArgs)
#include "kernels/add/add_variants.def"
#include "kernels/add/sub_variants.def"
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_H_
