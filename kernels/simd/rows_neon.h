// Rows of bytes before a product (kernels/simd/gemm.h) on 64-bit Arm: copies and lists of them. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROWS_NEON_H_
#define QPLAN_KERNELS_SIMD_ROWS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// 64 bytes, each ^ sign_bias; moves both addresses on.
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
  for (int i = 0; i < 4; ++i) four.val[i] = veorq_u8(four.val[i], sign_bias);
  vst1q_u8_x4(to, four);
  to += 64;
}

// to[i] = from[i] ^ sign_bias.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t sign_bias) {
  const uint8x16_t sign_biases = vdupq_n_u8(sign_bias);
  for (const uint8_t* end = from + count / 64 * 64; from != end;) copy_four_on(to, from, sign_biases);
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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROWS_NEON_H_
