// Columns of an image for depthwise_columns_avx512vnni.cc: four rows of bytes become the four bytes of 32-bit
// lanes. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_GATHER_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_GATHER_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"

namespace qplan {
namespace {

struct Four {
  __m512i v[4];
};

// Four rows of bytes into lanes of four bytes.
__attribute__((always_inline)) inline Four gather_rows(__m512i r0, __m512i r1, __m512i r2, __m512i r3) {
  const __m512i low01 = _mm512_unpacklo_epi8(r0, r1), high01 = _mm512_unpackhi_epi8(r0, r1);
  const __m512i low23 = _mm512_unpacklo_epi8(r2, r3), high23 = _mm512_unpackhi_epi8(r2, r3);
  return {{_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
           _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)}};
}

__attribute__((always_inline)) inline void store_four(void* to, const Four& four) {
  auto* vectors = static_cast<__m512i*>(to);
  _mm512_store_si512(vectors, four.v[0]);
  _mm512_store_si512(vectors + 1, four.v[1]);
  _mm512_store_si512(vectors + 2, four.v[2]);
  _mm512_store_si512(vectors + 3, four.v[3]);
}

constexpr uint32_t kMaxRows = 6;

// A row of one column of a block; at: one address for each group of rows.
template <uint32_t kGroups, bool kWhole>
__attribute__((always_inline)) inline __m512i load_row(const uint8_t* const* at, size_t offset,
                                                       __mmask64 mask) {
  if (kGroups == 1)
    return kWhole ? _mm512_loadu_si512(at[0] + offset) : _mm512_maskz_loadu_epi8(mask, at[0] + offset);
  if (kGroups == 2) {
    const auto load = [&](uint32_t group) {
      const uint8_t* from = at[group] + offset;
      return kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                    : _mm256_maskz_loadu_epi8(static_cast<__mmask32>(mask), from);
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(load(0)), load(1), 1);
  }
  const auto load = [&](uint32_t group) {
    const uint8_t* from = at[group] + offset;
    return kWhole ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))
                  : _mm_maskz_loadu_epi8(static_cast<__mmask16>(mask), from);
  };
  __m512i v = _mm512_castsi128_si512(load(0));
  v = _mm512_inserti32x4(v, load(1), 1);
  v = _mm512_inserti32x4(v, load(2), 2);
  return _mm512_inserti32x4(v, load(3), 3);
}

// Columns [first, end) of a phase of rows of the image; 0 to num_columns - 1 are inside.
struct ColumnRun {
  const uint8_t* rows[kMaxRows * 4];  // [row][group of rows]: where column 0 is
  size_t step;                        // bytes from a column to the next
  int64_t num_columns;
  int64_t first;
  int64_t end;
};

template <uint32_t kGroups, uint32_t kRows, bool kWhole, bool kSigned>
void gather_columns(const DepthwiseConv2dArgs& a, const ColumnRun& run, __mmask64 mask, int8_t* to) {
  constexpr uint32_t kDwords = (kRows + 3) / 4;
  const __m512i sign_bias = _mm512_set1_epi8(kSigned ? INT8_MIN : 0);
  const __m512i outside = _mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(a.pad_value)), sign_bias);
  for (int64_t c = run.first; c < run.end; ++c, to += kDwords * 256) {
    if (c < 0 || c >= run.num_columns) {
      for (uint32_t d = 0; d < kDwords; ++d) store_four(to + 256 * d, {{outside, outside, outside, outside}});
      continue;
    }
    const size_t offset = static_cast<size_t>(c) * run.step;
    __m512i rows[kDwords * 4];
#pragma GCC unroll 16
    for (uint32_t r = 0; r < kDwords * 4; ++r) {
      // What stands in the place of a row that is not there has weights of zero.
      rows[r] = r < kRows ? load_row<kGroups, kWhole>(run.rows + r * kGroups, offset, mask) : rows[r - 1];
      if (kSigned && r < kRows) rows[r] = _mm512_xor_si512(rows[r], sign_bias);
    }
#pragma GCC unroll 16
    for (uint32_t d = 0; d < kDwords; ++d)
      store_four(to + 256 * d, gather_rows(rows[4 * d], rows[4 * d + 1], rows[4 * d + 2], rows[4 * d + 3]));
  }
}

using Gather = void (*)(const DepthwiseConv2dArgs&, const ColumnRun&, __mmask64, int8_t*);

template <uint32_t kGroups, uint32_t kRows>
Gather gather_of_groups(const DepthwiseConv2dArgs& a, const Block& block) {
  const bool is_signed = a.input_dtype == Dtype::kS8;
  if (block.count == 64 / kGroups)
    return is_signed ? gather_columns<kGroups, kRows, true, true>
                     : gather_columns<kGroups, kRows, true, false>;
  return is_signed ? gather_columns<kGroups, kRows, false, true>
                   : gather_columns<kGroups, kRows, false, false>;
}

// How the columns of a block are gathered.
template <uint32_t kRows>
Gather gather_of(const DepthwiseConv2dArgs& a, const Block& block) {
  if (block.groups == 1) return gather_of_groups<1, kRows>(a, block);
  return block.groups == 2 ? gather_of_groups<2, kRows>(a, block) : gather_of_groups<4, kRows>(a, block);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_GATHER_AVX512VNNI_H_
