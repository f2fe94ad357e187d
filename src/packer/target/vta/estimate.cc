#include "src/packer/target/vta/estimate.h"

#include <algorithm>
#include <vector>

#include "src/npu/isa/vta_cost.h"
#include "src/npu/isa/vta_tokens.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

// When the tokens of a queue were given, and how many were taken.
struct TokenTimes {
  std::vector<uint64_t> given;
  size_t taken = 0;
};

}  // namespace

Estimate estimate_cycles(const Config& config, std::span<const isa::Instruction> stream) {
  Estimate result;
  std::array<uint64_t, isa::kNumModules> free{};
  std::array<TokenTimes, isa::kNumQueues> queues;
  // Streams are written in an order in which every token is given before it is taken: one pass is enough.
  for (const isa::Instruction& instruction : stream) {
    const auto module = static_cast<size_t>(isa::module_of(instruction));
    isa::TokenUse use;
    if (!isa::token_use(instruction, &use)) continue;
    uint64_t begin = free[module];
    for (size_t q = 0; q < isa::kNumQueues; ++q) {
      TokenTimes& queue = queues[q];
      if ((use.pops >> q & 1) != 0 && queue.taken < queue.given.size())
        begin = std::max(begin, queue.given[queue.taken++]);
    }
    const uint64_t cycles = isa::cycles(config, instruction);
    free[module] = begin + cycles;
    result.busy_cycles[module] += cycles;
    for (size_t q = 0; q < isa::kNumQueues; ++q) {
      if ((use.pushes >> q & 1) != 0) queues[q].given.push_back(free[module]);
    }
  }
  result.total_cycles = *std::ranges::max_element(free);
  return result;
}

}  // namespace qplan::target::vta
