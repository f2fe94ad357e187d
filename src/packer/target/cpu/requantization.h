// Multipliers of convolutions and fully connected layers, formed as the model's source forms them, and
// constants in the kernels' layouts.
#ifndef QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
#define QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_

#include <cstdint>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/packer/target/cpu/lowering.h"

namespace qplan::target::cpu {

// real as a multiplier that kernels accept; refuses what is too large.
QuantizedMultiplier checked_multiplier(double real);

// A layer of weights: qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?
struct WeightedLayer {
  const ir::Node* product = nullptr;
  const ir::Node* bias_add = nullptr;  // null: no bias
  const ir::Node* requantize = nullptr;
  Clamp clamp = {};
  ir::ValueId result;
};

// The nodes when the pattern begins at `node`, which is a `product`; empty when not.
Chain match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product);
WeightedLayer read_weighted_layer(const Lowering& lowering, const Chain& chain);

// Weights [num_o, num_k], int8, in their layout, with the zero point to go with them.
struct PackedWeights {
  TensorId tensor;
  int32_t zero_point;
};
// value: O first, the other axes in the order of k; int8, or uint8 less 128.
PackedWeights pack_weights(Lowering& lowering, ir::ValueId value, int32_t zero_point, uint16_t layout,
                           uint64_t num_o, uint64_t num_k);

// Tensors of bias, multiplier and shift, one entry per channel, padded as the layout wants it; appended to
// inputs.
void append_channel_constants(Lowering& lowering, const WeightedLayer& layer, uint16_t layout, uint64_t num_o,
                              std::vector<TensorId>* inputs);

}  // namespace qplan::target::cpu

#endif  // QPLAN_SRC_PACKER_TARGET_CPU_REQUANTIZATION_H_
