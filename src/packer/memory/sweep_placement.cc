#include "src/packer/memory/sweep_placement.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "src/base/checked.h"

namespace qplan::memory {
namespace {

// Free ranges below the top, by offset; none touches another or the top.
class FreeList {
 public:
  uint64_t allocate(uint64_t size) {
    const auto gap = std::ranges::find_if(gaps_, [&](const auto& entry) { return entry.second >= size; });
    if (gap == gaps_.end()) {
      const uint64_t offset = top_;
      top_ += size;
      return offset;
    }
    const auto [offset, gap_size] = *gap;
    gaps_.erase(gap);
    if (gap_size > size) gaps_.emplace(offset + size, gap_size - size);
    return offset;
  }

  void release(uint64_t offset, uint64_t size) {
    if (size == 0) return;
    auto gap = gaps_.emplace(offset, size).first;
    const auto next = std::next(gap);
    if (next != gaps_.end() && gap->first + gap->second == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap != gaps_.begin()) {
      const auto before = std::prev(gap);
      if (before->first + before->second == gap->first) {
        before->second += gap->second;
        gaps_.erase(gap);
        gap = before;
      }
    }
    if (gap->first + gap->second == top_) {
      top_ = gap->first;
      gaps_.erase(gap);
    }
  }

 private:
  std::map<uint64_t, uint64_t> gaps_;
  uint64_t top_ = 0;
};

}  // namespace

std::vector<uint64_t> place_by_sweep(std::span<const Buffer> buffers, uint64_t alignment) {
  std::vector<uint32_t> by_first(buffers.size());
  std::iota(by_first.begin(), by_first.end(), 0u);
  std::vector<uint32_t> by_last = by_first;
  std::ranges::stable_sort(by_first, {}, [&](uint32_t i) { return buffers[i].first; });
  std::ranges::stable_sort(by_last, {}, [&](uint32_t i) { return buffers[i].last; });

  std::vector<uint64_t> offsets(buffers.size(), 0);
  FreeList free_list;
  size_t ended = 0;
  for (const uint32_t buffer : by_first) {
    while (ended < by_last.size() && buffers[by_last[ended]].last < buffers[buffer].first) {
      const uint32_t other = by_last[ended++];
      free_list.release(offsets[other], round_up(buffers[other].size, alignment));
    }
    offsets[buffer] = free_list.allocate(round_up(buffers[buffer].size, alignment));
  }
  return offsets;
}

}  // namespace qplan::memory
