// Tensors that stay in a device's bank between two regions, in the arrangement of both.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_kept_test {
namespace {

// x [4, 6] -> region 0 (+5) -> m -> region 1 (+7) -> y, all in rows of 16 and flipped at the border; each
// region has a fallback step. z = m + 1 on the CPU, if anything else reads m.
PlanSpec kept_spec(bool is_read_elsewhere) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({4, 6}, "x"), m = spec.add_tensor({4, 6}, "m"),
                 y = spec.add_tensor({4, 6}, "y");
  const uint32_t target = spec.add_device("fake"), bank = spec.bank_of(target);
  const uint64_t kept = spec.add_range(bank, 96);
  const auto add = [&](uint32_t from, uint32_t to, uint8_t addend) {
    spec.add_region(target, kFakeBlobFormat, fake_blob(addend, {96}, {96}), {from}, {to}, 1,
                    "npu_main_" + std::to_string(addend));
    const std::vector<uint64_t> strides = {16, 1};
    const uint64_t in = from == m ? kept : spec.add_range(bank, 96);
    const uint64_t out = to == m ? kept : spec.add_range(bank, 96);
    spec.steps.back().npu->binds = {{0, format::NpuUse_INPUT, 0, in, 96, strides, 17, 1, 0x22, 0x80},
                                    {1, format::NpuUse_OUTPUT, 0, out, 96, strides, 17, 1, 0, 0x80}};
    spec.add_step(kAddByte, {from}, {to}, copy_params(addend), "alternative");
  };
  add(x, m, 5);
  spec.steps[0].npu->binds[1].kept = is_read_elsewhere ? 1 : 2;
  add(m, y, 7);
  spec.steps[2].npu->binds[0].kept = 2;  // steps
  std::vector<uint32_t> outputs = {y};
  if (is_read_elsewhere) {
    outputs.push_back(spec.add_tensor({4, 6}, "z"));
    spec.add_step(kAddByte, {m}, {outputs[1]}, copy_params(1), "elsewhere");
  }
  spec.add_main({x}, outputs, 64);
  return spec;
}

struct Copies {
  uint64_t first, second;
  bool operator==(const Copies& other) const { return first == other.first && second == other.second; }
};
void PrintTo(const Copies& copies, std::ostream* out) { *out << copies.first << ", " << copies.second; }

// The copies of one run, which gives y = x + 12.
struct KeptRun {
  explicit KeptRun(bool with_z = false) : plan(kept_spec(with_z)), has_z(with_z) {}

  Copies run(uint32_t flags = 0, const qplan_platform* platform = nullptr) {
    DeviceConfigs devices;
    devices.add("fake", npu);
    const TestSession session(plan, npu_config(devices, QPLAN_NPU_FALLBACK, flags, platform));
    EXPECT_EQ(run_and_check(session, 250, 12), QPLAN_OK) << session.text();
    const Copies copies = {region_info(session, 0).copies, region_info(session, 1).copies};
    cpu_runs = region_info(session, 0).cpu_runs * 10 + region_info(session, 1).cpu_runs;
    // Nothing of a run is left to the next one.
    EXPECT_EQ(run_and_check(session, 3, 12), QPLAN_OK) << session.text();
    if (has_z) {
      EXPECT_EQ(read_bytes(session, 24, 1), counting(24, 3 + 6));
    }
    return copies;
  }

  FakeNpu npu;
  TestPlan plan;
  bool has_z;
  uint64_t cpu_runs = 0;  // of the first region, times ten, and of the second
};

TEST(NpuKept, NothingIsCopiedBetweenTheRegions) {
  for (const bool is_coherent : {true, false}) {
    KeptRun kept;
    kept.npu.is_coherent = is_coherent;
    EXPECT_EQ(kept.run(), (Copies{1, 1}));
    EXPECT_EQ(kept.cpu_runs, 0u);
  }
}

TEST(NpuKept, WhatTheCpuReadsTooIsCopiedOnce) {
  KeptRun kept(true);
  EXPECT_EQ(kept.run(), (Copies{2, 1}));
}

TEST(NpuKept, AMemoryOfTheDevicesOwnKeepsNothing) {
  KeptRun kept;
  kept.npu.import_status = QPLAN_NPU_E_UNSUPPORTED;
  EXPECT_EQ(kept.run(), (Copies{2, 2}));
}

TEST(NpuKept, TheCpuGetsItsInputsWhereTheReaderFails) {
  KeptRun kept;
  kept.npu.job_statuses = {QPLAN_NPU_OK, QPLAN_NPU_E_BUS};
  EXPECT_EQ(kept.run(), (Copies{1, 1}));
  EXPECT_EQ(kept.cpu_runs, 1u);
}

TEST(NpuKept, TheReaderCopiesWhereTheCpuWasTheMaker) {
  KeptRun kept;
  kept.npu.job_statuses = {QPLAN_NPU_E_BUS};
  EXPECT_EQ(kept.run(), (Copies{1, 2}));
  EXPECT_EQ(kept.cpu_runs, 10u);
}

TEST(NpuKept, VerificationComparesIt) {
  KeptRun kept;
  EXPECT_EQ(kept.run(QPLAN_NPU_VERIFY), (Copies{2, 2}));
  EXPECT_EQ(kept.cpu_runs, 11u);
}

TEST(NpuKept, HooksAtTheEndOfStepsSeeIt) {
  KeptRun kept;
  const Told told;
  EXPECT_EQ(kept.run(0, &told.platform), (Copies{2, 1}));
}

// An output of the function, as it is, that the next region reads from the bank, too.
TEST(NpuKept, ABoundBufferOfTheDeviceIsReadInPlaceOfTheBank) {
  PlanSpec spec;
  const uint32_t x = spec.add_tensor({24}, "x"), m = spec.add_tensor({24}, "m"),
                 y = spec.add_tensor({24}, "y");
  const uint32_t target = spec.add_device("fake"), bank = spec.bank_of(target);
  const uint64_t kept = spec.add_range(bank, 24);
  const std::vector<uint64_t> strides = {1};
  const auto add = [&](uint32_t from, uint32_t to, uint64_t in, uint64_t out, uint8_t addend) {
    spec.add_region(target, kFakeBlobFormat, fake_blob(addend, {24}, {24}), {from}, {to}, 1,
                    "npu_main_" + std::to_string(addend));
    spec.steps.back().npu->binds = {{0, format::NpuUse_INPUT, 0, in, 24, strides, 0, 1, 0, 0},
                                    {1, format::NpuUse_OUTPUT, 0, out, 24, strides, 0, 1, 0, 0}};
    spec.add_step(kAddByte, {from}, {to}, copy_params(addend), "alternative");
  };
  add(x, m, spec.add_range(bank, 24), kept, 5);
  spec.steps[0].npu->binds[1].kept = 1;
  add(m, y, kept, spec.add_range(bank, 24), 7);
  spec.steps[2].npu->binds[0].kept = 2;  // steps
  spec.add_main({x}, {y, m}, 64);

  FakeNpu npu;
  DeviceConfigs devices;
  devices.add("fake", npu);
  const TestPlan plan(spec);
  const TestSession session(plan, npu_config(devices));
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run_and_check(session, 100, 12), QPLAN_OK);
  HostTensor like({24}, std::vector<uint8_t>(24));
  qplan_buffer buffer;
  ASSERT_EQ(qplan_buffer_create(session.get(), 0, &like.tensor, 0, &buffer), QPLAN_OK);
  DLTensor view = {};
  ASSERT_EQ(qplan_buffer_begin_access(&buffer, QPLAN_BUFFER_READ, &view), QPLAN_OK);
  ASSERT_EQ(qplan_buffer_end_access(&buffer), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 1, &view), QPLAN_OK);
  EXPECT_EQ(run_and_check(session, 3, 12), QPLAN_OK);
  ASSERT_EQ(qplan_buffer_begin_access(&buffer, QPLAN_BUFFER_READ, &view), QPLAN_OK);
  const auto* bytes = static_cast<const uint8_t*>(view.data);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 24), counting(24, 3 + 5));
  ASSERT_EQ(qplan_buffer_end_access(&buffer), QPLAN_OK);
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 1, nullptr), QPLAN_OK);
  EXPECT_EQ(run_and_check(session, 50, 12), QPLAN_OK);
  EXPECT_EQ(qplan_buffer_destroy(&buffer), QPLAN_OK);
}

TEST(NpuKept, OpenRefusesWhatNobodyHasLeftThere) {
  struct Wrong {
    void (*change)(PlanSpec&);
    const char* text;
  };
  constexpr char kNobody[] =
      "plan: step 2 'npu_main_7': slot 0: the region 2 steps earlier does not keep its tensor there";
  const Wrong kWrong[] = {
      {[](PlanSpec& s) { s.steps[0].npu->binds[1].kept = 0; }, kNobody},
      {[](PlanSpec& s) { s.steps[0].npu->binds[1].origin = 18; }, kNobody},
      {[](PlanSpec& s) { s.steps[2].npu->binds[0].flip = 0; }, kNobody},
      {[](PlanSpec& s) {
         s.steps[2].npu->binds[0].strides = std::vector<uint64_t>{15, 1};
       },
       kNobody},
      {[](PlanSpec& s) { s.steps[2].npu->binds[0].kept = 1; },
       "plan: step 2 'npu_main_7': slot 0: the region 1 steps earlier does not keep its tensor there"},
      {[](PlanSpec& s) { s.steps[2].npu->binds[0].kept = 3; },
       "plan: step 2 'npu_main_7': slot 0: the region 3 steps earlier does not keep its tensor there"},
      {[](PlanSpec& s) { s.steps[0].npu->binds[1].kept = 3; },
       "plan: step 0 'npu_main_5': slot 1 keeps its tensor in the way 3, expected 0 to 2, and 0 of a tensor "
       "in place"},
  };
  for (const Wrong& wrong : kWrong) {
    PlanSpec spec = kept_spec(false);
    wrong.change(spec);
    const AlignedBytes bytes = build_plan(spec);
    qplan_plan plan;
    qplan_error error = empty_error();
    EXPECT_EQ(qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, &error), QPLAN_PLAN_CORRUPT);
    EXPECT_STREQ(error.text, wrong.text);
  }
}

}  // namespace
}  // namespace qplan::testing::npu_kept_test
