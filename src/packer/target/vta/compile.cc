#include "src/packer/target/vta/compile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/target/vta/blob_writer.h"

namespace qplan::target::vta {
namespace {

namespace isa = ::qplan::vta;

[[noreturn]] void refuse(const GemmLayer& layer, const std::string& reason) {
  throw PackError(QPLAN_MODEL_UNSUPPORTED, cat("vta: layer '", layer.name, "': ", reason));
}

void check_form(const Config& config, const GemmLayer& layer, const Border& input) {
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  if (g.batch != 1) refuse(layer, cat("a batch of ", g.batch, ", limit 1"));
  if (g.groups != 1 && !(g.is_depthwise() && g.out_c == g.in_c))
    refuse(layer, cat(g.groups, " groups of ", g.in_c, " to ", g.out_c,
                      " channels; expected 1, or one for each channel"));
  if (!config.has_multiply) refuse(layer, "contract tfl2 needs the ALU's MUL, which this design lacks");
  if (input.top < w.pad_top || input.left < w.pad_left || input.bottom < w.pad_bottom ||
      input.right < w.pad_right)
    refuse(layer, "the input's border is narrower than the padding");
  const auto [least, largest] = std::ranges::minmax(layer.weights);
  if (least < kMinWeight || largest > kMaxWeight) {
    refuse(layer, cat("weights less their zero point reach from ", least, " to ", largest, ", limit ",
                      kMinWeight, " to ", kMaxWeight));
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
    const QuantizedMultiplier& m = layer.multipliers[o];
    const int32_t left = std::max(m.shift, 0);
    // Without a multiplier the result is the zero point, whatever the accumulator is.
    if (m.multiplier != 0 && (left > 30 || magnitude > kTfl2Bound >> left)) {
      refuse(layer, cat("the accumulator of channel ", o, " may reach ", magnitude, ", shifted left by ",
                        left, "; limit ", kTfl2Bound));
    }
    // Wraps like the device's sums: what they end in is within the bound.
    folded[o] =
        static_cast<int32_t>(static_cast<uint32_t>(bias - layer.input_zero_point * (positive + negative)));
  }
  return folded;
}

ActivationLayout make_layout(int64_t h, int64_t w, int64_t channels, const Border& border) {
  return {h, w, channels, border.top, border.left, border.bottom, border.right};
}

Region carried(isa::RegionKind kind, const char* name, std::vector<uint8_t> data, int64_t element_bytes) {
  Region region;
  region.kind = kind;
  region.name = name;
  region.alignment = static_cast<uint32_t>(std::max<int64_t>(element_bytes, isa::kBlobAlignment));
  region.data = std::move(data);
  return region;
}

Region bound(isa::RegionKind kind, const char* name, const ActivationLayout& layout) {
  Region region;
  region.kind = kind;
  region.name = name;
  region.bytes = static_cast<uint64_t>(layout.bytes());
  return region;
}

std::vector<uint8_t> constant_bytes(const Requantization& requantization) {
  std::vector<uint8_t> bytes;
  for (const std::vector<int32_t>& values : requantization.constants) {
    const size_t at = bytes.size();
    bytes.resize(at + values.size() * sizeof(int32_t));
    std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(int32_t));
  }
  return bytes;
}

void check_buffers(const GemmLayer& layer, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    const uint64_t bytes = region.data.empty() ? region.bytes : region.data.size();
    if (bytes > static_cast<uint64_t>(kMaxBufferBytes))
      refuse(layer, cat(region.name, " of ", bytes, " bytes, one buffer holds ", kMaxBufferBytes));
  }
}

}  // namespace

CompiledLayer compile_layer(const Config& config, const GemmLayer& layer) {
  const op::Window2d& w = layer.geometry.window;
  return compile_layer(config, layer, {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}, {});
}

CompiledLayer compile_layer(const Config& config, const GemmLayer& layer, const Border& input,
                            const Border& output) {
  check_form(config, layer, input);
  const Geometry& g = layer.geometry;
  const Requantization requantization = make_tfl2(fold_bias(layer), layer.multipliers,
                                                  layer.output_zero_point, layer.clamp_min, layer.clamp_max);
  const auto [least, largest] = std::ranges::minmax(layer.weights);
  TileProblem problem;
  problem.geometry = g;
  problem.weight_planes = least < -128 || largest > 127 ? 2 : 1;
  problem.num_constants = requantization.num_constants();
  problem.alu_cycles = requantization.cycles_per_element();
  problem.input = make_layout(g.in_h, g.in_w, g.in_c, input);
  problem.output = make_layout(g.out_h, g.out_w, g.out_c, output);

  CompiledLayer result;
  result.tiling = choose_tiling(config, problem, layer.name);
  LayerStream emitted = emit_gemm_layer(config, problem, result.tiling, requantization);
  emitted.stream.labels.push_back({0, layer.name});
  std::vector<uint8_t> weights = g.is_depthwise()
                                     ? pack_diagonal_weights(g, layer.weights, problem.weight_planes)
                                     : pack_gemm_weights(g, layer.weights, problem.weight_planes);
  // In the order of LayerRegion.
  std::vector<Region> regions;
  regions.push_back(carried(isa::RegionKind::kWeights, "weights", std::move(weights), kWgtBytes));
  regions.push_back(
      carried(isa::RegionKind::kConstants, "constants", constant_bytes(requantization), kAccBytes));
  regions.push_back(
      carried(isa::RegionKind::kConstants, "micro-ops", std::move(emitted.uops), isa::kUopBytes));
  regions.push_back(bound(isa::RegionKind::kInput, "input", problem.input));
  regions.push_back(bound(isa::RegionKind::kOutput, "output", problem.output));
  check_buffers(layer, regions);

  result.estimate = estimate_cycles(config, emitted.stream.instructions);
  result.blob = write_blob(config, emitted.stream, regions, result.estimate.total_cycles);
  result.input = problem.input;
  result.output = problem.output;
  result.input_border = layer.padding.value_or(static_cast<int8_t>(layer.input_zero_point));
  result.alu_instructions_per_tile = requantization.num_alu_instructions();
  return result;
}

}  // namespace qplan::target::vta
