// add and sub.
#include "kernels/add/add.h"
#include "kernels/elementwise/elements_avx512vnni.inl"

namespace qplan {
namespace {

template <bool kSubtract>
inline void run_tfl2(const AddArgs& args, uint32_t begin, uint32_t end) {
  const __m512i zero1 = _mm512_set1_epi32(args.input1_zero_point);
  const __m512i zero2 = _mm512_set1_epi32(args.input2_zero_point);
  const __m128i left_shift = _mm_cvtsi32_si128(args.left_shift);
  const Requant512 requant1 = set1_requant512(args.input1_multiplier, args.input1_shift);
  const Requant512 requant2 = set1_requant512(args.input2_multiplier, args.input2_shift);
  const Requant512 requant = set1_requant512(args.output_multiplier, args.output_shift);
  const Output512 output = output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary512(args, begin, end, [&](__m512i a, __m512i b) {
    a = requantize_tfl2_512(_mm512_sll_epi32(_mm512_sub_epi32(a, zero1), left_shift), requant1);
    b = requantize_tfl2_512(_mm512_sll_epi32(_mm512_sub_epi32(b, zero2), left_shift), requant2);
    const __m512i sum = kSubtract ? _mm512_sub_epi32(a, b) : _mm512_add_epi32(a, b);
    return finish512(requantize_tfl2_512(sum, requant), output);
  });
}

template <bool kSubtract>
inline void run_f32e(const AddArgs& args, uint32_t begin, uint32_t end) {
  const __m512i zero1 = _mm512_set1_epi32(args.input1_zero_point);
  const __m512i zero2 = _mm512_set1_epi32(args.input2_zero_point);
  const __m512 scale1 = _mm512_set1_ps(args.input1_scale);
  const __m512 scale2 = _mm512_set1_ps(args.input2_scale);
  const __m512 output_scale = _mm512_set1_ps(args.output_scale);
  const RealOutput512 output = real_output512(args.output_zero_point, args.clamp_min, args.clamp_max);
  binary512(args, begin, end, [&](__m512i a, __m512i b) {
    const __m512 real1 = dequantize512(a, zero1, scale1);
    const __m512 real2 = dequantize512(b, zero2, scale2);
    const __m512 sum = kSubtract ? _mm512_sub_ps(real1, real2) : _mm512_add_ps(real1, real2);
    return finish_real512(_mm512_div_ps(sum, output_scale), output);
  });
}

template <bool kSubtract>
inline void run_any(const AddArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    run_f32e<kSubtract>(args, begin, end);
  } else {
    run_tfl2<kSubtract>(args, begin, end);
  }
}

}  // namespace

namespace add_avx512vnni {
bool accepts(const AddArgs&) { return true; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { run_any<false>(args, begin, end); }
}  // namespace add_avx512vnni

namespace sub_avx512vnni {
bool accepts(const AddArgs&) { return true; }
size_t scratch_bytes(const AddArgs&) { return 0; }
uint32_t units(const AddArgs& args) { return num_chunks(args.broadcast.elements); }
void run(const AddArgs& args, uint32_t begin, uint32_t end, void*) { run_any<true>(args, begin, end); }
}  // namespace sub_avx512vnni

}  // namespace qplan
