// What a command stream does and how long it takes, looked at without running it: packers check their own
// streams with it, and drivers those they are given.
#ifndef QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_
#define QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_

#include <stdint.h>

#include "src/ethosu/isa/commands.h"
#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/kernel.h"

namespace qplan::ethosu {

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

#endif  // QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_
