// Products of one row with NEON, 16 channels at a time, as kernels/simd/dots_neon.h and
// proven_dots_neon.h multiply: what the first leaves out is summed on the way, since weights are read once.
// Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_ROW_NEON_H_
#define QPLAN_KERNELS_SIMD_ROW_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/dots_neon.h"

namespace qplan {
namespace {

// One row by channels [first_channel, end_channel). Not inlined: a function for each writer.
// Sums: of one row by 16 channels.
template <typename Sums, typename Writer>
__attribute__((noinline)) void gemm_row(const Gemm& product, uint32_t first_channel, uint32_t end_channel) {
  Gemm g = product;
  move_to_channels(g, first_channel);
  const Writer writer(g);
  const uint8_t* row = g.rows == nullptr ? g.first_row : g.rows[0];
  const uint8x16_t sign_biases = dot_sign_biases(g);
  const VecI32 term = set_ints(g.row_term != nullptr ? g.row_term[0] : 0);
  const uint32_t num_k4 = tap_k4(g);
  const int8_t* weights = g.weights;
  for (uint32_t channel = 0; channel < end_channel - first_channel; channel += 16) {
    Sums sums;
#pragma GCC unroll 8
    for (uint32_t q = 0; q < 8; ++q) sums.of[q / 4][0][q % 4] = set_ints(0);
    for (uint32_t t = 0; t < g.num_taps; ++t) {
      const uint8_t* at[1] = {row + g.tap_offsets[t]};
      sums.add_tap(at, num_k4, weights, sign_biases);
    }
    VecI32 whole[1][4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      const VecI32 bias = add(load_ints(g.bias + channel + i * kLanes), term);
      whole[0][i] = add(dot_sums(sums.of[i / 2][0], i % 2), bias);
    }
    writer.write(outputs_at(g, 0, channel), g, channel, whole);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_ROW_NEON_H_
