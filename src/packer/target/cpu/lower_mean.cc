// qnn.mean: family mean.
#include <algorithm>
#include <bit>

#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/mean_multiplier.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kInputScale, kInputZeroPoint, kOutputScale, kOutputZeroPoint };

}  // namespace

QuantizedMultiplier mean_multiplier(float input_scale, float output_scale, uint64_t count) {
  const QuantizedMultiplier factor = rescale(format::Contract_TFL2, input_scale, output_scale).quantized;
  const int32_t room = std::min({static_cast<int32_t>(std::bit_width(count)) - 1, 32, 31 + factor.shift});
  const uint64_t significand = static_cast<uint64_t>(factor.multiplier) << room;
  return {static_cast<int32_t>(significand / count), factor.shift - room};
}

Chain match_mean(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "qnn.mean") ? Chain{node} : Chain{};
}

void lower_mean(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::TensorType& input = lowering.type(node.operands[kData]);
  const format::Contract contract = contract_of(node, {format::Contract_TFL2, format::Contract_F32E});
  uint32_t axes = 0;
  uint64_t count = 1;
  for (const int64_t axis : op::normalized_axes(op::attr_ints(node, "axis"), input.shape.size())) {
    axes |= uint32_t{1} << axis;
    count *= static_cast<uint64_t>(input.shape[static_cast<size_t>(axis)]);
  }
  const int32_t input_zero_point =
      lowering.zero_point(node.operands[kInputZeroPoint], "the input's zero point");
  const int32_t output_zero_point =
      lowering.zero_point(node.operands[kOutputZeroPoint], "the output's zero point");
  const float input_scale = lowering.scale(node.operands[kInputScale], "the input's scale");
  const float output_scale = lowering.scale(node.operands[kOutputScale], "the output's scale");
  Rescale scaling;
  if (contract == format::Contract_F32E) {
    scaling.scale = input_scale / (output_scale * static_cast<float>(count));
  } else {
    scaling.quantized = mean_multiplier(input_scale, output_scale, count);
  }

  ProgramStep step = make_step(kKernel_mean, node);
  step.inputs = {lowering.tensor(node.operands[kData])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = MeanParams{
      .contract = contract,
      .axes = axes,
      .input_zero_point = input_zero_point,
      .output_zero_point = output_zero_point,
      .output_multiplier = scaling.quantized.multiplier,
      .output_shift = scaling.quantized.shift,
      .scale = scaling.scale,
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
