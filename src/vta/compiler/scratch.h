// Where the values between units lie in the region's scratch buffer: by the units that write and read them.
#ifndef QPLAN_SRC_VTA_COMPILER_SCRATCH_H_
#define QPLAN_SRC_VTA_COMPILER_SCRATCH_H_

#include <cstdint>
#include <span>
#include <vector>

namespace qplan::target::vta {

// Of a value, in use from unit `first` to unit `last`, both included.
struct ScratchInterval {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};
struct ScratchPlan {
  std::vector<uint64_t> offsets;  // one per interval, multiples of kScratchAlignment
  uint64_t bytes = 0;
};
inline constexpr uint64_t kScratchAlignment = 64;

// The largest first, each at the lowest offset that no value in use at the same time covers.
ScratchPlan plan_scratch(std::span<const ScratchInterval> intervals);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_SCRATCH_H_
