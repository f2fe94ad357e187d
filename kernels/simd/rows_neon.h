// Rows of bytes before a product (kernels/simd/gemm.h) on 64-bit Arm: copies and lists of them, their pixels
// interleaved, and the sums of their bytes. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROWS_NEON_H_
#define QPLAN_KERNELS_SIMD_ROWS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/neon.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// 64 bytes, each ^ sign_bias where `Biased`, which spares int8's rows four of nine instructions; moves both
// addresses on.
template <bool Biased>
__attribute__((always_inline)) inline void copy_four_on(uint8_t*& to, const uint8_t*& from,
                                                        uint8x16_t sign_bias) {
#if defined(__clang__)
  uint8x16x4_t four = vld1q_u8_x4(from);
  from += 64;
#else
  uint8x16x4_t four;
  const auto* vectors = reinterpret_cast<const uint8x16x4_t*>(from);
  __asm__("ld1 {%S0.16b - %V0.16b}, [%1], #64" : "=w"(four), "+r"(from) : "m"(*vectors));
#endif
  if constexpr (Biased) {
    // By hand: of a loop over the four GCC 12 makes one over copies on the stack.
    four.val[0] = veorq_u8(four.val[0], sign_bias);
    four.val[1] = veorq_u8(four.val[1], sign_bias);
    four.val[2] = veorq_u8(four.val[2], sign_bias);
    four.val[3] = veorq_u8(four.val[3], sign_bias);
  }
  vst1q_u8_x4(to, four);
  to += 64;
}

// to[i] = from[i] ^ sign_bias.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  const uint8x16_t sign_biases = vdupq_n_u8(sign_bias);
  const uint8_t* end = from + count / 64 * 64;
  if (sign_bias == 0) {
    while (from != end) copy_four_on<false>(to, from, sign_biases);
  } else {
    while (from != end) copy_four_on<true>(to, from, sign_biases);
  }
  for (count %= 64; count >= 16; count -= 16, from += 16, to += 16) {
    vst1q_u8(to, veorq_u8(vld1q_u8(from), sign_biases));
  }
  for (size_t i = 0; i < count; ++i) to[i] = from[i] ^ sign_bias;
}

// Writes where `count` rows begin, side by side; returns where the next is written.
inline const uint8_t** list_rows(const uint8_t** rows, const uint8_t* row, size_t row_stride,
                                 uint32_t count) {
  static_assert(sizeof(*rows) == sizeof(uint64_t), "two fill a vector");
  const auto first = reinterpret_cast<uint64_t>(row);
  const uint64x2_t step = vdupq_n_u64(4 * row_stride);
  uint64x2_t low = vcombine_u64(vcreate_u64(first), vcreate_u64(first + row_stride));
  uint64x2_t high = vaddq_u64(low, vdupq_n_u64(2 * row_stride));
  for (const uint8_t** end = rows + count / 4 * 4; rows != end; rows += 4) {
    store_ints(rows, vreinterpretq_s32_u64(low));
    store_ints(rows + 2, vreinterpretq_s32_u64(high));
    low = vaddq_u64(low, step);
    high = vaddq_u64(high, step);
  }
  row += count / 4 * 4 * row_stride;
  for (count %= 4; count != 0; --count, row += row_stride) *rows++ = row;
  return rows;
}

// RowInterleave of kernels/simd/gemm.h by tables of bytes: 16 bytes of each of two to four rows make as many
// vectors of columns. The 225 columns of 3 rows of 3 bytes under a row of MobileNet V2's first layer take 45
// iterations of 13 instructions, and 225 of 40 by plain loads and stores (QEMU, GCC 12).
class RowInterleave {
 public:
  RowInterleave(uint32_t num_rows, uint32_t pixel_bytes) : num_rows_(num_rows), pixel_bytes_(pixel_bytes) {
    if (num_rows < 2 || num_rows > kMostRows) return;
    columns_ = 16 / pixel_bytes;
    uint32_t at = 0;
    for (uint32_t x = 0; x < columns_; ++x) {
      for (uint32_t y = 0; y < num_rows; ++y) {
        for (uint32_t i = 0; i < pixel_bytes; ++i) {
          order_[at++] = static_cast<uint8_t>(16 * y + x * pixel_bytes + i);
        }
      }
    }
    while (at < sizeof(order_)) order_[at++] = UINT8_MAX;
  }

  void interleave(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    switch (num_rows_) {
      case 2:
        return interleave_rows<2>(first_row, pitch, columns, to);
      case 3:
        return interleave_rows<3>(first_row, pitch, columns, to);
      case 4:
        return interleave_rows<4>(first_row, pitch, columns, to);
      default:
        return interleave_pixels(first_row, pitch, columns, to);
    }
  }

 private:
  static constexpr uint32_t kMostRows = 4;

  // 16 bytes of each row, of which whole columns count.
  template <uint32_t kRows>
  void interleave_rows(const uint8_t* from, size_t pitch, size_t columns, uint8_t* to) const {
    const uint32_t step = columns_ * pixel_bytes_;
    uint8x16_t order[kRows];
#pragma GCC unroll 4
    for (uint32_t v = 0; v < kRows; ++v) order[v] = vld1q_u8(order_ + 16 * v);
    for (size_t x = 0; x < columns; x += columns_, from += step, to += step * kRows) {
      uint8x16x4_t rows = {};
#pragma GCC unroll 4
      for (uint32_t y = 0; y < kRows; ++y) rows.val[y] = vld1q_u8(from + y * pitch);
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kRows; ++v) vst1q_u8(to + 16 * v, look_up<kRows>(rows, order[v]));
    }
  }

  template <uint32_t kRows>
  static uint8x16_t look_up(const uint8x16x4_t& rows, uint8x16_t order) {
    if constexpr (kRows == 2) return vqtbl2q_u8({rows.val[0], rows.val[1]}, order);
    if constexpr (kRows == 3) return vqtbl3q_u8({rows.val[0], rows.val[1], rows.val[2]}, order);
    return vqtbl4q_u8(rows, order);
  }

  // For any number of rows. Each store writes 16 bytes; the next pixel overwrites those beyond its own.
  void interleave_pixels(const uint8_t* first_row, size_t pitch, size_t columns, uint8_t* to) const {
    for (size_t x = 0; x < columns; ++x) {
      const uint8_t* from = first_row + x * pixel_bytes_;
      for (uint32_t y = 0; y < num_rows_; ++y, from += pitch, to += pixel_bytes_) {
        vst1q_u8(to, vld1q_u8(from));
      }
    }
  }

  uint8_t order_[16 * kMostRows];  // of the bytes of all rows, those in the vectors of columns
  uint32_t num_rows_, pixel_bytes_;
  uint32_t columns_ = 0;  // of 16 bytes of a row
};

// ---- row_sums with NEON and Arm's dot products: four rows at a time, bytes with the sign that they have

template <bool kSigned>
inline VecI32 add_sums_of_bytes(VecI32 sums, uint8x16_t bytes) {
#if defined(__ARM_FEATURE_DOTPROD)
  if constexpr (kSigned) return vdotq_s32(sums, vreinterpretq_s8_u8(bytes), vdupq_n_s8(1));
  return as_ints(vdotq_u32(as_unsigned(sums), bytes, vdupq_n_u8(1)));
#else
  if constexpr (kSigned) return vpadalq_s16(sums, vpaddlq_s8(vreinterpretq_s8_u8(bytes)));
  return as_ints(vpadalq_u16(as_unsigned(sums), vpaddlq_u8(bytes)));
#endif
}

// The `count` bytes (1 .. 15) at `from`, and zeros. Not inlined: it is long, and needed once a row.
__attribute__((noinline)) uint8x16_t load_tail(const uint8_t* from, uint32_t count) {
  return as_bytes(load_vector(from, count));
}

// All bits of the last `count` bytes of 16.
inline uint8x16_t last_bytes(uint32_t count) {
  const uint8x16_t index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return vcgeq_u8(index, vdupq_n_u8(static_cast<uint8_t>(16 - count)));
}

// The sums of kRows rows `stride` bytes apart, in the first lanes.
template <uint32_t kRows, bool kSigned>
__attribute__((always_inline)) inline VecI32 sums_of_rows(const Gemm& g, const uint8_t* first,
                                                          size_t stride) {
  VecI32 sums[4] = {set_ints(0), set_ints(0), set_ints(0), set_ints(0)};
  const uint32_t tail = g.tap_bytes % kBytes, whole = g.tap_bytes - tail;
  const size_t offsets[4] = {0, stride, 2 * stride, 3 * stride};
  const uint8x16_t is_last = last_bytes(tail);
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* at = first + g.tap_offsets[t];
    for (const uint8_t* end = at + whole; at != end; at += kBytes) {
#pragma GCC unroll 4
      for (uint32_t p = 0; p < kRows; ++p) {
        sums[p] = add_sums_of_bytes<kSigned>(sums[p], vld1q_u8(at + offsets[p]));
      }
    }
    if (tail == 0) continue;
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kRows; ++p) {
      const uint8_t* from = at + offsets[p];
      uint8x16_t bytes;
      if (whole != 0) {  // the last 16 bytes of the tap, of which some are summed already
        bytes = vandq_u8(vld1q_u8(from + tail - kBytes), is_last);
      } else {
        bytes = tail == 8 ? vcombine_u8(vld1_u8(from), vcreate_u8(0)) : load_tail(from, tail);
      }
      sums[p] = add_sums_of_bytes<kSigned>(sums[p], bytes);
    }
  }
  return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
}

template <bool kSigned>
__attribute__((noinline)) void row_sums_of(const Gemm& product, int32_t factor, int32_t* sums) {
  const Gemm g = product;  // which sums cannot change
  // u - origin less the byte with the sign that it has.
  const int32_t origin_shift = (kSigned ? 128 : 0) - (g.is_centred ? 128 : 0);
  const uint32_t lacking = static_cast<uint32_t>(origin_shift) * g.num_taps * g.tap_bytes;
  const VecI32 more = set_ints(static_cast<int32_t>(lacking)), factors = set_ints(factor);
  uint32_t row = 0;
  if (g.rows == nullptr) {
    const uint8_t* first = g.first_row;
    for (; row + 4 <= g.num_rows; row += 4, first += 4 * g.row_stride) {
      store_ints(sums + row, mul(add(sums_of_rows<4, kSigned>(g, first, g.row_stride), more), factors));
    }
  }
  for (; row < g.num_rows; ++row) {
    const uint8_t* first = g.rows == nullptr ? g.first_row + row * g.row_stride : g.rows[row];
    sums[row] = vgetq_lane_s32(mul(add(sums_of_rows<1, kSigned>(g, first, 0), more), factors), 0);
  }
}

// sums[p] = factor * the sum of row p's bytes (u - origin), modulo 2^32.
inline void row_sums(const Gemm& g, int32_t factor, int32_t* sums) {
  g.sign_bias != 0 ? row_sums_of<true>(g, factor, sums) : row_sums_of<false>(g, factor, sums);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROWS_NEON_H_
