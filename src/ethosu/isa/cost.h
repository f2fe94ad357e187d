// What operations take: the memory on the chip that a kernel's blocks need, and estimates of cycles, from a
// model of kernels, transfers and memories, and of how they overlap. The model agrees with the estimates of
// Arm's compiler, not with measurements of silicon.
#ifndef QPLAN_SRC_ETHOSU_ISA_COST_H_
#define QPLAN_SRC_ETHOSU_ISA_COST_H_

#include <stdint.h>

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

// ---- blocks and SHRAM: how much of the memory on the chip a kernel needs for its block

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

// ---- work

// Elements that a kernel reads for its outputs, each as often as it is read, and bytes of its weights; at
// most UINT64_MAX.
uint64_t kernel_elements(const Kernel& kernel);
// Multiply-accumulates of a convolution; 0 for other kernels.
uint64_t kernel_macs(const Kernel& kernel);

// ---- lower bounds, for memories that keep up with the device. Blobs declare their sum, which loaders
// compare: no release may count more.
uint64_t kernel_cycles(const Config& config, const Kernel& kernel);
uint64_t transfer_cycles(const Config& config, uint64_t bytes);

// ---- with the memories that the regions are in
enum class MemoryClass : uint8_t { kSram = 0, kDram = 1, kFlash = 2 };
constexpr uint32_t kNumMemoryClasses = 3;
struct Memories {
  MemoryClass of[kMaxRegions];
};
// Constants (region 0) in flash, on a U65 in DRAM; everything else in SRAM.
Memories default_memories(const Config& config);

struct OperationCost {
  uint64_t compute = 0;                     // of the device, which waits for parts of blocks
  uint64_t access[kNumMemoryClasses] = {};  // in which a memory is busy

  // All of it overlaps.
  uint64_t cycles() const;
  // DRAM and flash are at the interface that the device has for slow memory.
  uint64_t slow_cycles() const {
    return access[static_cast<uint32_t>(MemoryClass::kDram)] +
           access[static_cast<uint32_t>(MemoryClass::kFlash)];
  }
};
OperationCost operation_cost(const Config& config, const Memories& memories, const Kernel& kernel);
OperationCost operation_cost(const Config& config, const Memories& memories, const Transfer& transfer);

// When operations start and end: one queue of kernels, one of transfers, a reader that waits, and the slow
// memory, which serves operations in the order of the stream.
class TimeLine {
 public:
  explicit TimeLine(const Config& config) : max_dmas_(max_unfinished_dmas(config)) {}
  void start_kernel(uint64_t cycles, uint64_t slow_cycles = 0) {
    start(&kernels_, kMaxUnfinishedKernels, cycles, slow_cycles);
  }
  void start_transfer(uint64_t cycles, uint64_t slow_cycles = 0) {
    start(&transfers_, max_dmas_, cycles, slow_cycles);
  }
  void start_kernel(const OperationCost& cost) { start_kernel(cost.cycles(), cost.slow_cycles()); }
  void start_transfer(const OperationCost& cost) { start_transfer(cost.cycles(), cost.slow_cycles()); }
  // Until at most n are unfinished.
  void wait_kernels(uint32_t n) { wait(kernels_, n); }
  void wait_transfers(uint32_t n) { wait(transfers_, n); }
  // When the last operation ends.
  uint64_t cycles() const {
    const uint64_t k = kernels_.ends[0], t = transfers_.ends[0];
    const uint64_t last = k > t ? k : t;
    return last > now_ ? last : now_;
  }

 private:
  // Ends of the last operations, the last one first.
  struct Queue {
    uint64_t ends[4] = {};
  };
  void wait(const Queue& queue, uint32_t n) {
    if (n < 4 && queue.ends[n] > now_) now_ = queue.ends[n];
  }
  void start(Queue* queue, uint32_t at_most, uint64_t cycles, uint64_t slow_cycles) {
    wait(*queue, at_most - 1);
    const uint64_t begin = queue->ends[0] > now_ ? queue->ends[0] : now_;
    uint64_t end = begin + cycles;
    if (slow_cycles > 0) {
      slow_end_ = (slow_end_ > begin ? slow_end_ : begin) + slow_cycles;
      if (slow_end_ > end) end = slow_end_;
    }
    for (uint32_t i = 3; i > 0; --i) queue->ends[i] = queue->ends[i - 1];
    queue->ends[0] = end;
  }

  uint32_t max_dmas_;
  Queue kernels_, transfers_;
  uint64_t now_ = 0, slow_end_ = 0;
};

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_COST_H_
