// Calls of the driver for Arm's core driver that no session makes.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/ethosu/driver/small_program.h"

namespace qplan::ethosu::testing::core_calls_test {
namespace {

TEST(EthosuCoreDriverCalls, BlobsAreCopiedWhereTheyCannotStay) {
  const std::vector<uint8_t> bytes = small_blob();
  const Blocks blob(bytes);
  std::vector<uint8_t> shifted(8);
  shifted.insert(shifted.end(), bytes.begin(), bytes.end());
  const Blocks beside(shifted);  // 8 bytes beside a multiple of 16
  Calls c;
  EXPECT_LT(c.memory_bytes(c.load(blob, true)), 1024u);
  EXPECT_GE(c.memory_bytes(c.load(blob, false)), bytes.size());
  EXPECT_GE(c.memory_bytes(c.load(beside, true, 8)), bytes.size());
  CoreDevice blind(kConfig, {.unreachable = {blob.data()}});
  qplan_npu_program program = 0;
  ASSERT_EQ(c.d.load_in_place(blind.handle(), kBlobMagic, blob.data(), bytes.size(), &program, nullptr),
            QPLAN_NPU_OK);
  EXPECT_GE(blind.live_bytes(), bytes.size());
}

TEST(EthosuCoreDriverCalls, DamagedAndForeignBlobsAreRefusedAndLeaveNothing) {
  const std::vector<uint8_t> good = small_blob();
  for (const bool in_place : {true, false}) {
    Calls c;
    const auto function = in_place ? c.d.load_in_place : c.d.load;
    const auto status_of = [&](const std::vector<uint8_t>& bytes, uint32_t format = kBlobMagic) {
      const Blocks blob(bytes);
      qplan_npu_program program = 0;
      return function(c.h, format, blob.data(), blob.size(), &program, &c.why);
    };
    EXPECT_EQ(status_of(good, QPLAN_NPU_BLOB_VTA), QPLAN_NPU_E_UNSUPPORTED);
    EXPECT_EQ(status_of(small_blob({{kIn, 1, 0, 64}, {kOut, 2, 0, 64}}, "ethos-u65-256")),
              QPLAN_NPU_E_VERSION);
    for (size_t size = 1; size < good.size(); size += 61)
      EXPECT_EQ(status_of({good.begin(), good.begin() + static_cast<int64_t>(size)}), QPLAN_NPU_E_BLOB)
          << size;
    for (size_t at = 0; at < good.size(); at += 7) {
      std::vector<uint8_t> flipped = good;
      flipped[at] ^= 4;
      EXPECT_LT(status_of(flipped), 0) << at;
    }
    EXPECT_EQ(c.device.live_bytes(), 0u);
  }
}

TEST(EthosuCoreDriverCalls, BindsAreChecked) {
  const Blocks blob(small_blob());
  Calls c;
  const qplan_npu_program program = c.load(blob, true);
  const qplan_npu_buffer big = c.buffer(256), small = c.buffer(32);
  qplan_npu_job job = 0;
  const std::vector<std::pair<std::vector<qplan_npu_bind>, std::string>> cases = {
      {{{0, 0, big, 0, 64}}, "another number of slots"},
      {{{0, 0, big, 0, 64}, {1, 0, 999, 0, 64}}, "an unknown buffer"},
      {{{0, 0, big, 0, 64}, {2, 0, big, 64, 64}}, "an unknown slot"},
      {{{0, 0, big, 0, 64}, {0, 0, big, 64, 64}}, "a slot twice"},
      {{{0, 0, big, 0, 64}, {1, 0, big, 224, 64}}, "bytes beyond the buffer"},
      {{{0, 0, big, 0, 64}, {1, 0, big, UINT64_MAX, 64}}, "bytes beyond the buffer"},
      {{{0, 0, big, 0, 64}, {1, 0, small, 0, 32}}, "less than the slot needs"},
      {{{0, 0, big, 0, 64}, {1, 0, big, 72, 64}}, "not a multiple of 16"},
      {{{0, 0, big, 0, 64}, {1, 0, big, 48, 64}}, "over something else"},
  };
  for (const auto& [binds, text] : cases) {
    EXPECT_EQ(c.submit(program, binds, &job), QPLAN_NPU_E_ARGUMENT) << text;
    EXPECT_NE(std::string(c.why.text).find(text), std::string::npos) << c.why.text;
  }
  EXPECT_EQ(c.submit(program + 99, {{0, 0, big, 0, 64}, {1, 0, big, 64, 64}}, &job), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(fake_ethosu()->jobs, 0u);
}

TEST(EthosuCoreDriverCalls, ADeviceHasOneJobWhoseMemoryStays) {
  const Blocks blob(small_blob());
  Calls c;
  fake_ethosu()->polls = 2;
  const qplan_npu_program program = c.load(blob, true);
  const qplan_npu_buffer buffer = c.buffer(256);
  const std::vector<qplan_npu_bind> binds = {{0, 0, buffer, 0, 64}, {1, 0, buffer, 64, 64}};
  qplan_npu_job job = 0, other = 0;
  ASSERT_EQ(c.submit(program, binds, &job), QPLAN_NPU_OK) << c.why.text;
  EXPECT_EQ(c.submit(program, binds, &other), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(c.d.release(c.h, buffer), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(c.d.unload(c.h, program), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(c.d.cancel(c.h, job + 1), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(c.d.wait(c.h, job + 1, 0, nullptr), QPLAN_NPU_E_ARGUMENT);
  // Another device may not have what Arm's driver has given away: it would wait.
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.alloc = [](void*, size_t, size_t) -> void* { return nullptr; };
  qplan_npu_device second = 0;
  EXPECT_EQ(c.d.open(&hooks, 0, "", &second, &c.why), QPLAN_NPU_E_BUSY);
  EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_PENDING);
  EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_PENDING);
  EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_OK);
  EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(c.d.open(&hooks, 0, "", &second, &c.why), QPLAN_NPU_OK);
  EXPECT_EQ(c.d.close(second), QPLAN_NPU_OK);
  EXPECT_EQ(c.d.close(second), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(c.d.unload(c.h, program), QPLAN_NPU_OK);
  EXPECT_EQ(c.d.release(c.h, buffer), QPLAN_NPU_OK);
}

TEST(EthosuCoreDriverCalls, ResetAndCloseEndTheJob) {
  const Blocks blob(small_blob());
  for (const bool is_closed : {false, true}) {
    Calls c;
    fake_ethosu()->hangs = 1;
    const qplan_npu_program program = c.load(blob, true);
    const qplan_npu_buffer buffer = c.buffer(256);
    qplan_npu_job job = 0;
    ASSERT_EQ(c.submit(program, {{0, 0, buffer, 0, 64}, {1, 0, buffer, 64, 64}}, &job), QPLAN_NPU_OK);
    if (is_closed) {
      c.device.close();
      EXPECT_EQ(c.device.live_bytes(), 0u);
      EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_E_ARGUMENT);
    } else {
      EXPECT_EQ(c.d.reset(c.h), QPLAN_NPU_OK);
      EXPECT_EQ(c.d.wait(c.h, job, 0, nullptr), QPLAN_NPU_E_RESET);
    }
    EXPECT_EQ(fake_ethosu()->resets, 1u);
  }
}

TEST(EthosuCoreDriverCalls, MemoryThatTheDeviceDoesNotReachIsNotImported) {
  alignas(64) static uint8_t memory[64];
  CoreDevice device(kConfig, {.unreachable = {memory}});
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.min_bytes = sizeof(memory);
  qplan_npu_buffer buffer = 0;
  const auto at = uint64_t{reinterpret_cast<uintptr_t>(memory)};
  const auto& d = CoreDevice::driver();
  EXPECT_EQ(d.import_memory(device.handle(), &request, QPLAN_NPU_IMPORT_POINTER, at, 0, &buffer),
            QPLAN_NPU_E_UNSUPPORTED);
  EXPECT_EQ(d.import_memory(device.handle(), &request, QPLAN_NPU_IMPORT_POINTER, at, 8, &buffer),
            QPLAN_NPU_E_ARGUMENT);
}

TEST(EthosuCoreDriverCalls, MemoryOfAnotherClassThanAskedIsNotImported) {
  alignas(64) static uint8_t memory[64];
  CoreDevice device(kConfig, {.other_class = QPLAN_NPU_MEMORY_CLASS_DRAM});
  qplan_npu_buffer_request request = {};
  request.struct_size = sizeof(request);
  request.min_bytes = sizeof(memory);
  const auto at = uint64_t{reinterpret_cast<uintptr_t>(memory)};
  const auto& d = CoreDevice::driver();
  qplan_npu_buffer buffer = 0;
  qplan_npu_layout layout = {};
  layout.struct_size = sizeof(layout);
  request.memory_class = QPLAN_NPU_MEMORY_CLASS_SRAM;
  EXPECT_EQ(d.import_memory(device.handle(), &request, QPLAN_NPU_IMPORT_POINTER, at, 0, &buffer),
            QPLAN_NPU_E_UNSUPPORTED);
  EXPECT_EQ(d.alloc(device.handle(), &request, &buffer), QPLAN_NPU_OK);
  EXPECT_EQ(d.layout(device.handle(), buffer, &layout), QPLAN_NPU_OK);
  EXPECT_EQ(layout.memory_class, uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM});
  request.memory_class = QPLAN_NPU_MEMORY_CLASS_DRAM;
  EXPECT_EQ(d.import_memory(device.handle(), &request, QPLAN_NPU_IMPORT_POINTER, at, 0, &buffer),
            QPLAN_NPU_OK);
  EXPECT_EQ(d.layout(device.handle(), buffer, &layout), QPLAN_NPU_OK);
  EXPECT_EQ(layout.memory_class, uint32_t{QPLAN_NPU_MEMORY_CLASS_DRAM});
}

// Those of a U65 should be in DRAM: read from there, not from flash.
TEST(EthosuCoreDriverCalls, ConstantsAreCopiedFromFlashToTheMemoryThatTheyAreFor) {
  const auto bytes_held = [](uint32_t constants, uint32_t blob_is_in) {
    const std::vector<uint8_t> blob = small_blob({{kIn, 1, 0, 64}, {kOut, 2, 0, 64}}, kConfig, constants);
    const Blocks in_place(blob);
    Calls c({.other_class = blob_is_in});
    return c.memory_bytes(c.load(in_place, true));
  };
  EXPECT_GT(bytes_held(QPLAN_NPU_MEMORY_CLASS_DRAM, QPLAN_NPU_MEMORY_CLASS_FLASH), 4096u);
  EXPECT_LT(bytes_held(QPLAN_NPU_MEMORY_CLASS_DRAM, QPLAN_NPU_MEMORY_CLASS_DRAM), 4096u);
  EXPECT_LT(bytes_held(QPLAN_NPU_MEMORY_CLASS_FLASH, QPLAN_NPU_MEMORY_CLASS_DRAM), 4096u);
  EXPECT_LT(bytes_held(QPLAN_NPU_MEMORY_CLASS_DRAM, QPLAN_NPU_MEMORY_CLASS_ANY), 4096u);
}

TEST(EthosuCoreDriverCalls, OpenSaysWhatIsMissing) {
  const qplan_npu_driver& d = CoreDevice::driver();
  CoreDevice device(kConfig);
  qplan_npu_device handle = 0;
  qplan_npu_reason why = {};
  EXPECT_EQ(d.open(nullptr, 0, "", &handle, &why), QPLAN_NPU_E_MEMORY);
  EXPECT_STREQ(why.text, "ethos-u: the platform's hooks have no alloc");
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.alloc = [](void*, size_t, size_t) -> void* { return nullptr; };
  EXPECT_EQ(d.open(&hooks, 0, "fast=1", &handle, &why), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(d.open(&hooks, 1, "", &handle, &why), QPLAN_NPU_E_ABSENT);
  EXPECT_EQ(d.open(&hooks, 0, "sram=none", &handle, &why), QPLAN_NPU_OK);
  EXPECT_EQ(d.close(handle), QPLAN_NPU_OK);
}

}  // namespace
}  // namespace qplan::ethosu::testing::core_calls_test
