#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::canonical_order_test {
namespace {

TEST(CanonicalOrder, FollowsTheOperandsFromTheOutputs) {
  const std::string sorted =
      "%0 = clip(%x, a_min=0f, a_max=1f);\n"
      "%1 = clip(%x, a_min=0f, a_max=2f);\n"
      "%2 = concatenate((%0, %1));\n"
      "%2\n";
  EXPECT_EQ(run_pass("canonical_order", "%x: Tensor[(2), int8]",
                     "  %0 = clip(%x, a_min=0f, a_max=2f);\n"
                     "  %1 = clip(%x, a_min=0f, a_max=1f);\n"
                     "  concatenate((%1, %0))\n"),
            sorted);
  EXPECT_EQ(run_pass("canonical_order", "%x: Tensor[(2), int8]",
                     "  %0 = clip(%x, a_min=0f, a_max=1f);\n"
                     "  %1 = clip(%x, a_min=0f, a_max=2f);\n"
                     "  concatenate((%0, %1))\n"),
            "unchanged");
}

TEST(CanonicalOrder, DoesNotRecurse) {
  std::string body;
  constexpr int kNodes = 20000;
  for (int i = 0; i < kNodes; ++i) {
    body += "  %" + std::to_string(i) + " = clip(%" + (i == 0 ? "x" : std::to_string(i - 1)) +
            ", a_min=0f, a_max=9f);\n";
  }
  body += "  %" + std::to_string(kNodes - 1) + "\n";
  EXPECT_EQ(run_pass("canonical_order", "%x: Tensor[(2), int8]", body), "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::canonical_order_test
