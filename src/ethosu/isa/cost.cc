#include "src/ethosu/isa/cost.h"

#include "src/ethosu/isa/blocks.h"

namespace qplan::ethosu {
namespace {

constexpr uint32_t kSubKernel = 8;
constexpr uint64_t kMemoryLatency = 32;
// Cycles until a transfer from flash or DRAM begins.
constexpr uint64_t kTransferLatency = 64;
enum OutputKind : uint32_t {
  kMaxOutput = 0,
  kSumOutput = 1,
  kAddOutput = 2,
  kProductOutput = 3,
  kClampOutput = 4
};

uint64_t most64(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Extents of the largest block.
struct BlockExtent {
  uint32_t h, w, d;
  uint64_t elements() const { return uint64_t{h} * w * d; }
};
BlockExtent clipped_block(const Kernel& k) {
  return {least(k.block_h, k.ofm.h), least(k.block_w, k.ofm.w), least(k.block_d, k.ofm.d)};
}

// Cycles of a block's sums, for a window of `taps` taps.
uint64_t sub_kernel_cycles(const Config& config, const Kernel& k, uint32_t taps, uint32_t ifm_depth) {
  const BlockExtent block = clipped_block(k);
  const uint64_t xy = uint64_t{ceil_div(block.h, config.unit_h)} * ceil_div(block.w, config.unit_w);
  const uint64_t nz = ceil_div(block.d, config.unit_d);
  const bool is_wide = k.ifm.bits == 16;
  if (k.kind == KernelKind::kPool) return most64(4, taps) * xy * nz * (is_wide ? 2 : 1);
  uint64_t per_step = 4 * xy, steps = taps, depth = 1;
  if (k.kind == KernelKind::kDepthwise) {
    steps = ceil_div(taps, 4);
    if (is_wide) per_step *= 2;
  } else if (k.is_part_kernel_first) {
    steps = ceil_div(taps, is_wide ? 2 : 4);
    depth = ceil_div(ifm_depth, kIfmUnitDepth);
  }
  uint64_t cycles = most64(4 * config.unit_d, per_step) * steps * depth * nz;
  if (xy == 1) {
    const uint64_t delay = config.macs == 32 ? 3 : 2;
    cycles += delay * depth * (nz == 1 ? steps : (steps - 1) * nz);
  }
  return cycles;
}

uint32_t output_kind(const Kernel& k) {
  if (k.kind == KernelKind::kElementwise) {
    if (k.elementwise == ElementwiseMode::kAdd || k.elementwise == ElementwiseMode::kSub) return kAddOutput;
    if (k.elementwise == ElementwiseMode::kMul) return kProductOutput;
    return kSumOutput;
  }
  if (k.is_acc40) return kProductOutput;
  return k.kind == KernelKind::kPool && k.pool == PoolMode::kMax ? kMaxOutput : kSumOutput;
}

uint64_t output_eighths(const Config& config, const Kernel& k) {
  uint64_t eighths = config.output_eighths[output_kind(k)];
  if (k.uses_table()) eighths = most64(eighths, 8);
  return eighths;
}

uint64_t memory_cycles(const Config& config, uint64_t bytes) {
  return kMemoryLatency + bytes / config.bytes_per_cycle;
}

}  // namespace

uint64_t kernel_macs(const Kernel& k) {
  if (!k.is_convolution()) return 0;
  const uint64_t taps = uint64_t{k.taps_h()} * k.taps_w();
  const uint64_t macs =
      uint64_t{k.ofm.h} * k.ofm.w * k.ofm.d * taps * (k.kind == KernelKind::kDepthwise ? 1 : k.ifm.d);
  // Three of four taps are on zeros.
  return k.upscale == Upscale::kZeros ? macs / 4 : macs;
}

uint64_t kernel_elements(const Kernel& k) {
  const bool is_elementwise = k.kind == KernelKind::kElementwise;
  const bool is_sum = k.kind == KernelKind::kPool && k.pool == PoolMode::kReduceSum;
  const uint64_t factors[] = {k.ofm.w, k.ofm.d, is_elementwise ? 2 : k.taps_h(),
                              is_elementwise ? 1 : k.taps_w(),
                              is_sum || k.kind == KernelKind::kConv ? k.ifm.d : 1};
  uint64_t elements = k.ofm.h;
  for (const uint64_t factor : factors) {
    if (__builtin_mul_overflow(elements, factor, &elements)) return UINT64_MAX;
  }
  for (uint32_t core = 0; k.is_convolution() && core < k.cores; ++core) {
    if (__builtin_add_overflow(elements, k.weights[core].bytes, &elements)) return UINT64_MAX;
  }
  return elements;
}

uint64_t kernel_cycles(const Config& config, const Kernel& k) {
  const uint64_t eighths = output_eighths(config, k);
  if (k.kind == KernelKind::kElementwise) return (uint64_t{k.ofm.h} * k.ofm.w * k.ofm.d * eighths + 7) / 8;
  const IfmBlock input = ifm_block(config, k);
  const uint32_t ifm_depth = least(input.d, round_up(k.ifm.d, kIfmUnitDepth));
  // Sub-kernels of 8 x 8 taps, and those at the window's right and lower end.
  const uint32_t full_y = k.taps_h() / kSubKernel, rest_y = k.taps_h() % kSubKernel;
  const uint32_t full_x = k.taps_w() / kSubKernel, rest_x = k.taps_w() % kSubKernel;
  const auto of = [&](uint64_t count, uint32_t taps) {
    return count == 0 || taps == 0 ? 0 : count * sub_kernel_cycles(config, k, taps, ifm_depth);
  };
  uint64_t sums = of(uint64_t{full_y} * full_x, kSubKernel * kSubKernel) + of(full_y, kSubKernel * rest_x) +
                  of(full_x, rest_y * kSubKernel) + of(1, rest_y * rest_x);
  sums = (sums + k.cores - 1) / k.cores;
  if (k.kind == KernelKind::kConv) sums *= ceil_div(k.ifm.d, ifm_depth);
  const BlockExtent block = clipped_block(k);
  uint64_t output = (block.elements() * eighths + 7) / 8 / k.cores;
  const uint64_t ifm_bytes = uint64_t{least(input.h, k.ifm.h)} * least(input.w, k.ifm.w) *
                             least(ifm_depth, k.ifm.d) * k.ifm.element_bytes();
  const uint64_t ofm_bytes = block.elements() * k.ofm.element_bytes();
  const uint64_t least_cycles =
      (memory_cycles(config, ifm_bytes) + memory_cycles(config, ofm_bytes) + output + sums) / 4;
  sums = most64(sums, least_cycles), output = most64(output, least_cycles);
  const uint64_t blocks = k.blocks();
  return sums > output ? sums * blocks + output : output * blocks + sums;
}

uint64_t transfer_cycles(const Config& config, uint64_t bytes) {
  // The memory at the second interface is slower: flash has an eighth of the rate (U55), DRAM about a
  // quarter (U65).
  const uint64_t slower = config.is_u65 ? 4 : 8;
  return kTransferLatency + bytes * slower / config.bytes_per_cycle;
}

}  // namespace qplan::ethosu
