// kernels/numeric/gemm.h with AVX2.
// Products are formed in 16 bits and summed in 32 (vpmaddwd), where nothing can saturate. Internal linkage
// only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_AVX2_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_AVX2_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm_blocks_avx2.inl"

namespace qplan {
namespace {

// Outputs without zero point and clamp of channels channel .. channel + 7, of which low and high hold partial
// sums. Inlined by force: the sums stay in registers.
template <typename Epilogue>
__attribute__((always_inline)) inline __m256i outputs256(const Gemm& g, __m256i low, __m256i high,
                                                         __m256i term, uint32_t channel) {
  // hadd leaves channels 0 1 4 5 | 2 3 6 7 of the eight.
  const __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xD8);
  const __m256i bias = load256(g.bias + channel);
  return Epilogue(g, channel).outputs(_mm256_add_epi32(_mm256_add_epi32(sums, bias), term));
}

// kRows rows by one block of 16 channels. sums[p][q] holds two partial sums for each of the channels 4q .. 4q
// + 3.
template <typename Epilogue, uint32_t kRows>
inline void gemm_tile256(const Gemm& g, uint32_t first_row, uint32_t block) {
  __m256i sums[kRows][4];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < kRows; ++p) {
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) sums[p][q] = _mm256_setzero_si256();
  }
  const size_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights + size_t{block} * g.num_taps * num_k4 * 64;
  const __m128i flip = _mm_set1_epi8(static_cast<char>(g.flip));
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* rows[kRows];
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = row_tap(g, first_row + p, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      __m256i u[kRows];
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kRows; ++p) {
        int32_t four;
        __builtin_memcpy(&four, rows[p] + k * 4, 4);
        u[p] = _mm256_cvtepu8_epi16(_mm_xor_si128(_mm_set1_epi32(four), flip));
      }
#pragma GCC unroll 4
      for (uint32_t q = 0; q < 4; ++q) {
        const __m256i w =
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 16 * q)));
#pragma GCC unroll 4
        for (uint32_t p = 0; p < kRows; ++p) {
          sums[p][q] = _mm256_add_epi32(sums[p][q], _mm256_madd_epi16(u[p], w));
        }
      }
    }
  }
  const uint32_t channel = block * 16;
  __m256i outputs[kRows][2];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < kRows; ++p) {
    const __m256i term = _mm256_set1_epi32(g.row_term != nullptr ? g.row_term[first_row + p] : 0);
    outputs[p][0] = outputs256<Epilogue>(g, sums[p][0], sums[p][1], term, channel);
    outputs[p][1] = outputs256<Epilogue>(g, sums[p][2], sums[p][3], term, channel + 8);
  }
  const __m256i bytes =
      Bytes256(g).pack(outputs[0][0], outputs[0][1], outputs[kRows - 1][0], outputs[kRows - 1][1]);
  const uint32_t left = g.num_channels - channel, count = left < 16 ? left : 16;
  uint8_t* out = g.first_out + first_row * g.out_stride + channel;
  store_low_bytes(out, _mm256_castsi256_si128(bytes), count);
  if (kRows == 2) store_low_bytes(out + g.out_stride, _mm256_extracti128_si256(bytes, 1), count);
}

template <typename Epilogue>
void gemm_rows256(const Gemm& g, uint32_t block) {
  uint32_t p = 0;
  for (; p + 2 <= g.num_rows; p += 2) gemm_tile256<Epilogue, 2>(g, p, block);
  for (; p < g.num_rows; ++p) gemm_tile256<Epilogue, 1>(g, p, block);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_AVX2_INL_
