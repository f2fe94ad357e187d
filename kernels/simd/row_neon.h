// Products of one row with NEON, 16 channels at a time, as kernels/simd/dots_neon.h multiplies: what that
// leaves out is summed on the way, since weights are read once. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROW_NEON_H_
#define QPLAN_KERNELS_SIMD_ROW_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/dots_neon.h"

namespace qplan {
namespace {

// Sums of 8 channels and of the 8 after them.
template <Summed kSummed>
struct RowSums {
  VecI32 of[2][1][kDotVectors];
  WeightSums weights[2];

  // Groups 2 * kPair and 2 * kPair + 1 of 16 bytes.
  template <int kPair>
  __attribute__((always_inline)) void add_pair(const int8_t* from, const int8x16_t (&row)[1]) {
    add_pair_of_groups<kPair, kSummed>(from, row, of[0], weights[0]);
    add_pair_of_groups<kPair, kSummed>(from + 32, row, of[1], weights[1]);
  }

  // num_k4 groups of the row; moves both on.
  __attribute__((always_inline)) void add_groups(const uint8_t*& at, uint32_t num_k4, const int8_t*& from,
                                                 uint8x16_t sign_biases) {
    int8x16_t row[1];
    for (const int8_t* end = from + size_t{num_k4 / 4} * 256; from != end; from += 256, at += 16) {
      row[0] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at), sign_biases));
      add_pair<0>(from, row);
      add_pair<1>(from, row);
    }
    if ((num_k4 & 2) != 0) {
      row[0] = vreinterpretq_s8_u8(veorq_u8(load_some<8>(at), sign_biases));
      add_pair<0>(from, row);
      from += 128;
      at += 8;
    }
    if ((num_k4 & 1) != 0) {
      row[0] = row_group<0>(vreinterpretq_s8_u8(veorq_u8(load_some<4>(at), sign_biases)));
      for (uint32_t half = 0; half < 2; ++half) {
        const int8x16_t low = vld1q_s8(from + 32 * half), high = vld1q_s8(from + 32 * half + 16);
        add_group(of[half][0][0], of[half][0][1], low, row[0]);
        add_group(of[half][0][2], of[half][0][3], high, row[0]);
        if constexpr (kSummed == Summed::kAll) weights[half].add_first(low, high);
      }
      from += 64;
      at += 4;
    }
  }

  // Adds what was left out of the groups before.
  __attribute__((always_inline)) void add_lacking_of_groups() {
    for (uint32_t half = 0; half < 2; ++half) {
      weights[half].template add_to<kSummed>(of[half][0]);
      weights[half] = WeightSums();
    }
  }
};

// One row by channels [first_channel, end_channel). Not inlined: a function for each writer.
template <Summed kSummed, typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  const Gemm g = product_of_channels(product, first_channel);
  const Writer writer(g);
  const uint8_t* row = g.rows == nullptr ? g.first_row : g.rows[0];
  const uint8x16_t sign_biases = dot_sign_biases(g);
  const VecI32 term = partial_sums(set_ints(g.row_term != nullptr ? g.row_term[0] : 0), 0);
  const uint32_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights;
  for (uint32_t channel = 0; channel < end_channel - first_channel; channel += 16) {
    RowSums<kSummed> sums;
#pragma GCC unroll 8
    for (uint32_t q = 0; q < 8; ++q) {
      const VecI32 bias = load_ints(g.bias + channel + q / 2 * kLanes);
      sums.of[q / 4][0][q % 4] = add(partial_sums(bias, q), term);
    }
    for (uint32_t t = 0; t < g.num_taps; ++t) {
      const uint8_t* at = row + g.tap_offsets[t];
      for (uint32_t left = num_k4; left != 0;) {
        const uint32_t now = left < kMostSummedGroups ? left : kMostSummedGroups;
        sums.add_groups(at, now, weights, sign_biases);
        sums.add_lacking_of_groups();
        left -= now;
      }
    }
    VecI32 whole[1][4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) whole[0][i] = dot_sums(sums.of[i / 2][0], i % 2);
    writer.write(g, 0, channel, whole);
  }
}

template <typename Writer>
inline void gemm_row_of(const Gemm& g, uint32_t first_channel, uint32_t end_channel) {
  if (g.is_centred) return gemm_row<Summed::kSecond, Writer>(g, first_channel, end_channel);
  gemm_row<Summed::kAll, Writer>(g, first_channel, end_channel);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROW_NEON_H_
