#include "kernels/common/family.h"
#include "kernels/common/step_check.h"
#include "kernels/requantize/requantize.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_RequantizeParams) ||
      !check.input(0, "input", kDtypesU8S8 | dtype_bit(Dtype::kS32), kAnyRank, &input) ||
      !check.output(0, "output", kDtypesU8S8, kAnyRank, &output)) {
    return false;
  }
  const auto& p = check.params_as<format::RequantizeParams>();
  const Dtype output_dtype = dtype_of(step.output(0));
  if (!check.contract(p.contract(), kContractsAccumulator)) return false;
  if (p.contract() != format::Contract_F32E) {
    if (!check.multiplier("output", p.multiplier(), p.shift())) return false;
  } else if (!check.scale("scale", p.scale())) {
    return false;
  } else if (dtype_of(step.input(0)) != Dtype::kS32) {
    return check.fail_input(0, "input")
           << "has " << dtype_name(dtype_of(step.input(0))) << ", expected int32 under contract F32E";
  }
  if (!check.in_dtype("input zero point", p.input_zero_point(), dtype_of(step.input(0))) ||
      !check.in_dtype("output zero point", p.output_zero_point(), output_dtype) ||
      !check.clamp(p.clamp_min(), p.clamp_max(), output_dtype)) {
    return false;
  }
  if (input != output) return check.fail() << "input and output differ in shape";
  if (input.elements() / kRequantizeChunk >= INT32_MAX) {
    return check.fail() << input.elements() << " elements are too many";
  }
  return true;
}

qplan_status bind(const StepView& step, bool check, RequantizeArgs& args, Error* error) {
  if (check) {
    const StepCheck checker(step, "requantize", error);
    if (!check_step(checker, step)) return checker.status();
  }
  const format::RequantizeParams& p = *step.step->params_as_RequantizeParams();
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.count = shape_of(step.input(0)).elements();
  args.input_zero_point = p.input_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.multiplier = p.multiplier();
  args.shift = p.shift();
  args.scale = p.scale();
  args.contract = contract_of(p.contract());
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.input_dtype = dtype_of(step.input(0));
  args.output_dtype = dtype_of(step.output(0));
  return QPLAN_OK;
}

// Each output is written after the input at its place was read. With an int32 input, output and input differ
// in size: the unit of another worker may still have to read what this one would overwrite.
bool in_place(const StepView& step, uint32_t, uint32_t) { return dtype_bytes(dtype_of(step.input(0))) == 1; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(RequantizeArgs, name, isa),
#include "kernels/requantize/variants.def"
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(RequantizeArgs, requantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kRequantizeFamily =
    make_family<RequantizeArgs, bind, in_place>(kKernel_requantize, "requantize", kVariants);
constexpr KernelFamily kRequantizeFamilyReference =
    make_family<RequantizeArgs, bind, in_place>(kKernel_requantize, "requantize", kReference);

}  // namespace qplan
