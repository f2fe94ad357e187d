// Steps that run on devices, for tools that show plans.
#ifndef QPLAN_SRC_PACKER_INSPECT_NPU_STEPS_H_
#define QPLAN_SRC_PACKER_INSPECT_NPU_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/plan_view.h"

namespace qplan::inspect {

// Per step of the plan: whether it runs only where a region does not.
std::vector<bool> alternative_steps(const format::PlanView& view);

// Multiply-accumulates of one inference of the function: those of alternatives are their region's.
uint64_t macs_of(const format::PlanView& view, const format::Function& function);

// The tensor that a bind carries; UINT32_MAX: scratch.
uint32_t bound_tensor(const format::NpuStep& step, const format::NpuBind& bind);

std::string target_name(const format::PlanView& view, uint32_t target);
std::string four_characters(uint32_t format);  // "VTA1", or hexadecimal

// "slot 0: input %3 bank2+64, 4096 bytes, strides 1x2, ..."
std::string bind_text(const format::PlanView& view, const format::NpuStep& step, const format::NpuBind& bind);

}  // namespace qplan::inspect

#endif  // QPLAN_SRC_PACKER_INSPECT_NPU_STEPS_H_
