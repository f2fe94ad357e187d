#include "src/packer/evaluate/make_plan.h"

#include <algorithm>

#include "src/packer/evaluate/reference_session.h"
#include "src/packer/inspect/plan_reader.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/schedule/step_queries.h"

namespace qplan::evaluate {
namespace {

// Whether the plan runs without its devices.
bool runs_on_cpu(const target::Program& program) {
  return std::ranges::none_of(program.steps, [](const target::ProgramStep& step) {
    return step.npu != nullptr && step.npu->num_alternative_steps == 0;
  });
}

}  // namespace

AlignedBytes make_plan(const target::Program& lowered, const target::TargetProfile& profile,
                       const schedule::FuseOptions& options, const write::PlanNames& names) {
  target::Program program = schedule::fuse_steps(lowered, profile, options);
  schedule::schedule_steps(&program, profile, options.tuning, options.log);
  const schedule::StepQueries queries(program);
  const memory::Arena arena = memory::plan_arena(program, queries.sharing(), options.planner_iterations);
  AlignedBytes plan = write::write_plan(program, profile, arena, names);
  check_plan(plan.span(), program, arena);
  return plan;
}

void check_plan(std::span<const uint8_t> plan, const target::Program& program, const memory::Arena& arena) {
  constexpr uint64_t kMaxTriedArena = uint64_t{256} << 20;
  if (memory::total_bytes(arena) <= kMaxTriedArena && runs_on_cpu(program)) {
    ReferenceSession session(plan);
  } else {
    inspect::PlanReader reader(plan);
  }
}

}  // namespace qplan::evaluate
