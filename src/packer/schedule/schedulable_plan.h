// A plan whose schedules can be changed, without its model.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SCHEDULABLE_PLAN_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SCHEDULABLE_PLAN_H_

#include <cstdint>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/target/profile.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {

class SchedulablePlan {
 public:
  // view must outlive it. PackError (QPLAN_MODEL_UNSUPPORTED) where this packer does not know the plan's
  // processor.
  explicit SchedulablePlan(const format::PlanView& view);

  const format::PlanView& view() const { return view_; }
  const target::TargetProfile& profile() const { return profile_; }
  bool is_kernel(uint32_t step) const { return view_.npu_step(step) == nullptr; }

  // Sets the schedule of a kernel's step.
  void set_schedule(uint32_t step, uint64_t schedule);
  void set_min_units_per_task(uint32_t step, uint32_t units);
  // Raises the scratch of all functions that have less.
  void raise_scratch_per_worker(uint64_t bytes);

  // A kernel's step as it is now, its family and the args that its schedule is part of.
  struct Bound {
    StepView step;
    const KernelFamily* family;
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  };
  // PackError with the kernel's reason where it refuses the step.
  void bind(uint32_t step, Bound* bound) const;

  // The plan as it is now. It is a little longer than it was: tables that can be changed stand before the old
  // ones.
  AlignedBytes file() const;

 private:
  const format::Plan& plan() const { return *flatbuffers::GetRoot<format::Plan>(root_.data()); }

  const format::PlanView& view_;
  const target::TargetProfile profile_;
  flatbuffers::DetachedBuffer root_;
  uint64_t shift_ = 0;       // bytes by which the constants are further back than in view
  std::vector<void*> data_;  // per tensor: the constant's bytes, else null
};

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SCHEDULABLE_PLAN_H_
