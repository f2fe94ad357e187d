#include "src/vta/compiler/vta.h"

#include "src/packer/target/patterns.h"
#include "src/packer/target/region.h"
#include "src/vta/compiler/compile_region.h"
#include "src/vta/compiler/constraints.h"
#include "src/vta/compiler/layer.h"
#include "src/vta/compiler/rename.h"
#include "src/vta/compiler/unit_cycles.h"

namespace qplan::target::vta {
namespace {

using pattern::any;
using pattern::op;

}  // namespace

std::vector<PatternRow> pattern_table(const Config& config) {
  using enum Convolution;
  // Estimates are the compiler's own count.
  const auto compiled = [&config](const char* row) { return UnitCycles(config, row); };
  return {
      {"qplan.qconv2d", "Convolution: nn.pad? -> qnn.conv2d -> nn.bias_add? -> qnn.requantize -> clip?",
       requantized(with_bias(convolution(kOthers))), conv2d_constraints(config), compiled("qplan.qconv2d")},
      {"qplan.qdepthwise",
       "Depthwise convolution, as GEMM with diagonal weights: nn.pad? -> qnn.conv2d with as many groups as "
       "channels -> "
       "nn.bias_add? -> "
       "qnn.requantize -> clip?",
       requantized(with_bias(convolution(kDepthwise))), depthwise_constraints(config),
       compiled("qplan.qdepthwise")},
      {"qplan.qdense", "Fully connected layer: qnn.dense -> nn.bias_add? -> qnn.requantize -> clip?",
       requantized(with_bias(dense())), dense_constraints(config), compiled("qplan.qdense")},
      {"qplan.qadd", "Addition of two activations: qnn.add -> clip?",
       with_clip(op("qnn.add", {any().as("lhs"), any().as("rhs")}).as("sum")), add_constraints(config),
       compiled("qplan.qadd")},
      {"qplan.qmax_pool2d", "Maximum over a window: nn.max_pool2d -> clip?",
       with_clip(op("nn.max_pool2d", {any().as("data")}).as("pool")), max_pool2d_constraints(config),
       compiled("qplan.qmax_pool2d")},
      {"qplan.qavg_pool2d", "Average over a window: qnn.avg_pool2d -> clip?",
       with_clip(op("qnn.avg_pool2d", {any().as("data")}).as("pool")), avg_pool2d_constraints(config),
       compiled("qplan.qavg_pool2d")},
      {"qplan.qmean", "Average over height and width, rescaled: qnn.mean",
       op("qnn.mean", {any().as("data")}).as("mean"), mean_constraints(config), compiled("qplan.qmean")},
      {"qplan.qclip", "Clamp: clip", op("clip", {any().as("data")}).as("clip"), clip_constraints(),
       compiled("qplan.qclip")},
      {"qplan.qreshape", "Another shape of the same bytes, without an instruction: reshape",
       op("reshape", {any().as("data")}), rename_constraints(),
       [](const Candidate&, const DeviceCosts&) { return uint64_t{0}; }},
      {"qplan.qconv2d_acc32",
       "Convolution whose int32 results leave the device, where they cannot be requantised there: nn.pad? -> "
       "qnn.conv2d -> nn.bias_add?",
       with_bias(convolution(kOthers)), conv2d_acc32_constraints(config), compiled("qplan.qconv2d_acc32")},
      {"qplan.qdense_acc32",
       "Fully connected layer whose int32 results leave the device: qnn.dense -> nn.bias_add?",
       with_bias(dense()), dense_acc32_constraints(config), compiled("qplan.qdense_acc32")},
  };
}

Target make_target(const Config& config) {
  Target target;
  target.name = "vta";
  target.device = config;
  target.costs.clock_khz = config.clock_khz;
  target.costs.dma_bytes_per_cycle = config.dma_bytes_per_cycle;
  target.costs.dma_latency_cycles = config.dma_latency_cycles;
  target.max_bank_bytes = static_cast<uint64_t>(kMaxBufferBytes);
  target.table = pattern_table(config);
  target.compile = [config](const ir::Module& module, const ir::Function& region) {
    return compile_region(config, module, region);
  };
  target.no_row_text = "has no exact sequence on this target";
  target.no_row_hint = "nothing to change in the model";
  return target;
}

}  // namespace qplan::target::vta
