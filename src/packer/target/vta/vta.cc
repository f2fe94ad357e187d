#include "src/packer/target/vta/vta.h"

#include <algorithm>

#include "src/packer/target/patterns.h"
#include "src/packer/target/region.h"
#include "src/packer/target/vta/compile_region.h"
#include "src/packer/target/vta/constraints.h"
#include "src/packer/target/vta/layer.h"
#include "src/packer/target/vta/unit_cycles.h"

namespace qplan::target::vta {
namespace {

using pattern::any;
using pattern::op;

// ---- estimates: the compiler's own count, or what tiles come to when loads and computation overlap

// ALU instructions by register take two cycles, by immediate one, a reset one.
constexpr uint64_t kAddCycles = 11;    // as an affine form: two products, two sums, offset, shift, clamp
constexpr uint64_t kAffineCycles = 5;  // product, offset, shift

struct Load {
  uint64_t elements = 0;  // 16 channels of a position of the output
  uint64_t in_bytes = 0, out_bytes = 0;
};

uint64_t unsigned_of(int64_t value) {
  return static_cast<uint64_t>(std::clamp<int64_t>(value, 0, int64_t{1} << 40));
}

Load load_of(const Geometry& g) {
  Load load;
  load.elements = unsigned_of(g.batch * g.out_h * g.out_w * blocks(g.out_c));
  load.in_bytes = unsigned_of(g.batch * g.in_h * g.in_w * blocks(g.in_c) * kInpBytes);
  load.out_bytes = load.elements * kInpBytes;
  return load;
}

// Units of the ALU load their input into ACC themselves: only stores overlap.
uint64_t alu_bound(const Load& load, uint64_t compute, const DeviceCosts& costs) {
  return std::max(dma_cycles(costs, load.in_bytes) + compute, dma_cycles(costs, load.out_bytes)) +
         costs.dma_latency_cycles;
}

// Windows, and what follows them on each result.
uint64_t pool_cycles(const Candidate& c, const DeviceCosts& costs, uint64_t epilogue) {
  const Geometry g = geometry(c);
  const Load load = load_of(g);
  return alu_bound(load, load.elements * (1 + unsigned_of(g.taps()) * 2 + epilogue), costs);
}
uint64_t max_pool2d_cycles(const Candidate& c, const DeviceCosts& costs) { return pool_cycles(c, costs, 2); }
uint64_t average_cycles(const Candidate& c, const DeviceCosts& costs) {
  return pool_cycles(c, costs, kAffineCycles);
}

uint64_t elementwise_cycles(const Candidate& c, const DeviceCosts& costs, uint64_t inputs, uint64_t cycles) {
  const ir::TensorType& type = c.function().type(c.root().results[0]);
  const int64_t channels = type.shape.empty() ? 1 : type.shape.back();
  Load load;
  load.elements = unsigned_of(type.num_elements() / channels * blocks(channels));
  load.out_bytes = load.elements * kInpBytes;
  load.in_bytes = inputs * load.out_bytes;
  return alu_bound(load, load.elements * cycles, costs);
}

uint64_t add_cycles(const Candidate& c, const DeviceCosts& costs) {
  return elementwise_cycles(c, costs, 2, kAddCycles);
}
uint64_t clip_cycles(const Candidate& c, const DeviceCosts& costs) {
  return elementwise_cycles(c, costs, 1, 2);
}

}  // namespace

std::vector<PatternRow> pattern_table(const Config& config) {
  using enum Convolution;
  const auto compiled = [&config](const char* row) {
    return [config, row](const Candidate& c, const DeviceCosts& costs) {
      return unit_cycles(config, row, c, costs);
    };
  };
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
       add_cycles},
      {"qplan.qmax_pool2d", "Maximum over a window: nn.max_pool2d -> clip?",
       with_clip(op("nn.max_pool2d", {any().as("data")}).as("pool")), max_pool2d_constraints(config),
       max_pool2d_cycles},
      {"qplan.qavg_pool2d", "Average over a window: qnn.avg_pool2d -> clip?",
       with_clip(op("qnn.avg_pool2d", {any().as("data")}).as("pool")), avg_pool2d_constraints(config),
       average_cycles},
      {"qplan.qmean", "Average over height and width, rescaled: qnn.mean",
       op("qnn.mean", {any().as("data")}).as("mean"), mean_constraints(config), average_cycles},
      {"qplan.qclip", "Clamp: clip", op("clip", {any().as("data")}).as("clip"), clip_constraints(),
       clip_cycles},
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
  target.costs.clock_mhz = config.clock_khz / 1000;
  target.costs.dma_bytes_per_cycle = config.dma_bytes_per_cycle;
  target.costs.dma_latency_cycles = config.dma_latency_cycles;
  target.table = pattern_table(config);
  target.compile = [config](const ir::Module& module, const ir::Function& region) {
    return compile_region(config, module, region);
  };
  target.no_row_text = "has no exact sequence on this target";
  target.no_row_hint = "nothing to change in the model";
  return target;
}

}  // namespace qplan::target::vta
