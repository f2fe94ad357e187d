#include "src/packer/target/cpu/float_forms.h"

#include <algorithm>
#include <optional>
#include <span>

#include "kernels/layout.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/prove_requantization.h"

namespace qplan::target::cpu {
namespace {

// Channels that share the choice: a vector of the widest kernels.
constexpr size_t kGroup = 16;

// Sums of the weights of each sign, less their zero point.
struct WeightSums {
  int64_t positive = 0;
  int64_t negative = 0;
};

template <typename T>
WeightSums sums_of(const T* weights, uint64_t num_k, int32_t zero_point) {
  // The sums of so many differences of bytes fit 32 bits, of which vectors hold more than of 64.
  constexpr uint64_t kBlock = 1 << 16;
  WeightSums sums;
  for (uint64_t begin = 0; begin < num_k; begin += kBlock) {
    const uint64_t end = std::min(begin + kBlock, num_k);
    int32_t positive = 0, negative = 0;
    for (uint64_t k = begin; k < end; ++k) {
      const int32_t w = int32_t{weights[k]} - zero_point;
      positive += std::max(w, 0);
      negative += std::min(w, 0);
    }
    sums.positive += positive;
    sums.negative += negative;
  }
  return sums;
}

WeightSums sums_of(const ir::Constant& weights, uint64_t o, uint64_t num_k, int32_t zero_point) {
  const uint8_t* bytes = weights.bytes().data() + o * num_k;
  if (weights.type().dtype == ir::kUint8) return sums_of(bytes, num_k, zero_point);
  return sums_of(reinterpret_cast<const int8_t*>(bytes), num_k, zero_point);
}

// The accumulators of a channel.
struct Range {
  int64_t min = 0;
  int64_t max = 0;
};

// The range of accumulators for weights [num_o, num_k] whose input has this dtype and zero point.
Range range_of(const ir::Constant& weights, uint64_t o, uint64_t num_k, int32_t weights_zero_point,
               ir::DType dtype, int32_t zero_point) {
  const int64_t x_min = dtype.min() - zero_point, x_max = dtype.max() - zero_point;
  const WeightSums sums = sums_of(weights, o, num_k, weights_zero_point);
  return {sums.positive * x_min + sums.negative * x_max, sums.positive * x_max + sums.negative * x_min};
}

// A group that lacks one proof has none.
void spoil_incomplete_groups(FloatForms* forms) {
  for (size_t first = 0; first < forms->scale.size(); first += kGroup) {
    const auto begin = forms->scale.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kGroup, forms->scale.size() - first));
    if (std::any_of(begin, end, [](float scale) { return scale < 0.0f; })) std::fill(begin, end, -1.0f);
  }
}

// Proves the first channels; the other entries of the vectors are ignored.
FloatForms prove_channels(const std::vector<ChannelRequantization>& channels, size_t entries) {
  FloatForms forms;
  forms.form = float_form_of(channels.front().zero_point, channels.front().clamp_min);
  forms.scale.assign(entries, 0.0f);
  forms.offset.assign(entries, 0.0f);
  for (size_t o = 0; o < channels.size(); ++o) {
    const std::optional<FloatConstants> proved = prove_float_form(channels[o], forms.form);
    forms.scale[o] = proved ? proved->scale : -1.0f;
    forms.offset[o] = proved ? proved->offset : 0.0f;
  }
  spoil_incomplete_groups(&forms);
  const bool none = std::all_of(forms.scale.begin(), forms.scale.end(), [](float s) { return s < 0.0f; });
  return none ? FloatForms{} : forms;
}

// The one value of an int32 constant of any function.
std::optional<int32_t> zero_point_of(const ir::Function& function, ir::ValueId value) {
  const ir::ConstantRef& constant = function.value(value).constant;
  if (constant == nullptr || constant->type().dtype != ir::kInt32) return std::nullopt;
  const std::span<const int32_t> values = constant->as<int32_t>();
  if (values.empty() || std::ranges::any_of(values, [&](int32_t v) { return v != values[0]; })) {
    return std::nullopt;
  }
  return values[0];
}

// What each of num_o channels can be; empty where that is not known.
std::vector<Range> ranges_of(const AccumulatorSource& source, size_t num_o) {
  if (source.product == nullptr) return {};
  const ir::Node& product = *source.product;
  const ir::DType dtype = source.function->type(product.operands[0]).dtype;
  const ir::ConstantRef& weights = source.function->value(product.operands[1]).constant;
  const std::optional<int32_t> zero_point = zero_point_of(*source.function, product.operands[2]);
  const std::optional<int32_t> weights_zero_point = zero_point_of(*source.function, product.operands[3]);
  if (!is_8_bit(dtype) || weights == nullptr || !zero_point || !weights_zero_point) return {};
  if (product.op->name == "qnn.conv2d" && (op::attr_string(product, "kernel_layout") != "OHWI" ||
                                           op::attr_string(product, "data_layout") != "NHWC")) {
    return {};
  }
  if (!is_8_bit(weights->type().dtype) || weights->type().shape[0] != static_cast<int64_t>(num_o)) return {};
  const uint64_t num_k = static_cast<uint64_t>(weights->type().num_elements()) / num_o;
  std::vector<Range> ranges(num_o);
  for (size_t o = 0; o < num_o; ++o) {
    ranges[o] = range_of(*weights, o, num_k, *weights_zero_point, dtype, *zero_point);
  }
  for (const ir::ConstantRef& bias : source.biases) {
    if (bias == nullptr || bias->type().dtype != ir::kInt32 || bias->as<int32_t>().size() != num_o) return {};
    for (size_t o = 0; o < num_o; ++o) {
      ranges[o].min += bias->as<int32_t>()[o];
      ranges[o].max += bias->as<int32_t>()[o];
    }
  }
  return ranges;
}

Range union_of(const std::vector<Range>& ranges) {
  Range all = ranges.front();
  for (const Range& range : ranges) {
    all.min = std::min(all.min, range.min);
    all.max = std::max(all.max, range.max);
  }
  return all;
}

bool computes_in_integers(format::Contract contract) {
  return contract == format::Contract_TFL2 || contract == format::Contract_TFL1;
}

}  // namespace

FloatForms prove_float_forms(const Lowering& lowering, const WeightedLayer& layer, const LayerInput& input,
                             format::Contract contract, uint16_t layout, uint64_t num_o, uint64_t num_k) {
  if (layout == kLayout_ohwi || !computes_in_integers(contract)) return {};
  const auto entries = static_cast<size_t>(layout_channels(layout, num_o));
  const std::vector<QuantizedMultiplier> multipliers = channel_multipliers(lowering, layer, num_o);
  const std::vector<int32_t> bias = channel_bias(lowering, layer, num_o);
  const ir::Constant& weights = lowering.constant(input.weights, "the weights");

  ChannelRequantization channel;
  channel.contract = contract;
  channel.zero_point = lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  channel.clamp_min = layer.clamp.min;
  channel.clamp_max = layer.clamp.max;
  std::vector<ChannelRequantization> channels(static_cast<size_t>(num_o), channel);
  for (size_t o = 0; o < channels.size(); ++o) {
    const Range range = range_of(weights, o, num_k, input.weights_zero_point, input.dtype, input.zero_point);
    channels[o].multiplier = multipliers[o].multiplier;
    channels[o].shift = multipliers[o].shift;
    channels[o].accumulator_min = bias[o] + range.min;
    channels[o].accumulator_max = bias[o] + range.max;
  }
  return prove_channels(channels, entries);
}

FloatForms prove_float_forms(const Lowering& lowering, const ir::Node& requantize,
                             const AccumulatorScales& scales, Clamp clamp, format::Contract contract) {
  // As layers have it: targets whose layouts no variant reads by vectors have no vectors.
  if (lowering.profile().conv2d_layout == kLayout_ohwi || !computes_in_integers(contract)) return {};
  const ir::TensorType& input = lowering.type(requantize.operands[0]);
  std::vector<Range> ranges;
  if (is_8_bit(input.dtype)) {
    ranges.push_back({input.dtype.min(), input.dtype.max()});
  } else if (!input.shape.empty()) {
    ranges = ranges_of(lowering.accumulator_source(requantize.operands[0]),
                       static_cast<size_t>(input.shape.back()));
  }
  if (ranges.empty()) return {};
  const size_t count = scales.quantized.size();
  const bool by_channel = count == ranges.size() && scales.axis + 1 == input.shape.size();
  const Range all = union_of(ranges);
  const int64_t input_zero_point = lowering.zero_point(requantize.operands[2], "the input's zero point");
  std::vector<ChannelRequantization> channels(count);
  for (size_t o = 0; o < count; ++o) {
    const Range& range = by_channel ? ranges[o] : all;
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
