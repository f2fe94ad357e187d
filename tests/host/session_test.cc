// Heap sessions, the trace and the log around a real session.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "qplan/host.h"
#include "tests/runtime/npu_fixture.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/sanitizers.h"

namespace qplan::testing::session_test {
namespace {

TEST(HostSession, AllocatesWhatIsNeeded) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 4096, 100, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  qplan_error error = empty_error();
  qplan_host_session* host = nullptr;
  ASSERT_EQ(qplan_host_session_create(plan.get(), &config, &host, &error), QPLAN_OK) << error.text;
  EXPECT_EQ(qplan_session_invoke(qplan_host_session_get(host)), QPLAN_OK);
  HostTensor out({2, 3, 4}, counting(24));
  EXPECT_EQ(qplan_session_read(qplan_host_session_get(host), 0, &out.tensor), QPLAN_OK);
  EXPECT_EQ(out.bytes, std::vector<uint8_t>(24, 6));  // of an input that was never written: zeros
  qplan_host_session_destroy(host);
}

TEST(HostSession, PassesErrorsOn) {
  const TestPlan plan(sequence_spec());
  qplan_session_config config = config_of();
  config.kernels = nullptr;
  qplan_error error = empty_error();
  qplan_host_session* host = reinterpret_cast<qplan_host_session*>(1);
  EXPECT_EQ(qplan_host_session_create(plan.get(), &config, &host, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(host, nullptr);
  EXPECT_NE(std::string(error.text).find("kernels is NULL"), std::string::npos);
  EXPECT_EQ(qplan_host_session_create(plan.get(), &config, nullptr, &error), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_host_session_get(nullptr), nullptr);
  qplan_host_session_destroy(nullptr);
}

TEST(HostSession, MemoryThatNobodyHasIsAnError) {
  PlanSpec spec = sequence_spec();
  spec.banks.push_back({format::BankKind_ARENA, 64, uint64_t{1} << 47, {}, {}});
  const TestPlan plan(spec);
  const qplan_session_config config = config_of();
  qplan_error error = empty_error();
  qplan_host_session* host = nullptr;
#if QPLAN_ASAN || QPLAN_TSAN
  GTEST_SKIP() << "the sanitizer ends the process at once";
#endif
  EXPECT_EQ(qplan_host_session_create(plan.get(), &config, &host, &error), QPLAN_OUT_OF_MEMORY);
  EXPECT_STREQ(error.text, "host session: no 140737488355328 bytes for bank 2");
}

// Freed, the bytes would soon be somebody else's.
TEST(HostSession, KeepsTheMemoriesThatALostJobMayWrite) {
  for (const bool in_a_run : {false, true}) {
    FakeNpu npu;
    npu.is_asynchronous = true;
    npu.hangs = 1;
    npu.cancel_works = npu.reset_works = false;
    const TestPlan plan(region_spec({true, true, uint64_t{1} << 22}));
    DeviceConfigs devices;
    devices.add("fake", npu);
    qplan_session_config config = npu_config(devices);
    config.npu_timeout_us = 5000;
    qplan_error error = empty_error();
    qplan_host_session* host = nullptr;
    ASSERT_EQ(qplan_host_session_create(plan.get(), &config, &host, &error), QPLAN_OK) << error.text;
    qplan_session* const session = qplan_host_session_get(host);
    EXPECT_EQ(in_a_run ? qplan_session_invoke(session) : qplan_session_submit(session),
              in_a_run ? qplan_status{QPLAN_DEVICE_ERROR} : qplan_status{QPLAN_PENDING});
    qplan_host_session_destroy(host);
    ASSERT_EQ(npu.counts.live_jobs, 1u);
    npu.write_outputs_of_live_jobs();  // where the memory is freed this is a fault
  }
}

TEST(HostSession, ThreadsOfBothPoolsGiveTheSameBytes) {
#if defined(__SANITIZE_THREAD__)
  const bool with_openmp = false;  // libgomp's synchronisation is invisible to ThreadSanitizer
#else
  const bool with_openmp = true;
#endif
  PlanSpec spec = sequence_spec();
  const TestPlan plan(spec);
  for (uint32_t threads = 1; threads <= 4; ++threads) {
    for (const bool openmp : {false, true}) {
      if (openmp && !with_openmp) continue;
      const qplan_thread_pool* pool = openmp ? qplan_openmp_pool_create(threads) : qplan_pool_create(threads);
      qplan_platform platform = {};
      platform.struct_size = sizeof(platform);
      platform.thread_pool = pool;
      {
        const TestSession session(plan, config_of(&platform));
        for (int round = 0; round < 20; ++round) {
          HostTensor in({2, 3, 4}, counting(24, static_cast<uint8_t>(round))), out({2, 3, 4}, counting(24));
          ASSERT_EQ(qplan_session_write(session.get(), 0, &in.tensor), QPLAN_OK);
          ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
          ASSERT_EQ(qplan_session_read(session.get(), 0, &out.tensor), QPLAN_OK);
          ASSERT_EQ(out.bytes, counting(24, static_cast<uint8_t>(round + 6)));
        }
      }
      openmp ? qplan_openmp_pool_destroy(pool) : qplan_pool_destroy(pool);
    }
  }
}

TEST(HostBatch, TakesNoOutputsInOnePlace) {
  const TestPlan plan(sequence_spec());
  const qplan_session_config config = config_of();
  qplan_error error = empty_error();
  qplan_host_session* host = nullptr;
  ASSERT_EQ(qplan_host_session_create(plan.get(), &config, &host, &error), QPLAN_OK) << error.text;
  qplan_session* const session = qplan_host_session_get(host);
  HostTensor in({2, 3, 4}, counting(24)), out({2, 3, 4}, std::vector<uint8_t>(24));
  int64_t strides[] = {0, 4, 1};
  out.tensor.strides = strides;
  // With one row a sample, the session sees nothing of the stride from a sample to the next.
  uint32_t num_done = 7;
  EXPECT_EQ(qplan_host_run_batch(session, 1, &in.tensor, 1, &out.tensor, 1, &num_done, &error),
            QPLAN_INVALID_ARGUMENT);
  int64_t shape[] = {4, 3, 4};
  out.tensor.shape = shape;
  in.tensor.shape = shape;
  in.tensor.strides = strides;  // inputs may be the same for all samples
  EXPECT_EQ(qplan_host_run_batch(session, 2, &in.tensor, 1, &out.tensor, 1, &num_done, &error),
            QPLAN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text,
               "batch: output 0: has stride 0 along its first axis, where each sample has its own place");
  EXPECT_EQ(num_done, 0u);
  qplan_host_session_destroy(host);
}

class HostTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("qplan-trace-" + std::to_string(getpid()))).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  nlohmann::json written(qplan_trace* trace) const {
    qplan_error error = empty_error();
    EXPECT_EQ(qplan_trace_write(trace, path_.c_str(), &error), QPLAN_OK) << error.text;
    std::ifstream file(path_);
    return nlohmann::json::parse(file);
  }
  std::string path_;
};

TEST_F(HostTrace, HoldsEveryStep) {
  PlanSpec spec = sequence_spec();
  spec.steps[0].name = "a\"b\\c\n\x01\xff\xc3\xa9";
  spec.steps[1].name = "";
  qplan_trace* trace = qplan_trace_create();
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  ASSERT_EQ(qplan_trace_attach(trace, &platform), QPLAN_OK);
  {
    const TestPlan plan(spec);
    qplan_session_config config = config_of(&platform);
    config.isa_limit = QPLAN_ISA_REFERENCE;
    const TestSession session(plan, config);
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  }
  const nlohmann::json json = written(trace);  // the plan is gone
  std::vector<nlohmann::json> steps;
  bool has_thread_name = false;
  double last = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "M") {
      has_thread_name = has_thread_name || event.at("name") == "thread_name";
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("ts").get<double>(), last);
    last = event.at("ts").get<double>();
    EXPECT_GE(event.at("dur").get<double>(), 0);
    steps.push_back(event);
  }
  EXPECT_TRUE(has_thread_name);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].at("name"), "a\"b\\c\n\x01\xef\xbf\xbd\xc3\xa9");
  EXPECT_EQ(steps[1].at("name"), "add_byte");
  EXPECT_EQ(steps[2].at("name"), "third");
  EXPECT_EQ(steps[2].at("cat"), "add_byte");
  EXPECT_EQ(steps[2].at("args").at("kernel"), "add_byte_ref");
  EXPECT_EQ(steps[2].at("args").at("macs"), 11);
  EXPECT_EQ(steps[2].at("args").at("bytes"), 48);
  EXPECT_EQ(steps[2].at("args").at("step"), 2);
  qplan_trace_destroy(trace);
}

TEST_F(HostTrace, KeepsWhatThePlatformHadBefore) {
  struct Seen {
    int begins = 0, ends = 0, logs = 0;
  } seen;
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.log_level = QPLAN_LOG_INFO;
  platform.user = &seen;
  platform.log = [](void* user, uint32_t, const char*) { ++static_cast<Seen*>(user)->logs; };
  platform.step_begin = [](void* user, const qplan_event*) { ++static_cast<Seen*>(user)->begins; };
  platform.step_end = [](void* user, const qplan_event*, qplan_status) { ++static_cast<Seen*>(user)->ends; };
  qplan_trace* trace = qplan_trace_create();
  ASSERT_EQ(qplan_trace_attach(trace, &platform), QPLAN_OK);
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of(&platform));
  ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
  EXPECT_EQ(seen.begins, 3);
  EXPECT_EQ(seen.ends, 3);
  EXPECT_EQ(seen.logs, 1);
  qplan_trace_destroy(trace);
}

TEST_F(HostTrace, ThePlatformsClockStaysWithItsOwnUser) {
  for (const bool is_traced : {true, false}) {
    uint64_t clock = 7;
    qplan_platform platform = {};
    platform.struct_size = sizeof(platform);
    platform.user = &clock;
    platform.now_ns = [](void* user) { return (*static_cast<uint64_t*>(user))++; };
    qplan_trace* trace = qplan_trace_create();
    qplan_step_times* times = qplan_step_times_create();
    ASSERT_EQ(is_traced ? qplan_trace_attach(trace, &platform) : qplan_step_times_attach(times, &platform),
              QPLAN_OK);
    EXPECT_EQ(platform.now_ns(platform.user), 7u);
    EXPECT_EQ(clock, 8u);
    qplan_step_times_destroy(times);
    qplan_trace_destroy(trace);
  }
}

// Sessions on a device that works by itself, all with the same trace.
class HostTraceOfDevices : public HostTrace {
 protected:
  static constexpr double kSleepUs = 20'000;
  void SetUp() override {
    HostTrace::SetUp();
    npu_.is_asynchronous = true;
    devices_.add("fake", npu_);
    platform_.struct_size = sizeof(platform_);
    ASSERT_EQ(qplan_trace_attach(trace_, &platform_), QPLAN_OK);
  }
  void TearDown() override {
    qplan_trace_destroy(trace_);
    HostTrace::TearDown();
  }
  qplan_session_config config(uint32_t flags = 0) {
    return npu_config(devices_, QPLAN_NPU_FALLBACK, flags, &platform_);
  }
  static void sleep() { std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(kSleepUs))); }
  // Microseconds that the regions took.
  std::vector<double> region_times() const {
    std::vector<double> times;
    const nlohmann::json json = written(trace_);
    for (const auto& event : json.at("traceEvents")) {
      if (event.at("ph") == "X" && event.at("cat") == "npu") times.push_back(event.at("dur").get<double>());
    }
    return times;
  }

  FakeNpu npu_;
  const TestPlan plan_{region_spec()};
  DeviceConfigs devices_;
  qplan_platform platform_ = {};
  qplan_trace* trace_ = qplan_trace_create();
};

TEST_F(HostTraceOfDevices, ARegionThatEndsOnAnotherThreadHasItsOwnBegin) {
  const TestSession session(plan_, config());
  ASSERT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  sleep();
  qplan_status status = QPLAN_PENDING;
  std::thread([&] { status = qplan_session_wait(session.get(), UINT32_MAX); }).join();
  EXPECT_EQ(status, QPLAN_OK);
  const std::vector<double> times = region_times();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_GE(times[0], kSleepUs);
  EXPECT_LT(times[0], 60e6);
}

TEST_F(HostTraceOfDevices, StepsOfAnotherSessionMeanwhileDoNotMoveTheBegin) {
  const TestSession session(plan_, config()), on_cpu(plan_, config(QPLAN_NPU_OFF));
  ASSERT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  sleep();
  ASSERT_EQ(qplan_session_invoke(on_cpu.get()), QPLAN_OK);
  ASSERT_EQ(qplan_session_wait(session.get(), UINT32_MAX), QPLAN_OK);
  const std::vector<double> times = region_times();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_GE(times[0], kSleepUs);
}

TEST_F(HostTraceOfDevices, TwoSessionsMayHaveTheSameStepInFlight) {
  const TestSession one(plan_, config()), two(plan_, config());
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(qplan_session_submit(one.get()), QPLAN_PENDING);
    ASSERT_EQ(qplan_session_submit(two.get()), QPLAN_PENDING);
    ASSERT_EQ(qplan_session_wait(one.get(), UINT32_MAX), QPLAN_OK);
    ASSERT_EQ(qplan_session_wait(two.get(), UINT32_MAX), QPLAN_OK);
  }
  const std::vector<double> times = region_times();
  EXPECT_EQ(times.size(), 4u);
  for (const double time : times) EXPECT_LT(time, 60e6);
}

TEST_F(HostTrace, YieldsWithThePlatformsOwnUser) {
  for (const bool is_traced : {false, true}) {
    for (const bool is_timed : {false, true}) {
      SCOPED_TRACE(std::string(is_traced ? "traced " : "") + (is_timed ? "timed" : ""));
      static const void* application;
      static int yields;
      application = &yields, yields = 0;
      qplan_platform platform = {};
      platform.struct_size = sizeof(platform);
      platform.user = &yields;
      platform.yield = [](void* user) { yields += user == application ? 1 : 1000; };
      qplan_trace* trace = qplan_trace_create();
      qplan_step_times* times = qplan_step_times_create();
      if (is_traced) {
        ASSERT_EQ(qplan_trace_attach(trace, &platform), QPLAN_OK);
      }
      if (is_timed) {
        ASSERT_EQ(qplan_step_times_attach(times, &platform), QPLAN_OK);
      }
      {
        const TestPlan plan(sequence_spec());
        const TestSession session(plan, config_of(&platform));
        ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
      }
      EXPECT_EQ(yields, 3) << "one for each step, with the application's user";
      qplan_step_times_destroy(times);
      qplan_trace_destroy(trace);
    }
  }
}

TEST_F(HostTrace, WritesNothingBeyondAShorterPlatform) {
  qplan_platform platform = {};
  platform.struct_size = offsetof(qplan_platform, yield);
  const auto beyond = [](void*) {};
  platform.yield = beyond;
  qplan_trace* trace = qplan_trace_create();
  qplan_step_times* times = qplan_step_times_create();
  ASSERT_EQ(qplan_trace_attach(trace, &platform), QPLAN_OK);
  ASSERT_EQ(qplan_step_times_attach(times, &platform), QPLAN_OK);
  EXPECT_EQ(platform.yield, static_cast<void (*)(void*)>(beyond));
  qplan_step_times_destroy(times);
  qplan_trace_destroy(trace);
}

TEST_F(HostTrace, WrongArgumentsAreErrors) {
  qplan_trace* trace = qplan_trace_create();
  qplan_platform platform = {};
  EXPECT_EQ(qplan_trace_attach(trace, &platform), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_trace_attach(nullptr, &platform), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_trace_attach(trace, nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_trace_write(nullptr, "x", nullptr), QPLAN_INVALID_ARGUMENT);
  EXPECT_EQ(qplan_trace_write(trace, "/nonexistent/trace.json", nullptr), QPLAN_FILE_ERROR);
  EXPECT_EQ(written(trace).at("traceEvents").size(), 1u);
  qplan_trace_destroy(trace);
  qplan_trace_destroy(nullptr);
}

TEST(HostLog, WritesLevelAndTextToStderr) {
  ::testing::internal::CaptureStderr();
  qplan_host_log(nullptr, QPLAN_LOG_WARNING, "careful {}");
  qplan_host_log(nullptr, QPLAN_LOG_OFF, "never");
  qplan_host_log(nullptr, QPLAN_LOG_ERROR, nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[warning] careful {}\n");
}

TEST(HostClock, IsSteady) {
  const uint64_t a = qplan_host_now_ns(nullptr), b = qplan_host_now_ns(nullptr);
  EXPECT_LE(a, b);
}

}  // namespace
}  // namespace qplan::testing::session_test
