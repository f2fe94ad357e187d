// Drivers from shared libraries, and the devices they open.
#include <gtest/gtest.h>

#include <string>

#include "qplan/host.h"
#include "qplan/npu_driver.h"
#include "qplan/npu_sim.h"

namespace {

qplan_error empty_error() {
  qplan_error error = {};
  error.struct_size = sizeof(error);
  return error;
}

std::string library(const std::string& name) { return std::string(QPLAN_TEST_DRIVERS) + "/" + name + ".so"; }

// Status and text of an attempt that must fail.
std::string refusal(const std::string& path, qplan_status expected) {
  const qplan_npu_driver* driver = nullptr;
  void* handle = nullptr;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_host_driver_load(path.c_str(), &driver, &handle, &error), expected) << error.text;
  EXPECT_EQ(error.status, expected);
  EXPECT_EQ(driver, nullptr);
  EXPECT_EQ(handle, nullptr);
  return error.text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// "1.3": the driver ABI of this tree, or with other majors.
std::string abi(uint32_t majors_later) {
  return std::to_string((QPLAN_NPU_ABI >> 16) + majors_later) + "." + std::to_string(QPLAN_NPU_ABI & 0xffff);
}

TEST(HostDriver, ALibraryThatIsNoneSaysWhichAndWhy) {
  std::string text = refusal("/nowhere/none.so", QPLAN_FILE_ERROR);
  EXPECT_TRUE(has(text, "'/nowhere/none.so'") && has(text, "No such file")) << text;
  text = refusal(library("no_entry"), QPLAN_DRIVER_MISSING);
  EXPECT_TRUE(has(text, "exports no 'qplan_npu_driver_entry'")) << text;
  text = refusal(library("other_major"), QPLAN_DRIVER_MISSING);
  EXPECT_TRUE(has(text, "driver ABI " + abi(1) + ", expected " + abi(0))) << text;
  text = refusal(library("refuses"), QPLAN_DRIVER_MISSING);
  EXPECT_TRUE(has(text, "does not serve driver ABI " + abi(0))) << text;
  text = refusal(library("short_table"), QPLAN_DRIVER_MISSING);
  EXPECT_TRUE(has(text, "table of 16 bytes")) << text;
  text = refusal(library("missing_function"), QPLAN_DRIVER_MISSING);
  EXPECT_TRUE(has(text, "lacks a function")) << text;
}

TEST(HostDriver, ADeviceOfALibraryOpensAndCloses) {
  const qplan_npu_driver* driver = nullptr;
  void* handle = nullptr;
  qplan_error error = empty_error();
  ASSERT_EQ(qplan_host_driver_load(library("sim").c_str(), &driver, &handle, &error), QPLAN_OK) << error.text;
  EXPECT_STREQ(driver->name, "sim");
  qplan_host_device device = {};
  device.struct_size = sizeof(device);
  ASSERT_EQ(qplan_host_device_open(driver, 0, "sram=quarter", nullptr, &device, &error), QPLAN_OK)
      << error.text;
  EXPECT_EQ(device.driver, driver);
  qplan_npu_capabilities capabilities = {};
  capabilities.struct_size = sizeof(capabilities);
  EXPECT_EQ(driver->capabilities(device.device, &capabilities), QPLAN_NPU_OK);
  const uint64_t closed = device.device;
  qplan_host_device_close(&device);
  EXPECT_EQ(device.driver, nullptr);
  EXPECT_EQ(driver->capabilities(closed, &capabilities), QPLAN_NPU_E_ARGUMENT);
  qplan_host_device_close(&device);  // again: nothing
  qplan_host_driver_unload(handle);
}

TEST(HostDriver, WhatKeepsADeviceFromOpeningIsTold) {
  const qplan_npu_driver* driver = qplan_npu_sim_driver(QPLAN_NPU_ABI);
  qplan_host_device device = {};
  device.struct_size = sizeof(device);
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_host_device_open(driver, 7, nullptr, nullptr, &device, &error), QPLAN_DRIVER_MISSING);
  EXPECT_EQ(device.status, QPLAN_NPU_E_ABSENT);
  EXPECT_EQ(device.driver, nullptr);
  EXPECT_TRUE(has(error.text, "'sim'") && has(error.text, "no device 7")) << error.text;
  EXPECT_EQ(qplan_host_device_open(driver, 0, "colour=red", nullptr, &device, &error),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(device.status, QPLAN_NPU_E_ARGUMENT);
  EXPECT_TRUE(has(error.text, "unknown 'colour'")) << error.text;
  EXPECT_EQ(qplan_host_device_open(nullptr, 0, nullptr, nullptr, &device, &error), QPLAN_INVALID_ARGUMENT);
}

TEST(HostDriver, HooksAreThoseOfAHost) {
  qplan_host_device device = {};
  device.struct_size = sizeof(device);
  ASSERT_EQ(qplan_host_device_open(qplan_npu_sim_driver(QPLAN_NPU_ABI), 0, "", nullptr, &device, nullptr),
            QPLAN_OK);
  const qplan_device_hooks& hooks = *device.hooks;
  for (const size_t alignment : {1u, 64u, 4096u}) {
    void* memory = hooks.alloc(hooks.user, 100, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
    hooks.free(hooks.user, memory);
  }
  void* event = hooks.event_create(hooks.user);
  EXPECT_EQ(hooks.event_wait(hooks.user, event, 1'000'000), 1);
  hooks.event_set(hooks.user, event);
  EXPECT_EQ(hooks.event_wait(hooks.user, event, UINT64_MAX), 0);
  EXPECT_EQ(hooks.event_wait(hooks.user, event, 0), 1) << "waiting clears it";
  hooks.event_destroy(hooks.user, event);
  void* mutex = hooks.mutex_create(hooks.user);
  hooks.mutex_lock(hooks.user, mutex);
  hooks.mutex_unlock(hooks.user, mutex);
  hooks.mutex_destroy(hooks.user, mutex);
  qplan_host_device_close(&device);
}

}  // namespace
