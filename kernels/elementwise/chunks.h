// Work units of kernels in which every output element stands alone: equal runs of elements.
// Internal linkage only: ISA files include this.
#ifndef QPLAN_KERNELS_ELEMENTWISE_CHUNKS_H_
#define QPLAN_KERNELS_ELEMENTWISE_CHUNKS_H_

#include <stdint.h>

namespace qplan {

// Elements of one unit. Tensors hold less than 2^48 elements, so that there are less than 2^29 units.
static constexpr uint64_t chunk_elements(uint64_t elements) {
  return elements < uint64_t{1} << 40 ? uint64_t{4096} : uint64_t{1} << 20;
}

static constexpr uint32_t num_chunks(uint64_t elements) {
  const uint64_t chunk = chunk_elements(elements);
  return static_cast<uint32_t>((elements + chunk - 1) / chunk);
}

struct ElementRange {
  uint64_t begin;
  uint64_t end;
};

// The elements of the units [begin, end).
static constexpr ElementRange chunk_range(uint64_t elements, uint32_t begin, uint32_t end) {
  const uint64_t chunk = chunk_elements(elements);
  const uint64_t last = uint64_t{end} * chunk;
  return {uint64_t{begin} * chunk, last < elements ? last : elements};
}

}  // namespace qplan

#endif  // QPLAN_KERNELS_ELEMENTWISE_CHUNKS_H_
