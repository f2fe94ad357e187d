// kernels/numeric/gemm.h with one vpdpbusd for 64 products. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_fours_avx512vnni.h"
#include "kernels/simd/gemm_halves_avx512vnni.h"
#include "kernels/simd/gemm_narrow_avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"
#include "kernels/simd/gemm_stream_avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"

namespace qplan {
namespace {

// kRows rows by kBlocks blocks of 16 channels. One epilogue a function: what depends on the contract is
// decided outside. Not inlined: its loop needs all registers.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kRows, uint32_t kBlocks>
__attribute__((noinline)) void gemm_tile512(const Gemm& g, uint32_t first_row, uint32_t first_block) {
  GroupRuns<kBlocks> runs(g, first_block);
  const uint32_t first_channel = first_block * 16;
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  __m512i sums[kRows * kBlocks];
  begin_sums512<kRows, kBlocks>(g, first_row, first_channel, sums);
  do {
    read_again();
    const Rows<kRows> rows(g, first_row);
    const size_t end = runs.end, block_bytes = runs.block_bytes;
    const int8_t* weights = runs.weights;
    for (size_t at = runs.at; at != end; at += 4, weights += 64) {
      add_products512<kSignBias, kRows, kBlocks>(rows, at, weights, block_bytes, sign_bias, sums);
    }
    runs.weights = weights;
  } while (runs.advance(g, first_block));
#pragma GCC unroll 16
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const Epilogue epilogue(g, first_channel + b * 16);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) sums[p * kBlocks + b] = epilogue.outputs(sums[p * kBlocks + b]);
  }
  if (kProductAddsResidual && g.residual != nullptr)
    return store_sums512<kRows, kBlocks>(g, sums, first_row, first_channel);
  TileStore512<kBlocks>(g, first_channel).template store<kRows>(sums, first_row);
}

// All rows, of which there are at least kRows. Where rows are listed, what a multiple of six leaves is one or
// two tiles of four: of 56 rows, seven of a hundred were computed twice. Else the last tile may begin among
// rows that are done, unless it would have a single row that is not.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kRows, uint32_t kBlocks>
inline void gemm_full_tiles512(const Gemm& g, uint32_t first_block) {
  constexpr uint32_t kFew = 4;
  constexpr bool kHasFew = kRows == 6 && kBlocks > 1 && Epilogue::kIsFloat && !Rows<1>::kAreEven;
  const uint32_t rows = g.num_rows, left = rows % kRows;
  const bool ends_in_few = kHasFew && left >= 2 && left <= kFew;
  const uint32_t end = rows - (left == 1 ? 1 : !ends_in_few ? 0 : left == 2 ? 2 * kFew : left);
  for (uint32_t p = 0; p < end; p += kRows) {
    const uint32_t row = p + kRows <= end ? p : end - kRows;
    gemm_tile512<Epilogue, Rows, kSignBias, kRows, kBlocks>(g, row, first_block);
  }
  if constexpr (kHasFew) {
    // Three rows that are left begin with the one before them.
    for (uint32_t p = left == 2 ? end : rows - kFew; ends_in_few && p < rows; p += kFew) {
      gemm_tile512<Epilogue, Rows, kSignBias, kFew, kBlocks>(g, p, first_block);
    }
  }
  if (left == 1) gemm_row512<Epilogue, Rows, kSignBias, kBlocks>(g, end, first_block);
}

// Listed rows in runs at one distance (Gemm::even_rows), by one block; the last tile of a run may begin among
// rows that are done.
template <typename Epilogue, uint32_t kRows>
inline void gemm_runs512(const Gemm& g, uint32_t block) {
  for (uint32_t run = 0; run < g.num_rows; run += g.even_rows) {
    for (uint32_t p = 0; p < g.even_rows; p += kRows) {
      const uint32_t row = p + kRows <= g.even_rows ? p : g.even_rows - kRows;
      gemm_tile512<Epilogue, RunRows512, false, kRows, 1>(g, run + row, block);
    }
  }
}

// Rows of a tile of gemm_runs512, or 0 where tiles of any rows are better: eight sums wait for each other in
// turn, but no more than a seventh of the rows is to be computed twice.
inline uint32_t run_tile_rows512(const Gemm& g) {
  for (uint32_t rows = 16; rows >= 12; rows -= 4) {
    if (g.even_rows < rows) continue;
    const uint32_t computed = (g.even_rows + rows - 1) / rows * rows;
    if (computed - g.even_rows <= computed / 7) return rows;
  }
  return 0;
}

// One row alone waits for its own sums, and those of six of one block hardly suffice; more than eight listed
// ones have no registers for where they are.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
inline void gemm_tiles512(const Gemm& g, uint32_t first_block) {
  if constexpr (kHasFours512<Epilogue> && !Rows<1>::kAreEven && kBlocks == 1) {
    if (is_fours_product512(g, first_block * 16)) return gemm_fours512<Epilogue>(g, first_block);
  }
  if constexpr (Epilogue::kIsFloat && Rows<1>::kAreEven) {
    if (is_narrow_product512(g, (first_block + kBlocks - 1) * 16)) {
      for (uint32_t b = 0; b < kBlocks; ++b) gemm_narrow512<Epilogue, kSignBias>(g, first_block + b);
      return;
    }
  }
  if constexpr (Epilogue::kIsFloat && Rows<1>::kAreEven && !(kSignBias && kBlocks == 1)) {
    if (g.residual == nullptr && is_short_product512(g)) {
      return gemm_short512<Epilogue, Rows, kSignBias, kBlocks>(g, first_block);
    }
  }
  if constexpr (Epilogue::kIsFloat && !Rows<1>::kAreEven && kBlocks == 1) {
    if (gemm_short_runs512<Epilogue>(g, first_block)) return;
    const uint32_t rows = run_tile_rows512(g);
    if (rows == 16) return gemm_runs512<Epilogue, 16>(g, first_block);
    if (rows == 12) return gemm_runs512<Epilogue, 12>(g, first_block);
  }
  constexpr uint32_t kRows = kBlocks > 1 ? 6 : Rows<1>::kAreEven ? 12 : 8;
  if (g.num_rows >= kRows) {
    gemm_full_tiles512<Epilogue, Rows, kSignBias, kRows, kBlocks>(g, first_block);
  } else if (g.num_rows >= 6) {
    gemm_full_tiles512<Epilogue, Rows, kSignBias, 6, kBlocks>(g, first_block);
  } else {
    for (uint32_t p = 0; p < g.num_rows; ++p) {
      gemm_row512<Epilogue, Rows, kSignBias, kBlocks>(g, p, first_block);
    }
  }
}

// kRowBlocks are for one row alone.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
inline void gemm_any_rows512(const Gemm& g, uint32_t first_block) {
  if constexpr (kBlocks == kRowBlocks) {
    gemm_row512<Epilogue, Rows, kSignBias, kBlocks>(g, 0, first_block);
  } else {
    gemm_tiles512<Epilogue, Rows, kSignBias, kBlocks>(g, first_block);
  }
}

// Listed rows are those of a band, which holds uint8.
template <typename Epilogue, uint32_t kBlocks>
inline void gemm_rows512(const Gemm& g, uint32_t first_block) {
  if (g.rows != nullptr) {
    gemm_any_rows512<Epilogue, ListedRows512, false, kBlocks>(g, first_block);
  } else if (Epilogue::kIsFloat && g.sign_bias == 0) {
    gemm_any_rows512<Epilogue, EvenRows512, false, kBlocks>(g, first_block);
  } else {
    gemm_any_rows512<Epilogue, EvenRows512, true, kBlocks>(g, first_block);
  }
}

// Whether blocks [b, b + count) have the epilogue of float: a proof or, under F32E, scales that
// are_fractions.
inline bool has_form512(const Gemm& g, uint32_t b, uint32_t count) {
  if (g.contract != Contract::kF32e)
    return g.float_epilogue != FloatEpilogue::kNone && groups_have_form(g, b, count);
  __mmask16 above = 0;
  for (const uint32_t end = b + count; b < end; ++b) {
    const __m512 scales = _mm512_loadu_ps(g.scale + b * 16);
    above |=
        _mm512_mask_cmp_ps_mask(mask16(g.num_channels - b * 16), scales, _mm512_set1_ps(1.0f), _CMP_NLT_UQ);
  }
  return above == 0;
}

// The others. TFL1 and F32E with larger scales are rare: one small tile each.
template <uint32_t kBlocks>
inline void gemm_rare_rows512(const Gemm& g, uint32_t b) {
  if (g.contract == Contract::kTfl2) return gemm_rows512<Tfl2Epilogue, kBlocks>(g, b);
  for (uint32_t end = b + kBlocks; b < end; ++b) {
    g.contract == Contract::kF32e ? gemm_rows512<F32eEpilogue, 1>(g, b) : gemm_rows512<Tfl1Epilogue, 1>(g, b);
  }
}

template <typename Epilogue, uint32_t kBlocks>
inline uint32_t gemm_blocks512(const Gemm& g, uint32_t b, uint32_t end_block) {
  for (; b + kBlocks <= end_block; b += kBlocks) {
    if (has_form512(g, b, kBlocks)) {
      gemm_rows512<Epilogue, kBlocks>(g, b);
    } else if constexpr (kBlocks == kRowBlocks) {
      gemm_blocks512<Epilogue, kBlocks / 2>(g, b, b + kBlocks);
    } else {
      gemm_rare_rows512<kBlocks>(g, b);
    }
  }
  return b;
}

// The last block as a half, if it is one, in float: how many blocks were done, the one before it, too, where
// rows are at one distance.
template <typename Epilogue>
inline uint32_t gemm_half_block512(const Gemm& g, uint32_t first_block, uint32_t block) {
  if (g.num_channels - block * 16 > kHalfBlock || g.num_rows < 16) return 0;
  if (!has_form512(g, block, 1)) return 0;
  if (g.rows == nullptr && block > first_block && has_form512(g, block - 1, 1)) {
    if constexpr (kStreamsFromLowest<Epilogue>) {  // others have no registers for it
      if (is_streamed_three_halves512(g)) {
        g.sign_bias == 0 ? stream_three_halves512<Epilogue, false>(g, block - 1)
                         : stream_three_halves512<Epilogue, true>(g, block - 1);
        return 2;
      }
    }
    g.sign_bias == 0 ? gemm_three_halves512<Epilogue, false>(g, block - 1)
                     : gemm_three_halves512<Epilogue, true>(g, block - 1);
    return 2;
  }
  if (g.residual != nullptr) return 0;
  if (is_narrow_half_product512(g)) {
    g.sign_bias == 0 ? gemm_narrow_half512<Epilogue, false>(g, block)
                     : gemm_narrow_half512<Epilogue, true>(g, block);
  } else if (g.rows != nullptr) {
    gemm_half_tiles512<Epilogue, ListedRows512, false, 8>(g, block);
  } else if (g.sign_bias == 0) {
    gemm_half_tiles512<Epilogue, EvenRows512, false, 16>(g, block);
  } else {
    gemm_half_tiles512<Epilogue, EvenRows512, true, 16>(g, block);
  }
  return 1;
}

template <typename Epilogue>
inline void gemm_all_blocks512(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  if (first_block < end_block) end_block -= gemm_half_block512<Epilogue>(g, first_block, end_block - 1);
  uint32_t b = first_block;
  if (g.num_rows == 1) b = gemm_blocks512<Epilogue, kRowBlocks>(g, b, end_block);
  b = gemm_blocks512<Epilogue, 4>(g, b, end_block);
  b = gemm_blocks512<Epilogue, 2>(g, b, end_block);
  gemm_blocks512<Epilogue, 1>(g, b, end_block);
}

// Channels of blocks [first_block, end_block).
// Sums as outputs are left to the variants of the instruction sets below.
constexpr bool kProductMakesSums = false;
constexpr bool kProductTakesEights = false;
constexpr bool kProductAddsRests = true;

inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  if (g.contract == Contract::kF32e) {
    gemm_all_blocks512<F32eFractionEpilogue>(g, first_block, end_block);
  } else if (g.float_epilogue == FloatEpilogue::kPlain) {
    gemm_all_blocks512<PlainEpilogue>(g, first_block, end_block);
  } else {
    gemm_all_blocks512<SignedEpilogue>(g, first_block, end_block);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_AVX512VNNI_H_
