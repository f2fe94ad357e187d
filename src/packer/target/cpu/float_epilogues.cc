#include <algorithm>
#include <optional>
#include <span>

#include "kernels/layout.h"
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/prove.h"
#include "src/packer/target/cpu/requantization.h"

namespace qplan::target::cpu {
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

// What each of num_o channels can be; empty where that is not known.
std::vector<AccumulatorRange> ranges_of(const AccumulatorSource& source, size_t num_o) {
  if (source.product == nullptr) return {};
  layer::LayerNodes nodes;
  nodes.function = source.function;
  nodes.product = source.product;
  std::optional<std::vector<AccumulatorRange>> ranges = layer::read_layer(nodes).accumulator_ranges();
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
