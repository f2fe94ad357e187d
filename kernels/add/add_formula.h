// The formula of add and sub (kernels/add/add.h), of one element.
#ifndef QPLAN_KERNELS_ADD_ADD_FORMULA_H_
#define QPLAN_KERNELS_ADD_ADD_FORMULA_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"

namespace qplan {

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

}  // namespace qplan

#endif  // QPLAN_KERNELS_ADD_ADD_FORMULA_H_
