// A region on a device: where its bytes go, what the session reports, how it is submitted and awaited.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_session_test {
namespace {

TEST(NpuSession, RegionRunsOnItsDeviceAndTheCpuStepsDoNot) {
  for (const bool is_asynchronous : {false, true}) {
    SCOPED_TRACE(is_asynchronous);
    FakeNpu npu;
    npu.is_asynchronous = is_asynchronous;
    const TestPlan plan(region_spec());
    DeviceConfigs devices;
    devices.add("fake", npu);
    Told told;
    const TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, 0, &told.platform));
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    ASSERT_EQ(run_and_check(session, 3), QPLAN_OK);
    EXPECT_EQ(npu.counts.submits, 1u);
    EXPECT_EQ(told.events, (std::vector<std::string>{
                               "begin add_byte add_byte_avx2 pre", "end add_byte add_byte_avx2 pre 0",
                               "begin npu fake-npu npu_main_0", "end npu fake-npu npu_main_0 0",
                               "begin add_byte add_byte_avx2 post", "end add_byte add_byte_avx2 post 0"}));
    const qplan_region_info region = region_info(session);
    EXPECT_EQ(region.step, 1u);
    EXPECT_STREQ(region.name, "npu_main_0");
    EXPECT_STREQ(region.target, "fake");
    EXPECT_EQ(region.on_device, 1u);
    EXPECT_EQ(region.status, QPLAN_OK);
    EXPECT_EQ(region.has_alternative, 1u);
    EXPECT_EQ(region.macs, 50u);
    EXPECT_EQ(region.device_runs, 1u);
    EXPECT_EQ(region.cpu_runs, 0u);
    EXPECT_EQ(region.copies, 0u);
    EXPECT_EQ(region.last_cycles, 100u);
    EXPECT_STREQ(region.text, "");
    const qplan_device_info device = device_info(session);
    EXPECT_EQ(device.state, uint32_t{QPLAN_DEVICE_PRESENT});
    EXPECT_STREQ(device.driver, "fake-npu");
    EXPECT_EQ(device.jobs, 1u);
    EXPECT_EQ(device.failed_jobs, 0u);
    EXPECT_EQ(device.num_regions, 1u);
    EXPECT_EQ(device.program_bytes, 1000u);
    EXPECT_EQ(device.cycles, 100u);
    EXPECT_EQ(told.logged(QPLAN_LOG_WARNING), 0u);
    EXPECT_EQ(told.log[0].second,
              "npu: region 'npu_main_0' (step 1) runs on 'fake', driver 'fake-npu', 1000 bytes of program");
  }
}

// The bytes of the last load_in_place.
const void* loaded_in_place = nullptr;

qplan_npu_status load_in_place(qplan_npu_device device, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program* program, qplan_npu_reason* why) {
  loaded_in_place = blob;
  return FakeNpu::driver()->load(device, format, blob, bytes, program, why);
}

TEST(NpuSession, DriverThatLoadsInPlaceGetsThePlansOwnBytes) {
  FakeNpu npu;
  const TestPlan plan(region_spec());
  qplan_npu_driver driver = *FakeNpu::driver();
  driver.load_in_place = load_in_place;
  for (const bool is_known : {true, false}) {
    SCOPED_TRACE(is_known);
    // A driver made for ABI 1.0 ends before the function.
    if (!is_known) driver.struct_size = offsetof(qplan_npu_driver, load_in_place);
    loaded_in_place = nullptr;
    DeviceConfigs devices;
    devices.add("fake", &driver, npu.device());
    const TestSession session(plan, npu_config(devices));
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    ASSERT_EQ(run_and_check(session, 3), QPLAN_OK);
    EXPECT_EQ(region_info(session).device_runs, 1u);
    const auto* at = static_cast<const uint8_t*>(loaded_in_place);
    const uint8_t* begin = plan.bytes().data();
    EXPECT_EQ(at >= begin && at < begin + plan.bytes().size(), is_known);
  }
}

TEST(NpuSession, DeinitGivesEverythingBack) {
  FakeNpu npu;
  for (const bool can_import : {true, false}) {
    npu.can_import = can_import;
    const TestPlan plan(region_spec());
    DeviceConfigs devices;
    devices.add("fake", npu);
    {
      const TestSession session(plan, npu_config(devices));
      ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
      EXPECT_EQ(npu.live_buffers(), 1u);
      EXPECT_EQ(npu.live_programs(), 1u);
    }
    EXPECT_EQ(npu.live_buffers(), 0u);
    EXPECT_EQ(npu.live_programs(), 0u);
  }
}

TEST(NpuSession, WithoutADeviceTheCpuStepsRun) {
  const TestPlan plan(region_spec());
  DeviceConfigs none, other;
  FakeNpu npu;
  other.add("another", npu);
  qplan_session_config without_client = config_of();
  for (const qplan_session_config& config : {npu_config(none), npu_config(other), without_client}) {
    const TestSession session(plan, config);
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    ASSERT_EQ(run_and_check(session, 9), QPLAN_OK);
    const qplan_region_info region = region_info(session);
    EXPECT_EQ(region.on_device, 0u);
    EXPECT_EQ(region.status, QPLAN_DRIVER_MISSING);
    EXPECT_EQ(region.cpu_runs, 1u);
    EXPECT_STREQ(region.text, "no device was given for its target");
    EXPECT_EQ(device_info(session).state, uint32_t{QPLAN_DEVICE_ABSENT});
    EXPECT_STREQ(device_info(session).driver, "");
  }
}

TEST(NpuSession, SwitchedOffItRunsOnTheCpuUnderEveryPolicy) {
  FakeNpu npu;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_RETRY, QPLAN_NPU_FAIL}) {
    const TestSession session(plan, npu_config(devices, policy, QPLAN_NPU_OFF));
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    ASSERT_EQ(run_and_check(session, 1), QPLAN_OK);
    EXPECT_EQ(npu.counts.loads, 0u);
    EXPECT_STREQ(region_info(session).text, "devices are switched off (QPLAN_NPU_OFF)");
  }
}

TEST(NpuSession, PlansWithoutRegionsHaveNone) {
  const TestPlan plan(sequence_spec());
  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK);
  EXPECT_EQ(qplan_session_num_regions(session.get()), 0u);
  EXPECT_EQ(qplan_session_num_devices(session.get()), 0u);
  qplan_region_info info = {};
  info.struct_size = sizeof(info);
  EXPECT_EQ(qplan_session_region_info(session.get(), 0, &info), QPLAN_NOT_FOUND);
  EXPECT_EQ(qplan_session_recover_device(session.get(), 0), QPLAN_NOT_FOUND);
}

TEST(NpuSession, MemoryNeedsCountRegionsAndDevicesWhetherOrNotTheyAreThere) {
  const TestPlan plan(region_spec());
  FakeNpu npu;
  DeviceConfigs none, devices;
  devices.add("fake", npu);
  const auto needs = needs_of(plan.get(), npu_config(none));
  ASSERT_EQ(needs.size(), 2u);
  // Session, 5 records of 24, the arguments of 4 kernels of 48 each, 6 addresses of 8, one device, one
  // region; 5 tensors of 24 at multiples of 64; a worker.
  if (sizeof(void*) == 8) {
    EXPECT_EQ(needs[0].size, 576u + 128 + 192 + 64 + (192 + 448 + 384) + 320 + 64);
  }
  EXPECT_EQ(needs[1].bank, 2u);
  EXPECT_EQ(needs[1].alignment, 64u);
  EXPECT_EQ(needs[1].size, 64u + 24);
  const auto same = needs_of(plan.get(), npu_config(devices));
  EXPECT_EQ(same[0].size, needs[0].size);
  EXPECT_EQ(same[1].size, needs[1].size);
}

TEST(NpuSession, SubmitReturnsWhileTheJobRunsAndPollGoesOn) {
  FakeNpu npu;
  npu.is_asynchronous = true;
  npu.pending_waits = 2;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  write_bytes(session, counting(24, 40));
  EXPECT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  EXPECT_EQ(npu.counts.waits, 0u) << "submit does not wait";
  DLTensor view;
  EXPECT_EQ(qplan_session_view(session.get(), QPLAN_OUTPUT, 0, &view), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_session_submit(session.get()), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_session_recover_device(session.get(), 0), QPLAN_INVALID_STATE);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_OK);
  EXPECT_EQ(qplan_session_poll(session.get()), QPLAN_OK);
  EXPECT_EQ(npu.wait_timeouts, (std::vector<uint64_t>{0, 0, 0}));
  EXPECT_EQ(read_bytes(session, 24), counting(24, 47));
}

TEST(NpuSession, WaitTakesNoLongerThanItMay) {
  FakeNpu npu;
  npu.is_asynchronous = true;
  npu.pending_waits = 1;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  write_bytes(session, counting(24, 40));
  EXPECT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_wait(session.get(), 250), QPLAN_PENDING);
  EXPECT_EQ(qplan_session_wait(session.get(), 300), QPLAN_OK);
  EXPECT_EQ(npu.wait_timeouts, (std::vector<uint64_t>{250000, 300000}));
  EXPECT_EQ(read_bytes(session, 24), counting(24, 47));
}

TEST(NpuSession, DeinitStopsTheJobInFlight) {
  FakeNpu npu;
  npu.is_asynchronous = true;
  npu.hangs = 1;
  const TestPlan plan(region_spec());
  DeviceConfigs devices;
  devices.add("fake", npu);
  {
    const TestSession session(plan, npu_config(devices));
    ASSERT_EQ(qplan_session_submit(session.get()), QPLAN_PENDING);
  }
  EXPECT_EQ(npu.counts.cancels, 1u);
  EXPECT_EQ(npu.counts.live_jobs, 0u);
  EXPECT_EQ(npu.live_buffers(), 0u);
}

}  // namespace
}  // namespace qplan::testing::npu_session_test
