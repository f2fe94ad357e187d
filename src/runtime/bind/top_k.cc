#include "kernels/top_k/top_k.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

constexpr uint32_t kDtypes = kDtypesQuantized | dtype_bit(Dtype::kS32) | dtype_bit(Dtype::kF32);

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, values, indices;
  if (!check.arity(1, 2) || !check.params(format::KernelParams_NoParams) ||
      !check.input(0, "input", kDtypes, kAnyRank, &input) ||
      !check.output(0, "values", dtype_bit(step.input(0).dtype), kAnyRank, &values) ||
      !check.output(1, "indices", dtype_bit(Dtype::kS32), kAnyRank, &indices)) {
    return false;
  }
  if (input.rank == 0) return check.fail() << "an input without axes has no rows";
  if (values != indices) return check.fail_output(1, "indices") << "has another shape than the values";
  const uint32_t last = input.rank - 1;
  if (!equal_but_for_axis(input, values, last) || values[last] > input[last]) {
    return check.fail_output(0, "values")
           << "has not the input's shape with at most " << input[last] << " elements in a row";
  }
  return check.range("rows", static_cast<int64_t>(axis_rows(input, last)), 1, INT32_MAX);
}

qplan_status bind(const StepView& step, bool checked, TopKArgs& args, Error* error) {
  const StepCheck check(step, "top_k", error);
  if (checked && !check_step(check, step)) return check.status();
  const Shape input = shape_of(step.input(0)), values = shape_of(step.output(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.values = step.output_data(0);
  args.indices = static_cast<int32_t*>(step.output_data(1));
  args.rows = axis_rows(input, input.rank - 1);
  args.depth = input[input.rank - 1];
  args.k = values[input.rank - 1];
  return QPLAN_OK;
}

uint64_t work(const TopKArgs& args) { return saturating_product(args.rows, args.depth, args.k); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(TopKArgs, name, isa),
    QPLAN_TOP_K_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kTopKFamily =
    make_family<TopKArgs, bind, never_in_place, work>(kKernel_top_k, "top_k", kVariants);
constexpr KernelFamily kTopKFamilyReference = kTopKFamily;

}  // namespace qplan
