// The residual diamond, end to end: two arms that meet in an addition are one region where the device has
// both, two where the CPU computes one of them.
#include <gtest/gtest.h>

#include "tests/npu_path/two_regions.h"

namespace qplan::npu_path::diamond_test {
namespace {

// middle: the arm beside the second layer, from %first to %arm.
std::string diamond_text(const std::string& middle) {
  return "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 6, 6, 16), int8]) {\n" +
         layer_text("first", "x", 1) + middle + layer_text("second", "first", 2) +
         "  %sum = qnn.add(%second, %arm, 0.3f, -2, 0.25f, 3, 0.4f, 1, name=\"sum\");\n  %sum\n}\n";
}

// On the simulator, on the CPU's steps of the same plan, and on those of a plan for the CPU alone.
void check(const std::string& text, uint32_t num_regions) {
  const PackResult packed = pack_text(text, {});
  ASSERT_EQ(packed.status, QPLAN_OK) << packed.text;
  const PackResult cpu = pack_text(text, {.target = "cpu,isa=reference"});
  ASSERT_EQ(cpu.status, QPLAN_OK) << cpu.text;
  NpuSession alone(cpu.plan, {.device = false});
  const std::vector<Bytes> inputs = sample_inputs(alone, 21);
  const std::vector<Bytes> expected = alone.run(inputs);
  ASSERT_EQ(expected.size(), 1u) << alone.text();

  NpuSession device(packed.plan, {.simulator = "explore=8", .policy = QPLAN_NPU_FAIL});
  ASSERT_EQ(device.status(), QPLAN_OK) << device.text();
  EXPECT_EQ(device.num_regions(), num_regions) << packed.summary;
  EXPECT_EQ(device.run(inputs), expected) << device.text();
  EXPECT_EQ(device.device().jobs, num_regions);
  NpuSession alternative(packed.plan, {.flags = QPLAN_NPU_OFF});
  EXPECT_EQ(alternative.run(inputs), expected) << alternative.text();
}

TEST(Diamond, WithBothArmsOnTheDeviceIsOneRegion) { check(diamond_text(layer_text("arm", "first", 3)), 1); }

TEST(Diamond, WithOneArmOnTheCpuIsTwoRegions) {
  check(diamond_text("  %arm = qnn.softmax(%first, 0.3f, -2, 0.00390625f, -128, name=\"arm\");\n"), 2);
}

}  // namespace
}  // namespace qplan::npu_path::diamond_test
