#include "kernels/fully_connected/fully_connected.h"

#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

// Under F32E the scales stand where the multipliers do, and there are no shifts; under ACC32 there is
// neither.
enum Input : uint32_t { kInput, kWeights, kBias, kMultiplier, kShift, kNumInputs, kScale = kMultiplier };

uint32_t num_inputs(format::Contract contract) {
  if (contract == format::Contract_ACC32) return kMultiplier;
  return contract == format::Contract_F32E ? kShift : kNumInputs;
}

uint32_t output_dtypes(format::Contract contract, Dtype input) {
  if (input == Dtype::kS16) return dtype_bit(Dtype::kS16);
  return contract == format::Contract_ACC32 ? dtype_bit(Dtype::kS32) : kDtypesU8S8;
}

// The last extent; the others together are the rows.
uint32_t columns(const Shape& shape) { return shape[shape.rank - 1]; }
// The columns of a tensor that has been checked.
uint32_t columns(const StepView& step, uint32_t tensor) {
  return static_cast<uint32_t>(step.extents(tensor)[step.rank(tensor) - 1]);
}
uint32_t rows(const StepView& step, uint32_t tensor) {
  const uint32_t rank = step.rank(tensor);
  const int64_t* extents = step.extents(tensor);
  uint32_t product = 1;
  for (uint32_t i = 0; i + 1 < rank; ++i) product *= static_cast<uint32_t>(extents[i]);
  return product;
}

bool check_step(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.params(format::KernelParams_FullyConnectedParams)) return false;
  const auto& p = check.params_as<format::FullyConnectedParams>();
  if (!check.contract(p.contract(), kContractsLayer) || !check.arity(num_inputs(p.contract()), 1) ||
      !check.input(kInput, "input", kDtypesQuantized, kAnyRank, &input) ||
      !check.output(0, "output", output_dtypes(p.contract(), step.input(kInput).dtype), kAnyRank, &output)) {
    return false;
  }
  const Dtype input_dtype = step.input(kInput).dtype, output_dtype = step.output(0).dtype;
  if (input_dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(p.contract(), input_dtype) ||
       !check.range("weights layout of int16", p.weights_layout(), kLayout_ohwi, kLayout_ohwi))) {
    return false;
  }
  if (!check.in_dtype("input zero point", p.input_zero_point(), input_dtype) ||
      !check.in_dtype("weights zero point", p.weights_zero_point(), Dtype::kS8) ||
      !check.layer_output(p.contract(), output_dtype, p.output_zero_point(), p.clamp_min(), p.clamp_max())) {
    return false;
  }
  if (input.rank < 1 || output.rank < 1)
    return check.fail() << "input and output must have an axis of channels";
  const uint64_t rows = input.elements() / columns(input), output_rows = output.elements() / columns(output);
  if (rows != output_rows) {
    return check.fail() << "input rows " << rows << " are not the output's " << output_rows;
  }
  const uint64_t work_items = rows * ((uint64_t{columns(output)} + 15) / 16);
  if (work_items > INT32_MAX)
    return check.fail() << rows << " rows of " << columns(output) << " outputs are too many";
  return check.layout(p.weights_layout(), kLayout_ohwi, kLayout_o16k4, kLayout_o4k4, kLayout_o4h4,
                      kLayout_o4k16, kLayout_o16r8) &&
         check.constant(kWeights, "weights", Dtype::kS8,
                        layout_bytes(p.weights_layout(), columns(output), columns(input))) &&
         check.zeros_after_taps(kWeights, p.weights_layout(), {1, 1, columns(input)}) &&
         check.channel_constants(p.contract(), kBias, layout_channels(p.weights_layout(), columns(output)),
                                 input_dtype == Dtype::kS16) &&
         check.float_epilogue(p, layout_channels(p.weights_layout(), columns(output)));
}

qplan_status bind(const StepView& step, bool check, FullyConnectedArgs& __restrict args, Error* error) {
  if (check) {
    const StepCheck checker(step, "fully_connected", error);
    if (!check_step(checker, step)) return checker.status();
  }
  const format::FullyConnectedParams& p = *step.step->params_as_FullyConnectedParams();
  const uint32_t* inputs = step.step->inputs()->data();
  const uint32_t input = inputs[kInput], output = step.step->outputs()->Get(0);
  args.input = step.address(input);
  args.weights = static_cast<const int8_t*>(step.address(inputs[kWeights]));
  args.bias = static_cast<const int32_t*>(step.address(inputs[kBias]));
  args.contract = contract_of(p.contract());
  if (args.contract == Contract::kF32e) {
    args.scale = static_cast<const float*>(step.address(inputs[kScale]));
  } else if (args.contract != Contract::kAcc32) {
    args.multiplier = static_cast<const int32_t*>(step.address(inputs[kMultiplier]));
    args.shift = static_cast<const int32_t*>(step.address(inputs[kShift]));
  }
  fill_float_epilogue(p, args);
  args.output = step.address(output);
  args.rows = rows(step, input);
  args.input_c = columns(step, input);
  args.output_c = columns(step, output);
  args.input_zero_point = p.input_zero_point();
  args.weights_zero_point = p.weights_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.input_dtype = step.dtype(input);
  args.output_dtype = step.dtype(output);
  args.has_wide_bias = step.dtype(inputs[kBias]) == Dtype::kS64;
  args.weights_layout = p.weights_layout();
  args.schedule = step.step->schedule();
  return QPLAN_OK;
}

uint64_t work(const FullyConnectedArgs& args) {
  return saturating_product(args.rows, args.output_c, uint64_t{args.input_c} + 1);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(FullyConnectedArgs, name, isa), kFullyConnectedKnobs),
    QPLAN_FULLY_CONNECTED_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(FullyConnectedArgs, name, isa), kFullyConnectedKnobs),
constexpr KernelVariant kOptimized[] = {QPLAN_DOT_VARIANTS(fully_connected)
                                            QPLAN_SCALAR_VARIANTS(fully_connected)};
#undef QPLAN_VARIANT
constexpr KernelVariant kForm[] = {
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_dsp_form, QPLAN_ISA_DSP)};

}  // namespace

constexpr KernelFamily kFullyConnectedFamily = make_family<FullyConnectedArgs, bind, never_in_place, work>(
    kKernel_fully_connected, "fully_connected", kVariants);
constexpr KernelFamily kFullyConnectedFamilyReference =
    make_family<FullyConnectedArgs, bind, never_in_place, work>(kKernel_fully_connected, "fully_connected",
                                                                kReference);
constexpr KernelFamily kFullyConnectedFamilyOptimized =
    make_family<FullyConnectedArgs, bind, never_in_place, work>(kKernel_fully_connected, "fully_connected",
                                                                kOptimized);
// Cascades have none of these as layers.
constexpr KernelFamily kFullyConnectedFamilyForm =
    make_family<FullyConnectedArgs, bind, never_in_place, work>(kKernel_fully_connected, "fully_connected",
                                                                kForm);

}  // namespace qplan
