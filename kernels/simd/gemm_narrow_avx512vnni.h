// Products (kernels/numeric/gemm.h) that would fill only a part of their vectors: of the last block where it
// has at most eight channels, and of rows of eight bytes. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"

namespace qplan {
namespace {

// ---- the last block of a product where it has at most eight channels: half a vector does for them

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
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kRows>
__attribute__((always_inline)) inline void gemm_half_tile512(const Gemm& g, const TwiceHalf& channels,
                                                             uint32_t first_row, uint32_t block) {
  GroupRuns<1> runs(g, block);
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
  const __m256i sign_bias = _mm256_set1_epi8(static_cast<char>(g.sign_bias));
  const Rows<kRows> rows(g, first_row);
  do {
    read_again();
    for (; runs.at != runs.end; runs.at += 4, runs.weights += 64) {
      const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(runs.weights));
#pragma GCC unroll 16
      for (uint32_t p = 0; p < kRows; ++p) {
        int32_t four;
        __builtin_memcpy(&four, rows[p] + runs.at, 4);
        __m256i u = _mm256_set1_epi32(four);
        if (kSignBias) u = _mm256_xor_si256(u, sign_bias);
        dot_u8s8_256(sums[p], u, w);
      }
    }
  } while (runs.advance(g, block));
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

// Eight rows of 16 channels and up to eight more. Two rows share a vector of the latter: three products for
// their groups of four bytes, where two blocks would take four. (A half block of its own has half the lanes,
// but as many instructions: where there are two ports of 512 bits, it takes as long as a whole one.)
constexpr uint32_t kThreeHalvesRows = 8;

// `whole` has the 16 channels of a row a vector, `halves` the others of two rows.
__attribute__((always_inline)) inline void store_three_halves512(const OutputBytes& bytes, uint8_t* out,
                                                                 size_t stride, __mmask32 mask,
                                                                 const __m512i (&whole)[kThreeHalvesRows],
                                                                 const __m512i (&halves)[4]) {
  const __m512i packed_halves = bytes.pack_lanes(halves[0], halves[1], halves[2], halves[3]);
  // Lanes of four bytes: those of the packed halves begin at 16. Rows 0 and 1 of four; for the next two, 2 is
  // added to where their whole blocks are, and 1 to where their halves are.
  __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 0, 0, 1, 5, 9, 13, 24, 28, 0, 0);
  const __m512i next_two = _mm512_setr_epi32(2, 2, 2, 2, 1, 1, 0, 0, 2, 2, 2, 2, 1, 1, 0, 0);
  const __m512i back = _mm512_setr_epi32(-4, -4, -4, -4, 0, 0, 0, 0, -4, -4, -4, -4, 0, 0, 0, 0);
#pragma GCC unroll 2
  for (uint32_t p = 0; p < kThreeHalvesRows; p += 4) {
    const __m512i four = bytes.pack_lanes(whole[p], whole[p + 1], whole[p + 2], whole[p + 3]);
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 4; i += 2, out += 2 * stride) {
      store_rows256(out, stride, false, mask, _mm512_permutex2var_epi32(four, order, packed_halves), 2);
      order = _mm512_add_epi32(order, next_two);
    }
    order = _mm512_add_epi32(order, back);
  }
}

// The same of outputs that a residual is added to.
__attribute__((always_inline)) inline void store_three_half_sums512(const Gemm& g,
                                                                    const __m512i (&whole)[kThreeHalvesRows],
                                                                    const __m512i (&halves)[4],
                                                                    uint32_t first_row,
                                                                    uint32_t first_channel) {
  __m512i blocks[2 * kThreeHalvesRows];
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kThreeHalvesRows; ++p) {
    blocks[2 * p] = whole[p];
    blocks[2 * p + 1] = p % 2 == 0 ? halves[p / 2] : _mm512_shuffle_i64x2(halves[p / 2], halves[p / 2], 0xee);
  }
  store_sums512<kThreeHalvesRows, 2>(g, blocks, first_row, first_channel);
}

// Blocks `block` and the next one, the last, of all rows, kThreeHalvesRows at least; the last tile may begin
// among rows that are done.
template <typename Epilogue, bool kSignBias>
__attribute__((noinline)) void gemm_three_halves512(const Gemm& g, uint32_t block) {
  constexpr uint32_t kRows = kThreeHalvesRows;
  const uint32_t first_channel = block * 16;
  const size_t stride = g.row_stride;
  const TwiceHalf half_channels(g, first_channel + 16);
  const OutputBytes bytes(g);
  const Epilogue epilogue(g, first_channel), half_epilogue(half_channels, 0);
  const __m512i bias = _mm512_loadu_si512(g.bias + first_channel);
  const __m512i half_bias = _mm512_broadcast_i64x4(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(g.bias + first_channel + 16)));
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  const auto mask = static_cast<__mmask32>(mask64(g.num_channels - first_channel));
  constexpr __mmask16 kSecondRow = 0xff00;
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    GroupRuns<2> runs(g, block);
    __m512i sums[kRows], halves[kRows / 2];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) sums[i] = bias;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRows / 2; ++i) halves[i] = half_bias;
    if (g.row_term != nullptr) {
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kRows / 2; ++i) {
        const __m512i first = _mm512_set1_epi32(g.row_term[row + 2 * i]);
        const __m512i second = _mm512_set1_epi32(g.row_term[row + 2 * i + 1]);
        sums[2 * i] = _mm512_add_epi32(sums[2 * i], first);
        sums[2 * i + 1] = _mm512_add_epi32(sums[2 * i + 1], second);
        halves[i] = _mm512_add_epi32(halves[i], _mm512_mask_blend_epi32(kSecondRow, first, second));
      }
    }
    do {
      read_again();
      const uint8_t *at = row_start(g, row) + runs.at, *end = row_start(g, row) + runs.end;
      const int8_t* weights = runs.weights;
      for (; at != end; at += 4, weights += 64) {
        const __m512i w = _mm512_loadu_si512(weights);
        const __m512i half_w = _mm512_broadcast_i64x4(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + runs.block_bytes)));
        const uint8_t* from = at;
#pragma GCC unroll 4
        for (uint32_t i = 0; i < kRows / 2; ++i, from += 2 * stride) {
          int32_t first, second;
          __builtin_memcpy(&first, from, 4);
          __builtin_memcpy(&second, from + stride, 4);
          __m512i u = _mm512_set1_epi32(first), v = _mm512_set1_epi32(second);
          if (kSignBias) u = _mm512_xor_si512(u, sign_bias), v = _mm512_xor_si512(v, sign_bias);
          dot_u8s8_512(sums[2 * i], u, w);
          dot_u8s8_512(sums[2 * i + 1], v, w);
          dot_u8s8_512(halves[i], _mm512_mask_blend_epi32(kSecondRow, u, v), half_w);
        }
      }
      runs.weights = weights;
    } while (runs.advance(g, block));
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) sums[i] = epilogue.outputs(sums[i]);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRows / 2; ++i) halves[i] = half_epilogue.outputs(halves[i]);
    if constexpr (kProductAddsResidual) {
      if (g.residual != nullptr) {
        store_three_half_sums512(g, sums, halves, row, first_channel);
        continue;
      }
    }
    store_three_halves512(bytes, g.first_out + row * g.out_stride + first_channel, g.out_stride, mask, sums,
                          halves);
  }
}

// The last tile may begin among rows that are done. Not inlined: its loop needs all registers.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kRows>
__attribute__((noinline)) void gemm_half_tiles512(const Gemm& g, uint32_t block) {
  const TwiceHalf channels(g, block * 16);
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    gemm_half_tile512<Epilogue, Rows, kSignBias, kRows>(g, channels, row, block);
  }
}

// ---- contiguous rows of eight bytes with 16 channels. A vector of sums has four channels of four rows: one
// load and four shuffles give the bytes of eight rows, where sums of 16 channels of one row would need
// sixteen loads.

constexpr uint32_t kEightBytes = 8;  // of a row
constexpr uint32_t kEightRows = 8;   // of a tile

inline bool is_narrow_product512(const Gemm& g, uint32_t first_channel) {
  return g.residual == nullptr && g.rows == nullptr && g.num_taps == 1 && g.tap_bytes == kEightBytes &&
         g.row_stride == kEightBytes && g.num_rows >= kEightRows && g.num_channels - first_channel >= 16;
}

// What epilogues in float look at, of 16 channels: each four of them four times, for as many rows.
struct FourTimes {
  const float *scale, *float_scale, *float_offset;
  alignas(64) float values[3][64];

  FourTimes(const Gemm& g, uint32_t channel)
      : scale(four_times(g.scale, channel, values[0])),
        float_scale(four_times(g.float_scale, channel, values[1])),
        float_offset(four_times(g.float_offset, channel, values[2])) {}
  FourTimes(const FourTimes&) = delete;

 private:
  static const float* four_times(const float* from, uint32_t channel, float* to) {
    if (from == nullptr) return nullptr;
    for (uint32_t i = 0; i < 16; i += 4) {
      _mm512_store_ps(to + i * 4, _mm512_broadcast_f32x4(_mm_loadu_ps(from + channel + i)));
    }
    return to;
  }
};

inline __m512i broadcast_16_bytes(const void* from) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(from)));
}

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
  // Read here: what is stored below may be anything, to the compiler.
  const uint8_t* first = row_tap(g, 0, 0);
  const size_t first_at = g.tap_offsets[0];
  uint8_t* first_out = g.first_out + block * 16;
  const size_t stride = g.out_stride;
  const int32_t* row_term = g.row_term;
  const uint32_t num_rows = g.num_rows;
  const GemmRest* rests = g.rests;
  const uint32_t num_rests = g.num_rests;
  const Epilogue epilogues[kFours] = {{channels, 0}, {channels, 16}, {channels, 32}, {channels, 48}};
  for (uint32_t p = 0; p < num_rows; p += kEightRows) {
    const uint32_t row = p + kEightRows <= num_rows ? p : num_rows - kEightRows;
    __m512i u = _mm512_permutexvar_epi64(pairs, _mm512_loadu_si512(first + size_t{row} * kEightBytes));
    if (kSignBias) u = _mm512_xor_si512(u, sign_bias);
    const __m512i fours[2][2] = {
        {_mm512_shuffle_epi32(u, _MM_PERM_AAAA), _mm512_shuffle_epi32(u, _MM_PERM_BBBB)},
        {_mm512_shuffle_epi32(u, _MM_PERM_CCCC), _mm512_shuffle_epi32(u, _MM_PERM_DDDD)}};
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      __m512i sums[kFours];
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kFours; ++i) sums[i] = biases[i];
      if (row_term != nullptr) {
        const __m128i terms =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(row_term + row + half * kFours));
        const __m512i term = _mm512_permutexvar_epi32(rows_of_lanes, _mm512_castsi128_si512(terms));
#pragma GCC unroll 4
        for (uint32_t i = 0; i < kFours; ++i) sums[i] = _mm512_add_epi32(sums[i], term);
      }
      for (uint32_t r = 0; r < num_rests; ++r) {
        if (rests[r].block != block) continue;
        const __m512i four = rests[r].at == first_at ? fours[half][0] : fours[half][1];
#pragma GCC unroll 4
        for (uint32_t i = 0; i < kFours; ++i)
          dot_u8s8_512(sums[i], four, broadcast_16_bytes(rests[r].weights_from(0) + i * 16));
      }
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kFours; ++i) {
        dot_u8s8_512(sums[i], fours[half][0], weights[0][i]);
        dot_u8s8_512(sums[i], fours[half][1], weights[1][i]);
        sums[i] = epilogues[i].outputs(sums[i]);
      }
      const __m512i four_rows = bytes.pack_lanes(sums[0], sums[1], sums[2], sums[3]);
      uint8_t* out = first_out + (row + half * 4) * stride;
      if (stride == 16) {
        _mm512_storeu_si512(out, four_rows);
      } else {
        store_rows128(out, stride, true, 0, four_rows, 4);
      }
    }
  }
}

// ---- contiguous rows of 16 bytes with at most eight channels: two such vectors for four rows

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
  // Read here: what is stored below may be anything, to the compiler.
  const uint8_t* first = row_tap(g, 0, 0);
  const size_t first_at = g.tap_offsets[0];
  uint8_t* first_out = g.first_out + block * 16;
  const size_t stride = g.out_stride;
  const int32_t* row_term = g.row_term;
  const uint32_t num_rows = g.num_rows, num_channels = g.num_channels - block * 16;
  const GemmRest* rests = g.rests;
  const uint32_t num_rests = g.num_rests;
  for (uint32_t p = 0; p < num_rows; p += kEightRows) {
    const uint32_t row = p + kEightRows <= num_rows ? p : num_rows - kEightRows;
    const uint8_t* from = first + size_t{row} * kSixteenBytes;
    const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + 64);
    __m512i rows[2] = {_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xdd)};
    __m512i outputs[2][kFours];
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      if (kSignBias) rows[half] = _mm512_xor_si512(rows[half], sign_bias);
      __m512i sums[kFours] = {biases[0], biases[1]};
      if (row_term != nullptr) {
        const __m256i terms = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row_term + row));
        const __m512i term = _mm512_permutexvar_epi32(
            _mm512_add_epi32(rows_of_lanes, _mm512_set1_epi32(static_cast<int32_t>(half))),
            _mm512_castsi256_si512(terms));
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i) sums[i] = _mm512_add_epi32(sums[i], term);
      }
      for (uint32_t r = 0; r < num_rests; ++r) {
        if (rests[r].block != block) continue;
        const auto at = static_cast<int32_t>(rests[r].at - first_at);
        const __m512i four =
            _mm512_shuffle_epi8(rows[half], _mm512_set1_epi32(0x03020100 + 0x01010101 * at));
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i)
          dot_u8s8_512(sums[i], four, broadcast_16_bytes(rests[r].weights_from(0) + i * 16));
      }
      const __m512i fours[kGroups] = {_mm512_shuffle_epi32(rows[half], _MM_PERM_AAAA),
                                      _mm512_shuffle_epi32(rows[half], _MM_PERM_BBBB),
                                      _mm512_shuffle_epi32(rows[half], _MM_PERM_CCCC),
                                      _mm512_shuffle_epi32(rows[half], _MM_PERM_DDDD)};
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kGroups; ++k) {
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kFours; ++i) dot_u8s8_512(sums[i], fours[k], weights[k][i]);
      }
#pragma GCC unroll 2
      for (uint32_t i = 0; i < kFours; ++i) outputs[half][i] = epilogues[i].outputs(sums[i]);
    }
    store_half_rows512(first_out + row * stride, stride, num_channels,
                       bytes.pack_lanes(outputs[0][0], outputs[0][1], outputs[1][0], outputs[1][1]));
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_NARROW_AVX512VNNI_H_
