// The dot products of kernels/simd/gemm.h with NEON where the weights are such that products of signed bytes
// may meet in 16 bits as they are (Gemm::int16_groups), so that nothing is left out that would have to be
// added. dots_neon.h multiplies all others. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_PROVEN_DOTS_NEON_H_
#define QPLAN_KERNELS_SIMD_PROVEN_DOTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/dots_neon.h"
#include "kernels/simd/tile_parts_neon.h"

namespace qplan {
namespace {

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

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_PROVEN_DOTS_NEON_H_
