#include "src/packer/passes/dead_channels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/numeric/requantize.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::passes {
namespace {

bool is_op(const ir::Node* node, std::string_view name) {
  return node != nullptr && node->op != nullptr && node->op->name == name;
}

// The node that alone reads each value, once; null: none, several, or the value is an output.
std::vector<const ir::Node*> only_readers(const ir::Function& function) {
  const std::vector<uint32_t> uses = ir::count_uses(function);
  std::vector<const ir::Node*> readers(function.num_values());
  for (const ir::Node& node : function.nodes()) {
    for (const ir::ValueId operand : node.operands) {
      if (uses[operand.index] == 1) readers[operand.index] = &node;
    }
  }
  return readers;
}

bool is_per_channel_bias(const ir::Function& function, const ir::Node& bias_add) {
  const size_t rank = function.type(bias_add.results[0]).shape.size();
  const int64_t axis = op::normalized_axis(op::attr_int(bias_add, "axis"), rank);
  return function.value(bias_add.operands[1]).constant != nullptr && axis == static_cast<int64_t>(rank) - 1;
}

layer::LayerNodes layer_nodes(const ir::Function& function, const ir::Node& product,
                              const std::vector<const ir::Node*>& readers) {
  layer::LayerNodes nodes;
  nodes.function = &function;
  nodes.product = &product;
  const ir::Node* next = readers[product.results[0].index];
  ir::ValueId value = product.results[0];
  const auto take = [&](const char* op, const ir::Node** taken) {
    // A node may read a layer's sums as its bias.
    if (!is_op(next, op) || !(next->operands[0] == value)) return false;
    *taken = next;
    value = next->results[0];
    next = readers[value.index];
    return true;
  };
  if (is_op(next, "nn.bias_add") && is_per_channel_bias(function, *next))
    take("nn.bias_add", &nodes.bias_add);
  if (take("qnn.requantize", &nodes.requantize)) take("clip", &nodes.clip);
  return nodes;
}

bool knows_contract(const layer::QuantizedLayer& numbers) {
  return numbers.contract == "tfl2" || numbers.contract == "tfl1" || numbers.contract == "f32e";
}

bool has_output_ranges(const layer::QuantizedLayer& numbers) {
  return numbers.nodes.requantize != nullptr && knows_contract(numbers) && numbers.requantizes_channels &&
         numbers.accumulator_zero_point && *numbers.accumulator_zero_point == 0 &&
         numbers.output_zero_point && numbers.scales && layer::is_8_bit(numbers.output_dtype) &&
         numbers.clamp.min <= numbers.clamp.max && numbers.has_bias_on_last_axis && numbers.channel_bias();
}

// nullopt: its weights, its zero points or its padding cannot be read, or its groups have several channels.
std::optional<WeightedLayer> read_layer(const ir::Function& function, const ir::Node& product,
                                        const std::vector<const ir::Node*>& readers) {
  if (!is_op(&product, "qnn.conv2d") && !is_op(&product, "qnn.dense")) return std::nullopt;
  WeightedLayer layer;
  layer.numbers = layer::read_layer(layer_nodes(function, product, readers));
  const layer::QuantizedLayer& numbers = layer.numbers;
  layer.is_depthwise = numbers.geometry.is_depthwise();
  const bool reads_one_channel =
      layer.is_depthwise ? numbers.geometry.out_c == numbers.geometry.in_c : numbers.geometry.groups == 1;
  if (!numbers.is_canonical || !numbers.weights || !numbers.input_zero_point || !numbers.padding ||
      !layer::is_8_bit(numbers.input_dtype) || numbers.accumulator_dtype() != ir::kInt32 ||
      !reads_one_channel)
    return std::nullopt;
  const layer::LayerNodes& nodes = numbers.nodes;
  // Another bias_add could stand before one that is not the layer's, but no kernel would take both.
  if (nodes.bias_add == nullptr && is_op(readers[product.results[0].index], "nn.bias_add"))
    return std::nullopt;
  const ir::Node* last = &product;
  for (const ir::Node* node : {nodes.bias_add, nodes.requantize, nodes.clip}) last = node ? node : last;
  layer.input = product.operands[0];
  layer.output = last->results[0];
  layer.has_output_ranges = has_output_ranges(numbers);
  return layer;
}

// What `Args` of requantize_channel are, of a layer's channel.
struct ChannelArguments {
  Contract contract = Contract::kTfl2;
  int32_t multiplier[1] = {}, shift[1] = {};
  float scale[1] = {};
  int32_t output_zero_point = 0, clamp_min = 0, clamp_max = 0;
};

// The outputs of one channel, whose accumulators lie between min and max.
class ChannelOutputs {
 public:
  explicit ChannelOutputs(const layer::QuantizedLayer& numbers) : numbers_(numbers) {
    args_.contract = numbers.contract == "f32e"   ? Contract::kF32e
                     : numbers.contract == "tfl1" ? Contract::kTfl1
                                                  : Contract::kTfl2;
    args_.output_zero_point = *numbers.output_zero_point;
    args_.clamp_min = numbers.clamp.min;
    args_.clamp_max = numbers.clamp.max;
  }

  ChannelRange operator()(size_t o, int64_t min, int64_t max) {
    if (!is_monotone(o, min, max)) return {args_.clamp_min, args_.clamp_max};
    return {requantize_channel(args_, static_cast<int32_t>(min), 0),
            requantize_channel(args_, static_cast<int32_t>(max), 0)};
  }

 private:
  // Sets the channel's numbers. False where sums or their multiples wrap around: then anything may come out.
  bool is_monotone(size_t o, int64_t min, int64_t max) {
    if (min < INT32_MIN || max > INT32_MAX) return false;
    if (args_.contract == Contract::kF32e) {
      args_.scale[0] = numbers_.scales->f32e(o);
      return std::isfinite(args_.scale[0]);
    }
    const QuantizedMultiplier multiplier = quantize_multiplier(numbers_.scales->multiplier(o));
    args_.multiplier[0] = multiplier.multiplier;
    args_.shift[0] = multiplier.shift;
    constexpr int32_t kMaxShift = 30;
    if (multiplier.shift <= 0) return true;
    const int64_t magnitude = std::max(-min, max);
    return multiplier.shift <= kMaxShift && magnitude <= INT32_MAX >> multiplier.shift;
  }

  const layer::QuantizedLayer& numbers_;
  ChannelArguments args_;
};

// work(c, w) for the weights of output channel o, less their zero point: w multiplies input channel c.
template <typename Work>
void for_each_weight(const WeightedLayer& layer, size_t o, const Work& work) {
  const layer::LayerWeights& weights = *layer.numbers.weights;
  const uint8_t* byte = weights.bytes->bytes().data() + o * weights.num_k;
  const bool is_signed = weights.bytes->type().dtype == ir::kInt8;
  const int32_t zero_point = weights.zero_point(o);
  const size_t per_tap = layer.is_depthwise ? 1 : layer.in_channels();
  for (size_t tap = 0; tap < weights.num_k / per_tap; ++tap) {
    for (size_t i = 0; i < per_tap; ++i, ++byte) {
      const int32_t w = is_signed ? static_cast<int8_t>(*byte) : *byte;
      work(layer.is_depthwise ? o : i, w - zero_point);
    }
  }
}

int32_t fill_of(const layer::QuantizedLayer& numbers) {
  return numbers.padding->value.value_or(*numbers.input_zero_point);
}

std::vector<ChannelRange> output_ranges(const WeightedLayer& layer, std::vector<ChannelRange> input) {
  const layer::QuantizedLayer& numbers = layer.numbers;
  if (!numbers.padding->is_empty()) {
    const int32_t fill = fill_of(numbers);
    for (ChannelRange& range : input) range = {std::min(range.min, fill), std::max(range.max, fill)};
  }
  for (ChannelRange& range : input) {
    range.min -= *numbers.input_zero_point;
    range.max -= *numbers.input_zero_point;
  }
  const layer::Part<std::vector<int32_t>> bias = numbers.channel_bias();
  ChannelOutputs outputs(numbers);
  std::vector<ChannelRange> result(layer.out_channels());
  for (size_t o = 0; o < result.size(); ++o) {
    int64_t least = (*bias)[o], most = least;
    for_each_weight(layer, o, [&](size_t c, int32_t w) {
      const int32_t at_min = w * input[c].min, at_max = w * input[c].max;
      least += std::min(at_min, at_max);
      most += std::max(at_min, at_max);
    });
    result[o] = outputs(o, least, most);
  }
  return result;
}

// Fills kept with all but dead channels, and with dead ones up to a multiple; leaves it empty where all stay.
void keep_channels(const std::vector<bool>& dead, size_t multiple, std::vector<size_t>* kept) {
  const size_t live = dead.size() - static_cast<size_t>(std::ranges::count(dead, true));
  const size_t rest = (std::max<size_t>(live, 1) + multiple - 1) / multiple * multiple;
  if (rest >= dead.size()) return;
  size_t to_drop = dead.size() - rest;
  for (size_t c = 0; c < dead.size(); ++c) {
    if (dead[c] && to_drop > 0) {
      --to_drop;
    } else {
      kept->push_back(c);
    }
  }
}

}  // namespace

DeadChannels::DeadChannels(const ir::Function& function, size_t multiple)
    : function_(function),
      multiple_(multiple),
      ranges_(function.num_values()),
      parent_(function.num_values()),
      is_fixed_(function.num_values()),
      kept_(function.num_values()) {
  find_layers();
  find_ranges();
  join_tensors();
  choose_channels();
}

void DeadChannels::find_layers() {
  const std::vector<const ir::Node*> readers = only_readers(function_);
  for (const ir::Node& node : function_.nodes()) {
    if (std::optional<WeightedLayer> layer = read_layer(function_, node, readers))
      layers_.push_back(std::move(*layer));
  }
}

std::vector<ChannelRange> DeadChannels::input_ranges(const WeightedLayer& layer) const {
  const std::vector<ChannelRange>& known = ranges_[layer.input.index];
  if (!known.empty()) return known;
  const ir::DType dtype = layer.numbers.input_dtype;
  return std::vector<ChannelRange>(layer.in_channels(),
                                   {static_cast<int32_t>(dtype.min()), static_cast<int32_t>(dtype.max())});
}

void DeadChannels::find_ranges() {
  for (const WeightedLayer& layer : layers_) {
    if (layer.has_output_ranges) ranges_[layer.output.index] = output_ranges(layer, input_ranges(layer));
  }
}

uint32_t DeadChannels::group_of(ir::ValueId tensor) const {
  uint32_t at = tensor.index;
  while (parent_[at] != at) at = parent_[at];
  return at;
}

// A depthwise convolution's output has the channels of its input. What anything but a layer makes or reads
// keeps all of them.
void DeadChannels::join_tensors() {
  std::iota(parent_.begin(), parent_.end(), 0u);
  std::vector<bool> is_made(function_.num_values());  // by a layer
  std::vector<const ir::Node*> products;
  for (const WeightedLayer& layer : layers_) {
    products.push_back(&layer.product());
    if (layer.has_output_ranges) is_made[layer.output.index] = true;
    // Layers come in the order of their nodes: the output is in no group yet, so that paths stay short.
    if (layer.is_depthwise) parent_[layer.output.index] = group_of(layer.input);
  }
  const auto fix = [&](ir::ValueId tensor) { is_fixed_[group_of(tensor)] = true; };
  for (const ir::ValueId output : function_.outputs()) fix(output);
  for (const WeightedLayer& layer : layers_) {
    if (!is_made[layer.input.index]) fix(layer.input);
    if (!layer.has_output_ranges) fix(layer.output);
  }
  auto product = products.begin();
  for (const ir::Node& node : function_.nodes()) {
    const bool is_layer = product != products.end() && *product == &node;
    if (is_layer) ++product;
    for (size_t i = is_layer ? 1 : 0; i < node.operands.size(); ++i) fix(node.operands[i]);
  }
}

// Per input channel: whether the layer computes the same without it, but for its bias.
std::vector<bool> DeadChannels::channels_without_effect(const WeightedLayer& layer) const {
  const layer::QuantizedLayer& numbers = layer.numbers;
  const std::vector<ChannelRange> ranges = input_ranges(layer);
  const bool is_padded = !numbers.padding->is_empty();
  const int32_t fill = fill_of(numbers);
  std::vector<bool> result(ranges.size());
  for (size_t c = 0; c < ranges.size(); ++c)
    result[c] = ranges[c].is_constant() && (!is_padded || ranges[c].min == fill);
  std::vector<bool> is_read(ranges.size());
  for (const size_t o : kept_outputs(layer)) {
    if (std::ranges::all_of(is_read, std::identity())) break;
    for_each_weight(layer, o, [&](size_t c, int32_t w) {
      if (w != 0) is_read[c] = true;
    });
  }
  for (size_t c = 0; c < ranges.size(); ++c) result[c] = result[c] || !is_read[c];
  return result;
}

// From the last layer to the first: what only dead channels read is dead, too.
void DeadChannels::choose_channels() {
  std::vector<std::vector<bool>> is_dead(function_.num_values());  // by root
  for (auto at = layers_.rbegin(); at != layers_.rend(); ++at) {
    const WeightedLayer& layer = *at;
    if (layer.is_depthwise) continue;
    // All layers that read a tensor of the output's group come after the one that makes the first of them.
    keep_channels(is_dead[group_of(layer.output)], multiple_, &kept_[group_of(layer.output)]);
    const uint32_t group = group_of(layer.input);
    if (is_fixed_[group]) continue;
    const std::vector<bool> here = channels_without_effect(layer);
    std::vector<bool>& dead = is_dead[group];
    if (dead.empty()) dead.resize(here.size(), true);
    for (size_t c = 0; c < here.size(); ++c) dead[c] = dead[c] && here[c];
  }
}

std::span<const size_t> DeadChannels::kept(ir::ValueId tensor) const { return kept_[group_of(tensor)]; }

std::vector<size_t> DeadChannels::kept_outputs(const WeightedLayer& layer) const {
  const std::span<const size_t> known = kept(layer.output);
  std::vector<size_t> outputs(known.begin(), known.end());
  if (!outputs.empty()) return outputs;
  outputs.resize(layer.out_channels());
  std::iota(outputs.begin(), outputs.end(), size_t{0});
  return outputs;
}

std::vector<int32_t> DeadChannels::contributions(const WeightedLayer& layer) const {
  const std::span<const size_t> rest = kept(layer.input);
  if (rest.empty() || layer.is_depthwise) return {};
  std::vector<int32_t> gone(layer.in_channels());  // what the weights multiply; 0 of channels that stay
  const std::vector<ChannelRange> ranges = input_ranges(layer);
  for (size_t c = 0; c < gone.size(); ++c) gone[c] = ranges[c].min - *layer.numbers.input_zero_point;
  for (const size_t c : rest) gone[c] = 0;
  std::vector<int32_t> sums;
  for (const size_t o : kept_outputs(layer)) {
    int32_t sum = 0;
    for_each_weight(layer, o, [&](size_t c, int32_t w) { sum = wrap_add(sum, wrap_mul(w, gone[c])); });
    sums.push_back(sum);
  }
  const bool adds = std::ranges::any_of(sums, [](int32_t sum) { return sum != 0; });
  return adds ? sums : std::vector<int32_t>();
}

}  // namespace qplan::passes
