// The vocabulary of kernels/simd/simd.h with the dot products of Arm (SDOT, FEAT_DotProd): that of NEON with
// other dot products. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTPROD_H_
#define QPLAN_KERNELS_SIMD_DOTPROD_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA dotprod
#define QPLAN_SIMD_VECTORS neon
#endif
#define QPLAN_SIMD_OWN_DOT 1

#include "kernels/numeric/gemm.h"
#include "kernels/simd/neon.h"

namespace qplan {
namespace {

// Eight rows by eight channels take 16 registers, and eight more 16 bytes of each row, of which an
// instruction takes four by their number.
constexpr uint32_t kDotVectors = 2;
constexpr uint32_t kDotRows = 8;
constexpr bool kDotKeepsLanes = true;
constexpr bool kDotStartsWithBias = true;
#define QPLAN_SIMD_OWN_ADD_DOTS 1

struct DotStart {
  VecI32 of[kDotVectors];  // the bias, and what add_dots leaves out
  uint8x16_t sign_bias;
  bool is_bias;  // alone: there is one row, and add_dots leaves nothing out of it
};

// The sums of the weights of 8 channels.
struct WeightSums {
  VecI32 of[kDotVectors] = {set_ints(0), set_ints(0)};
  void add(int8x16_t low, int8x16_t high) {
    const int8x16_t ones = vdupq_n_s8(1);
    of[0] = vdotq_s32(of[0], low, ones);
    of[1] = vdotq_s32(of[1], high, ones);
  }
  // 128 times them.
  void add_to(VecI32 (&sums)[kDotVectors]) const {
    for (uint32_t q = 0; q < kDotVectors; ++q) sums[q] = vaddq_s32(sums[q], shift_left<7>(of[q]));
  }
};

template <uint32_t kRows>
__attribute__((always_inline)) inline void start_dots(const Gemm& g, const DotStart& start,
                                                      uint32_t first_row, uint32_t,
                                                      VecI32 (&sums)[kRows][kDotVectors]) {
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    for (uint32_t q = 0; q < kDotVectors; ++q) sums[p][q] = start.of[q];
  }
  if (g.row_term == nullptr) return;
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    const VecI32 term = set_ints(g.row_term[first_row + p]);
    for (uint32_t q = 0; q < kDotVectors; ++q) sums[p][q] = add(sums[p][q], term);
  }
}

// Group kGroup of the bytes of rows; the weights of the first group are at `weights`.
template <int kGroup, bool kSumsWeights, uint32_t kRows>
__attribute__((always_inline)) inline void add_group(const int8_t* weights, const int8x16_t (&rows)[kRows],
                                                     VecI32 (&sums)[kRows][kDotVectors],
                                                     WeightSums& weight_sums) {
  const int8x16_t low = vld1q_s8(weights + 64 * kGroup), high = vld1q_s8(weights + 64 * kGroup + 16);
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    sums[p][0] = vdotq_laneq_s32(sums[p][0], low, rows[p], kGroup);
    sums[p][1] = vdotq_laneq_s32(sums[p][1], high, rows[p], kGroup);
  }
  if constexpr (kSumsWeights) weight_sums.add(low, high);
}

template <bool kSumsWeights, uint32_t kRows>
__attribute__((always_inline)) inline void add_taps_of_rows(const Gemm& g, uint32_t first_row,
                                                            const int8_t* weights, uint8x16_t sign_bias,
                                                            VecI32 (&sums)[kRows][kDotVectors],
                                                            WeightSums& weight_sums) {
  uint32_t num_k4 = tap_k4(g);
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    // What GCC 12 computes of it before the loop over taps is more than what one tap needs.
    __asm__("" : "+r"(num_k4));
    const uint8_t* from[kRows];
    int8x16_t rows[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) from[p] = row_tap(g, first_row + p, t);
    for (const int8_t* end = weights + size_t{num_k4 / 4} * 256; weights != end; weights += 256) {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        rows[p] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from[p]), sign_bias));
        from[p] += 16;
      }
      add_group<0, kSumsWeights>(weights, rows, sums, weight_sums);
      add_group<1, kSumsWeights>(weights, rows, sums, weight_sums);
      add_group<2, kSumsWeights>(weights, rows, sums, weight_sums);
      add_group<3, kSumsWeights>(weights, rows, sums, weight_sums);
    }
    for (uint32_t k = num_k4 % 4; k != 0; --k, weights += 64) {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        const uint8x16_t four = vreinterpretq_u8_u32(vdupq_n_u32(load_four(from[p])));
        rows[p] = vreinterpretq_s8_u8(veorq_u8(four, sign_bias));
        from[p] += 4;
      }
      add_group<0, kSumsWeights>(weights, rows, sums, weight_sums);
    }
  }
}

// An unsigned byte u is multiplied as u - 128, so that 128 times the sum of the weights is missing in every row.
template <uint32_t kRows>
__attribute__((always_inline)) inline void add_dots(const Gemm& g, uint32_t first_row, const int8_t* weights,
                                                    const DotStart& start,
                                                    VecI32 (&sums)[kRows][kDotVectors]) {
  WeightSums weight_sums;
  if (kRows == 1 && start.is_bias) {
    add_taps_of_rows<true>(g, first_row, weights, start.sign_bias, sums, weight_sums);
    weight_sums.add_to(sums[0]);
  } else {
    add_taps_of_rows<false>(g, first_row, weights, start.sign_bias, sums, weight_sums);
  }
}

inline DotStart dot_start(const Gemm& g, uint32_t channel, const int8_t* weights) {
  DotStart start;
  start.of[0] = load_ints(g.bias + channel);
  start.of[1] = load_ints(g.bias + channel + kLanes);
  start.sign_bias = vdupq_n_u8(g.sign_bias ^ 0x80);
  start.is_bias = g.num_rows == 1;
  if (start.is_bias) return start;
  WeightSums sums;
  const size_t num_groups = size_t{g.num_taps} * tap_k4(g);
#pragma GCC unroll 4
  for (size_t k = 0; k < num_groups; ++k, weights += 64) {
    sums.add(vld1q_s8(weights), vld1q_s8(weights + 16));
  }
  sums.add_to(start.of);
  return start;
}

inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) { return sums[half]; }

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_DOTPROD_H_
