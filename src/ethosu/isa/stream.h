// The operations of a command stream together: what they read and write, which of them may be unfinished at a
// time, from which the waits and the BLOCKDEP follow that a stream needs, and the check of a whole stream.
#ifndef QPLAN_SRC_ETHOSU_ISA_STREAM_H_
#define QPLAN_SRC_ETHOSU_ISA_STREAM_H_

#include <stdint.h>

#include "src/ethosu/isa/architecture.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

// ---- what operations read and write, and which of them may be unfinished

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

// ---- how early a kernel may start while blocks of the kernel before it are unwritten

constexpr uint32_t kMaxBlockdep = 3;

// The largest BLOCKDEP that is proved safe for `kernel` right after `previous`, by comparing ranges of bytes.
// With it, job j of the kernel may start while the last BLOCKDEP - j blocks of `previous` are unwritten, so
// nothing that blocks 0 to j read may be in them: job j belongs to one of these blocks. Returns 0 where
// nothing is proved: for a kernel that writes what `previous` reads or writes, for maps of several tiles, for
// tables.
uint32_t safe_blockdep(const Kernel& previous, const Kernel& kernel);

// ---- what a stream does and how long it takes, looked at without running it: packers check their own
// streams with it, and drivers those they are given

// What a stream's operations take, by the cost model.
struct StreamWork {
  uint64_t total_cycles = 0;  // of all operations one after the other
  uint64_t macs = 0;
  // Elements that kernels read for their outputs, each as often as it is read, and bytes of weights and
  // transfers. What the device reads many of at a time costs a simulator each time; at most UINT64_MAX.
  uint64_t elements = 0;
};

struct RegionLimits {
  uint64_t bytes[kMaxRegions] = {};
  bool is_writable[kMaxRegions] = {};
};

// Is told the ranges of memory that operations write, in the stream's order. They are bounds: bytes between
// the rows of a feature map lie within them.
struct WriteObserver {
  void (*wrote)(void* context, const ByteRange& range);
  void* context;
};

// Every operation uses registers that the stream set, keeps the limits of the architecture, fits SHRAM and
// stays inside of its regions; transfers and kernels that touch the same bytes wait for each other; OP_STOP
// is the last word. *word: where it is wrong. Not looked at: whether the weights decode, and BLOCKDEP.
// writes: who is told of every write, or null.
[[nodiscard]] Problem check_stream(const Config& config, const Payload& payload, const RegionLimits& limits,
                                   uint32_t* word, StreamWork* work, const WriteObserver* writes = nullptr);

// What a stream takes by the cost model, from its first operation to the last, with transfers beside kernels.
struct StreamCycles {
  uint64_t compute = 0;  // where no memory were busy
  uint64_t cycles = 0;
};
// The stream is one that check_stream takes; anything else ends the count.
StreamCycles stream_cycles(const Config& config, const Memories& memories, const Payload& payload);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_STREAM_H_
