#include "kernels/l2_normalization/l2_normalization.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_L2NormalizationParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesU8S8, kAnyRank, &input)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.output(0, "output", dtype_bit(dtype), kAnyRank, &output)) return false;
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  if (input.rank == 0) return check.fail_input(0, "input") << "has no axis";
  return check.range("last extent", input[input.rank - 1], 1, L2NormalizationArgs::kMaxDepth) &&
         check.in_dtype("input_zero_point",
                        check.params_as<format::L2NormalizationParams>().input_zero_point(), dtype);
}

qplan_status bind(const StepView& step, bool checked, L2NormalizationArgs& args, Error* error) {
  const StepCheck check(step, "l2_normalization", error);
  if (checked && !check_step(check, step)) return check.status();
  const Shape shape = shape_of(step.input(0));
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.depth = shape[shape.rank - 1];
  args.rows = shape.elements() / args.depth;
  args.input_zero_point = check.params_as<format::L2NormalizationParams>().input_zero_point();
  return QPLAN_OK;
}

// A row is read whole before its first output is written, and again element by element.
bool in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t work(const L2NormalizationArgs& args) {
  return saturating_product(args.rows, args.depth, uint64_t{2});
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(L2NormalizationArgs, name, isa),
    QPLAN_L2_NORMALIZATION_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kL2NormalizationFamily = make_family<L2NormalizationArgs, bind, in_place, work>(
    kKernel_l2_normalization, "l2_normalization", kVariants);
constexpr KernelFamily kL2NormalizationFamilyReference = kL2NormalizationFamily;

}  // namespace qplan
