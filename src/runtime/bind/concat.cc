#include "kernels/concat/concat.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  const uint32_t num_inputs = step.num_inputs();
  if (!check.range("number of inputs", num_inputs, 1, ConcatArgs::kMaxInputs) ||
      !check.arity(num_inputs, 1) || !check.params(format::KernelParams_ConcatParams)) {
    return false;
  }
  Shape output;
  if (!check.output(0, "output", kDtypesAny8To64, kAnyRank, &output)) return false;
  const uint32_t axis = check.params_as<format::ConcatParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{output.rank} - 1)) return false;
  uint64_t extent = 0;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    Shape input;
    if (!check.input(i, "input", dtype_bit(step.output(0).dtype), output.rank, &input)) return false;
    if (!equal_but_for_axis(input, output, axis)) {
      return check.fail_input(i, "input") << "differs from the output in another axis than " << axis;
    }
    extent += input[axis];
  }
  if (extent != output[axis]) {
    return check.fail_output(0, "output")
           << "has extent " << output[axis] << " along axis " << axis << ", the inputs together " << extent;
  }
  return check.range("number of rows", static_cast<int64_t>(axis_rows(output, axis)), 1, INT32_MAX);
}

qplan_status bind(const StepView& step, bool checked, ConcatArgs& args, Error* error) {
  const StepCheck check(step, "concat", error);
  if (checked && !check_step(check, step)) return check.status();
  const uint32_t axis = check.params_as<format::ConcatParams>().axis();
  const uint64_t rows = axis_rows(shape_of(step.output(0)), axis);
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.output_row_bytes = step.output(0).size_bytes / rows;
  args.rows = static_cast<uint32_t>(rows);
  args.num_inputs = step.num_inputs();
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    args.inputs[i] = static_cast<const uint8_t*>(step.input_data(i));
    args.row_bytes[i] = step.input(i).size_bytes / rows;
  }
  return QPLAN_OK;
}

// With one row, an input is one range of the output.
bool part(const StepView& step, uint32_t, uint32_t input, uint64_t* offset) {
  if (axis_rows(shape_of(step.output(0)), step.step->params_as_ConcatParams()->axis()) != 1) return false;
  *offset = 0;
  for (uint32_t i = 0; i < input; ++i) *offset += step.input(i).size_bytes;
  return true;
}

uint64_t work(const ConcatArgs& args) { return saturating_product(args.rows, args.output_row_bytes); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(ConcatArgs, name, isa),
    QPLAN_CONCAT_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(ConcatArgs, concat_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kConcatFamily =
    make_family<ConcatArgs, bind, never_in_place, work>(kKernel_concat, "concat", kVariants, nullptr, part);
constexpr KernelFamily kConcatFamilyReference =
    make_family<ConcatArgs, bind, never_in_place, work>(kKernel_concat, "concat", kReference, nullptr, part);

}  // namespace qplan
