// Kernels along axes of a tensor: mean and the other reductions, which make one number of many, arg_max,
// top_k, cumulative_sum, and l2_normalization.
#ifndef QPLAN_KERNELS_REDUCTION_REDUCTION_H_
#define QPLAN_KERNELS_REDUCTION_REDUCTION_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// mean: the mean over some axes of a quantised tensor.
//
//   out = clamp(output_zero_point
//               + requantize_tfl2(sum - n * input_zero_point, output_multiplier, output_shift))
//
// where sum runs over the n reduced elements, the multiplier holds the factor 1 / n (docs/numerics/mean.md
// says how), and the clamp is the dtype's range. That is contract TFL2. Contract F32E:
//
//   out = clamp(output_zero_point + round half even (float(sum - n * input_zero_point) * scale))
//
// with the factor 1 / n in the scale. Input and output have one dtype, int8, uint8 or int16
// (TFL2 alone).
//
// reduce_max, reduce_min, reduce_prod reduce alike, with other functions:
//
//   max, min: out = the largest or least of the reduced elements; one quantisation, which plays no part
//   prod:     scaled(v) = requantize_tfl2_wide(v, output_multiplier, output_shift)
//             p_1 = x_1 - input_zero_point, p_i = scaled(p_(i-1) * (x_i - input_zero_point))
//             over the elements in the order of the tensor; out = clamp(scaled(p_n) + output_zero_point)
//
// docs/numerics/mean.md.
enum class Reduction : uint8_t { kMean, kMax, kMin, kProd };

struct MeanArgs {
  static constexpr uint32_t kMaxRank = 6;
  // So that |sum - n * input_zero_point| <= 255 * n fits int32, or 65535 * n of int16.
  static constexpr uint32_t kMaxReduced = uint32_t{1} << 23;
  static constexpr uint32_t kMaxReducedS16 = uint32_t{1} << 15;

  Reduction reduction = Reduction::kMean;
  Contract contract = Contract::kTfl2;  // or kF32e, of the mean alone
  Dtype dtype = Dtype::kOther;          // kU8, kS8, kS16
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t num_outputs = 1;
  uint32_t num_reduced = 1;  // [1, kMaxReduced]
  // The axes that stay and those that are reduced, each outermost first, adjacent ones merged; strides in
  // elements of the input. Outputs are in the order of the axes that stay.
  uint32_t kept_rank = 0;
  uint32_t reduced_rank = 0;
  uint64_t kept_extents[kMaxRank] = {};
  uint64_t kept_strides[kMaxRank] = {};
  uint64_t reduced_extents[kMaxRank] = {};
  uint64_t reduced_strides[kMaxRank] = {};
  int32_t input_zero_point = 0;  // zero points: of the dtype
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;  // [0, 2^31)
  int32_t output_shift = 0;       // [-31, 30]
  float scale = 0.0f;             // F32E, in the place of multiplier and shift: (0, 2^100]
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_MEAN_VARIANTS \
  QPLAN_SIMD_VARIANTS(mean) QPLAN_FILE_VARIANTS(mean) QPLAN_VARIANT(mean_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_REDUCE_VARIANTS QPLAN_VARIANT(reduce_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, MeanArgs)
QPLAN_MEAN_VARIANTS
QPLAN_REDUCE_VARIANTS
#undef QPLAN_VARIANT

// arg_max: the index of the largest element along an axis; the first of equal ones.
//
//   out[o, i] = min { k : x[o, k, i] = max over k of x[o, k, i] }
//
// arg_min is the same of the smallest element, of integers alone.
//
// float32: a NaN is less than every number; where all are NaN the result is 0.
struct ArgMaxArgs {
  Dtype input_dtype = Dtype::kOther;   // kU8, kS8, kS32, kS64, kF32
  Dtype output_dtype = Dtype::kOther;  // kS32, kS64
  const void* input = nullptr;
  void* output = nullptr;
  // x is [outer, extent, inner], the output [outer, inner].
  uint64_t outer = 1;
  uint64_t inner = 1;
  uint32_t extent = 1;
  bool is_minimum = false;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_ARG_MAX_VARIANTS                      \
  QPLAN_SIMD_VARIANTS_AFTER(arg_max, arg_max_short) \
  QPLAN_VARIANT(arg_max_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, ArgMaxArgs)
QPLAN_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT

// top_k: the k largest elements of each row, in descending order, and where they were. Of equal elements the
// one that comes first in the row comes first; a NaN is less than every number, as for arg_max.
struct TopKArgs {
  Dtype dtype = Dtype::kOther;  // kU8, kS8, kS16, kS32, kF32
  const void* input = nullptr;  // [rows, depth]
  void* values = nullptr;       // [rows, k]
  int32_t* indices = nullptr;   // [rows, k]
  uint64_t rows = 1;            // below 2^31
  uint32_t depth = 1;
  uint32_t k = 1;  // at most depth
};

// Work items of the reference: rows.
#define QPLAN_TOP_K_VARIANTS QPLAN_VARIANT(top_k_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, TopKArgs)
QPLAN_TOP_K_VARIANTS
#undef QPLAN_VARIANT

// cumulative_sum: running sums along an axis, of int32 or int64, modulo 2^32 or 2^64, or of float32, each sum
// rounded to float32 by itself.
//
//   out[o, i, c] = sum over j <= i, in the order of j and beginning as 0, of in[o, j, c]
//   exclusive: j < i.  reverse: from the other end of the axis, j >= i in descending order
struct CumulativeSumArgs {
  Dtype dtype = Dtype::kOther;  // kS32, kS64, kF32
  const void* input = nullptr;  // [outer, depth, inner]
  void* output = nullptr;
  uint64_t outer = 1;  // below 2^31
  uint64_t depth = 1;
  uint64_t inner = 1;
  bool exclusive = false;
  bool reverse = false;
};

// Work items of the reference: indices of the outer axes.
#define QPLAN_CUMULATIVE_SUM_VARIANTS QPLAN_VARIANT(cumulative_sum_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, CumulativeSumArgs)
QPLAN_CUMULATIVE_SUM_VARIANTS
#undef QPLAN_VARIANT

// l2_normalization: rows divided by their length, along the last axis.
//
//   v   = x - input_zero_point
//   m,s = fixed_inverse_sqrt(sum of v * v)                              (kernels/numeric/fixed_point.h)
//   out = clamp(requantize_tfl2(v, m, s + 7), -128, 127)                int8
//   out = clamp(128 + requantize_tfl2(128 * v, m, s), 0, 255)           uint8
//
// The output has scale 1/128, and zero point 0 or 128. That is contract TFL2; there is no other.
// docs/numerics/softmax.md.
struct L2NormalizationArgs {
  // So that the sum of squares fits int32.
  static constexpr uint32_t kMaxDepth = uint32_t{1} << 15;

  Dtype dtype = Dtype::kOther;  // kU8, kS8
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t rows = 1;
  uint32_t depth = 1;            // [1, kMaxDepth]
  int32_t input_zero_point = 0;  // of the dtype
};

// Work items of the reference: 4096 rows.
#define QPLAN_L2_NORMALIZATION_VARIANTS QPLAN_VARIANT(l2_normalization_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, L2NormalizationArgs)
QPLAN_L2_NORMALIZATION_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_REDUCTION_REDUCTION_H_
