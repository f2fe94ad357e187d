// Rows of float32 by vectors: products of a matrix, and rows as int8. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_FLOAT_ROWS_H_
#define QPLAN_KERNELS_SIMD_FLOAT_ROWS_H_

#include <stdint.h>

#include "kernels/float/float.h"
#include "kernels/quantization/quantization.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// ---- a matrix times a vector, for layers with a state: each lane is the chain of one row, so that vectors
// add in the order of the formula

constexpr uint32_t kFloatRowVectors = kFloatBlock / kLanes;
// Blocks whose sums are made together: eight vectors of sums, or four of 16 lanes. An addition waits three or
// four cycles for the one before it in its chain.
constexpr uint32_t kFloatRowBlocks = kLanes == 4 ? 2 : 4;

inline uint64_t float_row_blocks(uint64_t rows) { return (rows + kFloatBlock - 1) / kFloatBlock; }

template <uint32_t kBlocks>
inline void float_block_sums(const float* weights, const float* x, uint32_t count, float* sums) {
  const uint64_t block_step = uint64_t{count} * kFloatBlock;
  VecF32 totals[kBlocks][kFloatRowVectors];
  for (uint32_t b = 0; b < kBlocks; ++b) {
    for (uint32_t v = 0; v < kFloatRowVectors; ++v) totals[b][v] = set_reals(0.0f);
  }
  // Unrolled: without these pragmas GCC 12 keeps the sums in memory, and loads and stores each of them for
  // every k (AArch64).
  for (uint32_t k = 0; k < count; ++k, weights += kFloatBlock) {
    const VecF32 value = set_reals(x[k]);
#pragma GCC unroll 4
    for (uint32_t b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
      for (uint32_t v = 0; v < kFloatRowVectors; ++v)
        totals[b][v] = add(totals[b][v], mul(load_reals(weights + b * block_step + v * kLanes), value));
    }
  }
  for (uint32_t b = 0; b < kBlocks; ++b) {
    for (uint32_t v = 0; v < kFloatRowVectors; ++v)
      store_reals(sums + b * kFloatBlock + v * kLanes, totals[b][v], kLanes);
  }
}

// The sums of all rows of `num_blocks` blocks, from +0: weights [block][count][16], sums [block][16].
inline void float_row_sums(const float* weights, const float* x, uint32_t count, uint64_t num_blocks,
                           float* sums) {
  const uint64_t block_step = uint64_t{count} * kFloatBlock;
  uint64_t b = 0;
  for (; b + kFloatRowBlocks <= num_blocks; b += kFloatRowBlocks)
    float_block_sums<kFloatRowBlocks>(weights + b * block_step, x, count, sums + b * kFloatBlock);
  for (; b < num_blocks; ++b) float_block_sums<1>(weights + b * block_step, x, count, sums + b * kFloatBlock);
}

// ---- rows as int8 with a scale of their own (dynamic_quantize), by vectors of elements

// The ends of count elements, and 0. Which of two zeros it is has no effect.
inline void find_ends(const float* x, uint64_t count, float* least, float* most) {
  VecF32 low = set_reals(0.0f), high = low;
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VecF32 v = load_reals(x + i);
    low = if_less(v, low, v, low);
    high = if_less(high, v, v, high);
  }
  if (i < count) {  // with zeros after them
    const VecF32 v = load_reals(x + i, static_cast<uint32_t>(count - i));
    low = if_less(v, low, v, low);
    high = if_less(high, v, v, high);
  }
  float lows[kLanes], highs[kLanes];
  store_reals(lows, low, kLanes);
  store_reals(highs, high, kLanes);
  *least = *most = 0.0f;
  for (uint32_t k = 0; k < kLanes; ++k) {
    *least = lows[k] < *least ? lows[k] : *least;
    *most = highs[k] > *most ? highs[k] : *most;
  }
}

inline void quantize_run(const float* x, int8_t* out, uint64_t count, const DynamicScale& scale,
                         bool symmetric) {
  const VecF32 inverse = set_reals(scale.inverse),
               zero_point = set_reals(static_cast<float>(scale.zero_point));
  const VecF32 least = set_reals(symmetric ? -127.0f : -128.0f), most = set_reals(127.0f);
  for (uint64_t i = 0; i < count; i += kLanes) {
    const uint32_t now = count - i < kLanes ? static_cast<uint32_t>(count - i) : kLanes;
    const VecF32 v = now == kLanes ? load_reals(x + i) : load_reals(x + i, now);
    const VecF32 held = clamp(add(zero_point, mul(v, inverse)), least, most);
    store_bytes(reinterpret_cast<uint8_t*>(out + i), low_bytes(round_away(zero_nans(held))), now);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_FLOAT_ROWS_H_
