// What operations read and write, which of them may be unfinished at a time, and how early a kernel may start
// beside the kernel before it: from it follow the waits and the BLOCKDEP that a stream needs.
#ifndef QPLAN_SRC_ETHOSU_ISA_ACCESS_H_
#define QPLAN_SRC_ETHOSU_ISA_ACCESS_H_

#include <stdint.h>

#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

bool overlap(const ByteRange& a, const ByteRange& b);

// The tables in SHRAM count as a region of their own.
constexpr uint32_t kTables = kMaxRegions;

// Bounds of the bytes of an operation.
struct Access {
  static constexpr uint32_t kMaxRanges = 14;
  ByteRange reads[kMaxRanges], writes[kMaxRanges];
  uint32_t num_reads = 0, num_writes = 0;

  void read(const ByteRange& range) { reads[num_reads++] = range; }
  void write(const ByteRange& range) { writes[num_writes++] = range; }
};
Access access_of(const Config& config, const Kernel& kernel);
// A transfer to SHRAM is one to its tables.
Access access_of(const Config& config, const Transfer& transfer);

// The kernels and transfers that were started and may be unfinished, the last ones first.
class Unfinished {
 public:
  explicit Unfinished(const Config& config) : max_transfers_(max_unfinished_dmas(config)) {}

  uint32_t kernels() const { return kernels_.count; }
  uint32_t transfers() const { return transfers_.count; }
  // How many may still be unfinished when an operation starts that uses these bytes: OP_KERNEL_WAIT and
  // OP_DMA_WAIT take this number.
  uint32_t kernels_beside(const Access& transfer) const { return beside(kernels_, transfer); }
  uint32_t transfers_beside(const Access& kernel) const { return beside(transfers_, kernel); }
  void wait_kernels(uint32_t n) { kernels_.count = least(kernels_.count, n); }
  void wait_transfers(uint32_t n) { transfers_.count = least(transfers_.count, n); }
  // Where as many are unfinished as may be, the oldest one ends first.
  void start_kernel(const Access& access) { push(&kernels_, kMaxUnfinishedKernels, access); }
  void start_transfer(const Access& access) { push(&transfers_, max_transfers_, access); }

 private:
  struct Queue {
    Access operations[kMaxUnfinishedKernels];
    uint32_t count = 0;
  };
  static uint32_t beside(const Queue& queue, const Access& access);
  static void push(Queue* queue, uint32_t room, const Access& access);

  uint32_t max_transfers_;
  Queue kernels_, transfers_;
};

// How early a kernel may start while blocks of the kernel before it are unwritten.

constexpr uint32_t kMaxBlockdep = 3;

// The largest BLOCKDEP that is proved safe for `kernel` right after `previous`, by comparing ranges of bytes.
// With it, job j of the kernel may start while the last BLOCKDEP - j blocks of `previous` are unwritten, so
// nothing that blocks 0 to j read may be in them: job j belongs to one of these blocks. Returns 0 where
// nothing is proved: for a kernel that writes what `previous` reads or writes, for maps of several tiles, for
// tables.
uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_ACCESS_H_
