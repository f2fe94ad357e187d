// The packer's compiler for VTA: one layer of weights under contract TFL2 -> one stream.
#ifndef QPLAN_SRC_VTA_COMPILER_COMPILE_H_
#define QPLAN_SRC_VTA_COMPILER_COMPILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/vta/compiler/emit_stream.h"
#include "src/vta/compiler/estimate.h"
#include "src/vta/compiler/layer.h"
#include "src/vta/compiler/layout.h"
#include "src/vta/compiler/tile.h"
#include "src/vta/compiler/unit.h"

namespace qplan::target::vta {

// qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?, one image; one group, or as many as
// channels in and out (depthwise: GEMM with diagonal weights, a cycle for each tap where the ALU would take
// seven). All values are in int8: zero points and clamp of uint8 activations are given less 128, and their
// bytes enter and leave with the highest bit flipped.
struct GemmLayer {
  std::string name;
  Geometry geometry;
  std::vector<int16_t>
      weights;  // [O][KH][KW][I], I = 1 where depthwise; less their zero point; from kMinWeight to kMaxWeight
  std::vector<int32_t> bias;                     // one per output channel
  std::vector<QuantizedMultiplier> multipliers;  // one per output channel
  int32_t input_zero_point = 0;
  // What lies around the input: its zero point, or what an nn.pad before the layer says.
  std::optional<int8_t> padding;
  int32_t output_zero_point = 0;
  int32_t clamp_min = -128, clamp_max = 127;
  // The accumulators leave the device as int32, bias included; there are no multipliers.
  bool leaves_int32 = false;
};

struct CompiledLayer {
  std::vector<uint8_t> blob;
  ActivationLayout input, output;  // of slots kInputRegion and kOutputRegion; int32: of each of four planes
  int8_t input_border = 0;         // what the input's border holds
  Tiling tiling;
  Estimate estimate;
  int64_t alu_instructions_per_tile = 0;
};

struct CompiledGemm {
  CompiledUnit unit;  // regions in the order of LayerRegion
  Tiling tiling;
};

// PackError (QPLAN_MODEL_UNSUPPORTED), with numbers, for a layer that the device cannot compute to the bit or
// that does not fit it. input: its border is at least the window's padding, and holds what pads.
CompiledGemm compile_gemm(const Config& config, const GemmLayer& layer, const ActivationLayout& input,
                          const ActivationLayout& output);

// The same as a blob of its own, which `load` of a driver with this configuration accepts.
CompiledLayer compile_layer(const Config& config, const GemmLayer& layer);
// With other borders than the window's padding around the input and none around the output.
CompiledLayer compile_layer(const Config& config, const GemmLayer& layer, const Border& input,
                            const Border& output);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_COMPILE_H_
