// Placement in the order of execution, as an allocator would do it while the steps run: for any number of
// buffers.
#ifndef QPLAN_SRC_PACKER_MEMORY_SWEEP_PLACEMENT_H_
#define QPLAN_SRC_PACKER_MEMORY_SWEEP_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "src/packer/memory/planner.h"

namespace qplan::memory {

// Offsets, one per buffer. Takes time n log n plus the number of gaps that are skipped.
std::vector<uint64_t> place_by_sweep(std::span<const Buffer> buffers, uint64_t alignment);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_SWEEP_PLACEMENT_H_
