// Kernel argument binding of maximum and minimum, which share their kernels.
#include "kernels/minmax/minmax.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

qplan_status bind_named(const char* name, const StepView& step, bool checked, MinmaxArgs& args,
                        Error* error) {
  const StepCheck check(step, name, error);
  if (checked) {
    if (!check.arity(2, 1) || !check.params(format::KernelParams_NoParams) ||
        !check.input(0, "input 1", kDtypesQuantized, kAnyRank, nullptr)) {
      return check.status();
    }
    const uint32_t dtype = dtype_bit(step.input(0).dtype);
    if (!check.input(1, "input 2", dtype, kAnyRank, nullptr) ||
        !check.output(0, "output", dtype, kAnyRank, nullptr)) {
      return check.status();
    }
  }
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  args.is_maximum = step.step->kernel() == kKernel_maximum;
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  return QPLAN_OK;
}

qplan_status bind_maximum(const StepView& step, bool check, MinmaxArgs& args, Error* error) {
  return bind_named("maximum", step, check, args, error);
}

qplan_status bind_minimum(const StepView& step, bool check, MinmaxArgs& args, Error* error) {
  return bind_named("minimum", step, check, args, error);
}

uint64_t work(const MinmaxArgs& args) { return args.broadcast.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(MinmaxArgs, name, isa),
    QPLAN_MINMAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(MinmaxArgs, minmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kMaximumFamily =
    make_family<MinmaxArgs, bind_maximum, binary_in_place, work>(kKernel_maximum, "maximum", kVariants);
constexpr KernelFamily kMaximumFamilyReference =
    make_family<MinmaxArgs, bind_maximum, binary_in_place, work>(kKernel_maximum, "maximum", kReference);
constexpr KernelFamily kMinimumFamily =
    make_family<MinmaxArgs, bind_minimum, binary_in_place, work>(kKernel_minimum, "minimum", kVariants);
constexpr KernelFamily kMinimumFamilyReference =
    make_family<MinmaxArgs, bind_minimum, binary_in_place, work>(kKernel_minimum, "minimum", kReference);

}  // namespace qplan
