// depthwise_conv2d of 3x3, eight channels at a time: two rows of a column are beside each other as the words
// of vpmaddwd, gathered once for all outputs that read them; at stride 1 four rows serve two rows of outputs.
#include <immintrin.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/simd/avx2.h"
#include "kernels/simd/gemm.h"

namespace qplan::depthwise_columns_avx2 {
namespace {

uint32_t work_items_of_rows(const DepthwiseConv2dArgs& a) {
  return (a.output_h + rows_at_once(a) - 1) / rows_at_once(a);
}

// Scratch: a row of padding; of each block of channels, [kernel column][row of outputs][pair of rows].
size_t padding_bytes(const DepthwiseConv2dArgs& a) { return (size_t{a.input_w} * a.input_c + 63) / 64 * 64; }
constexpr size_t kBlockWeights = 3 * 2 * 2 * 8;  // int32_t

// Pairs of eight channels, a in the low and b in the high word.
__m256i pairs(__m128i a, __m128i b) {
  return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
}

void prepare_weights(const DepthwiseConv2dArgs& a, int32_t* to) {
  const size_t stride = (size_t{a.output_c} + 15) / 16 * 16;
  const __m128i zero_point = _mm_set1_epi16(static_cast<int16_t>(a.weights_zero_point));
  const __m128i zero = _mm_setzero_si128();
  for (size_t channel = 0; channel < a.input_c; channel += 8) {
    for (uint32_t kx = 0; kx < 3; ++kx, to += 32) {
      __m128i w[3];
#pragma GCC unroll 3
      for (uint32_t ky = 0; ky < 3; ++ky) {
        const int8_t* from = a.weights + (size_t{ky} * 3 + kx) * stride + channel;
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
        w[ky] = _mm_sub_epi16(_mm_cvtepi8_epi16(bytes), zero_point);
      }
      auto* vectors = reinterpret_cast<__m256i*>(to);
      _mm256_storeu_si256(vectors, pairs(w[0], w[1]));
      _mm256_storeu_si256(vectors + 1, pairs(w[2], zero));
      // The second row of outputs begins a row further down.
      _mm256_storeu_si256(vectors + 2, pairs(zero, w[0]));
      _mm256_storeu_si256(vectors + 3, pairs(w[1], w[2]));
    }
  }
}

// Zero point and clamp of two vectors of outputs: 16 bytes in their order. int8 is packed as
// uint8, 128 above.
struct Finish {
  __m256i zero_point;
  __m128i clamp_min, clamp_max, sign_bias;
  explicit Finish(const DepthwiseConv2dArgs& a) {
    const int32_t to_unsigned = a.output_dtype == Dtype::kS8 ? 128 : 0;
    zero_point = _mm256_set1_epi16(static_cast<int16_t>(a.output_zero_point + to_unsigned));
    clamp_min = _mm_set1_epi8(static_cast<char>(a.clamp_min + to_unsigned));
    clamp_max = _mm_set1_epi8(static_cast<char>(a.clamp_max + to_unsigned));
    sign_bias = _mm_set1_epi8(static_cast<char>(to_unsigned));
  }
  __attribute__((always_inline)) __m128i pack(__m256i first, __m256i second) const {
    const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(first, second), zero_point);
    // Four outputs of the first, four of the second; the other lane has the other fours.
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m128i v = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(v, clamp_min), clamp_max), sign_bias);
  }
};

// Rows 0 and 1, 2 and 3 of a column.
struct Column {
  __m256i upper, lower;
};

struct Rows {
  const uint8_t* inputs[4];
  uint8_t* outputs[2];  // null: there is no such row
};

template <bool kWhole>
__attribute__((always_inline)) inline Column gather(const DepthwiseConv2dArgs& a, const Rows& rows, int64_t c,
                                                    uint32_t channel, uint32_t count, __m256i outside,
                                                    __m128i sign_bias) {
  if (c < 0 || c >= a.input_w) return {outside, outside};
  const size_t offset = static_cast<size_t>(c) * a.input_c + channel;
  const auto load = [&](uint32_t r) __attribute__((always_inline)) {
    const uint8_t* from = rows.inputs[r] + offset;
    return kWhole ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)) : load_low_bytes(from, count);
  };
  const __m128i upper = _mm_unpacklo_epi8(load(0), load(1)), lower = _mm_unpacklo_epi8(load(2), load(3));
  return {_mm256_cvtepu8_epi16(_mm_xor_si128(upper, sign_bias)),
          _mm256_cvtepu8_epi16(_mm_xor_si128(lower, sign_bias))};
}

// All outputs of a block of `count` channels of the rows.
template <typename Epilogue, uint32_t kStride, bool kWhole>
void run_block(const DepthwiseConv2dArgs& a, const Rows& rows, uint32_t channel, uint32_t count,
               const int32_t* weights) {
  constexpr uint32_t kRows = 2 / kStride, kKept = 3 - kStride;
  const __m128i sign_bias = _mm_set1_epi8(static_cast<char>(a.input_dtype == Dtype::kS8 ? 0x80 : 0));
  const __m128i pad = _mm_set1_epi8(static_cast<char>(a.pad_value));
  const __m256i outside = _mm256_cvtepu8_epi16(_mm_xor_si128(pad, sign_bias));
  const Epilogue epilogue(a, channel);
  const Finish finish(a);
  int64_t c = -int64_t{a.pad_left};
  Column columns[3];
#pragma GCC unroll 2
  for (uint32_t i = 0; i < kKept; ++i, ++c)
    columns[i] = gather<kWhole>(a, rows, c, channel, count, outside, sign_bias);
  for (size_t x = 0; x < a.output_w; ++x) {
#pragma GCC unroll 2
    for (uint32_t i = kKept; i < 3; ++i, ++c)
      columns[i] = gather<kWhole>(a, rows, c, channel, count, outside, sign_bias);
    __m256i sums[kRows];
#pragma GCC unroll 2
    for (uint32_t row = 0; row < kRows; ++row) {
      sums[row] = load_whole(a.bias + channel);
#pragma GCC unroll 3
      for (uint32_t kx = 0; kx < 3; ++kx) {
        const int32_t* w = weights + kx * 32 + row * 16;
        sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(columns[kx].upper, load_whole(w)));
        sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(columns[kx].lower, load_whole(w + 8)));
      }
      sums[row] = epilogue.outputs(sums[row]);
    }
    const __m128i bytes = finish.pack(sums[0], sums[kRows - 1]);
    const auto store = [&](uint8_t * row, __m128i v) __attribute__((always_inline)) {
      uint8_t* to = row + x * a.output_c + channel;
      if (kWhole) return _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v);
      store_low_bytes(to, v, count);
    };
    store(rows.outputs[0], bytes);
    if (kRows == 2 && rows.outputs[1] != nullptr) store(rows.outputs[1], _mm_unpackhi_epi64(bytes, bytes));
#pragma GCC unroll 2
    for (uint32_t i = 0; i < kKept; ++i) columns[i] = columns[kStride + i];
  }
}

template <typename Epilogue>
void run_channels(const DepthwiseConv2dArgs& a, const Rows& rows, uint32_t channel, const int32_t* weights) {
  const uint32_t left = a.input_c - channel;
  if (a.stride_h == 1) {
    return left >= 8 ? run_block<Epilogue, 1, true>(a, rows, channel, 8, weights)
                     : run_block<Epilogue, 1, false>(a, rows, channel, left, weights);
  }
  return left >= 8 ? run_block<Epilogue, 2, true>(a, rows, channel, 8, weights)
                   : run_block<Epilogue, 2, false>(a, rows, channel, left, weights);
}

void run_group(const DepthwiseConv2dArgs& a, const Rows& rows, uint32_t channel, const int32_t* weights) {
  if (a.contract == Contract::kF32e) {
    run_channels<F32eEpilogue>(a, rows, channel, weights);
  } else if (a.float_epilogue != FloatEpilogue::kNone && groups_have_form(a, channel / 16, 1)) {
    if (a.float_epilogue == FloatEpilogue::kPlain) {
      run_channels<PlainEpilogue>(a, rows, channel, weights);
    } else {
      run_channels<SignedEpilogue>(a, rows, channel, weights);
    }
  } else if (a.contract == Contract::kTfl2) {
    run_channels<Tfl2Epilogue>(a, rows, channel, weights);
  } else {
    run_channels<Tfl1Epilogue>(a, rows, channel, weights);
  }
}

// A row of padding, which is written when a run first meets it.
struct Padding {
  uint8_t* row;
  bool is_filled;
  const uint8_t* filled(const DepthwiseConv2dArgs& a) {
    if (!is_filled) fill(row, static_cast<uint8_t>(a.pad_value), size_t{a.input_w} * a.input_c);
    is_filled = true;
    return row;
  }
};

Rows rows_of_work_item(const DepthwiseConv2dArgs& a, uint32_t work_item, Padding* padding) {
  const uint32_t n = work_item / work_items_of_rows(a),
                 y = work_item % work_items_of_rows(a) * rows_at_once(a);
  const size_t input_row = size_t{a.input_w} * a.input_c, output_row = size_t{a.output_w} * a.output_c;
  const uint8_t* image = static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * input_row;
  uint8_t* out = static_cast<uint8_t*>(a.output) + (size_t{n} * a.output_h + y) * output_row;
  Rows rows;
  for (uint32_t r = 0; r < 4; ++r) {
    const int64_t iy = int64_t{y} * a.stride_h + r - a.pad_top;
    const bool is_inside = iy >= 0 && iy < a.input_h;
    rows.inputs[r] = is_inside ? image + static_cast<size_t>(iy) * input_row : padding->filled(a);
  }
  rows.outputs[0] = out;
  rows.outputs[1] = rows_at_once(a) == 2 && y + 1 < a.output_h ? out + output_row : nullptr;
  return rows;
}

// Never inlined: MXCSR changes around it.
__attribute__((noinline)) void run_work_items(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                              void* scratch) {
  Padding padding = {static_cast<uint8_t*>(scratch), false};
  auto* weights = reinterpret_cast<int32_t*>(padding.row + padding_bytes(a));
  prepare_weights(a, weights);
  for (uint32_t work_item = begin; work_item < end; ++work_item) {
    const Rows rows = rows_of_work_item(a, work_item, &padding);
    for (uint32_t channel = 0; channel < a.input_c; channel += 8)
      run_group(a, rows, channel, weights + channel / 8 * kBlockWeights);
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
// At stride 2 a column serves one row, and of many channels taps are faster.
Refusal accepts(const DepthwiseConv2dArgs& a) {
  const Refusal refusal = columns_accepts(a);
  if (refusal != Refusal::kNone) return refusal;
  const bool has_code =
      a.kernel_h == 3 && a.dilation_h == 1 && a.dilation_w == 1 && (a.stride_h == 1 || a.input_c <= 64);
  return has_code ? Refusal::kNone : Refusal::kWindow;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) {
  return padding_bytes(a) + (size_t{a.input_c} + 7) / 8 * kBlockWeights * sizeof(int32_t);
}

uint32_t work_items(const DepthwiseConv2dArgs& a) { return a.batch * work_items_of_rows(a); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const EpilogueRounding rounding(a.float_epilogue != FloatEpilogue::kNone);
  run_work_items(a, begin, end, scratch);
}
#endif

}  // namespace qplan::depthwise_columns_avx2
