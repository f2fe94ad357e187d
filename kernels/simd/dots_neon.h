// The dot products of kernels/simd/gemm.h with NEON. There are products of signed bytes alone, in 16 bits.
// Two of them meet in a lane (smull, smlsl) before a pair of lanes is added to 32 bits (sadalp). For the sum
// u0 * w0 + u1 * w1 of unsigned u the factors are u0 - 128 and 127 - u1, of which the second product is
// subtracted: with any weights the lane is within +-32640. What is lacking, 128 * w0 + 127 * w1, or - w1
// where the origin of u is 128, does not depend on rows: sums begin with it. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTS_NEON_H_
#define QPLAN_KERNELS_SIMD_DOTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

// Vector q has two partial sums for each of the channels 2q and 2q + 1.
constexpr uint32_t kDotVectors = 4;
struct DotStart {
  int32_t of[kDotVectors * kLanes];  // the bias, and what add_dots leaves out
  uint8x16_t sign_biases;            // of two groups of four bytes, twice
};

// Whether taps have one group each, of which two make a pair.
inline bool pairs_taps(const Gemm& g) { return tap_k4(g) == 1; }

// Which groups of weights are summed: all of them, or where the origin is 128 the second ones of two.
enum class Summed { kNone, kSecond, kAll };

// Groups after which WeightSums are added to 32 bits.
constexpr uint32_t kMostSummedGroups = 240;

// Sums of the weights of 8 channels, of their first and of their second groups, from which add_to computes
// what add_dots leaves out. A lane of 16 bits has room for 127 groups.
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
  template <Summed kSummed>
  __attribute__((always_inline)) void add_to(VecI32 (&sums)[kDotVectors]) const {
#pragma GCC unroll 2
    for (uint32_t half = 0; half < 2; ++half) {
      VecI32 &low = sums[2 * half], &high = sums[2 * half + 1];
      if constexpr (kSummed == Summed::kAll) {
        low = vmlal_n_s16(vmlal_n_s16(low, vget_low_s16(first[half]), 128), vget_low_s16(second[half]), 127);
        high = vmlal_high_n_s16(vmlal_high_n_s16(high, first[half], 128), second[half], 127);
      } else {
        low = vsubw_s16(low, vget_low_s16(second[half]));
        high = vsubw_high_s16(high, second[half]);
      }
    }
  }
};

// Vectors 2 * half and 2 * half + 1 of sums that have these of kLanes channels.
inline VecI32 partial_sums(VecI32 v, uint32_t q) {
  return q % 2 == 0 ? vzip1q_s32(v, set_ints(0)) : vzip2q_s32(v, set_ints(0));
}

template <uint32_t kRows>
__attribute__((always_inline)) inline void start_dots(const DotStart& start,
                                                      VecI32 (&sums)[kRows][kDotVectors]) {
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    load_two_anew(start.of, sums[p][0], sums[p][1]);
    load_two_anew(start.of + 2 * kLanes, sums[p][2], sums[p][3]);
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

// Sums of kRows rows by 8 * kHalves channels, and of the weights of each 8. kIsSigned: rows are int8, whose
// first groups are factors as they are, so that loads may bring groups into all lanes. Those of uint8 would
// take another instruction each (9 % of the cycles of a Cortex-A55, as llvm-mca counts).
template <uint32_t kRows, uint32_t kHalves, Summed kSummed, bool kIsSigned>
struct DotSums {
  VecI32 of[kHalves][kRows][kDotVectors];
  WeightSums weights[kHalves];

  // The weights of two groups.
  struct Pair {
    int8x16_t first[2 * kHalves], second[2 * kHalves];
  };
  __attribute__((always_inline)) static void load_on(const int8_t*& from, Pair& w) {
    if constexpr (kHalves == 2) {
      load_four_on(from, w.first);
      load_four_on(from, w.second);
    } else {
      load_two(from, w.first[0], w.first[1]);
      load_two(from + 64, w.second[0], w.second[1]);
      from += 128;
    }
  }
  __attribute__((always_inline)) void add_row(uint32_t p, const Pair& w, int8x16_t row, int8x16_t next) {
#pragma GCC unroll 2
    for (uint32_t half = 0; half < kHalves; ++half) {
      VecI32(&sums)[kDotVectors] = of[half][p];
      add_two_groups(sums[0], sums[1], w.first[2 * half], w.second[2 * half], row, next);
      add_two_groups(sums[2], sums[3], w.first[2 * half + 1], w.second[2 * half + 1], row, next);
    }
  }
  __attribute__((always_inline)) void add_weights(const Pair& w) {
#pragma GCC unroll 2
    for (uint32_t half = 0; half < kHalves; ++half) {
      if constexpr (kSummed == Summed::kAll)
        weights[half].add_first(w.first[2 * half], w.first[2 * half + 1]);
      if constexpr (kSummed != Summed::kNone)
        weights[half].add_second(w.second[2 * half], w.second[2 * half + 1]);
    }
  }

  // Groups 2 * kPair and 2 * kPair + 1 of 16 bytes of rows; moves weights on.
  template <int kPair>
  __attribute__((always_inline)) void add_pair(const int8_t*& from, const int8x16_t (&rows)[kRows]) {
    Pair w;
    load_on(from, w);
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      add_row(p, w, row_group<2 * kPair>(rows[p]), row_group<2 * kPair + 1>(rows[p]));
    }
    add_weights(w);
  }

  // Four groups, two, or one; moves rows and weights on.
  __attribute__((always_inline)) void add_four(const uint8_t* (&at)[kRows], const int8_t*& from,
                                               uint8x16_t sign_biases) {
    if constexpr (kIsSigned) {
      Pair low, high;
      load_on(from, low);
      if constexpr (kHalves == 1) load_on(from, high);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        int8x16_t groups[4];
        load_groups_on(at[p], groups);
        add_row(p, low, groups[0], vmvnq_s8(groups[1]));
        // All weights of 16 channels would take the registers of their products.
        if constexpr (kHalves == 2) {
          add_weights(low);
          load_on(from, high);
        }
        add_row(p, high, groups[2], vmvnq_s8(groups[3]));
      }
      if constexpr (kHalves == 1) add_weights(low);
      add_weights(high);
    } else {
      int8x16_t rows[kRows];
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        rows[p] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(at[p]), sign_biases));
        at[p] += 16;
        // Otherwise GCC 12 counts bytes beside the addresses, and adds them to each when a tap ends.
        __asm__("" : "+r"(at[p]));
      }
      add_pair<0>(from, rows);
      add_pair<1>(from, rows);
    }
  }
  __attribute__((always_inline)) void add_two(const uint8_t* (&at)[kRows], const int8_t*& from,
                                              uint8x16_t sign_biases) {
    if constexpr (kIsSigned) {
      Pair w;
      load_on(from, w);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        int8x16_t groups[2];
        load_groups_on(at[p], groups);
        add_row(p, w, groups[0], vmvnq_s8(groups[1]));
      }
      add_weights(w);
    } else {
      int8x16_t rows[kRows];
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        const uint8x8_t bytes = veor_u8(vld1_u8(at[p]), vget_low_u8(sign_biases));
        at[p] += 8;
        rows[p] = vreinterpretq_s8_u8(vcombine_u8(bytes, vcreate_u8(0)));
      }
      add_pair<0>(from, rows);
    }
  }
  __attribute__((always_inline)) void add_one(const uint8_t* (&at)[kRows], const int8_t*& from,
                                              uint8x16_t sign_biases) {
    const uint8x16_t sign_bias = vreinterpretq_u8_u32(vdupq_laneq_u32(vreinterpretq_u32_u8(sign_biases), 0));
    int8x16_t rows[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      int8x16_t group[1];
      load_groups_on(at[p], group);
      rows[p] = group[0];
      if constexpr (!kIsSigned) rows[p] = veorq_s8(rows[p], vreinterpretq_s8_u8(sign_bias));
    }
#pragma GCC unroll 2
    for (uint32_t half = 0; half < kHalves; ++half) {
      const int8x16_t low = vld1q_s8(from + 32 * half), high = vld1q_s8(from + 32 * half + 16);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        add_group(of[half][p][0], of[half][p][1], low, rows[p]);
        add_group(of[half][p][2], of[half][p][3], high, rows[p]);
      }
      if constexpr (kSummed == Summed::kAll) weights[half].add_first(low, high);
    }
    from += 64;
  }

  // `num_k4` groups of each row, from `at` on; moves `at` and weights on. A group's weights are 64 bytes
  // after those of the group before.
  __attribute__((always_inline)) void add_groups(const uint8_t* (&at)[kRows], uint32_t num_k4,
                                                 const int8_t*& from, uint8x16_t sign_biases) {
    if (uint32_t n = num_k4 / 4; n != 0) {
      do add_four(at, from, sign_biases);
      while (--n != 0);
    }
    if (num_k4 % 4 == 0) return;
    if ((num_k4 & 2) != 0) add_two(at, from, sign_biases);
    if ((num_k4 & 1) != 0) add_one(at, from, sign_biases);
  }

  // The same, with what is left out, if it is summed.
  __attribute__((always_inline)) void add_tap(const uint8_t* (&at)[kRows], uint32_t num_k4,
                                              const int8_t*& from, uint8x16_t sign_biases) {
    if constexpr (kSummed == Summed::kNone) {
      add_groups(at, num_k4, from, sign_biases);
    } else {
      for (uint32_t left = num_k4; left != 0;) {
        const uint32_t now = left < kMostSummedGroups ? left : kMostSummedGroups;
        add_groups(at, now, from, sign_biases);
#pragma GCC unroll 2
        for (uint32_t half = 0; half < kHalves; ++half) {
          weights[half].template add_to<kSummed>(of[half][0]);
          weights[half] = WeightSums();
        }
        left -= now;
      }
    }
  }
};

// Two taps of one group each, as if they were neighbours.
template <uint32_t kRows, bool kIsSigned>
__attribute__((always_inline)) inline void add_two_taps(const uint8_t* const (&rows)[kRows],
                                                        const size_t* tap, const int8_t*& weights,
                                                        uint8x16_t sign_biases,
                                                        DotSums<kRows, 1, Summed::kNone, kIsSigned>& sums) {
  int8x16_t both[kRows];
#pragma GCC unroll 8
  for (uint32_t p = 0; p < kRows; ++p) {
    uint32x4_t bytes = vdupq_n_u32(load_four(rows[p] + tap[0]));
    bytes = vsetq_lane_u32(load_four(rows[p] + tap[1]), bytes, 1);
    both[p] = vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_u32(bytes), sign_biases));
  }
  sums.template add_pair<0>(weights, both);
}

// sums: DotSums, or ProvenSums (tiles_neon.h) where taps are not paired.
template <bool kPairsTaps, uint32_t kRows, typename Sums>
__attribute__((always_inline)) inline void add_dots(const Gemm& g, const uint8_t* const (&rows)[kRows],
                                                    const DotStart& start, Sums& sums) {
  const int8_t* weights = g.weights;
  const uint32_t num_k4 = tap_k4(g);
  const size_t* tap = g.tap_offsets;
  const size_t* const end = tap + g.num_taps;
  if constexpr (kPairsTaps) {
    for (; tap + 2 <= end; tap += 2) add_two_taps(rows, tap, weights, start.sign_biases, sums);
  }
  for (; tap != end; ++tap) {
    const uint8_t* at[kRows];
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) at[p] = rows[p] + *tap;
    sums.add_tap(at, num_k4, weights, start.sign_biases);
  }
}

inline uint8x16_t dot_sign_biases(const Gemm& g) {
  const uint8_t first = g.sign_bias ^ 0x80, second = g.sign_bias ^ 0x7f;
  return vreinterpretq_u8_u64(vdupq_n_u64(first * 0x01010101ull | (second * 0x01010101ull) << 32));
}

// Adds what add_dots leaves out of num_taps taps of num_groups groups.
template <Summed kSummed>
__attribute__((always_inline)) inline void add_lacking(const int8_t* weights, uint32_t num_taps,
                                                       uint32_t num_groups, VecI32 (&of)[kDotVectors]) {
  for (uint32_t t = 0; t < num_taps; ++t) {
    for (uint32_t left = num_groups; left != 0;) {
      const uint32_t now = left < kMostSummedGroups ? left : kMostSummedGroups;
      WeightSums sums;
      for (uint32_t k = 0; k + 2 <= now; k += 2, weights += 128) {
        if constexpr (kSummed == Summed::kAll) sums.add_first(vld1q_s8(weights), vld1q_s8(weights + 16));
        sums.add_second(vld1q_s8(weights + 64), vld1q_s8(weights + 80));
      }
      if (now % 2 != 0) {
        if constexpr (kSummed == Summed::kAll) sums.add_first(vld1q_s8(weights), vld1q_s8(weights + 16));
        weights += 64;
      }
      sums.add_to<kSummed>(of);
      left -= now;
    }
  }
}

// Inlined by force: a product whose address is known elsewhere is loaded again after each output. kLacks:
// whether add_dots leaves anything out.
template <bool kLacks>
__attribute__((always_inline)) inline DotStart dot_start(const Gemm& g) {
  const int8_t* weights = g.weights;
  const uint32_t num_k4 = tap_k4(g);
  DotStart start;
  VecI32 of[kDotVectors];
#pragma GCC unroll 4
  for (uint32_t q = 0; q < kDotVectors; ++q) of[q] = partial_sums(load_ints(g.bias + q / 2 * kLanes), q);
  start.sign_biases = dot_sign_biases(g);
  // Where taps are paired, it is as if one had all groups.
  const uint32_t num_groups = pairs_taps(g) ? g.num_taps : num_k4;
  const uint32_t num_taps = pairs_taps(g) ? 1 : g.num_taps;
  if (kLacks && g.is_centred) add_lacking<Summed::kSecond>(weights, num_taps, num_groups, of);
  if (kLacks && !g.is_centred) add_lacking<Summed::kAll>(weights, num_taps, num_groups, of);
#pragma GCC unroll 4
  for (uint32_t q = 0; q < kDotVectors; ++q) store_ints(start.of + q * kLanes, of[q]);
  return start;
}

inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) {
  return vpaddq_s32(sums[2 * half], sums[2 * half + 1]);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_DOTS_NEON_H_
