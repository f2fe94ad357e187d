// Which constants are copied into areas that cost less than where the plan is.
#include <algorithm>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

// Candidates times units of room that a choice looks at: some tenths of a second. Beyond it units are larger
// than the alignment, and the choice is exact but for what rounding up to units leaves.
constexpr uint64_t kMaxChoices = uint64_t{1} << 26;

// Those of `items`, positions of candidates, whose bytes read are the most that fit into the room: a table of
// which item is taken with so many units of room. Of equal sets it is one with the least units.
std::vector<uint32_t> best_set(std::span<const CopyCandidate> candidates, const std::vector<uint32_t>& items,
                               uint64_t room, uint64_t alignment) {
  uint64_t unit = alignment;
  while (items.size() * (room / unit + 1) > kMaxChoices) unit *= 2;
  const auto units_of = [&](uint32_t item) { return (candidates[item].size + unit - 1) / unit; };
  const uint64_t capacity = room / unit;
  std::vector<uint64_t> most(capacity + 1, 0);  // bytes read, by units of room
  std::vector<std::vector<bool>> is_taken;
  for (const uint32_t item : items) {
    is_taken.emplace_back(capacity + 1, false);
    const uint64_t units = units_of(item);
    for (uint64_t at = capacity + 1; at-- > units;) {
      const uint64_t with = saturating_sum(most[at - units], candidates[item].bytes_read);
      if (with <= most[at]) continue;
      most[at] = with;
      is_taken.back()[at] = true;
    }
  }
  uint64_t at = capacity;
  while (at > 0 && most[at - 1] == most[at]) --at;
  std::vector<uint32_t> chosen;
  for (size_t i = items.size(); i-- > 0;) {
    if (!is_taken[i][at]) continue;
    chosen.push_back(items[i]);
    at -= units_of(items[i]);
  }
  return chosen;
}

}  // namespace

std::vector<uint32_t> choose_copies(std::span<const CopyCandidate> candidates,
                                    std::span<const CopyRoom> rooms, uint64_t from_cost, uint64_t max_bytes,
                                    uint64_t alignment) {
  std::vector<uint32_t> room_of(candidates.size(), kNone);
  std::vector<uint32_t> by_cost(rooms.size());
  std::iota(by_cost.begin(), by_cost.end(), 0u);
  std::ranges::stable_sort(by_cost, {}, [&](uint32_t r) { return rooms[r].cost; });
  for (const uint32_t r : by_cost) {
    if (rooms[r].cost >= from_cost) break;
    const uint64_t room = std::min(rooms[r].bytes, max_bytes) / alignment * alignment;
    std::vector<uint32_t> items;
    uint64_t all = 0;
    for (uint32_t c = 0; c < candidates.size(); ++c) {
      if (room_of[c] != kNone || candidates[c].bytes_read == 0 || candidates[c].size > room) continue;
      items.push_back(c);
      all += round_up(candidates[c].size, alignment);
    }
    for (const uint32_t c : all <= room ? items : best_set(candidates, items, room, alignment)) {
      room_of[c] = r;
      max_bytes -= round_up(candidates[c].size, alignment);
    }
  }
  return room_of;
}

}  // namespace qplan::memory
