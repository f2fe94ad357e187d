#include "kernels/common/family.h"
#include "kernels/common/step_check.h"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_SoftmaxParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesU8S8, kAnyRank, &input)) return false;
  if (!check.output(0, "output", dtype_bit(dtype_of(step.input(0))), kAnyRank, &output)) return false;
  if (input.rank == 0) return check.fail_input(0, "input") << "is a scalar, expected at least one axis";
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const uint64_t rows = input.elements() / input[input.rank - 1];
  const format::SoftmaxParams& params = check.params_as<format::SoftmaxParams>();
  if (!check.contract(params.contract(), format::Contract_TFL2) ||
      !check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX) ||
      !check.range("input_multiplier", params.input_multiplier(), 0, INT32_MAX) ||
      !check.range("input_left_shift", params.input_left_shift(), 0, 31)) {
    return false;
  }
  return check.range("diff_min", params.diff_min(), -(SoftmaxArgs::kMaxShifted >> params.input_left_shift()),
                     0);
}

qplan_status bind(const StepView& step, bool checked, SoftmaxArgs& args, Error* error) {
  const StepCheck check(step, "softmax", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::SoftmaxParams& params = check.params_as<format::SoftmaxParams>();
  const Shape shape = shape_of(step.input(0));
  args.dtype = dtype_of(step.input(0));
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.depth = shape[shape.rank - 1];
  args.rows = static_cast<uint32_t>(shape.elements() / args.depth);
  args.input_multiplier = params.input_multiplier();
  args.input_left_shift = params.input_left_shift();
  args.diff_min = params.diff_min();
  return QPLAN_OK;
}

// A row is written only after its first pass has read all of it, and element by element.
bool in_place(const StepView&, uint32_t, uint32_t) { return true; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SoftmaxArgs, name, isa),
#include "kernels/softmax/variants.def"
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(SoftmaxArgs, softmax_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kSoftmaxFamily =
    make_family<SoftmaxArgs, bind, in_place>(kKernel_softmax, "softmax", kVariants);
constexpr KernelFamily kSoftmaxFamilyReference =
    make_family<SoftmaxArgs, bind, in_place>(kKernel_softmax, "softmax", kReference);

}  // namespace qplan
