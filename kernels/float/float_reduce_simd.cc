// float_pool2d and float_mean by vectors of elements side by side that are reduced alike, so that each lane
// is one chain; float_softmax by vectors along its axis, but for the sum, or of neighbouring lines.
#include "kernels/float/float.h"
#include "kernels/numeric/axes.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

inline VecF32 load_some(const float* from, uint32_t count) {
  return count == kLanes ? load_reals(from) : load_reals(from, count);
}
inline uint32_t lanes_left(uint64_t rest) { return rest < kLanes ? static_cast<uint32_t>(rest) : kLanes; }

// ---- pools ----

inline void float_pool_pixel(const FloatPool2dArgs& a, const float* image, PoolSpan rows, PoolSpan columns,
                             float* out) {
  const uint64_t inside = uint64_t{rows.end - rows.begin} * (columns.end - columns.begin);
  const VecF32 divisor =
      set_reals(static_cast<float>(a.counts_padding ? uint64_t{a.pool_h} * a.pool_w : inside));
  const VecF32 least = set_reals(a.clamp_min), most = set_reals(a.clamp_max);
  for (uint32_t c = 0; c < a.channels; c += kLanes) {
    const uint32_t count = lanes_left(a.channels - c);
    VecF32 value = set_reals(a.is_max ? -__builtin_inff() : 0.0f);
    for (uint32_t y = rows.begin; y < rows.end; ++y) {
      const float* element = image + (uint64_t{y} * a.input_w + columns.begin) * a.channels + c;
      for (uint32_t x = columns.begin; x < columns.end; ++x, element += a.channels) {
        const VecF32 v = load_some(element, count);
        value = a.is_max ? if_less(value, v, v, value) : add(value, v);
      }
    }
    store_reals(out + c, clamp(a.is_max ? value : div(value, divisor), least, most), count);
  }
}

inline void float_pool_rows(const FloatPool2dArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const float* image = a.input + uint64_t{row / a.output_h} * a.input_h * a.input_w * a.channels;
    const PoolSpan rows = pool_span(row % a.output_h, a.stride_h, a.pad_top, a.pool_h, a.input_h);
    for (uint32_t x = 0; x < a.output_w; ++x) {
      float_pool_pixel(a, image, rows, pool_span(x, a.stride_w, a.pad_left, a.pool_w, a.input_w),
                       a.output + (uint64_t{row} * a.output_w + x) * a.channels);
    }
  }
}

// ---- means and other reductions ----

// What an element adds to the value so far.
template <FloatReduction kReduction>
inline VecF32 reduced(VecF32 value, VecF32 element) {
  switch (kReduction) {
    case FloatReduction::kMaximum:
      return if_less(value, element, element, value);
    case FloatReduction::kMinimum:
      return if_less(element, value, element, value);
    case FloatReduction::kProduct:
      return mul(value, element);
    default:
      return add(value, element);
  }
}

// Reduces kVectors vectors side by side; `count` elements of the last one are valid.
template <FloatReduction kReduction, uint32_t kVectors>
inline void float_reductions(const FloatMeanArgs& args, const float* first, float* out, uint32_t count) {
  constexpr bool kIsExtremum =
      kReduction == FloatReduction::kMaximum || kReduction == FloatReduction::kMinimum;
  VecF32 sums[kVectors];
  for (uint32_t v = 0; v < kVectors; ++v) {
    sums[v] = kIsExtremum ? load_some(first + v * kLanes, v + 1 < kVectors ? kLanes : count)
                          : set_reals(kReduction == FloatReduction::kProduct ? 1.0f : 0.0f);
  }
  const uint32_t last = args.reduced_rank - 1;
  const uint64_t run = args.reduced_extents[last], step = args.reduced_strides[last];
  for (uint64_t i = 0; i < args.num_reduced; i += run) {
    const float* from =
        first + strided_offset(i, args.reduced_rank, args.reduced_extents, args.reduced_strides);
    for (uint64_t k = 0; k < run; ++k, from += step) {
      for (uint32_t v = 0; v + 1 < kVectors; ++v)
        sums[v] = reduced<kReduction>(sums[v], load_reals(from + v * kLanes));
      constexpr uint32_t kLast = kVectors - 1;
      sums[kLast] = reduced<kReduction>(sums[kLast], load_some(from + kLast * kLanes, count));
    }
  }
  const VecF32 divisor = set_reals(static_cast<float>(args.num_reduced));
  for (uint32_t v = 0; v < kVectors; ++v) {
    const VecF32 value = kReduction == FloatReduction::kMean ? div(sums[v], divisor) : sums[v];
    store_reals(out + v * kLanes, value, v + 1 < kVectors ? kLanes : count);
  }
}

template <FloatReduction kReduction>
inline void float_reduction_items(const FloatMeanArgs& args, uint32_t begin, uint32_t end) {
  constexpr uint32_t kVectors = 4;
  const ElementRange range = chunk_range(args.num_outputs, begin, end);
  const uint64_t side = args.kept_extents[args.kept_rank - 1];
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t to_end = side - at % side, rest = range.end - at < to_end ? range.end - at : to_end;
    const float* first =
        args.input + strided_offset(at, args.kept_rank, args.kept_extents, args.kept_strides);
    if (rest >= kVectors * kLanes) {
      float_reductions<kReduction, kVectors>(args, first, args.output + at, kLanes);
      at += kVectors * kLanes;
    } else {
      const uint32_t count = lanes_left(rest);
      float_reductions<kReduction, 1>(args, first, args.output + at, count);
      at += count;
    }
  }
}

inline void float_mean_items(const FloatMeanArgs& args, uint32_t begin, uint32_t end) {
  switch (args.reduction) {
    case FloatReduction::kMean:
      return float_reduction_items<FloatReduction::kMean>(args, begin, end);
    case FloatReduction::kSum:
      return float_reduction_items<FloatReduction::kSum>(args, begin, end);
    case FloatReduction::kMaximum:
      return float_reduction_items<FloatReduction::kMaximum>(args, begin, end);
    case FloatReduction::kMinimum:
      return float_reduction_items<FloatReduction::kMinimum>(args, begin, end);
    case FloatReduction::kProduct:
      return float_reduction_items<FloatReduction::kProduct>(args, begin, end);
  }
}

// ---- softmax ----

inline float largest_of(const float* x, uint64_t depth) {
  float most = x[0];
  uint64_t i = 0;
  if (depth >= 2 * kLanes) {
    VecF32 lanes = load_reals(x);
    for (i = kLanes; i + kLanes <= depth; i += kLanes) {
      const VecF32 v = load_reals(x + i);
      lanes = if_less(lanes, v, v, lanes);
    }
    float each[kLanes];
    store_reals(each, lanes, kLanes);
    for (const float value : each) most = most < value ? value : most;
  }
  for (; i < depth; ++i) most = most < x[i] ? x[i] : most;
  return most;
}

// NaN makes all of a line NaN, wherever it stands, and the sign of a largest 0 reaches no output: the largest
// may be looked for in any order.
inline void softmax_line(const FloatSoftmaxArgs& args, const float* x, float* out) {
  const VecF32 most = set_reals(largest_of(x, args.depth)), beta = set_reals(args.beta);
  for (uint64_t i = 0; i < args.depth; i += kLanes) {
    const uint32_t count = lanes_left(args.depth - i);
    store_reals(out + i, exp_lanes(mul(sub(load_some(x + i, count), most), beta)), count);
  }
  float sum = 0.0f;
  for (uint64_t i = 0; i < args.depth; ++i) sum = sum + out[i];
  const VecF32 sums = set_reals(sum);
  for (uint64_t i = 0; i < args.depth; i += kLanes) {
    const uint32_t count = lanes_left(args.depth - i);
    store_reals(out + i, div(load_some(out + i, count), sums), count);
  }
}

inline void softmax_lines(const FloatSoftmaxArgs& args, const float* x, float* out, uint32_t count) {
  VecF32 most = load_some(x, count);
  for (uint64_t i = 1; i < args.depth; ++i) {
    const VecF32 v = load_some(x + i * args.inner, count);
    most = if_less(most, v, v, most);
  }
  const VecF32 beta = set_reals(args.beta);
  VecF32 sum = set_reals(0.0f);
  for (uint64_t i = 0; i < args.depth; ++i) {
    const VecF32 e = exp_lanes(mul(sub(load_some(x + i * args.inner, count), most), beta));
    store_reals(out + i * args.inner, e, count);
    sum = add(sum, e);
  }
  for (uint64_t i = 0; i < args.depth; ++i) {
    float* at = out + i * args.inner;
    store_reals(at, div(load_some(at, count), sum), count);
  }
}

inline void float_softmax_items(const FloatSoftmaxArgs& args, uint32_t begin, uint32_t end) {
  for (uint64_t r = begin; r < end; ++r) {
    const float* x = args.input + r * args.depth * args.inner;
    float* out = args.output + r * args.depth * args.inner;
    if (args.inner == 1) {
      softmax_line(args, x, out);
      continue;
    }
    for (uint64_t c = 0; c < args.inner; c += kLanes)
      softmax_lines(args, x + c, out + c, lanes_left(args.inner - c));
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(float_pool2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const FloatPool2dArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const FloatPool2dArgs&) { return 0; }

uint32_t work_items(const FloatPool2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatPool2dArgs& args, uint32_t begin, uint32_t end, void*) {
  float_pool_rows(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_pool2d)

QPLAN_SIMD_NAMESPACE(float_mean) {

#if !defined(QPLAN_ONLY_RUN)
// Along a reduced axis there is nothing to do side by side.
Refusal accepts(const FloatMeanArgs& args) {
  const bool is_side_by_side = args.kept_rank > 0 && args.kept_strides[args.kept_rank - 1] == 1;
  return is_side_by_side && args.reduced_rank > 0 ? Refusal::kNone : Refusal::kAxes;
}

size_t scratch_bytes(const FloatMeanArgs&) { return 0; }

uint32_t work_items(const FloatMeanArgs& args) { return num_chunks(args.num_outputs); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatMeanArgs& args, uint32_t begin, uint32_t end, void*) {
  float_mean_items(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_mean)

QPLAN_SIMD_NAMESPACE(float_softmax) {

#if !defined(QPLAN_ONLY_RUN)
// The logarithm is the reference's.
Refusal accepts(const FloatSoftmaxArgs& args) { return args.is_log ? Refusal::kContract : Refusal::kNone; }

size_t scratch_bytes(const FloatSoftmaxArgs&) { return 0; }

uint32_t work_items(const FloatSoftmaxArgs& args) { return static_cast<uint32_t>(args.outer); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const FloatSoftmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  float_softmax_items(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(float_softmax)

}  // namespace qplan
