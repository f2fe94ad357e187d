// A plan of one step of a plan: what somebody needs who looks for an error in that step.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_EXTRACT_STEP_H_
#define QPLAN_SRC_PACKER_SCHEDULE_EXTRACT_STEP_H_

#include <cstdint>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"

namespace qplan::schedule {

// The step alone, with its constants, kernel, parameters and schedule, as the plan's function "main". Its
// activations, in the order in which the step reads them, are the inputs; what it writes are the outputs. A
// region brings its program, its device's memory and its fallback steps. Activations lie side by side, so
// that nothing is computed in place. PackError (QPLAN_NOT_FOUND) where there is no such step.
AlignedBytes extract_step(const format::PlanView& view, uint32_t step);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_EXTRACT_STEP_H_
