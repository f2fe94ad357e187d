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
// docs/numerics/softmax.md. log_softmax and softmax16, which are made of the same parts, follow.
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

// log_softmax: the logarithm of softmax along the last axis, in fixed point under TFL2; the output has scale
// 1/16 and the dtype's greatest value as zero point.
//
//   d(i), z(i), e(i), sum: as softmax (softmax.h)
//   log    = fixed_log(sum)                                          Q5.26 (kernels/numeric/fixed_point.h)
//   least  = max(diff_min - 1, requantize_tfl2(log - 2^31, reverse_multiplier, reverse_shift))
//   out(i) = max + clamp(round((z(i) - log) / 2^22), -255, 0)        where d(i) > least, else min
//
// least is the difference whose z(i) - log would leave Q5.26. Input and output have one dtype, int8 or uint8.
// docs/numerics/softmax.md.

struct LogSoftmaxArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* input = nullptr;
  void* output = nullptr;
  uint32_t rows = 1;  // fits int32
  uint32_t depth = 1;
  int32_t input_multiplier = 0;  // these three: as softmax's
  int32_t input_left_shift = 0;
  int32_t diff_min = 0;
  int32_t reverse_multiplier = 0;  // from Q5.26 to differences: [0, 2^31)
  int32_t reverse_shift = 0;       // [-31, 0]
};

// Work items: rows.
#define QPLAN_LOG_SOFTMAX_VARIANTS QPLAN_VARIANT(log_softmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, LogSoftmaxArgs)
QPLAN_LOG_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT

// softmax16: softmax along the last axis with an output of int16, under TFL2.
//
// For int8: as softmax (softmax.h) up to r and e(i), then
//   out(i) = -32768 + round(doubling_high_mul(r, e(i)) / 2^(k + 15)), saturated; -32768 where d(i) < diff_min
//
// For int16, by two tables of 513 entries each, exp_table of exp on [-10, 0] and reciprocal_table of 1 / (1 +
// x) on [0, 1]:
//   e(i)   = lookup(exp_table, clamp16(32767 + requantize_tfl2(x(i) - max x, input_multiplier, input_shift)))
//   sum    = sum over i of e(i);  h = leading zeros of sum as a number of 32 bits
//   r      = lookup(reciprocal_table, clamp16(floor((sum * 2^(h - 1) + 2^13) / 2^14) - 2^15 - 2^16))
//   out(i) = held in [0, 32767]: floor((e(i) * r + 2^(30 - h)) / 2^(31 - h))
//   lookup(t, v) = t[j] + floor(((t[j + 1] - t[j]) * (v mod 128) + 64) / 128),  j = 256 + floor(v / 128)
// docs/numerics/softmax.md.

struct Softmax16Args {
  static constexpr uint32_t kTableEntries = 513;

  Dtype dtype = Dtype::kOther;  // of the input: kS8, kS16
  const void* input = nullptr;
  int16_t* output = nullptr;
  uint32_t rows = 1;
  uint32_t depth = 1;                  // below 2^16 of int16, so that no sum wraps
  int32_t input_multiplier = 0;        // [0, 2^31)
  int32_t input_shift = 0;             // of int8: to the left, [0, 31], as softmax's; of int16: [-31, 30]
  int32_t diff_min = 0;                // of int8, as softmax's
  const int16_t* exp_table = nullptr;  // these two: of int16
  const int16_t* reciprocal_table = nullptr;
};

// Work items: rows.
#define QPLAN_SOFTMAX16_VARIANTS QPLAN_VARIANT(softmax16_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Softmax16Args)
QPLAN_SOFTMAX16_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_SOFTMAX_SOFTMAX_H_
