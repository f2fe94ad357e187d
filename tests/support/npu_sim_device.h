// A device of the packer's own simulators for sessions.
#ifndef QPLAN_TESTS_SUPPORT_NPU_SIM_DEVICE_H_
#define QPLAN_TESTS_SUPPORT_NPU_SIM_DEVICE_H_

#include <stdexcept>
#include <string>

#include "qplan/npu_sim.h"
#include "qplan/qplan.h"

namespace qplan::testing {

// It is open as long as this lives.
class NpuSimDevice {
 public:
  // target: as plans name it. options: those of qplan/npu_sim.h.
  explicit NpuSimDevice(const std::string& target, const std::string& options = "")
      : driver_(qplan_npu_sim_driver(QPLAN_NPU_ABI)), target_(target) {
    if (driver_->open(nullptr, 0, options.c_str(), &device_, nullptr) != QPLAN_NPU_OK)
      throw std::runtime_error("the simulator does not open");
    config_.struct_size = sizeof(config_);
    config_.target = target_.c_str();
    config_.driver = driver_;
    config_.device = device_;
  }
  ~NpuSimDevice() { (void)driver_->close(device_); }
  NpuSimDevice(const NpuSimDevice&) = delete;
  NpuSimDevice& operator=(const NpuSimDevice&) = delete;
  const qplan_npu_device_config* config() const { return &config_; }

 private:
  const qplan_npu_driver* driver_;
  std::string target_;
  qplan_npu_device device_ = 0;
  qplan_npu_device_config config_{};
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_NPU_SIM_DEVICE_H_
