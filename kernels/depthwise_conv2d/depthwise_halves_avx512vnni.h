// 3x3 of whole blocks of 64 channels for depthwise_columns_avx512vnni.cc, in two passes over a few pixels: in
// one, only two of the four vectors of a column are made, so that the weights and constants of their channels
// all stay in registers. Loads of them had taken as many cycles as the products. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_HALVES_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_HALVES_AVX512VNNI_H_

#include "kernels/depthwise_conv2d/depthwise_slide_avx512vnni.h"

namespace qplan {
namespace {

// Pixels of both passes: few enough that the second one finds the rows where the first one left them. Words
// of the first pass take the place of the columns that the way by the scratch gathers.
constexpr uint32_t kPassPixels = 72;
static_assert(kPassPixels * 2 * 64 <= kMaxColumns * 256);

// Pixels that stand a multiple of 512 apart compete for eight of the 64 sets of the L1 cache: over 14 of
// them, the second pass did not find the rows there.
constexpr uint32_t kCompetingPixels = 8;

// kHalf 0: of each 16 channels the first 8; 1: the others. kRows: of outputs. kSigned: of the input.
template <uint32_t kStride, uint32_t kRows, bool kSigned, uint32_t kHalf>
struct HalfPass {
  static constexpr uint32_t kInputRows = kRows + 2;
  static constexpr uint32_t kPreparedRows = 2 / kStride;  // for which there are weights

  struct Pair {
    __m512i v[2];
  };

  const Prepared& p;
  __m512i weights[3][kRows][2];
  __m512i bias[2];
  PlainEpilogue epilogues[2];
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
template <uint32_t kStride, uint32_t kRows, bool kSigned>
__attribute__((noinline)) void slide_halves(const DepthwiseConv2dArgs& a, const Prepared& p,
                                            const ColumnRun& run, const OutputRows& to,
                                            uint32_t num_outputs) {
  uint8_t* first = to.rows[0][0];
  const ptrdiff_t second = kRows == 2 ? to.rows[kRows - 1][0] - first : 0;
  const size_t pixel_bytes = to.pixel_bytes;
  const uint32_t most = run.step % 512 == 0 ? kCompetingPixels : kPassPixels;
  uint32_t pass = num_outputs;
  if (pass > most) {  // about as many pixels in each
    const uint32_t num_passes = (num_outputs + most - 1) / most;
    pass = (num_outputs + num_passes - 1) / num_passes;
  }
  for (uint32_t x = 0; x < num_outputs; x += pass) {
    const uint32_t num_x = num_outputs - x < pass ? num_outputs - x : pass;
    const int64_t column = run.first + int64_t{x} * kStride;
    __m512i* at = p.words;
    HalfPass<kStride, kRows, kSigned, 1>(a, p, run, column)
        .run(
            num_x, [&](const __m512i(&words)[kRows]) __attribute__((always_inline)) {
#pragma GCC unroll 2
              for (uint32_t row = 0; row < kRows; ++row) _mm512_store_si512(at++, words[row]);
            });
    at = p.words;
    HalfPass<kStride, kRows, kSigned, 0>(a, p, run, column)
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

// Whether slide_halves does: most layers.
inline bool has_halves(const DepthwiseConv2dArgs& a, const Block& block) {
  return block.count == 64 && Finish(a).is_free && a.input_dtype == a.output_dtype;
}

template <uint32_t kStride>
Way halves_way(const DepthwiseConv2dArgs& a) {
  constexpr uint32_t kRows = 2 / kStride;
  if (a.input_dtype == Dtype::kS8)
    return {slide_halves<kStride, kRows, true>, slide_halves<kStride, 1, true>};
  return {slide_halves<kStride, kRows, false>, slide_halves<kStride, 1, false>};
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_HALVES_AVX512VNNI_H_
