#include "kernels/div/div.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_DivParams) ||
      !check.input(0, "input 1", kDtypesU8S8, kAnyRank, nullptr)) {
    return false;
  }
  const Dtype dtype = step.input(0).dtype;
  const auto& p = check.params_as<format::DivParams>();
  return check.input(1, "input 2", dtype_bit(dtype), kAnyRank, nullptr) &&
         check.output(0, "output", dtype_bit(dtype), kAnyRank, nullptr) &&
         check.in_dtype("input1_zero_point", p.input1_zero_point(), dtype) &&
         check.in_dtype("input2_zero_point", p.input2_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.range("output_multiplier", p.output_multiplier(), 0, INT32_MAX) &&
         check.range("output_shift", p.output_shift(), -31, DivArgs::kMaxShift) &&
         check.clamp(p.clamp_min(), p.clamp_max(), dtype);
}

qplan_status bind(const StepView& step, bool checked, DivArgs& args, Error* error) {
  const StepCheck check(step, "div", error);
  if (checked && !check_step(check, step)) return check.status();
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  const auto& p = check.params_as<format::DivParams>();
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  args.input1_zero_point = p.input1_zero_point();
  args.input2_zero_point = p.input2_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  return QPLAN_OK;
}

uint64_t work(const DivArgs& args) { return args.broadcast.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DivArgs, name, isa),
    QPLAN_DIV_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kDivFamily =
    make_family<DivArgs, bind, binary_in_place, work>(kKernel_div, "div", kVariants);
constexpr KernelFamily kDivFamilyReference = kDivFamily;

}  // namespace qplan
