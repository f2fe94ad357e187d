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
#ifndef QPLAN_KERNELS_ELEMENTWISE_ADD_H_
#define QPLAN_KERNELS_ELEMENTWISE_ADD_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// The formula of one element, which layers with a residual have, too (kernels/conv2d/conv2d.h).
struct AddFormula {
  // With zero points of the dtype, |x - zero_point| <= 255, so that nothing overflows up to this left shift.
  static constexpr int32_t kMaxLeftShift = 22;
  static constexpr int32_t kMaxLeftShiftS16 = 15;  // the same with |x - zero_point| <= 65535

  Contract contract = Contract::kTfl2;  // or kF32e
  Dtype dtype = Dtype::kOther;          // kU8, kS8, kS16
  int32_t left_shift = 0;               // [0, kMaxLeftShift]
  int32_t input1_zero_point = 0;        // zero points: of the dtype
  int32_t input1_multiplier = 0;        // multipliers: [0, 2^31)
  int32_t input1_shift = 0;             // shifts: [-31, 0]
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
  // TFL2, where float_scale1 is not 0: a plan's word (format/README.md, "Float requantisation") that the
  // output is clamp(round half even (fma(float(a), float_scale1, fma(float(b), float_scale2, float_offset))),
  // ...) as well.
  float float_scale1 = 0.0f;
  float float_scale2 = 0.0f;
  float float_offset = 0.0f;
};

// The sum; a and b are less their zero points.
static inline int32_t sum_tfl2(const AddFormula& f, int32_t a, int32_t b, bool subtract) {
  const int32_t one = int32_t{1} << f.left_shift;
  const int32_t a_scaled = requantize_tfl2(a * one, f.input1_multiplier, f.input1_shift);
  const int32_t b_scaled = requantize_tfl2(b * one, f.input2_multiplier, f.input2_shift);
  // Only multipliers near 1 and int16 could make it wrap, which no packer writes with a left shift.
  const int32_t sum = subtract ? wrap_sub(a_scaled, b_scaled) : wrap_add(a_scaled, b_scaled);
  const int32_t scaled = requantize_tfl2(sum, f.output_multiplier, f.output_shift);
  return add_clamp(scaled, f.output_zero_point, f.clamp_min, f.clamp_max);
}

static inline int32_t sum_f32e(const AddFormula& f, int32_t a, int32_t b, bool subtract) {
  const float a_scaled = static_cast<float>(a) * f.input1_scale;
  const float b_scaled = static_cast<float>(b) * f.input2_scale;
  const float sum = subtract ? a_scaled - b_scaled : a_scaled + b_scaled;
  return quantize_f32e(sum / f.output_scale, f.output_zero_point, f.clamp_min, f.clamp_max);
}

// The square of the difference, of 8-bit tensors; a and b are less their zero points. output_shift may be
// positive.
static inline int32_t squared_difference_tfl2(const AddFormula& f, int32_t a, int32_t b) {
  const int32_t one = int32_t{1} << f.left_shift;
  const int32_t a_scaled = requantize_tfl2(a * one, f.input1_multiplier, f.input1_shift);
  const int32_t b_scaled = requantize_tfl2(b * one, f.input2_multiplier, f.input2_shift);
  const int32_t difference = wrap_sub(a_scaled, b_scaled);
  const int32_t scaled =
      requantize_tfl2(wrap_mul(difference, difference), f.output_multiplier, f.output_shift);
  return add_clamp(scaled, f.output_zero_point, f.clamp_min, f.clamp_max);
}

// The output for the inputs a and b as they are.
static inline int32_t sum_of(const AddFormula& f, int32_t a, int32_t b, bool subtract) {
  a -= f.input1_zero_point;
  b -= f.input2_zero_point;
  return f.contract == Contract::kF32e ? sum_f32e(f, a, b, subtract) : sum_tfl2(f, a, b, subtract);
}

struct AddArgs : AddFormula {
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_ADD_VARIANTS \
  QPLAN_SIMD_VARIANTS(add) \
  QPLAN_FILE_VARIANTS_IN(elementwise, add) QPLAN_VARIANT(add_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SUB_VARIANTS \
  QPLAN_SIMD_VARIANTS(sub) \
  QPLAN_FILE_VARIANTS_IN(elementwise, sub) QPLAN_VARIANT(sub_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SQUARED_DIFFERENCE_VARIANTS QPLAN_VARIANT(squared_difference_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, AddArgs)
QPLAN_ADD_VARIANTS
QPLAN_SUB_VARIANTS
QPLAN_SQUARED_DIFFERENCE_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_ADD_H_
