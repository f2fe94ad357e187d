#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::dead_code_test {
namespace {

TEST(DeadCode, DropsWhatNoOutputNeedsAndKeepsParameters) {
  const ir::Module module = parse_main("%x: Tensor[(4), int8], %unused: Tensor[(4), int8]",
                                       "  %0 = clip(%x, a_min=0f, a_max=1f);\n"
                                       "  %1 = clip(%unused, a_min=0f, a_max=2f);\n"
                                       "  %2 = clip(%1, a_min=0f, a_max=3f);\n"
                                       "  %0\n");
  passes::PassContext context;
  const auto result = passes::find_pass("dead_code")->run(module, module.main(), context);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(print_body(*result), "%0 = clip(%x, a_min=0f, a_max=1f);\n%0\n");
  EXPECT_EQ(result->params().size(), 2u);
  EXPECT_EQ(context.num_fired, 2u);
}

TEST(DeadCode, KeepsANodeOfWhichOneResultIsUsed) {
  EXPECT_EQ(
      run_pass("dead_code", "%x: Tensor[(4), int8]",
               "  %0 = split(%x, indices_or_sections=2);\n  %1 = clip(%0.0, a_min=0f, a_max=3f);\n  %0.1\n"),
      "%0 = split(%x, indices_or_sections=2);\n%0.1\n");
}

TEST(DeadCode, LeavesLiveCode) {
  EXPECT_EQ(run_pass("dead_code", "%x: Tensor[(4), int8]", "  clip(%x, a_min=0f, a_max=1f)\n"), "unchanged");
  EXPECT_EQ(run_pass("dead_code", "%x: Tensor[(4), int8]", "  %x\n"), "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::dead_code_test
