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

TEST(CommonSubexpressions, LeavesWhatDiffers) {
  EXPECT_EQ(merge("  %0 = clip(%x, a_min=0f, a_max=9f);\n"
                  "  %1 = clip(%y, a_min=0f, a_max=9f);\n"
                  "  %2 = clip(%x, a_min=0f, a_max=8f);\n"
                  "  (%0, %1, %2)\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::common_subexpressions_test
