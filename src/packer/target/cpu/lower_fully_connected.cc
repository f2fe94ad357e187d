// qdense: family fully_connected.
#include "src/packer/target/cpu/families.h"
#include "src/packer/target/cpu/float_forms.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
namespace {

enum Operand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint };

}  // namespace

Chain match_qdense(const Lowering& lowering, uint32_t node) {
  return match_weighted_layer(lowering, node, "qnn.dense");
}

void lower_qdense(Lowering& lowering, const Chain& chain) {
  const WeightedLayer layer = read_weighted_layer(lowering, chain);
  const ir::Node& dense = *layer.product;
  const ir::TensorType& input = lowering.type(dense.operands[kData]);
  const ir::TensorType& weight = lowering.type(dense.operands[kWeight]);
  const ir::TensorType& output = lowering.type(layer.result);
  const bool is_acc32 = layer.requantize == nullptr;
  if (!is_8_bit(input.dtype) || (!is_8_bit(output.dtype) && !is_acc32)) {
    refuse(ir::to_string(input.dtype) + " to " + ir::to_string(output.dtype) +
           ", the kernels take 8 bits to 8 bits");
  }
  const uint16_t layout = lowering.profile().fully_connected_layout;
  const auto num_o = static_cast<uint64_t>(weight.shape[0]);
  const auto num_k = static_cast<uint64_t>(weight.shape[1]);
  const int32_t input_zero_point =
      lowering.zero_point(dense.operands[kInputZeroPoint], "the input's zero point");
  const int32_t kernel_zero_point =
      lowering.zero_point(dense.operands[kKernelZeroPoint], "the weights' zero point");
  const int32_t output_zero_point =
      is_acc32 ? 0 : lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  const format::Contract contract = layer_contract(layer);

  ProgramStep step = make_step(kKernel_fully_connected, dense);
  const PackedWeights weights =
      pack_weights(lowering, dense.operands[kWeight], kernel_zero_point, layout, num_o, {1, 1, num_k});
  step.inputs = {lowering.tensor(dense.operands[kData]), weights.tensor};
  append_channel_constants(lowering, layer, contract, layout, num_o, &step.inputs);
  const LayerInput layer_input = {input.dtype, input_zero_point, dense.operands[kWeight], kernel_zero_point};
  FloatForms forms = prove_float_forms(lowering, layer, layer_input, contract, layout, num_o, num_k);
  step.outputs = {lowering.define(layer.result)};
  step.macs = static_cast<uint64_t>(output.num_elements()) * num_k;
  step.params = FullyConnectedParams{
      .contract = contract,
      .weights_layout = layout,
      .input_zero_point = input_zero_point,
      .weights_zero_point = weights.zero_point,
      .output_zero_point = output_zero_point,
      .clamp_min = layer.clamp.min,
      .clamp_max = layer.clamp.max,
      .float_forms = std::move(forms),
  };
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
