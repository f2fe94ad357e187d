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
//   prod:     p_0 = 1, p_i = requantize_tfl2_wide(p_(i-1) * (x_i - input_zero_point), output_multiplier,
//   output_shift)
//             over the elements in the order of the tensor; out = clamp(p_n + output_zero_point)
//
// docs/numerics/mean.md.
#ifndef QPLAN_KERNELS_MEAN_MEAN_H_
#define QPLAN_KERNELS_MEAN_MEAN_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

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

}  // namespace qplan

#endif  // QPLAN_KERNELS_MEAN_MEAN_H_
