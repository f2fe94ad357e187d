#include "kernels/prelu/prelu.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_PreluParams) ||
      !check.input(0, "input", kDtypesQuantized, kAnyRank, nullptr)) {
    return false;
  }
  const Dtype dtype = step.input(0).dtype;
  const format::PreluParams& p = check.params_as<format::PreluParams>();
  if (!check.input(1, "alpha", dtype_bit(dtype), kAnyRank, nullptr) ||
      !check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr)) {
    return false;
  }
  // The product of two differences to zero points of int16 would not fit int32.
  if (dtype == Dtype::kS16 && (!check.range("input_zero_point of int16", p.input_zero_point(), 0, 0) ||
                               !check.range("alpha_zero_point of int16", p.alpha_zero_point(), 0, 0))) {
    return false;
  }
  return check.in_dtype("input_zero_point", p.input_zero_point(), dtype) &&
         check.in_dtype("alpha_zero_point", p.alpha_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.multiplier("above", p.above_multiplier(), p.above_shift()) &&
         check.multiplier("below", p.below_multiplier(), p.below_shift());
}

qplan_status bind(const StepView& step, bool checked, PreluArgs& args, Error* error) {
  const StepCheck check(step, "prelu", error);
  if (checked && !check_step(check, step)) return check.status();
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  const format::PreluParams& p = check.params_as<format::PreluParams>();
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.alpha = step.input_data(1);
  args.output = step.output_data(0);
  args.input_zero_point = p.input_zero_point();
  args.alpha_zero_point = p.alpha_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.above_multiplier = p.above_multiplier();
  args.above_shift = p.above_shift();
  args.below_multiplier = p.below_multiplier();
  args.below_shift = p.below_shift();
  return QPLAN_OK;
}

uint64_t work(const PreluArgs& args) { return args.broadcast.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(PreluArgs, name, isa),
    QPLAN_PRELU_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(PreluArgs, prelu_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kPreluFamily =
    make_family<PreluArgs, bind, binary_in_place, work>(kKernel_prelu, "prelu", kVariants);
constexpr KernelFamily kPreluFamilyReference =
    make_family<PreluArgs, bind, binary_in_place, work>(kKernel_prelu, "prelu", kReference);

}  // namespace qplan
