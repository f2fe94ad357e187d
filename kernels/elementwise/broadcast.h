// What kernels share in which every output element stands alone: work items, broadcasting, and the loops of
// their references. Internal linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_ELEMENTWISE_BROADCAST_H_
#define QPLAN_KERNELS_ELEMENTWISE_BROADCAST_H_

#include <stdint.h>

#include "kernels/numeric/dtype.h"

namespace qplan {

// Work items are equal runs of elements: how many one has. Tensors hold less than 2^48 elements, so that
// there are less than 2^29 work items.
static constexpr uint64_t chunk_elements(uint64_t elements) {
  return elements < uint64_t{1} << 40 ? uint64_t{4096} : uint64_t{1} << 20;
}

static constexpr uint32_t num_chunks(uint64_t elements) {
  // Small processors shift by a power of two that is known, and call a function elsewhere.
  static_assert(chunk_elements(0) == 1u << 12 && chunk_elements(uint64_t{1} << 40) == 1u << 20, "as below");
  const uint32_t shift = elements < uint64_t{1} << 40 ? 12 : 20;
  return static_cast<uint32_t>((elements + (uint64_t{1} << shift) - 1) >> shift);
}

struct ElementRange {
  uint64_t begin;
  uint64_t end;
};

// The elements of the work items [begin, end).
static constexpr ElementRange chunk_range(uint64_t elements, uint32_t begin, uint32_t end) {
  const uint64_t chunk = chunk_elements(elements);
  const uint64_t last = uint64_t{end} * chunk;
  return {uint64_t{begin} * chunk, last < elements ? last : elements};
}

// Broadcasting of two inputs as NumPy does it, reduced to as few axes as possible: axes that both inputs walk
// in the same way are one axis. Equal shapes are one axis of all elements; a scalar beside a tensor is one
// axis, too.
struct Broadcast {
  static constexpr uint32_t kMaxRank = 6;

  uint64_t elements = 1;  // of the output
  uint32_t rank = 1;      // at least 1
  // Outermost first. Strides count elements and are 0 where the input is repeated; along the last axis they
  // are 0 or 1.
  uint64_t extents[kMaxRank] = {1};
  uint64_t a_strides[kMaxRank] = {};
  uint64_t b_strides[kMaxRank] = {};
};

// Calls run(out, a, b, count) for the output elements [begin, end): `count` consecutive outputs from index
// `out`, whose inputs begin at the indices `a` and `b` and advance by the strides of the last axis.
template <typename Run>
static inline void for_each_broadcast_run(const Broadcast& broadcast, uint64_t begin, uint64_t end,
                                          const Run& run) {
  const uint32_t last = broadcast.rank - 1;
  uint64_t at = begin;
  while (at < end) {
    uint64_t rest = at;
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t count = 0;
    for (uint32_t axis = broadcast.rank; axis-- > 0;) {
      const uint64_t extent = broadcast.extents[axis];
      const uint64_t index = rest % extent;
      rest /= extent;
      a += index * broadcast.a_strides[axis];
      b += index * broadcast.b_strides[axis];
      if (axis == last) count = extent - index;
    }
    if (count > end - at) count = end - at;
    run(at, a, b, count);
    at += count;
  }
}

// What reference kernels of two inputs share: each element of the output is a function of the two elements
// that broadcasting puts together.
template <typename In, typename Out, typename Combine>
static void combine_elements(const Broadcast& broadcast, ElementRange range, const In* a, const In* b,
                             Out* output, const Combine& combine) {
  const uint32_t last = broadcast.rank - 1;
  const uint64_t a_step = broadcast.a_strides[last], b_step = broadcast.b_strides[last];
  for_each_broadcast_run(
      broadcast, range.begin, range.end, [&](uint64_t out, uint64_t a_at, uint64_t b_at, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
          output[out + i] = static_cast<Out>(combine(a[a_at + i * a_step], b[b_at + i * b_step]));
      });
}

template <typename T, typename Args, typename Combine>
static void combine_as(const Args& args, ElementRange range, const Combine& combine) {
  combine_elements(args.broadcast, range, static_cast<const T*>(args.a), static_cast<const T*>(args.b),
                   static_cast<T*>(args.output), combine);
}

// Inputs and output have one dtype, of 8 bits or int16.
template <typename Args, typename Combine>
static void combine_quantized(const Args& args, ElementRange range, const Combine& combine) {
  if (args.dtype == Dtype::kU8) {
    combine_as<uint8_t>(args, range, combine);
  } else if (args.dtype == Dtype::kS16) {
    combine_as<int16_t>(args, range, combine);
  } else {
    combine_as<int8_t>(args, range, combine);
  }
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_BROADCAST_H_
