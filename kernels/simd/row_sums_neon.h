// row_sums of kernels/simd/gemm.h with NEON and Arm's dot products: four rows at a time, bytes with the sign
// that they have. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROW_SUMS_NEON_H_
#define QPLAN_KERNELS_SIMD_ROW_SUMS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/neon.h"

namespace qplan {
namespace {

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

#endif  // QPLAN_KERNELS_SIMD_ROW_SUMS_NEON_H_
