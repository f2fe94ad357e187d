#include "kernels/split/split.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  const uint32_t num_outputs = step.num_outputs();
  if (!check.range("number of outputs", num_outputs, 1, SplitArgs::kMaxOutputs) ||
      !check.arity(1, num_outputs) || !check.params(format::KernelParams_SplitParams)) {
    return false;
  }
  Shape input;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input)) return false;
  const uint32_t axis = check.params_as<format::SplitParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{input.rank} - 1)) return false;
  uint64_t extent = 0;
  for (uint32_t i = 0; i < num_outputs; ++i) {
    Shape output;
    if (!check.output(i, "output", dtype_bit(step.input(0).dtype), input.rank, &output)) return false;
    if (!equal_but_for_axis(output, input, axis)) {
      return check.fail_output(i, "output") << "differs from the input in another axis than " << axis;
    }
    extent += output[axis];
  }
  if (extent != input[axis]) {
    return check.fail_input(0, "input")
           << "has extent " << input[axis] << " along axis " << axis << ", the outputs together " << extent;
  }
  return check.range("number of rows", static_cast<int64_t>(axis_rows(input, axis)), 1, INT32_MAX);
}

qplan_status bind(const StepView& step, bool checked, SplitArgs& args, Error* error) {
  const StepCheck check(step, "split", error);
  if (checked && !check_step(check, step)) return check.status();
  const uint32_t axis = check.params_as<format::SplitParams>().axis();
  const uint64_t rows = axis_rows(shape_of(step.input(0)), axis);
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.input_row_bytes = step.input(0).size_bytes / rows;
  args.rows = static_cast<uint32_t>(rows);
  args.num_outputs = step.num_outputs();
  for (uint32_t i = 0; i < args.num_outputs; ++i) {
    args.outputs[i] = static_cast<uint8_t*>(step.output_data(i));
    args.row_bytes[i] = step.output(i).size_bytes / rows;
  }
  return QPLAN_OK;
}

// With one row, an output is one range of the input.
bool part(const StepView& step, uint32_t output, uint32_t, uint64_t* offset) {
  if (axis_rows(shape_of(step.input(0)), step.step->params_as_SplitParams()->axis()) != 1) return false;
  *offset = 0;
  for (uint32_t i = 0; i < output; ++i) *offset += step.output(i).size_bytes;
  return true;
}

uint64_t work(const SplitArgs& args) { return saturating_product(args.rows, args.input_row_bytes); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SplitArgs, name, isa),
    QPLAN_SPLIT_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(SplitArgs, split_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kSplitFamily =
    make_family<SplitArgs, bind, never_in_place, work>(kKernel_split, "split", kVariants, nullptr, part);
constexpr KernelFamily kSplitFamilyReference =
    make_family<SplitArgs, bind, never_in_place, work>(kKernel_split, "split", kReference, nullptr, part);

}  // namespace qplan
