// Sums that a convolution's own step adds to its outputs, instead of a step that reads them again.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_FOLD_RESIDUALS_H_
#define QPLAN_SRC_PACKER_SCHEDULE_FOLD_RESIDUALS_H_

#include <cstdint>

#include "src/packer/target/program.h"

namespace qplan::schedule {

// The program with each add that can be as the residual of the convolution whose output it alone reads. Where
// both operands are such outputs, it is that of the later one. Regions on devices, and the steps that stand
// in for them, stay as they are.
target::Program fold_residuals(const target::Program& program);

// A step with a residual as the two that it was, the only steps of a program without inputs and outputs of a
// function.
target::Program residual_apart(const target::Program& program, uint32_t step);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_FOLD_RESIDUALS_H_
