#include "kernels/pad/pad.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_PadParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.output(0, "output", dtype_bit(dtype), input.rank, &output)) return false;
  const format::PadParams& params = check.params_as<format::PadParams>();
  const uint32_t num_before = params.before() != nullptr ? params.before()->size() : 0;
  if (num_before != input.rank) {
    return check.fail() << "before has " << num_before << " entries, the input has rank " << input.rank;
  }
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const uint64_t inside_end = uint64_t{params.before()->Get(axis)} + input[axis];
    if (inside_end > output[axis]) {
      return check.fail_output(0, "output") << "has extent " << output[axis] << " along axis " << axis
                                            << ", less than before + input, " << inside_end;
    }
  }
  // A float's value is given by its bits.
  const bool narrow = dtype_bytes(dtype) < 4;
  return !narrow || check.in_dtype("value", params.value(), dtype);
}

void fill_axes(const Shape& input, const Shape& output, const format::PadParams& params, PadArgs& args) {
  args.rank = 0;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const uint32_t before = params.before()->Get(axis);
    if (args.rank > 0 && input[axis] == output[axis]) {
      const uint32_t last = args.rank - 1;
      args.input_extents[last] *= input[axis];
      args.output_extents[last] *= output[axis];
      args.before[last] *= input[axis];
    } else {
      args.input_extents[args.rank] = input[axis];
      args.output_extents[args.rank] = output[axis];
      args.before[args.rank] = before;
      ++args.rank;
    }
  }
  if (args.rank == 0) args.rank = 1;  // a scalar: one element, as the defaults say
}

qplan_status bind(const StepView& step, bool checked, PadArgs& args, Error* error) {
  const StepCheck check(step, "pad", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::PadParams& params = check.params_as<format::PadParams>();
  const Dtype dtype = step.input(0).dtype;
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.element_bytes = dtype_bytes(dtype);
  args.value = static_cast<uint64_t>(int64_t{params.value()});
  fill_axes(shape_of(step.input(0)), shape_of(step.output(0)), params, args);
  uint64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < args.rank; ++axis) rows *= args.output_extents[axis];
  if (checked && !check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX))
    return check.status();
  args.rows = static_cast<uint32_t>(rows);
  return QPLAN_OK;
}

uint64_t work(const PadArgs& args) {
  return saturating_product(args.rows, args.output_extents[args.rank - 1], args.element_bytes);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(PadArgs, name, isa),
    QPLAN_PAD_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(PadArgs, pad_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kPadFamily =
    make_family<PadArgs, bind, never_in_place, work>(kKernel_pad, "pad", kVariants);
constexpr KernelFamily kPadFamilyReference =
    make_family<PadArgs, bind, never_in_place, work>(kKernel_pad, "pad", kReference);

}  // namespace qplan
