// First layers for conv2d_simd.cc: 3x3 from three channels to sixteen with stride 1. Three rows of input
// become one, column by column: a window is 27 contiguous bytes of it, seven groups of four where rows apart
// have nine. The weights stay in registers, no row of input is copied first, and the outputs of a tile are
// made between the products of the next one, from the first row to the last. 32 x 32 takes 2.8 us where the
// product of a line buffer takes 3.8 (Zen 4); with stride 2, 513 x 513 takes as long as there. Internal
// linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_INTERLEAVED_AVX512VNNI_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_INTERLEAVED_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/conv2d/conv2d_line_buffer.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint32_t kInterleavedRows = 3, kInterleavedChannels = 3;
constexpr uint32_t kColumnBytes = kInterleavedRows * kInterleavedChannels;
constexpr uint32_t kWindowBytes = kInterleavedRows * kColumnBytes;
constexpr uint32_t kWindowDwords = (kWindowBytes + 3) / 4;
constexpr uint32_t kTilePixels = 8;
constexpr uint32_t kOutputChannels = 16;

// In the scratch memory of a line buffer. One is made while the other is read: reads right behind writes
// would wait for them.
constexpr uint32_t kLines = 2;
inline size_t interleaved_line_bytes(const LineBuffer& line_buffer) {
  return line_buffer.columns * kColumnBytes + kRowSlack;
}

// Asked about layers that conv2d_avx512vnni accepts.
inline bool is_interleaved_layer(const Conv2dArgs& a) {
  if (a.output_c != kOutputChannels || a.input_c != kInterleavedChannels || a.groups != 1 ||
      a.kernel_h != kInterleavedRows || a.kernel_w != kInterleavedRows || a.dilation_h != 1 ||
      a.dilation_w != 1 || a.stride_w != 1 || a.weights_layout != kLayout_o16r4 ||
      a.weights_zero_point != 0 || a.num_weight_rests != 0 || a.has_residual ||
      a.float_epilogue != FloatEpilogue::kPlain || !groups_have_form(a, 0, 1)) {
    return false;
  }
  const LineBuffer line_buffer = line_buffer_of(a);
  return a.output_w - (line_buffer.blocks_across - 1) * line_buffer.width >= kTilePixels &&
         kLines * interleaved_line_bytes(line_buffer) + kRowSlack <= line_buffer_bytes(a, line_buffer);
}

// ---- lines: 16 bytes of each of three rows make five columns

constexpr uint32_t kColumnsAtOnce = 5;
constexpr uint32_t kBytesAtOnce = kColumnsAtOnce * kInterleavedChannels;  // of a row

struct ColumnOrders {
  alignas(64) int8_t of_row[kInterleavedRows][64] = {};
  constexpr ColumnOrders() {
    for (uint32_t row = 0; row < kInterleavedRows; ++row) {
      for (uint32_t i = 0; i < 64; ++i) {
        const bool is_of_row = i < kBytesAtOnce * kInterleavedRows && i / kInterleavedChannels % 3 == row;
        const uint32_t from = i / kColumnBytes * kInterleavedChannels + i % kInterleavedChannels;
        of_row[row][i] = is_of_row ? static_cast<int8_t>(from) : INT8_MIN;
      }
    }
  }
};
constexpr ColumnOrders kColumnOrders;

// ---- weights: those of a line buffer have the rows of a window apart, nine bytes and three of nothing each

// order[to][from]: what dword `to` of the bytes of a window in a line takes of dword `from` of rows apart.
struct WindowOrder {
  static constexpr uint32_t kNothing = 0x80808080;
  static constexpr uint32_t kFrom = 9;
  uint32_t order[kWindowDwords][kFrom] = {};
  constexpr WindowOrder() {
    for (uint32_t to = 0; to < kWindowDwords; ++to) {
      for (uint32_t from = 0; from < kFrom; ++from) order[to][from] = kNothing;
    }
    for (uint32_t k = 0; k < kWindowBytes; ++k) {
      const uint32_t row = k % kColumnBytes / kInterleavedChannels;
      const uint32_t at = k / kColumnBytes * kInterleavedChannels + k % kInterleavedChannels;
      uint32_t& four = order[k / 4][row * 3 + at / 4];
      four = (four & ~(0xffu << k % 4 * 8)) | at % 4 << k % 4 * 8;
    }
  }
};
constexpr WindowOrder kWindowOrder;

inline void load_window_weights(const Conv2dArgs& a, __m512i (&weights)[kWindowDwords]) {
  // Where the four bytes of a channel begin in their 128 bits. What is nothing stays so.
  const __m512i channels = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
#pragma GCC unroll 7
  for (uint32_t to = 0; to < kWindowDwords; ++to) {
    weights[to] = _mm512_setzero_si512();
#pragma GCC unroll 9
    for (uint32_t from = 0; from < WindowOrder::kFrom; ++from) {
      const uint32_t order = kWindowOrder.order[to][from];
      if (order == WindowOrder::kNothing) continue;
      const __m512i bytes =
          _mm512_shuffle_epi8(_mm512_loadu_si512(a.weights + from * 64),
                              _mm512_add_epi8(_mm512_set1_epi32(static_cast<int32_t>(order)), channels));
      weights[to] = _mm512_or_si512(weights[to], bytes);
    }
  }
}

// ---- a convolution

class InterleavedLayer {
 public:
  InterleavedLayer(const Conv2dArgs& a, void* scratch)
      : a_(a),
        line_buffer_(line_buffer_of(a)),
        lines_(line_buffer_scratch(a, line_buffer_, false, scratch).line_buffer),
        sign_bias_(_mm512_set1_epi8(static_cast<char>(line_buffer_sign_bias(a, false)))),
        outside_(_mm_set1_epi8(static_cast<char>(a.pad_value))) {}

  // Work items [begin, end), blocks of the line buffer. What is before the first tile is written to where its
  // outputs go, and then written over.
  void run(uint32_t begin, uint32_t end) const {
    const Conv2dArgs& a = a_;
    const OutputBytes bytes(a);
    const PlainEpilogue epilogue(a, 0);
    const __m512i bias = _mm512_loadu_si512(a.bias);
    __m512i weights[kWindowDwords], before[kTilePixels];
    load_window_weights(a, weights);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kTilePixels; ++i) before[i] = _mm512_setzero_si512();
    const auto finish_four = [&](uint32_t first, uint8_t * out) __attribute__((always_inline)) {
      __m512i outputs[4];
#pragma GCC unroll 4
      for (uint32_t i = 0; i < 4; ++i) outputs[i] = epilogue.outputs(before[first + i]);
      _mm512_storeu_si512(out + first * kOutputChannels,
                          bytes.pack(outputs[0], outputs[1], outputs[2], outputs[3]));
    };
    uint8_t* out_before = block_of(begin).out;
    uint32_t line = 0;
    for (uint32_t item = begin; item < end; ++item) {
      const Block block = block_of(item);
      for (uint32_t row = 0; row < block.height; ++row, line ^= 1) {
        uint8_t* const columns = lines_ + line * interleaved_line_bytes(line_buffer_);
        make_line(block, row, columns);
        uint8_t* const out = block.out + size_t{row} * a.output_w * kOutputChannels;
        for (uint32_t x = 0; x < block.width; x += kTilePixels) {
          // The last tile may begin among pixels that are done.
          const uint32_t first = x + kTilePixels <= block.width ? x : block.width - kTilePixels;
          const uint8_t* windows = columns + size_t{first} * kColumnBytes;
          __m512i sums[kTilePixels];
#pragma GCC unroll 8
          for (uint32_t i = 0; i < kTilePixels; ++i) sums[i] = bias;
#pragma GCC unroll 7
          for (uint32_t k = 0; k < kWindowDwords; ++k) {
#pragma GCC unroll 8
            for (uint32_t i = 0; i < kTilePixels; ++i) {
              int32_t four;
              __builtin_memcpy(&four, windows + i * kColumnBytes + k * 4, 4);
              dot_u8s8_512(sums[i], _mm512_set1_epi32(four), weights[k]);
            }
            if (k == 1) finish_four(0, out_before);
            if (k == 3) finish_four(4, out_before);
          }
#pragma GCC unroll 8
          for (uint32_t i = 0; i < kTilePixels; ++i) before[i] = sums[i];
          out_before = out + size_t{first} * kOutputChannels;
        }
      }
    }
    finish_four(0, out_before);
    finish_four(4, out_before);
  }

 private:
  // Pixels of outputs of a work item.
  struct Block {
    uint8_t* out;
    uint32_t n, y, x, height, width;
  };
  Block block_of(uint32_t item) const {
    const LineBuffer& b = line_buffer_;
    const uint32_t across = item % b.blocks_across, down = item / b.blocks_across;
    Block block;
    block.n = down / b.blocks_down;
    block.y = down % b.blocks_down * b.height;
    block.x = across * b.width;
    block.height = a_.output_h - block.y < b.height ? a_.output_h - block.y : b.height;
    block.width = a_.output_w - block.x < b.width ? a_.output_w - block.x : b.width;
    block.out = static_cast<uint8_t*>(a_.output) +
                ((size_t{block.n} * a_.output_h + block.y) * a_.output_w + block.x) * kOutputChannels;
    return block;
  }

  // What row `row` of a block reads, with padding where the input ends.
  void make_line(const Block& block, uint32_t row, uint8_t* to) const {
    const LineBufferRow parts = line_buffer_row(a_, line_buffer_, int64_t{block.x} - a_.pad_left, false);
    const size_t row_bytes = size_t{a_.input_w} * kInterleavedChannels;
    const uint8_t* image = static_cast<const uint8_t*>(a_.input) + block.n * a_.input_h * row_bytes;
    const uint8_t* from[kInterleavedRows];
    size_t step[kInterleavedRows];
    for (uint32_t r = 0; r < kInterleavedRows; ++r) {
      const int64_t y = int64_t{block.y + row} * a_.stride_h + r - a_.pad_top;
      const bool is_inside = y >= 0 && y < a_.input_h;
      from[r] = is_inside ? image + static_cast<size_t>(y) * row_bytes + parts.first
                          : reinterpret_cast<const uint8_t*>(&outside_);
      step[r] = is_inside ? kBytesAtOnce : 0;
    }
    if (parts.before != 0) fill(to, parts.pad, parts.before * kInterleavedRows);
    to += parts.before * kInterleavedRows;
    size_t left = parts.run;
    for (; left > kBytesAtOnce; left -= kBytesAtOnce, to += kBytesAtOnce * kInterleavedRows) {
      __m512i columns = sign_bias_;
#pragma GCC unroll 3
      for (uint32_t r = 0; r < kInterleavedRows; ++r, from[r - 1] += step[r - 1])
        columns = _mm512_xor_si512(columns, ordered(broadcast_16_bytes(from[r]), r));
      _mm512_storeu_si512(to, columns);
    }
    // The last bytes of the last row may be those of the input.
    const __mmask16 mask = static_cast<__mmask16>((1u << left) - 1);
    __m512i columns = sign_bias_;
#pragma GCC unroll 3
    for (uint32_t r = 0; r < kInterleavedRows; ++r)
      columns =
          _mm512_xor_si512(columns, ordered(_mm512_broadcast_i32x4(_mm_maskz_loadu_epi8(mask, from[r])), r));
    _mm512_storeu_si512(to, columns);
    if (parts.after != 0) fill(to + left * kInterleavedRows, parts.pad, parts.after * kInterleavedRows);
  }

  // The bytes of row r where they are in columns, and zero elsewhere.
  __attribute__((always_inline)) static __m512i ordered(__m512i bytes, uint32_t r) {
    return _mm512_shuffle_epi8(bytes, _mm512_load_si512(kColumnOrders.of_row[r]));
  }

  const Conv2dArgs& a_;
  const LineBuffer line_buffer_;
  uint8_t* const lines_;
  const __m512i sign_bias_;
  const __m128i outside_;
};

__attribute__((noinline)) void run_interleaved_layer(const Conv2dArgs& a, uint32_t begin, uint32_t end,
                                                     void* scratch) {
  InterleavedLayer(a, scratch).run(begin, end);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_INTERLEAVED_AVX512VNNI_H_
