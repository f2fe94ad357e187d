// The tiles of kernels/simd/gemm.h with NEON: four rows by 8 channels, which dots_neon.h multiplies, or the
// proven dot products below where weights allow it, and one row by 16. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILES_NEON_H_
#define QPLAN_KERNELS_SIMD_TILES_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/dots_neon.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// ---- proven dot products: the weights are such that products of signed bytes may meet in 16 bits as they
// are (Gemm::int16_groups), so that nothing is left out that would have to be added

// How many groups may meet in 16 bits: 4, 2, or 0 where that is not known, or rows are not int8 as they are.
inline uint32_t proven_groups(const Gemm& g) {
  if (!g.is_centred || g.sign_bias == 0) return 0;
  return g.int16_groups >= 4 ? 4 : g.int16_groups >= 2 ? 2 : 0;
}

// Adds the products of 4 channels and a group, or begins with them.
__attribute__((always_inline)) inline void multiply(bool begins, int16x8_t& low, int16x8_t& high,
                                                    int8x16_t weights, int8x16_t row) {
  if (begins) {
    low = vmull_s8(vget_low_s8(weights), vget_low_s8(row));
    high = vmull_high_s8(weights, row);
  } else {
    low = vmlal_s8(low, vget_low_s8(weights), vget_low_s8(row));
    high = vmlal_high_s8(high, weights, row);
  }
}

// Sums of kRows rows by 8 * kHalves channels, of which kGroups groups meet in 16 bits. What DotSums is to
// other weights.
template <uint32_t kRows, uint32_t kHalves, uint32_t kGroups>
struct ProvenSums {
  VecI32 of[kHalves][kRows][kDotVectors];

  // `num_k4` groups of each row, from `at` on; moves `at` and weights on.
  __attribute__((always_inline)) void add_tap(const uint8_t* (&at)[kRows], uint32_t num_k4,
                                              const int8_t*& from, uint8x16_t) {
    if (uint32_t n = num_k4 / 4; n != 0) {
      do add_some<4>(at, from);
      while (--n != 0);
    }
    if (num_k4 % 4 == 0) return;
    if ((num_k4 & 2) != 0) add_some<2>(at, from);
    if ((num_k4 & 1) != 0) add_some<1>(at, from);
  }

 private:
  // Whether groups that meet begin, or end, with group k of kCount.
  static constexpr bool begins(uint32_t k) { return k % kGroups == 0; }
  template <uint32_t kCount>
  static constexpr bool ends(uint32_t k) {
    return k % kGroups == kGroups - 1 || k == kCount - 1;
  }

  template <uint32_t kCount>
  __attribute__((always_inline)) void add_some(const uint8_t* (&at)[kRows], const int8_t*& from) {
    if constexpr (kHalves == 2) {
      static_assert(kRows == 1, "sums and weights of more rows would take more registers than there are");
      add_row<kCount>(at[0], from);
    } else {
      int8x16_t weights[kCount][2];
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kCount; ++k) load_two(from + 64 * k, weights[k][0], weights[k][1]);
      from += 64 * kCount;
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        int8x16_t row[kCount];
        load_groups_on(at[p], row);
        // Four products that need no result of each other are side by side, as a Cortex-A53 wants them.
        int16x8_t products[kDotVectors];
#pragma GCC unroll 4
        for (uint32_t k = 0; k < kCount; ++k) {
#pragma GCC unroll 2
          for (uint32_t v = 0; v < 2; ++v) {
            multiply(begins(k), products[2 * v], products[2 * v + 1], weights[k][v], row[k]);
          }
          if (!ends<kCount>(k)) continue;
#pragma GCC unroll 4
          for (uint32_t q = 0; q < kDotVectors; ++q) of[0][p][q] = vpadalq_s16(of[0][p][q], products[q]);
        }
      }
    }
  }
  // One row by 16 channels: group by group, so that seven products that need no result of it are beside each.
  template <uint32_t kCount>
  __attribute__((always_inline)) void add_row(const uint8_t*& at, const int8_t*& from) {
    int8x16_t row[kCount];
    load_groups_on(at, row);
    int16x8_t products[2 * kDotVectors];
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kCount; ++k) {
      int8x16_t weights[kDotVectors];
      load_four_on(from, weights);
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kDotVectors; ++v) {
        multiply(begins(k), products[2 * v], products[2 * v + 1], weights[v], row[k]);
      }
      if (!ends<kCount>(k)) continue;
#pragma GCC unroll 8
      for (uint32_t q = 0; q < 2 * kDotVectors; ++q) {
        VecI32& sum = of[q / kDotVectors][0][q % kDotVectors];
        sum = vpadalq_s16(sum, products[q]);
      }
    }
  }
};

// ---- one row, 16 channels at a time: what dots_neon.h leaves out is summed on the way, since weights are
// read once.

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

// How rows and weights are multiplied: with what dots_neon.h leaves out, or without.
template <bool kIsSigned>
struct AnyDots {
  static constexpr bool kLacks = true;
  template <uint32_t kRows>
  using Tile = DotSums<kRows, 1, Summed::kNone, kIsSigned>;
  template <Summed kSummed>
  using Row = DotSums<1, 2, kSummed, kIsSigned>;
};
template <uint32_t kGroups>
struct ProvenDots {
  static constexpr bool kLacks = false;
  template <uint32_t kRows>
  using Tile = ProvenSums<kRows, 1, kGroups>;
  template <Summed kSummed>
  using Row = ProvenSums<1, 2, kGroups>;
};

// kRows rows by the first 8 channels.
template <uint32_t kRows, bool kPairsTaps, typename Dots, typename Writer>
__attribute__((always_inline)) inline void gemm_tile(const Gemm& g, const DotStart& start,
                                                     const Writer& writer, RowWalk& walk) {
  typename Dots::template Tile<kRows> sums;
  start_dots<kRows>(start, sums.of[0]);
  const uint8_t* rows[kRows];
  walk.take(rows);
  add_dots<kPairsTaps>(g, rows, start, sums);
  VecI32 whole[kRows][2];
#pragma GCC unroll 4
  for (uint32_t p = 0; p < kRows; ++p) {
    whole[p][0] = dot_sums(sums.of[0][p], 0);
    whole[p][1] = dot_sums(sums.of[0][p], 1);
  }
  if (walk.term != nullptr) {
#pragma GCC unroll 4
    for (uint32_t p = 0; p < kRows; ++p) {
      const VecI32 term = load_one_on(walk.term);
      whole[p][0] = add(whole[p][0], term);
      whole[p][1] = add(whole[p][1], term);
    }
  }
  writer.write(walk.out, g, 0, whole);
  walk.next_tile<kRows>(g);
}

// All rows by 8 channels. Not inlined: a function for each writer, whose loops need all registers.
template <bool kPairsTaps, typename Dots, typename Writer>
__attribute__((noinline)) void gemm_rows(const Gemm& product, uint32_t channel) {
  Gemm g = product;
  move_to_channels(g, channel);
  g.weights += channel % 16 * 4;
  const DotStart start = dot_start<Dots::kLacks>(g);
  const Writer writer(g);
  RowWalk walk(g);
  for (uint32_t n = g.num_rows / 4; n != 0; --n) gemm_tile<4, kPairsTaps, Dots>(g, start, writer, walk);
  if ((g.num_rows & 2) != 0) gemm_tile<2, kPairsTaps, Dots>(g, start, writer, walk);
  if ((g.num_rows & 1) != 0) gemm_tile<1, kPairsTaps, Dots>(g, start, writer, walk);
}

// Channels from `channel` on, at most to end_channel, which have one epilogue; returns where they end.
template <typename Dots, typename Writer>
inline uint32_t gemm_group_of(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  if (g.num_rows == 1) {
    const uint32_t end = end_of_epilogue(g, channel, end_channel);
    using Centred = typename Dots::template Row<Summed::kSecond>;
    using Any = typename Dots::template Row<Summed::kAll>;
    !Dots::kLacks || g.is_centred ? gemm_row<Centred, Writer>(g, channel, end)
                                  : gemm_row<Any, Writer>(g, channel, end);
    return end;
  }
  auto* run = gemm_rows<false, Dots, Writer>;
  if constexpr (Dots::kLacks) {
    if (pairs_taps(g)) run = gemm_rows<true, Dots, Writer>;
  }
  run(g, channel);
  if (channel + 8 < g.num_channels) run(g, channel + 8);
  return channel + 16;
}

template <typename Writer>
inline uint32_t gemm_group(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  const uint32_t groups = g.num_rows != 1 && pairs_taps(g) ? 0 : proven_groups(g);
  if (groups == 4) return gemm_group_of<ProvenDots<4>, Writer>(g, channel, end_channel);
  if (groups == 2) return gemm_group_of<ProvenDots<2>, Writer>(g, channel, end_channel);
  return g.sign_bias != 0 ? gemm_group_of<AnyDots<true>, Writer>(g, channel, end_channel)
                          : gemm_group_of<AnyDots<false>, Writer>(g, channel, end_channel);
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    with_epilogue_of_bytes(g, channel, [&](auto kind) {
      channel = gemm_group<OutputWriter<typename decltype(kind)::Epilogue>>(g, channel, end_block * 16);
    });
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16;) {
    channel = gemm_group<SumWriter>(g, channel, end_block * 16);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILES_NEON_H_
