// The formula of fully_connected.h as it stands there, for every dtype and layout.
#include <type_traits>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"

namespace qplan::fully_connected_ref {
namespace {

constexpr uint32_t kBlock = 16;

uint32_t blocks_of(const FullyConnectedArgs& a) { return (a.output_c + kBlock - 1) / kBlock; }

// A layout without code of its own: what the args say.
constexpr uint16_t kOtherLayout = UINT16_MAX;

template <typename In, uint16_t kLayout, typename Sum = int32_t>
Sum accumulate(const FullyConnectedArgs& a, const In* row, uint32_t o) {
  const uint16_t layout = kLayout == kOtherLayout ? a.weights_layout : kLayout;
  using Bits = std::make_unsigned_t<Sum>;
  Bits sum = static_cast<Bits>(channel_bias<Sum>(a, o));
  for (uint32_t k = 0; k < a.input_c; ++k) {
    const int32_t w = layout_weight(layout, a.weights, layout_index(layout, o, k, a.output_c, a.input_c), o);
    // The second factor is within +-255, the first within +-65535.
    sum += static_cast<Bits>((row[k] - a.input_zero_point) * (w - a.weights_zero_point));
  }
  return static_cast<Sum>(sum);
}

template <typename In>
int32_t accumulator(const FullyConnectedArgs& a, const In* row, uint32_t o) {
  switch (a.weights_layout) {
    case kLayout_ohwi:
      return accumulate<In, kLayout_ohwi>(a, row, o);
    case kLayout_o16k4:
      return accumulate<In, kLayout_o16k4>(a, row, o);
    default:
      return accumulate<In, kOtherLayout>(a, row, o);
  }
}

// What becomes of an accumulator: itself where Out is int32, which is ACC32.
template <typename Out>
Out output(const FullyConnectedArgs& a, int32_t sum, uint32_t o) {
  if constexpr (sizeof(Out) == sizeof(int32_t)) {
    return sum;
  } else {
    return static_cast<Out>(requantize_channel(a, sum, o));
  }
}

// The 16 bit output, of an accumulator of 32 or 64 bits.
template <typename Sum>
int16_t output_s16(const FullyConnectedArgs& a, const int16_t* row, uint32_t o) {
  return static_cast<int16_t>(requantize_channel(a, accumulate<int16_t, kLayout_ohwi, Sum>(a, row, o), o));
}

template <typename In, typename Out>
void run_blocks(const FullyConnectedArgs& a, uint32_t begin, uint32_t end) {
  const uint32_t blocks = blocks_of(a);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const uint64_t r = work_item / blocks;
    const uint32_t first = work_item % blocks * kBlock;
    const uint32_t last = a.output_c - first < kBlock ? a.output_c : first + kBlock;
    const In* row = static_cast<const In*>(a.input) + r * a.input_c;
    Out* out = static_cast<Out*>(a.output) + r * a.output_c;
    for (uint32_t o = first; o < last; ++o) {
      if constexpr (sizeof(In) == sizeof(int16_t)) {
        out[o] = a.has_wide_bias ? output_s16<int64_t>(a, row, o) : output_s16<int32_t>(a, row, o);
      } else {
        out[o] = output<Out>(a, accumulator(a, row, o), o);
      }
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
    run_blocks<int16_t, int16_t>(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end);
  } else {
    run_output<uint8_t>(args, begin, end);
  }
}

}  // namespace qplan::fully_connected_ref
