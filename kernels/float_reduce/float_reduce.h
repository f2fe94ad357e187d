// Float32 operators that make one number of many: float_pool2d, float_mean, float_softmax. Each operation is
// rounded to float32 by itself, and sums are chains that begin as +0 (docs/numerics/float32.md).
//
//   float_pool2d: over the window of out[n,y,x,c], row by row, of which the part inside the input counts
//     kMax      v = -infinity; for each element e: v = v < e ? e : v
//     kAverage  v = sum / n, n elements inside; with counts_padding n = pool_h * pool_w
//     out = clamp(v),  clamp(v) = v < clamp_min ? clamp_min : clamp_max < v ? clamp_max : v
//   float_mean:   over the n elements e of the reduced axes, in the input's order
//     kMean sum / n, kSum sum, kProduct of 1 and all e,
//     kMaximum v = the first, then v < e ? e : v, kMinimum e < v ? e : v
//   float_softmax, along an axis: m the largest element, e[i] = exp_f32((x[i] - m) * beta),
//     out[i] = e[i] / sum of e, in the order of i       (exp_f32: kernels/numeric/float_functions.h)
//     with is_log: out[i] = (x[i] - m) * beta - log_f32(sum of e)
#ifndef QPLAN_KERNELS_FLOAT_REDUCE_FLOAT_REDUCE_H_
#define QPLAN_KERNELS_FLOAT_REDUCE_FLOAT_REDUCE_H_

#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/pool2d/pool2d.h"
#include "kernels/variant.h"

namespace qplan {

// What float_mean makes of the elements. The numbers are those of format/plan.fbs.
enum class FloatReduction : uint8_t { kMean, kSum, kMaximum, kMinimum, kProduct };

// Ranges that bind has checked: those of Pool2dArgs (kernels/pool2d/pool2d.h).
struct FloatPool2dArgs {
  const float* input = nullptr;  // [batch, input_h, input_w, channels]
  float* output = nullptr;       // [batch, output_h, output_w, channels]
  uint32_t batch = 0;
  uint32_t input_h = 0;
  uint32_t input_w = 0;
  uint32_t channels = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t pool_h = 0;
  uint32_t pool_w = 0;
  uint32_t stride_h = 0;
  uint32_t stride_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  float clamp_min = 0.0f;  // numbers, clamp_min <= clamp_max
  float clamp_max = 0.0f;
  bool is_max = false;
  bool counts_padding = false;
};

// Axes outermost first, those that continue one another as one.
struct FloatMeanArgs {
  static constexpr uint32_t kMaxRank = 6;

  const float* input = nullptr;
  float* output = nullptr;
  uint64_t num_outputs = 1;
  uint64_t num_reduced = 1;
  uint32_t kept_rank = 0;
  uint32_t reduced_rank = 0;
  uint64_t kept_extents[kMaxRank] = {};
  uint64_t kept_strides[kMaxRank] = {};  // elements of the input
  uint64_t reduced_extents[kMaxRank] = {};
  uint64_t reduced_strides[kMaxRank] = {};
  FloatReduction reduction = FloatReduction::kMean;
};

// Element i of softmax (r, c) is x[(r * depth + i) * inner + c].
struct FloatSoftmaxArgs {
  const float* input = nullptr;
  float* output = nullptr;
  uint64_t outer = 1;
  uint64_t depth = 1;
  uint64_t inner = 1;
  float beta = 1.0f;
  bool is_log = false;
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_FLOAT_POOL2D_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_pool2d) \
  QPLAN_VARIANT(float_pool2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_MEAN_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_mean) \
  QPLAN_VARIANT(float_mean_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_FLOAT_SOFTMAX_VARIANTS \
  QPLAN_SIMD_VARIANTS(float_softmax) \
  QPLAN_VARIANT(float_softmax_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatPool2dArgs)
QPLAN_FLOAT_POOL2D_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatMeanArgs)
QPLAN_FLOAT_MEAN_VARIANTS
#undef QPLAN_VARIANT
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FloatSoftmaxArgs)
QPLAN_FLOAT_SOFTMAX_VARIANTS
#undef QPLAN_VARIANT

// The offset of element number `index`, counted along axes of these extents and strides.
static inline uint64_t float_mean_offset(uint64_t index, uint32_t rank, const uint64_t* extents,
                                         const uint64_t* strides) {
  uint64_t offset = 0;
  for (uint32_t axis = rank; axis-- > 0;) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_FLOAT_REDUCE_FLOAT_REDUCE_H_
