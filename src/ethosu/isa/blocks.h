// Blocks and SHRAM: how much of the memory on the chip a kernel needs for its block.
#ifndef QPLAN_SRC_ETHOSU_ISA_BLOCKS_H_
#define QPLAN_SRC_ETHOSU_ISA_BLOCKS_H_

#include <stdint.h>

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

// Rows, columns and channels of the input that a block of the output needs at a time.
struct IfmBlock {
  uint32_t h = 1, w = 1, d = 1;
  uint64_t elements() const { return uint64_t{h} * w * d; }
};
IfmBlock ifm_block(const Config& config, const Kernel& kernel);

struct ShramUse {
  uint32_t ifm_banks = 0, acc_banks = 0;
  uint32_t top = 0;  // the first bank that the kernel leaves alone
  // The registers' values; fits: they do not overlap.
  uint32_t ib_end = 0, ab_start = 0, ifm2_ib_start = 0;
  bool fits = false;
};
// kernel: everything but its SHRAM registers.
ShramUse shram_use(const Config& config, const Kernel& kernel);
// That the kernel's registers are those values.
[[nodiscard]] Problem check_shram(const Config& config, const Kernel& kernel);

// The accumulators that a kernel uses: 40 bits for scaled 16-bit input.
bool needs_acc40(const Kernel& kernel);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_BLOCKS_H_
