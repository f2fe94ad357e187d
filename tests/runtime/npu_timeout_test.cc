// Jobs that do not end: timeouts, cancel, reset, and devices that nothing stops.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_timeout_test {
namespace {

TEST(NpuTimeout, AJobThatHangsIsCancelledAfterTheTimeout) {
  for (const bool with_clock : {false, true}) {
    for (const bool is_asynchronous : {false, true}) {
      FailingRegion f;
      f.npu.is_asynchronous = is_asynchronous;
      f.npu.hangs = 1;
      if (with_clock) {
        f.told.platform.now_ns = [](void* user) { return static_cast<Told*>(user)->clock_ns; };
        f.npu.clock = &f.told.clock_ns;
      }
      ASSERT_EQ(f.run(), QPLAN_OK);
      EXPECT_EQ(f.npu.counts.cancels, 1u);
      EXPECT_EQ(f.npu.counts.resets, 0u) << "the cancel ended it: a reset would end the jobs of others";
      EXPECT_EQ(f.npu.wait_timeouts, (std::vector<uint64_t>{5000000, 5000000}));
      const qplan_device_info device = device_info(f.session());
      EXPECT_EQ(device.timeouts, 1u);
      EXPECT_EQ(device.last_status, QPLAN_NPU_E_TIMEOUT);
      EXPECT_EQ(device.fallbacks, 1u);
      EXPECT_EQ(f.npu.counts.live_jobs, 0u);
      ASSERT_EQ(f.run(), QPLAN_OK);
      EXPECT_EQ(region_info(f.session()).device_runs, 1u);
    }
  }
}

TEST(NpuTimeout, TheDefaultTimeoutFollowsTheEstimate) {
  struct Expected {
    uint64_t cycles;
    uint32_t clock_khz;
    uint64_t timeout_ns;
    uint64_t cycles_of_driver = 0;
  };
  constexpr uint64_t kSecond = 1'000'000'000;
  for (const Expected& e : {Expected{0, 0, kSecond},
                            {1'000'000, 0, kSecond},
                            {100'000'000, 0, 16'016'000'000},         // 1 s at 100 MHz
                            {100'000'000, 1'000'000, 1'616'000'000},  // 100 ms at 1 GHz
                            {UINT64_MAX, 0, 600 * kSecond},
                            {UINT64_MAX, 1, 600 * kSecond},
                            {100'000'000, 0, 16'016'000'000, 1000},
                            {1000, 0, 16'016'000'000, 100'000'000},  // slower than the packer thinks
                            {1000, 0, 600 * kSecond, UINT64_MAX}}) {
    PlanSpec spec = region_spec();
    for (StepSpec& step : spec.steps) {
      if (step.npu) step.npu->estimated_cycles = e.cycles;
    }
    FailingRegion f(QPLAN_NPU_FALLBACK, spec);
    f.timeout_us = 0;
    f.npu.hangs = 1;
    f.npu.clock_khz = e.clock_khz;
    f.npu.estimated_cycles = e.cycles_of_driver;
    f.told.platform.now_ns = [](void* user) { return static_cast<Told*>(user)->clock_ns; };
    f.npu.clock = &f.told.clock_ns;
    const uint64_t begin = f.told.clock_ns;
    ASSERT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(device_info(f.session()).timeouts, 1u);
    EXPECT_EQ(f.told.clock_ns - begin, e.timeout_ns) << e.cycles;
  }
}

// A job of minutes may take minutes, but a device takes no longer to stop it than another job.
TEST(NpuTimeout, CancelAndResetOfALongJobTakeASecond) {
  constexpr uint64_t kSecond = 1'000'000'000;
  PlanSpec spec = region_spec();
  for (StepSpec& step : spec.steps) {
    if (step.npu) step.npu->estimated_cycles = UINT64_MAX;
  }
  FailingRegion f(QPLAN_NPU_FALLBACK, spec);
  f.timeout_us = 0;
  f.npu.hangs = 1;
  f.npu.cancel_works = f.npu.reset_works = false;
  f.told.platform.now_ns = [](void* user) { return static_cast<Told*>(user)->clock_ns; };
  f.npu.clock = &f.told.clock_ns;
  f.npu.can_import = false;
  const uint64_t begin = f.told.clock_ns;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.told.clock_ns - begin, 602 * kSecond);
}

TEST(NpuTimeout, WhatCancelDoesNotEndResetDoes) {
  FailingRegion f(QPLAN_NPU_FAIL);
  f.npu.is_asynchronous = true;
  f.npu.hangs = 1;
  f.npu.cancel_works = false;
  EXPECT_EQ(f.run(), QPLAN_DEVICE_TIMEOUT);
  EXPECT_EQ(f.npu.counts.cancels, 1u);
  EXPECT_EQ(f.npu.counts.resets, 1u);
  EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_DEGRADED});
  EXPECT_EQ(f.run(), QPLAN_OK);
}

TEST(NpuTimeout, AJobThatIsNotEvenSubmittedHasItsOwnReset) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.cancel_works = false;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.resets, 1u);
  f.npu.submit_statuses = {QPLAN_NPU_E_BUS};
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.resets, 2u) << "the first job's reset is not the second's";
}

// Hardware that a cancel does not leave in order says so: with another status than that of the cancel.
TEST(NpuTimeout, AJobThatFailsAfterItsCancelResetsItsDevice) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.cancelled_status = QPLAN_NPU_E_BUS;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.resets, 1u);
  EXPECT_EQ(device_info(f.session()).last_status, QPLAN_NPU_E_TIMEOUT);
}

TEST(NpuTimeout, AResetOfOthersThatEndsALateJobIsNotAnsweredWithAnother) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.cancelled_status = QPLAN_NPU_E_RESET;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.resets, 0u);
  EXPECT_EQ(device_info(f.session()).timeouts, 1u);
}

// In memory of the device's own it may write what it likes.
TEST(NpuTimeout, WhatNothingEndsIsGone) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.cancel_works = f.npu.reset_works = false;
  f.npu.can_import = false;
  EXPECT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_ABSENT});
  EXPECT_STREQ(region_info(f.session()).text, "the job ended neither by cancel nor by reset");
  EXPECT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.submits, 1u);
}

// In the session's memory it may write over what the CPU's steps compute, in this run and in all later ones.
TEST(NpuTimeout, TheCpuRunsNoStepsInMemoryThatALostJobMayWrite) {
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL}) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(std::to_string(policy) + (in_place ? " in place" : ""));
      FailingRegion f(policy, region_spec({in_place, true, 24}));
      f.npu.hangs = 1;
      f.npu.cancel_works = f.npu.reset_works = false;
      EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
      EXPECT_EQ(
          f.session().last_error(),
          "npu: region 'npu_main_0' (step 1) failed on 'fake', driver 'fake-npu': the job ended neither "
          "by cancel nor by reset, it may still write to the session's memory (status -30)");
      EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
      EXPECT_EQ(f.session().last_error(),
                "npu: region 'npu_main_0' (step 1) does not run on 'fake': the job ended neither by cancel "
                "nor by reset, it may still write to the session's memory; close that device, open it again "
                "and make a new session");
      EXPECT_EQ(f.npu.counts.submits, 1u);
      EXPECT_EQ(region_info(f.session()).cpu_runs, 0u);
      EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_INVALID_STATE);
    }
  }
}

TEST(NpuTimeout, AJobThatEndsWellAfterCancelCounts) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.finishes_late = true;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(region_info(f.session()).device_runs, 1u);
  EXPECT_EQ(device_info(f.session()).failed_jobs, 0u);
}

TEST(NpuTimeout, AResetThatFailedStandsThoughTheJobCompletes) {
  FailingRegion f;
  f.npu.hangs = 1;
  f.npu.cancel_works = false;
  f.npu.finishes_late = true;
  f.npu.reset_status = QPLAN_NPU_E_BUS;
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(region_info(f.session()).device_runs, 1u);
  EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_QUARANTINED});
}

TEST(NpuTimeout, AResetThatFailedStandsWhateverFailsAfterwards) {
  for (const auto& [reset, state] :
       {std::pair{QPLAN_NPU_E_BUS, QPLAN_DEVICE_QUARANTINED}, {QPLAN_NPU_E_LOST, QPLAN_DEVICE_ABSENT}}) {
    FailingRegion f;
    f.npu.hangs = 1;
    f.npu.cancel_works = false;
    f.npu.finishes_late = true;
    f.npu.reset_status = reset;
    f.npu.invalidate_statuses = {QPLAN_NPU_E_OFF};  // "not possible now", of the class that degrades
    ASSERT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(device_info(f.session()).state, uint32_t{state});
    ASSERT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(f.npu.counts.submits, 1u) << "it gets no jobs";
  }
}

// Whether the session's end finds the job in flight, or a run has lost it before.
TEST(NpuTimeout, ADeviceThatNothingStopsIsToldWhenTheSessionEnds) {
  for (const bool reset_works : {true, false}) {
    for (const bool in_a_run : {true, false}) {
      SCOPED_TRACE(std::string(reset_works ? "" : "lost ") + (in_a_run ? "in a run" : "at the end"));
      FakeNpu npu;
      npu.is_asynchronous = true;
      npu.hangs = 1;
      npu.cancel_works = false;
      npu.reset_works = reset_works;
      Told told;
      const TestPlan plan(region_spec());
      DeviceConfigs devices;
      devices.add("fake", npu);
      TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, 0, &told.platform));
      if (in_a_run) {
        EXPECT_EQ(qplan_session_invoke(session.get()), reset_works ? QPLAN_OK : QPLAN_DEVICE_ERROR);
      } else {
        ASSERT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
      }
      told.log.clear();
      EXPECT_EQ(qplan_session_deinit(session.get()), reset_works ? QPLAN_OK : QPLAN_DEVICE_ERROR);
      EXPECT_EQ(told.logged(QPLAN_LOG_ERROR), reset_works ? 0u : 1u);
      EXPECT_EQ(told.last(QPLAN_LOG_ERROR),
                reset_works
                    ? ""
                    : "npu: 'fake', driver 'fake-npu' could not be stopped, neither by cancel nor by reset: "
                      "it may still write to the session's memory");
      EXPECT_EQ(qplan_session_deinit(session.get()), QPLAN_INVALID_ARGUMENT) << "it is taken down";
    }
  }
}

TEST(NpuTimeout, PollingNoticesTheTimeoutByTheClock) {
  FailingRegion f;
  f.npu.is_asynchronous = true;
  f.npu.hangs = 1;
  f.told.platform.now_ns = [](void* user) { return static_cast<Told*>(user)->clock_ns; };
  qplan_session* session = f.session().get();
  write_bytes(f.session(), counting(24, 1));
  ASSERT_EQ(qplan_session_submit(session), QPLAN_PENDING);
  ASSERT_EQ(qplan_session_poll(session), QPLAN_PENDING);
  f.told.clock_ns += 6000000;
  ASSERT_EQ(qplan_session_poll(session), QPLAN_PENDING);
  EXPECT_EQ(f.npu.counts.cancels, 1u);
  ASSERT_EQ(qplan_session_poll(session), QPLAN_OK);
  EXPECT_EQ(read_bytes(f.session(), 24), counting(24, 8));
  EXPECT_EQ(device_info(f.session()).timeouts, 1u);
}

}  // namespace
}  // namespace qplan::testing::npu_timeout_test
