// qplan_session_self_check on plans made by hand: the step it names, and what it leaves as it was.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "format/plan_view.h"
#include "src/base/error.h"
#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::self_check_test {
namespace {

constexpr uint32_t kSeed = 2463534242;
// The input that the seed makes: top bytes of Marsaglia's xorshift, by his formula in Python.
const std::vector<uint8_t>& seeded_input() {
  static const std::vector<uint8_t> kBytes = {43,  148, 123, 119, 210, 22, 80,  41,  44,  158, 68, 187,
                                              172, 228, 116, 148, 85,  99, 220, 211, 252, 196, 69, 6};
  return kBytes;
}

// CRC-32 bit by bit.
uint32_t crc_of(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
  }
  return ~crc;
}

std::vector<uint8_t> plus(uint8_t addend) {
  std::vector<uint8_t> bytes = seeded_input();
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(byte + addend);
  return bytes;
}

// Steps that add 1, 2 and 3, with the checksums of what they make of the seed's input.
PlanSpec checked_sequence() {
  PlanSpec spec = sequence_spec();
  spec.functions[0].self_checks = {{kSeed, {crc_of(plus(1)), crc_of(plus(3)), crc_of(plus(6))}}};
  spec.functions[0].constant_checksums = {0, 0, 0};
  return spec;
}

qplan_error last_error(const TestSession& session) {
  qplan_error error = empty_error();
  qplan_session_last_error(session.get(), &error);
  return error;
}

// The bytes of a constant in the plan's file, to be damaged.
uint8_t* constant_bytes(const TestPlan& plan, uint32_t tensor) {
  format::PlanView view;
  Error error;
  EXPECT_EQ(view.open(plan.bytes().data(), plan.bytes().size(), false, &error), QPLAN_OK);
  return const_cast<uint8_t*>(static_cast<const uint8_t*>(view.constant_data(tensor)));
}

TEST(SelfCheck, PassesWhereEachStepWritesWhatItWroteThen) {
  const TestPlan plan(checked_sequence());
  const TestSession session(plan, config_of());
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  EXPECT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
}

TEST(SelfCheck, NamesTheFirstStepThatDiffers) {
  for (uint32_t wrong = 0; wrong < 3; ++wrong) {
    PlanSpec spec = checked_sequence();
    spec.functions[0].self_checks.push_back({kSeed, spec.functions[0].self_checks[0].outputs});
    for (uint32_t i = wrong; i < 3; ++i) ++spec.functions[0].self_checks[1].outputs[i];
    const TestPlan plan(spec);
    const TestSession session(plan, config_of());
    EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
    const qplan_error error = last_error(session);
    EXPECT_EQ(error.step, static_cast<int32_t>(wrong));
    EXPECT_NE(std::string(error.text).find("outputs of self-check 1 have checksum"), std::string::npos);
    EXPECT_NE(std::string(error.text).find(spec.steps[wrong].name), std::string::npos) << error.text;
    EXPECT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
  }
}

// y = x + c, with c a constant: checksum of c, and of the sum.
TEST(SelfCheck, NamesTheStepWhoseConstantLostABit) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), a = spec.add_tensor({24}, "a"),
                 y = spec.add_tensor({24}, "y");
  const std::vector<uint8_t> c(24, 7);
  const uint32_t constant = spec.add_constant({24}, c, "c");
  spec.add_step(kAddByte, {x}, {a}, copy_params(1), "first");
  spec.add_step(kSum, {a, constant}, {y}, concat_params(0), "sum");
  spec.add_main({x}, {y}, 64);
  spec.functions[0].self_checks = {{kSeed, {crc_of(plus(1)), crc_of(plus(8))}}};
  spec.functions[0].constant_checksums = {0, crc_of(c)};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  uint8_t* const at = constant_bytes(plan, constant);
  at[11] ^= 0x10;
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
  EXPECT_EQ(last_error(session).step, 1);
  EXPECT_NE(session.last_error().find("step 1 'sum': its constants have checksum"), std::string::npos)
      << session.last_error();
  at[11] ^= 0x10;
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK);
}

// next = x + state, from an initial value in the plan, which two steps read.
TEST(SelfCheck, NamesTheFirstStepWhoseInitialStateLostABit) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), a = spec.add_tensor({24}, "a"),
                 state = spec.add_tensor({24}, "state"), next = spec.add_tensor({24}, "next"),
                 y = spec.add_tensor({24}, "y");
  const std::vector<uint8_t> first(24, 7);
  const uint32_t initial = spec.add_constant({24}, first, "initial");
  spec.add_step(kAddByte, {x}, {a}, copy_params(1), "first");
  spec.add_step(kSum, {a, state}, {next}, concat_params(0), "sum");
  spec.add_step(kSum, {x, state}, {y}, concat_params(0), "other");
  spec.add_main({x}, {y}, 64);
  StateSpec kept = {state, next, initial, 0};
  spec.functions[0].states = {kept};
  spec.functions[0].self_checks = {{kSeed, {crc_of(plus(1)), crc_of(plus(8)), crc_of(plus(7))}}};
  spec.functions[0].constant_checksums = {0, crc_of(first), crc_of(first)};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  uint8_t* const at = constant_bytes(plan, initial);
  at[23] ^= 0x80;
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
  EXPECT_EQ(last_error(session).step, 1);
  EXPECT_NE(session.last_error().find("step 1 'sum': its constants and initial states have checksum"),
            std::string::npos)
      << session.last_error();
  at[23] ^= 0x80;
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK);
  spec.functions[0].self_checks[0].outputs[2] ^= 1;
  const TestPlan wrong(spec);
  const TestSession other(wrong, config_of());
  EXPECT_EQ(qplan_session_self_check(other.get()), QPLAN_SELF_CHECK_FAILED);
  EXPECT_NE(other.last_error().find("; its constants and initial states are intact: "), std::string::npos)
      << other.last_error();
}

TEST(SelfCheck, NeedsAPlanThatHasSome) {
  const TestPlan plan(sequence_spec());
  const TestSession session(plan, config_of());
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_NOT_FOUND);
  EXPECT_EQ(session.last_error(), "self-check: the plan has none; pack it with --self-check 1");
  EXPECT_EQ(qplan_session_self_check(nullptr), QPLAN_INVALID_ARGUMENT);
}

TEST(SelfCheck, WritesIntoNoBuffersOfTheCallersButBoundOutputs) {
  const TestPlan plan(checked_sequence());
  const TestSession session(plan, config_of());
  alignas(64) uint8_t bytes[24] = {}, output[24] = {};
  DLTensor bound = view_of(session, QPLAN_INPUT), bound_output = view_of(session, QPLAN_OUTPUT);
  bound.data = bytes;
  bound_output.data = output;
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, &bound), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 0, &bound_output), QPLAN_OK);
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_INVALID_STATE);
  EXPECT_NE(session.last_error().find("input 0 is bound"), std::string::npos);
  EXPECT_EQ(bytes[0], 0);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_INPUT, 0, nullptr), QPLAN_OK);
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  EXPECT_EQ(output[23], plus(6)[23]);
}

// The application's hooks see nothing of it, but get the log with their own pointer.
TEST(SelfCheck, LeavesTheHooksOfTheApplicationAlone) {
  PlanSpec spec = checked_sequence();
  const TestPlan good(spec);
  ++spec.functions[0].self_checks[0].outputs[1];
  const TestPlan bad(spec);
  for (const bool passes : {true, false}) {
    Told told(true);
    const TestSession session(passes ? good : bad, config_of(&told.platform));
    EXPECT_EQ(qplan_session_self_check(session.get()) == QPLAN_OK, passes);
    EXPECT_TRUE(told.events.empty());
    EXPECT_EQ(told.logged(QPLAN_LOG_ERROR), passes ? 0u : 1u);
    ASSERT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
    EXPECT_EQ(told.events.size(), 6u);
  }
}

TEST(SelfCheck, IsRefusedInsideARun) {
  static qplan_session* running;
  static qplan_status status;
  qplan_platform platform = {};
  platform.struct_size = sizeof(platform);
  platform.step_end = [](void*, const qplan_event*, qplan_status) {
    status = qplan_session_self_check(running);
  };
  const TestPlan plan(checked_sequence());
  const TestSession session(plan, config_of(&platform));
  running = session.get();
  EXPECT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
  EXPECT_EQ(status, QPLAN_INVALID_STATE);
}

// A large constant that is damaged: the request comes while its checksum is computed, and the damage is not
// found.
TEST(SelfCheck, IsCancelledWhileItComparesConstants) {
  constexpr int64_t kBytes = int64_t{32} << 20;
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), y = spec.add_tensor({24}, "y"),
                 unused = spec.add_tensor({kBytes}, "unused");
  const uint32_t constant = spec.add_constant({kBytes}, std::vector<uint8_t>(kBytes), "c");
  spec.add_step(kAddByte, {constant}, {unused}, copy_params(1), "large");
  spec.add_step(kAddByte, {x}, {y}, copy_params(1), "last");
  spec.add_main({x}, {y}, 64);
  spec.functions[0].self_checks = {{kSeed, {0, 0}}};
  spec.functions[0].constant_checksums = {0, 0};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  std::atomic<bool> is_there = false, is_over = false;
  std::thread canceller([&] {
    for (; !is_over; is_there = true) {
      EXPECT_EQ(qplan_session_cancel(session.get()), QPLAN_OK);
      std::this_thread::yield();
    }
  });
  while (!is_there) std::this_thread::yield();
  // The other thread may not run in time on a busy machine; then the damage is found.
  qplan_status status = QPLAN_SELF_CHECK_FAILED;
  for (int k = 0; k < 1000 && status == QPLAN_SELF_CHECK_FAILED; ++k)
    status = qplan_session_self_check(session.get());
  is_over = true;
  canceller.join();
  EXPECT_EQ(status, QPLAN_CANCELLED);
  EXPECT_EQ(session.last_error(), "self-check: cancelled at step 0 'large', whose constants were compared");
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED) << "the next one begins anew";
}

// The region is the last step: a run whose job has ended when the request comes ends well.
TEST(SelfCheck, IsCancelledBetweenTwoRuns) {
  PlanSpec spec = region_spec({.in_place = false});
  spec.steps.pop_back();
  spec.functions[0].num_steps = 4;
  spec.functions[0].outputs = spec.steps[1].outputs;
  const std::vector<uint32_t> outputs = {crc_of(plus(1)), crc_of(plus(6)), crc_of(plus(3)), crc_of(plus(6))};
  spec.functions[0].self_checks = {{kSeed, outputs}, {kSeed, outputs}};
  spec.functions[0].constant_checksums = {0, crc_of(fake_blob(5, {24}, {24})), 0, 0};
  const TestPlan plan(spec);
  static qplan_session* running;
  static bool cancels;
  qplan_npu_driver driver = *FakeNpu::driver();
  driver.wait = [](qplan_npu_device device, qplan_npu_job job, uint64_t timeout_ns,
                   qplan_npu_report* report) {
    const qplan_npu_status status = FakeNpu::driver()->wait(device, job, timeout_ns, report);
    if (cancels) {
      EXPECT_EQ(qplan_session_cancel(running), QPLAN_OK);
    }
    return status;
  };
  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", &driver, npu.device());
  Told told;
  const TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, 0, &told.platform));
  running = session.get();
  cancels = true;
  told.log.clear();
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_CANCELLED) << session.last_error();
  EXPECT_EQ(npu.counts.submits, 1u);
  ASSERT_EQ(told.log.size(), 1u);
  EXPECT_EQ(told.last(QPLAN_LOG_INFO), "self-check: cancelled after run 1 of 2");
  cancels = false;
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  EXPECT_EQ(npu.counts.submits, 3u);
}

// state' = state + x, from 1, 2, 3, ...: each self-check begins with the first state, and ends there.
TEST(SelfCheck, BeginsAndEndsWithTheFirstStates) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), state = spec.add_tensor({24}, "state"),
                 next = spec.add_tensor({24}, "next"), y = spec.add_tensor({24}, "y");
  spec.add_step(kSum, {x, state}, {next}, concat_params(0), "sum");
  spec.add_step(kAddByte, {next}, {y}, copy_params(1), "last");
  spec.add_main({x}, {y}, 64);
  StateSpec kept = {state, next, UINT32_MAX, 5};
  spec.functions[0].states = {kept};
  const std::vector<uint32_t> outputs = {crc_of(plus(5)), crc_of(plus(6))};
  spec.functions[0].self_checks = {{kSeed, outputs}, {kSeed, outputs}};
  spec.functions[0].constant_checksums = {0, 0};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  EXPECT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
  EXPECT_EQ(run_and_check(session, 3, 6), QPLAN_OK);
}

// Steps pre, region, two of its fallback, post.
PlanSpec checked_region(uint32_t region) {
  PlanSpec spec = region_spec();
  spec.functions[0].self_checks = {
      {kSeed, {crc_of(plus(1)), region, crc_of(plus(3)), crc_of(plus(6)), crc_of(plus(7))}}};
  spec.functions[0].constant_checksums = {0, crc_of(fake_blob(5, {24}, {24})), 0, 0, 0};
  return spec;
}

TEST(SelfCheck, ComparesARegionOnItsDeviceAndItsFallbackOnTheCpu) {
  for (const uint32_t wrong : {0u, 1u}) {
    const TestPlan plan(checked_region(crc_of(plus(6)) + wrong));
    FakeNpu npu;
    DeviceConfigs devices;
    devices.add("fake", npu);
    const TestSession on_device(plan, npu_config(devices));
    EXPECT_EQ(qplan_session_self_check(on_device.get()), wrong != 0 ? QPLAN_SELF_CHECK_FAILED : QPLAN_OK)
        << on_device.last_error();
    if (wrong != 0) {
      EXPECT_EQ(last_error(on_device).step, 1);
      EXPECT_NE(on_device.last_error().find("'npu_main_0'"), std::string::npos);
    }
    // The region's own entry is not looked at where the fallback runs.
    const TestSession on_cpu(plan, npu_config(DeviceConfigs{}));
    EXPECT_EQ(qplan_session_self_check(on_cpu.get()), QPLAN_OK) << on_cpu.last_error();
  }
}

// What a step computed wrong may be why a device then fails.
TEST(SelfCheck, NamesAWrongStepBeforeTheDeviceThatFails) {
  PlanSpec spec = checked_region(crc_of(plus(6)));
  ++spec.functions[0].self_checks[0].outputs[0];
  const TestPlan plan(spec);
  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestSession session(plan, npu_config(devices, QPLAN_NPU_FAIL));
  npu.job_statuses = {QPLAN_NPU_E_BUS};
  EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
  EXPECT_EQ(last_error(session).step, 0);
  EXPECT_EQ(region_info(session).failures, 1u);
}

// The CPU computes the region where the session lets it, and its steps are compared.
TEST(SelfCheck, PassesWhereTheCpuComputesWhatADeviceFailed) {
  for (const uint32_t policy : {QPLAN_NPU_FALLBACK, QPLAN_NPU_FAIL}) {
    const TestPlan plan(checked_region(crc_of(plus(6))));
    FakeNpu npu;
    DeviceConfigs devices;
    devices.add("fake", npu);
    const TestSession session(plan, npu_config(devices, policy));
    npu.job_statuses = {QPLAN_NPU_E_BUS};
    const bool falls_back = policy == QPLAN_NPU_FALLBACK;
    EXPECT_EQ(qplan_session_self_check(session.get()), falls_back ? QPLAN_OK : QPLAN_DEVICE_ERROR)
        << session.last_error();
    EXPECT_EQ(region_info(session).failures, 1u);
    EXPECT_EQ(region_info(session).cpu_runs, falls_back ? 1u : 0u);
    EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_OK) << session.last_error();
    npu.flips_outputs = true;
    EXPECT_EQ(qplan_session_self_check(session.get()), QPLAN_SELF_CHECK_FAILED);
  }
}

}  // namespace
}  // namespace qplan::testing::self_check_test
