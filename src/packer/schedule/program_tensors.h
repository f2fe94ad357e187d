// The tensors of a program by other numbers.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_PROGRAM_TENSORS_H_
#define QPLAN_SRC_PACKER_SCHEDULE_PROGRAM_TENSORS_H_

#include <vector>

#include "src/packer/target/program.h"

namespace qplan::schedule {

// number: per tensor its new one; those of tiles stay.
void renumber_step(const std::vector<target::TensorId>& number, target::ProgramStep* step);

// Without the tensors that no step and no function names any more.
void drop_tensors(const std::vector<bool>& is_dropped, target::Program* program);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_PROGRAM_TENSORS_H_
