#include "src/packer/target/cpu/requantization.h"

#include <algorithm>
#include <cstring>

#include "kernels/layout.h"
#include "src/packer/layer/scales.h"
#include "src/packer/op/shape.h"

namespace qplan::target::cpu {
namespace {

constexpr int32_t kMaxShift = 30;

// product may be of another function: its scales are constants in any case.
layer::LayerScales read_scales(const Lowering& lowering, const ir::Function& product_function,
                               const ir::Node& product, const ir::Node& requantize, size_t num_o) {
  const auto constant = [&](size_t operand) -> std::span<const float> {
    const ir::Value& value = product_function.value(product.operands[operand]);
    if (value.constant == nullptr || value.constant->type().dtype != ir::kFloat32) {
      refuse("the scales of " + product.op->name + " must be float32 constants");
    }
    return value.constant->as<float>();
  };
  layer::LayerScales scales;
  if (constant(4).size() != 1) refuse("the input's scale must be one float32");
  scales.input = constant(4)[0];
  scales.weights = constant(5);
  scales.product = lowering.constant(requantize.operands[1], "the accumulator's scale").as<float>();
  scales.output = lowering.scale(requantize.operands[3], "the output's scale");
  for (const size_t count : {scales.weights.size(), scales.product.size()}) {
    if (count != 1 && count != num_o) {
      refuse(std::to_string(count) + " scales for " + std::to_string(num_o) + " channels");
    }
  }
  const std::string& rule = op::attr_string(requantize, "multiplier");
  scales.product_in_float = rule == "product_f32";
  if (!scales.product_in_float && rule != "product_f64") {
    refuse("multiplier rule '" + rule + "' is not known, expected 'product_f64' or 'product_f32'");
  }
  return scales;
}

void check_weights(const ir::TensorType& weights) {
  if (!is_8_bit(weights.dtype)) refuse("weights " + ir::to_string(weights) + ", expected int8 or uint8");
}

}  // namespace

QuantizedMultiplier checked_multiplier(double real) {
  const QuantizedMultiplier result = quantize_multiplier(real);
  if (result.shift > kMaxShift)
    refuse("its scales make a factor of 2^30 or more between accumulator and output");
  return result;
}

Rescale rescale(format::Contract contract, float input_scale, float output_scale) {
  Rescale result;
  if (contract == format::Contract_F32E) {
    result.scale = input_scale / output_scale;
  } else {
    result.quantized =
        checked_multiplier(static_cast<double>(input_scale) / static_cast<double>(output_scale));
  }
  return result;
}

Chain match_weighted_layer(const Lowering& lowering, uint32_t node, std::string_view product) {
  if (!lowering.is(node, product)) return {};
  Chain chain{node};
  uint32_t next = lowering.only_user(node);
  if (lowering.is(next, "nn.bias_add")) {
    chain.push_back(next);
    next = lowering.only_user(next);
  }
  if (!lowering.is(next, "qnn.requantize")) return chain;
  const Chain tail = with_clip(lowering, next);
  chain.insert(chain.end(), tail.begin(), tail.end());
  return chain;
}

WeightedLayer read_weighted_layer(const Lowering& lowering, const Chain& chain) {
  WeightedLayer layer;
  for (const uint32_t index : chain) {
    const ir::Node& node = lowering.node(index);
    if (index == chain.front()) layer.product = &node;
    if (node.op->name == "nn.bias_add") layer.bias_add = &node;
    if (node.op->name == "qnn.requantize") layer.requantize = &node;
  }
  layer.result = chain_result(lowering, chain);
  if (layer.requantize == nullptr) return layer;
  if (lowering.zero_point(layer.requantize->operands[2], "the accumulator's zero point") != 0) {
    refuse("the accumulator's zero point must be 0");
  }
  layer.clamp = chain_clamp(lowering, chain);
  return layer;
}

void check_weighted_layer(const Lowering& lowering, const Chain& chain) {
  const WeightedLayer layer = read_weighted_layer(lowering, chain);
  const std::vector<ir::ValueId>& operands = layer.product->operands;
  (void)lowering.zero_point(operands[product::kInputZeroPoint], "the input's zero point");
  (void)lowering.zero_point(operands[product::kKernelZeroPoint], "the weights' zero point");
  const ir::TensorType& weights = lowering.constant(operands[product::kWeight], "the weights").type();
  check_weights(weights);
  const auto num_o = static_cast<uint64_t>(weights.shape[0]);
  (void)channel_bias(lowering, layer, num_o);
  if (layer.requantize == nullptr) return;
  (void)lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  const bool is_f32e = op::attr_string(*layer.requantize, "contract") == contract_name(format::Contract_F32E);
  if (is_f32e) {
    (void)read_scales(lowering, lowering.function(), *layer.product, *layer.requantize, num_o);
  } else {
    (void)channel_multipliers(lowering, layer, num_o);
  }
}

PackedWeights pack_weights(Lowering& lowering, ir::ValueId value, int32_t zero_point, uint16_t layout,
                           uint64_t num_o, const LayoutWindow& window, const GroupMerge& merge) {
  const ir::Constant& weights = lowering.constant(value, "the weights");
  check_weights(weights.type());
  const bool is_unsigned = weights.type().dtype == ir::kUint8;
  // value - 128 as int8 is the byte with its highest bit flipped.
  const uint8_t flip = is_unsigned ? 0x80 : 0;
  const uint8_t* from = weights.bytes().data();
  const LayoutWindow packed_window = {window.h, window.w, window.channels * merge.merged};
  const uint64_t num_k = window.h * window.w * window.channels, packed_k = num_k * merge.merged;
  std::vector<uint8_t> packed(static_cast<size_t>(layout_bytes(layout, num_o, packed_window)), 0);
  const auto put = [&](uint64_t o, uint64_t k, uint8_t byte) {
    packed[static_cast<size_t>(layout_index(layout, o, k, num_o, packed_window))] = byte ^ flip;
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
  PackedWeights result;
  result.tensor = lowering.add_constant({ir::kInt8, {size}},
                                        std::make_shared<const std::vector<uint8_t>>(std::move(packed)),
                                        lowering.function().value(value).name);
  result.zero_point = is_unsigned ? zero_point - 128 : zero_point;
  return result;
}

format::Contract layer_contract(const WeightedLayer& layer) {
  if (layer.requantize == nullptr) return format::Contract_ACC32;
  return contract_of(*layer.requantize,
                     {format::Contract_TFL2, format::Contract_TFL1, format::Contract_F32E});
}

std::vector<int32_t> channel_bias(const Lowering& lowering, const WeightedLayer& layer, uint64_t num_o) {
  std::vector<int32_t> bias(static_cast<size_t>(num_o), 0);
  if (layer.bias_add == nullptr) return bias;
  const ir::Constant& constant = lowering.constant(layer.bias_add->operands[1], "the bias");
  if (constant.type().dtype != ir::kInt32 || constant.as<int32_t>().size() != num_o) {
    refuse("bias " + ir::to_string(constant.type()) + ", expected " + std::to_string(num_o) + " int32");
  }
  std::memcpy(bias.data(), constant.bytes().data(), constant.bytes().size());
  return bias;
}

std::vector<QuantizedMultiplier> channel_multipliers(const Lowering& lowering, const WeightedLayer& layer,
                                                     uint64_t num_o) {
  const layer::LayerScales scales = read_scales(lowering, lowering.function(), *layer.product,
                                                *layer.requantize, static_cast<size_t>(num_o));
  std::vector<QuantizedMultiplier> multipliers(static_cast<size_t>(num_o));
  for (size_t o = 0; o < num_o; ++o) multipliers[o] = checked_multiplier(scales.multiplier(o));
  return multipliers;
}

void append_channel_constants(Lowering& lowering, const WeightedLayer& layer, format::Contract contract,
                              uint16_t layout, uint64_t num_o, std::vector<TensorId>* inputs) {
  const auto entries = static_cast<size_t>(layout_channels(layout, num_o));
  const std::string& name = layer.product->name;
  std::vector<int32_t> bias = channel_bias(lowering, layer, num_o);
  bias.resize(entries, 0);
  inputs->push_back(add_values<int32_t>(lowering, ir::kInt32, bias, name + "/bias"));
  if (contract == format::Contract_ACC32) return;
  if (contract == format::Contract_F32E) {
    const layer::LayerScales scales =
        read_scales(lowering, lowering.function(), *layer.product, *layer.requantize, num_o);
    std::vector<float> scale(entries, 0.0f);
    for (size_t o = 0; o < num_o; ++o) scale[o] = scales.f32e(o);
    inputs->push_back(add_values<float>(lowering, ir::kFloat32, scale, name + "/scale"));
    return;
  }
  std::vector<int32_t> multiplier(entries, 0), shift(entries, 0);
  const std::vector<QuantizedMultiplier> quantized = channel_multipliers(lowering, layer, num_o);
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
        result.quantized.push_back(checked_multiplier(multiplier(o)));
      }
    }
  };
  const AccumulatorSource source = lowering.accumulator_source(requantize.operands[0]);
  if (source.product != nullptr && (given.size() == 1 || channels_last)) {
    result.axis = static_cast<uint32_t>(shape.size() - 1);
    const auto num_o = static_cast<size_t>(shape.back());
    const layer::LayerScales scales =
        read_scales(lowering, *source.function, *source.product, requantize, num_o);
    const size_t count = scales.weights.size() == 1 && scales.product.size() == 1 ? 1 : num_o;
    add(
        count, [&](size_t o) { return scales.multiplier(o); }, [&](size_t o) { return scales.f32e(o); });
  } else {
    const float output = lowering.scale(requantize.operands[3], "the output's scale");
    add(
        given.size(), [&](size_t o) { return static_cast<double>(given[o]) / static_cast<double>(output); },
        [&](size_t o) { return given[o] / output; });
  }
  return result;
}

}  // namespace qplan::target::cpu
