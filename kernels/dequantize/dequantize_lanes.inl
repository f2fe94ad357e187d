// dequantize by vectors. An ISA file includes its kernels/numeric/lanes_<isa>.inl before this one, which
// gives the names used here their meaning. Internal linkage only.
#ifndef QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_LANES_INL_
#define QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_LANES_INL_

#include <stdint.h>

#include "kernels/dequantize/dequantize.h"
#include "kernels/elementwise/chunks.h"

namespace qplan {
namespace {

inline void dequantize_lanes(const DequantizeArgs& args, uint32_t begin, uint32_t end) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  const uint8_t* from = static_cast<const uint8_t*>(args.input);
  const Ints zero_point = set_ints(args.zero_point);
  const Reals scale = set_reals(args.scale);
  for (uint64_t i = range.begin; i < range.end; i += kLanes) {
    const uint64_t left = range.end - i;
    const uint32_t count = left < kLanes ? static_cast<uint32_t>(left) : kLanes;
    const Ints x = widen(load_bytes(from + i, count), args.dtype);
    store_reals(args.output + i, mul(scale, to_reals(sub(x, zero_point))), count);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEQUANTIZE_DEQUANTIZE_LANES_INL_
