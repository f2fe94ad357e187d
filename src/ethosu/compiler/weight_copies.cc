#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "src/ethosu/compiler/region.h"

namespace qplan::ethosu::compiler {
namespace {

// How far before its kernel a transfer may start, in operations, and how far where a copy is of slices. What
// is found with fewer choices is often better, as choices are made one by one.
struct Reach {
  std::span<const size_t> ahead;
  size_t of_slices;
};
constexpr size_t kAhead[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr size_t kFineAhead[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32};
constexpr Reach kReaches[] = {{kAhead, 4}, {kFineAhead, 6}};
constexpr int kPasses = 8;
// Operations that all estimates together look at: networks with very many layers are looked at once.
constexpr uint64_t kMostVisits = 20'000'000;

class CopyChooser {
 public:
  CopyChooser(const Config& config, const RegionPlan& plan, const Placement& placement,
              const std::vector<PlannedOperation>& operations, uint64_t scratch_bytes)
      : config_(config),
        memories_(default_memories(config)),
        plan_(plan),
        placement_(placement),
        operations_(operations),
        scratch_bytes_(scratch_bytes) {
    for (size_t i = 0; i < operations.size(); ++i) {
      const PlannedOperation& planned = operations[i];
      in_place_.push_back(
          std::visit([&](const auto& o) { return operation_cost(config, memories_, o); }, planned.operation));
      fast_.push_back(in_place_.back());
      if (planned.convolution() == nullptr) continue;
      fast_.back() =
          operation_cost(config, memories_, with_weights_at(planned.fast_kernel(), Placement::kScratch, 0));
      for (const std::vector<Kernel>& slicing : planned.slicings) {
        std::vector<OperationCost>& costs = slices_[i].emplace_back();
        for (const Kernel& kernel : slicing)
          costs.push_back(operation_cost(config, memories_, with_weights_at(kernel, Placement::kScratch, 0)));
      }
      Use& use = uses_[planned.unit];
      if (use.bytes == 0) use.first = i, use.bytes = weight_bytes(planned.fast_kernel());
      use.last_node = std::max(use.last_node, planned.last_node);
      const uint64_t slow = in_place_.back().cycles(), fast = fast_.back().cycles();
      use.saved += slow > fast ? slow - fast : 0;
    }
  }

  // From no copies at all, with units in different orders, of which the best result counts: the stream's, the
  // opposite one, and by what fast weights save. Then from that result.
  std::vector<WeightCopy> run() {
    std::vector<size_t> in_stream;
    for (const auto& [unit, use] : uses_) {
      // The others gain nothing from faster weights.
      if (use.saved > 0) in_stream.push_back(unit);
    }
    std::vector<size_t> by_gain = in_stream;
    std::ranges::stable_sort(by_gain, std::greater(), [&](size_t unit) { return uses_.at(unit).saved; });
    std::vector<WeightCopy> best;
    uint64_t least = UINT64_MAX;
    const auto try_from = [&](std::vector<WeightCopy> copies, const std::vector<size_t>& units,
                              const Reach& reach) {
      const uint64_t cycles = improve(units, reach, &copies);
      if (cycles < least) least = cycles, best = std::move(copies);
    };
    for (const Reach& reach : kReaches) {
      for (std::vector<size_t> units : {in_stream, by_gain}) {
        try_from({}, units, reach);
        std::ranges::reverse(units);
        try_from({}, units, reach);
      }
    }
    try_from(best, in_stream, kReaches[1]);
    return best;
  }

 private:
  // One unit after the other: the choice that is best with those of the others. Returns the cycles.
  uint64_t improve(const std::vector<size_t>& units, const Reach& reach,
                   std::vector<WeightCopy>* copies) const {
    uint64_t least = cycles_with(*copies);
    for (int pass = 0; pass < kPasses; ++pass) {
      bool is_better = false;
      for (const size_t unit : units) {
        const Use& use = uses_.at(unit);
        std::vector<WeightCopy> others = *copies;
        std::erase_if(others, [&](const WeightCopy& copy) { return copy.unit == unit; });
        std::vector<std::vector<WeightCopy>> choices = {others};
        for (const size_t ahead : reach.ahead) {
          if (ahead > use.first + 1) break;
          for (const size_t free : {ahead, ahead + 1})
            add_choice(unit, kWhole, ahead, free, others, &choices);
          for (size_t s = 0; ahead <= reach.of_slices && s < operations_[use.first].slicings.size(); ++s)
            add_choice(unit, s, ahead, ahead + 1, others, &choices);
        }
        for (std::vector<WeightCopy>& choice : choices) {
          const uint64_t cycles = cycles_with(choice);
          if (cycles >= least) continue;
          least = cycles, *copies = std::move(choice), is_better = true;
        }
      }
      if (!is_better || visits_ > kMostVisits) break;
    }
    return least;
  }

  // The operations that read the weights of a unit.
  struct Use {
    size_t first = 0;
    uint64_t bytes = 0;
    uint32_t last_node = 0;
    uint64_t saved = 0;  // cycles, if the weights were in fast memory
  };

  // A transfer that starts `ahead` operations before the kernel. Its bytes are not those of values that
  // `free` operations before the kernel are in use: beyond `ahead`, the transfer needs no wait for the
  // kernel that runs then.
  void add_choice(size_t unit, size_t slicing, size_t ahead, size_t free,
                  const std::vector<WeightCopy>& others,
                  std::vector<std::vector<WeightCopy>>* choices) const {
    const Use& use = uses_.at(unit);
    if (visits_ > kMostVisits) return;
    WeightCopy copy;
    copy.unit = unit;
    copy.slicing = slicing;
    copy.bytes = use.bytes;
    if (slicing != kWhole) {
      uint64_t most = 0;
      for (const Kernel& kernel : operations_[use.first].slicings[slicing])
        most = std::max(most, weight_bytes(kernel));
      copy.bytes = 2 * most;
    }
    copy.after = use.first - ahead;  // kBeforeAll is -1
    copy.first_node = operations_[use.first].first_node, copy.last_node = use.last_node;
    for (size_t i = use.first - std::min(free, use.first); i < use.first; ++i)
      copy.first_node = std::min(copy.first_node, operations_[i].first_node);
    copy.offset = first_gap(taken(copy, others), copy.bytes);
    if (copy.offset + copy.bytes > scratch_bytes_) return;
    std::vector<WeightCopy> choice = others;
    const auto at = std::ranges::upper_bound(choice, copy.after + 1, {},
                                             [](const WeightCopy& other) { return other.after + 1; });
    choice.insert(at, copy);
    choices->push_back(std::move(choice));
  }

  // Scratch memory that is in use while the copy is there.
  std::vector<std::pair<uint64_t, uint64_t>> taken(const WeightCopy& copy,
                                                   const std::vector<WeightCopy>& others) const {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (size_t v = 0; v < plan_.values.size(); ++v) {
      const RegionValue& value = plan_.values[v];
      if (value.whole != v || placement_.places[v].region != Placement::kScratch) continue;
      const uint32_t first = value.param ? 0 : value.first, last = value.output ? UINT32_MAX : value.last;
      const uint64_t begin = placement_.places[v].offset;
      if (first <= copy.last_node && copy.first_node <= last)
        ranges.emplace_back(begin, begin + value.storage_bytes());
    }
    for (const WeightCopy& other : others) {
      if (other.first_node <= copy.last_node && copy.first_node <= other.last_node)
        ranges.emplace_back(other.offset, other.offset + other.bytes);
    }
    return ranges;
  }

  const PlannedOperation& planned_of(const WeightCopy& copy) const {
    return operations_[uses_.at(copy.unit).first];
  }

  // What the stream would take.
  uint64_t cycles_with(const std::vector<WeightCopy>& copies) const {
    TimeLine time(config_);
    Unfinished unfinished(config_);
    const auto start_transfer = [&](const Transfer& transfer, const OperationCost& cost) {
      const Access access = access_of(config_, transfer);
      const uint32_t kernels = transfer.to_shram ? 0 : unfinished.kernels_beside(access);
      if (kernels < unfinished.kernels()) time.wait_kernels(kernels), unfinished.wait_kernels(kernels);
      time.start_transfer(cost);
      unfinished.start_transfer(access);
      if (transfer.to_shram) time.wait_transfers(0), unfinished.wait_transfers(0);
    };
    visit_stream(
        operations_, copies,
        [&](const WeightCopy& copy, size_t slice) {
          const uint64_t bytes = weight_bytes(sliced_kernel(planned_of(copy), copy, slice));
          const Transfer transfer = {{ConstantData::kRegion, 0, bytes},
                                     false,
                                     {Placement::kScratch, copy.slice_offset(slice), bytes}};
          start_transfer(transfer, operation_cost(config_, memories_, transfer));
        },
        [&](size_t i, const WeightCopy* copy, size_t slice) {
          const PlannedOperation& planned = operations_[i];
          if (const auto* const transfer = std::get_if<Transfer>(&planned.operation))
            return start_transfer(*transfer, in_place_[i]);
          const Access access =
              copy == nullptr
                  ? access_of(config_, std::get<Kernel>(planned.operation))
                  : access_of(config_, with_weights_at(sliced_kernel(planned, *copy, slice),
                                                       Placement::kScratch, copy->slice_offset(slice)));
          const uint32_t transfers = unfinished.transfers_beside(access);
          if (transfers < unfinished.transfers())
            time.wait_transfers(transfers), unfinished.wait_transfers(transfers);
          const bool is_sliced = copy != nullptr && copy->slicing != kWhole;
          time.start_kernel(is_sliced         ? slices_.at(i)[copy->slicing][slice]
                            : copy != nullptr ? fast_[i]
                                              : in_place_[i]);
          unfinished.start_kernel(access);
        });
    visits_ += operations_.size();
    return time.cycles();
  }

  const Config& config_;
  const Memories memories_;
  const RegionPlan& plan_;
  const Placement& placement_;
  const std::vector<PlannedOperation>& operations_;
  const uint64_t scratch_bytes_;
  std::vector<OperationCost> in_place_, fast_;                        // of each operation
  std::map<size_t, std::vector<std::vector<OperationCost>>> slices_;  // of operations with slicings
  std::map<size_t, Use> uses_;                                        // by unit
  mutable uint64_t visits_ = 0;
};

}  // namespace

const Kernel& sliced_kernel(const PlannedOperation& planned, const WeightCopy& copy, size_t slice) {
  return copy.slicing == kWhole ? planned.fast_kernel() : planned.slicings[copy.slicing][slice];
}

uint64_t weight_bytes(const Kernel& kernel) {
  uint64_t bytes = 0;
  for (uint32_t core = 0; core < kernel.cores; ++core)
    bytes += kernel.weights[core].bytes + kernel.scales[core].bytes;
  return bytes;
}

Kernel with_weights_at(Kernel kernel, uint32_t region, uint64_t offset) {
  for (uint32_t core = 0; core < kernel.cores; ++core) {
    for (ByteRange* const range : {&kernel.weights[core], &kernel.scales[core]}) {
      range->region = region, range->begin = offset;
      offset += range->bytes;
    }
  }
  return kernel;
}

std::vector<WeightCopy> choose_weight_copies(const Config& config, const RegionPlan& plan,
                                             const Placement& placement,
                                             const std::vector<PlannedOperation>& operations,
                                             uint64_t scratch_bytes) {
  return CopyChooser(config, plan, placement, operations, scratch_bytes).run();
}

}  // namespace qplan::ethosu::compiler
