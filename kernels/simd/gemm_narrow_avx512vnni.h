// Products (kernels/numeric/gemm.h) of contiguous rows of eight bytes, and of 16 with at most eight channels,
// which would fill only a part of their vectors. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_halves_avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"

namespace qplan {
namespace {

// ---- rows of eight bytes with 16 channels. A vector of sums has four channels of four rows: one load and
// four shuffles give the bytes of eight rows, where sums of 16 channels of one row would need sixteen loads.

constexpr uint32_t kEightBytes = 8;  // of a row
constexpr uint32_t kEightRows = 8;   // of a tile

inline bool is_narrow_product512(const Gemm& g, uint32_t first_channel) {
  return g.residual == nullptr && g.rows == nullptr && g.num_taps == 1 && g.tap_bytes == kEightBytes &&
         g.row_stride == kEightBytes && g.num_rows >= kEightRows && g.num_channels - first_channel >= 16;
}

// Sixteen channels, each four of them four times: a vector of sums has four rows.
inline void spread_four_times(const float* from, float* to) {
  for (uint32_t i = 0; i < 16; i += 4) {
    _mm512_store_ps(to + i * 4, _mm512_broadcast_f32x4(_mm_loadu_ps(from + i)));
  }
}
using FourTimes = SpreadConstants<64, spread_four_times>;

// What tiles read of a product, read before the first one: what they store may be anything, to the compiler.
struct NarrowRows {
  const uint8_t* first;
  size_t first_at;  // of its tap
  uint8_t* first_out;
  size_t stride;  // of outputs
  const int32_t* row_term;
  const GemmRest* rests;
  uint32_t num_rows, num_rests;

  NarrowRows(const Gemm& g, uint32_t block)
      : first(row_tap(g, 0, 0)),
        first_at(g.tap_offsets[0]),
        first_out(g.first_out + block * 16),
        stride(g.out_stride),
        row_term(g.row_term),
        rests(g.rests),
        num_rows(g.num_rows),
        num_rests(g.num_rests) {}

  // Where a tile begins: the last one may begin among rows that are done.
  uint32_t tile_row(uint32_t p) const { return p + kEightRows <= num_rows ? p : num_rows - kEightRows; }
};

// All rows; the last tile may begin among rows that are done.
template <typename Epilogue, bool kSignBias>
__attribute__((noinline)) void gemm_narrow512(const Gemm& g, uint32_t block) {
  constexpr uint32_t kFours = 4;  // of channels
  const FourTimes channels(g, block * 16);
  const OutputBytes bytes(g);
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  __m512i weights[2][kFours], biases[kFours];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kFours; ++i) {
    const int8_t* of_four = g.weights + block * (kEightBytes * 16) + i * 16;
    weights[0][i] = broadcast_16_bytes(of_four);
    weights[1][i] = broadcast_16_bytes(of_four + 64);
    biases[i] = broadcast_16_bytes(g.bias + block * 16 + i * 4);
  }
  // Rows r and r + 4 in 128 bits, so that outputs are in order.
  const __m512i pairs = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i rows_of_lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const NarrowRows product(g, block);
  const Epilogue epilogues[kFours] = {{channels, 0}, {channels, 16}, {channels, 32}, {channels, 48}};
  for (uint32_t p = 0; p < product.num_rows; p += kEightRows) {
    const uint32_t row = product.tile_row(p);
    __m512i u =
        _mm512_permutexvar_epi64(pairs, _mm512_loadu_si512(product.first + size_t{row} * kEightBytes));
    if (kSignBias) u = _mm512_xor_si512(u, sign_bias);
    const __m512i fours[2][2] = {
        {_mm512_shuffle_epi32(u, _MM_PERM_AAAA), _mm512_shuffle_epi32(u, _MM_PERM_BBBB)},
        {_mm512_shuffle_epi32(u, _MM_PERM_CCCC), _mm512_shuffle_epi32(u, _MM_PERM_DDDD)}};
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      __m512i sums[kFours];
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kFours; ++i) sums[i] = biases[i];
      if (product.row_term != nullptr) {
        const __m128i terms =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(product.row_term + row + half * kFours));
        const __m512i term = _mm512_permutexvar_epi32(rows_of_lanes, _mm512_castsi128_si512(terms));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < kFours; ++i) sums[i] = _mm512_add_epi32(sums[i], term);
      }
      for (uint32_t r = 0; r < product.num_rests; ++r) {
        if (product.rests[r].block != block) continue;
        const __m512i four = product.rests[r].at == product.first_at ? fours[half][0] : fours[half][1];
#pragma GCC unroll 4
        for (uint32_t i = 0; i < kFours; ++i)
          dot_u8s8_512(sums[i], four, broadcast_16_bytes(product.rests[r].weights_from(0) + i * 16));
      }
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kFours; ++i) {
        dot_u8s8_512(sums[i], fours[half][0], weights[0][i]);
        dot_u8s8_512(sums[i], fours[half][1], weights[1][i]);
        sums[i] = epilogues[i].outputs(sums[i]);
      }
      const __m512i four_rows = bytes.pack_lanes(sums[0], sums[1], sums[2], sums[3]);
      uint8_t* out = product.first_out + (row + half * 4) * product.stride;
      if (product.stride == 16) {
        _mm512_storeu_si512(out, four_rows);
      } else {
        store_rows128(out, product.stride, true, 0, four_rows, 4);
      }
    }
  }
}

// ---- rows of 16 bytes with at most eight channels: two such vectors for four rows

constexpr uint32_t kSixteenBytes = 16;  // of a row

inline bool is_narrow_half_product512(const Gemm& g) {
  return g.residual == nullptr && g.rows == nullptr && g.num_taps == 1 && g.tap_bytes == kSixteenBytes &&
         g.row_stride == kSixteenBytes && g.num_rows >= kEightRows;
}

// All rows; the last tile may begin among rows that are done.
template <typename Epilogue, bool kSignBias>
__attribute__((noinline)) void gemm_narrow_half512(const Gemm& g, uint32_t block) {
  constexpr uint32_t kFours = 2, kGroups = 4;
  const FourTimes channels(g, block * 16);
  const OutputBytes bytes(g);
  const Epilogue epilogues[kFours] = {{channels, 0}, {channels, 16}};
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  __m512i weights[kGroups][kFours], biases[kFours];
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kFours; ++i) {
    const int8_t* of_four = g.weights + block * product_bytes(g) + i * 16;
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kGroups; ++k) weights[k][i] = broadcast_16_bytes(of_four + k * 64);
    biases[i] = broadcast_16_bytes(g.bias + block * 16 + i * 4);
  }
  // Every second row of eight, so that outputs are in order.
  const __m512i rows_of_lanes = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
  const uint32_t num_channels = g.num_channels - block * 16;
  const NarrowRows product(g, block);
  for (uint32_t p = 0; p < product.num_rows; p += kEightRows) {
    const uint32_t row = product.tile_row(p);
    const uint8_t* from = product.first + size_t{row} * kSixteenBytes;
    const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + 64);
    __m512i rows[2] = {_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xdd)};
    __m512i outputs[2][kFours];
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      if (kSignBias) rows[half] = _mm512_xor_si512(rows[half], sign_bias);
      __m512i sums[kFours] = {biases[0], biases[1]};
      if (product.row_term != nullptr) {
        const __m256i terms = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(product.row_term + row));
        const __m512i term = _mm512_permutexvar_epi32(
            _mm512_add_epi32(rows_of_lanes, _mm512_set1_epi32(static_cast<int32_t>(half))),
            _mm512_castsi256_si512(terms));
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i) sums[i] = _mm512_add_epi32(sums[i], term);
      }
      for (uint32_t r = 0; r < product.num_rests; ++r) {
        if (product.rests[r].block != block) continue;
        const auto at = static_cast<int32_t>(product.rests[r].at - product.first_at);
        const __m512i four = _mm512_shuffle_epi8(rows[half], _mm512_set1_epi32(0x03020100 + 0x01010101 * at));
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i)
          dot_u8s8_512(sums[i], four, broadcast_16_bytes(product.rests[r].weights_from(0) + i * 16));
      }
      const __m512i fours[kGroups] = {
          _mm512_shuffle_epi32(rows[half], _MM_PERM_AAAA), _mm512_shuffle_epi32(rows[half], _MM_PERM_BBBB),
          _mm512_shuffle_epi32(rows[half], _MM_PERM_CCCC), _mm512_shuffle_epi32(rows[half], _MM_PERM_DDDD)};
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kGroups; ++k) {
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i) dot_u8s8_512(sums[i], fours[k], weights[k][i]);
      }
#pragma GCC unroll 2
      for (uint32_t i = 0; i < kFours; ++i) outputs[half][i] = epilogues[i].outputs(sums[i]);
    }
    store_half_rows512(product.first_out + row * product.stride, product.stride, num_channels,
                       bytes.pack_lanes(outputs[0][0], outputs[0][1], outputs[1][0], outputs[1][1]));
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_
