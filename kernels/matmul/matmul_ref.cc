// The references of matrix products: the formulas of matmul.h as they stand there, for every dtype and
// layout.
#include <type_traits>

#include "kernels/layout.h"
#include "kernels/matmul/matmul.h"
#include "kernels/numeric/products.h"
#include "kernels/numeric/requantize.h"

namespace qplan::fully_connected_ref {
namespace {

// Functions that are not inlined keep their stack out of that of the usual ones: small cores run these
// kernels.

constexpr uint32_t kBlock = 16;

uint32_t blocks_of(const FullyConnectedArgs& a) { return (a.output_c + kBlock - 1) / kBlock; }

// A layout without code of its own: what the args say.
constexpr uint16_t kOtherLayout = UINT16_MAX;

template <typename In, uint16_t kLayout>
__attribute__((noinline)) int32_t accumulate(const FullyConnectedArgs& a, const In* row, uint32_t o) {
  const uint16_t layout = kLayout == kOtherLayout ? a.weights_layout : kLayout;
  uint32_t sum = static_cast<uint32_t>(channel_bias<int32_t>(a, o));
  for (uint32_t k = 0; k < a.input_c; ++k) {
    const int32_t w = layout_weight(layout, a.weights, layout_index(layout, o, k, a.output_c, a.input_c), o);
    // The second factor is within +-255, the first within +-65535.
    sum += static_cast<uint32_t>((row[k] - a.input_zero_point) * (w - a.weights_zero_point));
  }
  return static_cast<int32_t>(sum);
}

// The accumulators of output channels o to o + kOutputs, whose weights are neighbours (ohwi).
template <uint32_t kOutputs, typename Sum, typename In>
void accumulate_rows(const FullyConnectedArgs& a, const In* row, uint32_t o, Sum* sums) {
  using Bits = std::make_unsigned_t<Sum>;
  Bits bits[kOutputs];
  for (uint32_t j = 0; j < kOutputs; ++j) bits[j] = static_cast<Bits>(channel_bias<Sum>(a, o + j));
  add_products<kOutputs>(row, a.weights + size_t{o} * a.input_c, a.input_c, a.input_c,
                         {a.input_zero_point, a.weights_zero_point}, bits);
  for (uint32_t j = 0; j < kOutputs; ++j) sums[j] = static_cast<Sum>(bits[j]);
}

constexpr uint32_t kSums = 4;

// The accumulators of output channels o and following before `last`, as many as are in sums then: kSums or 1.
template <typename In, typename Sum>
uint32_t accumulators(const FullyConnectedArgs& a, const In* row, uint32_t o, uint32_t last, Sum* sums) {
  if (a.weights_layout == kLayout_ohwi) {
    if (last - o >= kSums) {
      accumulate_rows<kSums>(a, row, o, sums);
      return kSums;
    }
    accumulate_rows<1>(a, row, o, sums);
  } else if (a.weights_layout == kLayout_o16k4) {
    *sums = accumulate<In, kLayout_o16k4>(a, row, o);
  } else {
    *sums = accumulate<In, kOtherLayout>(a, row, o);
  }
  return 1;
}

// What becomes of an accumulator: itself where Out is int32, which is ACC32.
template <typename Out, typename Sum>
Out output(const FullyConnectedArgs& a, Sum sum, uint32_t o) {
  if constexpr (sizeof(Out) == sizeof(int32_t)) {
    return sum;
  } else {
    return static_cast<Out>(requantize_channel(a, sum, o));
  }
}

template <typename In, typename Out, typename Sum = int32_t>
__attribute__((noinline)) void run_blocks(const FullyConnectedArgs& a, uint32_t begin, uint32_t end) {
  const uint32_t blocks = blocks_of(a);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const uint64_t r = work_item / blocks;
    const uint32_t first = work_item % blocks * kBlock;
    const uint32_t last = a.output_c - first < kBlock ? a.output_c : first + kBlock;
    const In* row = static_cast<const In*>(a.input) + r * a.input_c;
    Out* out = static_cast<Out*>(a.output) + r * a.output_c;
    Sum sums[kSums];
    for (uint32_t o = first; o < last;) {
      const uint32_t end_of_sums = o + accumulators(a, row, o, last, sums);
      for (const Sum* sum = sums; o < end_of_sums; ++o, ++sum) out[o] = output<Out>(a, *sum, o);
    }
  }
}

template <typename In>
void run_output(const FullyConnectedArgs& a, uint32_t begin, uint32_t end) {
  if (a.output_dtype == Dtype::kS8) {
    run_blocks<In, int8_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS32) {
    run_blocks<In, int32_t>(a, begin, end);
  } else {
    run_blocks<In, uint8_t>(a, begin, end);
  }
}

}  // namespace

Refusal accepts(const FullyConnectedArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const FullyConnectedArgs&) { return 0; }

uint32_t work_items(const FullyConnectedArgs& args) { return args.rows * blocks_of(args); }

void run(const FullyConnectedArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.input_dtype == Dtype::kS16) {
    (args.has_wide_bias ? run_blocks<int16_t, int16_t, int64_t> : run_blocks<int16_t, int16_t>)(args, begin,
                                                                                                end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end);
  } else {
    run_output<uint8_t>(args, begin, end);
  }
}

}  // namespace qplan::fully_connected_ref

namespace qplan::batch_matmul_ref {
namespace {

int32_t requantized(const BatchMatmulArgs& args, int32_t sum) {
  const int32_t zero_point = args.output_zero_point, least = args.clamp_min, most = args.clamp_max;
  if (args.contract == Contract::kF32e) return requantize_f32e(sum, args.scale, zero_point, least, most);
  return add_clamp(requantize_tfl2(sum, args.output_multiplier, args.output_shift), zero_point, least, most);
}

// A sum of int16.
int32_t requantized(const BatchMatmulArgs& args, int64_t sum) {
  return add_clamp(requantize_tfl2_wide(sum, args.output_multiplier, args.output_shift),
                   args.output_zero_point, args.clamp_min, args.clamp_max);
}

template <typename T>
void run_row(const BatchMatmulArgs& args, const T* a, const T* b, T* out) {
  using Sum = std::conditional_t<sizeof(T) == 1, int32_t, int64_t>;
  using Bits = std::make_unsigned_t<Sum>;  // which wrap
  for (uint32_t n = 0; n < args.n; ++n) {
    Bits sum = 0;
    for (uint32_t k = 0; k < args.k; ++k) {
      const int32_t factor = b[k * args.b_k_stride + n * args.b_n_stride] - args.b_zero_point;
      sum += static_cast<Bits>(a[k] - args.a_zero_point) * static_cast<Bits>(factor);
    }
    out[n] = static_cast<T>(requantized(args, static_cast<Sum>(sum)));
  }
}

template <typename T>
void run_rows(const BatchMatmulArgs& args, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t batch = row / args.m, m = row % args.m;
    for_each_broadcast_run(args.batches, batch, batch + 1,
                           [&](uint64_t, uint64_t a_batch, uint64_t b_batch, uint64_t) {
                             run_row(args, static_cast<const T*>(args.a) + (a_batch * args.m + m) * args.k,
                                     static_cast<const T*>(args.b) + b_batch * args.k * args.n,
                                     static_cast<T*>(args.output) + uint64_t{row} * args.n);
                           });
  }
}

}  // namespace

Refusal accepts(const BatchMatmulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const BatchMatmulArgs&) { return 0; }
uint32_t work_items(const BatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * args.m;
}

void run(const BatchMatmulArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kU8) {
    run_rows<uint8_t>(args, begin, end);
  } else if (args.dtype == Dtype::kS16) {
    run_rows<int16_t>(args, begin, end);
  } else {
    run_rows<int8_t>(args, begin, end);
  }
}

}  // namespace qplan::batch_matmul_ref

namespace qplan::float_batch_matmul_ref {

Refusal accepts(const FloatBatchMatmulArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const FloatBatchMatmulArgs&) { return 0; }
uint32_t work_items(const FloatBatchMatmulArgs& args) {
  return static_cast<uint32_t>(args.batches.elements) * args.m;
}

void run(const FloatBatchMatmulArgs& args, uint32_t begin, uint32_t end, void*) {
  for (uint32_t row = begin; row < end; ++row) {
    for_matmul_row(args, row, [&](const float* a, const float* b, float* out) {
      for (uint32_t n = 0; n < args.n; ++n) {
        float sum = 0.0f;
        for (uint32_t k = 0; k < args.k; ++k) sum = sum + a[k] * b[k * args.b_k_stride + n * args.b_n_stride];
        out[n] = sum;
      }
    });
  }
}

}  // namespace qplan::float_batch_matmul_ref
