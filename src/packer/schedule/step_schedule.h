// How a step goes about its work.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_STEP_SCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_STEP_SCHEDULE_H_

#include <cstdint>

namespace qplan::emit {

struct StepSchedule {
  uint64_t bytes = 0;  // KernelStep::schedule
  double grain = 1;    // factor of the packer's own KernelStep::min_units_per_task

  bool operator==(const StepSchedule&) const = default;
};

// Beside 1.
inline constexpr double kGrains[] = {0.25, 0.5, 2, 4};

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_SCHEDULE_STEP_SCHEDULE_H_
