#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

// ---- blocks and SHRAM

constexpr uint32_t kSubKernel = 8;  // taps of a window that are worked on at a time

bool sums_depth(const Kernel& k) {
  return k.kind == KernelKind::kConv || (k.kind == KernelKind::kPool && k.pool == PoolMode::kReduceSum);
}

// Bits of an element of the operand with the larger ones.
uint32_t ifm_bits(const Kernel& k) {
  return k.kind == KernelKind::kElementwise && k.has_ifm2 ? most(k.ifm.bits, k.ifm2.bits) : k.ifm.bits;
}

}  // namespace

IfmBlock ifm_block(const Config& config, const Kernel& k) {
  uint32_t block_h = k.block_h;
  if (config.macs == 256 && k.ofm.h == 1 && k.kind != KernelKind::kElementwise && k.window_h == 1)
    block_h = 1;
  if (config.macs == 512 && k.ofm.h == 1 && k.kind != KernelKind::kElementwise && k.window_h == 1)
    block_h = 1;
  const uint32_t factor = k.upscale == Upscale::kNone ? 1 : 2;
  const uint32_t nearest = k.upscale == Upscale::kNearest ? 1 : 0;
  const auto extent = [&](uint32_t block, uint32_t stride, uint32_t window, uint32_t unit) {
    return round_up(ceil_div((block - 1) * stride + least(window, kSubKernel) + nearest, factor), unit);
  };
  IfmBlock block;
  block.h = extent(block_h, k.stride_y, k.window_h, config.unit_h);
  block.w = extent(k.block_w, k.stride_x, k.window_w, config.unit_w);
  block.d = k.block_d;
  if (sums_depth(k)) {
    block.d = k.ifm.bits == 16 ? round_up(least(k.ifm.d, 16), 4)
                               : round_up(least(k.ifm.d, k.is_part_kernel_first ? 16 : 32), kIfmUnitDepth);
  }
  return block;
}

bool needs_acc40(const Kernel& k) {
  return k.ifm.bits == 16 && k.kind != KernelKind::kPool && (k.is_convolution() || k.has_scale);
}

ShramUse shram_use(const Config& config, const Kernel& k) {
  ShramUse use;
  const uint32_t bits = ifm_bits(k);
  const IfmBlock block = ifm_block(config, k);
  const uint32_t ifm_bytes = block.h * block.w * round_up(block.d * bits / 8, 8);
  use.ifm_banks =
      round_up(2 * ceil_div(ifm_bytes, kBankBytes), bits == 32 ? config.ifm32_granule : config.ifm_granule);
  const uint32_t acc_bytes = k.block_h * k.block_w * round_up(k.block_d, 8) * (k.is_acc40 ? 5 : 4);
  use.acc_banks =
      round_up(2 * ceil_div(acc_bytes, kBankBytes), k.is_acc40 ? config.acc40_granule : config.acc32_granule);
  const bool keeps_table = config.banks > 16 || k.uses_table();
  use.top = config.banks - (keeps_table ? kTableBanks : 0);
  if (k.kind == KernelKind::kElementwise) {
    use.ib_end = use.ab_start = use.top;
    use.ifm2_ib_start = kReservedBanks + use.ifm_banks;
    use.fits = kReservedBanks + use.ifm_banks * (k.has_ifm2 ? 2 : 1) <= use.top;
    return use;
  }
  use.ib_end = kReservedBanks + use.ifm_banks;
  use.ab_start = use.acc_banks > use.top ? 0 : use.top - use.acc_banks;
  use.fits = use.acc_banks <= use.top && use.ib_end <= use.ab_start;
  return use;
}

Problem check_shram(const Config& config, const Kernel& kernel) {
  const ShramUse use = shram_use(config, kernel);
  if (!use.fits)
    return {"a block does not fit SHRAM: banks", kReservedBanks + use.ifm_banks + use.acc_banks, use.top};
  if (kernel.ib_end != use.ib_end) return {"IFM_IB_END", kernel.ib_end, use.ib_end};
  if (kernel.ab_start != use.ab_start) return {"AB_START", kernel.ab_start, use.ab_start};
  if (kernel.has_ifm2 && kernel.ifm2_ib_start != use.ifm2_ib_start)
    return {"IFM2_IB_START", kernel.ifm2_ib_start, use.ifm2_ib_start};
  return {};
}

// ---- cycles

namespace {

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

// The part of the input that a block of the output needs at a time, as far as there are elements.
IfmBlock clipped_input(const Config& config, const Kernel& k) {
  IfmBlock block = ifm_block(config, k);
  block.h = least(block.h, k.ifm.h), block.w = least(block.w, k.ifm.w), block.d = least(block.d, k.ifm.d);
  return block;
}

// Cycles of a block: sums of products, and what follows them up to the output.
struct BlockWork {
  uint64_t sums = 0, output = 0, blocks = 1;

  // memory: until a block's input is read and its output is written, of which four may be on their way. Sums
  // of a block are made while the block before is written.
  uint64_t cycles(uint64_t memory) const {
    const uint64_t least_cycles = (memory + output + sums) / 4;
    const uint64_t s = most64(sums, least_cycles), o = most64(output, least_cycles);
    return s > o ? s * blocks + o : o * blocks + s;
  }
};
BlockWork block_work(const Config& config, const Kernel& k) {
  BlockWork work;
  const uint32_t ifm_depth = least(ifm_block(config, k).d, round_up(k.ifm.d, kIfmUnitDepth));
  // Sub-kernels of 8 x 8 taps, and those at the window's right and lower end.
  const uint32_t full_y = k.taps_h() / kSubKernel, rest_y = k.taps_h() % kSubKernel;
  const uint32_t full_x = k.taps_w() / kSubKernel, rest_x = k.taps_w() % kSubKernel;
  const auto of = [&](uint64_t count, uint32_t taps) {
    return count == 0 || taps == 0 ? 0 : count * sub_kernel_cycles(config, k, taps, ifm_depth);
  };
  work.sums = of(uint64_t{full_y} * full_x, kSubKernel * kSubKernel) + of(full_y, kSubKernel * rest_x) +
              of(full_x, rest_y * kSubKernel) + of(1, rest_y * rest_x);
  work.sums = (work.sums + k.cores - 1) / k.cores;
  if (k.kind == KernelKind::kConv) work.sums *= ceil_div(k.ifm.d, ifm_depth);
  work.output = (clipped_block(k).elements() * output_eighths(config, k) + 7) / 8 / k.cores;
  work.blocks = k.blocks();
  return work;
}

// ---- memories

struct MemoryRate {
  uint32_t bytes;  // in kRateCycles cycles
  uint32_t burst;  // bytes that the memory moves at once, needed or not
  uint32_t read_latency, write_latency;
};
constexpr uint32_t kRateCycles = 64;
// SRAM, DRAM, flash as in the system configurations of Arm's compiler: at 500 MHz (U55) SRAM of 4 GB/s, DRAM
// of 3.75 GB/s, flash of 0.5 GB/s; at 1 GHz (U65) SRAM of 16 GB/s and the same others.
constexpr MemoryRate kRates[2][kNumMemoryClasses] = {
    {{512, 32, 32, 32}, {480, 128, 500, 250}, {64, 128, 64, 64}},
    {{1024, 32, 32, 32}, {240, 128, 500, 250}, {32, 128, 64, 64}}};

const MemoryRate& rate_of(const Config& config, MemoryClass memory) {
  return kRates[config.is_u65 ? 1 : 0][static_cast<uint32_t>(memory)];
}

uint64_t cycles_at(const MemoryRate& rate, uint64_t bytes) {
  return (bytes * kRateCycles + rate.bytes - 1) / rate.bytes;
}

// Elements of a block that follow each other in memory, in bytes: a request is for so many. NHWC has them in
// rows of channels, NHCWB16 in rows of bricks.
uint64_t request_bytes(const Config& config, const FeatureMap& map, uint32_t block_w, uint32_t block_d,
                       bool is_write) {
  const uint64_t element = map.element_bytes();
  const uint32_t cores = is_write ? config.cores : 1;
  if (map.is_nhcwb16) return 16 * element * block_w * cores;
  const bool is_whole = block_d >= map.d && map.stride_x == map.d * element;
  if (is_whole && (!is_write || map.d <= 16)) return element * map.d * block_w;
  // Outputs are written as they are made: at most 16 channels of a core.
  return element * least(block_d, is_write ? 16 * cores : map.d);
}

// With the rest of bursts that are not whole.
uint64_t moved_bytes(const MemoryRate& rate, uint64_t bytes, uint64_t request) {
  return request >= rate.burst ? bytes : (bytes * rate.burst + request - 1) / request;
}

uint64_t stored_elements(const FeatureMap& map) {
  return uint64_t{map.h} * map.w * (map.is_nhcwb16 ? round_up(map.d, 16) : map.d);
}

// Accesses of a kernel to memory, and the wait for those of one block.
class KernelAccess {
 public:
  KernelAccess(const Config& config, const Memories& memories, const Kernel& kernel, OperationCost* cost)
      : config_(config), memories_(memories), k_(kernel), cost_(*cost) {}

  uint64_t block_cycles() const {
    const BlockExtent output = clipped_block(k_);
    const IfmBlock input = clipped_input(config_, k_);
    const MemoryRate &from = rate(k_.ifm.region), &to = rate(k_.ofm.region);
    const uint64_t read = moved_bytes(from, input.elements() * k_.ifm.element_bytes(), input_request());
    const uint64_t written = moved_bytes(to, output.elements() * k_.ofm.element_bytes(), output_request());
    return from.read_latency + cycles_at(from, read) + to.write_latency + cycles_at(to, written);
  }
  // Scales of a block's channels, which are read one by one.
  uint64_t scale_cycles() const {
    if (!k_.is_convolution()) return 0;
    return uint64_t{clipped_block(k_).d} * kScaleBytes * rate(k_.scales[0].region).read_latency / 256;
  }

  void add() {
    add_map(k_.ifm, fetched_elements(), input_request());
    if (k_.has_ifm2) add_map(k_.ifm2, k_.ofm.elements(), input_request());
    add_map(k_.ofm, stored_elements(k_.ofm), output_request());
    for (uint32_t core = 0; k_.is_convolution() && core < k_.cores; ++core) {
      // All weights for each block of rows and columns.
      const uint64_t across = uint64_t{ceil_div(k_.ofm.h, k_.block_h)} * ceil_div(k_.ofm.w, k_.block_w);
      add_bytes(k_.weights[core].region, k_.weights[core].bytes * across);
      add_bytes(k_.scales[core].region, k_.scales[core].bytes);
    }
  }

 private:
  static constexpr uint32_t kScaleBytes = 10;

  const MemoryRate& rate(uint32_t region) const { return rate_of(config_, memories_.of[region]); }
  uint64_t input_request() const {
    const IfmBlock input = clipped_input(config_, k_);
    return request_bytes(config_, k_.ifm, input.w, input.d, false);
  }
  uint64_t output_request() const {
    const BlockExtent output = clipped_block(k_);
    return request_bytes(config_, k_.ofm, output.w, output.d, true);
  }
  void add_bytes(uint32_t region, uint64_t bytes) {
    const auto memory = static_cast<uint32_t>(memories_.of[region]);
    cost_.access[memory] += cycles_at(rate(region), bytes);
  }
  void add_map(const FeatureMap& map, uint64_t elements, uint64_t request) {
    add_bytes(map.region, moved_bytes(rate(map.region), elements * map.element_bytes(), request));
  }
  // The input: blocks overlap where the window is larger than a stride, and sums over the depth read all
  // of it for each block of the output's depth.
  uint64_t fetched_elements() const {
    if (k_.kind == KernelKind::kElementwise) return k_.ofm.elements();
    const IfmBlock input = clipped_input(config_, k_);
    const bool sums_depth =
        k_.kind == KernelKind::kConv || (k_.kind == KernelKind::kPool && k_.pool == PoolMode::kReduceSum);
    const uint64_t sub_kernels =
        uint64_t{ceil_div(k_.taps_h(), kSubKernel)} * ceil_div(k_.taps_w(), kSubKernel);
    const uint64_t blocks =
        sums_depth ? k_.blocks() : uint64_t{ceil_div(k_.ofm.h, k_.block_h)} * ceil_div(k_.ofm.w, k_.block_w);
    const uint32_t depth = k_.ifm.is_nhcwb16 ? round_up(k_.ifm.d, 16) : k_.ifm.d;
    return uint64_t{input.h} * input.w * depth * sub_kernels * blocks;
  }

  const Config& config_;
  const Memories& memories_;
  const Kernel& k_;
  OperationCost& cost_;
};

}  // namespace

Memories default_memories(const Config& config) {
  Memories memories = {};
  memories.of[0] = config.is_u65 ? MemoryClass::kDram : MemoryClass::kFlash;
  return memories;
}

uint64_t OperationCost::cycles() const {
  uint64_t most = compute;
  for (const uint64_t cycles : access) most = most64(most, cycles);
  return most;
}

OperationCost operation_cost(const Config& config, const Memories& memories, const Kernel& k) {
  OperationCost cost;
  KernelAccess access(config, memories, k, &cost);
  if (k.kind == KernelKind::kElementwise) {
    const uint64_t elements = clipped_block(k).elements(), eighths = output_eighths(config, k);
    // A block, in eighths: a quarter of what it waits for, as four are on their way.
    const uint64_t block = most64(elements * eighths, (8 * access.block_cycles() + elements * eighths) / 4);
    cost.compute = (block * k.ofm.elements() / elements + 7) / 8;
  } else {
    BlockWork work = block_work(config, k);
    work.output = most64(work.output, access.scale_cycles());
    cost.compute = work.cycles(access.block_cycles());
  }
  access.add();
  return cost;
}

OperationCost operation_cost(const Config& config, const Memories& memories, const Transfer& transfer) {
  OperationCost cost;
  const MemoryClass from = memories.of[transfer.from.region];
  const MemoryClass to = transfer.to_shram ? MemoryClass::kSram : memories.of[transfer.to.region];
  const MemoryRate& read = rate_of(config, from);
  cost.access[static_cast<uint32_t>(from)] = cycles_at(read, transfer.from.bytes);
  cost.compute = read.read_latency + cost.access[static_cast<uint32_t>(from)];
  const uint64_t written = cycles_at(rate_of(config, to), transfer.from.bytes);
  if (!transfer.to_shram) cost.access[static_cast<uint32_t>(to)] += written;
  cost.compute = most64(cost.compute, written);
  return cost;
}

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
  if (k.kind == KernelKind::kElementwise) return (k.ofm.elements() * output_eighths(config, k) + 7) / 8;
  const IfmBlock input = clipped_input(config, k);
  const uint64_t ifm_bytes = input.elements() * k.ifm.element_bytes();
  const uint64_t ofm_bytes = clipped_block(k).elements() * k.ofm.element_bytes();
  return block_work(config, k).cycles(memory_cycles(config, ifm_bytes) + memory_cycles(config, ofm_bytes));
}

uint64_t transfer_cycles(const Config& config, uint64_t bytes) {
  // The memory at the second interface is slower: flash has an eighth of the rate (U55), DRAM about a
  // quarter (U65).
  const uint64_t slower = config.is_u65 ? 4 : 8;
  return kTransferLatency + bytes * slower / config.bytes_per_cycle;
}

}  // namespace qplan::ethosu
