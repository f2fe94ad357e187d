// Several threads at one device: waiting, and closing while others call.
#include <gtest/gtest.h>

#include <thread>

#include "tests/ethosu/driver/small_program.h"

namespace qplan::ethosu::testing::core_threads_test {
namespace {

TEST(EthosuCoreDriverThreads, AMutexWithoutAClockIsRefused) {
  // Nothing could end the wait for a job that hangs.
  try {
    const CoreDevice device(kConfig, {.has_mutex = true});
    ADD_FAILURE() << "opened";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "ethos-u: hooks with a mutex need a platform with a clock (now_ns): wait polls, and stops "
                 "polling by it");
  }
  // Nothing is left of it.
  for (int i = 0; i < 8; ++i) EXPECT_NO_THROW(CoreDevice(kConfig, {.has_clock = true, .has_mutex = true}));
}

TEST(EthosuCoreDriverThreads, AMutexThatCannotBeMadeOrLockedIsRefused) {
  const qplan_npu_driver& d = CoreDevice::driver();
  ASSERT_EQ(fake_ethosu_init(kConfig), 0);
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.now_ns = [](void*) -> uint64_t { return 0; };
  qplan_device_hooks hooks = {};
  hooks.struct_size = sizeof(hooks);
  hooks.platform = &platform;
  hooks.alloc = [](void*, size_t, size_t) -> void* { return nullptr; };
  hooks.mutex_create = [](void*) -> void* { return nullptr; };
  qplan_npu_device device = 0;
  qplan_npu_reason why = {};
  EXPECT_EQ(d.open(&hooks, 0, "", &device, &why), QPLAN_NPU_E_ARGUMENT);
  EXPECT_STREQ(why.text,
               "ethos-u: the platform's hooks have mutex_create without mutex_lock and mutex_unlock");
  hooks.mutex_lock = hooks.mutex_unlock = [](void*, void*) {};
  // More often than there are devices: none of them stays taken.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(d.open(&hooks, 0, "", &device, &why), QPLAN_NPU_E_MEMORY);
  EXPECT_STREQ(why.text, "ethos-u: the platform's mutex_create has made none");
}

TEST(EthosuCoreDriverThreads, WaitEndsWhenItsTimeIsOver) {
  for (const bool is_older_platform : {false, true}) {
    Calls c({.has_clock = true, .has_mutex = true, .is_older_platform = is_older_platform});
    fake_ethosu()->hangs = 1;
    const Blocks blob(small_blob());
    const qplan_npu_job job = c.start(blob);
    const uint32_t locks = c.device.locks;
    EXPECT_EQ(c.d.wait(c.h, job, 20'000'000, nullptr), QPLAN_NPU_PENDING);
    EXPECT_GT(c.device.locks, locks + 5) << "others have a turn between two polls";
    EXPECT_EQ(c.d.reset(c.h), QPLAN_NPU_OK);
    EXPECT_EQ(c.d.wait(c.h, job, UINT64_MAX, nullptr), QPLAN_NPU_E_RESET);
    EXPECT_EQ(c.device.locks, c.device.unlocks);
  }
}

TEST(EthosuCoreDriverThreads, WhoWaitedForTheMutexWhileTheDeviceWasClosedIsRefused) {
  Calls c({.has_clock = true, .has_mutex = true});
  c.device.before_next_lock = [&] { c.device.close(); };
  qplan_npu_capabilities capabilities = {};
  capabilities.struct_size = sizeof(capabilities);
  EXPECT_EQ(c.d.capabilities(c.h, &capabilities), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(c.device.uses_after_destroy, 0u);
  EXPECT_EQ(c.device.destroyed.load(), 1u);
  EXPECT_EQ(c.device.locks, c.device.unlocks);
  // The same of two that close, and of the next device in its place.
  Calls again({.has_clock = true, .has_mutex = true});
  again.device.before_next_lock = [&] { again.device.close(); };
  EXPECT_EQ(again.d.close(again.h), QPLAN_NPU_E_ARGUMENT);
  EXPECT_EQ(again.device.uses_after_destroy, 0u);
  EXPECT_EQ(again.device.destroyed.load(), 1u);
}

TEST(EthosuCoreDriverThreads, CloseEndsAWaitOfAnotherThread) {
  for (int i = 0; i < 20; ++i) {
    Calls c({.has_clock = true, .has_mutex = true});
    fake_ethosu()->hangs = 1;
    const Blocks blob(small_blob());
    const qplan_npu_job job = c.start(blob);
    qplan_npu_status status = QPLAN_NPU_OK;
    std::thread waiter([&] { status = c.d.wait(c.h, job, UINT64_MAX, nullptr); });
    c.device.close();
    waiter.join();
    EXPECT_EQ(status, QPLAN_NPU_E_ARGUMENT);
    EXPECT_EQ(c.device.uses_after_destroy, 0u);
    EXPECT_EQ(c.device.destroyed.load(), 1u);
    EXPECT_EQ(c.device.live_bytes(), 0u);
  }
}

}  // namespace
}  // namespace qplan::ethosu::testing::core_threads_test
