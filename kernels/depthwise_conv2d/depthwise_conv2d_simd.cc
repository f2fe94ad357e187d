// depthwise_conv2d, 2 * kLanes channels and two taps at a time, which make one product of pairs for each
// vector of channels unless the vocabulary has an add_taps of its own. AVX-512 has a file of its own, in
// which a product of pairs adds to a sum in one instruction (vpdpwssd).
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint32_t kBlock = 2 * kLanes;

#if !defined(QPLAN_SIMD_OWN_TAPS)
// Few registers: the weights of two taps stay in memory.
using TapWeights = const int32_t*;
inline TapWeights tap_weights(const int32_t* pairs) { return pairs; }
using TapBytes = LaneBytes;
inline TapBytes tap_bytes(const DepthwiseConv2dArgs& a) {
  return set_lane_bytes(a.input_dtype == Dtype::kS8 ? 0x80 : 0);
}

inline void add_taps(VecI32& low, VecI32& high, const uint8_t* a, const uint8_t* b, uint32_t count,
                     TapBytes sign_bias, TapWeights weights) {
  const BytePairs pairs = load_pairs(a, b, count, sign_bias);
  low = add(low, multiply_pairs(pairs.low, load_ints(weights)));
  high = add(high, multiply_pairs(pairs.high, load_ints(weights + kLanes)));
}
#endif

// One block of `count` (<= kBlock) channels of one output row. kPairs 0: any number of pairs of taps.
template <typename Epilogue, uint32_t kPairs>
inline void run_block(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint32_t count,
                      uint8_t* out) {
  const uint32_t num_pairs = kPairs != 0 ? kPairs : num_tap_pairs(a);
  const TapBytes kind = tap_bytes(a);
  const VecI32 low_bias = load_ints(a.bias + channel), high_bias = load_ints(a.bias + channel + kLanes);
  const Epilogue low_epilogue(a, channel), high_epilogue(a, channel + kLanes);
  const OutputBytes bytes(a);
  const int32_t* weights = weights_of(a, taps, channel);
  TapWeights held[kPairs != 0 ? kPairs : 1];
#pragma GCC unroll 5
  for (uint32_t t = 0; t < kPairs; ++t) held[t] = tap_weights(weights + kBlock * t);
  const uint8_t* const* at = taps.addresses;
  for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
    VecI32 low = low_bias, high = high_bias;
    if constexpr (kPairs != 0) {
#pragma GCC unroll 5
      for (uint32_t t = 0; t < kPairs; ++t, at += 2) {
        add_taps(low, high, at[0] + channel, at[1] + channel, count, kind, held[t]);
      }
    } else {
      for (uint32_t t = 0; t < num_pairs; ++t, at += 2) {
        add_taps(low, high, at[0] + channel, at[1] + channel, count, kind, tap_weights(weights + kBlock * t));
      }
    }
    const VecI32 outputs = low_epilogue.outputs(low);
    store_halves(out + channel, 0, bytes.pack(outputs, high_epilogue.outputs(high), outputs, outputs), count,
                 1);
  }
}

// A function for each epilogue.
template <typename Epilogue>
__attribute__((noinline)) void run_channels(const DepthwiseConv2dArgs& args, const Taps& taps,
                                            uint32_t channel, uint8_t* out) {
  const uint32_t left = args.input_c - channel;
  if (left >= kBlock && num_tap_pairs(args) == 5) {  // 3 x 3
    run_block<Epilogue, 5>(args, taps, channel, kBlock, out);
  } else {
    run_block<Epilogue, 0>(args, taps, channel, left < kBlock ? left : kBlock, out);
  }
}

// Never inlined: EpilogueRounding may change the floating point environment around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end,
                                        void* scratch) {
  const Taps taps = taps_in(args, scratch);
  __builtin_memset(taps.padding, static_cast<uint8_t>(args.pad_value), args.input_c);
  widen_weights(args, kBlock, taps.weights);
  for (uint32_t row = begin; row < end; ++row) {
    find_taps(args, row, taps);
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.output_c;
    for (uint32_t channel = 0; channel < args.input_c; channel += kBlock) {
      with_epilogue(args, channel, [&](auto kind) {
        run_channels<typename decltype(kind)::Epilogue>(args, taps, channel, out);
      });
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(depthwise_conv2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& args) {
  return taps_accepts(args, is_product_origin(args.input_dtype, args.input_zero_point));
}

size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return taps_scratch_bytes(args); }

uint32_t work_items(const DepthwiseConv2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const EpilogueRounding rounding(args.float_epilogue != FloatEpilogue::kNone);
  run_rows(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(depthwise_conv2d)

}  // namespace qplan
