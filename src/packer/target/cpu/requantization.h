// How real scales become the parameters of steps, contract by contract, and constants in the kernels'
// layouts.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

// The scales of a rescaling as a step holds them: multiplier and shift under tfl2 and tfl1, `scale` under
// f32e.
struct Rescale {
  QuantizedMultiplier quantized = {};
  float scale = 0.0f;
};
// The multiplier of one quotient, divided as the contract divides: in double, or in float32.
Rescale rescale(format::Contract contract, float input_scale, float output_scale);

// A layer with weights: qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?; without the last
// two where something else reads the accumulators too: then they are the result, under contract ACC32. The
// nodes when the pattern begins at `node`, which is a `product`; empty when not.
NodeSequence match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product);
layer::QuantizedLayer read_weighted_layer(const Lowering& lowering, const NodeSequence& sequence);
// What no kernel takes of its weights, bias, scales and zero points; "" where they take all. The functions
// below expect that, and that the layout is canonical.
std::string violation_of(const layer::QuantizedLayer& layer);

// Weights [num_o, num_k], int8, in their layout, with the zero point to go with them.
struct PackedWeights {
  TensorId tensor;
  int32_t zero_point;
  std::shared_ptr<const std::vector<uint8_t>> bytes;
};
// Groups of a convolution that become one, `merged` at a time: each output channel then has weights for the
// input channels of all of them, the zero point where they are none of its own.
struct GroupMerge {
  uint64_t merged = 1;
  uint64_t group_o = 1;  // output channels of a group
  uint64_t group_c = 1;  // input channels
};

// As int8: uint8 less 128.
PackedWeights pack_weights(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                           const LayoutWindow& window, const GroupMerge& merge = {});

// The contracts that layers with weights are computed under, named by their requantize; ACC32 without one.
format::Contract layer_contract(const layer::QuantizedLayer& layer);

// One entry per channel, under tfl2 and tfl1. Refuses what is too large.
std::vector<QuantizedMultiplier> channel_multipliers(const layer::QuantizedLayer& layer);

// Tensors of bias, multiplier and shift, under f32e of bias and scale, under acc32 of bias, one entry per
// channel, padded as the layout wants it; appended to inputs.
void append_channel_constants(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                              std::vector<TensorId>* inputs);

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

// The float epilogues of a step's channels (format/README.md, "Float requantisation"): what prove.h proves
// for the accumulators that a layer's weights and input can make.

// FloatEpilogue_NONE where the layout keeps channels apart (kLayout_ohwi: no variant reads it by vectors),
// the contract computes in float anyway, or no group of channels has a proof.
FloatEpilogues prove_float_epilogues(const layer::QuantizedLayer& layer, uint16_t layout);

// Float requantisation for a qnn.requantize with `scales` and an output of this zero point and clamp. It is
// proved for all 8-bit inputs, or for the accumulators that the layer with weights can make;
// FloatEpilogue_NONE where they come from elsewhere, and for targets without vectors.
FloatEpilogues prove_float_epilogues(const Lowering& lowering, const ir::Node& requantize,
                                     const AccumulatorScales& scales, Clamp clamp, format::Contract contract);

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
