// Recorded jobs of Ethos-U, run again.
#ifndef QPLAN_SRC_ETHOSU_SIM_REPLAY_H_
#define QPLAN_SRC_ETHOSU_SIM_REPLAY_H_

#include <string>

#include "qplan/npu_driver.h"
#include "src/vta/sim/machine.h"
#include "src/vta/sim/options.h"

namespace qplan::ethosu::sim {

// Runs the job in that directory on the configuration that its payload names, and compares its checks. The
// fault has no status where all bytes are equal; report takes what the run took. The address of a byte that
// differs has its region from bit 40 on and its offset below.
qplan::sim::Fault replay_ethosu(const std::string& directory, const qplan::sim::Options& options,
                                qplan_npu_report* report);

}  // namespace qplan::ethosu::sim

#endif  // QPLAN_SRC_ETHOSU_SIM_REPLAY_H_
