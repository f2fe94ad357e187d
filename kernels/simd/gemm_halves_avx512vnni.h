// Products (kernels/numeric/gemm.h) whose last block has at most eight channels. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_HALVES_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_HALVES_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"
#include "kernels/simd/gemm_stream_avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"

namespace qplan {
namespace {

// ---- the block alone: half a vector does for its channels

constexpr uint32_t kHalfBlock = 8;

// As dot_u8s8_512.
inline void dot_u8s8_256([[maybe_unused]] __m256i& sum, [[maybe_unused]] __m256i u8,
                         [[maybe_unused]] __m256i s8) {
// clang checks the sizes of operands in functions that nobody calls too.
#if !defined(QPLAN_ONLY_QUERIES)
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
#endif
}

// What epilogues in float look at, as kSpread writes it from that of the channels: kEntries for a product
// whose vectors of sums are no 16 channels of one row.
template <uint32_t kEntries, void (*kSpread)(const float* from, float* to)>
struct SpreadConstants {
  const float *scale, *float_scale, *float_offset;
  alignas(64) float values[3][kEntries];

  SpreadConstants(const Gemm& g, uint32_t channel)
      : scale(spread(g.scale, channel, values[0])),
        float_scale(spread(g.float_scale, channel, values[1])),
        float_offset(spread(g.float_offset, channel, values[2])) {}
  SpreadConstants(const SpreadConstants&) = delete;

 private:
  static const float* spread(const float* from, uint32_t channel, float* to) {
    if (from == nullptr) return nullptr;
    kSpread(from + channel, to);
    return to;
  }
};

// Eight channels twice: a vector of sums has two rows.
inline void spread_twice(const float* from, float* to) {
  const __m256 eight = _mm256_loadu_ps(from);
  _mm256_store_ps(to, eight);
  _mm256_store_ps(to + 8, eight);
}
using TwiceHalf = SpreadConstants<16, spread_twice>;

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

// The last tile may begin among rows that are done. Not inlined: its loop needs all registers.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kRows>
__attribute__((noinline)) void gemm_half_tiles512(const Gemm& g, uint32_t block) {
  const TwiceHalf channels(g, block * 16);
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    gemm_half_tile512<Epilogue, Rows, kSignBias, kRows>(g, channels, row, block);
  }
}

// ---- the block and the one before it

// Eight rows of 16 channels and up to eight more. Two rows share a vector of the latter: three products for
// their groups of four bytes, where two blocks would take four. (A half block of its own has half the lanes,
// but as many instructions: where there are two ports of 512 bits, it takes as long as a whole one.)
constexpr uint32_t kThreeHalvesRows = 8;

// Four rows: `four` has their first 16 channels, packed_halves the others of eight rows, of which these begin
// at first_row, 0 or 4.
__attribute__((always_inline)) inline void store_four_halves512(uint8_t* out, size_t stride, __mmask32 mask,
                                                                uint32_t first_row, __m512i four,
                                                                __m512i packed_halves) {
  // Lanes of four bytes: those of the packed halves begin at 16. Rows 0 and 1 of the four; for the next two,
  // 2 is added to where their whole blocks are, and 1 to where their halves are.
  const __m512i next_two = _mm512_setr_epi32(2, 2, 2, 2, 1, 1, 0, 0, 2, 2, 2, 2, 1, 1, 0, 0);
  __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 0, 0, 1, 5, 9, 13, 24, 28, 0, 0);
  if (first_row == 4) {
    order = _mm512_add_epi32(order, _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0));
  }
  store_rows256(out, stride, false, mask, _mm512_permutex2var_epi32(four, order, packed_halves), 2);
  store_rows256(out + 2 * stride, stride, false, mask,
                _mm512_permutex2var_epi32(four, _mm512_add_epi32(order, next_two), packed_halves), 2);
}

// `whole` has the 16 channels of a row a vector, `halves` the others of two rows.
__attribute__((always_inline)) inline void store_three_halves512(const OutputBytes& bytes, uint8_t* out,
                                                                 size_t stride, __mmask32 mask,
                                                                 const __m512i (&whole)[kThreeHalvesRows],
                                                                 const __m512i (&halves)[4]) {
  const __m512i packed_halves = bytes.pack_lanes(halves[0], halves[1], halves[2], halves[3]);
#pragma GCC unroll 2
  for (uint32_t p = 0; p < kThreeHalvesRows; p += 4) {
    const __m512i four = bytes.pack_lanes(whole[p], whole[p + 1], whole[p + 2], whole[p + 3]);
    store_four_halves512(out + p * stride, stride, mask, p, four, packed_halves);
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

// The lanes of the second of two rows in a vector of halves.
constexpr __mmask16 kSecondRow = 0xff00;

// Four bytes of a row, sixteen times.
template <bool kSignBias>
__attribute__((always_inline)) inline __m512i load_group512(const uint8_t* from, __m512i sign_bias) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  const __m512i u = _mm512_set1_epi32(four);
  return kSignBias ? _mm512_xor_si512(u, sign_bias) : u;
}

// Adds the products of a group of four bytes of each row, the first row's at `from`.
template <bool kSignBias>
__attribute__((always_inline)) inline void add_three_halves512(const uint8_t* from, size_t stride,
                                                               const int8_t* weights, size_t block_bytes,
                                                               __m512i sign_bias,
                                                               __m512i (&sums)[kThreeHalvesRows],
                                                               __m512i (&halves)[kThreeHalvesRows / 2]) {
  const __m512i w = _mm512_loadu_si512(weights);
  const __m512i half_w =
      _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights + block_bytes)));
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kThreeHalvesRows / 2; ++i, from += 2 * stride) {
    const __m512i u = load_group512<kSignBias>(from, sign_bias);
    const __m512i v = load_group512<kSignBias>(from + stride, sign_bias);
    dot_u8s8_512(sums[2 * i], u, w);
    dot_u8s8_512(sums[2 * i + 1], v, w);
    dot_u8s8_512(halves[i], _mm512_mask_blend_epi32(kSecondRow, u, v), half_w);
  }
}

// What the tiles of a product have in common. half_channels: of the channels after the first 16.
template <typename Epilogue>
struct ThreeHalves {
  OutputBytes bytes;
  Epilogue epilogue, half_epilogue;
  __m512i bias, half_bias, sign_bias;
  __mmask32 mask;  // of the channels

  ThreeHalves(const Gemm& g, const TwiceHalf& half_channels, uint32_t first_channel)
      : bytes(g),
        epilogue(g, first_channel),
        half_epilogue(half_channels, 0),
        bias(_mm512_loadu_si512(g.bias + first_channel)),
        half_bias(_mm512_broadcast_i64x4(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(g.bias + first_channel + 16)))),
        sign_bias(_mm512_set1_epi8(static_cast<char>(g.sign_bias))),
        mask(static_cast<__mmask32>(mask64(g.num_channels - first_channel))) {}
};

// Blocks `block` and the next one, the last, of all rows, kThreeHalvesRows at least; the last tile may begin
// among rows that are done.
template <typename Epilogue, bool kSignBias>
__attribute__((noinline)) void gemm_three_halves512(const Gemm& g, uint32_t block) {
  constexpr uint32_t kRows = kThreeHalvesRows;
  const uint32_t first_channel = block * 16;
  const size_t stride = g.row_stride;
  const TwiceHalf half_channels(g, first_channel + 16);
  const ThreeHalves<Epilogue> product(g, half_channels, first_channel);
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    GroupRuns<2> runs(g, block);
    __m512i sums[kRows], halves[kRows / 2];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) sums[i] = product.bias;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRows / 2; ++i) halves[i] = product.half_bias;
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
        add_three_halves512<kSignBias>(at, stride, weights, runs.block_bytes, product.sign_bias, sums,
                                       halves);
      }
      runs.weights = weights;
    } while (runs.advance(g, block));
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) sums[i] = product.epilogue.outputs(sums[i]);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kRows / 2; ++i) halves[i] = product.half_epilogue.outputs(halves[i]);
    if constexpr (kProductAddsResidual) {
      if (g.residual != nullptr) {
        store_three_half_sums512(g, sums, halves, row, first_channel);
        continue;
      }
    }
    store_three_halves512(product.bytes, g.first_out + row * g.out_stride + first_channel, g.out_stride,
                          product.mask, sums, halves);
  }
}

// Adds the products of a rest of a weight to the sums of the one block that has it: a group of four bytes for
// both blocks would take more than twice as many.
template <bool kSignBias>
__attribute__((always_inline)) inline void add_rest_to_three_halves512(
    const GemmRest& rest, uint32_t block, const uint8_t* from, size_t stride, __m512i sign_bias,
    __m512i (&sums)[kThreeHalvesRows], __m512i (&halves)[kThreeHalvesRows / 2]) {
  const int8_t* weights = rest.weights_from(0);
  if (rest.block == block) {
    const __m512i w = _mm512_loadu_si512(weights);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kThreeHalvesRows; ++i)
      dot_u8s8_512(sums[i], load_group512<kSignBias>(from + i * stride, sign_bias), w);
  } else if (rest.block == block + 1) {
    const __m512i w = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights)));
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kThreeHalvesRows / 2; ++i) {
      const __m512i u = load_group512<kSignBias>(from + 2 * i * stride, sign_bias);
      const __m512i v = load_group512<kSignBias>(from + (2 * i + 1) * stride, sign_bias);
      dot_u8s8_512(halves[i], _mm512_mask_blend_epi32(kSecondRow, u, v), w);
    }
  }
}

// The same of products of few bytes: the outputs of a tile are made between the products of the next
// one (gemm_stream_avx512vnni.h). What is before the first tile is written to the first rows, too, and then
// written over.
template <typename Epilogue, bool kSignBias>
__attribute__((noinline)) void stream_three_halves512(const Gemm& g, uint32_t block) {
  constexpr uint32_t kRows = kThreeHalvesRows;
  const uint32_t first_channel = block * 16;
  const size_t stride = g.row_stride, out_stride = g.out_stride;
  const TwiceHalf half_channels(g, first_channel + 16);
  const ThreeHalves<Epilogue> product(g, half_channels, first_channel);
  const uint8_t* const first_row = g.first_row;
  uint8_t* const first_out = g.first_out + first_channel;
  const uint32_t num_rows = g.num_rows;
  const GroupRuns<2, false> all_runs(g, block);
  __m512i before[kRows], halves_before[kRows / 2], packed_halves = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kRows; ++i) before[i] = halves_before[i / 2] = _mm512_setzero_si512();

  const auto finish_halves = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) halves_before[i] = product.half_epilogue.outputs(halves_before[i]);
    packed_halves =
        product.bytes.pack_lanes(halves_before[0], halves_before[1], halves_before[2], halves_before[3]);
  };
  const auto finish_four = [&](uint32_t p, uint8_t * out) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) before[p + i] = product.epilogue.outputs(before[p + i]);
    store_four_halves512(out + p * out_stride, out_stride, product.mask, p,
                         product.bytes.pack_lanes(before[p], before[p + 1], before[p + 2], before[p + 3]),
                         packed_halves);
  };

  uint8_t* out_before = first_out;
  for (uint32_t p = 0; p < num_rows; p += kRows) {
    const uint32_t row = p + kRows <= num_rows ? p : num_rows - kRows;
    const uint8_t* const rows = first_row + row * stride;
    __m512i sums[kRows], halves[kRows / 2];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) sums[i] = product.bias, halves[i / 2] = product.half_bias;
    GroupRuns<2, false> runs = all_runs;
    const auto add_group = [&]() __attribute__((always_inline)) {
      add_three_halves512<kSignBias>(rows + runs.at, stride, runs.weights, runs.block_bytes,
                                     product.sign_bias, sums, halves);
      runs.at += 4, runs.weights += 64;
    };
    add_group();
    finish_halves();
    add_group();
    finish_four(0, out_before);
    add_group();
    finish_four(4, out_before);
    do {
      while (runs.at != runs.end) add_group();
    } while (runs.advance(g, block));
    for (uint32_t r = 0; r < g.num_rests; ++r) {
      add_rest_to_three_halves512<kSignBias>(g.rests[r], block, rows + g.rests[r].at, stride,
                                             product.sign_bias, sums, halves);
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kRows; ++i) before[i] = sums[i], halves_before[i / 2] = halves[i / 2];
    out_before = first_out + row * out_stride;
  }
  finish_halves();
  finish_four(0, out_before);
  finish_four(4, out_before);
}

// Whether it pays.
inline bool is_streamed_three_halves512(const Gemm& g) {
  return g.row_term == nullptr && g.residual == nullptr && is_short_product512(g);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_HALVES_AVX512VNNI_H_
