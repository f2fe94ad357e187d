// 3x3 for depthwise_columns_avx512vnni.cc without the way through the scratch: columns are gathered into
// registers, two vectors of the four at a time, and those that the next outputs read again stay there.
// Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_prepare_avx512vnni.h"
#include "kernels/simd/gemm_avx512vnni.h"

namespace qplan {

// The end of depthwise_columns_avx512vnni.cc: sums without zero point and clamp become bytes and find their
// place. Internal linkage only.

namespace {

// Outputs that are computed together: four, of two rows or of one.
constexpr uint32_t outputs_in_row(uint32_t stride) { return stride == 1 ? 2 : 4; }

// Zero point and clamp of outputs that are words, as bytes. 128 is added to int8 on the way, so that most
// layers, whose outputs fill their dtype from the zero point on, need nothing but the saturation of packing.
struct Finish {
  __m512i zero_point;  // int16
  __m512i clamp_min, clamp_max, sign_bias;
  bool is_free;
  explicit Finish(const DepthwiseConv2dArgs& a) {
    const int32_t to_unsigned = a.output_dtype == Dtype::kS8 ? 128 : 0;
    zero_point = _mm512_set1_epi16(static_cast<int16_t>(a.output_zero_point + to_unsigned));
    clamp_min = _mm512_set1_epi8(static_cast<char>(a.clamp_min + to_unsigned));
    clamp_max = _mm512_set1_epi8(static_cast<char>(a.clamp_max + to_unsigned));
    sign_bias = _mm512_set1_epi8(static_cast<char>(to_unsigned));
    is_free = outputs_are_free(a);
  }
  __attribute__((always_inline)) __m512i pack(__m512i words01, __m512i words23) const {
    if (is_free) return _mm512_xor_si512(_mm512_packus_epi16(words01, words23), sign_bias);
    const __m512i v =
        _mm512_packus_epi16(_mm512_adds_epi16(words01, zero_point), _mm512_adds_epi16(words23, zero_point));
    return _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(v, clamp_min), clamp_max), sign_bias);
  }
};

// Where outputs go: for each row of each group of rows the address of its first pixel, null where there is no
// such row.
struct OutputRows {
  uint8_t* rows[2][4];
  size_t pixel_bytes;
};

// One vector of outputs to pixel x of one row of each of the groups.
template <uint32_t kGroups, bool kWhole>
__attribute__((always_inline)) inline void store_groups(const OutputRows& to, uint32_t row, size_t x,
                                                        __m512i v, __mmask64 mask) {
  const size_t offset = x * to.pixel_bytes;
  uint8_t* const* rows = to.rows[row];
  if (kGroups == 1) {
    if (rows[0] == nullptr) return;
    if (kWhole) return _mm512_storeu_si512(rows[0] + offset, v);
    _mm512_mask_storeu_epi8(rows[0] + offset, mask, v);
  } else if (kGroups == 4) {
    const auto store = [&](uint32_t g, __m128i quarter) {
      if (rows[g] == nullptr) return;
      if (kWhole) return _mm_storeu_si128(reinterpret_cast<__m128i*>(rows[g] + offset), quarter);
      _mm_mask_storeu_epi8(rows[g] + offset, static_cast<__mmask16>(mask), quarter);
    };
    store(0, _mm512_castsi512_si128(v));
    store(1, _mm512_extracti32x4_epi32(v, 1));
    store(2, _mm512_extracti32x4_epi32(v, 2));
    store(3, _mm512_extracti32x4_epi32(v, 3));
  } else {
    const auto store = [&](uint32_t g, __m256i half) {
      if (rows[g] == nullptr) return;
      if (kWhole) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows[g] + offset), half);
      _mm256_mask_storeu_epi8(rows[g] + offset, static_cast<__mmask32>(mask), half);
    };
    store(0, _mm512_castsi512_si256(v));
    store(1, _mm512_extracti64x4_epi64(v, 1));
  }
}

// From the scratch to the image: num_x vectors of one row of each group; to: one address for each group, null
// where there is no such row.
inline void store_narrow(const Block& block, const uint8_t* from, uint32_t num_x, uint8_t* const (&to)[4],
                         size_t pixel_bytes) {
  const uint32_t width = 64 / block.groups;
  const __mmask64 mask = mask64(block.count);
  const auto store_all = [&](auto store) {
    for (uint32_t g = 0; g < block.groups && to[g] != nullptr; ++g) {
      for (uint32_t x = 0; x < num_x; ++x) store(to[g] + x * pixel_bytes, from + 64 * x + width * g);
    }
  };
  if (block.count != width) {
    store_all([mask](uint8_t* pixel, const uint8_t* vector) {
      _mm512_mask_storeu_epi8(pixel, mask, _mm512_maskz_loadu_epi8(mask, vector));
    });
  } else if (width == 32) {
    store_all([](uint8_t* pixel, const uint8_t* vector) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pixel),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(vector)));
    });
  } else {
    store_all([](uint8_t* pixel, const uint8_t* vector) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pixel),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(vector)));
    });
  }
}

}  // namespace
namespace {

// All four vectors of column c. kSignBiases: the input may be int8.
template <uint32_t kGroups, uint32_t kRows, bool kSignBiases, bool kWhole>
__attribute__((always_inline)) inline Four gather_column(const ColumnRun& run, int64_t c, __m512i outside,
                                                         __m512i sign_bias, __mmask64 mask) {
  if (c < 0 || c >= run.num_columns) return {{outside, outside, outside, outside}};
  const size_t offset = static_cast<size_t>(c) * run.step;
  __m512i r[4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i)
    r[i] = i < kRows ? load_row<kGroups, kWhole>(run.rows + i * kGroups, offset, mask) : r[i - 1];
  Four four = gather_rows(r[0], r[1], r[2], r[3]);
#pragma GCC unroll 4
  for (uint32_t q = 0; q < 4 && kSignBiases; ++q) four.v[q] = _mm512_xor_si512(four.v[q], sign_bias);
  return four;
}

// Vector q of kX outputs of each row, at columns[0], columns[kStride], ...
template <typename Epilogue, uint32_t kStride, uint32_t kRows, uint32_t kX>
__attribute__((always_inline)) inline void slide_outputs(const Prepared& p, const Four* columns, uint32_t q,
                                                         __m512i (&sums)[kRows * kX]) {
  constexpr uint32_t kWeights = 2 / kStride;  // of a column of the kernel: for each row there may be
  const __m512i bias = _mm512_load_si512(p.bias + 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) sums[i] = bias;
#pragma GCC unroll 6
  for (uint32_t k = 0; k < 6; ++k) {  // the second time, what the first part of the weights leaves
    const uint32_t kx = k % 3;
    if (k >= 3 && (p.rests >> (4 * kx + q) & 1) == 0) continue;
#pragma GCC unroll 4
    for (uint32_t row = 0; row < kRows; ++row) {
      const __m512i w = _mm512_load_si512(p.weights + (k * kWeights + row) * 256 + 64 * q);
#pragma GCC unroll 4
      for (uint32_t x = 0; x < kX; ++x) dot_u8s8_512(sums[row * kX + x], columns[x * kStride + kx].v[q], w);
    }
  }
  const Epilogue epilogue(p, 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) sums[i] = epilogue.outputs(sums[i]);
}

// Outputs x to x + kX - 1 of each row, from their columns.
template <typename Epilogue, uint32_t kStride, uint32_t kGroups, uint32_t kRows, uint32_t kX, bool kWhole>
__attribute__((always_inline)) inline void slide_step(const Prepared& p, const Finish& finish,
                                                      const OutputRows& to, uint32_t x, const Four* columns,
                                                      __mmask64 mask) {
  __m512i first[kRows * kX], second[kRows * kX], words[kRows * kX];
  slide_outputs<Epilogue, kStride, kRows, kX>(p, columns, 0, first);
  slide_outputs<Epilogue, kStride, kRows, kX>(p, columns, 1, second);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) words[i] = _mm512_packs_epi32(first[i], second[i]);
  slide_outputs<Epilogue, kStride, kRows, kX>(p, columns, 2, first);
  slide_outputs<Epilogue, kStride, kRows, kX>(p, columns, 3, second);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRows * kX; ++i) {
    store_groups<kGroups, kWhole>(to, i / kX, x + i % kX,
                                  finish.pack(words[i], _mm512_packs_epi32(first[i], second[i])), mask);
  }
}

// num_x outputs of each row, of columns from run.first on. kRows: of outputs, of one group. kWhole: all
// channels of the vectors are there.
template <typename Epilogue, uint32_t kStride, uint32_t kGroups, uint32_t kRows, bool kWhole,
          bool kSignBiases>
__attribute__((noinline)) void slide(const DepthwiseConv2dArgs& a, const Prepared& p, const ColumnRun& run,
                                     const OutputRows& to, uint32_t num_x) {
  constexpr uint32_t kX = 2, kInputRows = kRows + 2, kKept = 3 - kStride;
  const Finish finish(a);
  const __m512i sign_bias = _mm512_set1_epi8(a.input_dtype == Dtype::kS8 ? INT8_MIN : 0);
  const __m512i outside = _mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(a.pad_value)), sign_bias);
  const __mmask64 mask = mask64(p.block.count);
  int64_t c = run.first;
  Four columns[kKept + kX * kStride];
  const auto gather = [&](uint32_t count) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; ++i, ++c)
      columns[kKept + i] =
          gather_column<kGroups, kInputRows, kSignBiases, kWhole>(run, c, outside, sign_bias, mask);
  };
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kKept; ++i, ++c)
    columns[i] = gather_column<kGroups, kInputRows, kSignBiases, kWhole>(run, c, outside, sign_bias, mask);
  uint32_t x = 0;
  for (; x + kX <= num_x; x += kX) {
    gather(kX * kStride);
    slide_step<Epilogue, kStride, kGroups, kRows, kX, kWhole>(p, finish, to, x, columns, mask);
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kKept; ++i) columns[i] = columns[kX * kStride + i];
  }
  if (x == num_x) return;
  gather(kStride);
  slide_step<Epilogue, kStride, kGroups, kRows, 1, kWhole>(p, finish, to, x, columns, mask);
}

using Slide = void (*)(const DepthwiseConv2dArgs&, const Prepared&, const ColumnRun&, const OutputRows&,
                       uint32_t);

// How to make the outputs of a work item, and of one that has a single row; null: by way of the scratch.
struct Way {
  Slide rows;
  Slide single_row;
  bool spreads_rows = false;  // where there are no more rows than groups, each has one, by single_row
};

// What depthwise_channels_avx512vnni.h leaves. SignBiases are worth a function of their own where many layers
// pass.
template <uint32_t kStride, uint32_t kGroups, uint32_t kRows = 2 / kStride>
Slide plain_slide(const DepthwiseConv2dArgs& a, const Block& block) {
  if (block.count * kGroups != 64) return slide<PlainEpilogue, kStride, kGroups, kRows, false, true>;
  if (a.input_dtype == Dtype::kS8 || kGroups != 2)
    return slide<PlainEpilogue, kStride, kGroups, kRows, true, true>;
  return slide<PlainEpilogue, kStride, kGroups, kRows, true, kGroups != 2>;
}

// F32E with scales below 1, which models of ONNX and PyTorch have: one function for all that is not a whole
// block.
template <uint32_t kStride>
Way fractions_way(const Block& block) {
  constexpr uint32_t kRows = 2 / kStride;
  const auto both = [](Slide slide) { return Way{slide, slide}; };
  if (block.groups == 4) {
    return {slide<F32eFractionEpilogue, kStride, 4, kRows, false, true>,
            slide<F32eFractionEpilogue, kStride, 4, 1, false, true>, true};
  }
  if (block.groups == 2) return both(slide<F32eFractionEpilogue, kStride, 2, kRows, false, true>);
  return both(block.count == 64 ? slide<F32eFractionEpilogue, kStride, 1, kRows, true, true>
                                : slide<F32eFractionEpilogue, kStride, 1, kRows, false, true>);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_H_
