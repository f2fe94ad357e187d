// How much a plan computes, and what errors say about its steps (bind/family.h).
#include "format/container.h"
#include "src/base/checked.h"
#include "src/base/error.h"
#include "src/runtime/bind/family.h"

namespace qplan {
namespace {

// What follows "<name>: " in text, or all of it.
const char* after_prefix(const char* text, const char* name) {
  const char* at = text;
  while (*name != '\0' && *at == *name) ++at, ++name;
  return *name == '\0' && at[0] == ':' && at[1] == ' ' ? at + 2 : text;
}

}  // namespace

const KernelFamily* find_family(const format::PlanView& plan, uint32_t index, uint16_t kernel,
                                const qplan_kernel_set& kernels, Error* error) {
  const KernelFamily* family = kernel < kernels.num_families ? kernels.families[kernel] : nullptr;
  if (family == nullptr) {
    error->set(QPLAN_KERNEL_MISSING, static_cast<int32_t>(index))
        << "session: step " << index << Named{plan.step_name(index)} << " needs kernel " << uint32_t{kernel}
        << " (" << format::kernel_name(kernel, "unknown to this build")
        << "), which is not in the kernel set";
  }
  return family;
}

void place_step_error(const format::PlanView& plan, uint32_t index, const KernelFamily& family,
                      Error* error) {
  const Error from_family = *error;
  const char* text = after_prefix(from_family.text(), family.name);
  error->set(from_family.status(), static_cast<int32_t>(index), from_family.tensor());
  *error << family.name << Named{plan.step_name(index)} << " (step " << index << "): " << text;
}

uint64_t region_work(const format::PlanView& plan, const format::NpuStep& region) {
  uint64_t work = 0;
  for (uint32_t b = 0; b < format::count_of(region.binds()); ++b) {
    const format::NpuBind& bind = *region.binds()->Get(b);
    if (bind.use() == format::NpuUse_SCRATCH) continue;
    const auto* tensors = bind.use() == format::NpuUse_INPUT ? region.inputs() : region.outputs();
    work = saturating_sum(work, saturating_sum(plan.tensor(tensors->Get(bind.index())).size(), bind.size()));
  }
  return work;
}

qplan_status step_work(const format::PlanView& plan, uint32_t index, const qplan_kernel_set& kernels,
                       uint64_t* work, Error* error) {
  if (const format::NpuStep* region = plan.npu_step(index)) {
    *work = region_work(plan, *region);
    return QPLAN_OK;
  }
  const KernelFamily* family = find_family(plan, index, plan.step(index).kernel(), kernels, error);
  if (family == nullptr) return error->status();
  StepView view = StepView::without_addresses(plan.plan(), plan.step(index), plan.bytes());
  view.kernels = &kernels;
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  if (family->bind(view, true, args, error) < 0) {
    place_step_error(plan, index, *family, error);
    return error->status();
  }
  *work = family->work(args);
  return QPLAN_OK;
}

qplan_status function_work(const format::PlanView& plan, const format::Function& function,
                           const qplan_kernel_set& kernels, uint64_t* work, Error* error) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < function.num_steps(); ++i) {
    uint64_t of_step = 0;
    if (step_work(plan, function.first_step() + i, kernels, &of_step, error) < 0) return error->status();
    total = saturating_sum(total, of_step);
  }
  *work = total;
  return QPLAN_OK;
}

}  // namespace qplan
