// A second, independent check of the addresses of a region's tensors: whatever the device does with its
// outputs and buffers, the CPU steps after it find the inputs unchanged.
#ifndef QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_
#define QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_

#include "src/packer/memory/arena.h"

namespace qplan::memory {

// Checks bytes alone, not lifetimes. PackError (QPLAN_INTERNAL) naming the step and the misplaced tensor.
void check_regions(const target::Program& program, const Arena& arena);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_REGION_CHECKER_H_
