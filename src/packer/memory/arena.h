// The memory plan of a program: an offset for every activation, checked before it is handed out.
#ifndef QPLAN_SRC_PACKER_MEMORY_ARENA_H_
#define QPLAN_SRC_PACKER_MEMORY_ARENA_H_

#include <cstdint>
#include <vector>

#include "src/packer/memory/lifetimes.h"
#include "src/packer/target/program.h"

namespace qplan::memory {

struct Arena {
  Lifetimes lifetimes;
  std::vector<uint64_t> offsets;  // per tensor; 0 for constants
  uint64_t size = 0;              // bytes
  uint64_t lower_bound = 0;       // bytes
};

// iterations: of the planner's hill climbing, 0 for its default. PackError (QPLAN_INTERNAL) when the overlap
// checker refuses the result.
Arena plan_arena(const target::Program& program, const InPlaceQuery& may_be_in_place, uint32_t iterations);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_ARENA_H_
