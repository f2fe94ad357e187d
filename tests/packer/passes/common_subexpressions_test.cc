#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::common_subexpressions_test {
namespace {

std::string merge(const std::string& body) {
  return run_pass("common_subexpressions", "%x: Tensor[(2, 2), int8], %y: Tensor[(2, 2), int8]", body);
}

TEST(CommonSubexpressions, MergesEqualNodesAndWhatFollowsThem) {
  EXPECT_EQ(merge("  %0 = clip(%x, a_min=0f, a_max=9f);\n"
                  "  %1 = clip(%x, a_min=0f, a_max=9f);\n"
                  "  %2 = transpose(%0, axes=[1, 0]);\n"
                  "  %3 = transpose(%1, axes=[1, 0]);\n"
                  "  (%2, %3)\n"),
            "%0 = clip(%x, a_min=0f, a_max=9f);\n%1 = transpose(%0, axes=[1, 0]);\n(%1, %1)\n");
}

TEST(CommonSubexpressions, AWrittenDefaultChangesNothing) {
  EXPECT_EQ(merge("  %0 = qnn.dequantize(%x, 0.5f, 1);\n"
                  "  %1 = qnn.dequantize(%x, 0.5f, 1, axis=-1);\n"
                  "  (%0, %1)\n"),
            "%0 = qnn.dequantize(%x, 0.5f, 1);\n(%0, %0)\n");
}

TEST(CommonSubexpressions, MergesNodesOfSeveralResults) {
  EXPECT_EQ(merge("  %0 = split(%x, indices_or_sections=2);\n"
                  "  %1 = split(%x, indices_or_sections=2);\n"
                  "  (%0.0, %1.1)\n"),
            "%0 = split(%x, indices_or_sections=2);\n(%0.0, %0.1)\n");
}

// No kernel adds a bias to the sums of another step.
TEST(CommonSubexpressions, ProductsServeSeveralReadersOnlyWithTheirBiases) {
  const auto layer = [](int sums, const std::string& bias) {
    const std::string n = std::to_string(sums);
    return "  %" + n + " = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 2]), 0, 0, 0.5f, 0.5f);\n  %" +
           std::to_string(sums + 1) + " = nn.bias_add(%" + n + ", const(Tensor[(1), int32], [" + bias +
           "]));\n";
  };
  EXPECT_EQ(merge(layer(0, "3") + layer(2, "4") + "  (%1, %3)\n"), "unchanged");
  const auto sums = [](int n) {
    return "  %" + std::to_string(n) +
           " = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 2]), 0, 0, 0.5f, 0.5f);\n";
  };
  EXPECT_EQ(merge(layer(0, "3") + sums(2) + "  (%1, %2)\n"), "unchanged");
  EXPECT_EQ(merge(sums(0) + layer(1, "3") + "  (%0, %2)\n"), "unchanged");
  EXPECT_EQ(merge(layer(0, "3") + layer(2, "3") + "  (%1, %3)\n"),
            "%0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 2]), 0, 0, 0.5f, 0.5f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(1), int32], [3]));\n(%1, %1)\n");
}

TEST(CommonSubexpressions, EachBiasGetsAProductOfItsOwn) {
  const std::string product = "qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 2]), 0, 0, 0.5f, 0.5f);\n";
  const auto add = [](int to, int sums, const std::string& bias) {
    return "%" + std::to_string(to) + " = nn.bias_add(%" + std::to_string(sums) +
           ", const(Tensor[(1), int32], [" + bias + "]));\n";
  };
  const std::string two_layers =
      "%0 = " + product + add(1, 0, "3") + "%2 = " + product + add(3, 2, "4") + "(%1, %3)\n";
  EXPECT_EQ(merge("%0 = " + product + add(1, 0, "3") + add(2, 0, "4") + "(%1, %2)\n"), two_layers);
  EXPECT_EQ(merge(two_layers), "unchanged");
  EXPECT_EQ(merge("%0 = " + product + add(1, 0, "3") + "(%1, %0)\n"),
            "%0 = " + product + "%1 = " + product + add(2, 1, "3") + "(%2, %0)\n");
}

TEST(CommonSubexpressions, LeavesWhatDiffers) {
  EXPECT_EQ(merge("  %0 = clip(%x, a_min=0f, a_max=9f);\n"
                  "  %1 = clip(%y, a_min=0f, a_max=9f);\n"
                  "  %2 = clip(%x, a_min=0f, a_max=8f);\n"
                  "  (%0, %1, %2)\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::common_subexpressions_test
