#include "src/ethosu/compiler/block_choice.h"

#include <algorithm>
#include <tuple>

#include "src/ethosu/isa/blocks.h"
#include "src/ethosu/isa/cost.h"

namespace qplan::ethosu::compiler {
namespace {

constexpr uint32_t kMaxBlockH = 32, kMaxBlockW = 64, kMaxBlockD = 128;

// Bytes of input and weights that the device reads.
uint64_t fetched_bytes(const Config& config, const Kernel& k) {
  const IfmBlock block = ifm_block(config, k);
  const uint64_t across = uint64_t{ceil_div(k.ofm.h, k.block_h)} * ceil_div(k.ofm.w, k.block_w);
  const uint64_t deep = k.kind == KernelKind::kConv ? ceil_div(k.ofm.d, k.block_d) : 1;
  const uint64_t ifm = across * deep * block.h * block.w * k.ifm.d * k.ifm.element_bytes();
  const uint64_t inputs = k.kind == KernelKind::kConv ? k.ifm.d : 1;
  const uint64_t weights = k.is_convolution() ? inputs * k.taps_h() * k.taps_w() * k.ofm.d * across : 0;
  return ifm + weights;
}

// What the codes of a core's weights may take: a byte each, and two bits for the zeros that the device's
// order has beside them.
uint64_t estimated_weight_bytes(const Config& config, const Kernel& k) {
  const uint64_t taps = uint64_t{k.taps_h()} * k.taps_w();
  const uint32_t inputs = k.kind == KernelKind::kDepthwise ? 1 : k.ifm.d;
  const uint64_t weights = taps * inputs * ceil_div(k.ofm.d, k.cores);
  uint64_t ordered = uint64_t{round_up(ceil_div(k.ofm.d, k.cores), config.unit_d)};
  if (k.kind == KernelKind::kDepthwise) {
    ordered *= (taps + 3) / 4 * 4;
  } else if (k.is_part_kernel_first) {
    const uint64_t group = k.ifm.bits == 16 ? 2 : 4;
    ordered *= (taps + group - 1) / group * group * round_up(inputs, kIfmUnitDepth);
  } else {
    ordered *= taps * round_up(inputs, k.ifm.bits == 16 ? 16 : kIfmStepDepth);
  }
  return weights + (ordered - weights) / 8;
}

// is_ordered: depth and weight order stay.
bool choose(const Config& config, bool is_ordered, Kernel* kernel) {
  Kernel best;
  bool is_found = false;
  std::tuple<uint64_t, uint64_t, uint32_t> least = {UINT64_MAX, UINT64_MAX, UINT32_MAX};
  const Memories memories = default_memories(config);
  Kernel k = *kernel;
  const uint32_t end_h = std::min(kMaxBlockH, round_up(k.ofm.h, config.unit_h));
  const uint32_t end_w = std::min(kMaxBlockW, round_up(k.ofm.w, config.unit_w));
  const uint32_t whole_d = round_up(k.ofm.d, config.unit_d);
  const auto try_order = [&](bool part_kernel) {
    k.is_part_kernel_first = part_kernel;
    if (!shram_use(config, k).fits) return;
    for (uint32_t core = 0; k.is_convolution() && !is_ordered && core < k.cores; ++core)
      k.weights[core].bytes = estimated_weight_bytes(config, k);
    const std::tuple<uint64_t, uint64_t, uint32_t> cost = {operation_cost(config, memories, k).cycles(),
                                                           fetched_bytes(config, k), k.blocks()};
    if (cost >= least) return;
    least = cost, best = k, is_found = true;
  };
  const auto try_block = [&] {
    try_order(false);
    if (k.kind == KernelKind::kConv) try_order(true);
  };
  for (k.block_h = config.unit_h; k.block_h <= end_h; k.block_h += config.unit_h) {
    for (k.block_w = config.unit_w; k.block_w <= end_w; k.block_w += config.unit_w) {
      if (is_ordered) {
        try_order(kernel->is_part_kernel_first);
        continue;
      }
      // Parts of the depth are multiples of 16.
      for (k.block_d = 16; k.block_d < whole_d && k.block_d <= kMaxBlockD; k.block_d += 16) try_block();
      if (whole_d > kMaxBlockD) continue;
      k.block_d = whole_d;
      try_block();
    }
  }
  if (is_found) *kernel = best;
  return is_found;
}

}  // namespace

bool choose_block(const Config& config, Kernel* kernel) { return choose(config, false, kernel); }

bool choose_block_extent(const Config& config, Kernel* kernel) { return choose(config, true, kernel); }

}  // namespace qplan::ethosu::compiler
