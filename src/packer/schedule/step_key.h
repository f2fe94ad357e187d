// What two steps have in common that take the same time with the same schedule: the key of measurements.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_
#define QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_

#include <string>

#include "kernels/kernel.h"

namespace qplan::emit {

// "conv2d {contract=TFL2, kernel_h=3, ...} uint8[1x56x56x24], ... -> uint8[1x56x56x144] on
// cpu,arch=x86_64,...": family, parameters but for those that are only numbers to compute with, dtypes and
// shapes, and the plan's CPU target. Names and contents of constants are no part of it, so that one
// measurement serves all like steps.
// target: "cpu,arch=x86_64,...", empty where the plan names none.
std::string step_key(const StepView& step, const std::string& target);
// Of a plan's step.
std::string step_key(const StepView& step);

}  // namespace qplan::emit

#endif  // QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_
