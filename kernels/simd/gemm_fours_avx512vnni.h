// Products of windows of pixels of 16 bytes with 16 channels (kernels/numeric/gemm.h). A vector of sums has
// four channels of four rows: a load and four shuffles give the bytes for 16 products, where sums of 16
// channels of one row would take a load for each. What makes outputs of sums comes between the products of
// the next tile, because its instructions are not those of the products. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_FOURS_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_FOURS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/gemm_narrow_avx512vnni.h"
#include "kernels/simd/gemm_parts_avx512vnni.h"

namespace qplan {
namespace {

// Rows of a tile; as many vectors of sums: vector 4 i + j has channels 4 j to 4 j + 3 of rows 4 i to 4 i + 3.
constexpr uint32_t kFoursRows = 16;
// A tile takes its rows in parts of as many bytes, which are as far from each other. After each of the first
// parts, two vectors of the sums before become outputs.
constexpr uint32_t kPartBytes = 16;
constexpr uint32_t kPairs = kFoursRows / 2;
constexpr uint32_t kMaxFoursParts = 36;

// What a tile reads of the product, again and again, because there are no registers for it.
struct FoursProduct {
  const uint8_t* const* rows;
  uint32_t num_rows, even_rows;
  uint32_t num_parts;
  size_t parts[kMaxFoursParts];  // where each begins, from the row's start
  const int8_t* weights;
  const int32_t* bias;
  const int32_t* row_term;
  uint8_t* out;
  size_t out_stride;
  const uint8_t* residual;  // beside out
  OutputBytes bytes;
  FourTimes channels;
  alignas(64) int32_t sums[kFoursRows][16];  // of the tile before

  FoursProduct(const Gemm& g, uint32_t block)
      : rows(g.rows),
        num_rows(g.num_rows),
        even_rows(g.even_rows),
        num_parts(0),
        weights(g.weights + block * product_bytes(g)),
        bias(g.bias + block * 16),
        row_term(g.row_term),
        out(g.first_out + block * 16),
        out_stride(g.out_stride),
        residual(g.residual == nullptr ? nullptr : g.residual->first + block * 16),
        bytes(g.residual == nullptr ? OutputBytes(g)
                                    : OutputBytes(SumBytes{0, g.residual->clamp_min, g.residual->clamp_max})),
        channels(g, block * 16) {
    for (uint32_t t = 0; t < g.num_taps; ++t) {
      for (size_t at = 0; at < g.tap_bytes; at += kPartBytes) parts[num_parts++] = g.tap_offsets[t] + at;
    }
  }
};

// ---- the residual ----

struct NoSum512 {
  explicit NoSum512(const Gemm&) {}
  template <typename Epilogue>
  __attribute__((always_inline)) __m512i sums(const Epilogue& epilogue, __m512i sums, const uint8_t*,
                                              uint32_t) const {
    return epilogue.outputs(sums);
  }
};

// As ResidualSum512, of four channels of four rows of 16, in fewer operations: outputs stay floats, and int8
// is read as 2^24 times its value, which the scale takes back.
template <bool kIsA>
class FoursSum512 {
 public:
  explicit FoursSum512(const Gemm& g)
      : clamp_min_(_mm512_set1_ps(static_cast<float>(g.clamp_min - g.output_zero_point))),
        clamp_max_(_mm512_set1_ps(static_cast<float>(g.clamp_max - g.output_zero_point))),
        zero_point_(_mm512_set1_ps(static_cast<float>(g.output_zero_point))),
        offset_(_mm512_set1_ps(g.residual->offset)) {
    // int8 is in the highest byte, so that its sign is that of the integer; uint8 in the lowest. -1: zero.
    const bool is_signed = g.residual->is_signed;
    const __m128i high = _mm_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3);
    const __m128i low = _mm_setr_epi8(0, -1, -1, -1, 1, -1, -1, -1, 2, -1, -1, -1, 3, -1, -1, -1);
    const __m512i first = _mm512_broadcast_i32x4(is_signed ? high : low);
    const __m512i next = _mm512_set1_epi32(is_signed ? 4 << 24 : 4);
    spread_[0] = first;
    for (uint32_t j = 1; j < 4; ++j) spread_[j] = _mm512_add_epi32(spread_[j - 1], next);
    const float unit = is_signed ? 0x1p-24f : 1.0f;
    scale1_ = _mm512_set1_ps(g.residual->scale1 * (kIsA ? unit : 1.0f));
    scale2_ = _mm512_set1_ps(g.residual->scale2 * (kIsA ? 1.0f : unit));
  }

  // Whether the scales may lose 2^24 without a loss of their bits.
  static bool takes(const GemmResidual& r) { return r.scale1 >= 0x1p-100f && r.scale2 >= 0x1p-100f; }

  // What is stored of sums of channels 4 j to 4 j + 3.
  template <typename Epilogue>
  __attribute__((always_inline)) __m512i sums(const Epilogue& epilogue, __m512i sums,
                                              const uint8_t* four_rows, uint32_t j) const {
    constexpr int kTowardsZero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
    const __m512 v = _mm512_roundscale_ps(epilogue.reals(sums), kTowardsZero);
    const __m512 output = _mm512_add_ps(_mm512_min_ps(_mm512_max_ps(v, clamp_min_), clamp_max_), zero_point_);
    const __m512 residual =
        _mm512_cvtepi32_ps(_mm512_shuffle_epi8(_mm512_loadu_si512(four_rows), spread_[j]));
    const __m512 a = kIsA ? residual : output, b = kIsA ? output : residual;
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(a, scale1_, _mm512_fmadd_ps(b, scale2_, offset_)));
  }

 private:
  __m512i spread_[4];
  __m512 clamp_min_, clamp_max_, zero_point_, scale1_, scale2_, offset_;
};

// ---- tiles ----

// Adds the products of group kGroup of four bytes of each row.
template <uint32_t kGroup>
__attribute__((always_inline)) inline void add_group512(const __m512i (&four)[4], const int8_t* weights,
                                                        __m512i (&sums)[kFoursRows]) {
  __m512i w[4];
#pragma GCC unroll 4
  for (uint32_t j = 0; j < 4; ++j) w[j] = broadcast_16_bytes(weights + kGroup * 64 + j * 16);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    const __m512i u = _mm512_shuffle_epi32(four[i], static_cast<_MM_PERM_ENUM>(kGroup * 0x55));
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) dot_u8s8_512(sums[i * 4 + j], u, w[j]);
  }
}

// Adds the products of a part, which begins at `at` in the first row.
__attribute__((always_inline)) inline void add_part512(const uint8_t* at, const int8_t* weights,
                                                       __m512i (&sums)[kFoursRows]) {
  __m512i four[4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) four[i] = _mm512_loadu_si512(at + i * 4 * kPartBytes);
  add_group512<0>(four, weights, sums);
  add_group512<1>(four, weights, sums);
  add_group512<2>(four, weights, sums);
  add_group512<3>(four, weights, sums);
}

__attribute__((always_inline)) inline void begin_fours512(const FoursProduct& g, uint32_t row,
                                                          __m512i (&sums)[kFoursRows]) {
#pragma GCC unroll 4
  for (uint32_t j = 0; j < 4; ++j) {
    const __m512i bias = broadcast_16_bytes(g.bias + j * 4);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) sums[i * 4 + j] = bias;
  }
  if (g.row_term == nullptr) return;
  const __m512i rows_of_lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    const __m128i terms = _mm_loadu_si128(reinterpret_cast<const __m128i*>(g.row_term + row + i * 4));
    const __m512i term = _mm512_permutexvar_epi32(rows_of_lanes, _mm512_castsi128_si512(terms));
#pragma GCC unroll 4
    for (uint32_t j = 0; j < 4; ++j) sums[i * 4 + j] = _mm512_add_epi32(sums[i * 4 + j], term);
  }
}

// Makes outputs of two vectors of the sums before, those of the rows from `row` on, in their place.
template <typename Epilogue, typename Sum>
__attribute__((always_inline)) inline void finish_pair512(FoursProduct& g, const Sum& sum, uint32_t row,
                                                          uint32_t pair) {
  const uint32_t j = pair / 2, i = pair % 2 * 2;
  const Epilogue epilogue(g.channels, j * 16);
  const uint8_t* residual = g.residual + (row + i * 4) * g.out_stride;
#pragma GCC unroll 2
  for (uint32_t n = 0; n < 2; ++n) {
    int32_t* at = g.sums[(i + n) * 4 + j];
    _mm512_store_si512(at, sum.sums(epilogue, _mm512_load_si512(at), residual + n * 64, j));
  }
}

inline void store_fours512(const FoursProduct& g, uint32_t row) {
  uint8_t* out = g.out + row * g.out_stride;
  for (uint32_t i = 0; i < kFoursRows; i += 4, out += 4 * g.out_stride) {
    const __m512i four =
        g.bytes.pack_lanes(_mm512_load_si512(g.sums[i]), _mm512_load_si512(g.sums[i + 1]),
                           _mm512_load_si512(g.sums[i + 2]), _mm512_load_si512(g.sums[i + 3]));
    if (g.out_stride == 16) {
      _mm512_storeu_si512(out, four);
    } else {
      store_rows128(out, g.out_stride, true, 0, four, 4);
    }
  }
}

// All rows; the last tile of a run may begin among rows that are done. What is before the first tile is
// written to the first rows, too, and then written over.
template <typename Epilogue, typename Sum>
__attribute__((noinline)) void gemm_fours_tiles512(FoursProduct& g, const Sum& sum) {
  uint32_t row_before = 0;
  for (uint32_t run = 0, p = 0; run < g.num_rows;) {
    const uint32_t row = run + (p + kFoursRows <= g.even_rows ? p : g.even_rows - kFoursRows);
    p += kFoursRows;
    if (p >= g.even_rows) p = 0, run += g.even_rows;
    __m512i sums[kFoursRows];
    begin_fours512(g, row, sums);
    const uint8_t* first = g.rows[row];
    const int8_t* weights = g.weights;
    uint32_t part = 0;
    for (; part < kPairs; ++part, weights += kPartBytes * 16) {
      add_part512(first + g.parts[part], weights, sums);
      finish_pair512<Epilogue>(g, sum, row_before, part);
    }
    store_fours512(g, row_before);
    read_again();
    for (; part < g.num_parts; ++part, weights += kPartBytes * 16) {
      add_part512(first + g.parts[part], weights, sums);
    }
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kFoursRows; ++i) _mm512_store_si512(g.sums[i], sums[i]);
    read_again();
    row_before = row;
  }
  for (uint32_t pair = 0; pair < kPairs; ++pair) finish_pair512<Epilogue>(g, sum, row_before, pair);
  store_fours512(g, row_before);
}

// The epilogues that there are tiles for: those of most products.
template <typename Epilogue>
constexpr bool kHasFours512 = false;
template <>
constexpr bool kHasFours512<PlainEpilogue> = true;
template <>
constexpr bool kHasFours512<SignedEpilogue> = true;

// Whether it pays for a block. No more than a seventh of the rows is computed twice.
inline bool is_fours_product512(const Gemm& g, uint32_t first_channel) {
  if (g.rows == nullptr || g.row_stride != kPartBytes || tap_k4(g) % 4 != 0 || g.num_rests != 0) return false;
  const uint32_t parts = tap_k4(g) / 4 * g.num_taps, rows = g.even_rows;
  const uint32_t computed = (rows + kFoursRows - 1) / kFoursRows * kFoursRows;
  return parts >= kPairs && parts <= kMaxFoursParts && rows >= kFoursRows &&
         computed - rows <= computed / 7 && g.num_channels - first_channel >= 16 &&
         (g.residual == nullptr || (g.num_channels == 16 && FoursSum512<true>::takes(*g.residual)));
}

template <typename Epilogue>
inline void gemm_fours512(const Gemm& g, uint32_t block) {
  FoursProduct product(g, block);
  if constexpr (kProductAddsResidual) {
    if (g.residual != nullptr) {
      return g.residual->is_a ? gemm_fours_tiles512<Epilogue>(product, FoursSum512<true>(g))
                              : gemm_fours_tiles512<Epilogue>(product, FoursSum512<false>(g));
    }
  }
  gemm_fours_tiles512<Epilogue>(product, NoSum512(g));
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_FOURS_AVX512VNNI_H_
