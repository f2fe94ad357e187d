// How real scales become the parameters of steps, contract by contract, and constants in the kernels'
// layouts.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "kernels/layout.h"
#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

// real as a multiplier that kernels accept; refuses what is too large.
QuantizedMultiplier checked_multiplier(double real);

// The scales of a rescaling as a step holds them: multiplier and shift under tfl2 and tfl1, `scale` under
// f32e.
struct Rescale {
  QuantizedMultiplier quantized = {};
  float scale = 0.0f;
};
// The multiplier of one quotient, divided as the contract divides: in double, or in float32.
Rescale rescale(format::Contract contract, float input_scale, float output_scale);

// A layer of weights: qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?; without the last
// two where something else reads the accumulators too: then they are the result, under contract ACC32.
struct WeightedLayer {
  const ir::Node* product = nullptr;
  const ir::Node* bias_add = nullptr;    // null: no bias
  const ir::Node* requantize = nullptr;  // null: contract ACC32
  Clamp clamp = {};                      // of an 8-bit result
  ir::ValueId result;
};

// The nodes when the pattern begins at `node`, which is a `product`; empty when not.
Chain match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product);
WeightedLayer read_weighted_layer(const Lowering& lowering, const Chain& chain);
// Refuses weights, biases, scales and zero points that no layer has. Its weights are O first.
void check_weighted_layer(const Lowering& lowering, const Chain& chain);

// Weights [num_o, num_k], int8, in their layout, with the zero point to go with them.
struct PackedWeights {
  TensorId tensor;
  int32_t zero_point;
};
// Groups of a convolution that become one, `merged` at a time: each output channel then has weights for the
// input channels of all of them, the zero point where they are none of its own.
struct GroupMerge {
  uint64_t merged = 1;
  uint64_t group_o = 1;  // output channels of a group
  uint64_t group_c = 1;  // input channels
};

// value: O first, the other axes those of the window; int8, or uint8 less 128.
PackedWeights pack_weights(Lowering& lowering, ir::ValueId value, int32_t zero_point, uint16_t layout,
                           uint64_t num_o, const LayoutWindow& window, const GroupMerge& merge = {});

// The contracts that layers of weights are computed under, named by their requantize; ACC32 without one.
format::Contract layer_contract(const WeightedLayer& layer);

// One entry per channel: the bias (0 where there is none), multiplier and shift under tfl2 and tfl1.
std::vector<int32_t> channel_bias(const Lowering& lowering, const WeightedLayer& layer, uint64_t num_o);
std::vector<QuantizedMultiplier> channel_multipliers(const Lowering& lowering, const WeightedLayer& layer,
                                                     uint64_t num_o);

// Tensors of bias, multiplier and shift, under f32e of bias and scale, under acc32 of bias, one entry per
// channel, padded as the layout wants it; appended to inputs.
void append_channel_constants(Lowering& lowering, const WeightedLayer& layer, format::Contract contract,
                              uint16_t layout, uint64_t num_o, std::vector<TensorId>* inputs);

// What requantises accumulators that are a tensor: one entry for all, or one per channel.
struct AccumulatorScales {
  uint32_t axis = 0;                           // of the channels
  std::vector<QuantizedMultiplier> quantized;  // under tfl2 and tfl1
  std::vector<float> scale;                    // under f32e
};
// The scales of a qnn.requantize. Where its accumulators come from a layer with weights, in this function or
// in the body of a function that it calls, they are those that the layer and its requantize would have as one
// step.
AccumulatorScales accumulator_scales(const Lowering& lowering, const ir::Node& requantize,
                                     format::Contract contract);

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
