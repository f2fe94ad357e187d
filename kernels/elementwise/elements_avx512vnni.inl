// Runs of 8-bit elements as 16 int32 at a time. Internal linkage only.
#ifndef QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX512VNNI_INL_
#define QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX512VNNI_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/chunks.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize_avx512vnni.inl"

namespace qplan {
namespace {

inline __m512i widen512(__m128i bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

// The elements under mask; step 0 repeats the first one.
inline __m512i load_elements512(const uint8_t* from, uint64_t step, __mmask16 mask, Dtype dtype) {
  const __m128i bytes =
      step == 0 ? _mm_set1_epi8(static_cast<char>(*from)) : _mm_maskz_loadu_epi8(mask, from);
  return widen512(bytes, dtype);
}

// F32E: what quantised values stand for.
inline __m512 dequantize512(__m512i v, __m512i zero_point, __m512 scale) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(v, zero_point)), scale);
}

// Calls compute(a, b), which returns 16 output bytes, over the work units [begin, end) of a broadcast
// operation.
template <typename Args, typename Compute>
inline void binary512(const Args& args, uint32_t begin, uint32_t end, const Compute& compute) {
  const uint8_t* a = static_cast<const uint8_t*>(args.a);
  const uint8_t* b = static_cast<const uint8_t*>(args.b);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(
      args.broadcast, range.begin, range.end,
      [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
        for (uint64_t i = 0; i < count; i += 16) {
          const __mmask16 mask = mask16(count - i < 16 ? static_cast<uint32_t>(count - i) : 16);
          const __m512i va = load_elements512(a + a_at + i * a_step, a_step, mask, args.dtype);
          const __m512i vb = load_elements512(b + b_at + i * b_step, b_step, mask, args.dtype);
          _mm_mask_storeu_epi8(output + out + i, mask, compute(va, vb));
        }
      });
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX512VNNI_INL_
