// Products of few bytes (kernels/numeric/gemm.h): half of their time would be the epilogue, whose
// instructions are not those of the products. So the outputs of a tile are made between the products of the
// next one. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"

namespace qplan {
namespace {

// Sums of a tile: those of the one before take as many registers. Four are finished at a time.
constexpr uint32_t kStreamSums = 12;
constexpr uint32_t kStreamParts = kStreamSums / 4;
// Groups of four bytes of a row, beyond which larger tiles are as fast.
constexpr uint32_t kMaxStreamK4 = 64;

// Whether it pays, with rows enough for a tile of any kind. Of listed rows no more than a seventh is to be
// computed twice.
inline bool is_short_product512(const Gemm& g) {
  if (tap_k4(g) < kStreamParts || g.num_taps * size_t{tap_k4(g)} > kMaxStreamK4) return false;
  if (g.rows == nullptr) return g.num_rows >= kStreamSums;
  const uint32_t computed = (g.even_rows + kStreamSums - 1) / kStreamSums * kStreamSums;
  return g.even_rows >= kStreamSums && computed - g.even_rows <= computed / 7;
}

// Rows that are streamed: not the last one, where a tile would have no other.
template <uint32_t kBlocks>
inline uint32_t stream_rows512(const Gemm& g) {
  return g.num_rows - (g.num_rows % (kStreamSums / kBlocks) == 1 ? 1 : 0);
}

// The epilogues of streams whose outputs may saturate where they are clamped, and of these the one whose
// outputs have no zero point but the lowest value.
template <typename Epilogue>
constexpr bool kStreamSaturates = false;
template <>
constexpr bool kStreamSaturates<PlainEpilogue> = true;
template <>
constexpr bool kStreamSaturates<SignedEpilogue> = true;
template <>
constexpr bool kStreamSaturates<F32eFractionEpilogue> = true;
template <typename Epilogue>
constexpr bool kStreamsFromLowest = false;
template <>
constexpr bool kStreamsFromLowest<PlainEpilogue> = true;

// Where outputs go. If kSaturates, all channels exist, and saturation is their clamp: products of 16 bytes to
// 96 channels then take a tenth less (Zen 5).
template <typename Epilogue, uint32_t kBlocks, bool kSaturates>
class StreamStore512 {
 public:
  explicit StreamStore512(const TileStore512<kBlocks>& store)
      : store_(store),
        zero_point_(_mm512_add_epi16(store.bytes.zero_point,
                                     _mm512_set1_epi16(store.bytes.is_signed ? -INT8_MIN : 0))) {}

  static bool takes(const TileStore512<kBlocks>& store) {
    return !kSaturates || (store.whole && !store.bytes.clamps && (!kFromLowest || store.bytes.from_lowest));
  }

  uint8_t* row(uint32_t p) const { return store_.first + p * store_.stride; }
  size_t stride() const { return store_.stride; }

  // 4 / kBlocks rows.
  __attribute__((always_inline)) void store(uint8_t* out, const __m512i (&four)[4]) const {
    if constexpr (kSaturates) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      __m512i ab = _mm512_packs_epi32(four[0], four[1]), cd = _mm512_packs_epi32(four[2], four[3]);
      if (!kFromLowest) {
        ab = _mm512_adds_epi16(ab, zero_point_);
        cd = _mm512_adds_epi16(cd, zero_point_);
      }
      const __m512i lanes = _mm512_xor_si512(_mm512_packus_epi16(ab, cd), store_.bytes.lowest);
      const __m512i packed = _mm512_permutexvar_epi32(order, lanes);
      if (kBlocks == 1 && store_.is_contiguous) {
        _mm512_storeu_si512(out, packed);
      } else if (kBlocks == 2) {
        store_rows256(out, store_.stride, true, 0, packed, 2);
      } else {
        store_rows128(out, store_.stride, true, 0, packed, 4);
      }
    } else {
      store_.store_four(out, four, 4 / kBlocks);
    }
  }

 private:
  static constexpr bool kFromLowest = kStreamsFromLowest<Epilogue>;
  TileStore512<kBlocks> store_;
  __m512i zero_point_;  // int16, of uint8
};

// The products of a rest of a weight with the one of several blocks that has it: where products are few,
// those with the zeros of the others would be many.
template <bool kSignBias, uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void add_rest512(const GemmRest& rest, const EvenRows512<kRows>& rows,
                                                       uint32_t first_block, __m512i sign_bias,
                                                       __m512i (&sums)[kRows * kBlocks]) {
#pragma GCC unroll 2
  for (uint32_t b = 0; b < kBlocks; ++b) {
    if (rest.block != first_block + b) continue;
    __m512i own[kRows];
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) own[p] = sums[p * kBlocks + b];
    add_products512<kSignBias, kRows, 1>(rows, rest.at, rest.weights_from(0), 0, sign_bias, own);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) sums[p * kBlocks + b] = own[p];
  }
}

// Rows [0, num_rows) by kBlocks blocks, one or two. What is before the first tile is written to the first
// rows, too, and then written over. kHasMore: than products of taps, a row_term or rests of weights; without,
// products of 16 bytes to 96 channels take 3 % less.
// kInRuns: rows are listed, in runs at one distance (Gemm::even_rows).
template <typename Epilogue, bool kSignBias, uint32_t kBlocks, bool kSaturates, bool kHasMore, bool kInRuns>
__attribute__((noinline)) void gemm_stream512(const Gemm& g, uint32_t num_rows, uint32_t first_block) {
  constexpr uint32_t kRows = kStreamSums / kBlocks, kFinished = 4 / kBlocks;
  constexpr bool kRestsAreRuns = kHasMore && kBlocks == 1;
  const uint32_t first_channel = first_block * 16;
  // Copies, because a store of bytes may change what g refers to, as far as the compiler knows.
  const StreamStore512<Epilogue, kBlocks, kSaturates> store(TileStore512<kBlocks>(g, first_channel));
  const GroupRuns<kBlocks, kRestsAreRuns> all_runs(g, first_block);
  const size_t stride = g.row_stride;
  const uint8_t* const first_row = g.first_row;
  const int32_t* const row_term = g.row_term;
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  const Epilogue epilogues[2] = {{g, first_channel}, {g, first_channel + (kBlocks - 1) * 16}};
  const __m512i biases[2] = {_mm512_loadu_si512(g.bias + first_channel),
                             _mm512_loadu_si512(g.bias + first_channel + (kBlocks - 1) * 16)};
  __m512i before[kStreamSums];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kStreamSums; ++i) before[i] = _mm512_setzero_si512();

  const auto finish_part = [&](uint32_t part, uint8_t * first_out) __attribute__((always_inline)) {
    __m512i outputs[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) outputs[i] = epilogues[i % kBlocks].outputs(before[part * 4 + i]);
    store.store(first_out + part * kFinished * store.stride(), outputs);
  };

  uint8_t* out_before = store.row(0);
  const uint8_t* const* const listed = g.rows;
  const uint32_t run_rows = kInRuns ? g.even_rows : num_rows;
  for (uint32_t run = 0, p = 0; run < num_rows;) {
    const uint32_t row = run + (p + kRows <= run_rows ? p : run_rows - kRows);
    p += kRows;
    if (p >= run_rows) p = 0, run += run_rows;
    const EvenRows512<kRows> rows(kInRuns ? listed[row] : first_row + row * stride, stride);
    __m512i sums[kStreamSums];
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kStreamSums; ++i) sums[i] = biases[i % kBlocks];
    if (kHasMore && row_term != nullptr) {
#pragma GCC unroll 16
      for (uint32_t i = 0; i < kStreamSums; ++i) {
        sums[i] = _mm512_add_epi32(sums[i], _mm512_set1_epi32(row_term[row + i / kBlocks]));
      }
    }
    GroupRuns<kBlocks, kRestsAreRuns> runs = all_runs;
#pragma GCC unroll 3
    for (uint32_t part = 0; part < kStreamParts; ++part, runs.at += 4, runs.weights += 64) {
      add_products512<kSignBias, kRows, kBlocks>(rows, runs.at, runs.weights, runs.block_bytes, sign_bias,
                                                 sums);
      finish_part(part, out_before);
    }
    do {
      for (; runs.at != runs.end; runs.at += 4, runs.weights += 64) {
        add_products512<kSignBias, kRows, kBlocks>(rows, runs.at, runs.weights, runs.block_bytes, sign_bias,
                                                   sums);
      }
    } while (runs.advance(g, first_block));
    for (uint32_t r = 0; kHasMore && !kRestsAreRuns && r < g.num_rests; ++r)
      add_rest512<kSignBias, kRows, kBlocks>(g.rests[r], rows, first_block, sign_bias, sums);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kStreamSums; ++i) before[i] = sums[i];
    out_before = store.row(row);
  }
#pragma GCC unroll 3
  for (uint32_t part = 0; part < kStreamParts; ++part) finish_part(part, out_before);
}

// All rows by kBlocks blocks.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
inline void gemm_short512(const Gemm& g, uint32_t first_block) {
  constexpr uint32_t kStreamed = kBlocks == 1 ? 1 : 2;
  const uint32_t end = stream_rows512<kStreamed>(g);
  for (uint32_t b = first_block; b < first_block + kBlocks; b += kStreamed) {
    if constexpr (kStreamSaturates<Epilogue>) {
      if (StreamStore512<Epilogue, kStreamed, true>::takes(TileStore512<kStreamed>(g, b * 16))) {
        g.row_term != nullptr || has_rests(g, b, kStreamed)
            ? gemm_stream512<Epilogue, kSignBias, kStreamed, true, true, false>(g, end, b)
            : gemm_stream512<Epilogue, kSignBias, kStreamed, true, false, false>(g, end, b);
        continue;
      }
    }
    gemm_stream512<Epilogue, kSignBias, kStreamed, false, true, false>(g, end, b);
  }
  if (end < g.num_rows) gemm_row512<Epilogue, Rows, kSignBias, kBlocks>(g, end, first_block);
}

// Listed rows of one block; false where that is left to tiles: what few layers have is not worth a function.
template <typename Epilogue>
inline bool gemm_short_runs512(const Gemm& g, uint32_t block) {
  if constexpr (kStreamSaturates<Epilogue>) {
    if (g.row_term == nullptr && g.residual == nullptr && is_short_product512(g) && !has_rests(g, block, 1) &&
        StreamStore512<Epilogue, 1, true>::takes(TileStore512<1>(g, block * 16))) {
      gemm_stream512<Epilogue, false, 1, true, false, true>(g, g.num_rows, block);
      return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_STREAM_AVX512VNNI_H_
