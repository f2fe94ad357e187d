#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "format/memory_layout.h"
#include "src/base/checked.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/arena.h"
#include "src/packer/schedule/fuse.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"

namespace qplan::schedule {
namespace {

using target::Program;
using target::TargetProfile;

class CascadeSearch {
 public:
  // thrifty: what little memory a cascade saves is worth it, and cascades make one row at a time.
  CascadeSearch(const Program& program, const TargetProfile& profile, bool thrifty)
      : program_(program),
        thrifty_(thrifty),
        isa_(*std::ranges::max_element(profile.asked_isas)),
        min_saved_bytes_(profile.min_fused_bytes),
        target_(target_text(profile)),
        queries_(program),
        next_(cascade_links(program, queries_)) {}

  bool has_links() const {
    return std::ranges::any_of(next_, [](uint32_t next) { return next != kNoStep; });
  }

  // From the beginning of each path, as long as they may be. The conversion of an input is in none where the
  // path is too long for one cascade: the layers are then those of the same network without it.
  void take_all() {
    const std::vector<bool> is_linked = linked_steps(next_);
    for (uint32_t s = 0; s < next_.size(); ++s) {
      if (is_linked[s] || next_[s] == kNoStep) continue;
      constexpr size_t kMost = format::kMaxCascadeLayers;
      const bool is_apart = is_conversion(s) && steps_from(next_, s, kMost + 1).size() > kMost;
      for (uint32_t at = is_apart ? next_[s] : s; at != kNoStep;) {
        const CascadeSteps cascade = steps_from(next_, at, kMost);
        at = next_[cascade.back()];
        if (cascade.size() > 1) cascades_.push_back(cascade);
      }
    }
  }

  // Greedy: at the step with peak memory, add the cascade that lowers the peak most; repeat until none helps:
  // with a view to tensors and tiles together, then to tensors alone, and with cascades of any length, then
  // of shorter ones, which all find other cascades. Of all that come up those are taken that need the least
  // memory, without cascades that turned out to save next to nothing.
  void take_for_memory() {
    const Memory before = memory_of({});
    Memory least = before;
    for (size_t max_length = format::kMaxCascadeLayers; max_length > 2; --max_length) {
      for (const bool count_tiles : {true, false}) {
        std::vector<CascadeSteps> cascades;
        Memory now = before;
        for (uint32_t round = 0; round < kMaxRounds; ++round) {
          if (!lower_peak(count_tiles, max_length, &cascades, &now)) break;
          if (now.bytes() >= least.bytes()) continue;
          least = now;
          cascades_ = cascades;
        }
      }
    }
    const uint64_t worth = std::max(before.bytes() / kWorthwhile, min_saved_bytes_);
    if (!thrifty_ && before.bytes() - least.bytes() < worth) cascades_.clear();
    const uint64_t enough = least.bytes() + (thrifty_ ? 0 : least.bytes() / kWorthwhile);
    for (size_t i = cascades_.size(); i-- > 0 && work_ <= kMaxWork;) {
      std::vector<CascadeSteps> fewer = cascades_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (memory_of(fewer).bytes() <= enough) cascades_ = std::move(fewer);
    }
  }

  void take_for_time(const TuningLog& tuning) {
    if (!tuning.has_keys_of(inspect::kernel_name(kKernel_chain) + " {")) return;
    cascades_ = with_times(next_, std::move(cascades_),
                           [&](const CascadeSteps& cascade) { return times_of(cascade, tuning); });
  }

  const std::vector<CascadeSteps>& cascades() const { return cascades_; }
  // Whether the search ended with its budget, not with its candidates.
  bool gave_up() const { return gave_up_; }

 private:
  static constexpr uint32_t kMaxRounds = 256;
  // Steps that are looked at while cascades are sought, over all that are tried: about half a second.
  static constexpr uint64_t kMaxWork = 1'000'000;
  // Cascades are worth it that save one part in so many of the memory.
  static constexpr uint64_t kWorthwhile = 50;

  struct Memory {
    uint64_t tensors = 0;    // bytes of those of the fullest step
    uint32_t peak_step = 0;  // of the program; of a cascade its last
    uint32_t num_peaks = 0;  // steps that are as full
    uint64_t tiles = 0;      // bytes of those of the cascade with the most

    uint64_t bytes() const { return tensors + tiles; }
    // What a round makes less of, the first first.
    auto key(bool count_tiles) const {
      return std::tuple(count_tiles ? bytes() : tensors, num_peaks, count_tiles ? 0 : tiles);
    }
  };

  // False: no cascade does.
  bool lower_peak(bool count_tiles, size_t max_length, std::vector<CascadeSteps>* cascades,
                  Memory* now) const {
    std::vector<CascadeSteps> best;
    Memory least = *now;
    for (const CascadeSteps& candidate : candidates_at(now->peak_step, max_length)) {
      if (work_ > kMaxWork) {
        gave_up_ = true;
        return false;
      }
      std::vector<CascadeSteps> tried = without_overlaps(*cascades, candidate);
      tried.push_back(candidate);
      const Memory memory = memory_of(tried);
      if (memory.key(count_tiles) >= least.key(count_tiles)) continue;
      least = memory;
      best = std::move(tried);
    }
    if (best.empty()) return false;
    *cascades = std::move(best);
    *now = least;
    return true;
  }

  // The time of a step with a residual may also come from those of its two layers.
  std::optional<uint64_t> time_of(uint32_t step, const TuningLog& tuning) const {
    const std::optional<uint64_t> whole = tuning.shortest_ns(step_key(queries_.planned(step), target_));
    if (whole || !program_.steps[step].residual) return whole;
    const Program apart = residual_apart(program_, step);
    const StepQueries queries(apart);
    const std::optional<uint64_t> layer = tuning.shortest_ns(step_key(queries.planned(0), target_));
    const std::optional<uint64_t> sum = tuning.shortest_ns(step_key(queries.planned(1), target_));
    if (!layer || !sum) return std::nullopt;
    return *layer + *sum;
  }

  // nullopt where the log lacks one of them.
  std::optional<CascadeTimes> times_of(const CascadeSteps& cascade, const TuningLog& tuning) const {
    CascadeTimes times;
    for (const uint32_t step : cascade) {
      const std::optional<uint64_t> ns = time_of(step, tuning);
      if (!ns) return std::nullopt;
      times.layers += *ns;
    }
    const Program alone = cascade_alone(program_, cascade);
    const StepQueries queries(alone);
    const std::optional<uint64_t> ns = tuning.shortest_ns(step_key(queries.planned(0), target_));
    if (!ns) return std::nullopt;
    times.cascade = *ns;
    return times;
  }

  // Those that a step lies in, or between whose steps it lies, short ones first. The conversion of an input
  // does not count as one of the layers that may be max_length: a network is in the same cascades without it.
  std::vector<CascadeSteps> candidates_at(uint32_t peak, size_t max_length) const {
    work_ += peak;
    std::vector<CascadeSteps> candidates;
    for (size_t length = 2; length <= format::kMaxCascadeLayers; ++length) {
      for (uint32_t s = 0; s <= peak; ++s) {
        if (next_[s] == kNoStep || length > max_length + (is_conversion(s) ? 1 : 0)) continue;
        CascadeSteps steps = steps_from(next_, s, length);
        if (steps.size() == length && steps.back() >= peak) candidates.push_back(std::move(steps));
      }
    }
    return candidates;
  }

  bool is_conversion(uint32_t step) const {
    const uint16_t kernel = program_.steps[step].kernel;
    return kernel == kKernel_quantize || kernel == kKernel_transpose;
  }

  static std::vector<CascadeSteps> without_overlaps(std::vector<CascadeSteps> cascades,
                                                    const CascadeSteps& steps) {
    std::erase_if(cascades, [&](const CascadeSteps& cascade) {
      return std::ranges::any_of(cascade,
                                 [&](uint32_t s) { return std::ranges::find(steps, s) != steps.end(); });
    });
    return cascades;
  }

  Memory memory_of(const std::vector<CascadeSteps>& cascades) const {
    work_ += program_.steps.size();
    std::vector<uint32_t> step_of;
    const Program fused = with_cascades(program_, cascades, &step_of);
    const memory::Lifetimes lifetimes = memory::find_lifetimes(
        fused, memory::find_device_tensors(fused),
        [&](uint32_t step, uint32_t output, uint32_t input) {
          // Most cascades on small devices may; the memory plan asks their kernel.
          if (!fused.steps[step].layers.empty()) return program_.is_small;
          return queries_.may_be_in_place(step_of[step], output, input);
        },
        [&](uint32_t step, uint32_t output, uint32_t input) {
          if (!fused.steps[step].layers.empty()) return program_.is_small;
          return queries_.may_overwrite(step_of[step], output, input);
        });
    std::vector<uint64_t> begins(fused.steps.size() + 1, 0), ends(fused.steps.size() + 1, 0);
    for (const memory::Buffer& buffer : lifetimes.buffers) {
      const uint64_t size = round_up(buffer.size, format::kArenaAlignment);
      begins[buffer.first] += size;
      ends[buffer.last + 1] += size;
    }
    // On small devices tiles are in the arena, while their step runs.
    std::vector<uint64_t> tiles(fused.steps.size(), 0);
    for (const CascadeSteps& cascade : cascades) {
      if (!program_.is_small) break;
      const auto step = std::ranges::find(step_of, cascade.back());
      tiles[static_cast<size_t>(step - step_of.begin())] = tile_bytes(cascade);
    }
    Memory memory;
    uint64_t live = 0, most = 0;
    for (uint32_t s = 0; s < fused.steps.size(); ++s) {
      live = live + begins[s] - ends[s];
      most = std::max(most, live + tiles[s]);
      if (live == memory.tensors) ++memory.num_peaks;
      if (live <= memory.tensors) continue;
      memory = {.tensors = live, .peak_step = step_of[s], .num_peaks = 1};
    }
    if (program_.is_small) {
      memory.tiles = most - memory.tensors;
      return memory;
    }
    for (const CascadeSteps& cascade : cascades) memory.tiles = std::max(memory.tiles, tile_bytes(cascade));
    return memory;
  }

  // As the cascade's kernel will count them (src/runtime/cascade.h).
  uint64_t tile_bytes(const CascadeSteps& cascade) const {
    const auto& shape = [&](uint32_t step) -> const std::vector<int64_t>& {
      return program_.tensors[program_.steps[step].outputs[0]].type.shape;
    };
    uint32_t rows =
        cascade_block_rows(static_cast<uint32_t>(shape(cascade.back())[1]),
                           static_cast<uint32_t>(shape(cascade.back())[2]), thrifty_ ? 1 : 0, isa_);
    uint64_t bytes = 0;
    for (size_t i = cascade.size() - 1; i > 0; --i) {
      const StepView view = queries_.view(cascade[i]);
      const KernelFamily& family = *kCascadeLayerFamilies.find(view.step->kernel());
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      (void)family.bind(view, false, args, &error);
      const target::TensorId tile = program_.steps[cascade[i - 1]].outputs[0];
      const auto input = static_cast<uint32_t>(std::ranges::find(program_.steps[cascade[i]].inputs, tile) -
                                               program_.steps[cascade[i]].inputs.begin());
      rows = cascade_input_rows(view.input(input), family, args, rows);
      if (i + 1 < cascade.size() && cascade_layer_is_in_place(view, family, args)) continue;
      const std::vector<int64_t>& tile_shape = program_.tensors[tile].type.shape;
      bytes += round_up(rows * static_cast<uint64_t>(tile_shape[2] * tile_shape[3]), uint64_t{64});
    }
    return bytes;
  }

  const Program& program_;
  const bool thrifty_;
  const uint32_t isa_;
  const uint64_t min_saved_bytes_;
  const std::string target_;
  const StepQueries queries_;
  const std::vector<uint32_t> next_;
  std::vector<CascadeSteps> cascades_;
  mutable uint64_t work_ = 0;
  mutable bool gave_up_ = false;
};

// Models without layers that could be layers cost nothing.
bool has_layers(const Program& program) {
  const auto is_layer = [](const target::ProgramStep& step) {
    return kCascadeLayerFamilies.find(step.kernel) != nullptr;
  };
  return std::ranges::count_if(program.steps, is_layer) > 1;
}

}  // namespace

Program fuse_cascades(const Program& unfused, const TargetProfile& profile, Fuse fuse,
                      const TuningLog* tuning, const LogFunction& log) {
  if (fuse == Fuse::kOff || !has_layers(unfused)) return unfused;
  const Program program = fold_residuals(unfused);
  CascadeSearch search(program, profile, fuse == Fuse::kMemory);
  if (!search.has_links()) return program;
  if (fuse == Fuse::kAll) {
    search.take_all();
  } else {
    search.take_for_memory();
    if (tuning != nullptr && fuse == Fuse::kAuto) search.take_for_time(*tuning);
  }
  if (log && search.gave_up()) {
    log(QPLAN_LOG_INFO, cat("fused: of ", program.steps.size(),
                            " layers not all cascades were tried; there may be some that save more memory"));
  }
  if (log && !search.cascades().empty()) {
    size_t num_steps = 0;
    for (const CascadeSteps& cascade : search.cascades()) num_steps += cascade.size();
    log(QPLAN_LOG_INFO, cat("fused: ", num_steps, " of ", program.steps.size(), " layers run in ",
                            search.cascades().size(), " cascades"));
  }
  return with_cascades(program, search.cascades(), nullptr);
}

}  // namespace qplan::schedule
