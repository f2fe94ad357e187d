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
#ifndef QPLAN_KERNELS_SOFTMAX_SOFTMAX16_H_
#define QPLAN_KERNELS_SOFTMAX_SOFTMAX16_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/variant.h"

namespace qplan {

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

#endif  // QPLAN_KERNELS_SOFTMAX_SOFTMAX16_H_
