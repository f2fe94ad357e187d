// What a command stream takes, by the cost model.
#ifndef QPLAN_SRC_ETHOSU_ISA_STREAM_CYCLES_H_
#define QPLAN_SRC_ETHOSU_ISA_STREAM_CYCLES_H_

#include <stdint.h>

#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/cost.h"
#include "src/ethosu/isa/payload.h"

namespace qplan::ethosu {

// From the first operation to the last, with transfers beside kernels.
struct StreamCycles {
  uint64_t compute = 0;  // where no memory were busy
  uint64_t cycles = 0;
};
// The stream is one that check_stream takes; anything else ends the count.
StreamCycles stream_cycles(const Config& config, const Memories& memories, const Payload& payload);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_STREAM_CYCLES_H_
