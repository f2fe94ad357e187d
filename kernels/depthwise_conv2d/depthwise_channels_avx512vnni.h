// 3x3 for depthwise_columns_avx512vnni.cc where the number of channels allows more than sliding: whole blocks
// of 64, and images of 8 or 16. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CHANNELS_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CHANNELS_AVX512VNNI_H_

#include "kernels/depthwise_conv2d/depthwise_slide_avx512vnni.h"

namespace qplan {
namespace {

// ---- whole blocks of 64 channels in two passes over a few pixels: in one, only two of the four vectors of a
// column are made, so that the weights and constants of their channels all stay in registers. Loads of them
// had taken as many cycles as the products.

// kHalf 0: of each 16 channels the first 8; 1: the others. kRows: of outputs. kSigned: of the input.
template <typename Epilogue, uint32_t kStride, uint32_t kRows, bool kSigned, uint32_t kHalf>
struct HalfPass {
  static constexpr uint32_t kInputRows = kRows + 2;
  static constexpr uint32_t kPreparedRows = 2 / kStride;  // for which there are weights

  struct Pair {
    __m512i v[2];
  };

  const Prepared& p;
  __m512i weights[3][kRows][2];
  __m512i bias[2];
  Epilogue epilogues[2];
  __m512i outside, sign_bias;
  Pair columns[3];  // the last three, in turn
  const uint8_t* rows[kInputRows];
  size_t offset, step, end;  // the next column, the way to one more, the first one that is outside
  uint32_t rests;

  __attribute__((always_inline))
  HalfPass(const DepthwiseConv2dArgs& a, const Prepared& prepared, const ColumnRun& run, int64_t first)
      : p(prepared),
        epilogues{{prepared, 32 * kHalf}, {prepared, 32 * kHalf + 16}},
        sign_bias(_mm512_set1_epi8(kSigned ? INT8_MIN : 0)),
        offset(static_cast<size_t>(first) * run.step),
        step(run.step),
        end(static_cast<size_t>(run.num_columns) * run.step),
        rests(prepared.rests >> (2 * kHalf) & 0x333) {
    outside = _mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(a.pad_value)), sign_bias);
#pragma GCC unroll 2
    for (uint32_t j = 0; j < 2; ++j) {
      bias[j] = _mm512_load_si512(p.bias + 32 * kHalf + 16 * j);
#pragma GCC unroll 6
      for (uint32_t i = 0; i < 3 * kRows; ++i)
        weights[i / kRows][i % kRows][j] = weights_at(i / kRows, i % kRows, j);
    }
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kInputRows; ++i) rows[i] = run.rows[i];
  }

  // k: a column of the kernel, or 3 more for the second part of its weights.
  __attribute__((always_inline)) __m512i weights_at(uint32_t k, uint32_t row, uint32_t j) const {
    return _mm512_load_si512(p.weights + (k * kPreparedRows + row) * 256 + 128 * kHalf + 64 * j);
  }

  template <uint32_t kTo>
  __attribute__((always_inline)) void gather() {
    const size_t at = offset;
    offset += step;
    __asm__("" : "+r"(offset));  // else the compiler keeps three of them
    if (at >= end) {             // or before the first column
      columns[kTo] = {{outside, outside}};
      return;
    }
    __m512i r[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) r[i] = i < kInputRows ? _mm512_loadu_si512(rows[i] + at) : r[i - 1];
    const auto interleave = [](__m512i even, __m512i odd) __attribute__((always_inline)) {
      return kHalf == 0 ? _mm512_unpacklo_epi8(even, odd) : _mm512_unpackhi_epi8(even, odd);
    };
    const __m512i r01 = interleave(r[0], r[1]), r23 = interleave(r[2], r[3]);
    columns[kTo] = {{_mm512_unpacklo_epi16(r01, r23), _mm512_unpackhi_epi16(r01, r23)}};
#pragma GCC unroll 2
    for (uint32_t j = 0; j < 2 && kSigned; ++j)
      columns[kTo].v[j] = _mm512_xor_si512(columns[kTo].v[j], sign_bias);
  }

  // Adds the products of vector j with column kx of the kernel; kFirst: where the first of the outputs'
  // columns is.
  template <uint32_t kFirst, typename Weights>
  __attribute__((always_inline)) void add_products(uint32_t kx, uint32_t j, Weights of,
                                                   __m512i (&sums)[kRows][2]) const {
#pragma GCC unroll 2
    for (uint32_t row = 0; row < kRows; ++row)
      dot_u8s8_512(sums[row][j], columns[(kFirst + kx) % 3].v[j], of(row));
  }

  template <uint32_t kFirst>
  __attribute__((always_inline)) void make_words(__m512i (&words)[kRows]) const {
    __m512i sums[kRows][2];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 2 * kRows; ++i) sums[i % kRows][i / kRows] = bias[i / kRows];
#pragma GCC unroll 6
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t kx = i / 2, j = i % 2;
      const auto of = [&](uint32_t row) __attribute__((always_inline)) { return weights[kx][row][j]; };
      add_products<kFirst>(kx, j, of, sums);
    }
    if (__builtin_expect(rests != 0, 0)) {
#pragma GCC unroll 6
      for (uint32_t i = 0; i < 6; ++i) {
        const uint32_t kx = i / 2, j = i % 2;
        const auto of = [&](uint32_t row) __attribute__((always_inline)) {
          return weights_at(3 + kx, row, j);
        };
        if ((rests >> (4 * kx + j) & 1) != 0) add_products<kFirst>(kx, j, of, sums);
      }
    }
#pragma GCC unroll 2
    for (uint32_t r = 0; r < kRows; ++r)
      words[r] = _mm512_packs_epi32(epilogues[0].outputs(sums[r][0]), epilogues[1].outputs(sums[r][1]));
  }

  // The outputs whose first column is in place kFirst.
  template <uint32_t kFirst, typename Store>
  __attribute__((always_inline)) void make_pixel(Store store) {
    if (kStride == 2) gather<(kFirst + 1) % 3>();
    gather<(kFirst + 2) % 3>();
    __m512i words[kRows];
    make_words<kFirst>(words);
    store(words);
  }

  // Calls store(words of each row) for each of num_x pixels.
  template <typename Store>
  __attribute__((always_inline)) void run(uint32_t num_x, Store store) {
    gather<0>();
    if (kStride == 1) gather<1>();
    for (;;) {
      make_pixel<0>(store);
      if (--num_x == 0) return;
      make_pixel<kStride>(store);
      if (--num_x == 0) return;
      make_pixel<2 * kStride % 3>(store);
      if (--num_x == 0) return;
    }
  }
};

// num_outputs of each row, of columns from run.first on.
template <typename Epilogue, uint32_t kStride, uint32_t kRows, bool kSigned>
__attribute__((noinline)) void slide_halves(const DepthwiseConv2dArgs& a, const Prepared& p,
                                            const ColumnRun& run, const OutputRows& to,
                                            uint32_t num_outputs) {
  uint8_t* first = to.rows[0][0];
  const ptrdiff_t second = kRows == 2 ? to.rows[kRows - 1][0] - first : 0;
  const size_t pixel_bytes = to.pixel_bytes;
  const uint32_t pass = pass_pixels(a, num_outputs);
  for (uint32_t x = 0; x < num_outputs; x += pass) {
    const uint32_t num_x = num_outputs - x < pass ? num_outputs - x : pass;
    const int64_t column = run.first + int64_t{x} * kStride;
    __m512i* at = p.words;
    HalfPass<Epilogue, kStride, kRows, kSigned, 1>(a, p, run, column)
        .run(
            num_x, [&](const __m512i(&words)[kRows]) __attribute__((always_inline)) {
#pragma GCC unroll 2
              for (uint32_t row = 0; row < kRows; ++row) _mm512_store_si512(at++, words[row]);
            });
    at = p.words;
    HalfPass<Epilogue, kStride, kRows, kSigned, 0>(a, p, run, column)
        .run(
            num_x, [&](const __m512i(&words)[kRows]) __attribute__((always_inline)) {
#pragma GCC unroll 2
              for (uint32_t row = 0; row < kRows; ++row) {
                __m512i v = _mm512_packus_epi16(words[row], _mm512_load_si512(at++));
                if (kSigned) v = _mm512_xor_si512(v, _mm512_set1_epi8(INT8_MIN));
                _mm512_storeu_si512(row == 0 ? first : first + second, v);
              }
              first += pixel_bytes;
            });
  }
}

template <typename Epilogue, uint32_t kStride>
Way halves_way(const DepthwiseConv2dArgs& a) {
  constexpr uint32_t kRows = 2 / kStride;
  if (a.input_dtype == Dtype::kS8)
    return {slide_halves<Epilogue, kStride, kRows, true>, slide_halves<Epilogue, kStride, 1, true>};
  return {slide_halves<Epilogue, kStride, kRows, false>, slide_halves<Epilogue, kStride, 1, false>};
}

// ---- images of 8 or 16 channels: a vector takes eight or four pixels as they are in a row, and the columns
// of the next pixels are found by shifting across two vectors.

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

// How to make the outputs of a block; null: by way of the scratch.
template <uint32_t kStride>
Way way_of(const DepthwiseConv2dArgs& a, const Prepared& p, Form form) {
  const auto both = [](Slide slide) { return Way{slide, slide}; };
  switch (way_kind(a, p.block, form, p.num_parts)) {
    case WayKind::kColumns:
      return both(nullptr);
    case WayKind::kPixels:
      return both(kStride == 1 && a.input_c == 8 ? narrow<1, 8> : narrow<kStride, 4>);
    case WayKind::kHalves:
      return form == Form::kPlain ? halves_way<PlainEpilogue, kStride>(a)
                                  : halves_way<F32eFractionEpilogue, kStride>(a);
    case WayKind::kSlide:
      break;
  }
  if (form == Form::kFractions) return fractions_way<kStride>(p.block);
  if (form == Form::kSigned) return both(slide<SignedEpilogue, kStride, 1, 2 / kStride, true, true>);
  if (p.block.groups == 4)
    return {plain_slide<kStride, 4>(a, p.block), plain_slide<kStride, 4, 1>(a, p.block), true};
  return both(p.block.groups == 2 ? plain_slide<kStride, 2>(a, p.block)
                                  : plain_slide<kStride, 1>(a, p.block));
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_CHANNELS_AVX512VNNI_H_
