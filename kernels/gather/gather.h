// gather: each axis of the output reads positions of the same axis of the input.
//
//   out[i0, i1, ...] = in[p0(i0), p1(i1), ...], where pa(i) = begin + step * i, or table[i]
//
// So it takes slices, with steps of either sign, repeats and mirrors elements, and resizes to the nearest
// element. Elements of any dtype are only moved, or are there already: what is one range of the input may be
// at its place in it.
#ifndef QPLAN_KERNELS_GATHER_GATHER_H_
#define QPLAN_KERNELS_GATHER_GATHER_H_

#include <stdint.h>

#include "kernels/variant.h"

namespace qplan {

struct GatherArgs {
  static constexpr uint32_t kMaxRank = 6;

  const uint8_t* input = nullptr;  // where position 0 of every axis reads
  uint8_t* output = nullptr;
  uint64_t block_bytes = 1;  // which are contiguous in the input and in the output
  uint32_t rows = 1;         // the product of extents but the last; fits int32
  // Axes of the output around a block, outermost first; neighbours that can be counted through are merged.
  uint32_t rank = 1;  // at least 1
  uint64_t extents[kMaxRank] = {1};
  int64_t strides[kMaxRank] = {};        // bytes of the input: from a position to the next, or those of one
  const int32_t* tables[kMaxRank] = {};  // element that a table counts in
};

// Best first; the reference, which computes all that is bound, is the last.
#define QPLAN_GATHER_VARIANTS QPLAN_VARIANT(gather_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, GatherArgs)
QPLAN_GATHER_VARIANTS
#undef QPLAN_VARIANT

}  // namespace qplan

#endif  // QPLAN_KERNELS_GATHER_GATHER_H_
