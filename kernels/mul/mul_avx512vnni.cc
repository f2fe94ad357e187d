// mul.
#include "kernels/elementwise/elements_avx512vnni.inl"
#include "kernels/mul/mul.h"

namespace qplan::mul_avx512vnni {

namespace {

inline void run_tfl2(const MulArgs& args, uint32_t begin, uint32_t end) {
  const __m512i zero1 = _mm512_set1_epi32(args.input1_zero_point);
  const __m512i zero2 = _mm512_set1_epi32(args.input2_zero_point);
  const Requant512 requant = set1_requant512(args.output_multiplier, args.output_shift);
  const Output512 output = output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary512(args, begin, end, [&](__m512i a, __m512i b) {
    const __m512i product = _mm512_mullo_epi32(_mm512_sub_epi32(a, zero1), _mm512_sub_epi32(b, zero2));
    return finish512(requantize_tfl2_512(product, requant), output);
  });
}

inline void run_f32e(const MulArgs& args, uint32_t begin, uint32_t end) {
  const __m512i zero1 = _mm512_set1_epi32(args.input1_zero_point);
  const __m512i zero2 = _mm512_set1_epi32(args.input2_zero_point);
  const __m512 scale1 = _mm512_set1_ps(args.input1_scale);
  const __m512 scale2 = _mm512_set1_ps(args.input2_scale);
  const __m512 output_scale = _mm512_set1_ps(args.output_scale);
  const RealOutput512 output = real_output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary512(args, begin, end, [&](__m512i a, __m512i b) {
    const __m512 product = _mm512_mul_ps(dequantize512(a, zero1, scale1), dequantize512(b, zero2, scale2));
    return finish_real512(_mm512_div_ps(product, output_scale), output);
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

}  // namespace qplan::mul_avx512vnni
