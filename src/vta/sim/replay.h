// Recorded jobs of VTA, run again.
#ifndef QPLAN_SRC_VTA_SIM_REPLAY_H_
#define QPLAN_SRC_VTA_SIM_REPLAY_H_

#include <string>

#include "qplan/npu_driver.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

namespace qplan::sim {

// Runs the job in that directory and compares its checks. The fault has no status where all bytes are equal;
// report takes what the run took.
Fault replay_vta(const std::string& directory, const Options& options, qplan_npu_report* report);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_VTA_SIM_REPLAY_H_
