#include "src/packer/memory/conflicts.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace qplan::memory {

std::optional<Conflicts> Conflicts::find(std::span<const Buffer> buffers, size_t max_pairs) {
  std::vector<uint32_t> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), 0u);
  std::ranges::stable_sort(by_first, {}, [&](uint32_t i) { return buffers[i].first; });

  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  std::vector<uint32_t> alive;
  for (const uint32_t buffer : by_first) {
    std::erase_if(alive, [&](uint32_t other) { return buffers[other].last < buffers[buffer].first; });
    if (pairs.size() + alive.size() > max_pairs) return std::nullopt;
    for (const uint32_t other : alive) pairs.emplace_back(other, buffer);
    alive.push_back(buffer);
  }

  Conflicts conflicts;
  conflicts.begin_.assign(buffers.size() + 1, 0);
  for (const auto& [a, b] : pairs) {
    ++conflicts.begin_[a + 1];
    ++conflicts.begin_[b + 1];
  }
  std::partial_sum(conflicts.begin_.begin(), conflicts.begin_.end(), conflicts.begin_.begin());
  conflicts.neighbours_.resize(2 * pairs.size());
  std::vector<size_t> next(conflicts.begin_.begin(), conflicts.begin_.end() - 1);
  for (const auto& [a, b] : pairs) {
    conflicts.neighbours_[next[a]++] = b;
    conflicts.neighbours_[next[b]++] = a;
  }
  return conflicts;
}

}  // namespace qplan::memory
