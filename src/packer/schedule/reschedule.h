// What tuning needs of a plan: what could be set, and the plan with something set.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_RESCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_RESCHEDULE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"

namespace qplan::schedule {

// The same plan, but for the schedules and what follows from them: grains, scratch memory, digest. schedules:
// JSON, a list with an object of names and values for each step; null where it stays as it is, as it must for
// regions. PackError.
AlignedBytes reschedule(const format::PlanView& view, std::string_view schedules);

// Which schedules may be faster than the default, as JSON; docs/schedules.md, "What is tried". isa:
// QPLAN_ISA_* of the machine that would run them, num_threads at a time. PackError.
std::string tuning_space(const format::PlanView& view, uint32_t isa, uint32_t num_threads);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_RESCHEDULE_H_
