// Estimates of cycles: a model of kernels and transfers, and of how their queues overlap. It agrees with the
// estimates of Arm's compiler, not with measurements of silicon.
#ifndef QPLAN_SRC_ETHOSU_ISA_COST_H_
#define QPLAN_SRC_ETHOSU_ISA_COST_H_

#include <stdint.h>

#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

// Multiply-accumulates of a convolution; 0 for other kernels.
// Elements that a kernel reads for its outputs, each as often as it is read, and bytes of its weights; at
// most UINT64_MAX.
uint64_t kernel_elements(const Kernel& kernel);
uint64_t kernel_macs(const Kernel& kernel);
uint64_t kernel_cycles(const Config& config, const Kernel& kernel);
uint64_t transfer_cycles(const Config& config, uint64_t bytes);

// When operations start and end: one queue of kernels, one of transfers, and a reader that waits.
class TimeLine {
 public:
  explicit TimeLine(const Config& config) : max_dmas_(max_unfinished_dmas(config)) {}
  void start_kernel(uint64_t cycles) { start(&kernels_, kMaxUnfinishedKernels, cycles); }
  void start_transfer(uint64_t cycles) { start(&transfers_, max_dmas_, cycles); }
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
  void start(Queue* queue, uint32_t at_most, uint64_t cycles) {
    wait(*queue, at_most - 1);
    const uint64_t begin = queue->ends[0] > now_ ? queue->ends[0] : now_;
    for (uint32_t i = 3; i > 0; --i) queue->ends[i] = queue->ends[i - 1];
    queue->ends[0] = begin + cycles;
  }

  uint32_t max_dmas_;
  Queue kernels_, transfers_;
  uint64_t now_ = 0;
};

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_COST_H_
