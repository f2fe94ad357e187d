#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::normalize_averages_test {
namespace {

std::string average(const std::string& arguments) {
  return run_pass("normalize_averages", "%x: Tensor[(1, 4, 4, 2), int8]",
                  "  qnn.avg_pool2d(%x, " + arguments + ", layout=\"NHWC\")\n");
}

TEST(NormalizeAverages, AWholeImageIsAMean) {
  EXPECT_EQ(average("0.5f, 1, 0.25f, 2, pool_size=[4, 4]"),
            "%0 = qnn.mean(%x, 0.5f, 1, 0.25f, 2, axis=[1, 2], keepdims=True);\n%0\n");
}

TEST(NormalizeAverages, AWindowIsRequantisedAfterwards) {
  EXPECT_EQ(average("0.5f, 1, 0.25f, 2, pool_size=[2, 2]"),
            "%0 = qnn.avg_pool2d(%x, 0.5f, 1, 0.5f, 1, pool_size=[2, 2], layout=\"NHWC\");\n"
            "%1 = qnn.requantize(%0, 0.5f, 1, 0.25f, 2);\n%1\n");
}

TEST(NormalizeAverages, PoolsOfOtherContractsChangeTheScaleThemselves) {
  EXPECT_EQ(average("0.5f, 1, 0.25f, 2, pool_size=[2, 2], contract=\"f32e\""), "unchanged");
  EXPECT_EQ(average("0.5f, 1, 0.25f, 2, pool_size=[4, 4], contract=\"f32e\""),
            "%0 = qnn.mean(%x, 0.5f, 1, 0.25f, 2, axis=[1, 2], keepdims=True, contract=\"f32e\");\n%0\n");
}

TEST(NormalizeAverages, TheSameScaleStaysAPool) {
  EXPECT_EQ(average("0.5f, 1, 0.5f, 1, pool_size=[4, 4]"), "unchanged");
}

TEST(NormalizeAverages, AMeanThatKeepsTheScaleIsAPoolExceptUnderTflitesContract) {
  const auto mean = [](const std::string& attributes) {
    return run_pass("normalize_averages", "%x: Tensor[(1, 4, 4, 2), int8]",
                    "  qnn.mean(%x, 0.5f, 1, 0.5f, 1, " + attributes + ")\n");
  };
  EXPECT_EQ(mean("axis=[1, 2]"), "unchanged");
  EXPECT_EQ(mean("axis=[2, 3], contract=\"f32e\""), "unchanged");
  EXPECT_EQ(
      mean("axis=[1, 2], contract=\"f32e\""),
      "%0 = qnn.avg_pool2d(%x, 0.5f, 1, 0.5f, 1, pool_size=[4, 4], layout=\"NHWC\", contract=\"f32e\");\n"
      "%1 = reshape(%0, newshape=[1, 2]);\n%1\n");
}

}  // namespace
}  // namespace qplan::passes_test::normalize_averages_test
