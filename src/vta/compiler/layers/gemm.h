// Layers of weights (qplan.qconv2d, qplan.qdepthwise, qplan.qdense, ..._acc32) as units: on the GEMM core,
// under contract TFL2 or with int32 results.
#ifndef QPLAN_SRC_VTA_COMPILER_LAYERS_GEMM_H_
#define QPLAN_SRC_VTA_COMPILER_LAYERS_GEMM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numeric/quantize_multiplier.h"
#include "src/vta/compiler/layers/unit.h"
#include "src/vta/compiler/streams/gemm.h"
#include "src/vta/compiler/streams/layout.h"
#include "src/vta/compiler/streams/stream.h"

namespace qplan::vta::compiler {

// qnn.conv2d or qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?, one image; one group, or as many as
// channels in and out (depthwise: GEMM with diagonal weights, a cycle for each tap where the ALU would take
// seven). All values are in int8: zero points and clamp of uint8 activations are given less 128, and their
// bytes enter and leave with the highest bit flipped.
struct GemmLayer {
  std::string name;
  Geometry geometry;
  // [O][KH][KW][I], I = 1 where depthwise; less their zero point; from kMinWeight to kMaxWeight.
  std::vector<int16_t> weights;
  std::vector<int32_t> bias;                     // one per output channel
  std::vector<QuantizedMultiplier> multipliers;  // one per output channel
  int32_t input_zero_point = 0;
  // What the border of the input holds; nullopt: its zero point.
  std::optional<int8_t> padding;
  int32_t output_zero_point = 0;
  int32_t clamp_min = -128, clamp_max = 127;
  // The accumulators leave the device as int32, bias included; there are no multipliers.
  bool leaves_int32 = false;
};

struct CompiledGemm {
  CompiledUnit unit;  // regions in the order of LayerRegion
  Tiling tiling;
};

// PackError (QPLAN_MODEL_UNSUPPORTED), with numbers, for a layer that the device cannot compute to the bit or
// that does not fit it. input: its border is at least the window's padding, and holds what pads.
CompiledGemm compile_gemm(const Config& config, const GemmLayer& layer, const ActivationLayout& input,
                          const ActivationLayout& output);

// A matched layer of weights as numbers for the compiler.
struct ReadLayer {
  GemmLayer layer;
  // Whether the tensors in the plan are uint8: their highest bits are flipped on the way to and from the
  // device.
  bool flips_input = false, flips_output = false;
};

// A candidate of "qplan.qconv2d", "qplan.qdepthwise", "qplan.qdense" or their "..._acc32" whose constraints
// hold. An nn.pad before the layer becomes the border of its input. PackError (QPLAN_MODEL_UNSUPPORTED) where
// constants cannot be read.
ReadLayer read_gemm_layer(const Candidate& candidate);
UnitPlan read_gemm_unit(const Candidate& candidate);

}  // namespace qplan::vta::compiler

#endif  // QPLAN_SRC_VTA_COMPILER_LAYERS_GEMM_H_
