// What a program's steps are told of how to run: their schedules, the grain of their tasks, and the scratch
// memory that all of them need.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/aligned_bytes.h"
#include "src/packer/schedule/tuning_log.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

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

// A plan whose schedules can be changed, without its model.
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
  // Bytes of the arena that a step may use as scratch; UINT64_MAX where its function has its scratch
  // elsewhere.
  uint64_t scratch_in_arena(uint32_t step) const;
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

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SCHEDULE_H_
