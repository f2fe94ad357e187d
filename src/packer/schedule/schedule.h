// What a program's steps are told of how to run: their schedules, the grain of their tasks, and the scratch
// memory that all of them need.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

// Fills ProgramStep::schedule, min_units_per_task and Program::scratch_per_worker. tuning: null, or the log
// that schedules come from; what fuse_steps has set stays. PackError (QPLAN_MODEL_UNSUPPORTED) with the
// family's text when a kernel refuses its step: extents beyond what it computes with, and the like.
void schedule_steps(target::Program* program, const target::TargetProfile& profile,
                    TuningLog* tuning = nullptr, const LogFunction& log = {});

// What tuning needs of a plan: what could be set, and the plan with something set.

// The same plan, but for the schedules and what follows from them: grains, scratch memory, digest. schedules:
// JSON, a list with an object of names and values for each step; null where it stays as it is, as it must for
// regions. PackError.
AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules);

// Which schedules may be faster than the default, as JSON; docs/schedules.md, "What is tried". isa:
// QPLAN_ISA_* of the machine that would run them, num_threads at a time. PackError.
std::string tuning_space(const format::PlanView& view, uint32_t isa, uint32_t num_threads);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
