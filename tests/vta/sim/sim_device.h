// A simulated device through the driver ABI alone, and the smallest job.
#ifndef QPLAN_TESTS_VTA_SIM_SIM_DEVICE_H_
#define QPLAN_TESTS_VTA_SIM_SIM_DEVICE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "qplan/npu_sim.h"
#include "tests/vta/sim/product_blob.h"

namespace qplan::sim {

// Opens a device, loads the product blob, makes its buffers.
class SimDevice {
 public:
  explicit SimDevice(const std::string& options = "", uint32_t index = 0,
                     const std::vector<uint8_t>& blob = vta::testing::product_blob()) {
    EXPECT_EQ(driver().open(nullptr, index, options.c_str(), &device, nullptr), QPLAN_NPU_OK);
    EXPECT_EQ(load(blob), QPLAN_NPU_OK) << why.text;
    input = make_buffer(QPLAN_NPU_USE_INPUT, 16);
    output = make_buffer(QPLAN_NPU_USE_OUTPUT, 16);
  }
  ~SimDevice() {
    if (device != 0) (void)driver().close(device);
  }
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;

  static const qplan_npu_driver& driver() { return *qplan_npu_sim_driver(QPLAN_NPU_ABI); }

  qplan_npu_status load(const std::vector<uint8_t>& blob) {
    return driver().load(device, QPLAN_NPU_BLOB_VTA, blob.data(), blob.size(), &program, &why);
  }
  qplan_npu_buffer make_buffer(uint32_t usage, uint64_t bytes) {
    qplan_npu_buffer_request request = {};
    request.struct_size = sizeof(request);
    request.usage = usage;
    request.min_bytes = bytes;
    qplan_npu_buffer buffer = 0;
    last_alloc = driver().alloc(device, &request, &buffer);
    return buffer;
  }
  void write(qplan_npu_buffer buffer, const std::vector<uint8_t>& bytes) {
    void* memory = nullptr;
    ASSERT_EQ(driver().map(device, buffer, QPLAN_NPU_WRITE, &memory), QPLAN_NPU_OK);
    std::memcpy(memory, bytes.data(), bytes.size());
    ASSERT_EQ(driver().unmap(device, buffer, QPLAN_NPU_WRITE), QPLAN_NPU_OK);
  }
  std::vector<uint8_t> read(qplan_npu_buffer buffer, size_t bytes = 16) {
    void* memory = nullptr;
    EXPECT_EQ(driver().map(device, buffer, QPLAN_NPU_READ, &memory), QPLAN_NPU_OK);
    const auto* from = static_cast<const uint8_t*>(memory);
    std::vector<uint8_t> copy(from, from + bytes);
    EXPECT_EQ(driver().unmap(device, buffer, QPLAN_NPU_READ), QPLAN_NPU_OK);
    return copy;
  }
  std::vector<qplan_npu_bind> binds() const {
    return {{vta::testing::kProductInput, 0, input, 0, 16}, {vta::testing::kProductOutput, 0, output, 0, 16}};
  }
  qplan_npu_status submit(qplan_npu_job* job) { return submit(job, binds()); }
  qplan_npu_status submit(qplan_npu_job* job, const std::vector<qplan_npu_bind>& with) {
    qplan_npu_submit s = {};
    s.struct_size = sizeof(s);
    s.program = program;
    s.binds = with.data();
    s.num_binds = static_cast<uint32_t>(with.size());
    return driver().submit(device, &s, job, &why);
  }
  qplan_npu_status wait(qplan_npu_job job, uint64_t timeout_ns = UINT64_MAX) {
    report = {};
    report.struct_size = sizeof(report);
    return driver().wait(device, job, timeout_ns, &report);
  }
  // Submits and waits.
  qplan_npu_status run() {
    qplan_npu_job job = 0;
    const qplan_npu_status status = submit(&job);
    return status == QPLAN_NPU_OK ? wait(job) : status;
  }
  uint64_t counter(uint32_t id) {
    uint64_t value = 0;
    EXPECT_EQ(driver().counters(device, &id, &value, 1), QPLAN_NPU_OK);
    return value;
  }

  qplan_npu_device device = 0;
  qplan_npu_program program = 0;
  qplan_npu_buffer input = 0;
  qplan_npu_buffer output = 0;
  qplan_npu_status last_alloc = QPLAN_NPU_OK;
  qplan_npu_report report = {};
  qplan_npu_reason why = {};
};

inline std::vector<uint8_t> sample_input(uint8_t start = 1) {
  std::vector<uint8_t> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(start + i * 9);
  return x;
}

}  // namespace qplan::sim

#endif  // QPLAN_TESTS_VTA_SIM_SIM_DEVICE_H_
