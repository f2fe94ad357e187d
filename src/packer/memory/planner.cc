
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "src/base/checked.h"
#include "src/base/random.h"
#include "src/packer/memory/arena.h"

namespace qplan::memory {
namespace {

// Above this many pairs of conflicting buffers only the sweep is done: time and memory stay bounded.
constexpr size_t kMaxPairs = 4'000'000;
// Bounds the time of hill climbing on large graphs: buffers and pairs visited.
constexpr uint64_t kMaxWork = 60'000'000;

using Order = std::vector<uint32_t>;
constexpr uint64_t kOrders = 4;  // tried before hill climbing

// Per buffer: the one at whose offset it begins, which is the rest of no other.
std::vector<uint32_t> leaders_of(std::span<const Buffer> buffers) {
  std::vector<uint32_t> leaders(buffers.size());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    leaders[i] = buffers[i].rest_of == kNone ? i : leaders[buffers[i].rest_of];
  return leaders;
}

class Placer {
 public:
  Placer(std::span<const Buffer> buffers, const Conflicts& conflicts, uint64_t alignment)
      : conflicts_(conflicts),
        leaders_(leaders_of(buffers)),
        next_(buffers.size(), kNone),
        placed_(buffers.size()) {
    std::vector<uint32_t> last = leaders_;
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      sizes_.push_back(round_up(buffers[i].size, alignment));
      if (leaders_[i] == i) continue;
      next_[last[leaders_[i]]] = i;
      last[leaders_[i]] = i;
    }
  }

  // Fills offsets, returns the peak. Buffers that begin together are placed with the first of them.
  uint64_t place(const Order& order, std::vector<uint64_t>* offsets) {
    placed_.assign(placed_.size(), false);
    uint64_t peak = 0;
    for (const uint32_t buffer : order) {
      if (placed_[buffer]) continue;
      const uint64_t offset = first_gap(leaders_[buffer], *offsets);
      for (uint32_t member = leaders_[buffer]; member != kNone; member = next_[member]) {
        (*offsets)[member] = offset;
        placed_[member] = true;
      }
      peak = std::max(peak, offset + sizes_[leaders_[buffer]]);  // which is the largest of them
    }
    return peak;
  }

  uint64_t size(uint32_t buffer) const { return sizes_[buffer]; }

 private:
  uint64_t first_gap(uint32_t leader, const std::vector<uint64_t>& offsets) {
    taken_.clear();
    for (uint32_t member = leader; member != kNone; member = next_[member]) {
      for (const uint32_t other : conflicts_.of(member)) {
        if (!placed_[other]) continue;
        taken_.emplace_back(static_cast<int64_t>(offsets[other]) - static_cast<int64_t>(sizes_[member]),
                            offsets[other] + sizes_[other]);
      }
    }
    std::ranges::sort(taken_);
    uint64_t offset = 0;
    for (const auto& [highest, end] : taken_) {
      if (highest >= static_cast<int64_t>(offset)) break;
      offset = std::max(offset, end);
    }
    return offset;
  }

  const Conflicts& conflicts_;
  const std::vector<uint32_t> leaders_;
  std::vector<uint32_t> next_;  // per buffer: the next one that begins at the same offset
  std::vector<uint64_t> sizes_;
  std::vector<bool> placed_;
  // The highest offset with room below each buffer that is in the way, and its end.
  std::vector<std::pair<int64_t, uint64_t>> taken_;
};

// Orders worth trying first. Ties are broken by the buffers' order.
std::vector<Order> start_orders(std::span<const Buffer> buffers) {
  Order by_index(buffers.size());
  std::iota(by_index.begin(), by_index.end(), 0u);
  const auto size = [&](uint32_t i) { return buffers[i].size; };
  const auto lifetime = [&](uint32_t i) { return uint64_t{buffers[i].last} - buffers[i].first + 1; };
  const auto area = [&](uint32_t i) { return size(i) * lifetime(i); };
  const auto first = [&](uint32_t i) { return buffers[i].first; };
  std::vector<Order> orders(kOrders, by_index);
  std::ranges::stable_sort(orders[0], std::greater<>(), size);
  std::ranges::stable_sort(orders[1], std::greater<>(), area);
  std::ranges::stable_sort(orders[2], std::greater<>(), lifetime);
  std::ranges::stable_sort(orders[3], std::less<>(), first);
  return orders;
}

class HillClimb {
 public:
  HillClimb(Placer& placer, const Conflicts& conflicts, Order order, Placement* best)
      : placer_(placer),
        conflicts_(conflicts),
        order_(std::move(order)),
        position_(order_.size()),
        best_(*best) {
    for (uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    offsets_.resize(order_.size());
    current_ = placer_.place(order_, &offsets_);
  }

  // Returns how many iterations it took.
  uint64_t run(uint64_t iterations) {
    uint64_t i = 0;
    for (; i < iterations && best_.peak > best_.lower_bound; ++i) {
      const uint32_t a = pick_at_peak();
      const uint32_t b = pick_near(a);
      if (a == b) continue;
      swap(a, b);
      const uint64_t peak = placer_.place(order_, &offsets_);
      if (peak <= current_) {
        current_ = peak;
        if (peak < best_.peak) {
          best_.peak = peak;
          best_.offsets = offsets_;
        }
      } else {
        swap(a, b);
        // pick_at_peak uses the offsets of the current order.
        current_ = placer_.place(order_, &offsets_);
      }
    }
    return i;
  }

 private:
  // One of the buffers that end at the peak.
  uint32_t pick_at_peak() {
    candidates_.clear();
    for (uint32_t i = 0; i < order_.size(); ++i) {
      if (offsets_[i] + placer_.size(i) == current_) candidates_.push_back(i);
    }
    return candidates_[random_.below(candidates_.size())];
  }

  // Picks a neighbour, or a neighbour's neighbour: one of the buffers that block it.
  uint32_t pick_near(uint32_t buffer) {
    uint32_t near = buffer;
    const uint64_t hops = 1 + random_.below(2);
    for (uint32_t hop = 0; hop < hops; ++hop) {
      const std::span<const uint32_t> neighbours = conflicts_.of(near);
      if (neighbours.empty()) break;
      near = neighbours[random_.below(neighbours.size())];
    }
    return near;
  }

  void swap(uint32_t a, uint32_t b) {
    std::swap(order_[position_[a]], order_[position_[b]]);
    std::swap(position_[a], position_[b]);
  }

  Placer& placer_;
  const Conflicts& conflicts_;
  Order order_;
  std::vector<uint32_t> position_;
  std::vector<uint64_t> offsets_;
  std::vector<uint32_t> candidates_;
  uint64_t current_ = 0;
  Placement& best_;
  SplitMix64 random_{0};
};

uint64_t peak_of(std::span<const Buffer> buffers, const std::vector<uint64_t>& offsets, uint64_t alignment) {
  uint64_t peak = 0;
  for (size_t i = 0; i < buffers.size(); ++i)
    peak = std::max(peak, offsets[i] + round_up(buffers[i].size, alignment));
  return peak;
}

}  // namespace

uint64_t live_bytes_peak(std::span<const Buffer> buffers, uint64_t alignment) {
  uint32_t steps = 0;
  for (const Buffer& buffer : buffers) steps = std::max(steps, buffer.last + 1);
  // Differences: what begins at a step, less what ended before it. Sums of unsigned differences wrap back.
  std::vector<uint64_t> change(size_t{steps} + 1, 0);
  for (const Buffer& buffer : buffers) {
    change[buffer.first] += round_up(buffer.size, alignment);
    change[buffer.last + 1] -= round_up(buffer.size, alignment);
  }
  uint64_t live = 0, peak = 0;
  for (const uint64_t delta : change) {
    live += delta;
    peak = std::max(peak, live);
  }
  return peak;
}

Placement place_buffers(std::span<const Buffer> buffers, const PlannerOptions& options) {
  Placement best;
  best.lower_bound = live_bytes_peak(buffers, options.alignment);
  best.offsets = place_by_sweep(buffers, options.alignment);
  best.peak = peak_of(buffers, best.offsets, options.alignment);
  if (best.peak == best.lower_bound || options.max_work == 0) return best;

  const std::optional<Conflicts> conflicts = Conflicts::find(buffers, kMaxPairs);
  if (!conflicts) {
    best.work = kMaxPairs;
    return best;
  }
  Placer placer(buffers, *conflicts, options.alignment);
  Order best_order;
  uint64_t best_order_peak = UINT64_MAX;
  std::vector<uint64_t> offsets(buffers.size());
  for (Order& order : start_orders(buffers)) {
    const uint64_t peak = placer.place(order, &offsets);
    if (peak < best.peak) {
      best.peak = peak;
      best.offsets = offsets;
    }
    if (peak < best_order_peak) {
      best_order_peak = peak;
      best_order = std::move(order);
    }
  }
  const uint64_t iterations = options.iterations == 0 ? kDefaultIterations : options.iterations;
  const uint64_t work = 2 * (buffers.size() + conflicts->num_pairs());
  const uint64_t most = std::min({iterations, kMaxWork / work, options.max_work / work});
  const uint64_t taken = HillClimb(placer, *conflicts, std::move(best_order), &best).run(most);
  best.work = work * (taken + kOrders);
  return best;
}

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
  // Buffers that begin together have the bytes of the largest of them from the first step to the last.
  const std::vector<uint32_t> leaders = leaders_of(buffers);
  std::vector<uint32_t> by_first, last(buffers.size());
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (leaders[i] == i) by_first.push_back(i);
    last[i] = buffers[i].last;
    last[leaders[i]] = std::max(last[leaders[i]], last[i]);
  }
  std::vector<uint32_t> by_last = by_first;
  std::ranges::stable_sort(by_first, {}, [&](uint32_t i) { return buffers[i].first; });
  std::ranges::stable_sort(by_last, {}, [&](uint32_t i) { return last[i]; });

  std::vector<uint64_t> offsets(buffers.size(), 0);
  FreeList free_list;
  size_t ended = 0;
  for (const uint32_t buffer : by_first) {
    while (ended < by_last.size() && last[by_last[ended]] < buffers[buffer].first) {
      const uint32_t other = by_last[ended++];
      free_list.release(offsets[other], round_up(buffers[other].size, alignment));
    }
    offsets[buffer] = free_list.allocate(round_up(buffers[buffer].size, alignment));
  }
  for (uint32_t i = 0; i < buffers.size(); ++i) offsets[i] = offsets[leaders[i]];
  return offsets;
}

}  // namespace qplan::memory
