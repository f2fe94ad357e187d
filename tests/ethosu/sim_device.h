// A simulated Ethos-U for sessions.
#ifndef QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_
#define QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_

#include <stdexcept>
#include <string>

#include "qplan/npu_sim.h"
#include "qplan/qplan.h"

namespace qplan::ethosu::testing {

class SimDevice {
 public:
  // config: "ethos-u55-128". options: of the simulator, after a comma.
  explicit SimDevice(const std::string& config, const std::string& options = "")
      : driver_(qplan_npu_sim_driver(QPLAN_NPU_ABI)), name_(config) {
    if (driver_->open(nullptr, 0, ("device=" + config + options).c_str(), &device_, nullptr) != QPLAN_NPU_OK)
      throw std::runtime_error("the simulator does not open");
    config_.struct_size = sizeof(config_);
    config_.target = name_.c_str();
    config_.driver = driver_;
    config_.device = device_;
  }
  ~SimDevice() { (void)driver_->close(device_); }
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;
  const qplan_npu_device_config* config() const { return &config_; }

 private:
  const qplan_npu_driver* driver_;
  std::string name_;
  qplan_npu_device device_ = 0;
  qplan_npu_device_config config_{};
};

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_SIM_DEVICE_H_
