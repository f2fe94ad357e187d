// 3x3 for depthwise_columns_avx512vnni.cc without the way through the scratch: columns are gathered into
// registers, two vectors of the four at a time, and those that the next outputs read again stay there.
// Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_INL_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_INL_

#include "kernels/depthwise_conv2d/depthwise_outputs_avx512vnni.inl"
#include "kernels/numeric/gemm_avx512vnni.inl"

namespace qplan {
namespace {

struct Two {
  __m512i v[2];
};

// Vectors 2 * kHalf and 2 * kHalf + 1 of column c. kFlips: the input may be int8.
template <uint32_t kHalf, uint32_t kGroups, uint32_t kRows, bool kFlips>
__attribute__((always_inline)) inline Two gather_half(const ColumnRun& run, int64_t c, __m512i outside,
                                                      __m512i flip) {
  if (c < 0 || c >= run.num_columns) return {{outside, outside}};
  const size_t offset = static_cast<size_t>(c) * run.step;
  __m512i r[4];
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i)
    r[i] = i < kRows ? load_row<kGroups, true>(run.rows + i * kGroups, offset, 0) : r[i - 1];
  const __m512i r01 = kHalf == 0 ? _mm512_unpacklo_epi8(r[0], r[1]) : _mm512_unpackhi_epi8(r[0], r[1]);
  const __m512i r23 = kHalf == 0 ? _mm512_unpacklo_epi8(r[2], r[3]) : _mm512_unpackhi_epi8(r[2], r[3]);
  const __m512i low = _mm512_unpacklo_epi16(r01, r23), high = _mm512_unpackhi_epi16(r01, r23);
  if (kFlips) return {{_mm512_xor_si512(low, flip), _mm512_xor_si512(high, flip)}};
  return {{low, high}};
}

// Vector q of the outputs at columns[0], columns[kStride], ... of each row.
template <typename Epilogue, uint32_t kStride>
__attribute__((always_inline)) inline void slide_outputs(const Prepared& p, const Two* columns, uint32_t q,
                                                         __m512i (&sums)[4]) {
  constexpr uint32_t kX = outputs_in_row(kStride);
  constexpr uint32_t kRows = 4 / kX;
  const __m512i bias = _mm512_load_si512(p.bias + 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) sums[i] = bias;
#pragma GCC unroll 4
  for (uint32_t kx = 0; kx < 3; ++kx) {
#pragma GCC unroll 4
    for (uint32_t row = 0; row < kRows; ++row) {
      const __m512i w = _mm512_load_si512(p.weights + (kx * kRows + row) * 256 + 64 * q);
#pragma GCC unroll 4
      for (uint32_t x = 0; x < kX; ++x)
        dot_u8s8_512(sums[row * kX + x], columns[x * kStride + kx].v[q % 2], w);
    }
  }
  // Few weights need a second part, most often one of a block.
#pragma GCC unroll 4
  for (uint32_t kx = 0; kx < 3; ++kx) {
    if ((p.rests >> (4 * kx + q) & 1) == 0) continue;
#pragma GCC unroll 4
    for (uint32_t row = 0; row < kRows; ++row) {
      const __m512i w = _mm512_load_si512(p.weights + ((3 + kx) * kRows + row) * 256 + 64 * q);
#pragma GCC unroll 4
      for (uint32_t x = 0; x < kX; ++x)
        dot_u8s8_512(sums[row * kX + x], columns[x * kStride + kx].v[q % 2], w);
    }
  }
  const Epilogue epilogue(p, 16 * q);
#pragma GCC unroll 4
  for (uint32_t i = 0; i < 4; ++i) sums[i] = epilogue.outputs(sums[i]);
}

// num_x outputs of each row, of columns from run.first on.
template <typename Epilogue, uint32_t kStride, uint32_t kGroups, bool kFlips>
__attribute__((noinline)) void slide(const DepthwiseConv2dArgs& a, const Prepared& p, const ColumnRun& run,
                                     const OutputRows& to, uint32_t num_x) {
  constexpr uint32_t kX = outputs_in_row(kStride), kInputRows = 4 / kX + 2;
  constexpr uint32_t kKept = 3 - kStride, kColumns = kKept + kX * kStride;
  const Finish finish(a);
  const __m512i flip = _mm512_set1_epi8(a.input_dtype == Dtype::kS8 ? INT8_MIN : 0);
  const __m512i outside = _mm512_xor_si512(_mm512_set1_epi8(static_cast<char>(a.pad_value)), flip);
  int64_t c = run.first;
  Two low[kColumns], high[kColumns];
#pragma GCC unroll 16
  for (uint32_t i = 0; i < kKept; ++i, ++c) {
    low[i] = gather_half<0, kGroups, kInputRows, kFlips>(run, c, outside, flip);
    high[i] = gather_half<1, kGroups, kInputRows, kFlips>(run, c, outside, flip);
  }
  for (uint32_t x = 0; x < num_x; x += kX, c += kX * kStride) {
    __m512i first[4], second[4], words[4];
#pragma GCC unroll 16
    for (uint32_t i = kKept; i < kColumns; ++i)
      low[i] = gather_half<0, kGroups, kInputRows, kFlips>(run, c + i - kKept, outside, flip);
    slide_outputs<Epilogue, kStride>(p, low, 0, first);
    slide_outputs<Epilogue, kStride>(p, low, 1, second);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kKept; ++i) low[i] = low[kColumns - kKept + i];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) words[i] = _mm512_packs_epi32(first[i], second[i]);
#pragma GCC unroll 16
    for (uint32_t i = kKept; i < kColumns; ++i)
      high[i] = gather_half<1, kGroups, kInputRows, kFlips>(run, c + i - kKept, outside, flip);
    slide_outputs<Epilogue, kStride>(p, high, 2, first);
    slide_outputs<Epilogue, kStride>(p, high, 3, second);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kKept; ++i) high[i] = high[kColumns - kKept + i];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      const __m512i v = finish.pack(words[i], _mm512_packs_epi32(first[i], second[i]));
      if (x + i % kX < num_x) store_groups<kGroups>(to, i / kX, x + i % kX, v);
    }
  }
}

using Slide = void (*)(const DepthwiseConv2dArgs&, const Prepared&, const ColumnRun&, const OutputRows&,
                       uint32_t);

template <uint32_t kStride, uint32_t kGroups>
Slide plain_slide(const DepthwiseConv2dArgs& a) {
  return a.input_dtype == Dtype::kS8 ? slide<PlainEpilogue512, kStride, kGroups, true>
                                     : slide<PlainEpilogue512, kStride, kGroups, false>;
}

// How to slide over a block; null where the way through the scratch is as good, or rare.
template <uint32_t kStride>
Slide slide_of(const DepthwiseConv2dArgs& a, const Prepared& p, Form form) {
  if (a.kernel_h != 3 || p.num_parts > 2 || p.block.count * p.block.groups != 64) return nullptr;
  if (p.block.groups == 2) return form == Form::kPlain ? plain_slide<kStride, 2>(a) : nullptr;
  if (p.block.groups != 1) return nullptr;
  if (form == Form::kPlain) return plain_slide<kStride, 1>(a);
  if (form == Form::kSigned) return slide<SignedEpilogue512, kStride, 1, true>;
  return form == Form::kF32e ? slide<F32eEpilogue512, kStride, 1, true> : nullptr;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_SLIDE_AVX512VNNI_INL_
