// A plan whose region the real simulator runs: a session, the driver ABI, VTA's arithmetic.
#include <gtest/gtest.h>

#include "qplan/npu_sim.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/vta/sim/product_blob.h"

namespace qplan::testing::session_test {
namespace {

using vta::testing::kProductInput;
using vta::testing::kProductOutput;
using vta::testing::product_blob;
using vta::testing::product_of;

class SimulatedDevice {
 public:
  explicit SimulatedDevice(const std::string& options) {
    EXPECT_EQ(driver()->open(nullptr, 0, options.c_str(), &device_, nullptr), QPLAN_NPU_OK);
  }
  ~SimulatedDevice() { (void)driver()->close(device_); }
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;
  static const qplan_npu_driver* driver() { return qplan_npu_sim_driver(QPLAN_NPU_ABI); }
  qplan_npu_device get() const { return device_; }

 private:
  qplan_npu_device device_ = 0;
};

// a = x + 1; b = W a on the device; y = b + 1. The fallback of the region is not a product, so the output
// shows where it ran.
PlanSpec product_spec(bool in_place) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({16}, "x"), a = spec.add_tensor({16}, "a"),
                 b = spec.add_tensor({16}, "b"), y = spec.add_tensor({16}, "y");
  const uint32_t target = spec.add_device("vta", 256);
  spec.add_step(kAddByte, {x}, {a}, copy_params(1));
  spec.add_region(target, QPLAN_NPU_BLOB_VTA, product_blob(), {a}, {b}, 1, "product");
  const uint32_t bank = spec.bank_of(target);
  std::vector<BindSpec>& binds = spec.steps.back().npu->binds;
  binds = {{kProductInput, format::NpuUse_INPUT, 0, 0, 16, {}, 0, 1, 0, 0},
           {kProductOutput, format::NpuUse_OUTPUT, 0, 256, 16, {}, 0, 1, 0, 0}};
  spec.banks[bank].size = 272;
  if (in_place) {
    spec.tensors[a].bank = spec.tensors[b].bank = bank;
    spec.tensors[a].offset = 0;
    spec.tensors[b].offset = 256;
  } else {
    binds[0].strides = binds[1].strides = std::vector<uint64_t>{1};
  }
  spec.add_step(kAddByte, {a}, {b}, copy_params(77));
  spec.add_step(kAddByte, {b}, {y}, copy_params(1));
  spec.add_main({x}, {y}, 64);
  return spec;
}

std::vector<uint8_t> plus(std::vector<uint8_t> bytes, int addend) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(byte + addend);
  return bytes;
}

TEST(SessionOnSimulator, TheRegionComputesWhatItsBlobSays) {
  for (const char* options : {"", "coherent=0", "coherent=0,explore=4"}) {
    for (const bool in_place : {true, false}) {
      SCOPED_TRACE(options);
      const SimulatedDevice device(options);
      const TestPlan plan(product_spec(in_place));
      DeviceConfigs devices;
      devices.add("vta", SimulatedDevice::driver(), device.get());
      const TestSession session(plan, npu_config(devices));
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      for (const uint8_t first : {1, 90}) {
        write_bytes(session, counting(16, first));
        ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
        EXPECT_EQ(read_bytes(session, 16),
                  plus(product_of(counting(16, static_cast<uint8_t>(first + 1))), 1));
      }
      const qplan_region_info region = region_info(session);
      EXPECT_EQ(region.device_runs, 2u);
      EXPECT_EQ(region.copies, in_place ? 0u : 4u);
      EXPECT_GT(region.last_cycles, 0u);
      EXPECT_GT(device_info(session).program_bytes, 0u);
    }
  }
}

TEST(SessionOnSimulator, FaultsFallBackAndAreReported) {
  for (const auto& [fault, timeouts] : {std::pair{"faults=at=0:3 kind=bus_error", 0u},
                                        {"faults=at=0:* kind=lost_interrupt", 1u},
                                        {"faults=at=0:3 kind=hang", 1u}}) {
    SCOPED_TRACE(fault);
    const SimulatedDevice device(std::string("coherent=0,") + fault);
    const TestPlan plan(product_spec(true));
    DeviceConfigs devices;
    devices.add("vta", SimulatedDevice::driver(), device.get());
    qplan_session_config config = npu_config(devices);
    config.npu_timeout_us = 50000;
    const TestSession session(plan, config);
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    write_bytes(session, counting(16, 1));
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    EXPECT_EQ(read_bytes(session, 16), counting(16, 1 + 1 + 77 + 1)) << "the CPU's steps";
    EXPECT_EQ(device_info(session).timeouts, timeouts);
    EXPECT_EQ(device_info(session).state, uint32_t{QPLAN_DEVICE_DEGRADED});
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    EXPECT_EQ(read_bytes(session, 16), plus(product_of(counting(16, 2)), 1));
    EXPECT_EQ(device_info(session).state, uint32_t{QPLAN_DEVICE_PRESENT});
  }
}

TEST(SessionOnSimulator, ABlobForOtherMemorySizesStaysOnTheCpu) {
  const SimulatedDevice device("sram=quarter,multiply=0");
  const TestPlan plan(product_spec(true));
  DeviceConfigs devices;
  devices.add("vta", SimulatedDevice::driver(), device.get());
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(region_info(session).status, QPLAN_DRIVER_MISSING) << region_info(session).text;
  EXPECT_EQ(region_info(session).on_device, 0u);
}

}  // namespace
}  // namespace qplan::testing::session_test
