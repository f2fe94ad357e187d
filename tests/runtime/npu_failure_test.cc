// A region whose device, driver or job fails: policies, error classes, states, counters.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"
#include "tests/support/malloc_trap.h"

namespace qplan::testing::npu_failure_test {
namespace {

struct Case {
  qplan_npu_status status;
  uint32_t retries;  // under QPLAN_NPU_RETRY, where the second attempt succeeds
  uint32_t resets;   // by each failure
  uint32_t state;    // of the device after a failure that fell back
  bool is_for_good;  // the region does not go back to the device
};
constexpr Case kCases[] = {
    {QPLAN_NPU_E_ARGUMENT, 0, 0, QPLAN_DEVICE_PRESENT, true},
    {QPLAN_NPU_E_BLOB, 0, 0, QPLAN_DEVICE_PRESENT, true},
    {-9, 0, 0, QPLAN_DEVICE_PRESENT, true},
    {QPLAN_NPU_E_MEMORY, 1, 0, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_BUSY, 1, 0, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_CANCELLED, 1, 0, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_BUS, 1, 1, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_HAZARD, 1, 1, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_RESET, 1, 0, QPLAN_DEVICE_DEGRADED, false},
    {-29, 1, 1, QPLAN_DEVICE_DEGRADED, false},
    {QPLAN_NPU_E_LOST, 0, 0, QPLAN_DEVICE_ABSENT, true},
    {-99, 0, 0, QPLAN_DEVICE_ABSENT, true},
};

TEST(NpuFailure, FallbackRunsTheCpuStepsWithTheSameBits) {
  for (const Case& c : kCases) {
    for (const bool at_submit : {false, true}) {
      for (const bool is_asynchronous : {false, true}) {
        for (const bool in_place : {false, true}) {
          SCOPED_TRACE(std::to_string(c.status) + (at_submit ? " at submit" : " in the job"));
          FailingRegion f(QPLAN_NPU_FALLBACK, region_spec({in_place, true, 24}));
          f.npu.is_asynchronous = is_asynchronous;
          (at_submit ? f.npu.submit_statuses : f.npu.job_statuses) = {c.status};
          ASSERT_EQ(f.run(), QPLAN_OK);
          qplan_region_info region = region_info(f.session());
          EXPECT_EQ(region.cpu_runs, 1u);
          EXPECT_EQ(region.device_runs, 0u);
          EXPECT_EQ(region.failures, 1u);
          EXPECT_EQ(region.on_device, c.is_for_good ? 0u : 1u);
          EXPECT_EQ(region.status == QPLAN_OK, !c.is_for_good);
          EXPECT_STREQ(region.text, at_submit ? "submit scripted" : "scripted");
          const qplan_device_info device = device_info(f.session());
          EXPECT_EQ(device.state, c.state);
          EXPECT_EQ(device.last_status, c.status);
          EXPECT_EQ(device.jobs, 1u);
          EXPECT_EQ(device.failed_jobs, 1u);
          EXPECT_EQ(device.fallbacks, 1u);
          EXPECT_EQ(device.resets, c.resets);
          EXPECT_EQ(f.npu.counts.resets, c.resets);
          EXPECT_EQ(f.told.logged(QPLAN_LOG_WARNING), 1u);
          EXPECT_NE(f.told.last(QPLAN_LOG_WARNING).find("; it runs on the CPU instead"), std::string::npos);
          EXPECT_EQ(f.told.events[2], "begin npu fake-npu npu_main_0");
          EXPECT_EQ(f.told.events[3], "end npu fake-npu npu_main_0 -32");
          EXPECT_EQ(f.told.events[4].rfind("begin add_byte", 0), 0u);
          // The next run goes where the region says.
          ASSERT_EQ(f.run(77), QPLAN_OK);
          region = region_info(f.session());
          EXPECT_EQ(region.device_runs, c.is_for_good ? 0u : 1u);
          EXPECT_EQ(region.cpu_runs, c.is_for_good ? 2u : 1u);
          EXPECT_EQ(device_info(f.session()).state,
                    c.state == QPLAN_DEVICE_DEGRADED ? uint32_t{QPLAN_DEVICE_PRESENT} : c.state);
        }
      }
    }
  }
}

TEST(NpuFailure, RetryTriesOnceMoreWhereThatMakesSense) {
  for (const Case& c : kCases) {
    for (const bool is_asynchronous : {false, true}) {
      SCOPED_TRACE(std::to_string(c.status) + (is_asynchronous ? ", asynchronous" : ""));
      FailingRegion f(QPLAN_NPU_RETRY);
      f.npu.is_asynchronous = is_asynchronous;
      f.npu.job_statuses = {c.status};
      ASSERT_EQ(f.run(), QPLAN_OK);
      EXPECT_EQ(f.npu.counts.submits, 1 + c.retries);
      EXPECT_EQ(device_info(f.session()).retries, c.retries);
      EXPECT_EQ(device_info(f.session()).fallbacks, 1 - c.retries);
      EXPECT_EQ(region_info(f.session()).device_runs, c.retries);
      EXPECT_EQ(region_info(f.session()).cpu_runs, 1 - c.retries);
      EXPECT_EQ(f.npu.counts.resets, c.resets);
    }
  }
}

TEST(NpuFailure, RetryThatFailsTooFallsBack) {
  FailingRegion f(QPLAN_NPU_RETRY);
  f.npu.job_statuses = {QPLAN_NPU_E_BUS, QPLAN_NPU_E_BUS};
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.submits, 2u);
  EXPECT_EQ(region_info(f.session()).cpu_runs, 1u);
  EXPECT_EQ(region_info(f.session()).failures, 2u);
  EXPECT_EQ(f.told.logged(QPLAN_LOG_WARNING), 2u);
}

TEST(NpuFailure, FailEndsTheInvokeWithTheDriversText) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.status);
    FailingRegion f(QPLAN_NPU_FAIL);
    f.npu.job_statuses = {c.status};
    EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
    EXPECT_EQ(f.session().last_error(),
              "npu: region 'npu_main_0' (step 1) failed on 'fake', driver 'fake-npu': scripted (status " +
                  std::to_string(c.status) + ")");
    EXPECT_EQ(region_info(f.session()).cpu_runs, 0u);
    EXPECT_EQ(f.run(), c.is_for_good ? QPLAN_DEVICE_ERROR : QPLAN_OK);
  }
}

TEST(NpuFailure, WithoutCpuStepsAFailureEndsTheInvokeUnderEveryPolicy) {
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL}) {
    FailingRegion f(policy, region_spec({true, false, 24}));
    f.npu.job_statuses = {QPLAN_NPU_E_BUS, QPLAN_NPU_E_BUS};
    EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
    EXPECT_EQ(f.npu.counts.submits, policy == QPLAN_NPU_RETRY ? 2u : 1u);
  }
}

TEST(NpuFailure, WithoutCpuStepsAndDeviceInitFails) {
  const TestPlan plan(region_spec({true, false, 24}));
  DeviceConfigs none;
  FakeNpu npu;
  npu.load_status = QPLAN_NPU_E_VERSION;
  npu.load_text = "made for quarter";
  DeviceConfigs skewed;
  skewed.add("fake", npu);
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL}) {
    const TestSession absent(plan, npu_config(none, policy));
    EXPECT_EQ(absent.status(), QPLAN_DRIVER_MISSING);
    EXPECT_EQ(absent.text(),
              "npu: region 'npu_main_0' (step 1) does not run on 'fake': no device was given for its target; "
              "it has no CPU steps: open that device, or pack the source model with --fallback cpu");
    EXPECT_EQ(absent.step(), 1);
    const TestSession refused(plan, npu_config(skewed, policy));
    EXPECT_EQ(refused.status(), QPLAN_DRIVER_MISSING);
    EXPECT_EQ(
        refused.text(),
        "npu: region 'npu_main_0' (step 1) does not run on 'fake': made for quarter; it has no CPU steps: "
        "pack the source model for this device, or with --fallback cpu");
    EXPECT_EQ(npu.live_buffers(), 0u) << "a failed init gives everything back";
  }
}

TEST(NpuFailure, WithoutCpuStepsTheTextSaysWhatToDoAboutTheDevice) {
  for (const auto& [job_status, advice] :
       {std::pair{QPLAN_NPU_E_BUS, "recover that device, or pack the source model with --fallback cpu"},
        {QPLAN_NPU_E_LOST, "open that device again, or pack the source model with --fallback cpu"}}) {
    FailingRegion f(QPLAN_NPU_FALLBACK, region_spec({true, false, 24}));
    f.npu.job_statuses = {job_status};
    f.npu.reset_status = QPLAN_NPU_E_BUS;
    EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
    EXPECT_EQ(f.run(), QPLAN_DEVICE_ERROR);
    EXPECT_EQ(f.session().last_error(),
              "npu: region 'npu_main_0' (step 1) does not run on 'fake': scripted; it has no CPU steps: " +
                  std::string(advice));
  }
}

TEST(NpuFailure, RefusedBlobsRunOnTheCpuOrFailInit) {
  for (const auto& [status, expected] : {std::pair{QPLAN_NPU_E_VERSION, QPLAN_DRIVER_MISSING},
                                         {QPLAN_NPU_E_BLOB, QPLAN_DEVICE_ERROR},
                                         {QPLAN_NPU_E_MEMORY, QPLAN_DEVICE_ERROR},
                                         {QPLAN_NPU_E_LOST, QPLAN_DRIVER_MISSING}}) {
    SCOPED_TRACE(status);
    FailingRegion f;
    f.npu.load_status = status;
    f.npu.load_text = "bad blob";
    ASSERT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(region_info(f.session()).status, expected);
    EXPECT_STREQ(region_info(f.session()).text, "bad blob");
    EXPECT_EQ(f.npu.counts.submits, 0u);
    const TestSession failing(f.plan, npu_config(f.devices, QPLAN_NPU_FAIL));
    EXPECT_EQ(failing.status(), expected);
    EXPECT_NE(failing.text().find("bad blob; the policy is to fail"), std::string::npos) << failing.text();
  }
}

TEST(NpuFailure, DevicesThatCannotBeUsedAreAbsent) {
  {
    FailingRegion f;
    f.npu.capabilities_status = QPLAN_NPU_E_LOST;
    EXPECT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_ABSENT});
  }
  {
    FailingRegion f;
    f.npu.can_import = false;
    f.npu.alloc_status = QPLAN_NPU_E_MEMORY;
    EXPECT_EQ(f.run(), QPLAN_OK);
    EXPECT_STREQ(region_info(f.session()).text,
                 "its device has no memory for the plan's bank: no memory left");
  }
  {
    const TestPlan plan(region_spec());
    DeviceConfigs devices;
    devices.add("fake", nullptr, 0);
    devices.configs[0].status = QPLAN_NPU_E_ABSENT;
    const TestSession session(plan, npu_config(devices));
    EXPECT_EQ(run_and_check(session, 1), QPLAN_OK);
    EXPECT_STREQ(region_info(session).text, "its device could not be opened: there is no such device");
  }
  {
    qplan_npu_driver old = *FakeNpu::driver();
    old.abi = 0x00020000;
    FakeNpu npu;
    const TestPlan plan(region_spec());
    DeviceConfigs devices;
    devices.add("fake", &old, npu.device());
    const TestSession session(plan, npu_config(devices));
    EXPECT_EQ(run_and_check(session, 1), QPLAN_OK);
    EXPECT_STREQ(region_info(session).text, "its driver has another version of the ABI");
  }
}

TEST(NpuFailure, DriversThatLackAFunctionAreConfigErrors) {
  FakeNpu npu;
  const TestPlan plan(region_spec());
  const auto open = [&](const qplan_npu_driver& driver) {
    DeviceConfigs devices;
    devices.add("fake", &driver, npu.device());
    const TestSession session(plan, npu_config(devices));
    if (session.status() == QPLAN_OK) {
      EXPECT_EQ(region_info(session).on_device, 1u);
    }
    return std::pair(session.status(), session.text());
  };
  const std::pair<qplan_status, std::string> wrong(
      QPLAN_INVALID_ARGUMENT,
      std::string("session: the driver of device 0, for target 'fake', has no name, or lacks a "
                  "function that qplan/npu_driver.h does not call optional"));
  qplan_npu_driver driver = *FakeNpu::driver();
  driver.name = nullptr;
  EXPECT_EQ(open(driver), wrong);
  driver = *FakeNpu::driver();
  driver.cancel = nullptr;
  EXPECT_EQ(open(driver), wrong);
  driver = *FakeNpu::driver();
  driver.counters = nullptr;
  driver.power = nullptr;
  EXPECT_EQ(open(driver).first, QPLAN_OK) << "both are optional";
  EXPECT_EQ(npu.live_buffers(), 0u);
}

TEST(NpuFailure, WithoutAClientOrSwitchedOffTheReasonsSaySo) {
  FakeNpu npu;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  HostTensor like({24}, std::vector<uint8_t>(24));
  qplan_buffer buffer;
  qplan_session_config config = npu_config(devices);
  config.npu = nullptr;
  const TestSession clientless(plan, config);
  EXPECT_STREQ(region_info(clientless).text, "the session was made without a client (config.npu is NULL)");
  EXPECT_EQ(qplan_buffer_create(clientless.get(), 0, &like.tensor, 0, &buffer), QPLAN_DRIVER_MISSING);
  EXPECT_EQ(
      clientless.last_error(),
      "buffer: the device of 'fake' takes no jobs: the session was made without a client (config.npu is "
      "NULL)");
  const TestSession off(plan, npu_config(devices, QPLAN_NPU_FALLBACK, QPLAN_NPU_OFF));
  EXPECT_EQ(qplan_buffer_create(off.get(), 0, &like.tensor, 0, &buffer), QPLAN_DRIVER_MISSING);
  EXPECT_EQ(off.last_error(),
            "buffer: the device of 'fake' takes no jobs: devices are switched off (QPLAN_NPU_OFF)");
  EXPECT_EQ(qplan_session_recover_device(off.get(), 0), QPLAN_INVALID_STATE);
  EXPECT_EQ(off.last_error(),
            "recover_device: the device of 'fake' takes no jobs: devices are switched off (QPLAN_NPU_OFF)");
}

// In the order of the ABI's ranges; whatever is beyond them is a device that is gone.
static_assert(QPLAN_NPU_CLASS(0) == 0 && QPLAN_NPU_CLASS(1) == 0);
static_assert(QPLAN_NPU_CLASS(-1) == QPLAN_NPU_CLASS_MISTAKE &&
              QPLAN_NPU_CLASS(-9) == QPLAN_NPU_CLASS_MISTAKE);
static_assert(QPLAN_NPU_CLASS(-10) == QPLAN_NPU_CLASS_CPU_NOW &&
              QPLAN_NPU_CLASS(-29) == QPLAN_NPU_CLASS_RESET);
static_assert(QPLAN_NPU_CLASS(-30) == QPLAN_NPU_CLASS_GONE && QPLAN_NPU_CLASS(-40) == QPLAN_NPU_CLASS_GONE &&
              QPLAN_NPU_CLASS(INT32_MIN) == QPLAN_NPU_CLASS_GONE);

TEST(NpuFailure, ProgramsThatWantOtherBindsStayOnTheCpu) {
  const auto text_of = [](const std::vector<uint8_t>& blob, uint32_t alignment = 64, uint32_t max_binds = 64,
                          uint32_t input_usage = QPLAN_NPU_USE_INPUT, uint32_t num_regions = 0) {
    PlanSpec spec = region_spec();
    const uint32_t t = spec.add_constant({static_cast<int64_t>(blob.size())}, blob, "blob", kDLUInt);
    spec.steps[1].npu->blob = t;
    FailingRegion f(QPLAN_NPU_FALLBACK, spec);
    f.npu.alignment = alignment;
    f.npu.max_binds = max_binds;
    f.npu.input_usage = input_usage;
    f.npu.num_regions = num_regions;
    EXPECT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(f.npu.live_programs(), 0u);
    EXPECT_EQ(region_info(f.session()).status, QPLAN_DRIVER_MISSING);
    return std::string(region_info(f.session()).text);
  };
  EXPECT_EQ(text_of(fake_blob(5, {25}, {24})), "slot 0: the program needs 25 bytes, the plan binds 24");
  EXPECT_EQ(text_of(fake_blob(5, {24}, {24}, {8})),
            "slot 2: the program needs it, the plan does not bind it");
  EXPECT_EQ(text_of(fake_blob(5, {24}, {})), "slot 1: the program has 1");
  EXPECT_EQ(text_of(fake_blob(5, {24, 24}, {})),
            "slot 1: the program uses it in another way (1) than the plan binds it");
  EXPECT_EQ(text_of(fake_blob(5, {24}, {24}), 128),
            "slot 1: its address is no multiple of 128, which driver 'fake-npu' wants");
  EXPECT_EQ(text_of(fake_blob(5, {24}, {24}), 64, 1), "2 binds, the device takes 1");
  // Bytes that the CPU needs after a failure must not be written, and bytes that nothing wrote must not be
  // read.
  for (const uint32_t more : {QPLAN_NPU_USE_OUTPUT, QPLAN_NPU_USE_SCRATCH}) {
    EXPECT_EQ(text_of(fake_blob(5, {24}, {24}), 64, 64, QPLAN_NPU_USE_INPUT | more),
              "slot 0: the program writes it, the plan binds an input");
  }
  EXPECT_EQ(text_of(fake_blob(5, {24}, {23})),
            "slot 1: the program writes 23 bytes, the plan reads 24 of them");
  EXPECT_EQ(text_of(fake_blob(5, {24}, {24}), 64, 64, QPLAN_NPU_USE_INPUT, 65537),
            "the program has 65537 regions, expected at most 65536");
}

TEST(NpuFailure, QuarantineAfterFailuresInARowUntilRecovered) {
  FailingRegion f(QPLAN_NPU_FALLBACK, region_spec(), 2);
  f.npu.job_statuses = {QPLAN_NPU_E_BUS, QPLAN_NPU_OK, QPLAN_NPU_E_BUS, QPLAN_NPU_E_BUS};
  const auto state = [&] { return device_info(f.session()).state; };
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(state(), uint32_t{QPLAN_DEVICE_DEGRADED});
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(state(), uint32_t{QPLAN_DEVICE_PRESENT}) << "a success begins a new row";
  ASSERT_EQ(f.run(), QPLAN_OK);
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(state(), uint32_t{QPLAN_DEVICE_QUARANTINED});
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.submits, 4u) << "it gets no jobs";
  EXPECT_EQ(region_info(f.session()).on_device, 0u);
  EXPECT_EQ(region_info(f.session()).status, QPLAN_DEVICE_ERROR);
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_OK);
  EXPECT_EQ(state(), uint32_t{QPLAN_DEVICE_PRESENT});
  EXPECT_EQ(f.npu.counts.loads, 2u);
  EXPECT_EQ(f.npu.live_programs(), 1u);
  ASSERT_EQ(f.run(), QPLAN_OK);
  EXPECT_EQ(f.npu.counts.submits, 5u);
}

TEST(NpuFailure, RecoveryThatFailsSaysWhy) {
  FailingRegion f(QPLAN_NPU_FALLBACK, region_spec(), 1);
  f.npu.job_statuses = {QPLAN_NPU_E_BUS};
  ASSERT_EQ(f.run(), QPLAN_OK);
  f.npu.reset_status = QPLAN_NPU_E_BUS;
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_DEVICE_ERROR);
  EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_QUARANTINED});
  f.npu.reset_status = QPLAN_NPU_OK;
  f.npu.load_status = QPLAN_NPU_E_MEMORY;
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_DEVICE_ERROR);
  ASSERT_EQ(f.run(), QPLAN_OK);
  f.npu.load_status = QPLAN_NPU_OK;
  f.npu.reset_status = QPLAN_NPU_E_LOST;
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_DEVICE_ERROR);
  EXPECT_EQ(device_info(f.session()).state, uint32_t{QPLAN_DEVICE_ABSENT});
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_INVALID_STATE);
  ASSERT_EQ(f.run(), QPLAN_OK);
}

// Three regions one after the other: x -> y, y -> z, z -> w, each with its own slots.
PlanSpec three_regions() {
  PlanSpec spec;
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 4; ++i) tensors.push_back(spec.add_tensor({24}));
  const uint32_t target = spec.add_device("fake"), bank = spec.bank_of(target);
  const std::vector<uint64_t> strides = {1};
  for (uint8_t i = 0; i < 3; ++i) {
    spec.add_region(target, kFakeBlobFormat, fake_blob(3, {24}, {24}), {tensors[i]}, {tensors[i + 1u]}, 1);
    spec.steps.back().npu->binds = {
        {0, format::NpuUse_INPUT, 0, spec.add_range(bank, 24), 24, strides, 0, 1, 0, 0},
        {1, format::NpuUse_OUTPUT, 0, spec.add_range(bank, 24), 24, strides, 0, 1, 0, 0}};
    spec.add_step(kAddByte, {tensors[i]}, {tensors[i + 1u]}, copy_params(3));
  }
  spec.add_main({tensors[0]}, {tensors[3]}, 64);
  return spec;
}

TEST(NpuFailure, RecoveryLoadsAllRegionsAndTellsOfTheFirstThatGotLost) {
  // The first never ran on the device; the second is lost; the third is loaded all the same.
  FailingRegion f(QPLAN_NPU_FALLBACK, three_regions());
  f.npu.load_statuses = {QPLAN_NPU_E_BLOB};
  ASSERT_EQ(run_and_check(f.session(), 5, 9), QPLAN_OK);
  f.npu.load_statuses = {QPLAN_NPU_E_BLOB};
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_OK) << f.session().last_error();
  EXPECT_EQ(region_info(f.session(), 0).on_device, 0u);
  EXPECT_EQ(region_info(f.session(), 1).on_device, 1u);
  EXPECT_EQ(region_info(f.session(), 2).on_device, 1u);
  f.npu.load_statuses = {QPLAN_NPU_E_BLOB, QPLAN_NPU_E_MEMORY};
  EXPECT_EQ(qplan_session_recover_device(f.session().get(), 0), QPLAN_DEVICE_ERROR);
  EXPECT_EQ(f.session().last_error(), "recover_device: step 2 does not load: no memory left");
  EXPECT_EQ(region_info(f.session(), 1).on_device, 0u);
  EXPECT_EQ(region_info(f.session(), 2).on_device, 1u);
  ASSERT_EQ(run_and_check(f.session(), 8, 9), QPLAN_OK);
}

TEST(NpuFailure, TextsOfDriversEndWhateverTheDriverWrote) {
  FailingRegion job, submit, load;
  job.npu.fills_texts = submit.npu.fills_texts = load.npu.fills_texts = true;
  job.npu.job_statuses = {QPLAN_NPU_E_BUS};
  submit.npu.submit_statuses = {QPLAN_NPU_E_BUS};
  load.npu.load_status = QPLAN_NPU_E_BLOB;
  for (FailingRegion* f : {&job, &submit, &load}) {
    ASSERT_EQ(f->run(), QPLAN_OK);
    EXPECT_EQ(region_info(f->session()).text, std::string(sizeof(qplan_npu_reason::text) - 1, '!'));
  }
}

TEST(NpuVerify, EqualBytesAreNoMismatch) {
  FailingRegion f;
  f.flags = QPLAN_NPU_VERIFY;
  ASSERT_EQ(f.run(), QPLAN_OK);
  const qplan_region_info region = region_info(f.session());
  EXPECT_EQ(region.device_runs, 1u);
  EXPECT_EQ(region.cpu_runs, 1u);
  EXPECT_EQ(region.mismatches, 0u);
  EXPECT_EQ(f.told.logged(QPLAN_LOG_WARNING), 0u);
}

TEST(NpuVerify, ADifferenceIsCountedAndTheCpusBytesStand) {
  for (const bool in_place : {false, true}) {
    FailingRegion f(QPLAN_NPU_FALLBACK, region_spec({in_place, true, 24}));
    f.flags = QPLAN_NPU_VERIFY;
    f.npu.flips_outputs = true;
    ASSERT_EQ(f.run(), QPLAN_OK);
    EXPECT_EQ(region_info(f.session()).mismatches, 1u);
    EXPECT_STREQ(region_info(f.session()).text, "the device's bytes differed from the CPU's");
    EXPECT_EQ(
        f.told.last(QPLAN_LOG_WARNING),
        "npu: region 'npu_main_0' (step 1) differs on 'fake' from the CPU result; using the CPU result");
  }
}

TEST(NpuFailure, NothingIsAllocatedByTheRuntime) {
  FakeNpu npu;
  const TestPlan plan(region_spec({false, true, 24}));
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices, QPLAN_NPU_RETRY, QPLAN_NPU_VERIFY));
  ASSERT_EQ(session.status(), QPLAN_OK);
  npu.job_statuses = {QPLAN_NPU_OK, QPLAN_NPU_E_BUS, QPLAN_NPU_E_BUS};
  for (int run = 0; run < 3; ++run) {
    const uint64_t before = allocation_count(), of_driver = npu.allocations;
    ASSERT_EQ(qplan_session_invoke(session.get()), QPLAN_OK);
    EXPECT_EQ(allocation_count() - before, npu.allocations - of_driver);
  }
}

}  // namespace
}  // namespace qplan::testing::npu_failure_test
