// qplan_session_cancel: from hooks, from kernels that run, from other threads, with devices.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "qplan/host.h"
#include "src/runtime/bind/family.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::cancel_test {
namespace {

qplan_session* running = nullptr;

// Cancels `running` when the step called 'second' first begins, and keeps the reports.
struct CancelAtSecond {
  qplan_platform platform = {};
  std::vector<std::string> told;
  bool is_armed = true;

  CancelAtSecond() {
    platform.struct_size = sizeof(platform);
    platform.log_level = QPLAN_LOG_INFO;
    platform.user = this;
    platform.log = [](void* user, uint32_t level, const char* text) {
      static_cast<CancelAtSecond*>(user)->told.push_back("log " + std::to_string(level) + " " + text);
    };
    platform.step_begin = [](void* user, const qplan_event* event) {
      auto* self = static_cast<CancelAtSecond*>(user);
      if (std::string(event->name) != "second" || !self->is_armed) return;
      self->is_armed = false;
      EXPECT_EQ(qplan_session_cancel(running), QPLAN_OK);
    };
    platform.step_end = [](void* user, const qplan_event* event, qplan_status status) {
      static_cast<CancelAtSecond*>(user)->told.push_back(std::string(event->name) + " " +
                                                         qplan_status_name(status));
    };
  }
};

TEST(Cancel, EndsTheRunAtTheNextStepAndTheSessionStaysUsable) {
  const TestPlan plan(sequence_spec());
  CancelAtSecond hooks;
  const TestSession session(plan, config_of(&hooks.platform));
  running = session.get();
  hooks.told.clear();
  write_bytes(session, counting(24));
  reset_kernel_calls();
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_CANCELLED);
  EXPECT_EQ(kernel_calls().add_byte_ref + kernel_calls().add_byte_avx2, 1u);
  EXPECT_EQ(hooks.told, (std::vector<std::string>{"first QPLAN_OK", "second QPLAN_CANCELLED",
                                                  "log 3 the run was cancelled at step 1 'second'"}));
  qplan_error error = empty_error();
  qplan_session_last_error(session.get(), &error);
  EXPECT_EQ(error.status, QPLAN_CANCELLED);
  EXPECT_EQ(error.step, 1);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_CANCELLED);
  // Again, with the input that is still there.
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(read_bytes(session, 24), counting(24, 6));
}

TEST(Cancel, WithoutARunDoesNothing) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  EXPECT_EQ(qplan_session_cancel(session.get()), QPLAN_OK);
  EXPECT_EQ(run_and_check(session, 5, 6), QPLAN_OK);
  EXPECT_EQ(qplan_session_cancel(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_OK) << "the last run's status";
  EXPECT_EQ(run_and_check(session, 6, 6), QPLAN_OK);
  EXPECT_EQ(qplan_session_cancel(nullptr), QPLAN_INVALID_ARGUMENT);
}

// 24 bytes, each a unit with a work of 2^28: a call each.
PlanSpec heavy_spec() {
  PlanSpec spec = sequence_spec();
  spec.steps[1].params = copy_params(kHeavyAddend);
  return spec;
}

std::atomic<uint32_t> units_begun{0};
constexpr uint32_t kUnitThatCancels = 5;

void cancel_at_fifth(uint32_t begin) {
  ++units_begun;
  if (begin == kUnitThatCancels) {
    EXPECT_EQ(qplan_session_cancel(running), QPLAN_OK);
  }
}

class CancelWithin : public ::testing::Test {
 protected:
  void SetUp() override {
    units_begun = 0;
    set_heavy_hook(cancel_at_fifth);
  }
  void TearDown() override { set_heavy_hook(nullptr); }
};

TEST_F(CancelWithin, AStepEndsTheRunAtTheNextWorkItem) {
  const TestPlan plan(heavy_spec());
  const TestSession session(plan, config_of());
  running = session.get();
  EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_CANCELLED);
  EXPECT_EQ(units_begun, kUnitThatCancels + 1);
  set_heavy_hook(nullptr);
  EXPECT_EQ(run_and_check(session, 1, 1 + kHeavyAddend + 3), QPLAN_OK);
}

// The other workers finish the unit that they are in, and begin no other.
TEST_F(CancelWithin, AStepReachesTheWorkersOfPools) {
  for (const auto& [create, destroy] :
       {std::make_pair(qplan_pool_create, qplan_pool_destroy),
        std::make_pair(qplan_openmp_pool_create, qplan_openmp_pool_destroy)}) {
    const qplan_thread_pool* pool = create(3);
    ASSERT_NE(pool, nullptr);
    {
      qplan_platform platform = {};
      platform.struct_size = sizeof(platform);
      platform.thread_pool = pool;
      const TestPlan plan(heavy_spec());
      const TestSession session(plan, config_of(&platform));
      running = session.get();
      static std::atomic<bool> is_cancelled;
      is_cancelled = false;
      units_begun = 0;
      set_heavy_hook([](uint32_t) {
        if (++units_begun == 1) {
          EXPECT_EQ(qplan_session_cancel(running), QPLAN_OK);
          is_cancelled = true;
        }
        while (!is_cancelled) std::this_thread::yield();
      });
      EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_CANCELLED);
      EXPECT_LE(units_begun, 3u) << "one of each worker";
      set_heavy_hook(nullptr);
      EXPECT_EQ(run_and_check(session, 1, 1 + kHeavyAddend + 3), QPLAN_OK);
    }
    destroy(pool);
  }
}

// A real kernel that would take many seconds, ended by another thread.
TEST(Cancel, FromAnotherThread) {
  PlanSpec spec;
  const std::vector<int64_t> shape = {1, 2000, 64, 1};
  const uint32_t x = spec.add_tensor(shape, "x"), y = spec.add_tensor(shape, "y");
  spec.add_step(kKernel_max_pool2d, {x}, {y}, [](flatbuffers::FlatBufferBuilder& b) {
    return std::make_pair(
        format::KernelParams_Pool2dParams,
        format::CreatePool2dParams(b, format::Contract_TFL2, 1999, 63, 1, 1, 999, 31, -128, 127).Union());
  });
  spec.steps[0].min_units_per_task = 1;
  spec.add_main({x}, {y}, 1 << 20);
  const TestPlan plan(spec);
  for (const uint32_t threads : {1u, 2u}) {
    const qplan_thread_pool* pool = qplan_pool_create(threads);
    ASSERT_NE(pool, nullptr);
    qplan_platform platform = {};
    platform.struct_size = sizeof(platform);
    platform.thread_pool = pool;
    qplan_session_config config = config_of(&platform);
    config.kernels = qplan_kernels_all();
    {
      const TestSession session(plan, config);
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      std::atomic<bool> is_done{false};
      // Again and again: the first may come before the run has begun.
      std::thread canceller([&] {
        while (!is_done) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          qplan_session_cancel(session.get());
        }
      });
      EXPECT_EQ(qplan_session_invoke(session.get()), QPLAN_CANCELLED);
      is_done = true;
      canceller.join();
    }
    qplan_pool_destroy(pool);
  }
}

// ---- with a device ----

struct OnDevice {
  explicit OnDevice(uint32_t policy = QPLAN_NPU_FALLBACK) : plan(region_spec()) {
    npu.is_asynchronous = true;
    npu.hangs = 1;
    devices.add("fake", npu);
    session = std::make_unique<TestSession>(plan, npu_config(devices, policy, 0, &told.platform));
    EXPECT_EQ(session->status(), QPLAN_OK) << session->text();
  }
  qplan_session* get() { return session->get(); }

  FakeNpu npu;
  TestPlan plan;
  DeviceConfigs devices;
  Told told;
  std::unique_ptr<TestSession> session;
};

TEST(CancelOnDevice, EndsTheJobInFlight) {
  OnDevice on;
  ASSERT_EQ(qplan_session_submit(on.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_poll(on.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_cancel(on.get()), QPLAN_OK);
  EXPECT_EQ(on.npu.counts.cancels, 0u) << "it only asks";
  EXPECT_EQ(qplan_session_wait(on.get(), 1000), QPLAN_CANCELLED);
  EXPECT_EQ(on.npu.counts.cancels, 1u);
  EXPECT_EQ(on.npu.counts.resets, 0u);
  EXPECT_EQ(on.npu.counts.live_jobs, 0u);
  // Nobody failed: the region stays where it is, and nothing ran in its place.
  EXPECT_EQ(region_info(*on.session).failures, 0u);
  EXPECT_EQ(region_info(*on.session).cpu_runs, 0u);
  EXPECT_EQ(device_info(*on.session).failed_jobs, 0u);
  EXPECT_EQ(device_info(*on.session).state, uint32_t{QPLAN_DEVICE_PRESENT});
  EXPECT_EQ(on.told.events.back(), "end npu fake-npu npu_main_0 " + std::to_string(int32_t{QPLAN_CANCELLED}));
  EXPECT_EQ(run_and_check(*on.session, 3), QPLAN_OK);
  EXPECT_EQ(region_info(*on.session).device_runs, 1u);
}

TEST(CancelOnDevice, ByPollingAlone) {
  OnDevice on;
  ASSERT_EQ(qplan_session_submit(on.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_cancel(on.get()), QPLAN_OK);
  qplan_status status = QPLAN_PENDING;
  for (int i = 0; i < 10 && status == QPLAN_PENDING; ++i) status = qplan_session_poll(on.get());
  EXPECT_EQ(status, QPLAN_CANCELLED);
}

TEST(CancelOnDevice, ResetsADeviceWhoseJobDoesNotEnd) {
  OnDevice on;
  on.npu.cancel_works = false;
  ASSERT_EQ(qplan_session_submit(on.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_cancel(on.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_wait(on.get(), UINT32_MAX), QPLAN_CANCELLED);
  EXPECT_EQ(on.npu.counts.resets, 1u);
  EXPECT_EQ(on.npu.counts.live_jobs, 0u);
  EXPECT_EQ(run_and_check(*on.session, 3), QPLAN_OK);
}

// The device broke: that is no answer to the cancel, and the run must not hide it.
TEST(CancelOnDevice, AFailureOfTheDeviceIsCountedAndTheRunCancelled) {
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL}) {
    for (const qplan_npu_status status : {QPLAN_NPU_E_BUS, QPLAN_NPU_E_RESET, QPLAN_NPU_E_LOST}) {
      SCOPED_TRACE(std::to_string(policy) + ", status " + std::to_string(status));
      OnDevice on(policy);
      on.npu.cancelled_status = status;
      ASSERT_EQ(qplan_session_submit(on.get()), QPLAN_PENDING);
      EXPECT_EQ(qplan_session_cancel(on.get()), QPLAN_OK);
      EXPECT_EQ(qplan_session_wait(on.get(), UINT32_MAX), QPLAN_CANCELLED);
      const qplan_device_info device = device_info(*on.session);
      EXPECT_EQ(device.failed_jobs, 1u);
      EXPECT_EQ(device.last_status, status);
      EXPECT_EQ(device.state,
                uint32_t{status == QPLAN_NPU_E_LOST ? QPLAN_DEVICE_ABSENT : QPLAN_DEVICE_DEGRADED});
      EXPECT_EQ(on.npu.counts.resets, status == QPLAN_NPU_E_BUS ? 1u : 0u);
      EXPECT_EQ(on.npu.counts.submits, 1u);
      EXPECT_EQ(region_info(*on.session).cpu_runs, 0u);
      EXPECT_EQ(on.told.last(QPLAN_LOG_WARNING),
                "npu: region 'npu_main_0' (step 1) failed on 'fake', driver 'fake-npu': scripted (status " +
                    std::to_string(status) + "); the run was cancelled");
    }
  }
}

// A job that completes all the same is no reason to go on.
TEST(CancelOnDevice, AJobThatCompletesEndsTheRunToo) {
  OnDevice on;
  on.npu.finishes_late = true;
  ASSERT_EQ(qplan_session_submit(on.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_cancel(on.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_wait(on.get(), UINT32_MAX), QPLAN_CANCELLED);
  EXPECT_EQ(region_info(*on.session).device_runs, 1u);
}

// invoke waits in the driver, for at most a hundredth of a second at a time.
TEST(CancelOnDevice, WhileInvokeWaits) {
  OnDevice on;
  std::atomic<bool> is_done{false};
  std::thread canceller([&] {
    while (!is_done) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      qplan_session_cancel(on.get());
    }
  });
  on.npu.pending_waits = 0;
  const qplan_status status = qplan_session_invoke(on.get());
  is_done = true;
  canceller.join();
  // The fake device answers at once, so that the timeout may come first.
  EXPECT_TRUE(status == QPLAN_CANCELLED || device_info(*on.session).timeouts == 1) << status;
  for (const uint64_t timeout : on.npu.wait_timeouts) EXPECT_LE(timeout, 10000000u);
}

}  // namespace
}  // namespace qplan::testing::cancel_test
