// What a command stream does, looked at without running it: packers check their own streams with it, and
// drivers those they are given.
#ifndef QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_
#define QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_

#include <stdint.h>

#include "src/ethosu/isa/commands.h"
#include "src/ethosu/isa/config.h"
#include "src/ethosu/isa/payload.h"

namespace qplan::ethosu {

struct RegionLimits {
  uint64_t bytes[kMaxRegions] = {};
  bool is_writable[kMaxRegions] = {};
};

// Every operation uses registers that the stream set, keeps the limits of the architecture, fits SHRAM and
// stays inside of its regions; transfers and kernels that touch the same bytes wait for each other; OP_STOP
// is the last word. *word: where it is wrong. *cycles: of all operations one after the other, by the cost
// model. Not looked at: whether the weights decode, and BLOCKDEP.
[[nodiscard]] Problem check_stream(const Config& config, const Payload& payload, const RegionLimits& limits,
                                   uint32_t* word, uint64_t* cycles);

}  // namespace qplan::ethosu

#endif  // QPLAN_SRC_ETHOSU_ISA_CHECK_STREAM_H_
