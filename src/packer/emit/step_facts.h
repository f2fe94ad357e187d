// Asks the kernel families about a program's steps, through the same glue that the runtime uses.
#ifndef QPLAN_SRC_PACKER_EMIT_STEP_FACTS_H_
#define QPLAN_SRC_PACKER_EMIT_STEP_FACTS_H_

#include <cstdint>
#include <vector>

#include "src/packer/emit/plan_root.h"

namespace qplan::emit {

// A program as a plan without addresses. The program must outlive it and stay as it is.
class DraftPlan {
 public:
  DraftPlan(const target::Program& program, const target::TargetProfile& profile,
            const ConstantSegment& constants);

  // PackError (QPLAN_MODEL_UNSUPPORTED) with the family's text when a kernel refuses its step: extents beyond
  // what it computes with, and the like.
  StepFacts step_facts() const;
  // As memory::InPlaceQuery.
  bool may_be_in_place(uint32_t step, uint32_t output, uint32_t input) const;

 private:
  const target::Program& program_;
  const target::TargetProfile& profile_;
  flatbuffers::DetachedBuffer root_;
  const format::Plan* plan_;
  std::vector<void*> data_;  // per tensor: the constant's bytes, else null
};

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_EMIT_STEP_FACTS_H_
