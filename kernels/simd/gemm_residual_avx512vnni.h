// Sums with a residual (kernels/numeric/gemm.h) of a tile's outputs before they are bytes: an add of its own
// would read the outputs again, and make of them what they were here. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_RESIDUAL_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_RESIDUAL_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"

namespace qplan {
namespace {

// Only a file that defines this has the code for it in its tiles.
#if defined(QPLAN_PRODUCT_ADDS_RESIDUAL)
constexpr bool kProductAddsResidual = true;
#else
constexpr bool kProductAddsResidual = false;
#endif

// A residual's bytes as 32-bit integers.
template <bool kSigned>
__attribute__((always_inline)) inline __m512i widen512(__m128i bytes) {
  return kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

// fma(a, scale1, fma(b, scale2, offset)), where the residual is a or b.
template <bool kSigned, bool kIsA>
class ResidualSum512 {
 public:
  explicit ResidualSum512(const Gemm& g)
      : output_(set_output(g.output_zero_point, g.clamp_min, g.clamp_max)),
        scale1_(_mm512_set1_ps(g.residual->scale1)),
        scale2_(_mm512_set1_ps(g.residual->scale2)),
        offset_(_mm512_set1_ps(g.residual->offset)) {}

  // The sum of 16 outputs without zero point and clamp.
  __attribute__((always_inline)) __m512i sums(__m512i v, __m128i residual_bytes) const {
    const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(v, output_.clamp_min), output_.clamp_max);
    const __m512 output = _mm512_cvtepi32_ps(_mm512_add_epi32(clamped, output_.zero_point));
    const __m512 residual = _mm512_cvtepi32_ps(widen512<kSigned>(residual_bytes));
    const __m512 a = kIsA ? residual : output, b = kIsA ? output : residual;
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(a, scale1_, _mm512_fmadd_ps(b, scale2_, offset_)));
  }

 private:
  Output output_;
  __m512 scale1_, scale2_, offset_;
};

// Stores the sums of a tile's outputs, num_rows rows of kBlocks vectors of 16 channels, with the residual.
template <uint32_t kBlocks, bool kSigned, bool kIsA>
__attribute__((noinline)) void store_sums512(const Gemm& g, const __m512i* outputs, uint32_t num_rows,
                                             uint32_t first_row, uint32_t first_channel) {
  const ResidualSum512<kSigned, kIsA> sum(g);
  const TileStore512<kBlocks> store(g, first_channel);
  const uint8_t* residual = g.residual->first + first_row * g.out_stride + first_channel;
  uint8_t* out = store.first + first_row * store.stride;
  for (uint32_t row = 0; row < num_rows; row += 4 / kBlocks) {
    const uint32_t count = num_rows - row < 4 / kBlocks ? num_rows - row : 4 / kBlocks;
    __m512i sums[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t p = i / kBlocks < count ? i / kBlocks : count - 1, b = i % kBlocks;
      const uint8_t* at = residual + p * g.out_stride + b * 16;
      const __m128i bytes = store.whole
                                ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(at))
                                : _mm_maskz_loadu_epi8(static_cast<__mmask16>(store.mask >> (b * 16)), at);
      sums[i] = sum.sums(outputs[(row + p) * kBlocks + b], bytes);
    }
    store.store_four(out, sums, count);
    residual += count * g.out_stride;
    out += count * store.stride;
  }
}

// The same of outputs in registers.
template <uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void store_sums512(const Gemm& g,
                                                         const __m512i (&outputs)[kRows * kBlocks],
                                                         uint32_t first_row, uint32_t first_channel) {
  __m512i in_memory[kRows * kBlocks];
#pragma GCC unroll 32
  for (uint32_t i = 0; i < kRows * kBlocks; ++i) in_memory[i] = outputs[i];
  if (g.residual->is_signed) {
    g.residual->is_a ? store_sums512<kBlocks, true, true>(g, in_memory, kRows, first_row, first_channel)
                     : store_sums512<kBlocks, true, false>(g, in_memory, kRows, first_row, first_channel);
  } else {
    g.residual->is_a ? store_sums512<kBlocks, false, true>(g, in_memory, kRows, first_row, first_channel)
                     : store_sums512<kBlocks, false, false>(g, in_memory, kRows, first_row, first_channel);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_RESIDUAL_AVX512VNNI_H_
