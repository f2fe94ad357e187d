// Several memories: which activations are in which, by how often their bytes are read and written, and which
// constants are copied into areas that cost less than where the plan is.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

using target::MemoryArea;
using target::Program;
using target::ProgramStep;

// A buffer of activations that no device has, with what is left of it later (Buffer::rest_of), which has to
// be where it was; or the scratch of a step.
struct Item {
  Buffer buffer;       // the largest
  uint32_t index = 0;  // in Lifetimes::buffers; of scratch, the step
  bool is_scratch = false;
  bool has_left = false;
  uint64_t traffic = 0;           // bytes that steps read and write in one run
  std::vector<uint32_t> rests{};  // in Lifetimes::buffers
};

// How often each byte of it is read or written. The quotient is the same on every machine.
double uses_per_byte(const Item& item) {
  return static_cast<double>(item.traffic) / static_cast<double>(item.buffer.size);
}

// Whether a's bytes are used less than b's; of equal ones, the larger.
bool is_used_less(const Item& a, const Item& b) {
  const double left = uses_per_byte(a), right = uses_per_byte(b);
  return left != right ? left < right : a.buffer.size > b.buffer.size;
}

// The most buffers that are in use at the same time.
size_t most_alive(const std::vector<Buffer>& buffers) {
  std::vector<std::pair<uint64_t, int>> changes;
  for (const Buffer& buffer : buffers) {
    changes.emplace_back(uint64_t{buffer.first} * 2, 1);
    changes.emplace_back(uint64_t{buffer.last} * 2 + 1, -1);
  }
  std::ranges::sort(changes);
  int64_t alive = 0, most = 0;
  for (const auto& [time, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return static_cast<size_t>(most);
}

// What all placements of a model may take: buffers and pairs that hill climbing visits, then buffers and gaps
// that sweeps visit. Models of up to about a hundred buffers take less.
constexpr uint64_t kMaxClimbing = 240'000'000;
constexpr uint64_t kMaxSweeps = 4'000'000;

class Spreader {
 public:
  Spreader(const Program& program, std::span<const MemoryArea> areas, uint64_t alignment, uint32_t iterations,
           Arena* arena)
      : program_(program), areas_(areas), arena_(*arena) {
    options_.alignment = alignment;
    options_.iterations = iterations;
  }

  void run() {
    std::vector<Item> rest = find_items();
    area_of_buffer_.assign(arena_.lifetimes.buffers.size(), 0);
    buffer_offsets_.assign(arena_.lifetimes.buffers.size(), 0);
    arena_.areas.clear();
    for (size_t a = 1; a < areas_.size(); ++a) arena_.areas.push_back({areas_[a].name, 0});
    arena_.area_of.assign(program_.tensors.size(), 0);
    if (is_all_in_the_first()) return;
    std::vector<uint32_t> by_cost(areas_.size());
    std::iota(by_cost.begin(), by_cost.end(), 0u);
    std::ranges::stable_sort(by_cost, {}, [&](uint32_t a) { return areas_[a].cost; });
    for (const uint32_t a : by_cost) fill(a, &rest);
    if (!rest.empty()) refuse(rest);
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      const uint32_t buffer = arena_.lifetimes.buffer[t];
      if (buffer == kNone || arena_.device_of[t] != kNone) continue;
      arena_.area_of[t] = area_of_buffer_[buffer];
      arena_.offsets[t] = buffer_offsets_[buffer] + arena_.lifetimes.offset[t];
    }
  }

 private:
  // The plan as it is has room there, and nowhere would it cost less.
  bool is_all_in_the_first() const {
    return arena_.size <= areas_[0].bytes &&
           std::ranges::all_of(areas_, [&](const MemoryArea& area) { return area.cost >= areas_[0].cost; });
  }

  std::vector<Item> find_items() const {
    std::vector<Item> items;
    std::vector<size_t> of_buffer(arena_.lifetimes.buffers.size(), SIZE_MAX);
    for (uint32_t b = 0; b < arena_.lifetimes.buffers.size(); ++b) {
      if (arena_.lifetimes.device[b] != kNone) continue;
      const Buffer& buffer = arena_.lifetimes.buffers[b];
      if (buffer.rest_of != kNone) {
        of_buffer[b] = of_buffer[buffer.rest_of];
        items[of_buffer[b]].rests.push_back(b);
        continue;
      }
      of_buffer[b] = items.size();
      items.push_back({buffer, b, false, false, 0});
    }
    for (const ProgramStep& step : program_.steps) {
      for (const std::vector<target::TensorId>* tensors : {&step.inputs, &step.outputs}) {
        for (const target::TensorId t : *tensors) {
          const uint32_t b = arena_.lifetimes.buffer[t];
          if (b == kNone || of_buffer[b] == SIZE_MAX) continue;
          items[of_buffer[b]].traffic += static_cast<uint64_t>(program_.tensors[t].type.size_bytes());
        }
      }
    }
    for (uint32_t s = 0; s < arena_.scratch_sizes.size(); ++s) {
      if (arena_.scratch_sizes[s] != 0) items.push_back({{arena_.scratch_sizes[s], s, s}, s, true, false, 0});
    }
    return items;
  }

  LiveBytes live_bytes(const std::vector<Item>& items) const {
    LiveBytes live(static_cast<uint32_t>(program_.steps.size()), options_.alignment);
    for (const Item& item : items) add(item, &live);
    return live;
  }
  void add(const Item& item, LiveBytes* live) const {
    live->add(item.buffer);
    for (const uint32_t rest : item.rests) live->add(arena_.lifetimes.buffers[rest]);
  }
  void remove(const Item& item, LiveBytes* live) const {
    live->remove(item.buffer);
    for (const uint32_t rest : item.rests) live->remove(arena_.lifetimes.buffers[rest]);
  }
  bool is_in_use(const Item& item, uint32_t step) const {
    const uint32_t last =
        item.rests.empty() ? item.buffer.last : arena_.lifetimes.buffers[item.rests.back()].last;
    return item.buffer.first <= step && step <= last;
  }

  // Whether the items fit into the room as they are placed; what that costs comes out of the budgets.
  bool place(const std::vector<Item>& items, uint64_t room, Placement* placement) {
    std::vector<Buffer> buffers;
    for (const Item& item : items) buffers.push_back(item.buffer);
    for (uint32_t i = 0; i < items.size(); ++i) {
      for (const uint32_t rest : items[i].rests) {
        buffers.push_back(arena_.lifetimes.buffers[rest]);
        buffers.back().rest_of = i;
      }
    }
    options_.max_work = climbing_;
    *placement = place_buffers(buffers, options_);
    climbing_ -= std::min(climbing_, placement->work);
    // A sweep looks at no more gaps for a buffer than there are buffers in use; most of them at far fewer.
    sweeps_ -= std::min<uint64_t>(sweeps_, buffers.size() * (1 + most_alive(buffers) / 16));
    return placement->peak <= room;
  }

  // The item leaves that is used least among those in use at the step with most bytes. False: there is
  // scratch alone.
  bool take_least(LiveBytes* live, std::vector<Item>* inside, std::vector<Item>* outside) const {
    const uint32_t step = live->peak_step();
    Item* least = nullptr;
    for (Item& item : *inside) {
      if (item.has_left || item.is_scratch || !is_in_use(item, step)) continue;
      if (least == nullptr || is_used_less(item, *least)) least = &item;
    }
    if (least == nullptr) return false;
    remove(*least, live);
    outside->push_back(*least);
    least->has_left = true;
    return true;
  }

  // Takes from the rest what fits into the area: what is used least at the step with most bytes leaves first.
  // Then what left comes back, the most used first, where there is room after all.
  void fill(uint32_t area, std::vector<Item>* rest) {
    std::vector<Item> inside, outside;
    for (Item& item : *rest) (item.is_scratch && area != 0 ? outside : inside).push_back(item);
    const uint64_t room = areas_[area].bytes;
    LiveBytes live = live_bytes(inside);
    Placement placement;
    size_t at_once = 1;
    while (true) {
      while (live.peak() > room) {
        if (!take_least(&live, &inside, &outside)) refuse_scratch(live.peak_step());
      }
      std::erase_if(inside, [](const Item& item) { return item.has_left; });
      if (place(inside, room, &placement)) break;
      if (!take_least(&live, &inside, &outside)) refuse_scratch(live.peak_step());
      // Beyond the budget fewer placements are tried: twice as many items leave before each.
      if (sweeps_ == 0) at_once *= 2;
      for (size_t i = 1; i < at_once && take_least(&live, &inside, &outside);) ++i;
    }
    std::ranges::stable_sort(outside, [](const Item& a, const Item& b) { return is_used_less(b, a); });
    std::vector<Item> left;
    for (Item& item : outside) {
      const bool may_return = !(item.is_scratch && area != 0) && sweeps_ != 0;
      if (may_return) {
        add(item, &live);
        inside.push_back(item);
        Placement with;
        if (live.peak() <= room && place(inside, room, &with)) {
          placement = std::move(with);
          continue;
        }
        inside.pop_back();
        remove(item, &live);
      }
      left.push_back(item);
    }
    for (size_t i = 0; i < inside.size(); ++i) {
      if (inside[i].is_scratch) {
        arena_.scratch_offsets[inside[i].index] = placement.offsets[i];
      } else {
        put(inside[i].index, area, placement.offsets[i]);
        for (const uint32_t b : inside[i].rests) put(b, area, placement.offsets[i]);
      }
    }
    if (area == 0) {
      arena_.size = placement.peak;
      arena_.lower_bound = placement.lower_bound;
    } else {
      arena_.areas[area - 1].size = placement.peak;
    }
    *rest = std::move(left);
  }

  void put(uint32_t buffer, uint32_t area, uint64_t offset) {
    area_of_buffer_[buffer] = area;
    buffer_offsets_[buffer] = offset;
  }

  std::string rooms() const {
    std::string text;
    for (const MemoryArea& area : areas_)
      text += cat(text.empty() ? "" : ", ", area.bytes, " in '", area.name, "'");
    return text;
  }

  [[noreturn]] void refuse_scratch(uint32_t step) const {
    throw PackError(
        QPLAN_MEMORY_TOO_SMALL,
        cat("memory areas: the scratch of step ", step, " '", program_.steps[step].name, "', ",
            arena_.scratch_sizes[step], " bytes, does not fit into '", areas_[0].name, "', which has ",
            areas_[0].bytes, " for activations and scratch; list a larger area first", advice()));
  }

  // Only plans of --fuse memory overwrite their inputs.
  const char* advice() const {
    return program_.overwrites_inputs ? "" : "; --fuse memory takes the least memory";
  }

  // What finds no room is in use during several steps; the one with most bytes in use is in the way.
  [[noreturn]] void refuse(const std::vector<Item>& rest) const {
    const LiveBytes left = live_bytes(rest), all = live_bytes(find_items());
    uint32_t step = left.peak_step();
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (left.at(s) != 0 && all.at(s) > all.at(step)) step = s;
    }
    throw PackError(
        QPLAN_MEMORY_TOO_SMALL,
        cat("memory areas: step ", step, " '", program_.steps[step].name, "' does not fit: it has ",
            all.at(step), " bytes of activations and scratch in use, of which ", left.at(step),
            " find no room; there are ", rooms(), "; state larger areas", advice()));
  }

  const Program& program_;
  const std::span<const MemoryArea> areas_;
  Arena& arena_;
  PlannerOptions options_;
  uint64_t climbing_ = kMaxClimbing, sweeps_ = kMaxSweeps;  // what is left of them
  std::vector<uint32_t> area_of_buffer_;
  std::vector<uint64_t> buffer_offsets_;
};

}  // namespace

void spread(const Program& program, std::span<const MemoryArea> areas, uint64_t alignment,
            uint32_t iterations, Arena* arena) {
  Spreader(program, areas, alignment, iterations, arena).run();
}

// Copies of constants.

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
