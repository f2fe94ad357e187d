// Rows of float32 as int8 with a scale of their own (dynamic_quantize), by vectors of elements. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_DYNAMIC_ROWS_H_
#define QPLAN_KERNELS_SIMD_DYNAMIC_ROWS_H_

#include <stdint.h>

#include "kernels/quantization/quantization.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

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

#endif  // QPLAN_KERNELS_SIMD_DYNAMIC_ROWS_H_
