#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {
namespace {

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

}  // namespace qplan::ethosu
