// mul.
#include "kernels/elementwise/elements_avx2.inl"
#include "kernels/mul/mul.h"

namespace qplan::mul_avx2 {

namespace {

inline void run_tfl2(const MulArgs& args, uint32_t begin, uint32_t end) {
  const __m256i zero1 = _mm256_set1_epi32(args.input1_zero_point);
  const __m256i zero2 = _mm256_set1_epi32(args.input2_zero_point);
  const Requant256 requant = set1_requant256(args.output_multiplier, args.output_shift);
  const Output256 output = output256(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary256(args, begin, end, [&](__m256i a, __m256i b) {
    const __m256i product = _mm256_mullo_epi32(_mm256_sub_epi32(a, zero1), _mm256_sub_epi32(b, zero2));
    return finish256(requantize_tfl2_256(product, requant), output);
  });
}

inline void run_f32e(const MulArgs& args, uint32_t begin, uint32_t end) {
  const __m256i zero1 = _mm256_set1_epi32(args.input1_zero_point);
  const __m256i zero2 = _mm256_set1_epi32(args.input2_zero_point);
  const __m256 scale1 = _mm256_set1_ps(args.input1_scale);
  const __m256 scale2 = _mm256_set1_ps(args.input2_scale);
  const __m256 output_scale = _mm256_set1_ps(args.output_scale);
  const RealOutput256 output = real_output256(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary256(args, begin, end, [&](__m256i a, __m256i b) {
    const __m256 product = _mm256_mul_ps(dequantize256(a, zero1, scale1), dequantize256(b, zero2, scale2));
    return finish_real256(_mm256_div_ps(product, output_scale), output);
  });
}

}  // namespace

bool accepts(const MulArgs&) { return true; }

size_t scratch_bytes(const MulArgs&) { return 0; }

uint32_t units(const MulArgs& args) { return num_chunks(args.broadcast.elements); }

void run(const MulArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.contract == Contract::kF32e) {
    run_f32e(args, begin, end);
  } else {
    run_tfl2(args, begin, end);
  }
}

}  // namespace qplan::mul_avx2
