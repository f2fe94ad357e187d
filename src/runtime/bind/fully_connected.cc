#include "kernels/fully_connected/fully_connected.h"

#include <stddef.h>

#include "format/table_fields.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

using layer::kBias;
using layer::kInput;
using layer::kWeights;
using layer::num_inputs;
using layer::output_dtypes;

// What `fill` relies on.
bool check_operands(const StepCheck& check, const StepView& step) {
  if (!check.params(format::KernelParams_FullyConnectedParams)) return false;
  const auto contract = static_cast<format::Contract>(
      check.params_fields().scalar<uint8_t>(format::FullyConnectedParams::VT_CONTRACT));
  if (!check.contract(contract, kContractsLayer) || !check.arity(num_inputs(contract), 1) ||
      !check.input(kInput, "input", kDtypesQuantized, kAnyRank, nullptr) ||
      !check.output(0, "output", output_dtypes(contract, step.input_dtype(kInput)), kAnyRank, nullptr)) {
    return false;
  }
  if (step.rank(step.step->inputs()->Get(kInput)) >= 1 && step.rank(step.step->outputs()->Get(0)) >= 1)
    return true;
  return check.fail() << "input and output must have an axis of channels";
}

void fill(const StepView& step, FullyConnectedArgs& __restrict args) {
  using Params = format::FullyConnectedParams;
  const format::TableFields fields(step.step);
  const format::TableFields p(fields.table(format::KernelStep::VT_PARAMS));
  const uint32_t* inputs = fields.vector<uint32_t>(format::KernelStep::VT_INPUTS)->data();
  const uint32_t input = inputs[kInput];
  const uint32_t output = fields.vector<uint32_t>(format::KernelStep::VT_OUTPUTS)->Get(0);
  args.input = step.address(input);
  layer::fill_constants<Params>(step, inputs, p, args);
  args.output = step.address(output);
  args.rows = static_cast<uint32_t>(rows_of(step, input));
  args.input_c = columns_of(step, input);
  args.output_c = columns_of(step, output);
  fill_words<Params::VT_INPUT_ZERO_POINT, Params::VT_CLAMP_MAX,
             offsetof(FullyConnectedArgs, input_zero_point), offsetof(FullyConnectedArgs, clamp_max)>(p,
                                                                                                      args);
  args.input_dtype = step.dtype(input);
  args.output_dtype = step.dtype(output);
  args.has_wide_bias = step.dtype(inputs[kBias]) == Dtype::kS64;
  args.weights_layout = p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT);
  // Kernels of 64-bit Arm alone read it.
  if constexpr (sizeof(void*) > 4) args.int16_groups = p.scalar<uint8_t>(Params::VT_INT16_GROUPS);
  args.schedule = fields.scalar<uint64_t>(format::KernelStep::VT_SCHEDULE);
}

bool check_step(const StepCheck& check, const StepView& step, const FullyConnectedArgs& a) {
  const format::Contract contract = contract_of(a.contract);
  if (a.input_dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(contract, a.input_dtype) ||
       !check.range("weights layout of int16", a.weights_layout, kLayout_ohwi, kLayout_ohwi))) {
    return false;
  }
  if (!check.in_dtype("input zero point", a.input_zero_point, a.input_dtype) ||
      !check.in_dtype("weights zero point", a.weights_zero_point, Dtype::kS8) ||
      !check.layer_output(contract, a.output_dtype, a.output_zero_point, a.clamp_min, a.clamp_max)) {
    return false;
  }
  const uint64_t input_rows = rows_of(step, step.step->inputs()->Get(kInput));
  const uint64_t output_rows = rows_of(step, step.step->outputs()->Get(0));
  if (input_rows != output_rows) {
    return check.fail() << "input rows " << input_rows << " are not the output's " << output_rows;
  }
  const uint64_t work_items = input_rows * ((a.output_c + 15) / 16);
  if (work_items > INT32_MAX)
    return check.fail() << input_rows << " rows of " << a.output_c << " outputs are too many";
  const uint64_t channels = layout_channels(a.weights_layout, a.output_c);
  return check.layout(a.weights_layout, kLayout_ohwi, kLayout_o16k4, kLayout_o4k4, kLayout_o4h4,
                      kLayout_o4k16, kLayout_o16r8) &&
         check.constant(kWeights, "weights", Dtype::kS8,
                        layout_bytes(a.weights_layout, a.output_c, a.input_c)) &&
         check.zeros_after_taps(kWeights, a.weights_layout, {1, 1, a.input_c}) &&
         check.channel_constants(contract, kBias, channels, a.input_dtype == Dtype::kS16) &&
         check.float_epilogue<format::FullyConnectedParams>(check.params_fields(), contract, channels);
}

qplan_status bind(const StepView& step, bool check, FullyConnectedArgs& args, Error* error) {
  const StepCheck checker(step, "fully_connected", error);
  if (check && !check_operands(checker, step)) return checker.status();
  fill(step, args);
  return check && !check_step(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
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
