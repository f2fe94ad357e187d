#include "kernels/copy/copy.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_NoParams)) return false;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, nullptr) ||
      !check.output(0, "output", dtype_bit(step.input_dtype(0)), kAnyRank, nullptr)) {
    return false;
  }
  const uint64_t input_bytes = step.size_bytes(step.step->inputs()->Get(0));
  const uint64_t output_bytes = step.size_bytes(step.step->outputs()->Get(0));
  if (input_bytes == output_bytes) return true;
  return check.fail_output(0, "output") << "has " << output_bytes << " bytes, the input " << input_bytes;
}

qplan_status bind(const StepView& step, bool checked, CopyArgs& args, Error* error) {
  const StepCheck check(step, "copy", error);
  if (checked && !check_step(check, step)) return check.status();
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.bytes = step.size_bytes(step.step->inputs()->Get(0));
  return QPLAN_OK;
}

bool in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t work(const CopyArgs& args) { return args.bytes; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CopyArgs, name, isa),
    QPLAN_COPY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(CopyArgs, copy_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kCopyFamily =
    make_family<CopyArgs, bind, in_place, work>(kKernel_copy, "copy", kVariants);
constexpr KernelFamily kCopyFamilyReference =
    make_family<CopyArgs, bind, in_place, work>(kKernel_copy, "copy", kReference);

}  // namespace qplan
