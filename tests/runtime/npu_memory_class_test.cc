// Memories of one class each: which buffers the driver is asked for, and what follows if it has none.
#include <gtest/gtest.h>

#include "tests/runtime/npu_fixture.h"

namespace qplan::testing::npu_memory_class_test {
namespace {

constexpr uint64_t kScratch = 40;
constexpr uint32_t kSram = 1u << QPLAN_NPU_MEMORY_CLASS_SRAM, kDram = 1u << QPLAN_NPU_MEMORY_CLASS_DRAM;

// The region of region_spec with scratch in fast memory.
PlanSpec fast_spec() {
  PlanSpec spec = region_spec();
  StepSpec& step = spec.steps[1];
  NpuSpec& npu = *step.npu;
  const std::vector<uint8_t> blob = fake_blob(5, {24}, {24}, {kScratch});
  npu.blob = spec.add_constant({static_cast<int64_t>(blob.size())}, blob, "blob_with_scratch", kDLUInt);
  const uint32_t bank = spec.add_device_bank(npu.target, format::MemoryClass_SRAM);
  BindSpec& scratch = npu.binds.emplace_back();
  scratch.slot = 2;
  scratch.use = format::NpuUse_SCRATCH;
  scratch.offset = spec.add_range(bank, kScratch);
  scratch.size = kScratch;
  scratch.memory_class = format::MemoryClass_SRAM;
  return spec;
}

class NpuMemoryClass : public ::testing::Test {
 protected:
  // Runs once on the device; the plan has y = x + 7.
  void run(const PlanSpec& spec) {
    devices_.add("fake", npu_);
    plan_ = std::make_unique<TestPlan>(spec);
    session_ =
        std::make_unique<TestSession>(*plan_, npu_config(devices_, QPLAN_NPU_FAIL, 0, &told_.platform));
    ASSERT_EQ(session_->status(), QPLAN_OK) << session_->text();
    ASSERT_EQ(run_and_check(*session_, 3), QPLAN_OK);
    ASSERT_EQ(device_info(*session_).jobs, 1u);
  }

  // The class of the slot's buffer in the last job.
  uint32_t class_of_slot(uint32_t slot) {
    for (const qplan_npu_bind& bind : npu_.last_binds) {
      if (bind.slot == slot) return npu_.memory_class_of(bind);
    }
    return UINT32_MAX;
  }

  FakeNpu npu_;
  DeviceConfigs devices_;
  Told told_;
  std::unique_ptr<TestPlan> plan_;
  std::unique_ptr<TestSession> session_;
};

TEST_F(NpuMemoryClass, ScratchThatIsAskedInFastMemoryIsThere) {
  npu_.memory_classes = kSram | kDram;
  npu_.can_import = false;
  run(fast_spec());
  EXPECT_EQ(class_of_slot(0), uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY});
  EXPECT_EQ(class_of_slot(2), uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM});
  EXPECT_EQ(device_info(*session_).misplaced_bytes, 0u);
  EXPECT_EQ(told_.logged(QPLAN_LOG_WARNING), 0u);
}

TEST_F(NpuMemoryClass, TheCallersMemoryIsImportedWithItsClass) {
  npu_.memory_classes = kSram | kDram;
  run(fast_spec());
  EXPECT_EQ(npu_.counts.imports, 2u);
  EXPECT_EQ(class_of_slot(2), uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM});
}

TEST_F(NpuMemoryClass, MemoryOfAnotherClassIsShadowedByTheDrivers) {
  npu_.memory_classes = kSram | kDram;
  npu_.imported_class = QPLAN_NPU_MEMORY_CLASS_DRAM;
  run(fast_spec());
  EXPECT_EQ(npu_.counts.imports, 2u);
  EXPECT_EQ(npu_.counts.allocs, 1u);
  EXPECT_EQ(class_of_slot(2), uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM});
  EXPECT_EQ(told_.logged(QPLAN_LOG_WARNING), 0u);
}

TEST_F(NpuMemoryClass, WithoutSuchMemoryTheJobRunsElsewhereAndTheLogSaysSo) {
  npu_.memory_classes = kDram;
  run(fast_spec());
  EXPECT_EQ(class_of_slot(2), uint32_t{QPLAN_NPU_MEMORY_CLASS_ANY});
  EXPECT_EQ(device_info(*session_).misplaced_bytes, kScratch);
  EXPECT_EQ(told_.last(QPLAN_LOG_WARNING),
            "npu: the plan asks for 40 bytes of 'sram' memory for 'fake', driver 'fake-npu' gives none: not "
            "supported (status -3); other memory is used, which may be slower (see qplan_plan_memory_class)");
}

TEST_F(NpuMemoryClass, FastMemoryThatIsFullIsNoFailureEither) {
  npu_.memory_classes = kSram;
  npu_.can_import = false;
  npu_.sram_bytes = kScratch - 1;
  run(fast_spec());
  EXPECT_EQ(device_info(*session_).misplaced_bytes, kScratch);
  EXPECT_EQ(told_.logged(QPLAN_LOG_WARNING), 1u);
}

TEST_F(NpuMemoryClass, DriversOfEarlierVersionsAreAskedAsBefore) {
  run(fast_spec());  // memory_classes 0
  EXPECT_EQ(told_.logged(QPLAN_LOG_WARNING), 0u);
  EXPECT_EQ(device_info(*session_).misplaced_bytes, 0u);
}

TEST_F(NpuMemoryClass, ThePlanStatesTheClassOfEachBank) {
  run(fast_spec());
  const qplan_plan* plan = plan_->get();
  for (uint32_t bank = 0; bank < 5; ++bank)
    EXPECT_EQ(qplan_plan_memory_class(plan, bank), bank == 3 ? uint32_t{QPLAN_NPU_MEMORY_CLASS_SRAM} : 0u);
  EXPECT_EQ(qplan_plan_memory_class(nullptr, 0), 0u);
}

}  // namespace
}  // namespace qplan::testing::npu_memory_class_test
