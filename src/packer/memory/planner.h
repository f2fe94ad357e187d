// Offsets for buffers whose lifetimes are known: as few bytes as can be found, the same on every machine.
#ifndef QPLAN_SRC_PACKER_MEMORY_PLANNER_H_
#define QPLAN_SRC_PACKER_MEMORY_PLANNER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace qplan::memory {

struct Buffer {
  uint64_t size = 0;   // bytes
  uint32_t first = 0;  // index of the first and last step that need it, both included
  uint32_t last = 0;
};

struct PlannerOptions {
  uint64_t alignment = 64;  // bytes, of every buffer
  uint32_t iterations = 0;  // hill climbing; 0: kDefaultIterations
};
inline constexpr uint32_t kDefaultIterations = 4096;

struct Placement {
  std::vector<uint64_t> offsets;  // one per buffer
  uint64_t peak = 0;              // bytes: end of the highest buffer
  uint64_t lower_bound = 0;       // bytes: no placement needs less
};

// The most bytes that are needed at the same time, each buffer rounded up to the alignment.
uint64_t live_bytes_peak(std::span<const Buffer> buffers, uint64_t alignment);

// Each buffer goes into the first gap between those placed before it that are alive at the same time; the
// order of placing decides the result. Several orders are tried, then the best one is changed by swaps near
// the peak for as long as this helps, until the lower bound is met or the iterations are used.
Placement place_buffers(std::span<const Buffer> buffers, const PlannerOptions& options);

// Placement in the order of execution, as an allocator would do it while the steps run: for any number of
// buffers.

// Offsets, one per buffer. Takes time n log n plus the number of gaps that are skipped.
std::vector<uint64_t> place_by_sweep(std::span<const Buffer> buffers, uint64_t alignment);

}  // namespace qplan::memory

#endif  // QPLAN_SRC_PACKER_MEMORY_PLANNER_H_
