// A build lacks the kernels of other architectures than its own. A packer for one of those asks kernels of
// its own build, the substitutes, for scratch memory and work items (TargetProfile::asked_isas). Substitutes
// may need other zero points, and weights in groups of four bytes where the step has groups of eight; the
// answers depend on neither. If a kernel finds less scratch memory than it needs, the plan still runs, with
// another variant.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_SUBSTITUTE_H_
#define QPLAN_SRC_PACKER_SCHEDULE_SUBSTITUTE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "src/packer/target/program.h"

namespace qplan::schedule {

struct SubstituteStep {
  // With the zero points and layouts that substitutes accept, in its layers too. Tensors of the program have
  // numbers of the step's own: the positions in `tensors`.
  target::ProgramStep step;
  std::vector<target::TensorId> tensors;
  std::vector<std::pair<target::TensorId, uint64_t>>
      weights;  // own numbers of those in another layout; bytes
};

SubstituteStep substitute_step(const target::Program& program, const target::ProgramStep& step);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_SUBSTITUTE_H_
