// Recorded jobs whose memory is the slots of a program, run again on the driver of a device. "target slots"
// has, beside the lines of src/vta/sim/region_job.h:
//   format NUMBER             the FourCC that the driver's load gets
//   device NAME               what the capabilities called the device; for people
#ifndef QPLAN_SRC_NPU_SIM_DRIVER_REPLAY_H_
#define QPLAN_SRC_NPU_SIM_DRIVER_REPLAY_H_

#include <cstdint>
#include <string>

#include "qplan/npu_driver.h"
#include "src/vta/sim/machine.h"

namespace qplan::sim {

constexpr uint32_t kMostSlots = 4096;  // that a job may have

// The fault has no status where all bytes are equal. report takes what the driver says of the run.
Fault replay_on_driver(const qplan_npu_driver& driver, qplan_npu_device device, const std::string& directory,
                       uint32_t timeout_ms, qplan_npu_report* report);

}  // namespace qplan::sim

#endif  // QPLAN_SRC_NPU_SIM_DRIVER_REPLAY_H_
