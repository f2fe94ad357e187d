#include "src/packer/schedule/chain_search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "format/memory_layout.h"
#include "src/base/checked.h"
#include "src/packer/inspect/plan_reader.h"
#include "src/packer/ir/cat.h"
#include "src/packer/memory/lifetimes.h"
#include "src/packer/schedule/chain_links.h"
#include "src/packer/schedule/chain_times.h"
#include "src/packer/schedule/fold_residuals.h"
#include "src/packer/schedule/step_key.h"
#include "src/packer/schedule/step_queries.h"
#include "src/runtime/bind/families.h"
#include "src/runtime/cascade.h"

namespace qplan::schedule {
namespace {

using target::Program;
using target::TargetProfile;

class ChainSearch {
 public:
  // thrifty: what little memory a chain saves is worth it, and chains make one row at a time.
  ChainSearch(const Program& program, const TargetProfile& profile, bool thrifty)
      : program_(program),
        thrifty_(thrifty),
        isa_(*std::ranges::max_element(profile.asked_isas)),
        min_saved_bytes_(profile.min_fused_bytes),
        target_(target_text(profile)),
        queries_(program),
        next_(chain_links(program, queries_)) {}

  bool has_links() const {
    return std::ranges::any_of(next_, [](uint32_t next) { return next != kNoStep; });
  }

  // From the beginning of each path, as long as they may be.
  void take_all() {
    const std::vector<bool> is_linked = linked_steps(next_);
    for (uint32_t s = 0; s < next_.size(); ++s) {
      if (is_linked[s] || next_[s] == kNoStep) continue;
      for (uint32_t at = s; at != kNoStep;) {
        const ChainSteps chain = steps_from(next_, at, format::kMaxChainStages);
        at = next_[chain.back()];
        if (chain.size() > 1) chains_.push_back(chain);
      }
    }
  }

  // Greedy: at the step with peak memory, add the cascade that lowers the peak most; repeat until none helps:
  // with a view to tensors and tiles together, then to tensors alone, and with chains of any length, then of
  // shorter ones, which all find other chains. Of all that come up those are taken that need the least
  // memory, without chains that turned out to save next to nothing.
  void take_for_memory() {
    const Memory before = memory_of({});
    Memory least = before;
    for (size_t max_length = format::kMaxChainStages; max_length > 2; --max_length) {
      for (const bool count_tiles : {true, false}) {
        std::vector<ChainSteps> chains;
        Memory now = before;
        for (uint32_t round = 0; round < kMaxRounds; ++round) {
          if (!lower_peak(count_tiles, max_length, &chains, &now)) break;
          if (now.bytes() >= least.bytes()) continue;
          least = now;
          chains_ = chains;
        }
      }
    }
    const uint64_t worth = std::max(before.bytes() / kWorthwhile, min_saved_bytes_);
    if (!thrifty_ && before.bytes() - least.bytes() < worth) chains_.clear();
    const uint64_t enough = least.bytes() + (thrifty_ ? 0 : least.bytes() / kWorthwhile);
    for (size_t i = chains_.size(); i-- > 0 && work_ <= kMaxWork;) {
      std::vector<ChainSteps> fewer = chains_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (memory_of(fewer).bytes() <= enough) chains_ = std::move(fewer);
    }
  }

  void take_for_time(const TuningLog& tuning) {
    if (!tuning.has_keys_of(inspect::kernel_name(kKernel_chain) + " {")) return;
    chains_ = with_times(next_, std::move(chains_),
                         [&](const ChainSteps& chain) { return times_of(chain, tuning); });
  }

  const std::vector<ChainSteps>& chains() const { return chains_; }
  // Whether the search ended with its budget, not with its candidates.
  bool gave_up() const { return gave_up_; }

 private:
  static constexpr uint32_t kMaxRounds = 256;
  // Steps that are looked at while chains are sought, over all that are tried: about half a second.
  static constexpr uint64_t kMaxWork = 1'000'000;
  // Chains are worth it that save one part in so many of the memory.
  static constexpr uint64_t kWorthwhile = 50;

  struct Memory {
    uint64_t tensors = 0;    // bytes of those of the fullest step
    uint32_t peak_step = 0;  // of the program; of a chain its last
    uint32_t num_peaks = 0;  // steps that are as full
    uint64_t tiles = 0;      // bytes of those of the chain with the most

    uint64_t bytes() const { return tensors + tiles; }
    // What a round makes less of, the first first.
    auto key(bool count_tiles) const {
      return std::tuple(count_tiles ? bytes() : tensors, num_peaks, count_tiles ? 0 : tiles);
    }
  };

  // False: no chain does.
  bool lower_peak(bool count_tiles, size_t max_length, std::vector<ChainSteps>* chains, Memory* now) const {
    std::vector<ChainSteps> best;
    Memory least = *now;
    for (const ChainSteps& candidate : candidates_at(now->peak_step, max_length)) {
      if (work_ > kMaxWork) {
        gave_up_ = true;
        return false;
      }
      std::vector<ChainSteps> tried = without_overlaps(*chains, candidate);
      tried.push_back(candidate);
      const Memory memory = memory_of(tried);
      if (memory.key(count_tiles) >= least.key(count_tiles)) continue;
      least = memory;
      best = std::move(tried);
    }
    if (best.empty()) return false;
    *chains = std::move(best);
    *now = least;
    return true;
  }

  // The time of a step with a residual may also come from those of its two layers.
  std::optional<uint64_t> time_of(uint32_t step, const TuningLog& tuning) const {
    const std::optional<uint64_t> whole = tuning.shortest_ns(step_key(queries_.view(step), target_));
    if (whole || !program_.steps[step].residual) return whole;
    const Program apart = residual_apart(program_, step);
    const StepQueries queries(apart);
    const std::optional<uint64_t> layer = tuning.shortest_ns(step_key(queries.view(0), target_));
    const std::optional<uint64_t> sum = tuning.shortest_ns(step_key(queries.view(1), target_));
    if (!layer || !sum) return std::nullopt;
    return *layer + *sum;
  }

  // nullopt where the log lacks one of them.
  std::optional<ChainTimes> times_of(const ChainSteps& chain, const TuningLog& tuning) const {
    ChainTimes times;
    for (const uint32_t step : chain) {
      const std::optional<uint64_t> ns = time_of(step, tuning);
      if (!ns) return std::nullopt;
      times.layers += *ns;
    }
    const Program alone = chain_alone(program_, chain);
    const StepQueries queries(alone);
    const std::optional<uint64_t> ns = tuning.shortest_ns(step_key(queries.view(0), target_));
    if (!ns) return std::nullopt;
    times.chain = *ns;
    return times;
  }

  // Those that a step lies in, or between whose steps it lies, short ones first.
  std::vector<ChainSteps> candidates_at(uint32_t peak, size_t max_length) const {
    work_ += peak;
    std::vector<ChainSteps> candidates;
    for (size_t length = 2; length <= max_length; ++length) {
      for (uint32_t s = 0; s <= peak; ++s) {
        if (next_[s] == kNoStep) continue;
        ChainSteps steps = steps_from(next_, s, length);
        if (steps.size() == length && steps.back() >= peak) candidates.push_back(std::move(steps));
      }
    }
    return candidates;
  }

  static std::vector<ChainSteps> without_overlaps(std::vector<ChainSteps> chains, const ChainSteps& steps) {
    std::erase_if(chains, [&](const ChainSteps& chain) {
      return std::ranges::any_of(chain,
                                 [&](uint32_t s) { return std::ranges::find(steps, s) != steps.end(); });
    });
    return chains;
  }

  Memory memory_of(const std::vector<ChainSteps>& chains) const {
    work_ += program_.steps.size();
    std::vector<uint32_t> step_of;
    const Program fused = with_chains(program_, chains, &step_of);
    const memory::Lifetimes lifetimes = memory::find_lifetimes(
        fused, memory::find_device_tensors(fused), [&](uint32_t step, uint32_t output, uint32_t input) {
          return fused.steps[step].stages.empty() && queries_.may_be_in_place(step_of[step], output, input);
        });
    std::vector<uint64_t> begins(fused.steps.size() + 1, 0), ends(fused.steps.size() + 1, 0);
    for (const memory::Buffer& buffer : lifetimes.buffers) {
      const uint64_t size = round_up(buffer.size, format::kArenaAlignment);
      begins[buffer.first] += size;
      ends[buffer.last + 1] += size;
    }
    Memory memory;
    uint64_t live = 0;
    for (uint32_t s = 0; s < fused.steps.size(); ++s) {
      live = live + begins[s] - ends[s];
      if (live == memory.tensors) ++memory.num_peaks;
      if (live <= memory.tensors) continue;
      memory = {.tensors = live, .peak_step = step_of[s], .num_peaks = 1};
    }
    for (const ChainSteps& chain : chains) memory.tiles = std::max(memory.tiles, tile_bytes(chain));
    return memory;
  }

  // As the chain's kernel will count them (src/runtime/cascade.h).
  uint64_t tile_bytes(const ChainSteps& chain) const {
    const auto& shape = [&](uint32_t step) -> const std::vector<int64_t>& {
      return program_.tensors[program_.steps[step].outputs[0]].type.shape;
    };
    uint32_t rows = cascade_block_rows(static_cast<uint32_t>(shape(chain.back())[1]),
                                       static_cast<uint32_t>(shape(chain.back())[2]), thrifty_ ? 1 : 0, isa_);
    uint64_t bytes = 0;
    for (size_t i = chain.size() - 1; i > 0; --i) {
      const StepView view = queries_.view(chain[i]);
      const KernelFamily& family = family_of(view.step->kernel());
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      (void)family.bind(view, false, args, &error);
      const target::TensorId tile = program_.steps[chain[i - 1]].outputs[0];
      const auto input = static_cast<uint32_t>(std::ranges::find(program_.steps[chain[i]].inputs, tile) -
                                               program_.steps[chain[i]].inputs.begin());
      rows = cascade_input_rows(view.input(input), family, args, rows);
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
  std::vector<ChainSteps> chains_;
  mutable uint64_t work_ = 0;
  mutable bool gave_up_ = false;
};

// Models without layers that could be stages cost nothing.
bool has_stages(const Program& program) {
  const auto is_stage = [](const target::ProgramStep& step) {
    return kCascadeLayerFamilies.find(step.kernel) != nullptr;
  };
  return std::ranges::count_if(program.steps, is_stage) > 1;
}

}  // namespace

Program fuse_chains(const Program& unfused, const TargetProfile& profile, Fuse fuse, const TuningLog* tuning,
                    const LogFunction& log) {
  if (fuse == Fuse::kOff || !has_stages(unfused)) return unfused;
  const Program program = fold_residuals(unfused);
  ChainSearch search(program, profile, fuse == Fuse::kMemory);
  if (!search.has_links()) return program;
  if (fuse == Fuse::kAll) {
    search.take_all();
  } else {
    search.take_for_memory();
    if (tuning != nullptr && fuse == Fuse::kAuto) search.take_for_time(*tuning);
  }
  if (log && search.gave_up()) {
    log(QPLAN_LOG_INFO, cat("fused: of ", program.steps.size(),
                            " layers not all chains were tried; there may be some that save more memory"));
  }
  if (log && !search.chains().empty()) {
    size_t num_steps = 0;
    for (const ChainSteps& chain : search.chains()) num_steps += chain.size();
    log(QPLAN_LOG_INFO, cat("fused: ", num_steps, " of ", program.steps.size(), " layers run in ",
                            search.chains().size(), " chains"));
  }
  return with_chains(program, search.chains(), nullptr);
}

}  // namespace qplan::schedule
