// The text that opens a simulated device (include/qplan/npu_sim.h) as a struct.
#ifndef QPLAN_SRC_VTA_SIM_OPTIONS_H_
#define QPLAN_SRC_VTA_SIM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/vta/isa/vta.h"
#include "src/vta/sim/faults.h"

namespace qplan::sim {

struct Options {
  vta::Config config = vta::kDefaultConfig;
  uint64_t seed = 1;
  uint32_t explore = 1;
  bool hazards_fail = true;
  bool is_coherent = true;
  uint32_t queue = 8;
  uint64_t memory_bytes = uint64_t{256} << 20;
  uint64_t work = uint64_t{1} << 30;  // of a replayed job: micro-ops executed, elements loaded and stored
  std::string record;                 // directory; empty: no
  std::string trace;                  // file; empty: no
  std::vector<FaultRule> faults;
  uint64_t fault_seed = 0;
  uint32_t fault_percent = 0;
};

// False with *error set to one line.
bool parse_options(std::string_view text, Options* options, std::string* error);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_OPTIONS_H_
