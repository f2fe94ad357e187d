// A program that ends at once, and the calls of the driver around it.
#ifndef QPLAN_TESTS_ETHOSU_DRIVER_SMALL_PROGRAM_H_
#define QPLAN_TESTS_ETHOSU_DRIVER_SMALL_PROGRAM_H_

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "src/ethosu/compiler/target.h"
#include "tests/ethosu/driver/core_device.h"
#include "tests/support/buffer.h"

namespace qplan::ethosu::testing {

using Blocks = qplan::testing::Buffer<uint8_t>;

inline constexpr char kConfig[] = "ethos-u55-128";
inline constexpr uint32_t kIn = QPLAN_NPU_USE_INPUT, kOut = QPLAN_NPU_USE_OUTPUT,
                          kScratch = QPLAN_NPU_USE_SCRATCH;

// A stream that ends at once, with constants, an input and an output of 64 bytes.
inline std::vector<uint8_t> small_blob(std::vector<BlobSlot> slots = {{kIn, 1, 0, 64}, {kOut, 2, 0, 64}},
                                       const char* name = kConfig, uint32_t constants_class = 0) {
  const Config& config = *find_config(name);
  compiler::BlobParts parts;
  parts.constants.assign(4096, 7);
  parts.regions = {{static_cast<uint32_t>(RegionKind::kConstants), constants_class, 4096, 0},
                   {static_cast<uint32_t>(RegionKind::kBound), 0, 64, 0},
                   {static_cast<uint32_t>(RegionKind::kBound), 0, 64, 0}};
  parts.slots = std::move(slots);
  const std::vector<uint32_t> stop = {0xffffu << 16};
  parts.payload = compiler::payload_of(config, stop);
  parts.cycles = 1;
  return compiler::write_blob(config, parts);
}

struct Calls {
  CoreDevice device;
  const qplan_npu_driver& d = CoreDevice::driver();
  qplan_npu_device h = device.handle();
  qplan_npu_reason why = {};

  explicit Calls(CoreOptions options = {}) : device(kConfig, std::move(options)) {}
  qplan_npu_program load(const Blocks& blob, bool in_place, uint64_t offset = 0) {
    qplan_npu_program program = 0;
    const auto function = in_place ? d.load_in_place : d.load;
    EXPECT_EQ(function(h, kBlobMagic, blob.data() + offset, blob.size() - offset, &program, &why),
              QPLAN_NPU_OK)
        << why.text;
    return program;
  }
  uint64_t memory_bytes(qplan_npu_program program) {
    qplan_npu_program_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(d.program_info(h, program, &info), QPLAN_NPU_OK);
    return info.memory_bytes;
  }
  qplan_npu_buffer buffer(uint64_t bytes) {
    qplan_npu_buffer_request request = {};
    request.struct_size = sizeof(request);
    request.min_bytes = bytes;
    qplan_npu_buffer result = 0;
    EXPECT_EQ(d.alloc(h, &request, &result), QPLAN_NPU_OK);
    return result;
  }
  qplan_npu_status submit(qplan_npu_program program, const std::vector<qplan_npu_bind>& binds,
                          qplan_npu_job* job) {
    qplan_npu_submit all = {};
    all.struct_size = sizeof(all);
    all.program = program;
    all.binds = binds.data();
    all.num_binds = static_cast<uint32_t>(binds.size());
    return d.submit(h, &all, job, &why);
  }
  // Starts a program with 64 bytes of input and 64 of output.
  qplan_npu_job start(const Blocks& blob) {
    const qplan_npu_buffer memory = buffer(256);
    qplan_npu_job job = 0;
    EXPECT_EQ(submit(load(blob, true), {{0, 0, memory, 0, 64}, {1, 0, memory, 64, 64}}, &job), QPLAN_NPU_OK)
        << why.text;
    return job;
  }
};

}  // namespace qplan::ethosu::testing

#endif  // QPLAN_TESTS_ETHOSU_DRIVER_SMALL_PROGRAM_H_
