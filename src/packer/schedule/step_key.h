// What two steps have in common that take the same time with the same schedule: the key of measurements.
#ifndef QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_
#define QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_

#include <string>

#include "kernels/kernel.h"
#include "src/packer/target/profile.h"

namespace qplan::schedule {

// "conv2d {contract=TFL2, kernel_h=3, ...} uint8[1x56x56x24], ... -> uint8[1x56x56x144] on
// cpu,arch=x86_64,...": family, parameters but for those that are only numbers to compute with, dtypes and
// shapes, and the CPU target. Names and contents of constants are no part of it, so that one
// measurement serves all like steps.
// target: target_text.
std::string step_key(const StepView& step, const std::string& target);

// The CPU target of a program's profile or of a plan, as keys have it: "cpu,arch=x86_64,...".
std::string target_text(const target::TargetProfile& profile);
std::string target_text(const format::Plan& plan);

}  // namespace qplan::schedule

#endif  // QPLAN_SRC_PACKER_SCHEDULE_STEP_KEY_H_
