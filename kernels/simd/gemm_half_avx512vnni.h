// The last block of a product (kernels/numeric/gemm.h) where it has at most eight channels: half a vector
// does for them, and takes half the time. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_HALF_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_HALF_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"

namespace qplan {
namespace {

constexpr uint32_t kHalfBlock = 8;

// As dot_u8s8_512.
inline void dot_u8s8_256([[maybe_unused]] __m256i& sum, [[maybe_unused]] __m256i u8,
                         [[maybe_unused]] __m256i s8) {
// clang checks the sizes of operands in functions that nobody calls too.
#if !defined(QPLAN_ONLY_QUERIES)
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
#endif
}

// What epilogues in float look at, of eight channels, twice: a vector of sums has two rows.
struct TwiceHalf {
  const float *scale, *float_scale, *float_offset;
  alignas(64) float values[3][16];

  TwiceHalf(const Gemm& g, uint32_t channel)
      : scale(twice(g.scale, channel, values[0])),
        float_scale(twice(g.float_scale, channel, values[1])),
        float_offset(twice(g.float_offset, channel, values[2])) {}
  TwiceHalf(const TwiceHalf&) = delete;

 private:
  static const float* twice(const float* from, uint32_t channel, float* to) {
    if (from == nullptr) return nullptr;
    const __m256 eight = _mm256_loadu_ps(from + channel);
    _mm256_store_ps(to, eight);
    _mm256_store_ps(to + 8, eight);
    return to;
  }
};

// Eight rows, contiguous in `rows`, of `count` outputs each.
__attribute__((always_inline)) inline void store_half_rows512(uint8_t* out, size_t stride, uint32_t count,
                                                              __m512i rows) {
  if (count == kHalfBlock && stride == kHalfBlock) return _mm512_storeu_si512(out, rows);
  const __m128i pairs[4] = {_mm512_castsi512_si128(rows), _mm512_extracti32x4_epi32(rows, 1),
                            _mm512_extracti32x4_epi32(rows, 2), _mm512_extracti32x4_epi32(rows, 3)};
  const __mmask16 mask = mask16(count);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i, out += 2 * stride) {
    const __m128i second = _mm_unpackhi_epi64(pairs[i], pairs[i]);
    if (count == kHalfBlock) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out), pairs[i]);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + stride), second);
    } else {
      _mm_mask_storeu_epi8(out, mask, pairs[i]);
      _mm_mask_storeu_epi8(out + stride, mask, second);
    }
  }
}

// kRows rows, a multiple of eight.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kRows>
__attribute__((always_inline)) inline void gemm_half_tile512(const Gemm& g, const TwiceHalf& channels,
                                                             uint32_t first_row, uint32_t block) {
  const size_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights + block * g.num_taps * num_k4 * 64;
  const uint32_t first_channel = block * 16;
  __m256i sums[kRows];
  const __m256i bias = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(g.bias + first_channel));
#pragma GCC unroll 16
  for (uint32_t p = 0; p < kRows; ++p) sums[p] = bias;
  if (g.row_term != nullptr) {
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p)
      sums[p] = _mm256_add_epi32(sums[p], _mm256_set1_epi32(g.row_term[first_row + p]));
  }
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(g.flip));
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const Rows<kRows> rows(g, first_row, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
#pragma GCC unroll 16
      for (uint32_t p = 0; p < kRows; ++p) {
        int32_t four;
        __builtin_memcpy(&four, rows[p] + k * 4, 4);
        __m256i u = _mm256_set1_epi32(four);
        if (kFlip) u = _mm256_xor_si256(u, flip);
        dot_u8s8_256(sums[p], u, w);
      }
    }
  }
  const Epilogue epilogue(channels, 0);
  const OutputBytes bytes(g);
  uint8_t* out = g.first_out + first_row * g.out_stride + first_channel;
#pragma GCC unroll 2
  for (uint32_t p = 0; p < kRows; p += 8, out += 8 * g.out_stride) {
    __m512i twos[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      twos[i] = epilogue.outputs(
          _mm512_inserti64x4(_mm512_castsi256_si512(sums[p + 2 * i]), sums[p + 2 * i + 1], 1));
    }
    store_half_rows512(out, g.out_stride, g.num_channels - first_channel,
                       bytes.pack(twos[0], twos[1], twos[2], twos[3]));
  }
}

// The last tile may begin among rows that are done. Not inlined: its loop needs all registers.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kRows>
__attribute__((noinline)) void gemm_half_tiles512(const Gemm& g, uint32_t block) {
  const TwiceHalf channels(g, block * 16);
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    gemm_half_tile512<Epilogue, Rows, kFlip, kRows>(g, channels, row, block);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_HALF_AVX512VNNI_H_
