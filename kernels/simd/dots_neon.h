// The dot products of kernels/simd/gemm.h with NEON. There are products of signed bytes alone, in 16 bits.
// Two of them meet in a lane (smull, smlsl) before a pair of lanes is added to 32 bits (sadalp). For the sum
// u0 * w0 + u1 * w1 of unsigned u the factors are u0 - 128 and 127 - u1, of which the second product is
// subtracted: with any weights the lane is within +-32640. What is lacking, 128 * w0 + 127 * w1, does not
// depend on rows: sums begin with it. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTS_NEON_H_
#define QPLAN_KERNELS_SIMD_DOTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/neon.h"

namespace qplan {
namespace {

// Vector q has two partial sums for each of the channels 2q and 2q + 1.
constexpr uint32_t kDotVectors = 4;
constexpr uint32_t kDotRows = 4;
constexpr bool kDotKeepsLanes = false;
constexpr bool kDotStartsWithBias = true;
#define QPLAN_SIMD_OWN_ADD_DOTS 1

struct DotStart {
  VecI32 of[kDotVectors];  // the bias, and what add_dots leaves out
  uint8x16_t sign_biases;  // of two groups of four bytes, twice
  bool is_bias;            // alone: there is one row, and add_dots leaves nothing out of it
  bool pairs_taps;         // those of one group each
};

// What add_dots leaves out of 8 channels, as it passes their weights: sums of the first and of the second
// groups. In 16 bits there is room for 127 of each.
struct WeightSums {
  int16x8_t first[2] = {vdupq_n_s16(0), vdupq_n_s16(0)}, second[2] = {vdupq_n_s16(0), vdupq_n_s16(0)};
  void add_first(int8x16_t low, int8x16_t high) {
    first[0] = vpadalq_s8(first[0], low);
    first[1] = vpadalq_s8(first[1], high);
  }
  void add_second(int8x16_t low, int8x16_t high) {
    second[0] = vpadalq_s8(second[0], low);
    second[1] = vpadalq_s8(second[1], high);
  }
  void add_to(VecI32 (&sums)[kDotVectors]) const {
    for (uint32_t half = 0; half < 2; ++half) {
      VecI32 &low = sums[2 * half], &high = sums[2 * half + 1];
      low = vmlal_n_s16(vmlal_n_s16(low, vget_low_s16(first[half]), 128), vget_low_s16(second[half]), 127);
      high = vmlal_high_n_s16(vmlal_high_n_s16(high, first[half], 128), second[half], 127);
    }
  }
};

// Vectors 2 * half and 2 * half + 1 of sums that have these of kLanes channels.
inline VecI32 partial_sums(VecI32 v, uint32_t q) {
  return q % 2 == 0 ? vzip1q_s32(v, set_ints(0)) : vzip2q_s32(v, set_ints(0));
}

template <uint32_t kRows>
__attribute__((always_inline)) inline void start_dots(const Gemm& g, const DotStart& start,
                                                      uint32_t first_row, uint32_t,
                                                      VecI32 (&sums)[kRows][kDotVectors]) {
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kDotVectors; ++q) sums[p][q] = start.of[q];
  }
  if (g.row_term == nullptr) return;
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const VecI32 term = partial_sums(set_ints(g.row_term[first_row + p]), 0);
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kDotVectors; ++q) sums[p][q] = add(sums[p][q], term);
  }
}

// The products of 4 channels and two groups of four bytes, or of one.
inline void add_two_groups(VecI32& low, VecI32& high, int8x16_t first, int8x16_t second, int8x16_t first_row,
                           int8x16_t second_row) {
  const int16x8_t low_pairs = vmlsl_s8(vmull_s8(vget_low_s8(first), vget_low_s8(first_row)),
                                       vget_low_s8(second), vget_low_s8(second_row));
  const int16x8_t high_pairs = vmlsl_high_s8(vmull_high_s8(first, first_row), second, second_row);
  low = vpadalq_s16(low, low_pairs);
  high = vpadalq_s16(high, high_pairs);
}
inline void add_group(VecI32& low, VecI32& high, int8x16_t weights, int8x16_t row) {
  low = vpadalq_s16(low, vmull_s8(vget_low_s8(weights), vget_low_s8(row)));
  high = vpadalq_s16(high, vmull_high_s8(weights, row));
}

template <int kGroup>
inline int8x16_t row_group(int8x16_t row) {
  return vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(row), kGroup));
}

// Groups 2 * kPair and 2 * kPair + 1 of 16 bytes of rows.
template <int kPair, bool kSumsWeights, uint32_t kRows>
__attribute__((always_inline)) inline void add_pair_of_groups(const int8_t* weights,
                                                              const int8x16_t (&rows)[kRows],
                                                              VecI32 (&sums)[kRows][kDotVectors],
                                                              WeightSums& weight_sums) {
  weights += 128 * kPair;
  const int8x16_t w0 = vld1q_s8(weights), w1 = vld1q_s8(weights + 16);
  const int8x16_t w2 = vld1q_s8(weights + 64), w3 = vld1q_s8(weights + 80);
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const int8x16_t first = row_group<2 * kPair>(rows[p]), second = row_group<2 * kPair + 1>(rows[p]);
    add_two_groups(sums[p][0], sums[p][1], w0, w2, first, second);
    add_two_groups(sums[p][2], sums[p][3], w1, w3, first, second);
  }
  if constexpr (kSumsWeights) {
    weight_sums.add_first(w0, w1);
    weight_sums.add_second(w2, w3);
  }
}

// The products of 8 channels and `num_k4` groups of each row from `from` on. A group's weights are 64 bytes
// after those of the group before.
template <bool kSumsWeights, uint32_t kRows>
__attribute__((always_inline)) inline void add_groups(const uint8_t* (&from)[kRows], uint32_t num_k4,
                                                      const int8_t*& weights, uint8x16_t sign_biases,
                                                      VecI32 (&sums)[kRows][kDotVectors],
                                                      WeightSums& weight_sums) {
  int8x16_t rows[kRows];
  for (const int8_t* end = weights + size_t{num_k4 / 4} * 256; weights != end; weights += 256) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      rows[p] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from[p]), sign_biases));
      from[p] += 16;
    }
    add_pair_of_groups<0, kSumsWeights>(weights, rows, sums, weight_sums);
    add_pair_of_groups<1, kSumsWeights>(weights, rows, sums, weight_sums);
  }
  if ((num_k4 & 2) != 0) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const uint8x8_t bytes = veor_u8(vld1_u8(from[p]), vget_low_u8(sign_biases));
      rows[p] = vreinterpretq_s8_u8(vcombine_u8(bytes, bytes));
      from[p] += 8;
    }
    add_pair_of_groups<0, kSumsWeights>(weights, rows, sums, weight_sums);
    weights += 2 * 64;
  }
  if ((num_k4 & 1) != 0) {
    const int8x16_t w0 = vld1q_s8(weights), w1 = vld1q_s8(weights + 16);
    const uint8x16_t sign_bias = vreinterpretq_u8_u32(vdupq_laneq_u32(vreinterpretq_u32_u8(sign_biases), 0));
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const int8x16_t row =
          vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(load_four(from[p]))), sign_bias));
      add_group(sums[p][0], sums[p][1], w0, row);
      add_group(sums[p][2], sums[p][3], w1, row);
    }
    if constexpr (kSumsWeights) weight_sums.add_first(w0, w1);
    weights += 64;
  }
}

// Groups after which WeightSums are added to 32 bits.
constexpr uint32_t kMostSummedGroups = 240;

// Two taps of one group each, as if they were neighbours.
template <uint32_t kRows>
__attribute__((always_inline)) inline void add_two_taps(const Gemm& g, uint32_t first_row, uint32_t tap,
                                                        const int8_t* weights, uint8x16_t sign_biases,
                                                        VecI32 (&sums)[kRows][kDotVectors]) {
  int8x16_t rows[kRows];
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const uint8_t* row = row_tap(g, first_row + p, tap);
    uint32x4_t bytes = vdupq_n_u32(load_four(row));
    bytes = vsetq_lane_u32(load_four(row + (g.tap_offsets[tap + 1] - g.tap_offsets[tap])), bytes, 1);
    rows[p] = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(bytes), sign_biases));
  }
  WeightSums none;
  add_pair_of_groups<0, false>(weights, rows, sums, none);
}

template <uint32_t kRows>
__attribute__((always_inline)) inline void add_dots(const Gemm& g, uint32_t first_row, const int8_t* weights,
                                                    const DotStart& start,
                                                    VecI32 (&sums)[kRows][kDotVectors]) {
  uint32_t num_k4 = tap_k4(g);
  uint32_t t = 0;
  if (start.pairs_taps) {
    for (; t + 2 <= g.num_taps; t += 2, weights += 128) {
      add_two_taps<kRows>(g, first_row, t, weights, start.sign_biases, sums);
    }
  }
  for (; t < g.num_taps; ++t) {
    // What GCC 12 computes of it before the loop over taps is more than what one tap needs.
    __asm__("" : "+r"(num_k4));
    const uint8_t* from[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) from[p] = row_tap(g, first_row + p, t);
    WeightSums weight_sums;
    if (kRows == 1 && start.is_bias) {
      for (uint32_t left = num_k4; left != 0;) {
        const uint32_t now = left < kMostSummedGroups ? left : kMostSummedGroups;
        WeightSums of_part;
        add_groups<true>(from, now, weights, start.sign_biases, sums, of_part);
        of_part.add_to(sums[0]);
        left -= now;
      }
    } else {
      add_groups<false>(from, num_k4, weights, start.sign_biases, sums, weight_sums);
    }
  }
}

// What add_dots leaves out does not depend on rows: 128 * w0 + 127 * w1.
inline DotStart dot_start(const Gemm& g, uint32_t channel, const int8_t* weights) {
  const uint32_t num_k4 = tap_k4(g);
  DotStart start;
#pragma GCC unroll 4
  for (uint32_t q = 0; q < kDotVectors; ++q) {
    start.of[q] = partial_sums(load_ints(g.bias + channel + q / 2 * kLanes), q);
  }
  const uint8_t first_sign_bias = g.sign_bias ^ 0x80, second_sign_bias = g.sign_bias ^ 0x7f;
  start.sign_biases = vreinterpretq_u8_u64(
      vdupq_n_u64(first_sign_bias * 0x01010101ull | (second_sign_bias * 0x01010101ull) << 32));
  start.is_bias = g.num_rows == 1;
  start.pairs_taps = num_k4 == 1 && !start.is_bias;
  if (start.is_bias) return start;
  // Where taps are paired, it is as if one had all groups.
  const uint32_t num_groups = start.pairs_taps ? g.num_taps : num_k4;
  for (uint32_t t = 0; t < (start.pairs_taps ? 1 : g.num_taps); ++t) {
    for (uint32_t left = num_groups; left != 0;) {
      const uint32_t now = left < kMostSummedGroups ? left : kMostSummedGroups;
      WeightSums sums;
      for (uint32_t k = 0; k + 2 <= now; k += 2, weights += 128) {
        sums.add_first(vld1q_s8(weights), vld1q_s8(weights + 16));
        sums.add_second(vld1q_s8(weights + 64), vld1q_s8(weights + 80));
      }
      if (now % 2 != 0) {
        sums.add_first(vld1q_s8(weights), vld1q_s8(weights + 16));
        weights += 64;
      }
      sums.add_to(start.of);
      left -= now;
    }
  }
  return start;
}

inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) {
  return vpaddq_s32(sums[2 * half], sums[2 * half + 1]);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_DOTS_NEON_H_
