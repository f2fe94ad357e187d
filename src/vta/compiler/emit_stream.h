// The instructions of a tiled layer.
#ifndef QPLAN_SRC_VTA_COMPILER_EMIT_STREAM_H_
#define QPLAN_SRC_VTA_COMPILER_EMIT_STREAM_H_

#include <cstdint>
#include <vector>

#include "src/vta/compiler/blob_writer.h"
#include "src/vta/compiler/requantize.h"
#include "src/vta/compiler/tile.h"

namespace qplan::target::vta {

// Regions of a layer's blob, in this order.
enum LayerRegion : uint32_t { kWeightRegion, kConstantRegion, kUopRegion, kInputRegion, kOutputRegion };
inline constexpr uint32_t kNumLayerRegions = 5;

struct LayerStream {
  Stream stream;
  std::vector<uint8_t> uops;
};
LayerStream emit_gemm_layer(const Config& config, const TileProblem& problem, const Tiling& tiling,
                            const Requantization& requantization);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_EMIT_STREAM_H_
