#include "src/vta/compiler/estimate.h"

#include <algorithm>
#include <vector>

#include "src/vta/isa/vta_cost.h"
#include "src/vta/isa/vta_tokens.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

// When the tokens of a queue were given, and how many were taken.
struct TokenTimes {
  std::vector<uint64_t> given;
  size_t taken = 0;
};

class Estimator {
 public:
  explicit Estimator(const Config& config) : config_(config) {}

  // Streams are written in an order in which every token is given before it is taken: one pass is enough.
  void add(const isa::Instruction& instruction) {
    const auto module = static_cast<size_t>(isa::module_of(instruction));
    isa::TokenUse use;
    if (!isa::token_use(instruction, &use)) return;
    uint64_t begin = free_[module];
    for (size_t q = 0; q < isa::kNumQueues; ++q) {
      TokenTimes& queue = queues_[q];
      if ((use.pops >> q & 1) != 0 && queue.taken < queue.given.size())
        begin = std::max(begin, queue.given[queue.taken++]);
    }
    const uint64_t cycles = isa::cycles(config_, instruction);
    free_[module] = begin + cycles;
    busy_[module] += cycles;
    for (size_t q = 0; q < isa::kNumQueues; ++q) {
      if ((use.pushes >> q & 1) != 0) queues_[q].given.push_back(free_[module]);
    }
  }
  uint64_t now() const { return *std::ranges::max_element(free_); }
  Estimate estimate() const { return {now(), busy_}; }

 private:
  const Config& config_;
  std::array<uint64_t, isa::kNumModules> free_{}, busy_{};
  std::array<TokenTimes, isa::kNumQueues> queues_;
};

}  // namespace

Estimate estimate_cycles(const Config& config, std::span<const isa::Instruction> stream) {
  Estimator estimator(config);
  for (const isa::Instruction& instruction : stream) estimator.add(instruction);
  return estimator.estimate();
}

std::vector<uint64_t> cycles_at(const Config& config, std::span<const isa::Instruction> stream,
                                std::span<const size_t> ends) {
  Estimator estimator(config);
  std::vector<uint64_t> times;
  size_t next = 0;
  for (const size_t end : ends) {
    while (next < end) estimator.add(stream[next++]);
    times.push_back(estimator.now());
  }
  return times;
}

}  // namespace qplan::target::vta
