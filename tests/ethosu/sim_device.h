// A simulated Ethos-U for sessions.
#ifndef QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_
#define QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_

#include <string>

#include "tests/support/npu_sim_device.h"

namespace qplan::ethosu::testing {

struct SimDevice : qplan::testing::NpuSimDevice {
  // config: "ethos-u55-128". options: more of the simulator's, after a comma.
  explicit SimDevice(const std::string& config, const std::string& options = "")
      : NpuSimDevice(config, "device=" + config + options) {}
};

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_
