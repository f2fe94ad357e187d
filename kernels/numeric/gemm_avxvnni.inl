// kernels/numeric/gemm.h with AVX-VNNI: all but the dot product is that of gemm_avx2.inl. Internal linkage
// only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_AVXVNNI_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_AVXVNNI_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm_blocks_avx2.inl"

namespace qplan {
namespace {

// sum[i] += the dot product of four uint8 of u8 and four int8 of s8, without saturation. In assembly: GCC 12
// moves the accumulators to and fro around the intrinsic. AVX-512 has the same instruction in another
// encoding, for which tests compile this file: no machine of the project has this one.
inline void dot_u8s8_256([[maybe_unused]] __m256i& sum, [[maybe_unused]] __m256i u8,
                         [[maybe_unused]] __m256i s8) {
#if defined(__AVXVNNI__)
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(u8), "x"(s8));
#elif !defined(QPLAN_ONLY_QUERIES)  // clang checks the sizes of operands in functions that nobody calls too
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
#endif
}

// kRows rows by one block of 16 channels: sums[p][h] of the channels 8h .. 8h + 7.
template <typename Epilogue, uint32_t kRows>
inline void gemm_tile256(const Gemm& g, uint32_t first_row, uint32_t block) {
  const uint32_t channel = block * 16;
  __m256i sums[kRows][2];
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const __m256i term = _mm256_set1_epi32(g.row_term != nullptr ? g.row_term[first_row + p] : 0);
    sums[p][0] = _mm256_add_epi32(load256(g.bias + channel), term);
    sums[p][1] = _mm256_add_epi32(load256(g.bias + channel + 8), term);
  }
  const size_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights + size_t{block} * g.num_taps * num_k4 * 64;
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(g.flip));
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* rows[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = row_tap(g, first_row + p, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      const __m256i w0 = load256(weights), w1 = load256(weights + 32);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        int32_t four;
        __builtin_memcpy(&four, rows[p] + k * 4, 4);
        const __m256i u = _mm256_xor_si256(_mm256_set1_epi32(four), flip);
        dot_u8s8_256(sums[p][0], u, w0);
        dot_u8s8_256(sums[p][1], u, w1);
      }
    }
  }
  const Epilogue low(g, channel), high(g, channel + 8);
  const Bytes256 bytes(g);
  const uint32_t left = g.num_channels - channel, count = left < 16 ? left : 16;
  uint8_t* out = g.first_out + first_row * g.out_stride + channel;
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; p += 2, out += 2 * g.out_stride) {
    const uint32_t next = p + 1 < kRows ? p + 1 : p;
    const __m256i packed = bytes.pack(low.outputs(sums[p][0]), high.outputs(sums[p][1]),
                                      low.outputs(sums[next][0]), high.outputs(sums[next][1]));
    store_low_bytes(out, _mm256_castsi256_si128(packed), count);
    if (next != p) store_low_bytes(out + g.out_stride, _mm256_extracti128_si256(packed, 1), count);
  }
}

// Six rows leave registers for two vectors of weights, one of the input and the flip.
template <typename Epilogue>
void gemm_rows256(const Gemm& g, uint32_t block) {
  uint32_t p = 0;
  for (; p + 6 <= g.num_rows; p += 6) gemm_tile256<Epilogue, 6>(g, p, block);
  for (; p + 2 <= g.num_rows; p += 2) gemm_tile256<Epilogue, 2>(g, p, block);
  for (; p < g.num_rows; ++p) gemm_tile256<Epilogue, 1>(g, p, block);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_AVXVNNI_INL_
