#include "kernels/dequantize/dequantize.h"

#include <float.h>

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_DequantizeParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesQuantized, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kF32), kAnyRank, &output)) {
    return false;
  }
  if (input != output && !moves_channels(output, input)) {
    return check.fail_output(0, "output")
           << "has another shape than the input, and not that of the input with the last axis as axis 1";
  }
  const format::DequantizeParams& params = check.params_as<format::DequantizeParams>();
  if (!(params.scale() > 0.0f && params.scale() <= FLT_MAX)) {
    return check.fail() << "scale is not a positive finite number";
  }
  return check.in_dtype("zero_point", params.zero_point(), step.input(0).dtype);
}

qplan_status bind(const StepView& step, bool checked, DequantizeArgs& args, Error* error) {
  const StepCheck check(step, "dequantize", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::DequantizeParams& params = check.params_as<format::DequantizeParams>();
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = static_cast<float*>(step.output_data(0));
  const Shape input = shape_of(step.input(0));
  args.elements = input.elements();
  args.scale = params.scale();
  args.zero_point = params.zero_point();
  // With one channel, or one pixel, the order stays.
  if (moves_channels(shape_of(step.output(0)), input)) {
    args.channels = input[input.rank - 1];
    args.pixels = args.elements / input[0] / args.channels;
  }
  return QPLAN_OK;
}

uint64_t work(const DequantizeArgs& args) { return args.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DequantizeArgs, name, isa),
    QPLAN_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(DequantizeArgs, dequantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kDequantizeFamily =
    make_family<DequantizeArgs, bind, never_in_place, work>(kKernel_dequantize, "dequantize", kVariants);
constexpr KernelFamily kDequantizeFamilyReference =
    make_family<DequantizeArgs, bind, never_in_place, work>(kKernel_dequantize, "dequantize", kReference);

}  // namespace qplan
