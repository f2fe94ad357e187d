// How much a plan computes: KernelFamily::work of its steps, asked without a session (docs/work.md).
#ifndef QPLAN_SRC_RUNTIME_WORK_H_
#define QPLAN_SRC_RUNTIME_WORK_H_

#include <stdint.h>

#include "format/plan_view.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"

namespace qplan {

// Bytes that the CPU moves for a region's job: each tensor once, and what is filled around it.
uint64_t region_work(const format::PlanView& plan, const format::NpuStep& region);

// The work of step `index` of an open plan, a region's or a kernel's. Its family checks a kernel's step
// first, so that the result is that of a session, or the error that its init would give.
[[nodiscard]] qplan_status step_work(const format::PlanView& plan, uint32_t index,
                                     const qplan_kernel_set& kernels, uint64_t* work, Error* error);
// The work of all steps of a function.
[[nodiscard]] qplan_status function_work(const format::PlanView& plan, const format::Function& function,
                                         const qplan_kernel_set& kernels, uint64_t* work, Error* error);

// The family of a kernel's step; null, with the error set, where the set has none.
const KernelFamily* find_family(const format::PlanView& plan, uint32_t index, uint16_t kernel,
                                const qplan_kernel_set& kernels, Error* error);
// An error that a family's bind has set about step `index`, with the place: "conv2d 'block3' (step 12): ...".
void place_step_error(const format::PlanView& plan, uint32_t index, const KernelFamily& family, Error* error);

}  // namespace qplan

#endif  // QPLAN_SRC_RUNTIME_WORK_H_
