#include <algorithm>
#include <optional>
#include <span>

#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/attributes.h"
#include "src/packer/target/cpu/lowering.h"
#include "src/packer/target/cpu/prove.h"

namespace qplan::target::cpu {

Rescale rescale(format::Contract contract, float input_scale, float output_scale) {
  Rescale result;
  if (contract == format::Contract_F32E) {
    result.scale = input_scale / output_scale;
  } else {
    result.quantized = layer::checked_multiplier(
        static_cast<double>(input_scale) / static_cast<double>(output_scale), "input and output");
  }
  return result;
}

NodeSequence match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product) {
  if (!lowering.is(node, product)) return {};
  NodeSequence sequence{node};
  uint32_t next = lowering.only_user(node);
  if (lowering.is(next, "nn.bias_add")) {
    sequence.push_back(next);
    next = lowering.only_user(next);
  }
  if (!lowering.is(next, "qnn.requantize") ||
      !layer::requantizes_channels(lowering.function(), lowering.node(next)))
    return sequence;
  const NodeSequence tail = with_clip(lowering, next);
  sequence.insert(sequence.end(), tail.begin(), tail.end());
  return sequence;
}

namespace {

// What each of num_o channels can be; empty where that is not known.
std::vector<layer::AccumulatorRange> ranges_of(const AccumulatorSource& source, size_t num_o) {
  if (source.product == nullptr) return {};
  layer::LayerNodes nodes;
  nodes.function = source.function;
  nodes.product = source.product;
  std::optional<std::vector<layer::AccumulatorRange>> ranges = layer::read_layer(nodes).accumulator_ranges();
  if (!ranges || ranges->size() != num_o) return {};
  for (const ir::ConstantRef& bias : source.biases) {
    if (bias == nullptr || bias->type().dtype != ir::kInt32 || bias->as<int32_t>().size() != num_o) return {};
    for (size_t o = 0; o < num_o; ++o) {
      (*ranges)[o].min += bias->as<int32_t>()[o];
      (*ranges)[o].max += bias->as<int32_t>()[o];
    }
  }
  return std::move(*ranges);
}

// Whether a node before this one makes the value, so that its step comes first.
bool is_made_before(const Lowering& lowering, ir::ValueId value, uint32_t node) {
  const ir::Value& made = lowering.function().value(value);
  return made.kind == ir::ValueKind::kResult && made.producer < node;
}

// What each element of a reshaped tensor of a layer's sums can be; empty where that is not known.
std::vector<layer::AccumulatorRange> ranges_of_bias(const Lowering& lowering, ir::ValueId bias) {
  const ir::Function& function = lowering.function();
  const ir::Node* reshape = function.producer(bias);
  if (reshape == nullptr || reshape->op == nullptr || reshape->op->name != "reshape") return {};
  return ranges_of(lowering.accumulator_source(reshape->operands[0]),
                   static_cast<size_t>(function.type(bias).num_elements()));
}

}  // namespace

bool takes_computed_bias(const layer::QuantizedLayer& layer, const TargetProfile& profile) {
  constexpr int64_t kVector = 16;
  return layer.nodes.product->op->name == "qnn.conv2d" && layer.nodes.requantize != nullptr &&
         layer.geometry.groups == 1 && layer.geometry.out_c % kVector == 0 && is_8_bit(layer.input_dtype) &&
         layer.accumulator_dtype() == ir::kInt32 && layer.has_bias_on_last_axis &&
         profile.pointer_size == sizeof(uint64_t);
}

layer::QuantizedLayer read_weighted_layer(const Lowering& lowering, const NodeSequence& sequence) {
  layer::LayerNodes nodes;
  nodes.function = &lowering.function();
  nodes.product = &lowering.node(sequence.front());
  for (const uint32_t index : sequence) {
    const ir::Node& node = lowering.node(index);
    if (node.op->name == "nn.bias_add") nodes.bias_add = &node;
    if (node.op->name == "qnn.requantize") nodes.requantize = &node;
    if (node.op->name == "clip") nodes.clip = &node;
  }
  layer::QuantizedLayer layer = layer::read_layer(nodes);
  if (nodes.bias_add != nullptr && takes_computed_bias(layer, lowering.profile()) &&
      is_made_before(lowering, nodes.bias_add->operands[1], sequence.front())) {
    const ir::ValueId bias = nodes.bias_add->operands[1];
    std::vector<layer::AccumulatorRange> ranges = ranges_of_bias(lowering, bias);
    if (!ranges.empty()) {
      layer.bias = ir::ConstantRef();
      layer.computed_bias = layer::ComputedBias{bias, std::move(ranges)};
    }
  }
  return layer;
}

std::string violation_of(const layer::QuantizedLayer& layer) {
  std::string why;
  const auto need = [&](const auto& part) {
    if (why.empty() && !part) why = part.why();
  };
  need(layer.input_zero_point);
  need(layer.weight_zero_point);
  need(layer.weight_constant);
  if (why.empty() && !is_8_bit(layer.weight_dtype))
    why = cat("weights ", (*layer.weight_constant)->type(), ", expected int8 or uint8");
  need(layer.wide_channel_bias());
  if (why.empty() && !layer.has_bias_on_last_axis) why = "the bias is not along the channels";
  if (layer.nodes.requantize == nullptr) return why;
  need(layer.accumulator_zero_point);
  if (why.empty() && *layer.accumulator_zero_point != 0)
    why = cat("the accumulator's zero point is ", *layer.accumulator_zero_point, ", expected 0");
  need(layer.output_zero_point);
  need(layer.scales);
  if (why.empty() && layer.contract != contract_name(format::Contract_F32E))
    why = refusal_of([&] { (void)channel_multipliers(layer); });
  return why;
}

namespace {

// What is not int8 of weights [num_o, num_k] less their zero point, as channel, k and rest of each; nothing
// where these are more than max_rests.
std::optional<std::vector<int32_t>> weight_rests(const layer::QuantizedLayer& layer, const uint8_t* weights,
                                                 uint64_t num_k, uint32_t max_rests) {
  std::vector<int32_t> rests;
  const auto count = static_cast<uint64_t>(layer.geometry.out_c) * num_k;
  for (uint64_t i = 0; i < count; ++i) {
    const int32_t weight = layer.weight_dtype == ir::kUint8 ? weights[i] : static_cast<int8_t>(weights[i]);
    const int32_t value = weight - *layer.weight_zero_point;
    const int32_t rest = value - std::clamp(value, INT8_MIN, INT8_MAX);
    if (rest == 0) continue;
    if (rests.size() == size_t{3} * max_rests || rest > INT8_MAX) return std::nullopt;
    rests.insert(rests.end(), {static_cast<int32_t>(i / num_k), static_cast<int32_t>(i % num_k), rest});
  }
  return rests;
}

}  // namespace

PackedWeights pack_weights(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                           const LayoutWindow& window, const GroupMerge& merge,
                           std::optional<uint32_t> max_rests) {
  const ir::Constant& weights = **layer.weight_constant;
  const int32_t zero_point = *layer.weight_zero_point;
  const auto num_o = static_cast<uint64_t>(layer.geometry.out_c);
  const bool is_unsigned = layer.weight_dtype == ir::kUint8;
  // value - 128 as int8 is the byte with its highest bit flipped.
  const uint8_t flip = is_unsigned ? 0x80 : 0;
  const uint8_t* from = weights.bytes().data();
  LayoutWindow packed_window = window;
  packed_window.channels *= merge.merged;
  const uint64_t num_k = window.h * window.w * window.channels, packed_k = num_k * merge.merged;
  std::vector<uint8_t> packed(static_cast<size_t>(layout_bytes(layout, num_o, packed_window)), 0);
  PackedWeights result;
  result.zero_point = is_unsigned ? zero_point - 128 : zero_point;
  bool subtracts_zero_point = false;
  if (max_rests && merge.merged == 1 && result.zero_point != 0) {
    if (auto rests = weight_rests(layer, from, num_k, *max_rests)) {
      subtracts_zero_point = true;
      result.zero_point = 0;
      result.rests = std::move(*rests);
    }
  }
  const auto less_zero_point = [&](uint8_t byte) {
    const int32_t value = (is_unsigned ? byte : static_cast<int8_t>(byte)) - zero_point;
    return static_cast<uint8_t>(std::clamp(value, INT8_MIN, INT8_MAX));
  };
  const auto put = [&](uint64_t o, uint64_t k, uint8_t byte) {
    packed[static_cast<size_t>(layout_index(layout, o, k, num_o, packed_window))] =
        subtracts_zero_point ? less_zero_point(byte) : byte ^ flip;
  };
  for (uint64_t o = 0; o < num_o; ++o) {
    for (uint64_t k = 0; merge.merged > 1 && k < packed_k; ++k) put(o, k, static_cast<uint8_t>(zero_point));
    const uint64_t own = o / merge.group_o % merge.merged * merge.group_c;
    for (uint64_t k = 0; k < num_k; ++k) {
      const uint64_t tap = k / merge.group_c, channel = k % merge.group_c;
      const uint64_t to = merge.merged == 1 ? k : tap * merge.group_c * merge.merged + own + channel;
      put(o, to, from[o * num_k + k]);
    }
  }
  for (size_t i = 0; layout_has_halves(layout) && i + 1 < packed.size(); i += 2) {
    if (static_cast<int8_t>(packed[i]) < 0) --packed[i + 1];
  }
  const auto size = static_cast<int64_t>(packed.size());
  result.bytes = std::make_shared<const std::vector<uint8_t>>(std::move(packed));
  result.tensor =
      lowering.add_constant({ir::kInt8, {size}}, result.bytes,
                            lowering.function().value(layer.nodes.product->operands[product::kWeight]).name);
  return result;
}

format::Contract layer_contract(const layer::QuantizedLayer& layer) {
  if (layer.nodes.requantize == nullptr) return format::Contract_ACC32;
  return contract_of(*layer.nodes.requantize,
                     {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
}

std::vector<QuantizedMultiplier> channel_multipliers(const layer::QuantizedLayer& layer) {
  std::vector<QuantizedMultiplier> multipliers(static_cast<size_t>(layer.geometry.out_c));
  const bool is_wide = layer.accumulator_dtype() == ir::kInt64;
  for (size_t o = 0; o < multipliers.size(); ++o) {
    multipliers[o] = layer::checked_multiplier(layer.scales->multiplier(o));
    if (is_wide && multipliers[o].shift > kMaxWideShift)
      refuse("its scales make a factor of 2^7 or more between accumulator and output");
  }
  return multipliers;
}

void append_channel_constants(Lowering& lowering, const layer::QuantizedLayer& layer, uint16_t layout,
                              const std::vector<int32_t>& rests, std::vector<TensorId>* inputs) {
  const format::Contract contract = layer_contract(layer);
  const auto num_o = static_cast<size_t>(layer.geometry.out_c);
  const auto entries = static_cast<size_t>(layout_channels(layout, num_o));
  const std::string& name = layer.nodes.product->name;
  if (layer.computed_bias) {
    if (!rests.empty()) throw PackError(QPLAN_INTERNAL, cat("'", name, "': a computed bias with rests"));
    inputs->push_back(lowering.tensor(layer.computed_bias->value));
  } else if (layer.accumulator_dtype() == ir::kInt64) {
    std::vector<int64_t> bias = *layer.wide_channel_bias();
    bias.resize(entries, 0);
    inputs->push_back(add_values<int64_t>(lowering, ir::kInt64, bias, name + "/bias"));
  } else {
    std::vector<int32_t> bias = *layer.channel_bias();
    bias.resize(entries, 0);
    bias.insert(bias.end(), rests.begin(), rests.end());
    inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, bias, name + "/bias"));
  }
  if (contract == format::Contract_ACC32) return;
  if (contract == format::Contract_F32E) {
    std::vector<float> scale(entries, 0.0f);
    for (size_t o = 0; o < num_o; ++o) scale[o] = layer.scales->f32e(o);
    inputs->push_back(add_values<float>(lowering, ir::kFloat32, scale, name + "/scale"));
    return;
  }
  std::vector<int32_t> multiplier(entries, 0), shift(entries, 0);
  const std::vector<QuantizedMultiplier> quantized = channel_multipliers(layer);
  for (size_t o = 0; o < num_o; ++o) {
    multiplier[o] = quantized[o].multiplier;
    shift[o] = quantized[o].shift;
  }
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, multiplier, name + "/multiplier"));
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, shift, name + "/shift"));
}

AccumulatorScales accumulator_scales(const Lowering& lowering, const ir::Node& requantize,
                                     format::Contract contract) {
  const ir::Shape& shape = lowering.type(requantize.operands[0]).shape;
  const auto axis = static_cast<uint32_t>(
      shape.empty() ? 0 : op::normalized_axis(op::attr_int(requantize, "axis"), shape.size()));
  const bool channels_last = axis + 1 == shape.size();
  const std::span<const float> given =
      lowering.constant(requantize.operands[1], "the input's scale").as<float>();
  AccumulatorScales result;
  result.axis = axis;
  const auto add = [&](size_t count, const auto& multiplier, const auto& f32e) {
    for (size_t o = 0; o < count; ++o) {
      if (contract == format::Contract_F32E) {
        result.scale.push_back(f32e(o));
      } else {
        result.quantized.push_back(layer::checked_multiplier(multiplier(o)));
      }
    }
  };
  const AccumulatorSource source = lowering.accumulator_source(requantize.operands[0]);
  if (source.product != nullptr && (given.size() == 1 || channels_last)) {
    result.axis = static_cast<uint32_t>(shape.size() - 1);
    const auto num_o = static_cast<size_t>(shape.back());
    const layer::Part<layer::LayerScales> scales =
        layer::read_layer_scales(*source.function, *source.product, lowering.function(), requantize, num_o);
    if (!scales) refuse(scales.why());
    add(
        scales->is_one() ? 1 : num_o, [&](size_t o) { return scales->multiplier(o); },
        [&](size_t o) { return scales->f32e(o); });
  } else {
    const float output = lowering.scale(requantize.operands[3], "the output's scale");
    add(
        given.size(), [&](size_t o) { return static_cast<double>(given[o]) / static_cast<double>(output); },
        [&](size_t o) { return given[o] / output; });
  }
  return result;
}

// Float epilogues.
namespace {

// Channels that share the choice: a vector of the widest kernels.
constexpr size_t kGroup = 16;

using layer::AccumulatorRange;

// A group that lacks one proof has none.
void spoil_incomplete_groups(FloatEpilogues* forms) {
  for (size_t first = 0; first < forms->scale.size(); first += kGroup) {
    const auto begin = forms->scale.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kGroup, forms->scale.size() - first));
    if (std::any_of(begin, end, [](float scale) { return scale < 0.0f; })) std::fill(begin, end, -1.0f);
  }
}

// Proves the first channels; the other entries of the vectors are ignored.
FloatEpilogues prove_channels(const std::vector<ChannelRequantization>& channels, size_t entries) {
  FloatEpilogues forms;
  forms.form = float_epilogue_of(channels.front().zero_point, channels.front().clamp_min);
  forms.scale.assign(entries, 0.0f);
  forms.offset.assign(entries, 0.0f);
  for (size_t o = 0; o < channels.size(); ++o) {
    const std::optional<FloatConstants> proved = prove_float_epilogue(channels[o], forms.form);
    forms.scale[o] = proved ? proved->scale : -1.0f;
    forms.offset[o] = proved ? proved->offset : 0.0f;
  }
  spoil_incomplete_groups(&forms);
  const bool none = std::all_of(forms.scale.begin(), forms.scale.end(), [](float s) { return s < 0.0f; });
  return none ? FloatEpilogues{} : forms;
}

AccumulatorRange union_of(const std::vector<AccumulatorRange>& ranges) {
  AccumulatorRange all = ranges.front();
  for (const AccumulatorRange& range : ranges) {
    all.min = std::min(all.min, range.min);
    all.max = std::max(all.max, range.max);
  }
  return all;
}

bool computes_in_integers(format::Contract contract) {
  return contract == format::Contract_TFL2 || contract == format::Contract_TFL1;
}

}  // namespace

FloatEpilogues prove_float_epilogues(const layer::QuantizedLayer& layer, uint16_t layout) {
  const format::Contract contract = layer_contract(layer);
  if (layout == kLayout_ohwi || !computes_in_integers(contract)) return {};
  const std::optional<std::vector<AccumulatorRange>> ranges = layer.accumulator_ranges();
  if (!ranges) return {};
  const std::vector<QuantizedMultiplier> multipliers = channel_multipliers(layer);
  std::vector<ChannelRequantization> channels(ranges->size());
  for (size_t o = 0; o < channels.size(); ++o) {
    channels[o].contract = contract;
    channels[o].multiplier = multipliers[o].multiplier;
    channels[o].shift = multipliers[o].shift;
    channels[o].zero_point = *layer.output_zero_point;
    channels[o].clamp_min = layer.clamp.min;
    channels[o].clamp_max = layer.clamp.max;
    channels[o].accumulator_min = (*ranges)[o].min;
    channels[o].accumulator_max = (*ranges)[o].max;
  }
  return prove_channels(channels, static_cast<size_t>(layout_channels(layout, channels.size())));
}

FloatEpilogues prove_float_epilogues(const Lowering& lowering, const ir::Node& requantize,
                                     const AccumulatorScales& scales, Clamp clamp,
                                     format::Contract contract) {
  // As layers have it: targets whose layouts no variant reads by vectors have no vectors.
  if (lowering.profile().conv2d_layout == kLayout_ohwi || !computes_in_integers(contract)) return {};
  // The proof looks at each output that there can be: at most 256.
  if (!is_8_bit(lowering.type(requantize.results[0]).dtype)) return {};
  const ir::TensorType& input = lowering.type(requantize.operands[0]);
  std::vector<AccumulatorRange> ranges;
  if (is_8_bit(input.dtype)) {
    ranges.push_back({input.dtype.min(), input.dtype.max()});
  } else if (!input.shape.empty()) {
    ranges = ranges_of(lowering.accumulator_source(requantize.operands[0]),
                       static_cast<size_t>(input.shape.back()));
  }
  if (ranges.empty()) return {};
  const size_t count = scales.quantized.size();
  const bool by_channel = count == ranges.size() && scales.axis + 1 == input.shape.size();
  const AccumulatorRange all = union_of(ranges);
  const int64_t input_zero_point = lowering.zero_point(requantize.operands[2], "the input's zero point");
  std::vector<ChannelRequantization> channels(count);
  for (size_t o = 0; o < count; ++o) {
    const AccumulatorRange& range = by_channel ? ranges[o] : all;
    channels[o].contract = contract;
    channels[o].multiplier = scales.quantized[o].multiplier;
    channels[o].shift = scales.quantized[o].shift;
    channels[o].zero_point = lowering.zero_point(requantize.operands[4], "the output's zero point");
    channels[o].clamp_min = clamp.min;
    channels[o].clamp_max = clamp.max;
    channels[o].accumulator_min = range.min - input_zero_point;
    channels[o].accumulator_max = range.max - input_zero_point;
  }
  return prove_channels(channels, count);
}

}  // namespace qplan::target::cpu
