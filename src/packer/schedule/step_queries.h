// Asks the kernel families about a program's steps, through the same binding code that the runtime uses.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_STEP_QUERIES_H_
#define QPLAN_SRC_PACKER_SCHEDULE_STEP_QUERIES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "src/packer/memory/lifetimes.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule {

// PackError (QPLAN_INTERNAL) when this build lacks it.
const KernelFamily& family_of(uint16_t kernel);

// What the variants of a family say of bound arguments.
struct VariantNeeds {
  uint64_t scratch_bytes = 0;  // per worker: the most of all variants that the profile has and that accept
  uint32_t work_items = 1;     // of the variant that the profile's best machine takes
};
VariantNeeds variant_needs(const KernelFamily& family, const void* args, const target::TargetProfile& profile,
                           uint64_t schedule);

// KernelStep::min_units_per_task of a step of so many units: such that a task takes about the profile's
// task_work, times the factor; 0 where two tasks of that size would be too many.
uint32_t task_grain(const StepView& step, uint32_t work_items, const target::TargetProfile& profile,
                    double factor);

// The steps of a program, without addresses but those of constants. A step's own table is packed when
// something about the step is first asked. The program must outlive it; steps may be changed that were not
// yet asked about, tensors may not.
class StepQueries {
 public:
  explicit StepQueries(const target::Program& program);

  // Only for steps that a kernel computes.
  StepView view(uint32_t step) const;
  // As memory::InPlaceQuery.
  bool may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const;
  // As memory::PartOffsetQuery.
  std::optional<uint64_t> part_offset(uint32_t step, uint32_t output, uint32_t input) const;
  // Both; they refer to this object.
  memory::SharingQueries sharing() const;

 private:
  struct Table {
    flatbuffers::DetachedBuffer bytes;  // empty: not packed yet
    std::vector<StepTensor> tensors;    // of a step with tiles: the program's, then those
  };

  const target::Program& program_;
  std::vector<StepTensor> tensors_;    // per tensor of the program
  mutable std::vector<Table> tables_;  // per step
};

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_STEP_QUERIES_H_
