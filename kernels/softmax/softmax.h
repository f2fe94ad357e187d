// softmax along the last axis. Contract TFL2: in fixed point; output scale 1/256, zero point the dtype's
// least value.
//
//   d(i)   = x(i) - max x                                       in [-255, 0]
//   z(i)   = doubling_high_mul(d(i) << input_left_shift, input_multiplier)
//                                                               Q5.26, where d(i) >= diff_min
//   e(i)   = exp(z(i))                                          Q0.31
//   sum    = sum over those i of e(i) / 2^12, each rounded      Q12.19, at most 2^31 - 1
//   2^k    = the power of two with 1 <= sum / 2^k < 2
//   r      = 1 / (sum / 2^k)                                    Q0.31
//   out(i) = min + clamp(round(doubling_high_mul(r, e(i)) / 2^(k + 23)), 0, 255)
//            min where d(i) < diff_min
//
// with exp and 1 / (1 + a) of numeric/fixed_point.h. Contract F32E: in float32, each operation rounded:
//
//   sum    = ((e(0) + e(1)) + e(2)) + ...                       e(i) = table[max x - x(i)]
//   out(i) = clamp(output_zero_point + round half even ((e(i) / sum) / output_scale))
//
// where table[d] = exp(-input_scale * d). Input and output have one dtype, int8 or uint8.
// docs/numerics/softmax.md.
#ifndef QPLAN_KERNELS_SOFTMAX_SOFTMAX_H_
#define QPLAN_KERNELS_SOFTMAX_SOFTMAX_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

struct SoftmaxArgs {
  // |d << input_left_shift| is at most 31 in Q5.26.
  static constexpr int64_t kMaxShifted = int64_t{31} << 26;

  static constexpr uint32_t kTableEntries = 256;

  Contract contract = Contract::kTfl2;  // or kF32e
  Dtype dtype = Dtype::kOther;          // kU8, kS8
  const void* input = nullptr;
  void* output = nullptr;
  uint32_t rows = 1;  // fits int32
  uint32_t depth = 1;
  int32_t input_multiplier = 0;  // [0, 2^31)
  int32_t input_left_shift = 0;  // [0, 31]
  int32_t diff_min = 0;          // <= 0, -diff_min * 2^input_left_shift <= kMaxShifted
  // F32E, which does not look at the three before.
  const float* table = nullptr;   // kTableEntries, in [0, 1], the first is 1
  float output_scale = 0.0f;      // (0, 2^100]
  int32_t output_zero_point = 0;  // of the dtype
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_SOFTMAX_VARIANTS \
  QPLAN_SIMD_VARIANTS(softmax) \
  QPLAN_VARIANT(softmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, SoftmaxArgs)
QPLAN_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SOFTMAX_SOFTMAX_H_
