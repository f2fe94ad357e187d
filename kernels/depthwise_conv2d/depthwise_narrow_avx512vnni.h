// 3x3 of images of 8 or 16 channels for depthwise_columns_avx512vnni.cc: a vector takes eight or four pixels
// as they are in a row, and the columns of the next pixels are found by shifting across two vectors. Internal
// linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_NARROW_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_NARROW_AVX512VNNI_H_

#include "kernels/depthwise_conv2d/depthwise_halves_avx512vnni.h"
#include "kernels/depthwise_conv2d/depthwise_slide_avx512vnni.h"

namespace qplan {
namespace {

// A row of a run; what is outside is padding.
struct PixelRow {
  const uint8_t* row;
  size_t step;
  int64_t num_columns;
  __m512i outside;
};

// 64 bytes of pixels from column c on.
__attribute__((always_inline)) inline __m512i load_together(const PixelRow& r, int64_t c, int64_t count) {
  const auto* at = reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(r.row) +
                                                    static_cast<uintptr_t>(c) * r.step);
  if (c >= 0 && c + count <= r.num_columns) return _mm512_loadu_si512(at);
  if (c + count <= 0 || c >= r.num_columns) return r.outside;
  const int64_t begin = c < 0 ? -c : 0, end = c + count <= r.num_columns ? count : r.num_columns - c;
  const __mmask64 mask = mask64(static_cast<uint32_t>(end) * static_cast<uint32_t>(r.step)) &
                         ~mask64(static_cast<uint32_t>(begin) * static_cast<uint32_t>(r.step));
  return _mm512_mask_loadu_epi8(r.outside, mask, at);
}

// The columns that outputs of one vector read first and, at stride 2, second.
template <uint32_t kStride>
struct Columns {
  Four v[kStride];
};

template <uint32_t kStride, uint32_t kPixels>
__attribute__((always_inline)) inline Columns<kStride> gather_pixels(const ColumnRun& run, uint32_t group,
                                                                     PixelRow r, int64_t c,
                                                                     __m512i sign_bias) {
  __m512i rows[kStride][4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) {
    if (kStride == 2 && i == 3) {  // its weights are zero
      rows[0][3] = rows[0][2];
      rows[kStride - 1][3] = rows[kStride - 1][2];
      continue;
    }
    r.row = run.rows[i * 4 + group];
    if (kStride == 2) {
      const __m512i low = load_together(r, c, 4), high = load_together(r, c + 4, 4);
      rows[0][i] = _mm512_shuffle_i32x4(low, high, 0x88);
      rows[kStride - 1][i] = _mm512_shuffle_i32x4(low, high, 0xDD);
    } else {
      rows[0][i] = load_together(r, c, kPixels);
    }
  }
  Columns<kStride> columns;
#pragma GCC unroll 2
  for (uint32_t s = 0; s < kStride; ++s) {
    columns.v[s] = gather_rows(rows[s][0], rows[s][1], rows[s][2], rows[s][3]);
#pragma GCC unroll 4
    for (uint32_t q = 0; q < 4; ++q) columns.v[s].v[q] = _mm512_xor_si512(columns.v[s].v[q], sign_bias);
  }
  return columns;
}

// What outputs of vector q multiply with column kx of the kernel.
template <uint32_t kStride, uint32_t kPixels>
__attribute__((always_inline)) inline __m512i shifted(const Columns<kStride>& at,
                                                      const Columns<kStride>& next, uint32_t q, uint32_t kx) {
  if (kx < kStride) return at.v[kx].v[q];
  const Four &a = at.v[0], &b = next.v[0];
  if (kPixels == 8) {
    if (kx == 1) return q < 2 ? a.v[q + 2] : _mm512_alignr_epi64(b.v[q - 2], a.v[q - 2], 2);
    return _mm512_alignr_epi64(b.v[q], a.v[q], 2);
  }
  return kx == kStride ? _mm512_alignr_epi64(b.v[q], a.v[q], 2) : _mm512_alignr_epi64(b.v[q], a.v[q], 4);
}

// Vector q of the outputs, [row][x]; columns[x + 1] stand beside columns[x].
template <uint32_t kStride, uint32_t kPixels>
__attribute__((always_inline)) inline void narrow_outputs(const Prepared& p, const Columns<kStride>* columns,
                                                          uint32_t q, __m512i (&sums)[4 / kStride]) {
  constexpr uint32_t kRows = 2 / kStride, kX = 2;
  const __m512i bias = _mm512_load_si512(p.bias + 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) sums[i] = bias;
#pragma GCC unroll 6
  for (uint32_t k = 0; k < 6; ++k) {  // the second time, what the first part of the weights leaves
    const uint32_t kx = k % 3;
    if (k >= 3 && (p.rests >> (4 * kx + q) & 1) == 0) continue;
    __m512i column[kX];
#pragma GCC unroll 4
    for (uint32_t x = 0; x < kX; ++x)
      column[x] = shifted<kStride, kPixels>(columns[x], columns[x + 1], q, kx);
#pragma GCC unroll 4
    for (uint32_t row = 0; row < kRows; ++row) {
      const __m512i w = _mm512_load_si512(p.weights + (k * kRows + row) * 256 + 64 * q);
#pragma GCC unroll 4
      for (uint32_t x = 0; x < kX; ++x) dot_u8s8_512(sums[row * kX + x], column[x], w);
    }
  }
  const PlainEpilogue epilogue(p, 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) sums[i] = epilogue.outputs(sums[i]);
}

// num_x outputs of each row of the groups, one group after another.
template <uint32_t kStride, uint32_t kPixels>
__attribute__((noinline)) void narrow(const DepthwiseConv2dArgs& a, const Prepared& p, const ColumnRun& run,
                                      const OutputRows& to, uint32_t num_x) {
  constexpr uint32_t kRows = 2 / kStride, kX = 2, kSums = kRows * kX;
  const Finish finish(a);
  const __m512i sign_bias = _mm512_set1_epi8(a.input_dtype == Dtype::kS8 ? INT8_MIN : 0);
  const PixelRow pixels = {nullptr, run.step, run.num_columns,
                           _mm512_set1_epi8(static_cast<char>(a.pad_value))};
  for (uint32_t group = 0; group < 4 && to.rows[0][group] != nullptr; ++group) {
    const auto gather = [&](int64_t c) __attribute__((always_inline)) {
      return gather_pixels<kStride, kPixels>(run, group, pixels, c, sign_bias);
    };
    Columns<kStride> columns[kX + 1];
    int64_t c = run.first;
    columns[0] = gather(c);
    for (uint32_t x = 0; x < num_x; x += kX * kPixels) {
#pragma GCC unroll 4
      for (uint32_t i = 1; i <= kX; ++i) columns[i] = gather(c += kStride * kPixels);
      __m512i first[kSums], second[kSums], words[kSums];
      narrow_outputs<kStride, kPixels>(p, columns, 0, first);
      narrow_outputs<kStride, kPixels>(p, columns, 1, second);
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kSums; ++i) words[i] = _mm512_packs_epi32(first[i], second[i]);
      narrow_outputs<kStride, kPixels>(p, columns, 2, first);
      narrow_outputs<kStride, kPixels>(p, columns, 3, second);
#pragma GCC unroll 4
      for (uint32_t i = 0; i < kSums; ++i) {
        uint8_t* row = to.rows[i / kX][group];
        const uint32_t at = x + i % kX * kPixels;
        if (at >= num_x || row == nullptr) continue;
        const __m512i v = finish.pack(words[i], _mm512_packs_epi32(first[i], second[i]));
        if (num_x - at >= kPixels) {
          _mm512_storeu_si512(row + at * to.pixel_bytes, v);
        } else {
          const uint32_t left = (num_x - at) * static_cast<uint32_t>(to.pixel_bytes);
          _mm512_mask_storeu_epi8(row + at * to.pixel_bytes, mask64(left), v);
        }
      }
      columns[0] = columns[kX];
    }
  }
}

// How to make the outputs of a block; null where the way through the scratch is as good, or rare.
template <uint32_t kStride>
Way way_of(const DepthwiseConv2dArgs& a, const Prepared& p, Form form) {
  const auto both = [](Slide slide) { return Way{slide, slide}; };
  if (a.kernel_h != 3 || p.num_parts > 2) return both(nullptr);
  if (form != Form::kPlain) return both(slide_of<kStride>(p.block, form));
  if (kStride == 1 && has_pixel_pairs(a, form)) return both(narrow<1, 8>);
  if (a.input_c == 16 && a.dilation_w == 1) return both(narrow<kStride, 4>);
  if (p.block.groups == 4) return both(plain_slide<kStride, 4>(a, p.block));
  if (p.block.groups == 2) return both(plain_slide<kStride, 2>(a, p.block));
  return has_halves(a, p.block) ? halves_way<kStride>(a) : both(plain_slide<kStride, 1>(a, p.block));
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_NARROW_AVX512VNNI_H_
