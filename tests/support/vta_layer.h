// One layer of weights as a blob of its own, for tests of streams and of drivers.
#ifndef QPLAN_TESTS_SUPPORT_VTA_LAYER_H_
#define QPLAN_TESTS_SUPPORT_VTA_LAYER_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

struct CompiledLayer {
  std::vector<uint8_t> blob;
  ActivationLayout input, output;  // of slots kInputRegion and kOutputRegion; int32: of each of four planes
  int8_t input_border = 0;         // what the input's border holds
  Tiling tiling;
  Estimate estimate;
  int64_t alu_instructions_per_tile = 0;
};

// As a region of a blob. bytes: of what is bound.
inline Region blob_region(const UnitRegion& region, const ActivationLayout& layout, int64_t element_bytes) {
  Region result;
  result.name = region.name;
  result.alignment = static_cast<uint32_t>(std::max<int64_t>(element_bytes, kBlobAlignment));
  if (region.kind == UnitRegion::Kind::kCarried) {
    result.kind = region.blob_kind;
    result.data = region.data;
    return result;
  }
  result.kind = region.kind == UnitRegion::Kind::kInput ? RegionKind::kInput : RegionKind::kOutput;
  result.bytes = static_cast<uint64_t>(layout.bytes());
  return result;
}

// A blob that `load` of a driver with this configuration accepts; with other borders than the window's
// padding around the input and none around the output.
inline CompiledLayer compile_layer(const Config& config, const GemmLayer& layer, const Border& input,
                                   const Border& output) {
  const Geometry& g = layer.geometry;
  CompiledLayer result;
  result.input = with_border(g.in_h, g.in_w, g.in_c, input);
  result.output = with_border(g.out_h, g.out_w, g.out_c, output);
  for (const ActivationLayout* layout : {&result.input, &result.output}) {
    if (layout->bytes() > kMaxBufferBytes)
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      cat("vta: layer '", layer.name, "': an activation of ", layout->bytes(),
                          " bytes, one buffer has ", kMaxBufferBytes));
  }
  CompiledGemm compiled = compile_gemm(config, layer, result.input, result.output);
  const int64_t element_bytes[kNumLayerRegions] = {kWgtBytes, kAccBytes, kUopBytes, kInpBytes, kInpBytes};
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

inline CompiledLayer compile_layer(const Config& config, const GemmLayer& layer) {
  const op::Window2d& w = layer.geometry.window;
  return compile_layer(config, layer, {w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}, {});
}

}  // namespace qplan::vta::compiler

#endif  // QPLAN_TESTS_SUPPORT_VTA_LAYER_H_
