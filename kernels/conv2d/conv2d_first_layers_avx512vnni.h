// First layers of small networks for conv2d_simd.cc: 3x3 from one or three channels to eight. Vectors of
// sixteen channels would be half empty. Here lane 4 * p + c of a vector of sums is channel c of pixel p, four
// channels of four pixels, and no row of the input is copied: 64 bytes of it contain what eight windows read,
// and shuffles make the windows of those. 128 x 128 x 3 with stride 2 takes 5.6 us where the product of
// interleaved rows takes 9.1 (Zen 5). Internal linkage only.
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_FIRST_LAYERS_AVX512VNNI_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_FIRST_LAYERS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

constexpr uint32_t kKernel = 3, kMaxStride = 2;
constexpr uint32_t kChannels = 8;
// Pixels of a tile; those whose windows a load of 64 bytes contains.
constexpr uint32_t kPixels = 16, kLoadedPixels = 8;
static_assert((kLoadedPixels - 1) * kMaxStride * 3 + kKernel * 3 <= 64, "of three channels, too");

// Asked about layers that conv2d_avx512vnni accepts.
inline bool is_first_layer(const Conv2dArgs& a) {
  return a.output_c == kChannels && (a.input_c == 1 || a.input_c == 3) && a.groups == 1 &&
         a.kernel_h == kKernel && a.kernel_w == kKernel && a.dilation_h == 1 && a.dilation_w == 1 &&
         a.stride_h <= kMaxStride && a.stride_w <= kMaxStride && a.output_w >= kPixels &&
         a.weights_zero_point == 0 && !a.has_residual && a.float_epilogue == FloatEpilogue::kPlain &&
         groups_have_form(a, 0, 1);
}

constexpr uint32_t kFours = kChannels / 4;  // of channels
constexpr uint32_t kGroups = kPixels / 4;   // of pixels
constexpr uint32_t kLoads = kPixels / kLoadedPixels;

// ---- the order of the bytes of a window, that of its weights: kDwords times four bytes, of which 128 bits
// of a vector have kVectorDwords. at(): where byte i of a vector is in a row, after the first byte of the
// window, or kNothing where it is in none or in another row.

constexpr int8_t kNothing = INT8_MIN;  // shuffles make zero of it

// Three channels, column by column: 27 bytes.
struct Columns {
  static constexpr uint32_t kVectors = 2, kVectorDwords = 4, kDwords = 7;
  static constexpr int8_t at(uint32_t vector, uint32_t row, uint32_t i) {
    const uint32_t k = vector * 16 + i;
    return k < 27 && k / 3 % 3 == row ? static_cast<int8_t>(k / 9 * 3 + k % 3) : kNothing;
  }
};
// Three channels, row by row: nine bytes and three of nothing.
struct Rows {
  static constexpr uint32_t kVectors = 3, kVectorDwords = 3, kDwords = 9;
  static constexpr int8_t at(uint32_t vector, uint32_t row, uint32_t i) {
    return vector == row && i < 9 ? static_cast<int8_t>(i) : kNothing;
  }
};
// One channel, row by row: three bytes and one of nothing.
struct GrayRows {
  static constexpr uint32_t kVectors = 1, kVectorDwords = 3, kDwords = 3;
  static constexpr int8_t at(uint32_t, uint32_t row, uint32_t i) {
    return i / 4 == row && i % 4 < 3 ? static_cast<int8_t>(i % 4) : kNothing;
  }
};

// at() of 16 bytes of each row.
struct RowOrders {
  int8_t of_row[kKernel][16];
};
template <typename Order>
struct Orders {
  RowOrders vectors[Order::kVectors] = {};
  constexpr Orders() {
    for (uint32_t v = 0; v < Order::kVectors; ++v) {
      for (uint32_t row = 0; row < kKernel; ++row) {
        for (uint32_t i = 0; i < 16; ++i) vectors[v].of_row[row][i] = Order::at(v, row, i);
      }
    }
  }
};
template <typename Order>
constexpr Orders<Order> kOrders{};

// The rests of weights, four at most: as many more bytes of each window, which all fours of channels
// multiply, most of them with zero. Rest i has byte i of the dword of its channel.
struct Rests {
  RowOrders orders;
  int8_t weights[kFours][16];

  explicit Rests(const Conv2dArgs& a) {
    static_assert(kMaxWeightRests <= 4, "a dword has four bytes");
    fill(reinterpret_cast<uint8_t*>(orders.of_row), static_cast<uint8_t>(kNothing), sizeof(orders.of_row));
    fill(reinterpret_cast<uint8_t*>(weights), 0, sizeof(weights));
    for (uint32_t i = 0; i < a.num_weight_rests; ++i) {
      const WeightRest rest = weight_rest(a, i);
      const uint32_t at = rest.channel % 4 * 4 + i, columns = kKernel * a.input_c;
      orders.of_row[rest.k / columns][at] = static_cast<int8_t>(rest.k % columns);
      weights[rest.channel / 4][at] = static_cast<int8_t>(rest.rest);
    }
  }
};

// 64 bytes of each of three rows.
struct RowBytes {
  const uint8_t* at[kKernel];
  __mmask64 inside;  // others are padding
};

struct Sums {
  __m512i v[kGroups][kFours];
};

// ---- a convolution: what all tiles read, in memory, because there are no registers for it

template <typename Order>
class FirstLayer {
 public:
  explicit FirstLayer(const Conv2dArgs& a)
      : a_(a),
        bytes_(a),
        step_(a.stride_w * a.input_c),
        row_bytes_(size_t{a.input_w} * a.input_c),
        sign_bias_(_mm512_set1_epi8(a.input_dtype == Dtype::kS8 ? INT8_MIN : 0)),
        outside_(_mm512_set1_epi8(static_cast<char>(a.pad_value))) {
    // Pixel p of four begins p steps after the first one: in the dword that its 128 bits begin with.
    const __m512i pixel = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i begin = _mm512_mullo_epi32(pixel, _mm512_set1_epi32(static_cast<int>(step_)));
    windows_[0] = _mm512_add_epi32(_mm512_srli_epi32(begin, 2),
                                   _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3));
    windows_[1] = _mm512_add_epi32(windows_[0], _mm512_set1_epi32(static_cast<int>(step_)));
    begins_ =
        _mm512_mullo_epi32(_mm512_and_si512(begin, _mm512_set1_epi32(3)), _mm512_set1_epi32(0x01010101));
    for (uint32_t v = 0; v < Order::kVectors; ++v) set_orders(kOrders<Order>.vectors[v], orders_[v]);
    if (a.num_weight_rests != 0) {
      const Rests rests(a);
      set_orders(rests.orders, rest_orders_);
      for (uint32_t j = 0; j < kFours; ++j) rest_weights_[j] = broadcast_16_bytes(rests.weights[j]);
    }
    for (uint32_t j = 0; j < kFours; ++j) {
      for (uint32_t k = 0; k < Order::kDwords; ++k)
        weights_[k][j] = broadcast_16_bytes(a.weights + k * 64 + j * 16);
      biases_[j] = broadcast_16_bytes(a.bias + j * 4);
      scales_[j] = broadcast_16_bytes(a.float_scale + j * 4);
      offsets_[j] = broadcast_16_bytes(a.float_offset + j * 4);
    }
  }

  // Rows [begin, end) of outputs. Those of a tile are made between the products of the next one: right behind
  // their own they would fill the queues of the processor while they wait. What is before the first tile is
  // written to where its outputs go, and then written over.
  void run(uint32_t begin, uint32_t end) {
    const int64_t padding = int64_t{a_.pad_left} * a_.input_c;
    uint8_t* out_before = output_row(begin);
    Sums before = {};
    for (uint32_t row = begin; row < end; ++row) {
      const InputRows rows = rows_of(row);
      for (uint32_t x = 0; x < a_.output_w; x += kPixels) {
        // The last tile may begin among pixels that are done.
        const uint32_t first = x + kPixels <= a_.output_w ? x : a_.output_w - kPixels;
        RowBytes loads[kLoads];
#pragma GCC unroll 2
        for (uint32_t i = 0; i < kLoads; ++i)
          loads[i] = bytes_at(rows, static_cast<int64_t>((first + i * kLoadedPixels) * step_) - padding);
        const Sums sums = make_sums(loads, &before);
        store(before, out_before);
        before = sums;
        out_before = output_row(row) + size_t{first} * kChannels;
      }
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kGroups * kFours; ++i) finish(i, &before);
    store(before, out_before);
  }

 private:
  // Pixels begin up to three bytes after the first one of their 128 bits. What is nothing stays so.
  __attribute__((always_inline)) void set_orders(const RowOrders& from, __m512i (&orders)[kKernel]) const {
#pragma GCC unroll 3
    for (uint32_t r = 0; r < kKernel; ++r) {
      const __m512i order = broadcast_16_bytes(from.of_row[r]);
      orders[r] = _mm512_mask_add_epi8(order, ~_mm512_movepi8_mask(order), order, begins_);
    }
  }

  uint8_t* output_row(uint32_t row) const {
    return static_cast<uint8_t*>(a_.output) + size_t{row} * a_.output_w * kChannels;
  }

  // Where the rows begin that a row of outputs reads, null for those outside.
  struct InputRows {
    const uint8_t* at[kKernel];
  };
  InputRows rows_of(uint32_t output_row) const {
    const uint32_t n = output_row / a_.output_h, y = output_row % a_.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(a_.input) + size_t{n} * a_.input_h * row_bytes_;
    InputRows rows;
    for (uint32_t r = 0; r < kKernel; ++r) {
      const int64_t row = int64_t{y} * a_.stride_h + r - a_.pad_top;
      rows.at[r] = row >= 0 && row < a_.input_h ? image + static_cast<size_t>(row) * row_bytes_ : nullptr;
    }
    return rows;
  }

  // From byte `begin` of the rows on.
  __attribute__((always_inline)) RowBytes bytes_at(const InputRows& rows, int64_t begin) const {
    RowBytes bytes;
#pragma GCC unroll 3
    for (uint32_t r = 0; r < kKernel; ++r) {
      // What is outside is not read, wherever it would be.
      const auto* at = reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(rows.at[r]) +
                                                        static_cast<uintptr_t>(begin));
      bytes.at[r] = rows.at[r] != nullptr ? at : reinterpret_cast<const uint8_t*>(&outside_);
    }
    const int64_t left = static_cast<int64_t>(row_bytes_) - begin;
    bytes.inside = ~__mmask64{0};
    if (left < 64) bytes.inside = mask64(left < 0 ? 0 : static_cast<uint32_t>(left));
    if (begin < 0) bytes.inside &= begin <= -64 ? 0 : ~__mmask64{0} << -begin;
    return bytes;
  }

  // What the windows of four pixels, group t, read of row r.
  __attribute__((always_inline)) __m512i load_windows(const RowBytes (&loads)[kLoads], uint32_t t,
                                                      uint32_t r) const {
    const RowBytes& from = loads[t / 2];
    return _mm512_permutexvar_epi32(windows_[t % 2],
                                    _mm512_mask_loadu_epi8(outside_, from.inside, from.at[r]));
  }

  __attribute__((always_inline)) __m512i ordered(const __m512i (&rows)[kKernel],
                                                 const __m512i (&orders)[kKernel]) const {
    const __m512i low =
        _mm512_or_si512(_mm512_shuffle_epi8(rows[0], orders[0]), _mm512_shuffle_epi8(rows[1], orders[1]));
    return _mm512_xor_si512(_mm512_or_si512(low, _mm512_shuffle_epi8(rows[2], orders[2])), sign_bias_);
  }

  // The sums of a tile, and outputs of those before.
  __attribute__((always_inline)) Sums make_sums(const RowBytes (&loads)[kLoads], Sums* before) const {
    // Else the compiler keeps of this what there are no registers for.
    __asm__ volatile("" : : "r"(this) : "memory");
    __m512i windows[Order::kVectors][kGroups], of_rests[kGroups];
    const bool has_rests = __builtin_expect(a_.num_weight_rests != 0, 0);
#pragma GCC unroll 4
    for (uint32_t t = 0; t < kGroups; ++t) {
      __m512i rows[kKernel];
#pragma GCC unroll 3
      for (uint32_t r = 0; r < kKernel; ++r) rows[r] = load_windows(loads, t, r);
      of_rests[t] = has_rests ? ordered(rows, rest_orders_) : sign_bias_;
#pragma GCC unroll 3
      for (uint32_t v = 0; v < Order::kVectors; ++v) {
        windows[v][t] = Order::kVectors == kKernel  // each of one row
                            ? _mm512_xor_si512(_mm512_shuffle_epi8(rows[v], orders_[v][v]), sign_bias_)
                            : ordered(rows, orders_[v]);
      }
    }
    Sums sums;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kGroups * kFours; ++i) sums.v[i / kFours][i % kFours] = biases_[i % kFours];
    uint32_t finished = 0;
#pragma GCC unroll 9
    for (uint32_t k = 0; k < Order::kDwords; ++k) {
      const __m512i(&of_k)[kGroups] = windows[k / Order::kVectorDwords];
      switch (k % Order::kVectorDwords) {
        case 0:
          add_products<true, 0>(of_k, weights_[k], &sums);
          break;
        case 1:
          add_products<true, 1>(of_k, weights_[k], &sums);
          break;
        case 2:
          add_products<true, 2>(of_k, weights_[k], &sums);
          break;
        default:
          add_products<true, 3>(of_k, weights_[k], &sums);
      }
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kGroups * kFours; ++i) {
        if (i >= finished && i < kGroups * kFours * (k + 1) / Order::kDwords) finish(i, before);
      }
      finished = kGroups * kFours * (k + 1) / Order::kDwords;
    }
    if (has_rests) add_products<false, 0>(of_rests, rest_weights_, &sums);
    return sums;
  }

  // Adds products: of dword kDword of the 128 bits of each pixel, which all channels share; else each channel
  // has a dword of its own there.
  template <bool kIsShared, uint32_t kDword>
  __attribute__((always_inline)) void add_products(const __m512i (&windows)[kGroups],
                                                   const __m512i (&weights)[kFours], Sums* sums) const {
#pragma GCC unroll 4
    for (uint32_t t = 0; t < kGroups; ++t) {
      const __m512i u = kIsShared
                            ? _mm512_shuffle_epi32(windows[t], static_cast<_MM_PERM_ENUM>(kDword * 0x55))
                            : windows[t];
#pragma GCC unroll 2
      for (uint32_t j = 0; j < kFours; ++j) dot_u8s8_512(sums->v[t][j], u, weights[j]);
    }
  }

  // Makes an output of sum i.
  __attribute__((always_inline)) void finish(uint32_t i, Sums* sums) const {
    const uint32_t j = i % kFours;
    __m512i& sum = sums->v[i / kFours][j];
    sum = PlainEpilogue(_mm512_castsi512_ps(scales_[j]), _mm512_castsi512_ps(offsets_[j])).outputs(sum);
  }

  __attribute__((always_inline)) void store(const Sums& outputs, uint8_t* out) const {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
#pragma GCC unroll 2
    for (uint32_t t = 0; t < kGroups; t += 2, out += 64) {
      const __m512i(&v)[kGroups][kFours] = outputs.v;
      // 128 bits have the eight channels of a pixel of group t, and of one of the next group.
      const __m512i lanes = bytes_.pack_lanes(v[t][0], v[t][1], v[t + 1][0], v[t + 1][1]);
      _mm512_storeu_si512(out, _mm512_permutexvar_epi64(order, lanes));
    }
  }

  const Conv2dArgs& a_;
  const OutputBytes bytes_;
  const size_t step_;  // bytes from a window to the next
  const size_t row_bytes_;
  const __m512i sign_bias_, outside_;
  __m512i windows_[2];  // dwords of 64 bytes that contain the windows of the first four pixels, of the others
  __m512i begins_;
  __m512i orders_[Order::kVectors][kKernel];
  __m512i rest_orders_[kKernel], rest_weights_[kFours];  // where there are rests
  // Each of four channels, four times: loads, where broadcast_16_bytes would be one more vector operation.
  __m512i weights_[Order::kDwords][kFours], biases_[kFours], scales_[kFours], offsets_[kFours];
};

template <typename Order>
__attribute__((noinline)) void run_first_layer_of(const Conv2dArgs& a, uint32_t begin, uint32_t end) {
  FirstLayer<Order>(a).run(begin, end);
}

// Rows [begin, end) of outputs, n * output_h + y. begin < end.
inline void run_first_layer(const Conv2dArgs& a, uint32_t begin, uint32_t end) {
  if (a.input_c == 1) return run_first_layer_of<GrayRows>(a, begin, end);
  return a.weights_layout == kLayout_o16z4 ? run_first_layer_of<Columns>(a, begin, end)
                                           : run_first_layer_of<Rows>(a, begin, end);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_FIRST_LAYERS_AVX512VNNI_H_
