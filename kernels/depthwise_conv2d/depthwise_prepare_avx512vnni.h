// What depthwise_columns_avx512vnni.cc needs of a block of channels, brought into the order of its vectors:
// weights and per-channel constants. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PREPARE_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PREPARE_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/depthwise_conv2d/depthwise_ways_avx512vnni.h"
#include "kernels/simd/avx512vnni.h"

namespace qplan {

// Columns of an image for depthwise_columns_avx512vnni.cc: four rows of bytes become the four bytes of 32-bit
// lanes.

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

// 64 bytes from `from`, or copies of its first 32, 16 or 8.
template <uint32_t kCopies>
__attribute__((always_inline)) inline __m512i load_weights(const int8_t* from) {
  if (kCopies == 1) return _mm512_loadu_si512(from);
  if (kCopies == 8) return _mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  if (kCopies == 2) return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// Part kPart of weights less their zero point: what saturates leaves a rest.
template <uint32_t kPart>
__attribute__((always_inline)) inline __m512i weights_part(__m512i w, __m512i zero_point) {
  const __m512i first = _mm512_subs_epi8(w, zero_point);
  if (kPart == 0) return first;
  // The rest is -127 to 128; 128 looks like -128 and is 127 + 1.
  const __m512i rest = _mm512_sub_epi8(_mm512_sub_epi8(w, zero_point), first);
  const __mmask64 is_128 = _mm512_cmpeq_epi8_mask(rest, _mm512_set1_epi8(INT8_MIN));
  return kPart == 1 ? _mm512_mask_mov_epi8(rest, is_128, _mm512_set1_epi8(127))
                    : _mm512_maskz_mov_epi8(is_128, _mm512_set1_epi8(1));
}

// One part of the weights. Bit 4 * kx + q: weights of vector q of column kx of the kernel need a further
// part.
template <uint32_t kKernel, uint32_t kRows, uint32_t kCopies, uint32_t kPart>
__attribute__((noinline)) uint32_t prepare_part(const DepthwiseConv2dArgs& a, const Block& block,
                                                int8_t* to) {
  const size_t stride = (size_t{a.output_c} + 15) / 16 * 16;
  const __m512i zero = _mm512_setzero_si512();
  const __m512i zero_point = _mm512_set1_epi8(static_cast<char>(a.weights_zero_point));
  const int8_t* from = a.weights + block.channel;
  uint32_t rests = 0;
  for (uint32_t kx = 0; kx < kKernel; ++kx, from += stride) {
    __m512i w[8], rest = zero;
#pragma GCC unroll 8
    for (uint32_t ky = 0; ky < 8; ++ky) {
      w[ky] = zero;
      if (ky >= kKernel) continue;
      const __m512i v = load_weights<kCopies>(from + size_t{ky} * kKernel * stride);
      w[ky] = weights_part<kPart>(v, zero_point);
      if (kPart + 1 < kMaxParts) rest = _mm512_or_si512(rest, weights_part<kPart + 1>(v, zero_point));
    }
    const Four low = gather_rows(w[0], w[1], w[2], w[3]), high = gather_rows(w[4], w[5], w[6], w[7]);
    store_four(to, low);
    to += 256;
    if (kKernel > 4) store_four(to, high);
    if (kKernel > 4) to += 256;
    // Bytes 4 * q to 4 * q + 3 of each 16 belong to vector q.
    if (_mm512_test_epi8_mask(rest, rest) != 0) {
#pragma GCC unroll 4
      for (uint32_t q = 0; q < 4; ++q) {
        const bool is_used =
            _mm512_mask_test_epi32_mask(static_cast<__mmask16>(0x1111 << q), rest, rest) != 0;
        rests |= static_cast<uint32_t>(is_used) << (4 * kx + q);
      }
    }
    if (kRows == 1) continue;
    // The second row of outputs begins a row further down.
    Four low_second, high_second;
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) {
      low_second.v[q] = _mm512_slli_epi32(low.v[q], 8);
      high_second.v[q] = _mm512_or_si512(_mm512_slli_epi32(high.v[q], 8), _mm512_srli_epi32(low.v[q], 24));
    }
    store_four(to, low_second);
    to += 256;
    if (kKernel > 4) store_four(to, high_second);
    if (kKernel > 4) to += 256;
  }
  return rests;
}

// The number of parts that are needed, and where the first one leaves a rest.
struct Parts {
  uint32_t count;
  uint32_t rests;
};

template <uint32_t kKernel, uint32_t kRows, uint32_t kCopies>
Parts prepare_weights(const DepthwiseConv2dArgs& a, const Block& block, int8_t* to) {
  const uint32_t rests = prepare_part<kKernel, kRows, kCopies, 0>(a, block, to);
  if (rests == 0) return {1, 0};
  to += part_bytes(a);
  if (prepare_part<kKernel, kRows, kCopies, 1>(a, block, to) == 0) return {2, rests};
  prepare_part<kKernel, kRows, kCopies, 2>(a, block, to + part_bytes(a));
  return {3, rests};
}

template <uint32_t kKernel, uint32_t kRows>
Parts prepare_any_weights(const DepthwiseConv2dArgs& a, const Block& block, uint32_t copies, int8_t* to) {
  if (copies == 1) return prepare_weights<kKernel, kRows, 1>(a, block, to);
  if (copies == 2) return prepare_weights<kKernel, kRows, 2>(a, block, to);
  if constexpr (kKernel == 3 && kRows == 2) {  // has_pixel_pairs
    if (copies == 8) return prepare_weights<kKernel, kRows, 8>(a, block, to);
  }
  return prepare_weights<kKernel, kRows, 4>(a, block, to);
}

// Copies of 64, 32, 16 or 8 constants in the order of the vectors.
inline void prepare_constant(const void* from, const Block& block, uint32_t copies, int32_t* to) {
  const int32_t* channels = static_cast<const int32_t*>(from) + block.channel;
  const uint32_t wrap = copies > 4 ? 0 : 4 / copies - 1;
  __m512i c0 = _mm512_loadu_si512(channels);
  if (copies == 8) c0 = _mm512_shuffle_i32x4(c0, c0, 0x44);
  const __m512i c1 = wrap == 0 ? c0 : _mm512_loadu_si512(channels + (1 & wrap) * 16);
  const __m512i c2 = wrap == 0 ? c0 : _mm512_loadu_si512(channels + (2 & wrap) * 16);
  const __m512i c3 = wrap == 0 ? c0 : _mm512_loadu_si512(channels + (3 & wrap) * 16);
  // Four by four lanes of 128 bits, transposed.
  const __m512i low01 = _mm512_shuffle_i32x4(c0, c1, 0x44), high01 = _mm512_shuffle_i32x4(c0, c1, 0xEE);
  const __m512i low23 = _mm512_shuffle_i32x4(c2, c3, 0x44), high23 = _mm512_shuffle_i32x4(c2, c3, 0xEE);
  store_four(to, {{_mm512_shuffle_i32x4(low01, low23, 0x88), _mm512_shuffle_i32x4(low01, low23, 0xDD),
                   _mm512_shuffle_i32x4(high01, high23, 0x88), _mm512_shuffle_i32x4(high01, high23, 0xDD)}});
}

// A block of channels, with the members that epilogues ask for, in the order of the vectors.
struct Prepared {
  Block block;
  uint32_t num_parts;
  uint32_t rests;  // of the first part: prepare_part
  bool is_tfl2;
  const int8_t* columns;
  __m512i* words;  // of half the channels of outputs, where the columns would be
  const int8_t* weights;
  const int32_t* bias;
  const int32_t* multiplier;
  const int32_t* shift;
  const float* scale;
  const float* float_scale;
  const float* float_offset;
};

template <uint32_t kKernel, uint32_t kRows>
Prepared prepare(const DepthwiseConv2dArgs& a, const Block& block, Form form, const Scratch& s) {
  const uint32_t copies = has_pixel_pairs(a, form) ? 8 : block.groups;
  const Parts parts = prepare_any_weights<kKernel, kRows>(a, block, copies, s.weights);
  prepare_constant(a.bias, block, copies, s.bias);
  if (a.contract == Contract::kF32e) {
    prepare_constant(a.scale, block, copies, s.factor);
  } else if (form == Form::kPlain || form == Form::kSigned) {
    prepare_constant(a.float_scale, block, copies, s.factor);
    prepare_constant(a.float_offset, block, copies, s.addend);
  } else {
    prepare_constant(a.multiplier, block, copies, s.factor);
    prepare_constant(a.shift, block, copies, s.addend);
  }
  const auto* factor = reinterpret_cast<const float*>(s.factor);
  return {block,
          parts.count,
          parts.rests,
          a.contract == Contract::kTfl2,
          s.columns,
          reinterpret_cast<__m512i*>(s.columns),
          s.weights,
          s.bias,
          s.factor,
          s.addend,
          factor,
          factor,
          reinterpret_cast<const float*>(s.addend)};
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PREPARE_AVX512VNNI_H_
