#include "kernels/cumulative_sum/cumulative_sum.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_CumulativeSumParams) ||
      !check.input(0, "input", dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint32_t axis = check.params_as<format::CumulativeSumParams>().axis();
  if (axis >= input.rank) return check.fail() << "axis " << axis << " of an input of rank " << input.rank;
  return check.range("elements before the axis", static_cast<int64_t>(axis_rows(input, axis)), 1, INT32_MAX);
}

qplan_status bind(const StepView& step, bool checked, CumulativeSumArgs& args, Error* error) {
  const StepCheck check(step, "cumulative_sum", error);
  if (checked && !check_step(check, step)) return check.status();
  const auto& p = check.params_as<format::CumulativeSumParams>();
  const Shape shape = shape_of(step.input(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.outer = axis_rows(shape, p.axis());
  args.depth = shape[p.axis()];
  args.inner = shape.elements() / (args.outer * args.depth);
  args.exclusive = p.exclusive();
  args.reverse = p.reverse();
  return QPLAN_OK;
}

// Each element is read before it is written.
bool in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t work(const CumulativeSumArgs& args) { return args.outer * args.depth * args.inner; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CumulativeSumArgs, name, isa),
    QPLAN_CUMULATIVE_SUM_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kCumulativeSumFamily =
    make_family<CumulativeSumArgs, bind, in_place, work>(kKernel_cumulative_sum, "cumulative_sum", kVariants);
constexpr KernelFamily kCumulativeSumFamilyReference = kCumulativeSumFamily;

}  // namespace qplan
