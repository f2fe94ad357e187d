// The cycles of a stream: each module takes its instructions in order, one begins when its tokens are there.
#ifndef QPLAN_SRC_VTA_COMPILER_ESTIMATE_H_
#define QPLAN_SRC_VTA_COMPILER_ESTIMATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

struct Estimate {
  uint64_t total_cycles = 0;
  std::array<uint64_t, ::qplan::vta::kNumModules> busy_cycles{};  // by Module
};

// A stream whose tokens are balanced. Costs are those of src/vta/isa/vta_cost.h.
Estimate estimate_cycles(const Config& config, std::span<const ::qplan::vta::Instruction> stream);

// The cycle at which the first ends[k] instructions are all done, ascending as `ends` are; the last one is
// the total when it counts all instructions.
std::vector<uint64_t> cycles_at(const Config& config, std::span<const ::qplan::vta::Instruction> stream,
                                std::span<const size_t> ends);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_ESTIMATE_H_
