// Whether the machine had time for a measurement.
#ifndef TOOLS_MACHINE_LOAD_H_
#define TOOLS_MACHINE_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench_steps.h"

namespace qplan::tools {

struct MachineLoad {
  double average = 0;  // threads that ran or waited to run, mean of the last minute
  uint32_t cpus = 1;   // that this process may use
};
// average 0 where the system does not say.
MachineLoad machine_load();

// Why the figures of a measurement may be worse than the machine's best; one sentence each, empty for a quiet
// machine. load: before the measurement, with `threads` threads. Of fewer than 10 runs the spread says
// nothing.
std::vector<std::string> load_warnings(const MachineLoad& load, uint32_t threads, const TimeSummary& times,
                                       uint64_t runs);

}  // namespace qplan::tools

#endif  // TOOLS_MACHINE_LOAD_H_
