// depthwise_conv2d, 16 channels at a time: two taps make one vpdpwssd.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.h"
#include "kernels/simd/gemm_avx512vnni.h"

namespace qplan::depthwise_conv2d_avx512vnni {
namespace {

template <bool kTail>
inline __m512i load_channels(const uint8_t* from, __mmask16 mask) {
  const __m128i bytes =
      kTail ? _mm_maskz_loadu_epi8(mask, from) : _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm512_cvtepu8_epi32(bytes);
}

// One block of channels of one output row. kPairs 0: any number of pairs of taps.
template <typename Epilogue, bool kTail, uint32_t kPairs>
inline void run_block(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint8_t* out) {
  const uint32_t num_pairs = kPairs != 0 ? kPairs : num_tap_pairs(a);
  const __mmask16 mask = mask16(a.input_c - channel);
  const __m512i sign_bias = _mm512_set1_epi32(a.input_dtype == Dtype::kS8 ? 0x00800080 : 0);
  const __m512i bias = _mm512_loadu_si512(a.bias + channel);
  const Epilogue epilogue(a, channel);
  const Output output = set_output(a.output_zero_point, a.clamp_min, a.clamp_max);
  const int32_t* from = weights_of(a, taps, channel);
  __m512i weights[kPairs != 0 ? kPairs : 1];
  for (uint32_t t = 0; t < kPairs; ++t) weights[t] = _mm512_loadu_si512(from + 16 * t);
  const uint8_t* const* at = taps.addresses;
  for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
    __m512i sum = bias;
    for (uint32_t t = 0; t < num_pairs; ++t, at += 2) {
      const __m512i low = load_channels<kTail>(at[0] + channel, mask);
      const __m512i high = _mm512_slli_epi32(load_channels<kTail>(at[1] + channel, mask), 16);
      const __m512i pair = _mm512_ternarylogic_epi32(low, high, sign_bias, 0x56);  // (low | high) ^ sign_bias
      sum = _mm512_dpwssd_epi32(sum, pair, kPairs != 0 ? weights[t] : _mm512_loadu_si512(from + 16 * t));
    }
    const __m128i bytes = finish(epilogue.outputs(sum), output);
    if (kTail) {
      _mm_mask_storeu_epi8(out + channel, mask, bytes);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + channel), bytes);
    }
  }
}

template <typename Epilogue, bool kTail>
inline void run_any_pairs(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint8_t* out) {
  if (num_tap_pairs(a) == 5) {  // 3 x 3
    run_block<Epilogue, kTail, 5>(a, taps, channel, out);
  } else {
    run_block<Epilogue, kTail, 0>(a, taps, channel, out);
  }
}

template <typename Epilogue>
inline void run_channels(const DepthwiseConv2dArgs& args, const Taps& taps, uint32_t channel, uint8_t* out) {
  if (args.input_c - channel >= 16) {
    run_any_pairs<Epilogue, false>(args, taps, channel, out);
  } else {
    run_any_pairs<Epilogue, true>(args, taps, channel, out);
  }
}

void run_group(const DepthwiseConv2dArgs& args, const Taps& taps, uint32_t channel, uint8_t* out) {
  if (args.contract == Contract::kF32e) {
    run_channels<F32eEpilogue>(args, taps, channel, out);
  } else if (args.float_epilogue != FloatEpilogue::kNone && groups_have_form(args, channel / 16, 1)) {
    if (args.float_epilogue == FloatEpilogue::kPlain) {
      run_channels<PlainEpilogue>(args, taps, channel, out);
    } else {
      run_channels<SignedEpilogue>(args, taps, channel, out);
    }
  } else if (args.contract == Contract::kTfl2) {
    run_channels<Tfl2Epilogue>(args, taps, channel, out);
  } else {
    run_channels<Tfl1Epilogue>(args, taps, channel, out);
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& args) {
  return taps_accepts(args, is_product_origin(args.input_dtype, args.input_zero_point));
}

size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return taps_scratch_bytes(args); }

uint32_t work_items(const DepthwiseConv2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const Taps taps = taps_in(args, scratch);
  fill(taps.padding, static_cast<uint8_t>(args.pad_value), args.input_c);
  widen_weights(args, 16, taps.weights);
  for (uint32_t row = begin; row < end; ++row) {
    find_taps(args, row, taps);
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.output_c;
    for (uint32_t channel = 0; channel < args.input_c; channel += 16) run_group(args, taps, channel, out);
  }
}
#endif

}  // namespace qplan::depthwise_conv2d_avx512vnni
