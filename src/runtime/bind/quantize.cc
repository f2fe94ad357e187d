#include "kernels/quantize/quantize.h"

#include <float.h>

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

static_assert(static_cast<int>(QuantizeRounding::kDivAway) == format::QuantizeRule_DIV_AWAY &&
                  static_cast<int>(QuantizeRounding::kDivEven) == format::QuantizeRule_DIV_EVEN &&
                  static_cast<int>(QuantizeRounding::kMulEven) == format::QuantizeRule_MUL_EVEN,
              "the plan's numbers");

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_QuantizeParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", kDtypesQuantized, kAnyRank, &output)) {
    return false;
  }
  if (input != output && !moves_channels(input, output)) {
    return check.fail_output(0, "output")
           << "has another shape than the input, and not that of the input with axis 1 as the last one";
  }
  const format::QuantizeParams& params = check.params_as<format::QuantizeParams>();
  if (params.rule() > format::QuantizeRule_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "rule " << static_cast<uint32_t>(params.rule()) << " is unknown to this runtime; update it";
  }
  if (!(params.scale() > 0.0f && params.scale() <= FLT_MAX)) {
    return check.fail() << "scale is not a positive finite number";
  }
  return check.in_dtype("zero_point", params.zero_point(), step.output(0).dtype);
}

qplan_status bind(const StepView& step, bool checked, QuantizeArgs& args, Error* error) {
  const StepCheck check(step, "quantize", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::QuantizeParams& params = check.params_as<format::QuantizeParams>();
  args.dtype = step.output(0).dtype;
  args.rule = static_cast<QuantizeRounding>(params.rule());
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = step.output_data(0);
  const Shape input = shape_of(step.input(0));
  args.elements = input.elements();
  args.scale = params.scale();
  args.zero_point = params.zero_point();
  // With one channel, or one pixel, the order stays.
  if (moves_channels(input, shape_of(step.output(0)))) {
    args.channels = input[1];
    args.plane_stride = args.elements / input[0] / input[1];
  }
  return QPLAN_OK;
}

// Rows of images: one axis of elements, or parts of planes.
bool accepts_rows(const StepView& step, uint32_t input) {
  return input == 0 && shape_of(step.output(0)).rank == 4;
}

bool reads_planes(const StepView& step) {
  return moves_channels(shape_of(step.input(0)), shape_of(step.output(0)));
}

RowWindow row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_rows(const StepView& step, const CutRows& rows, void* storage) {
  QuantizeArgs& args = *static_cast<QuantizeArgs*>(storage);
  const Shape shape = shape_of(step.output(0));
  args.input = static_cast<const float*>(rows.from);
  args.output = rows.to;
  args.elements = uint64_t{rows.output.end - rows.output.begin} * shape[2] * shape[3];
}

constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows, reads_planes};

uint64_t work(const QuantizeArgs& args) { return args.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(QuantizeArgs, name, isa),
    QPLAN_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(QuantizeArgs, quantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kQuantizeFamily =
    make_family<QuantizeArgs, bind, never_in_place, work>(kKernel_quantize, "quantize", kVariants, &kRowCut);
constexpr KernelFamily kQuantizeFamilyReference =
    make_family<QuantizeArgs, bind, never_in_place, work>(kKernel_quantize, "quantize", kReference, &kRowCut);

}  // namespace qplan
