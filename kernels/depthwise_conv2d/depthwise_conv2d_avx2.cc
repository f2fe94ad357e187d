// depthwise_conv2d, 16 channels at a time: two taps make one vpmaddwd for each eight of them.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.inl"
#include "kernels/numeric/gemm_avx2.inl"

namespace qplan::depthwise_conv2d_avx2 {
namespace {

// The bytes of `count` (<= 16) channels.
inline __m128i load_channels(const uint8_t* from, uint32_t count) {
  if (count == 16) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if (count <= 8) return load_low_bytes(from, count);
  return _mm_unpacklo_epi64(load_low_bytes(from, 8), load_low_bytes(from + 8, count - 8));
}

// One block of `count` (<= 16) channels of one output row. kPairs 0: any number of pairs of taps.
template <typename Epilogue, uint32_t kPairs>
inline void run_block(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint32_t count,
                      uint8_t* out) {
  const uint32_t num_pairs = kPairs != 0 ? kPairs : num_tap_pairs(a);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(a.input_dtype == Dtype::kS8 ? 0x80 : 0));
  const __m256i low_bias = load256(a.bias + channel), high_bias = load256(a.bias + channel + 8);
  const Epilogue low_epilogue(a, channel), high_epilogue(a, channel + 8);
  const Output256 output = output256(a.output_zero_point, a.clamp_min, a.clamp_max);
  const int32_t* weights = weights_of(a, taps, channel);
  const uint8_t* const* at = taps.addresses;
  for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
    __m256i low = low_bias, high = high_bias;
    for (uint32_t t = 0; t < num_pairs; ++t, at += 2) {
      const __m128i first = _mm_xor_si128(load_channels(at[0] + channel, count), flip);
      const __m128i second = _mm_xor_si128(load_channels(at[1] + channel, count), flip);
      const __m256i low_pairs = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(first, second));
      const __m256i high_pairs = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(first, second));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(low_pairs, load256(weights + 16 * t)));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(high_pairs, load256(weights + 16 * t + 8)));
    }
    store_low_bytes(out + channel, finish256(low_epilogue.outputs(low), output), count < 8 ? count : 8);
    if (count <= 8) continue;
    store_low_bytes(out + channel + 8, finish256(high_epilogue.outputs(high), output), count - 8);
  }
}

template <typename Epilogue>
inline void run_channels(const DepthwiseConv2dArgs& args, const Taps& taps, uint32_t channel, uint8_t* out) {
  const uint32_t left = args.input_c - channel;
  if (left >= 16 && num_tap_pairs(args) == 5) {  // 3 x 3
    run_block<Epilogue, 5>(args, taps, channel, 16, out);
  } else {
    run_block<Epilogue, 0>(args, taps, channel, left < 16 ? left : 16, out);
  }
}

void run_group(const DepthwiseConv2dArgs& args, const Taps& taps, uint32_t channel, uint8_t* out) {
  if (args.contract == Contract::kF32e) {
    run_channels<F32eEpilogue256>(args, taps, channel, out);
  } else if (args.float_form != FloatForm::kNone && groups_have_form(args, channel / 16, 1)) {
    if (args.float_form == FloatForm::kPlain) {
      run_channels<PlainEpilogue256>(args, taps, channel, out);
    } else {
      run_channels<SignedEpilogue256>(args, taps, channel, out);
    }
  } else if (args.contract == Contract::kTfl2) {
    run_channels<Tfl2Epilogue256>(args, taps, channel, out);
  } else {
    run_channels<Tfl1Epilogue256>(args, taps, channel, out);
  }
}

// Never inlined: MXCSR changes around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end,
                                        void* scratch) {
  const Taps taps = taps_in(args, scratch);
  fill(taps.padding, static_cast<uint8_t>(args.pad_value), args.input_c);
  widen_weights(args, 16, taps.weights);
  for (uint32_t row = begin; row < end; ++row) {
    find_taps(args, row, taps);
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.output_c;
    for (uint32_t channel = 0; channel < args.input_c; channel += 16) run_group(args, taps, channel, out);
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
  const RoundTowardsZero rounding(args.float_form != FloatForm::kNone);
  run_rows(args, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_conv2d_avx2
