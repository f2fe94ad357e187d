#include "src/packer/memory/overlap_checker.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "src/packer/error.h"

namespace qplan::memory {
namespace {

std::string describe(const PlacedValue& value) {
  return "'" + value.name + "' (bytes " + std::to_string(value.offset) + " to " +
         std::to_string(value.offset + value.size) + ", steps " + std::to_string(value.first) + " to " +
         std::to_string(value.last) + ")";
}

[[noreturn]] void fail(const std::string& text) {
  throw PackError(QPLAN_INTERNAL, "memory plan: " + text + "; this is a defect of the packer");
}

// The values that are alive at the current step, by where they begin.
class Alive {
 public:
  explicit Alive(std::span<const PlacedValue> values) : values_(values) {}

  void add(uint32_t index) {
    const PlacedValue& value = values_[index];
    const auto after = by_offset_.lower_bound(value.offset);
    if (after != by_offset_.end() && after->first < value.offset + value.size)
      fail_pair(index, after->second);
    if (after != by_offset_.begin()) {
      const PlacedValue& before = values_[std::prev(after)->second];
      if (before.offset + before.size > value.offset) fail_pair(index, std::prev(after)->second);
    }
    by_offset_.emplace(value.offset, index);
  }

  void remove(uint32_t index) {
    const auto entry = by_offset_.find(values_[index].offset);
    if (entry != by_offset_.end() && entry->second == index) by_offset_.erase(entry);
  }

 private:
  [[noreturn]] void fail_pair(uint32_t a, uint32_t b) const {
    fail(describe(values_[a]) + " overlaps " + describe(values_[b]));
  }

  std::span<const PlacedValue> values_;
  std::map<uint64_t, uint32_t> by_offset_;
};

void check_value(std::span<const PlacedValue> values, const PlacedValue& value, uint64_t arena_size,
                 uint64_t alignment) {
  if (value.size == 0 || value.size > arena_size || value.offset > arena_size - value.size) {
    fail(describe(value) + " reaches beyond the arena of " + std::to_string(arena_size) + " bytes");
  }
  if (value.offset % alignment != 0)
    fail(describe(value) + " is not aligned to " + std::to_string(alignment));
  if (value.first > value.last) fail(describe(value) + " ends before it begins");
  if (value.replaces == UINT32_MAX) return;
  if (value.replaces >= values.size()) fail(describe(value) + " replaces a value that does not exist");
  const PlacedValue& old = values[value.replaces];
  if (old.offset != value.offset || old.size != value.size || old.last != value.first ||
      old.first >= value.first) {
    fail(describe(value) + " cannot be computed in place of " + describe(old));
  }
}

}  // namespace

void check_no_overlap(std::span<const PlacedValue> values, uint64_t arena_size, uint64_t alignment) {
  std::vector<uint32_t> begins(values.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    check_value(values, values[i], arena_size, alignment);
    begins[i] = i;
  }
  std::vector<uint32_t> ends = begins;
  std::ranges::stable_sort(begins, {}, [&](uint32_t i) { return values[i].first; });
  std::ranges::stable_sort(ends, {}, [&](uint32_t i) { return values[i].last; });

  Alive alive(values);
  size_t ended = 0;
  for (size_t i = 0; i < begins.size();) {
    const uint32_t step = values[begins[i]].first;
    while (ended < ends.size() && values[ends[ended]].last < step) alive.remove(ends[ended++]);
    size_t end = i;
    while (end < begins.size() && values[begins[end]].first == step) ++end;
    // What is overwritten in place makes room first: its bytes are then those of its successor. Two values
    // that replace the same one overlap each other and are found so.
    for (size_t k = i; k < end; ++k) {
      const uint32_t replaced = values[begins[k]].replaces;
      if (replaced != UINT32_MAX) alive.remove(replaced);
    }
    for (; i < end; ++i) alive.add(begins[i]);
  }
}

}  // namespace qplan::memory
