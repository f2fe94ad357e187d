#include "src/vta/compiler/scratch.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace qplan::target::vta {

ScratchPlan plan_scratch(std::span<const ScratchInterval> intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return intervals[i].bytes; });
  ScratchPlan plan;
  plan.offsets.resize(intervals.size());
  std::vector<size_t> placed;
  for (const size_t i : order) {
    std::vector<std::pair<uint64_t, uint64_t>> taken;  // begin, end
    for (const size_t other : placed) {
      if (intervals[other].first <= intervals[i].last && intervals[i].first <= intervals[other].last)
        taken.emplace_back(plan.offsets[other], plan.offsets[other] + intervals[other].bytes);
    }
    std::ranges::sort(taken);
    uint64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (at + intervals[i].bytes <= begin) break;
      at = std::max(at, (end + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment);
    }
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, at + intervals[i].bytes);
    placed.push_back(i);
  }
  return plan;
}

}  // namespace qplan::target::vta
