// Channels between two layers of weights on which no output of the function depends: the layers that read
// them get the same byte of them whatever the function's inputs are, or multiply them by zero.
//
// A channel's range follows from the ranges of the channels that its layer reads, by interval arithmetic on
// the integers of the contract: an accumulator lies between the sums of its least and of its largest
// products, and a requantisation keeps order. Trained networks have such channels (ReLU6 cuts what is always
// below 0), most of them in the first layers, where they cost most.
#ifndef QPLAN_SRC_PACKER_PASSES_DEAD_CHANNELS_H_
#define QPLAN_SRC_PACKER_PASSES_DEAD_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/layer/quantized_layer.h"

namespace qplan::passes {

// What an element of a channel can be.
struct ChannelRange {
  int32_t min = 0, max = 0;
  bool is_constant() const { return min == max; }
};

// qnn.conv2d or qnn.dense on 8 bits with constant weights, and what follows it up to the clip, each node read
// by the next one alone.
struct WeightedLayer {
  layer::QuantizedLayer numbers;
  ir::ValueId input;   // the product's data, channels last
  ir::ValueId output;  // of the last node
  bool is_depthwise = false;
  bool has_output_ranges = false;  // its outputs are 8 bits under a contract whose integers are known

  const ir::Node& product() const { return *numbers.nodes.product; }
  size_t in_channels() const { return static_cast<size_t>(numbers.geometry.in_c); }
  size_t out_channels() const { return static_cast<size_t>(numbers.geometry.out_c); }
};

class DeadChannels {
 public:
  // The function must outlive the result. Linear in its nodes and weights. As many dead channels go as leave
  // a multiple of `multiple`, which is not 0.
  DeadChannels(const ir::Function& function, size_t multiple);

  const std::vector<WeightedLayer>& layers() const { return layers_; }
  // The channels that stay of a layer's input or output, ascending; empty: all.
  std::span<const size_t> kept(ir::ValueId tensor) const;
  // For each output channel of the layer that stays, what the channels that go from its input add to its
  // accumulators, modulo 2^32; empty where they add nothing.
  std::vector<int32_t> contributions(const WeightedLayer& layer) const;

 private:
  void find_layers();
  void find_ranges();
  void join_tensors();
  void choose_channels();
  uint32_t group_of(ir::ValueId tensor) const;
  std::vector<size_t> kept_outputs(const WeightedLayer& layer) const;
  std::vector<ChannelRange> input_ranges(const WeightedLayer& layer) const;
  std::vector<bool> channels_without_effect(const WeightedLayer& layer) const;

  const ir::Function& function_;
  size_t multiple_;
  std::vector<WeightedLayer> layers_;
  std::vector<std::vector<ChannelRange>> ranges_;  // by value; empty: all that the dtype has
  std::vector<uint32_t> parent_;                   // by value: tensors that keep the same channels
  std::vector<bool> is_fixed_;                     // by value, of groups by root: all channels stay
  std::vector<std::vector<size_t>> kept_;          // by value, of groups by root
};

}  // namespace qplan::passes

#endif  // QPLAN_SRC_PACKER_PASSES_DEAD_CHANNELS_H_
