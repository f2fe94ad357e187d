// One row of a product (kernels/numeric/gemm.h), as of fully connected layers: the weights are read once, and
// what takes time is waiting, for them and for sums. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"

namespace qplan {
namespace {

// Blocks of 16 channels of a tile of one row.
constexpr uint32_t kRowBlocks = 8;

// Blocks [first_block, first_block + kBlocks) of one row. Where they are few, neighbouring groups of four
// bytes have sums of their own.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
__attribute__((noinline)) void gemm_row512(const Gemm& g, uint32_t row, uint32_t first_block) {
  constexpr uint32_t kParts = kBlocks <= 4 ? 2 : 1;
  const size_t num_k4 = tap_k4(g), block_bytes = g.num_taps * num_k4 * 64;
  const int8_t* weights = g.weights + first_block * block_bytes;
  const uint32_t first_channel = first_block * 16;
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  __m512i sums[kBlocks], others[kBlocks];
  begin_sums512<1, kBlocks>(g, row, first_channel, sums);
#pragma GCC unroll 8
  for (uint32_t b = 0; b < kBlocks; ++b) others[b] = _mm512_setzero_si512();
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const Rows<1> rows(g, row, t);
    size_t k = 0;
    for (; k + kParts <= num_k4; k += kParts, weights += kParts * 64) {
      add_products512<kSignBias, 1, kBlocks>(rows, k * 4, weights, block_bytes, sign_bias, sums);
      if (kParts == 2) {
        add_products512<kSignBias, 1, kBlocks>(rows, k * 4 + 4, weights + 64, block_bytes, sign_bias, others);
      }
    }
    if (k < num_k4) {
      add_products512<kSignBias, 1, kBlocks>(rows, k * 4, weights, block_bytes, sign_bias, sums);
      weights += 64;
    }
  }
#pragma GCC unroll 8
  for (uint32_t b = 0; b < kBlocks; ++b) {
    if (kParts == 2) sums[b] = _mm512_add_epi32(sums[b], others[b]);
    sums[b] = Epilogue(g, first_channel + b * 16).outputs(sums[b]);
  }
  constexpr uint32_t kStored = kBlocks < 4 ? kBlocks : 4;
#pragma GCC unroll 2
  for (uint32_t b = 0; b < kBlocks; b += kStored) {
    __m512i stored[kStored];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kStored; ++i) stored[i] = sums[b + i];
    if (kProductAddsResidual && g.residual != nullptr) {
      store_sums512<1, kStored>(g, stored, row, first_channel + b * 16);
    } else {
      TileStore512<kStored>(g, first_channel + b * 16).template store<1>(stored, row);
    }
  }
}

}  // namespace

// Products of few bytes (kernels/numeric/gemm.h): half of their time would be the epilogue, whose
// instructions are not those of the products. So the outputs of a tile are made between the products of the
// next one. Internal linkage only.

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
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
__attribute__((noinline)) void gemm_stream512(const Gemm& g, uint32_t num_rows, uint32_t first_block) {
  constexpr uint32_t kRows = kStreamSums / kBlocks;
  const size_t num_k4 = tap_k4(g), block_bytes = g.num_taps * num_k4 * 64;
  const uint32_t first_channel = first_block * 16;
  const TileStore512<kBlocks> store(g, first_channel);
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
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
      add_products512<kSignBias, kRows, kBlocks>(first_tap, part * 4, weights, block_bytes, sign_bias, sums);
      finish_part512<Epilogue, kBlocks>(g, store, before, part, row_before, first_channel);
    }
    for (size_t k = kStreamParts; k < num_k4; ++k, weights += 64) {
      add_products512<kSignBias, kRows, kBlocks>(first_tap, k * 4, weights, block_bytes, sign_bias, sums);
    }
    for (uint32_t t = 1; t < g.num_taps; ++t) {
      const Rows<kRows> tap(g, row, t);
      for (size_t k = 0; k < num_k4; ++k, weights += 64) {
        add_products512<kSignBias, kRows, kBlocks>(tap, k * 4, weights, block_bytes, sign_bias, sums);
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
