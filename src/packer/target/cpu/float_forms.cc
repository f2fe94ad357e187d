#include "src/packer/target/cpu/float_forms.h"

#include <algorithm>

#include "kernels/layout.h"
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

// A group that lacks one proof has none.
void spoil_incomplete_groups(FloatForms* forms) {
  for (size_t first = 0; first < forms->scale.size(); first += kGroup) {
    const auto begin = forms->scale.begin() + static_cast<ptrdiff_t>(first);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kGroup, forms->scale.size() - first));
    if (std::any_of(begin, end, [](float scale) { return scale < 0.0f; })) std::fill(begin, end, -1.0f);
  }
}

}  // namespace

FloatForms prove_float_forms(const Lowering& lowering, const WeightedLayer& layer, const LayerInput& input,
                             format::Contract contract, uint16_t layout, uint64_t num_o, uint64_t num_k) {
  FloatForms forms;
  if (layout == kLayout_ohwi) return forms;
  if (contract != format::Contract_TFL2 && contract != format::Contract_TFL1) return forms;
  const auto entries = static_cast<size_t>(layout_channels(layout, num_o));
  const std::vector<QuantizedMultiplier> multipliers = channel_multipliers(lowering, layer, num_o);
  const std::vector<int32_t> bias = channel_bias(lowering, layer, num_o);
  const ir::Constant& weights = lowering.constant(input.weights, "the weights");

  ChannelRequantization channel;
  channel.contract = contract;
  channel.zero_point = lowering.zero_point(layer.requantize->operands[4], "the output's zero point");
  channel.clamp_min = layer.clamp.min;
  channel.clamp_max = layer.clamp.max;
  const int64_t x_min = input.dtype.min() - input.zero_point, x_max = input.dtype.max() - input.zero_point;
  forms.form = float_form_of(channel.zero_point, channel.clamp_min);
  forms.scale.assign(entries, 0.0f);
  forms.offset.assign(entries, 0.0f);
  for (uint64_t o = 0; o < num_o; ++o) {
    const WeightSums sums = sums_of(weights, o, num_k, input.weights_zero_point);
    channel.multiplier = multipliers[o].multiplier;
    channel.shift = multipliers[o].shift;
    channel.accumulator_min = bias[o] + sums.positive * x_min + sums.negative * x_max;
    channel.accumulator_max = bias[o] + sums.positive * x_max + sums.negative * x_min;
    const std::optional<FloatConstants> proved = prove_float_form(channel, forms.form);
    forms.scale[o] = proved ? proved->scale : -1.0f;
    forms.offset[o] = proved ? proved->offset : 0.0f;
  }
  spoil_incomplete_groups(&forms);
  const bool none = std::all_of(forms.scale.begin(), forms.scale.end(), [](float s) { return s < 0.0f; });
  return none ? FloatForms{} : forms;
}

}  // namespace qplan::target::cpu
