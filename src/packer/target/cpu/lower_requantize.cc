// qnn.requantize of an int32 tensor, accumulators that are the result of a step among them: family
// requantize.
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/float_forms.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };

// One entry per channel: multiplier and shift, or scale.
void append_multipliers(Lowering& lowering, const std::string& name, const AccumulatorScales& scales,
                        std::vector<TensorId>* inputs) {
  if (!scales.scale.empty()) {
    inputs->push_back(add_values<float>(lowering, ir::kFloat32, scales.scale, name + "/scale"));
    return;
  }
  std::vector<int32_t> multiplier, shift;
  for (const QuantizedMultiplier& quantized : scales.quantized) {
    multiplier.push_back(quantized.multiplier);
    shift.push_back(quantized.shift);
  }
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, multiplier, name + "/multiplier"));
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, shift, name + "/shift"));
}

}  // namespace

Chain match_requantize(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.requantize") ? with_clip(lowering, node) : Chain{};
}

void lower_requantize(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const format::Contract contract =
      contract_of(node, {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
  if (!is_8_bit(lowering.type(node.results[0]).dtype)) refuse("the kernel's output is int8 or uint8");
  const Clamp clamp = chain_clamp(lowering, chain);
  const int32_t input_zero_point =
      lowering.zero_point(node.operands[kInputZeroPoint], "the input's zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  const AccumulatorScales scales = accumulator_scales(lowering, node, contract);
  const bool is_f32e = contract == format::Contract_F32E;
  // One for all stands in the parameters, more are constants.
  const bool per_channel = (is_f32e ? scales.scale.size() : scales.quantized.size()) != 1;
  const QuantizedMultiplier one = per_channel || is_f32e ? QuantizedMultiplier{} : scales.quantized.front();
  const float one_scale = per_channel || !is_f32e ? 0.0f : scales.scale.front();
  const uint32_t axis = per_channel ? scales.axis : 0;

  ProgramStep step = make_step(kKernel_requantize, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  if (per_channel) append_multipliers(lowering, node.name, scales, &step.inputs);
  step.outputs = {lowering.define(chain_result(lowering, chain))};
  step.params = RequantizeParams{
      .contract = contract,
      .input_zero_point = input_zero_point,
      .output_zero_point = output_zero_point,
      .multiplier = one.multiplier,
      .shift = one.shift,
      .clamp_min = clamp.min,
      .clamp_max = clamp.max,
      .scale = one_scale,
      .axis = axis,
      .float_forms = prove_float_forms(lowering, node, scales, clamp, contract),
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
