// The simulator, but for one thing: what a job must not rely on has other bytes each time.
#ifndef QPLAN_TESTS_FUZZ_POISONED_DRIVER_H_
#define QPLAN_TESTS_FUZZ_POISONED_DRIVER_H_

#include <cstdint>
#include <cstring>

#include "qplan/npu_driver.h"
#include "qplan/npu_sim.h"
#include "tests/fuzz/fuzz_target.h"

namespace qplan::testing {

// Before each job its outputs and scratch are filled with `fill`. A program that leaves bytes of its outputs
// as they are, or reads scratch before it writes it, computes what depends on them.
class PoisonedDriver {
 public:
  static const qplan_npu_driver* get(uint8_t fill) {
    PoisonedDriver& one = instance();
    one.fill_ = fill;
    return &one.driver_;
  }

 private:
  PoisonedDriver() : sim_(*qplan_npu_sim_driver(QPLAN_NPU_ABI)), driver_(sim_) { driver_.submit = submit; }

  static PoisonedDriver& instance() {
    static PoisonedDriver one;
    return one;
  }

  static qplan_npu_status submit(qplan_npu_device device, const qplan_npu_submit* job, qplan_npu_job* handle,
                                 qplan_npu_reason* why) {
    const PoisonedDriver& one = instance();
    for (uint32_t b = 0; b < job->num_binds; ++b) one.poison(device, job->program, job->binds[b]);
    return one.sim_.submit(device, job, handle, why);
  }

  void poison(qplan_npu_device device, qplan_npu_program program, const qplan_npu_bind& bind) const {
    qplan_npu_region_info region{};
    region.struct_size = sizeof(region);
    if (sim_.region_info(device, program, bind.slot, &region) < 0 ||
        (region.usage & QPLAN_NPU_USE_INPUT) != 0)
      return;
    void* memory = nullptr;
    const qplan_npu_status status = sim_.map(device, bind.buffer, QPLAN_NPU_READ | QPLAN_NPU_WRITE, &memory);
    FUZZ_CHECK(status == QPLAN_NPU_OK, "a buffer of a job is not mapped");
    std::memset(static_cast<uint8_t*>(memory) + bind.offset, fill_, bind.bytes);
    (void)sim_.unmap(device, bind.buffer, QPLAN_NPU_READ | QPLAN_NPU_WRITE);
  }

  const qplan_npu_driver sim_;
  qplan_npu_driver driver_;
  uint8_t fill_ = 0;
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_POISONED_DRIVER_H_
