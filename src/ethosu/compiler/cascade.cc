#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "src/ethosu/compiler/region.h"

namespace qplan::ethosu::compiler {
namespace {

FeatureMap rows_of(FeatureMap map, RowRange rows, uint32_t memory_rows) {
  const uint64_t base = map.base[0];
  const uint32_t at = memory_rows == 0 ? rows.begin : rows.begin % memory_rows;
  map.h = rows.end - rows.begin;
  map.base[0] = base + at * map.stride_y;
  map.height0 = map.height1 = map.h;
  if (memory_rows != 0 && at + map.h > memory_rows) {
    // The rows after the end of the memory are at its beginning: the lower tile.
    map.height0 = map.height1 = memory_rows - at;
    map.base[2] = base;
  }
  return map;
}

// Steps in order. Each unit makes no more rows than the one after it needs next.
class Steps {
 public:
  Steps(const Cascade& cascade, const std::vector<Kernel>& kernels)
      : cascade_(cascade), kernels_(kernels), made_(kernels.size()), needed_(kernels.size()) {}

  std::vector<CascadeStep> run() {
    const uint32_t height = kernels_.back().ofm.h;
    for (uint32_t end = 0; end < height;) {
      end = std::min(height, end + cascade_.rows);
      make(kernels_.size() - 1, end);
    }
    return std::move(steps_);
  }
  // Rows of the output of unit `index` that are in use at a time.
  uint32_t needed(size_t index) const { return needed_[index]; }

 private:
  void make(size_t index, uint32_t end) {
    while (made_[index] < end) {
      RowRange output = {made_[index], end};
      if (index < cascade_.buffer_rows.size()) {
        // Not beyond the end of its memory.
        const uint32_t rows = cascade_.buffer_rows[index];
        output.end = std::min(end, (output.begin / rows + 1) * rows);
      }
      if (index > 0) {
        const RowRange input = input_rows(kernels_[index], output);
        make(index - 1, input.end);
        needed_[index - 1] = std::max(needed_[index - 1], made_[index - 1] - input.begin);
      }
      steps_.push_back({index, output});
      made_[index] = output.end;
    }
  }

  const Cascade& cascade_;
  const std::vector<Kernel>& kernels_;
  std::vector<uint32_t> made_, needed_;
  std::vector<CascadeStep> steps_;
};

// Whether each row of the output reads a row of the input. Else rows at the top or at the bottom lie in the
// padding alone: no kernel has an input without rows.
bool reads_in_each_row(const Kernel& k) {
  if (k.kind == KernelKind::kElementwise) return true;
  const uint64_t last = uint64_t{k.ofm.h - 1} * k.stride_y;  // of the window, from the top of the padding
  return k.pad_top < k.window_h && last < uint64_t{k.pad_top} + k.ifm.h;
}

constexpr size_t kMostUnits = 12;
constexpr uint32_t kLeastHeight = 4;
constexpr uint32_t kRowsAtATime[] = {1, 2, 4, 8, 16};

class Chooser {
 public:
  Chooser(const Config& config, uint64_t bytes, RegionPlan* plan)
      : bytes_(bytes),
        plan_(*plan),
        kernels_(plan->units.size()),
        is_linked_(plan->units.size()),
        is_taken_(plan->units.size()) {
    const size_t units = plan_.units.size();
    for (size_t u = 0; u < units; ++u) {
      kernels_[u] = kernel_of(config, plan_.units[u]);
      last_node_ = std::max(last_node_, plan_.units[u].node);
    }
    for (size_t u = 0; u + 1 < units; ++u)
      is_linked_[u] = kernels_[u] && kernels_[u + 1] && is_between(u, u + 1);
    for (const RegionValue& value : plan_.values) {
      roots_.push_back(value.whole);
      lifetimes_.push_back({value.first, value.last, value.buffer_rows, value.storage_bytes()});
    }
    for (size_t& root : roots_) {
      while (plan_.values[root].whole != root) root = plan_.values[root].whole;
    }
  }

  // At each turn the cascade that helps most; then without those that turned out to be needless, and with as
  // many rows at a time as there is room for.
  std::vector<Cascade> run() {
    const std::vector<Lifetime> whole = lifetimes_;
    uint64_t excess = needs_of(whole).excess;
    while (excess > 0) {
      std::optional<Choice> best;
      for (size_t first = 0; first < plan_.units.size(); ++first) {
        for (size_t last = first + 1; is_chain(first, last); ++last) {
          for (const uint32_t rows : kRowsAtATime) try_cascade(first, last, rows, &best);
        }
      }
      if (!best || best->excess >= excess) break;
      excess = best->excess;
      take(*best);
    }
    const uint64_t most = std::max(bytes_, needs_of(lifetimes_).most);
    const auto fits = [&](const std::vector<Cascade>& cascades) {
      lifetimes_ = whole;
      for (const Cascade& cascade : cascades) extend(cascade, &lifetimes_);
      return needs_of(lifetimes_).most <= most;
    };
    for (size_t c = cascades_.size(); c-- > 0;) {
      std::vector<Cascade> fewer = cascades_;
      fewer.erase(fewer.begin() + static_cast<int64_t>(c));
      if (fits(fewer)) cascades_ = std::move(fewer);
    }
    for (size_t c = 0; c < cascades_.size(); ++c) {
      for (const uint32_t rows : kRowsAtATime) {
        const Cascade& now = cascades_[c];
        if (rows <= now.rows || rows >= kernels_[now.last]->ofm.h) continue;
        std::vector<Cascade> wider = cascades_;
        wider[c] = made_cascade(now.first, now.last, rows).cascade;
        if (fits(wider)) cascades_ = std::move(wider);
      }
    }
    (void)fits(cascades_);
    for (size_t v = 0; v < lifetimes_.size(); ++v) {
      plan_.values[v].first = lifetimes_[v].first, plan_.values[v].last = lifetimes_[v].last;
      plan_.values[v].buffer_rows = lifetimes_[v].buffer_rows;
    }
    std::ranges::sort(cascades_, {}, &Cascade::first);
    return std::move(cascades_);
  }

 private:
  struct Made {
    Cascade cascade;
    size_t steps = 0;
  };
  struct Choice {
    const Made* made = nullptr;
    uint64_t excess = 0;
  };
  // When a value exists, in steps, and what it takes with the cascades that are chosen.
  struct Lifetime {
    uint32_t first = 0, last = 0, buffer_rows = 0;
    uint64_t bytes = 0;
  };

  // The kernel of a unit that may be computed in rows: one kernel, whose result does not depend on what the
  // rest of the map is.
  std::optional<Kernel> kernel_of(const Config& config, const RegionUnit& unit) const {
    if (!unit.unit.emit || unit.unit.parts != Unit::Parts::kNone || unit.unit.needs_whole_maps)
      return std::nullopt;
    const auto [inputs, outputs, scratch] = maps_of(plan_, anywhere(plan_), unit);
    ConstantData constants;
    std::vector<Operation> operations;
    StreamWriter stream(config, &operations);
    try {
      unit.unit.emit({config, inputs, outputs, constants, stream, true, 0, scratch});
    } catch (const PackError& error) {
      if (error.status() != QPLAN_MODEL_UNSUPPORTED) throw;
      return std::nullopt;  // the compiler says so when it comes to the unit
    }
    // A table is a transfer of its own.
    if (operations.size() != 1) return std::nullopt;
    const Kernel& k = std::get<Kernel>(operations[0]);
    // Averages with padding are told by their padding, which the rows in the middle have not.
    const bool is_padded_average =
        k.kind == KernelKind::kPool && k.pool == PoolMode::kAverage && !k.has_scale;
    if (k.upscale != Upscale::kNone || is_padded_average || k.ofm.h < kLeastHeight ||
        k.ofm.h != outputs[0].h || !reads_in_each_row(k))
      return std::nullopt;
    return k;
  }

  // Whether the value is between two units alone.
  bool is_between(size_t writer, size_t reader) const {
    const RegionUnit &from = plan_.units[writer], &to = plan_.units[reader];
    if (from.outputs.size() != 1) return false;
    const size_t v = from.outputs[0];
    const RegionValue& value = plan_.values[v];
    if (value.is_border() || value.whole != v || std::ranges::count(to.inputs, v) != 1) return false;
    for (size_t other = 0; other < plan_.values.size(); ++other) {
      if (other != v && plan_.values[other].whole == v) return false;
    }
    const auto readers = std::ranges::count_if(
        plan_.units, [&](const RegionUnit& u) { return std::ranges::count(u.inputs, v) > 0; });
    // Rows that all output rows read are no rows.
    const bool is_repeated = kernels_[reader]->broadcast_h && value_height(v) < kernels_[reader]->ofm.h;
    return readers == 1 && !is_repeated;
  }
  uint32_t value_height(size_t v) const { return static_cast<uint32_t>(image_of(plan_.values[v].type)->h); }

  // Given that [first, last - 1] is one, or a single unit.
  bool is_chain(size_t first, size_t last) const {
    return last < plan_.units.size() && last - first < kMostUnits && is_linked_[last - 1] &&
           !is_taken_[last - 1] && !is_taken_[last];
  }

  // To lifetimes and rows as the cascade has them.
  void extend(const Cascade& cascade, std::vector<Lifetime>* lifetimes) const {
    const uint32_t begin = plan_.units[cascade.first].node, end = plan_.units[cascade.last].node;
    for (size_t u = cascade.first; u <= cascade.last; ++u) {
      for (const size_t v : plan_.units[u].inputs) {
        // An input from outside is read until the end.
        Lifetime& input = (*lifetimes)[roots_[v]];
        input.last = std::max(input.last, end);
      }
      const size_t v = plan_.units[u].outputs[0];
      Lifetime& output = (*lifetimes)[roots_[v]];
      output.first = std::min(output.first, begin), output.last = std::max(output.last, end);
      if (u == cascade.last) continue;
      Lifetime& between = (*lifetimes)[v];
      between.buffer_rows = cascade.buffer_rows[u - cascade.first];
      between.bytes = plan_.values[v].bytes() / value_height(v) * between.buffer_rows;
    }
  }

  // Bytes in use while a unit runs: the most, and what is above the limit, summed over the units.
  struct Needs {
    uint64_t most = 0, excess = 0;
  };
  Needs needs_of(const std::vector<Lifetime>& lifetimes) const {
    changes_.assign(size_t{last_node_} + 2, 0);
    for (size_t v = 0; v < lifetimes.size(); ++v) {
      const RegionValue& value = plan_.values[v];
      if (value.whole != v) continue;
      const Lifetime all = {0, last_node_, 0, lifetimes[v].bytes};
      const Lifetime& live = value.is_border() ? all : lifetimes[v];
      if (live.first > live.last || live.first > last_node_) continue;
      changes_[live.first] += live.bytes;
      changes_[size_t{std::min(live.last, last_node_)} + 1] -= live.bytes;  // modulo 2^64
    }
    for (size_t n = 1; n < changes_.size(); ++n) changes_[n] += changes_[n - 1];
    Needs needs;
    for (const RegionUnit& unit : plan_.units) {
      const uint64_t live = changes_[unit.node];
      needs.most = std::max(needs.most, live);
      needs.excess += live > bytes_ ? live - bytes_ : 0;
    }
    return needs;
  }

  std::vector<Kernel> kernels_of(size_t first, size_t last) const {
    std::vector<Kernel> kernels;
    for (size_t u = first; u <= last; ++u) kernels.push_back(*kernels_[u]);
    return kernels;
  }

  // Each is made once.
  const Made& made_cascade(size_t first, size_t last, uint32_t rows) {
    const auto [at, is_new] = made_.try_emplace({first, last, rows});
    Made& made = at->second;
    if (!is_new) return made;
    made.cascade.first = first, made.cascade.last = last, made.cascade.rows = rows;
    const std::vector<Kernel> kernels = kernels_of(first, last);
    Steps steps(made.cascade, kernels);
    (void)steps.run();
    std::vector<uint32_t> buffer_rows;
    for (size_t i = 0; i + 1 < kernels.size(); ++i) buffer_rows.push_back(steps.needed(i));
    made.cascade.buffer_rows = std::move(buffer_rows);
    made.steps = cascade_steps(made.cascade, kernels).size();
    return made;
  }

  void try_cascade(size_t first, size_t last, uint32_t rows, std::optional<Choice>* best) {
    if (kernels_[last]->ofm.h <= rows) return;
    const Made& made = made_cascade(first, last, rows);
    tried_ = lifetimes_;
    extend(made.cascade, &tried_);
    const uint64_t excess = needs_of(tried_).excess;
    if (*best && std::tie((*best)->excess, (*best)->made->steps) <= std::tie(excess, made.steps)) return;
    *best = Choice{&made, excess};
  }

  void take(const Choice& choice) {
    const Cascade& cascade = choice.made->cascade;
    extend(cascade, &lifetimes_);
    for (size_t u = cascade.first; u <= cascade.last; ++u) is_taken_[u] = true;
    cascades_.push_back(cascade);
  }

  const uint64_t bytes_;
  RegionPlan& plan_;
  std::vector<std::optional<Kernel>> kernels_;  // of units that may be in a cascade
  std::vector<bool> is_linked_;                 // the value between the unit and the next is theirs alone
  std::vector<bool> is_taken_;
  std::vector<size_t> roots_;  // of each value: the value whose bytes it is in
  std::vector<Lifetime> lifetimes_, tried_;
  mutable std::vector<uint64_t> changes_;  // of needs_of
  std::map<std::tuple<size_t, size_t, uint32_t>, Made> made_;
  uint32_t last_node_ = 0;
  std::vector<Cascade> cascades_;
};

}  // namespace

RowRange input_rows(const Kernel& k, RowRange output) {
  if (k.kind == KernelKind::kElementwise) return output;
  const int64_t begin = int64_t{output.begin} * k.stride_y - k.pad_top;
  const int64_t end = int64_t{output.end - 1} * k.stride_y - k.pad_top + k.window_h;
  if (end <= 0 || begin >= int64_t{k.ifm.h} || begin >= end)
    throw PackError(QPLAN_INTERNAL, "ethosu: rows of a cascade read nothing but padding");
  return {static_cast<uint32_t>(std::max<int64_t>(0, begin)),
          static_cast<uint32_t>(std::min<int64_t>(end, k.ifm.h))};
}

Kernel kernel_of_rows(const Kernel& kernel, RowRange output, uint32_t ifm_rows, uint32_t ifm2_rows,
                      uint32_t ofm_rows) {
  Kernel k = kernel;
  const RowRange input = input_rows(kernel, output);
  k.ofm = rows_of(kernel.ofm, output, ofm_rows);
  k.ifm = rows_of(kernel.ifm, input, ifm_rows);
  if (kernel.has_ifm2 && !kernel.broadcast_h) k.ifm2 = rows_of(kernel.ifm2, output, ifm2_rows);
  if (kernel.kind == KernelKind::kElementwise) return k;
  const int64_t top = int64_t{kernel.pad_top} - int64_t{output.begin} * kernel.stride_y;
  k.pad_top = static_cast<uint32_t>(std::max<int64_t>(0, top));
  k.pad_bottom = (k.ofm.h - 1) * k.stride_y + k.window_h - k.pad_top - k.ifm.h;
  return k;
}

std::vector<CascadeStep> cascade_steps(const Cascade& cascade, const std::vector<Kernel>& kernels) {
  return Steps(cascade, kernels).run();
}

std::vector<Cascade> choose_cascades(const Config& config, uint64_t bytes, RegionPlan* plan) {
  return Chooser(config, bytes, plan).run();
}

}  // namespace qplan::ethosu::compiler
