#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/layer/quantized_layer.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {
namespace {

[[noreturn]] void refuse(const GemmLayer& layer, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: layer '", layer.name, "': ", reason));
}

// A part that the constraints demand.
template <typename T>
const T& need(const GemmLayer& layer, const layer::Part<T>& part) {
  if (!part) refuse(layer, part.why());
  return *part;
}

void check_form(const Config& config, const GemmLayer& layer, const Border& input) {
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  if (g.batch != 1) refuse(layer, cat("a batch of ", g.batch, ", limit 1"));
  if (g.groups != 1 && !(g.is_depthwise() && g.out_c == g.in_c))
    refuse(layer, cat(g.groups, " groups of ", g.in_c, " to ", g.out_c,
                      " channels; expected 1, or one for each channel"));
  if (!config.has_multiply && !layer.leaves_int32)
    refuse(layer, "contract tfl2 needs the ALU's MUL, which this design lacks");
  if (input.top < w.pad_top || input.left < w.pad_left || input.bottom < w.pad_bottom ||
      input.right < w.pad_right)
    refuse(layer, "the input's border is narrower than the padding");
  const auto [least, largest] = std::ranges::minmax(layer.weights);
  if (least < kMinWeight || largest > kMaxWeight) {
    refuse(layer, cat("weights less their zero point reach from ", least, " to ", largest, ", limit ",
                      kMinWeight, " to ", kMaxWeight));
  }
}

void check_bound(const GemmLayer& layer, size_t o, int64_t magnitude) {
  const QuantizedMultiplier& m = layer.multipliers[o];
  const int32_t left = std::max(m.shift, 0);
  // Without a multiplier the result is the zero point, whatever the accumulator is.
  if (m.multiplier != 0 && (left > 30 || magnitude > kTfl2Bound >> left)) {
    refuse(layer, cat("the accumulator of channel ", o, " may reach ", magnitude, ", shifted left by ", left,
                      "; limit ", kTfl2Bound));
  }
}

// The bias with the input's zero point folded in, and the proof that the ALU's sequence is exact.
std::vector<int32_t> fold_bias(const GemmLayer& layer) {
  std::vector<int32_t> folded(layer.bias.size());
  const size_t num_k = layer.weights.size() / layer.bias.size();
  const int64_t x_min = -128 - layer.input_zero_point, x_max = 127 - layer.input_zero_point;
  for (size_t o = 0; o < layer.bias.size(); ++o) {
    int64_t positive = 0, negative = 0;  // sums of the weights of each sign
    for (size_t k = 0; k < num_k; ++k) {
      const int64_t weight = layer.weights[o * num_k + k];
      (weight > 0 ? positive : negative) += weight;
    }
    const int64_t bias = layer.bias[o];
    const int64_t magnitude = std::max(std::abs(bias + positive * x_min + negative * x_max),
                                       std::abs(bias + positive * x_max + negative * x_min));
    if (!layer.leaves_int32) check_bound(layer, o, magnitude);
    // Wraps like the device's sums: what they end in is within the bound.
    folded[o] =
        static_cast<int32_t>(static_cast<uint32_t>(bias - layer.input_zero_point * (positive + negative)));
  }
  return folded;
}

}  // namespace

CompiledGemm compile_gemm(const Config& config, const GemmLayer& layer, const ActivationLayout& input,
                          const ActivationLayout& output) {
  check_form(config, layer, {input.top, input.left, input.bottom, input.right});
  const Geometry& g = layer.geometry;
  const std::vector<int32_t> bias = fold_bias(layer);
  const Requantization requantization =
      layer.leaves_int32
          ? make_acc32(bias)
          : make_tfl2(bias, layer.multipliers, layer.output_zero_point, layer.clamp_min, layer.clamp_max);
  const auto [least, largest] = std::ranges::minmax(layer.weights);
  TileProblem problem;
  problem.geometry = g;
  problem.weight_planes = least < -128 || largest > 127 ? 2 : 1;
  problem.num_constants = requantization.num_constants();
  problem.alu_cycles = requantization.cycles_per_element();
  problem.input = input;
  problem.output = output;

  CompiledGemm result;
  result.tiling = choose_tiling(config, problem, layer.name);
  std::vector<uint8_t> weights = g.is_depthwise()
                                     ? pack_diagonal_weights(g, layer.weights, problem.weight_planes)
                                     : pack_gemm_weights(g, layer.weights, problem.weight_planes);
  result.unit =
      emit_gemm_layer(config, layer.name, problem, result.tiling, requantization, std::move(weights));
  for (const UnitRegion& region : result.unit.regions) {
    if (region.data.size() > static_cast<size_t>(kMaxBufferBytes))
      refuse(layer, cat(region.name, " of ", region.data.size(), " bytes, one buffer has ", kMaxBufferBytes));
  }
  return result;
}

ReadLayer read_gemm_layer(const Candidate& candidate) {
  const layer::QuantizedLayer& from = candidate.layer();
  const ir::Node& product = *from.nodes.product;
  ReadLayer result;
  GemmLayer& layer = result.layer;
  layer.name = product.name;
  result.flips_input = from.input_dtype == ir::kUint8;
  const int32_t input_flip = result.flips_input ? 128 : 0;
  layer.input_zero_point = need(layer, from.input_zero_point) - input_flip;
  const layer::Padding& padding = need(layer, from.padding);
  if (padding.value) layer.padding = static_cast<int8_t>(*padding.value - input_flip);
  layer.geometry = from.unpadded_geometry();

  const layer::LayerWeights& weights = need(layer, from.weights);
  // Before they are narrowed to 16 bits.
  const layer::LayerWeights::Range& range = weights.range();
  if (range.min < kMinWeight || range.max > kMaxWeight)
    refuse(layer, cat("weights less their zero point reach from ", range.min, " to ", range.max));
  layer.weights.reserve(weights.num_o * weights.num_k);
  for (size_t o = 0; o < weights.num_o; ++o) {
    for (size_t k = 0; k < weights.num_k; ++k) layer.weights.push_back(static_cast<int16_t>(weights(o, k)));
  }
  layer.bias = need(layer, from.channel_bias());
  layer.leaves_int32 = from.nodes.requantize == nullptr;
  if (layer.leaves_int32) return result;

  (void)need(layer, from.scales);
  layer.multipliers = from.multipliers();
  result.flips_output = from.output_dtype == ir::kUint8;
  const int32_t output_flip = result.flips_output ? 128 : 0;
  layer.output_zero_point = need(layer, from.output_zero_point) - output_flip;
  layer.clamp_min = from.clamp.min - output_flip;
  layer.clamp_max = from.clamp.max - output_flip;
  return result;
}

UnitPlan read_gemm_unit(const Candidate& candidate) {
  const auto read = std::make_shared<const ReadLayer>(read_gemm_layer(candidate));
  const GemmLayer& layer = read->layer;
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  UnitPlan plan;
  plan.name = layer.name;
  UnitActivation input;
  input.value = candidate.matches["data"].id;
  input.h = g.in_h, input.w = g.in_w, input.channels = g.in_c;
  input.needed = {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
  if (w.pad_top + w.pad_left + w.pad_bottom + w.pad_right != 0)
    input.border_value = layer.padding.value_or(static_cast<int8_t>(layer.input_zero_point));
  input.is_unsigned = read->flips_input;
  plan.inputs.push_back(input);
  plan.output.h = g.out_h, plan.output.w = g.out_w, plan.output.channels = g.out_c;
  plan.output.is_unsigned = read->flips_output;
  plan.output.is_int32 = layer.leaves_int32;
  plan.compile = [read](const Config& config, std::span<const ActivationLayout> inputs,
                        const ActivationLayout& output) {
    return compile_gemm(config, read->layer, inputs[0], output).unit;
  };
  return plan;
}

}  // namespace qplan::vta::compiler
