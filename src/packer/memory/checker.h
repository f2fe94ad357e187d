// The second opinion on a memory plan: shares no code with the planner and runs on every pack.
#ifndef QPLAN_SRC_PACKER_MEMORY_CHECKER_H_
#define QPLAN_SRC_PACKER_MEMORY_CHECKER_H_

#include <cstdint>
#include <span>
#include <string>

#include "src/packer/memory/arena.h"

namespace qplan::memory {

// The second opinion on a memory plan: shares no code with the planner and runs on every pack.

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
  uint64_t alignment = 64;
  // Index of the value that has this one as a part, inside_offset bytes from its beginning: whichever of the
  // two comes later is written without a change of the bytes that they share.
  uint32_t inside = UINT32_MAX;
  uint64_t inside_offset = 0;
};

// Goes through the steps and keeps for every byte who wrote it last. PackError (QPLAN_INTERNAL) naming a
// value of which a byte is written by another while it is alive, and that other; or the value that reaches
// beyond the arena, is not aligned, or is not at its declared place.
void check_no_overlap(std::span<const PlacedValue> values, uint64_t arena_size);

// A second, independent check of the addresses of a region's tensors: whatever the device does with its
// outputs and buffers, the CPU steps after it find the inputs unchanged.

// Checks bytes alone, not lifetimes. PackError (QPLAN_INTERNAL) naming the step and the misplaced tensor.
void check_regions(const target::Program& program, const Arena& arena);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_CHECKER_H_
