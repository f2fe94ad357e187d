#include <algorithm>

#include "src/packer/memory/arena.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/schedule/schedule.h"
#include "src/packer/write/plan_writer.h"

namespace qplan::pipeline {

std::optional<schedule::TuningLog> read_tuning(const PackOptions& options) {
  if (!options.tuning) return std::nullopt;
  return schedule::TuningLog(options.tuning->name, options.tuning->text, options.tuning->num_threads);
}

schedule::FuseOptions fuse_options(const PackOptions& options, schedule::TuningLog* tuning) {
  return {.how = options.fuse,
          .tuning = tuning,
          .planner_iterations = options.planner_iterations,
          .log = options.log};
}

memory::Arena plan_memory(const target::Program& program, const PackOptions& options) {
  const schedule::StepQueries queries(program);
  return memory::plan_arena(program, queries.sharing(), options.planner_iterations);
}

Planned plan_program(const target::Program& lowered, const target::TargetProfile& profile,
                     const PackOptions& options, schedule::TuningLog* tuning, uint64_t spare_bytes) {
  schedule::FuseOptions fuse = fuse_options(options, tuning);
  fuse.log = {};
  fuse.spare_bytes = spare_bytes;
  Planned planned;
  planned.program = schedule::fuse_steps(lowered, profile, fuse);
  schedule::schedule_steps(&planned.program, profile, tuning);
  planned.arena = plan_memory(planned.program, options);
  return planned;
}

PlannedSizes sizes_of(const Planned& planned) {
  return {write::lay_out_constants(planned.program).size, memory::total_bytes(planned.arena)};
}

void report_copies(const Planned& planned, const target::Target& cpu, partition::Explain* explain) {
  for (uint32_t s = 0; s < planned.program.steps.size(); ++s) {
    const target::ProgramStep& step = planned.program.steps[s];
    if (step.npu == nullptr) continue;
    const auto region = std::ranges::find(explain->regions, step.name, &partition::RegionReport::function);
    if (region == explain->regions.end()) continue;
    const memory::BoundaryCopies copies =
        memory::boundary_copies(planned.program, planned.arena.device_of, planned.arena.kept, s);
    region->num_copies = copies.count;
    region->copy_bytes = copies.bytes;
    region->copy_ns = target::copy_ns(cpu.cpu_costs, copies.bytes);
  }
}

void report_savings(const PlannedSizes& with_fallback, const PlannedSizes& without,
                    partition::Explain* explain) {
  explain->fallback = false;
  explain->saved_constant_bytes = static_cast<int64_t>(with_fallback.constants - without.constants);
  explain->saved_memory_bytes = static_cast<int64_t>(with_fallback.memory - without.memory);
}

}  // namespace qplan::pipeline
