// One row of a product (kernels/numeric/gemm.h), as of fully connected layers: the weights are read once, and
// what takes time is waiting, for them and for sums. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_ROW_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_ROW_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"
#include "kernels/simd/gemm_residual_avx512vnni.h"

namespace qplan {
namespace {

// Blocks of 16 channels of a tile of one row.
constexpr uint32_t kRowBlocks = 8;

// Blocks [first_block, first_block + kBlocks) of one row. Where they are few, neighbouring groups of four
// bytes have sums of their own.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kBlocks>
__attribute__((noinline)) void gemm_row512(const Gemm& g, uint32_t row, uint32_t first_block) {
  constexpr uint32_t kParts = kBlocks <= 4 ? 2 : 1;
  const size_t num_k4 = tap_k4(g), block_bytes = g.num_taps * num_k4 * 64;
  const int8_t* weights = g.weights + first_block * block_bytes;
  const uint32_t first_channel = first_block * 16;
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(g.flip));
  __m512i sums[kBlocks], others[kBlocks];
  begin_sums512<1, kBlocks>(g, row, first_channel, sums);
#pragma GCC unroll 8
  for (uint32_t b = 0; b < kBlocks; ++b) others[b] = _mm512_setzero_si512();
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const Rows<1> rows(g, row, t);
    size_t k = 0;
    for (; k + kParts <= num_k4; k += kParts, weights += kParts * 64) {
      add_products512<kFlip, 1, kBlocks>(rows, k * 4, weights, block_bytes, flip, sums);
      if (kParts == 2) {
        add_products512<kFlip, 1, kBlocks>(rows, k * 4 + 4, weights + 64, block_bytes, flip, others);
      }
    }
    if (k < num_k4) {
      add_products512<kFlip, 1, kBlocks>(rows, k * 4, weights, block_bytes, flip, sums);
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
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_ROW_AVX512VNNI_H_
