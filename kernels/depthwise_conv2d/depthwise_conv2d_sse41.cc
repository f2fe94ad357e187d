// depthwise_conv2d, 8 channels at a time: two taps make one pmaddwd for each four of them.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.inl"
#include "kernels/numeric/requantize_sse41.inl"

namespace qplan::depthwise_conv2d_sse41 {
namespace {

// One block of `count` (<= 8) channels of one output row.
template <typename Epilogue>
inline void run_block(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint32_t count,
                      uint8_t* out) {
  const uint32_t num_pairs = num_tap_pairs(a);
  const __m128i zero = _mm_setzero_si128();
  const __m128i flip = _mm_set1_epi8(static_cast<char>(a.input_dtype == Dtype::kS8 ? 0x80 : 0));
  const __m128i low_bias = load128(a.bias + channel), high_bias = load128(a.bias + channel + 4);
  const Epilogue low_epilogue(a, channel), high_epilogue(a, channel + 4);
  const Bytes128 bytes(a);
  const int32_t* block_weights = weights_of(a, taps, channel);
  const uint8_t* const* at = taps.addresses;
  for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
    __m128i low = low_bias, high = high_bias;
    for (uint32_t t = 0; t < num_pairs; ++t, at += 2) {
      const __m128i first = load_low_bytes(at[0] + channel, count);
      const __m128i second = load_low_bytes(at[1] + channel, count);
      const __m128i pairs = _mm_xor_si128(_mm_unpacklo_epi8(first, second), flip);
      const int32_t* weights = block_weights + 8 * t;
      low = _mm_add_epi32(low, _mm_madd_epi16(_mm_cvtepu8_epi16(pairs), load128(weights)));
      high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi8(pairs, zero), load128(weights + 4)));
    }
    const __m128i outputs = low_epilogue.outputs(low);
    store_low_bytes(out + channel, bytes.pack(outputs, high_epilogue.outputs(high), outputs, outputs), count);
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& args) { return taps_accepts(args); }

size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return taps_scratch_bytes(args); }

uint32_t units(const DepthwiseConv2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const Taps taps = taps_in(args, scratch);
  __builtin_memset(taps.padding, static_cast<uint8_t>(args.pad_value), args.input_c);
  widen_weights(args, 8, taps.weights);
  for (uint32_t row = begin; row < end; ++row) {
    find_taps(args, row, taps);
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.output_c;
    for (uint32_t channel = 0; channel < args.input_c; channel += 8) {
      const uint32_t left = args.input_c - channel, count = left < 8 ? left : 8;
      if (args.contract == Contract::kF32e) {
        run_block<F32eEpilogue128>(args, taps, channel, count, out);
      } else {
        run_block<IntegerEpilogue128>(args, taps, channel, count, out);
      }
    }
  }
}
#endif

}  // namespace qplan::depthwise_conv2d_sse41
