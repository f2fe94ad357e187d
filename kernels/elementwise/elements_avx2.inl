// Runs of 8-bit elements as 8 int32 at a time. Internal linkage only.
#ifndef QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX2_INL_
#define QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX2_INL_

#include <immintrin.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/chunks.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize_avx2.inl"

namespace qplan {
namespace {

inline __m256i widen256(__m128i bytes, Dtype dtype) {
  return dtype == Dtype::kS8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

// The first count elements; step 0 repeats the first one.
inline __m256i load_elements256(const uint8_t* from, uint64_t step, uint32_t count, Dtype dtype) {
  const __m128i bytes = step == 0 ? _mm_set1_epi8(static_cast<char>(*from)) : load_low_bytes(from, count);
  return widen256(bytes, dtype);
}

// F32E: what quantised values stand for.
inline __m256 dequantize256(__m256i v, __m256i zero_point, __m256 scale) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(v, zero_point)), scale);
}

// Calls compute(a, b), which returns 8 output bytes, over the work units [begin, end) of a broadcast
// operation.
template <typename Args, typename Compute>
inline void binary256(const Args& args, uint32_t begin, uint32_t end, const Compute& compute) {
  const uint8_t* a = static_cast<const uint8_t*>(args.a);
  const uint8_t* b = static_cast<const uint8_t*>(args.b);
  uint8_t* output = static_cast<uint8_t*>(args.output);
  const uint32_t last = args.broadcast.rank - 1;
  const uint64_t a_step = args.broadcast.a_strides[last], b_step = args.broadcast.b_strides[last];
  const ElementRange range = chunk_range(args.broadcast.elements, begin, end);
  for_each_broadcast_run(
      args.broadcast, range.begin, range.end,
      [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
        for (uint64_t i = 0; i < count; i += 8) {
          const uint32_t now = count - i < 8 ? static_cast<uint32_t>(count - i) : 8;
          const __m256i va = load_elements256(a + a_at + i * a_step, a_step, now, args.dtype);
          const __m256i vb = load_elements256(b + b_at + i * b_step, b_step, now, args.dtype);
          store_low_bytes(output + out + i, compute(va, vb), now);
        }
      });
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_ELEMENTS_AVX2_INL_
