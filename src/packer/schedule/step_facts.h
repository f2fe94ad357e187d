// Asks the kernel families about a program's steps, through the same glue that the runtime uses.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_STEP_FACTS_H_
#define QPLAN_SRC_PACKER_SCHEDULE_STEP_FACTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/kernel.h"
#include "src/packer/schedule/tuning_log.h"
#include "src/packer/write/plan_root.h"

namespace qplan::emit {

// PackError (QPLAN_INTERNAL) when this build lacks it.
const KernelFamily& family_of(uint16_t kernel);
// KernelStep::min_units_per_task of a step of so many units: such that a task takes about the profile's
// task_work, times the factor; 0 where two tasks of that size would be too many.
uint32_t task_grain(const StepView& step, uint32_t units, const target::TargetProfile& profile,
                    double factor);

// A program as a plan without addresses. The program must outlive it and stay as it is.
class DraftPlan {
 public:
  DraftPlan(const target::Program& program, const target::TargetProfile& profile,
            const ConstantSegment& constants, std::vector<StepSchedule> schedules = {});

  // Of each step, by the log; regions have the default.
  std::vector<StepSchedule> fastest_schedules(TuningLog* tuning, const LogFunction& log) const;

  // PackError (QPLAN_MODEL_UNSUPPORTED) with the family's text when a kernel refuses its step: extents beyond
  // what it computes with, and the like.
  StepFacts step_facts() const;
  // Of a kernel's step, without addresses.
  StepView step_view(uint32_t step) const;
  // As memory::InPlaceQuery.
  bool may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const;
  // As memory::PartOffsetQuery.
  std::optional<uint64_t> part_offset(uint32_t step, uint32_t output, uint32_t input) const;

 private:
  const target::Program& program_;
  const target::TargetProfile& profile_;
  const std::vector<StepSchedule> schedules_;  // empty: all are the default
  flatbuffers::DetachedBuffer root_;
  const format::Plan* plan_;
  std::vector<void*> data_;  // per tensor: the constant's bytes, else null
};

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_SCHEDULE_STEP_FACTS_H_
