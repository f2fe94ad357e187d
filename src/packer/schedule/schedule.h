// What a program's steps are told of how to run: their schedules, the grain of their tasks, and the scratch
// memory that all of them need.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_

#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::schedule {

// Fills ProgramStep::schedule, min_units_per_task and Program::scratch_per_worker. tuning: null, or the log
// that schedules come from; what fuse_steps has set stays. PackError (QPLAN_MODEL_UNSUPPORTED) with the
// family's text when a kernel refuses its step: extents beyond what it computes with, and the like.
void schedule_steps(target::Program* program, const target::TargetProfile& profile,
                    TuningLog* tuning = nullptr, const LogFunction& log = {});

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
