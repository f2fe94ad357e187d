#include "src/packer/schedule/fuse.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/packer/inspect/schedule_names.h"
#include "src/packer/memory/arena.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/schedule/step_queries.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {
namespace {

using target::Program;
using target::TargetProfile;

bool is_cascade(const target::ProgramStep& step) { return step.kernel == kKernel_chain; }

// Bytes of activations, and of the scratch of one worker.
uint64_t bytes_of(const Program& scheduled, uint32_t planner_iterations) {
  const StepQueries queries(scheduled);
  return memory::total_bytes(memory::plan_arena(scheduled, queries.sharing(), planner_iterations)) +
         scheduled.scratch_per_worker;
}

// Cascades that make one row of output at a time, whose tiles are the smallest.
void make_single_rows(Program* program) {
  const target::StepSchedule single = inspect::parse_schedule(kKernel_chain, {{"block_rows", 1}});
  for (target::ProgramStep& step : program->steps) {
    if (is_cascade(step)) step.schedule.bytes = single.bytes;
  }
}

// Returns the way to fuse that takes the least memory, as measured: the search for cascades knows neither
// gaps in the arena nor the scratch of kernels except tiles. Among equal ones it returns the one with the
// least work.
Program fuse_for_memory(const Program& program, const TargetProfile& profile, const FuseOptions& options) {
  Program best;
  uint64_t least = UINT64_MAX;
  const auto consider = [&](Program candidate) {
    schedule_steps(&candidate, profile, options.tuning);
    const uint64_t bytes = bytes_of(candidate, options.planner_iterations);
    if (bytes >= least) return;
    least = bytes;
    best = std::move(candidate);
  };
  for (const Fuse how : {Fuse::kOff, Fuse::kAuto, Fuse::kMemory, Fuse::kAll}) {
    Program fused = fuse_cascades(program, profile, how, options.tuning, {});
    consider(fused);
    if (std::ranges::none_of(fused.steps, is_cascade)) continue;
    make_single_rows(&fused);
    consider(std::move(fused));
  }
  return best;
}

}  // namespace

Program fuse_steps(const Program& program, const TargetProfile& profile, const FuseOptions& options) {
  if (options.how == Fuse::kMemory) return fuse_for_memory(program, profile, options);
  return fuse_cascades(program, profile, options.how, options.tuning, options.log);
}

}  // namespace qplan::schedule
