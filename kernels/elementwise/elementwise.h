// Kernels whose output elements each come from the elements in their place: mul, div, maximum, minimum,
// prelu, compare, select, and the tables lut8 and lut16; add.h has add and sub. Lists of variants are best
// first; the reference, which computes all that is bound, is the last.
#ifndef QPLAN_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define QPLAN_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

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

#define QPLAN_MUL_VARIANTS \
  QPLAN_SIMD_VARIANTS(mul) \
  QPLAN_FILE_VARIANTS_IN(elementwise, mul) QPLAN_VARIANT(mul_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MulArgs)
QPLAN_MUL_VARIANTS
#undef QPLAN_VARIANT

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

// maximum, minimum: the larger or the smaller of two elements, broadcast as NumPy does.
//
//   out = a > b ? a : b    maximum
//   out = a < b ? a : b    minimum
//
// The two inputs and the output have one dtype, int8, uint8 or int16, and one quantisation, which plays no
// part: the larger of two integers stands for the larger of the two reals. docs/numerics/data_movement.md.
struct MinmaxArgs {
  bool is_maximum = false;
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16
  const void* a = nullptr;
  const void* b = nullptr;
  void* output = nullptr;
  Broadcast broadcast;
};

#define QPLAN_MINMAX_VARIANTS \
  QPLAN_SIMD_VARIANTS(minmax) \
  QPLAN_VARIANT(minmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MinmaxArgs)
QPLAN_MINMAX_VARIANTS
#undef QPLAN_VARIANT

// prelu: negative values are multiplied with a factor that is a tensor of its own, broadcast as NumPy does.
//
//   v   = x - input_zero_point
//   out = clamp(output_zero_point + requantize_tfl2(v, above_multiplier, above_shift))             v >= 0
//   out = clamp(output_zero_point + requantize_tfl2(v * (alpha - alpha_zero_point),
//                                                   below_multiplier, below_shift))                v < 0
//
// x, alpha and the output have one dtype, int8, uint8 or int16 (all zero points 0); the clamp is its range.
// That is contract TFL2; there is no other. docs/numerics/leaky_relu.md.
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

#define QPLAN_PRELU_VARIANTS \
  QPLAN_SIMD_VARIANTS(prelu) \
  QPLAN_VARIANT(prelu_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, PreluArgs)
QPLAN_PRELU_VARIANTS
#undef QPLAN_VARIANT

// compare and select: comparison of two tensors, and the choice between two by a third.
//
//   compare: out = op(a, b) ? 1 : 0, a and b of one dtype, broadcast as NumPy does
//     kLess a < b, kLessEqual a <= b, kEqual a == b; every comparison with a NaN is false
//   select:  out = condition != 0 ? a : b, all three broadcast as NumPy does; the bytes of a and b are moved
//
// Conditions are bytes: 0 is false, everything else true. docs/numerics/data_movement.md.

// The numbers are those of format/plan.fbs.
enum class Comparison : uint8_t { kLess, kLessEqual, kEqual };

struct CompareArgs {
  Comparison op = Comparison::kLess;
  Dtype dtype = Dtype::kOther;  // of the inputs
  const void* a = nullptr;
  const void* b = nullptr;
  uint8_t* output = nullptr;
  Broadcast broadcast;
};

struct SelectArgs {
  const uint8_t* condition = nullptr;
  const uint8_t* a = nullptr;
  const uint8_t* b = nullptr;
  uint8_t* output = nullptr;
  uint32_t element_bytes = 0;  // 1, 2, 4 or 8
  uint32_t rank = 1;           // at least 1
  uint64_t elements = 1;       // of the output
  // Outermost first. Strides count elements and are 0 where the input is repeated.
  uint64_t extents[Broadcast::kMaxRank] = {1};
  uint64_t condition_strides[Broadcast::kMaxRank] = {};
  uint64_t a_strides[Broadcast::kMaxRank] = {};
  uint64_t b_strides[Broadcast::kMaxRank] = {};
};

// Work items: chunks of elements.
#define QPLAN_COMPARE_VARIANTS QPLAN_VARIANT(compare_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_SELECT_VARIANTS QPLAN_VARIANT(select_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CompareArgs)
QPLAN_COMPARE_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SelectArgs)
QPLAN_SELECT_VARIANTS
#undef QPLAN_VARIANT

// lut8: out = table[x], x taken as the byte that it is (for int8 that is x + 256 where x < 0). Any function
// of one 8-bit value: activations, rescaling, chains of both.
struct Lut8Args {
  static constexpr uint32_t kTableEntries = 256;

  const uint8_t* input = nullptr;
  const uint8_t* table = nullptr;  // kTableEntries
  uint8_t* output = nullptr;
  uint64_t elements = 0;
};

#define QPLAN_LUT8_VARIANTS \
  QPLAN_SIMD_VARIANTS(lut8) \
  QPLAN_FILE_VARIANTS_IN(elementwise, lut8) QPLAN_VARIANT(lut8_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Lut8Args)
QPLAN_LUT8_VARIANTS
#undef QPLAN_VARIANT

// lut16: logistic and tanh of int16, interpolated in one table of the logistic function.
//
//   v = floor((x * multiplier + half) / 2^shift)                  half = 2^(shift - 1), 0 where shift is 0
//   logistic: h = |v| / 2^9, t = |v| mod 2^9, f = table[h] * 2^9 + t * (table[h + 1] - table[h]),
//             32767 * 2^10 where h >= 255
//             out = (f + 2^9) / 2^10 where v >= 0, (2^25 - f + 2^9 - 1) / 2^10 where v < 0
//   tanh:     h = |v| / 2^8, t = |v| mod 2^8, f = table[h] * 2^8 + t * (table[h + 1] - table[h]),
//             65535 * 2^8 where h >= 255
//             out = (f - 2^23 + 2^7) / 2^8 where v >= 0, (2^23 - f + 2^7 - 1) / 2^8 where v < 0
//
// All divisions round down; arithmetic is modulo 2^32. Zero points are 0. docs/numerics/logistic.md.
struct Lut16Args {
  static constexpr uint32_t kTableEntries = 256;

  const int16_t* input = nullptr;
  const int32_t* table = nullptr;  // kTableEntries
  int16_t* output = nullptr;
  uint64_t elements = 0;
  bool is_tanh = false;
  int32_t multiplier = 0;  // [0, 2^15)
  uint32_t shift = 0;      // [0, 31)
};

#define QPLAN_LUT16_VARIANTS QPLAN_VARIANT(lut16_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Lut16Args)
QPLAN_LUT16_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
