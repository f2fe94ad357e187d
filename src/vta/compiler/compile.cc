#include "src/vta/compiler/compile.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/blob_writer.h"

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

ActivationLayout make_layout(int64_t h, int64_t w, int64_t channels, const Border& border) {
  return {h, w, channels, border.top, border.left, border.bottom, border.right};
}

UnitRegion carried(isa::RegionKind kind, const char* name, std::vector<uint8_t> data) {
  UnitRegion region;
  region.blob_kind = kind;
  region.name = name;
  region.data = std::move(data);
  return region;
}

UnitRegion bound(UnitRegion::Kind kind, const char* name) {
  UnitRegion region;
  region.kind = kind;
  region.name = name;
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

// As a region of a blob. bytes: of what is bound.
Region blob_region(const UnitRegion& region, const ActivationLayout& layout, int64_t element_bytes) {
  Region result;
  result.name = region.name;
  result.alignment = static_cast<uint32_t>(std::max<int64_t>(element_bytes, isa::kBlobAlignment));
  if (region.kind == UnitRegion::Kind::kCarried) {
    result.kind = region.blob_kind;
    result.data = region.data;
    return result;
  }
  result.kind = region.kind == UnitRegion::Kind::kInput ? isa::RegionKind::kInput : isa::RegionKind::kOutput;
  result.bytes = static_cast<uint64_t>(layout.bytes());
  return result;
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
  LayerStream emitted = emit_gemm_layer(config, problem, result.tiling, requantization);
  CompiledUnit& unit = result.unit;
  unit.name = layer.name;
  unit.stream = std::move(emitted.stream);
  unit.stream.labels.push_back({0, layer.name});
  std::vector<uint8_t> weights = g.is_depthwise()
                                     ? pack_diagonal_weights(g, layer.weights, problem.weight_planes)
                                     : pack_gemm_weights(g, layer.weights, problem.weight_planes);
  unit.regions.push_back(carried(isa::RegionKind::kWeights, "weights", std::move(weights)));
  unit.regions.push_back(carried(isa::RegionKind::kConstants, "constants", constant_bytes(requantization)));
  unit.regions.push_back(carried(isa::RegionKind::kConstants, "micro-ops", std::move(emitted.uops)));
  unit.regions.push_back(bound(UnitRegion::Kind::kInput, "input"));
  unit.regions.push_back(bound(UnitRegion::Kind::kOutput, "output"));
  for (const UnitRegion& region : unit.regions) {
    if (region.data.size() > static_cast<size_t>(kMaxBufferBytes))
      refuse(layer,
             cat(region.name, " of ", region.data.size(), " bytes, one buffer holds ", kMaxBufferBytes));
  }
  unit.estimate = estimate_cycles(config, unit.stream.instructions);
  unit.alu_instructions_per_tile = requantization.num_alu_instructions();
  return result;
}

CompiledLayer compile_layer(const Config& config, const GemmLayer& layer) {
  const op::Window2d& w = layer.geometry.window;
  return compile_layer(config, layer, {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}, {});
}

CompiledLayer compile_layer(const Config& config, const GemmLayer& layer, const Border& input,
                            const Border& output) {
  const Geometry& g = layer.geometry;
  CompiledLayer result;
  result.input = make_layout(g.in_h, g.in_w, g.in_c, input);
  result.output = make_layout(g.out_h, g.out_w, g.out_c, output);
  for (const ActivationLayout* layout : {&result.input, &result.output}) {
    if (layout->bytes() > kMaxBufferBytes)
      refuse(layer, cat("an activation of ", layout->bytes(), " bytes, one buffer holds ", kMaxBufferBytes));
  }
  CompiledGemm compiled = compile_gemm(config, layer, result.input, result.output);
  const int64_t element_bytes[kNumLayerRegions] = {kWgtBytes, kAccBytes, isa::kUopBytes, kInpBytes,
                                                   kInpBytes};
  std::vector<Region> regions;
  for (uint32_t r = 0; r < kNumLayerRegions; ++r) {
    regions.push_back(blob_region(compiled.unit.regions[r], r == kInputRegion ? result.input : result.output,
                                  element_bytes[r]));
  }
  if (layer.leaves_int32) regions[kOutputRegion].bytes *= sizeof(int32_t);
  result.tiling = compiled.tiling;
  result.estimate = compiled.unit.estimate;
  result.blob = write_blob(config, compiled.unit.stream, regions, result.estimate.total_cycles);
  result.input_border = layer.padding.value_or(static_cast<int8_t>(layer.input_zero_point));
  result.alu_instructions_per_tile = compiled.unit.alu_instructions_per_tile;
  return result;
}

}  // namespace qplan::target::vta
