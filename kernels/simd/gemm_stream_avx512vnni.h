// Products of few bytes (kernels/numeric/gemm.h): half of their time would be the epilogue, whose
// instructions are not those of the products. So the outputs of a tile are made between the products of the
// next one. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/gemm_parts_avx512vnni.h"

namespace qplan {
namespace {

// Sums of a tile: those of the one before take as many registers. Four are finished at a time.
constexpr uint32_t kStreamSums = 12;
constexpr uint32_t kStreamParts = kStreamSums / 4;
// Groups of four bytes of a row, beyond which larger tiles are as fast.
constexpr size_t kMaxStreamK4 = 64;

// Whether it pays, with rows enough for a tile of any kind.
inline bool is_short_product512(const Gemm& g) {
  return g.rows == nullptr && g.num_rows >= kStreamSums && tap_k4(g) >= kStreamParts &&
         g.num_taps * size_t{tap_k4(g)} <= kMaxStreamK4;
}

// Sums 4 * part .. 4 * part + 3 of the tile that begins with first_row.
template <typename Epilogue, uint32_t kBlocks>
__attribute__((always_inline)) inline void finish_part512(const Gemm& g, const TileStore512<kBlocks>& store,
                                                          const __m512i (&sums)[kStreamSums], uint32_t part,
                                                          uint32_t first_row, uint32_t first_channel) {
  constexpr uint32_t kRows = 4 / kBlocks;
  __m512i outputs[4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    outputs[i] = Epilogue(g, first_channel + i % kBlocks * 16).outputs(sums[part * 4 + i]);
  }
  store.template store<kRows>(outputs, first_row + part * kRows);
}

// Rows that are streamed: not the last one, where a tile would have no other.
template <uint32_t kBlocks>
inline uint32_t stream_rows512(const Gemm& g) {
  return g.num_rows - (g.num_rows % (kStreamSums / kBlocks) == 1 ? 1 : 0);
}

// Rows [0, num_rows) by kBlocks blocks, one or two. What is before the first tile is written to the first
// rows, too, and then written over.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kBlocks>
__attribute__((noinline)) void gemm_stream512(const Gemm& g, uint32_t num_rows, uint32_t first_block) {
  constexpr uint32_t kRows = kStreamSums / kBlocks;
  const size_t num_k4 = tap_k4(g), block_bytes = g.num_taps * num_k4 * 64;
  const uint32_t first_channel = first_block * 16;
  const TileStore512<kBlocks> store(g, first_channel);
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(g.flip));
  uint32_t row_before = 0;
  __m512i before[kStreamSums];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kStreamSums; ++i) before[i] = _mm512_setzero_si512();
  for (uint32_t p = 0; p < num_rows; p += kRows) {
    const uint32_t row = p + kRows <= num_rows ? p : num_rows - kRows;
    const int8_t* weights = g.weights + first_block * block_bytes;
    __m512i sums[kStreamSums];
    begin_sums512<kRows, kBlocks>(g, row, first_channel, sums);
    const Rows<kRows> first_tap(g, row, 0);
#pragma GCC unroll 3
    for (uint32_t part = 0; part < kStreamParts; ++part, weights += 64) {
      add_products512<kFlip, kRows, kBlocks>(first_tap, part * 4, weights, block_bytes, flip, sums);
      finish_part512<Epilogue, kBlocks>(g, store, before, part, row_before, first_channel);
    }
    for (size_t k = kStreamParts; k < num_k4; ++k, weights += 64) {
      add_products512<kFlip, kRows, kBlocks>(first_tap, k * 4, weights, block_bytes, flip, sums);
    }
    for (uint32_t t = 1; t < g.num_taps; ++t) {
      const Rows<kRows> tap(g, row, t);
      for (size_t k = 0; k < num_k4; ++k, weights += 64) {
        add_products512<kFlip, kRows, kBlocks>(tap, k * 4, weights, block_bytes, flip, sums);
      }
    }
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kStreamSums; ++i) before[i] = sums[i];
    row_before = row;
  }
#pragma GCC unroll 3
  for (uint32_t part = 0; part < kStreamParts; ++part) {
    finish_part512<Epilogue, kBlocks>(g, store, before, part, row_before, first_channel);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_
