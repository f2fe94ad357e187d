// depthwise_conv2d, 8 channels at a time: two taps make one vpmaddwd.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.inl"
#include "kernels/numeric/gemm_avx2.inl"

namespace qplan::depthwise_conv2d_avx2 {
namespace {

inline __m256i load_channels(const uint8_t* from, uint32_t count) {
  return _mm256_cvtepu8_epi32(load_low_bytes(from, count));
}

// One block of `count` (<= 8) channels of one output row.
template <typename Epilogue>
inline void run_block(const DepthwiseConv2dArgs& a, const Taps& taps, uint32_t channel, uint32_t count,
                      uint8_t* out) {
  const uint32_t num_pairs = num_tap_pairs(a);
  const __m256i flip = _mm256_set1_epi32(a.input_dtype == Dtype::kS8 ? 0x00800080 : 0);
  const __m256i bias = load256(a.bias + channel);
  const Epilogue epilogue(a, channel);
  const Output256 output = output256(a.output_zero_point, a.clamp_min, a.clamp_max);
  const uint8_t* const* at = taps.addresses;
  for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
    __m256i sum = bias;
    for (uint32_t t = 0; t < num_pairs; ++t, at += 2) {
      const __m256i low = load_channels(at[0] + channel, count);
      const __m256i high = _mm256_slli_epi32(load_channels(at[1] + channel, count), 16);
      const __m256i pair = _mm256_xor_si256(_mm256_or_si256(low, high), flip);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pair, load256(taps.weights + 8 * t)));
    }
    store_low_bytes(out + channel, finish256(epilogue.outputs(sum), output), count);
  }
}

void run_group(const DepthwiseConv2dArgs& args, const Taps& taps, uint32_t channel, uint8_t* out) {
  const uint32_t left = args.input_c - channel, count = left < 8 ? left : 8;
  if (args.contract == Contract::kF32e) {
    run_block<F32eEpilogue256>(args, taps, channel, count, out);
  } else if (args.float_form != FloatForm::kNone && groups_have_form(args, channel / 16, 1)) {
    if (args.float_form == FloatForm::kPlain) {
      run_block<PlainEpilogue256>(args, taps, channel, count, out);
    } else {
      run_block<SignedEpilogue256>(args, taps, channel, count, out);
    }
  } else if (args.contract == Contract::kTfl2) {
    run_block<Tfl2Epilogue256>(args, taps, channel, count, out);
  } else {
    run_block<Tfl1Epilogue256>(args, taps, channel, count, out);
  }
}

// Never inlined: MXCSR changes around it.
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end,
                                        void* scratch) {
  const Taps taps = taps_in(args, scratch);
  fill(taps.padding, static_cast<uint8_t>(args.pad_value), args.input_c);
  for (uint32_t row = begin; row < end; ++row) {
    find_taps(args, row, taps);
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.output_c;
    for (uint32_t channel = 0; channel < args.input_c; channel += 8) {
      widen_weights(args, channel, 8, taps.weights);
      run_group(args, taps, channel, out);
    }
  }
}

}  // namespace

bool accepts(const DepthwiseConv2dArgs& args) { return taps_accepts(args); }

size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return taps_scratch_bytes(args); }

uint32_t units(const DepthwiseConv2dArgs& args) { return args.batch * args.output_h; }

void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  const RoundTowardsZero rounding(args.float_form != FloatForm::kNone);
  run_rows(args, begin, end, scratch);
}

}  // namespace qplan::depthwise_conv2d_avx2
