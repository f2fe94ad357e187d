// Two steps. First every unit gets a level: how often a way from the inputs changes device before it.
// Neighbours of one device and level form a group; ways between groups lead to higher levels, so there is no
// circle, in linear time. Then groups that are still neighbours are contracted one edge at a time, where no
// other way leads from the one to the other, in a topological order that is kept up to date as Pearce and
// Kelly do ("A dynamic topological sort algorithm for directed acyclic graphs"): a search never leaves the
// stretch of the order between the two.
#include <algorithm>
#include <utility>

#include "src/packer/partition/stages.h"

namespace qplan::partition {
namespace {

// Edges that searches may follow, for each unit and edge of the graph.
constexpr uint64_t kSearchFactor = 500;

class Regions {
 public:
  explicit Regions(const UnitGraph& graph)
      : graph_(graph),
        size_(static_cast<uint32_t>(graph.reads.size())),
        parent_(size_),
        preds_(size_),
        succs_(size_) {
    for (uint32_t u = 0; u < size_; ++u) parent_[u] = u;
  }

  std::vector<uint32_t> run() {
    group_by_level();
    order_groups();
    contract();
    return numbered();
  }

 private:
  uint32_t find(uint32_t unit) {
    while (parent_[unit] != unit) unit = parent_[unit] = parent_[parent_[unit]];
    return unit;
  }

  void group_by_level() {
    level_.assign(size_, 0);
    for (uint32_t u = 0; u < size_; ++u) {
      for (const uint32_t p : graph_.reads[u]) {
        level_[u] = std::max(level_[u], level_[p] + (graph_.device[p] == graph_.device[u] ? 0u : 1u));
      }
      if (graph_.device[u] == kNoDevice) continue;
      for (const uint32_t p : graph_.reads[u]) {
        if (graph_.device[p] == graph_.device[u] && level_[p] == level_[u]) join(find(p), find(u));
      }
    }
  }

  // The representative is the first unit.
  void join(uint32_t a, uint32_t b) {
    if (a == b) return;
    parent_[std::max(a, b)] = std::min(a, b);
  }

  // Within a level only units without device read each other, and those in the order of their numbers.
  void order_groups() {
    std::vector<uint32_t> groups;
    for (uint32_t u = 0; u < size_; ++u) {
      const uint32_t group = find(u);
      if (group == u) groups.push_back(u);
      for (const uint32_t p : graph_.reads[u]) {
        const uint32_t from = find(p);
        num_edges_ += 1;
        if (from == group) continue;
        preds_[group].push_back(from);
        succs_[from].push_back(group);
      }
    }
    std::ranges::stable_sort(groups, {}, [&](uint32_t group) { return level_[group]; });
    place_.assign(size_, 0);
    for (uint32_t i = 0; i < groups.size(); ++i) place_[groups[i]] = i;
  }

  // A refused edge can become possible when another one was contracted, so until none is.
  void contract() {
    uint64_t budget = (uint64_t{size_} + num_edges_) * kSearchFactor;
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t u = 0; u < size_; ++u) {
      if (graph_.device[u] == kNoDevice) continue;
      for (const uint32_t p : graph_.reads[u]) {
        if (graph_.device[p] == graph_.device[u] && find(p) != find(u)) edges.emplace_back(p, u);
      }
    }
    mark_.assign(size_, 0);
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<std::pair<uint32_t, uint32_t>> refused;
      for (const auto& [from, to] : edges) {
        if (budget_is_spent(budget)) return;
        const uint32_t a = find(from), b = find(to);
        if (a == b) continue;
        if (try_contract(a, b)) {
          changed = true;
        } else {
          refused.emplace_back(from, to);
        }
      }
      edges = std::move(refused);
    }
  }

  bool budget_is_spent(uint64_t budget) const { return steps_ > budget; }

  // a comes before b and b reads it.
  bool try_contract(uint32_t a, uint32_t b) {
    ++stamp_;
    std::vector<uint32_t> after;  // what follows from a between the two; none of it may lead to b
    mark_[a] = stamp_;
    std::vector<uint32_t> open = {a};
    while (!open.empty()) {
      const uint32_t from = open.back();
      open.pop_back();
      for (const uint32_t edge : succs_[from]) {
        ++steps_;
        const uint32_t to = find(edge);
        if (to == b) {
          if (from != a) return false;
          continue;
        }
        if (mark_[to] == stamp_ || place_[to] > place_[b]) continue;
        mark_[to] = stamp_;
        after.push_back(to);
        open.push_back(to);
      }
    }
    std::vector<uint32_t> before;  // what leads to b between the two
    mark_[b] = stamp_;
    open = {b};
    while (!open.empty()) {
      const uint32_t to = open.back();
      open.pop_back();
      for (const uint32_t edge : preds_[to]) {
        ++steps_;
        const uint32_t from = find(edge);
        if (mark_[from] == stamp_ || place_[from] < place_[a]) continue;
        mark_[from] = stamp_;
        before.push_back(from);
        open.push_back(from);
      }
    }
    reorder(a, b, before, after);
    merge(a, b);
    return true;
  }

  // before, then the merged group, then after, on the places that they have among them.
  void reorder(uint32_t a, uint32_t b, std::vector<uint32_t>& before, std::vector<uint32_t>& after) {
    const auto by_place = [&](uint32_t group) { return place_[group]; };
    std::ranges::sort(before, {}, by_place);
    std::ranges::sort(after, {}, by_place);
    std::vector<uint32_t> places = {place_[a], place_[b]};
    for (const uint32_t group : before) places.push_back(place_[group]);
    for (const uint32_t group : after) places.push_back(place_[group]);
    std::ranges::sort(places);
    size_t next = 0;
    for (const uint32_t group : before) place_[group] = places[next++];
    place_[a] = place_[b] = places[next++];
    for (const uint32_t group : after) place_[group] = places[next++];
  }

  void merge(uint32_t a, uint32_t b) {
    const uint32_t keep = std::min(a, b), gone = std::max(a, b);
    parent_[gone] = keep;
    const auto take = [](std::vector<uint32_t>& into, std::vector<uint32_t>& from) {
      if (into.size() < from.size()) std::swap(into, from);
      into.insert(into.end(), from.begin(), from.end());
      from = {};
    };
    take(preds_[keep], preds_[gone]);
    take(succs_[keep], succs_[gone]);
    drop_own(&preds_[keep], keep);
    drop_own(&succs_[keep], keep);
  }
  void drop_own(std::vector<uint32_t>* edges, uint32_t group) {
    if (edges->size() > 64) return;  // searches skip them; here it would cost more than it saves
    std::erase_if(*edges, [&](uint32_t other) { return find(other) == group; });
  }

  std::vector<uint32_t> numbered() {
    std::vector<uint32_t> number(size_, kNoRegion), region(size_, kNoRegion);
    uint32_t count = 0;
    for (uint32_t u = 0; u < size_; ++u) {
      if (graph_.device[u] == kNoDevice) continue;
      uint32_t& of_group = number[find(u)];
      if (of_group == kNoRegion) of_group = count++;
      region[u] = of_group;
    }
    return region;
  }

  const UnitGraph& graph_;
  const uint32_t size_;
  std::vector<uint32_t> parent_;  // union-find: the group of each unit
  std::vector<std::vector<uint32_t>> preds_,
      succs_;  // of groups; find() gives the group that an entry is now
  std::vector<uint32_t> level_;
  std::vector<uint32_t> place_;  // of each group in a topological order
  std::vector<uint32_t> mark_;   // stamp_ of the last search that met the group
  uint32_t stamp_ = 0;
  uint64_t num_edges_ = 0, steps_ = 0;
};

}  // namespace

std::vector<uint32_t> merge_regions(const UnitGraph& graph) { return Regions(graph).run(); }

}  // namespace qplan::partition
