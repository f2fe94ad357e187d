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
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
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
  args.elements = shape_of(step.input(0)).elements();
  args.scale = params.scale();
  args.zero_point = params.zero_point();
  return QPLAN_OK;
}

uint64_t work(const QuantizeArgs& args) { return args.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(QuantizeArgs, name, isa),
    QPLAN_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(QuantizeArgs, quantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kQuantizeFamily =
    make_family<QuantizeArgs, bind, never_in_place, work>(kKernel_quantize, "quantize", kVariants);
constexpr KernelFamily kQuantizeFamilyReference =
    make_family<QuantizeArgs, bind, never_in_place, work>(kKernel_quantize, "quantize", kReference);

}  // namespace qplan
