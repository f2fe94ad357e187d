// The second opinion on a memory plan: shares no code with the planner and runs on every pack.
#ifndef QPLAN_SRC_PACKER_MEMORY_OVERLAP_CHECKER_H_
#define QPLAN_SRC_PACKER_MEMORY_OVERLAP_CHECKER_H_

#include <cstdint>
#include <span>
#include <string>

namespace qplan::memory {

// Bytes that hold one value from the step that writes it to the last step that reads it, both included.
struct PlacedValue {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  // Index of the value that this one overwrites in place at step `first`: the same bytes, dead after that
  // step.
  uint32_t replaces = UINT32_MAX;
  std::string name;
};

// PackError (QPLAN_INTERNAL) naming the two values that share bytes while both are alive, or the value that
// reaches beyond the arena or is not aligned.
void check_no_overlap(std::span<const PlacedValue> values, uint64_t arena_size, uint64_t alignment);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_OVERLAP_CHECKER_H_
