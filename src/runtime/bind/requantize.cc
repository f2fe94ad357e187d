#include "kernels/requantize/requantize.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

// Without constants the parameters hold the one multiplier or scale. Under F32E the scales stand where the
// multipliers do, and there are no shifts.
enum Input : uint32_t { kInput, kMultiplier, kShift, kNumInputs, kScale = kMultiplier };

bool is_per_channel(const StepView& step) { return step.num_inputs() != 1; }

uint32_t num_inputs(const StepView& step) {
  if (!is_per_channel(step)) return 1;
  return step.step->params_as_RequantizeParams()->contract() == format::Contract_F32E ? kShift : kNumInputs;
}

bool check_multipliers(const StepCheck& check, const StepView& step, const Shape& input) {
  const auto& p = check.params_as<format::RequantizeParams>();
  const bool is_f32e = p.contract() == format::Contract_F32E;
  if (!is_per_channel(step)) {
    return is_f32e ? check.scale("scale", p.scale()) : check.multiplier("output", p.multiplier(), p.shift());
  }
  if (p.axis() >= input.rank)
    return check.fail() << "axis " << p.axis() << " of an input of rank " << input.rank;
  return check.multipliers(p.contract(), kMultiplier, input[p.axis()]);
}

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.params(format::KernelParams_RequantizeParams)) return false;
  const auto& p = check.params_as<format::RequantizeParams>();
  if (!check.contract(p.contract(), kContractsAccumulator) || !check.arity(num_inputs(step), 1) ||
      !check.input(kInput, "input", kDtypesQuantized | dtype_bit(Dtype::kS32), kAnyRank, &input) ||
      !check.output(0, "output",
                    kDtypesQuantized | (p.contract() == format::Contract_TFL2 ? dtype_bit(Dtype::kS32) : 0),
                    kAnyRank, &output) ||
      !check_multipliers(check, step, input)) {
    return false;
  }
  const Dtype output_dtype = step.output(0).dtype;
  if (p.contract() == format::Contract_F32E && step.input(0).dtype != Dtype::kS32) {
    return check.fail_input(0, "input")
           << "has " << dtype_name(step.input(0).dtype) << ", expected int32 under contract F32E";
  }
  if (!check.in_dtype("input zero point", p.input_zero_point(), step.input(0).dtype) ||
      !check.in_dtype("output zero point", p.output_zero_point(), output_dtype) ||
      !check.clamp(p.clamp_min(), p.clamp_max(), output_dtype)) {
    return false;
  }
  if (!check.float_epilogue<format::RequantizeParams>(format::TableFields(&p), p.contract(),
                                                      is_per_channel(step) ? input[p.axis()] : 1)) {
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
  fill_float_epilogue<format::RequantizeParams>(format::TableFields(&p), p.contract(), args);
  args.contract = contract_of(p.contract());
  if (is_per_channel(step)) {
    const Shape input = shape_of(step.input(kInput));
    args.channels = input[p.axis()];
    args.inner = args.count / (axis_rows(input, p.axis()) * args.channels);
    if (args.contract == Contract::kF32e) {
      args.scales = static_cast<const float*>(step.input_data(kScale));
    } else {
      args.multipliers = static_cast<const int32_t*>(step.input_data(kMultiplier));
      args.shifts = static_cast<const int32_t*>(step.input_data(kShift));
    }
  }
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.input_dtype = step.input(0).dtype;
  args.output_dtype = step.output(0).dtype;
  return QPLAN_OK;
}

// Each output is written after the input at its place was read. Where output and input differ in size, the
// work item of another worker may still have to read what this one would overwrite.
bool in_place(const StepView& step, uint32_t, uint32_t input) {
  return input == kInput && dtype_bytes(step.input(kInput).dtype) == dtype_bytes(step.output(0).dtype);
}

uint64_t work(const RequantizeArgs& args) { return args.count; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(RequantizeArgs, name, isa),
    QPLAN_REQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(RequantizeArgs, requantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kRequantizeFamily =
    make_family<RequantizeArgs, bind, in_place, work>(kKernel_requantize, "requantize", kVariants);
constexpr KernelFamily kRequantizeFamilyReference =
    make_family<RequantizeArgs, bind, in_place, work>(kKernel_requantize, "requantize", kReference);

}  // namespace qplan
