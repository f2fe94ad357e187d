// Options of packing, end to end: verifying, plans without the CPU's steps, strict placement.
#include <gtest/gtest.h>

#include "tests/npu_path/two_regions.h"

namespace qplan::npu_path::policy_test {
namespace {

std::vector<Bytes> on_cpu(const std::string& text, const std::vector<Bytes>& inputs) {
  const PackResult packed = pack_text(text, {.target = "cpu"});
  EXPECT_EQ(packed.status, QPLAN_OK) << packed.text;
  NpuSession session(packed.plan, {.device = false});
  return session.run(inputs);
}

TEST(NpuPath, VerifyingRunsBothAndFindsNothing) {
  const PackResult packed = pack_text(two_regions_text(), {});
  ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
  NpuSession session(packed.plan, {.policy = QPLAN_NPU_FAIL, .flags = QPLAN_NPU_VERIFY});
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  const std::vector<Bytes> inputs = sample_inputs(session, 11);
  EXPECT_EQ(session.run(inputs), on_cpu(two_regions_text(), inputs)) << session.text();
  for (uint32_t r = 0; r < 2; ++r) {
    EXPECT_EQ(session.region(r).device_runs, 1u);
    EXPECT_EQ(session.region(r).cpu_runs, 1u);
    EXPECT_EQ(session.region(r).mismatches, 0u);
  }
}

TEST(NpuPath, OffMeansTheCpu) {
  const PackResult packed = pack_text(two_regions_text(), {});
  ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
  NpuSession session(packed.plan, {.flags = QPLAN_NPU_OFF});
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  const std::vector<Bytes> inputs = sample_inputs(session, 12);
  EXPECT_EQ(session.run(inputs), on_cpu(two_regions_text(), inputs)) << session.text();
  EXPECT_EQ(session.device().jobs, 0u);
}

TEST(NpuPath, WithoutDevicesInTheConfigTheCpuRunsEverything) {
  const PackResult packed = pack_text(two_regions_text(), {});
  ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
  NpuSession session(packed.plan, {.device = false});
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  const std::vector<Bytes> inputs = sample_inputs(session, 13);
  EXPECT_EQ(session.run(inputs), on_cpu(two_regions_text(), inputs)) << session.text();
  EXPECT_EQ(session.region(0).on_device, 0u);
  EXPECT_STRNE(session.region(0).text, "");
}

TEST(NpuPath, APlanWithoutAlternativesIsSmallerAndNeedsItsDevice) {
  const PackResult with = pack_text(two_regions_text(), {}),
                   without = pack_text(two_regions_text(), {.fallback = false});
  ASSERT_EQ(without.status, QPLAN_OK) << without.text;
  // Two layers' weights at least.
  EXPECT_LE(without.plan.size() + 2 * 16 * 9 * 16, with.plan.size());
  {
    NpuSession session(without.plan, {});
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    const std::vector<Bytes> inputs = sample_inputs(session, 14);
    EXPECT_EQ(session.run(inputs), on_cpu(two_regions_text(), inputs)) << session.text();
    EXPECT_EQ(session.region(0).has_alternative, 0u);
  }
  for (const RunSettings& settings :
       {RunSettings{.device = false}, RunSettings{.simulator = "faults=at=open:0 kind=absent"},
        RunSettings{.flags = QPLAN_NPU_OFF}}) {
    NpuSession session(without.plan, settings);
    EXPECT_LT(session.status(), 0);
    EXPECT_FALSE(session.text().empty());
  }
  // A job that fails has nothing to fall back on, whatever the policy.
  NpuSession session(without.plan, {.simulator = "faults=at=0:0 kind=bus_error"});
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_TRUE(session.run(sample_inputs(session, 14)).empty());
  EXPECT_EQ(session.status(), QPLAN_DEVICE_ERROR) << session.text();
}

TEST(NpuPath, StrictPlacementListsWhatIsOffTheDevice) {
  const PackResult packed = pack_text(two_regions_text(), {.strict = true});
  EXPECT_EQ(packed.status, QPLAN_MODEL_UNSUPPORTED);
  EXPECT_NE(packed.text.find("'middle'"), std::string::npos) << packed.text;
  EXPECT_NE(packed.text.find("[vta.op.softmax]"), std::string::npos) << packed.text;
  const std::string one = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 6, 6, 16), int8]) {\n" +
                          layer_text("first", "x", 1) + "  %first\n}\n";
  EXPECT_EQ(pack_text(one, {.strict = true}).status, QPLAN_OK);
}

// Accumulators that leave the device: the CPU finishes under the contract that the model names.
TEST(NpuPath, ContractsThatTheDeviceLacksAreFinishedOnTheCpu) {
  for (const char* contract : {"f32e", "tfl1"}) {
    std::string text = two_regions_text();
    for (size_t at = 0; (at = text.find(", -2, name=", at)) != std::string::npos; at += 8) {
      text.replace(at, 11, std::string(", -2, contract=\"") + contract + "\", name=");
    }
    const PackResult packed = pack_text(text, {});
    ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
    NpuSession session(packed.plan, {.policy = QPLAN_NPU_FAIL});
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    const std::vector<Bytes> inputs = sample_inputs(session, 15);
    EXPECT_EQ(session.run(inputs), on_cpu(text, inputs)) << session.text();
    EXPECT_EQ(session.device().jobs, 2u);
  }
}

}  // namespace
}  // namespace qplan::npu_path::policy_test
