#include "kernels/arg_max/arg_max.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, uint32_t dtypes) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_ArgMaxParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtypes, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kS64), kAnyRank, &output)) {
    return false;
  }
  const uint32_t axis = check.params_as<format::ArgMaxParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{input.rank} - 1)) return false;
  if (!is_reduced_shape(input, 1u << axis, output)) {
    return check.fail_output(0, "output") << "is not the input's shape reduced along axis " << axis;
  }
  return true;
}

template <bool kIsMinimum>
qplan_status bind(const StepView& step, bool checked, ArgMaxArgs& args, Error* error) {
  const StepCheck check(step, kIsMinimum ? "arg_min" : "arg_max", error);
  const uint32_t dtypes = kDtypesU8S8 | (kIsMinimum ? 0 : dtype_bit(Dtype::kF32));
  if (checked && !check_step(check, dtypes)) return check.status();
  args.is_minimum = kIsMinimum;
  const uint32_t axis = check.params_as<format::ArgMaxParams>().axis();
  const Shape input = shape_of(step.input(0));
  args.input_dtype = step.input(0).dtype;
  args.output_dtype = step.output(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.outer = axis_rows(input, axis);
  args.extent = input[axis];
  args.inner = input.elements() / args.outer / args.extent;
  return QPLAN_OK;
}

uint64_t work(const ArgMaxArgs& args) { return saturating_product(args.outer, args.extent, args.inner); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(ArgMaxArgs, name, isa),
    QPLAN_ARG_MAX_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(ArgMaxArgs, arg_max_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kArgMaxFamily =
    make_family<ArgMaxArgs, bind<false>, never_in_place, work>(kKernel_arg_max, "arg_max", kVariants);
constexpr KernelFamily kArgMaxFamilyReference =
    make_family<ArgMaxArgs, bind<false>, never_in_place, work>(kKernel_arg_max, "arg_max", kReference);

constexpr KernelFamily kArgMinFamily =
    make_family<ArgMaxArgs, bind<true>, never_in_place, work>(kKernel_arg_min, "arg_min", kReference);
constexpr KernelFamily kArgMinFamilyReference = kArgMinFamily;

}  // namespace qplan
