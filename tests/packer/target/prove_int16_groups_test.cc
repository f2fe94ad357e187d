// How many groups of weights have products that meet in 16 bits, and which plans say so.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/target/cpu/prove.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::prove_int16_groups_test {
namespace {

constexpr size_t kGroupBytes = 64;

// What is proved of one block that has these weights at place `place` of its groups, and 0 elsewhere.
uint8_t proved(const std::vector<int8_t>& weights, uint64_t tap_groups, size_t place = 0) {
  std::vector<uint8_t> packed(weights.size() * kGroupBytes, 0);
  for (size_t g = 0; g < weights.size(); ++g)
    packed[g * kGroupBytes + place] = static_cast<uint8_t>(weights[g]);
  return target::cpu::prove_int16_groups(packed, tap_groups);
}

TEST(ProveInt16Groups, FourWeightsOfTogether255Fit) {
  EXPECT_EQ(proved({-64, -64, 64, 63}, 4), 4);
  EXPECT_EQ(proved({-128, 127, 0, 0}, 4), 4);
  EXPECT_EQ(proved({64, 64, 64, 64}, 4), 4);  // -32768
}

TEST(ProveInt16Groups, FourOf256DoNotFitWhereASumIs32768) {
  EXPECT_EQ(proved({-64, -64, -64, -64}, 4), 2);
  EXPECT_EQ(proved({-64, -64, -64, -64}, 4, kGroupBytes - 1), 2);  // at every place
  EXPECT_EQ(proved({-65, 64, -64, 64}, 4), 2);
}

TEST(ProveInt16Groups, TwoFitUnlessBothAreTheLeast) {
  EXPECT_EQ(proved({-128, -127, -1, 0}, 4), 2);
  EXPECT_EQ(proved({-128, -128}, 2), 0);
  EXPECT_EQ(proved({127, 127, 127, 127}, 4), 2);
}

TEST(ProveInt16Groups, GroupsAreTakenTogetherFromTheFirstOfEachTapOn) {
  EXPECT_EQ(proved({0, -128, -128, 0}, 4), 2);
  EXPECT_EQ(proved({0, 0, 0, -128, -128, 0, 0, 0}, 8), 4);
  EXPECT_EQ(proved({0, 0, -128, -128, 0, 0}, 3), 4);  // two taps of three
  EXPECT_EQ(proved({0, 0, -128, -128, 0, 0}, 6), 0);
  EXPECT_EQ(proved({-128, -128, -128}, 1), 4);
}

std::string dense_text(const std::string& weights) {
  return main_text("%x: Tensor[(1, 8), int8]", "  %0 = qnn.dense(%x, const(Tensor[(1, 8), int8], [" +
                                                   weights +
                                                   "]), 0, 0, 1f, 1f);\n"
                                                   "  %1 = qnn.requantize(%0, 1f, 0, 900f, 9);\n  %1\n");
}

struct Said {
  uint32_t version_minor = 0;
  std::string int16_groups;
};
Said said(const std::string& text, const std::string& target) {
  const AlignedBytes plan = evaluate::make_plan(lower_text(text, target), target::parse_target(target), {});
  const inspect::PlanReader reader(plan.span());
  Said result = {reader.view().header().version_minor, ""};
  for (const auto& [name, value] : inspect::step_params(reader.view().step(0))) {
    if (name == "int16_groups") result.int16_groups = value;
  }
  return result;
}

TEST(ProveInt16Groups, PlansForNeonSaySoAndOthersKeepTheirBytes) {
  const std::string fits = dense_text("-128, 1, 2, 3, -127, 4, 5, 6");
  const std::string does_not = dense_text("-128, 1, 2, 3, -128, 4, 5, 6");
  const Said neon = said(fits, "cpu,arch=aarch64,isa=neon");
  EXPECT_EQ(neon.int16_groups, "4");  // two groups are all that there are
  EXPECT_EQ(neon.version_minor, 12u);
  for (const Said& other : {said(does_not, "cpu,arch=aarch64,isa=neon"),
                            said(fits, "cpu,arch=aarch64,isa=dotprod"), said(fits, "cpu,arch=x86_64")}) {
    EXPECT_EQ(other.int16_groups, "0");
    EXPECT_EQ(other.version_minor, 5u);
  }
}

}  // namespace
}  // namespace qplan::testing::prove_int16_groups_test
