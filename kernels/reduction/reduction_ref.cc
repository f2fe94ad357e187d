// The formulas of reduction.h as they stand there.
#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/axes.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/requantize.h"
#include "kernels/reduction/reduction.h"

namespace qplan {

// mean, reduce_max, reduce_min, reduce_prod: a work item is a block of outputs.
namespace {

// Outputs of a work item; more where a work item's number would not fit.
uint64_t block_outputs(const MeanArgs& args) {
  return args.num_outputs < uint64_t{1} << 32 ? uint64_t{32} : uint64_t{1} << 20;
}

template <typename T>
int32_t sum_of(const MeanArgs& args, const T* input) {
  int32_t sum = 0;
  for_each_reduced(args, input, [&](T x) { sum += x - args.input_zero_point; });
  return sum;
}

template <typename T>
int32_t extremum_of(const MeanArgs& args, const T* input) {
  T found = *input;
  for_each_reduced(args, input, [&](T x) {
    if (args.reduction == Reduction::kMax ? x > found : x < found) found = x;
  });
  return found;
}

template <typename T>
int32_t product_of(const MeanArgs& args, const T* input) {
  const auto scaled = [&](int64_t value) {
    return requantize_tfl2_wide(value, args.output_multiplier, args.output_shift);
  };
  int32_t product = 0;
  bool is_first = true;
  for_each_reduced(args, input, [&](T x) {
    const int32_t factor = x - args.input_zero_point;
    product = is_first ? factor : scaled(int64_t{product} * factor);
    is_first = false;
  });
  return add_clamp(scaled(product), args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
}

int32_t mean_of(const MeanArgs& args, int32_t sum) {
  const int32_t lo = dtype_min(args.dtype), hi = dtype_max(args.dtype);
  if (args.contract == Contract::kF32e) {
    return requantize_f32e(sum, args.scale, args.output_zero_point, lo, hi);
  }
  const int32_t scaled = requantize_tfl2(sum, args.output_multiplier, args.output_shift);
  return add_clamp(scaled, args.output_zero_point, lo, hi);
}

template <typename T>
void run_typed(const MeanArgs& args, uint64_t begin, uint64_t end) {
  const T* input = static_cast<const T*>(args.input);
  T* output = static_cast<T*>(args.output);
  for (uint64_t at = begin; at < end; ++at) {
    const uint64_t offset = strided_offset(at, args.kept_rank, args.kept_extents, args.kept_strides);
    const T* first = input + offset;
    switch (args.reduction) {
      case Reduction::kMean:
        output[at] = static_cast<T>(mean_of(args, sum_of(args, first)));
        break;
      case Reduction::kMax:
      case Reduction::kMin:
        output[at] = static_cast<T>(extremum_of(args, first));
        break;
      case Reduction::kProd:
        output[at] = static_cast<T>(product_of(args, first));
        break;
    }
  }
}

uint32_t blocks(const MeanArgs& args) {
  return static_cast<uint32_t>((args.num_outputs + block_outputs(args) - 1) / block_outputs(args));
}

void run_blocks(const MeanArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t first = uint64_t{begin} * block_outputs(args);
  const uint64_t last = uint64_t{end} * block_outputs(args);
  const uint64_t stop = last < args.num_outputs ? last : args.num_outputs;
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, first, stop);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, first, stop);
  } else {
    run_typed<int8_t>(args, first, stop);
  }
}

}  // namespace

namespace mean_ref {
Refusal accepts(const MeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MeanArgs&) { return 0; }
uint32_t work_items(const MeanArgs& args) { return blocks(args); }
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { run_blocks(args, begin, end); }
}  // namespace mean_ref

namespace reduce_ref {
Refusal accepts(const MeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MeanArgs&) { return 0; }
uint32_t work_items(const MeanArgs& args) { return blocks(args); }
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { run_blocks(args, begin, end); }
}  // namespace reduce_ref

namespace arg_max_ref {
namespace {

// False for a NaN on the left; true for a number above a NaN.
bool is_above(float candidate, float best) {
  return candidate > best || (best != best && candidate == candidate);
}
template <typename T>
bool is_above(T candidate, T best) {
  return candidate > best;
}

template <bool kIsMinimum, typename T>
uint32_t index_of_best(const T* at, uint32_t extent, uint64_t stride) {
  uint32_t index = 0;
  T best = at[0];
  for (uint32_t k = 1; k < extent; ++k) {
    const T candidate = at[k * stride];
    if (kIsMinimum ? is_above(best, candidate) : is_above(candidate, best)) {
      best = candidate;
      index = k;
    }
  }
  return index;
}

template <typename T>
void run_typed(const ArgMaxArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  for (uint64_t at = range.begin; at < range.end; ++at) {
    const uint64_t first = at / args.inner * args.extent * args.inner + at % args.inner;
    const uint32_t index = args.is_minimum ? index_of_best<true>(input + first, args.extent, args.inner)
                                           : index_of_best<false>(input + first, args.extent, args.inner);
    if (args.output_dtype == Dtype::kS32) {
      static_cast<int32_t*>(args.output)[at] = static_cast<int32_t>(index);
    } else {
      static_cast<int64_t*>(args.output)[at] = index;
    }
  }
}

}  // namespace

Refusal accepts(const ArgMaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const ArgMaxArgs&) { return 0; }
uint32_t work_items(const ArgMaxArgs& args) { return num_chunks(args.outer * args.inner); }

void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer * args.inner, begin, end);
  switch (args.input_dtype) {
    case Dtype::kU8:
      return run_typed<uint8_t>(args, range);
    case Dtype::kS8:
      return run_typed<int8_t>(args, range);
    case Dtype::kS32:
      return run_typed<int32_t>(args, range);
    case Dtype::kS64:
      return run_typed<int64_t>(args, range);
    default:
      return run_typed<float>(args, range);
  }
}

}  // namespace arg_max_ref

// The elements that were found so far are kept in order: a new one is inserted after those that are not
// smaller.
namespace top_k_ref {
namespace {

// A NaN is less than every number.
template <typename T>
bool is_less(T a, T b) {
  return a < b;
}
template <>
bool is_less(float a, float b) {
  return a < b || (__builtin_isnan(a) && !__builtin_isnan(b));
}

template <typename T>
void run_row(const TopKArgs& args, const T* in, T* values, int32_t* indices) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    if (found == args.k && !is_less(values[found - 1], in[i])) continue;
    uint32_t at = found < args.k ? found++ : found - 1;
    for (; at > 0 && is_less(values[at - 1], in[i]); --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = in[i];
    indices[at] = static_cast<int32_t>(i);
  }
}

template <typename T>
void run_rows(const TopKArgs& args, uint32_t begin, uint32_t end) {
  for (uint64_t row = begin; row < end; ++row) {
    run_row(args, static_cast<const T*>(args.input) + row * args.depth,
            static_cast<T*>(args.values) + row * args.k, args.indices + row * args.k);
  }
}

}  // namespace

Refusal accepts(const TopKArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const TopKArgs&) { return 0; }
uint32_t work_items(const TopKArgs& args) { return static_cast<uint32_t>(args.rows); }

void run(const TopKArgs& args, uint32_t begin, uint32_t end, void*) {
  switch (args.dtype) {
    case Dtype::kU8:
      return run_rows<uint8_t>(args, begin, end);
    case Dtype::kS8:
      return run_rows<int8_t>(args, begin, end);
    case Dtype::kS16:
      return run_rows<int16_t>(args, begin, end);
    case Dtype::kS32:
      return run_rows<int32_t>(args, begin, end);
    case Dtype::kF32:
      return run_rows<float>(args, begin, end);
    case Dtype::kS64:
    case Dtype::kOther:
      break;
  }
}

}  // namespace top_k_ref

namespace cumulative_sum_ref {
namespace {

int32_t sum_of(int32_t a, int32_t b) { return wrap_add(a, b); }
int64_t sum_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
float sum_of(float a, float b) { return a + b; }

template <typename T>
void run_line(const CumulativeSumArgs& args, const T* in, T* out) {
  T sum = 0;
  for (uint64_t i = 0; i < args.depth; ++i) {
    const uint64_t at = (args.reverse ? args.depth - 1 - i : i) * args.inner;
    const T next = sum_of(sum, in[at]);
    out[at] = args.exclusive ? sum : next;
    sum = next;
  }
}

template <typename T>
void run_lines(const CumulativeSumArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t block = args.depth * args.inner;
  for (uint64_t outer = begin; outer < end; ++outer) {
    for (uint64_t inner = 0; inner < args.inner; ++inner) {
      const uint64_t at = outer * block + inner;
      run_line(args, static_cast<const T*>(args.input) + at, static_cast<T*>(args.output) + at);
    }
  }
}

}  // namespace

Refusal accepts(const CumulativeSumArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CumulativeSumArgs&) { return 0; }
uint32_t work_items(const CumulativeSumArgs& args) { return static_cast<uint32_t>(args.outer); }

void run(const CumulativeSumArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kF32) {
    run_lines<float>(args, begin, end);
  } else if (args.dtype == Dtype::kS64) {
    run_lines<int64_t>(args, begin, end);
  } else {
    run_lines<int32_t>(args, begin, end);
  }
}

}  // namespace cumulative_sum_ref

namespace l2_normalization_ref {
namespace {

template <typename T>
void run_row(const L2NormalizationArgs& args, const T* in, T* out) {
  int32_t squares = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t v = in[i] - args.input_zero_point;
    squares += v * v;
  }
  const InverseSqrt inverse = fixed_inverse_sqrt(squares);
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t v = in[i] - args.input_zero_point;
    if (args.dtype == Dtype::kS8) {
      out[i] = static_cast<T>(
          clamp_s32(requantize_tfl2(v, inverse.multiplier, inverse.shift + 7), INT8_MIN, INT8_MAX));
    } else {
      out[i] = static_cast<T>(
          add_clamp(requantize_tfl2(128 * v, inverse.multiplier, inverse.shift), 128, 0, UINT8_MAX));
    }
  }
}

template <typename T>
void run_rows(const L2NormalizationArgs& args, ElementRange rows) {
  for (uint64_t row = rows.begin; row < rows.end; ++row) {
    run_row(args, static_cast<const T*>(args.input) + row * args.depth,
            static_cast<T*>(args.output) + row * args.depth);
  }
}

}  // namespace

Refusal accepts(const L2NormalizationArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const L2NormalizationArgs&) { return 0; }
uint32_t work_items(const L2NormalizationArgs& args) { return num_chunks(args.rows); }

void run(const L2NormalizationArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange rows = chunk_range(args.rows, begin, end);
  if (args.dtype == Dtype::kS8) {
    run_rows<int8_t>(args, rows);
  } else {
    run_rows<uint8_t>(args, rows);
  }
}

}  // namespace l2_normalization_ref
}  // namespace qplan
