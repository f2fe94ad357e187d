// The second opinion on where a region's tensors lie: whatever the device does with its outputs and its
// buffers, the CPU steps behind it find the inputs as they were.
#ifndef QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_
#define QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_

#include "src/packer/memory/arena.h"

namespace qplan::memory {

// Looks at bytes alone, not at lifetimes. PackError (QPLAN_INTERNAL) naming the step and what lies wrong.
void check_regions(const target::Program& program, const Arena& arena);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_
