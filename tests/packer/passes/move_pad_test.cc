#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::move_pad_test {
namespace {

std::string move(const std::string& pad_value) {
  return run_pass("move_pad", "%x: Tensor[(1, 2), uint8]",
                  "  %0 = nn.pad(%x, " + pad_value +
                      ", pad_width=[[0, 0], [1, 2]]);\n"
                      "  qnn.requantize(%0, 0.5f, 7, 0.25f, 9, out_dtype=\"uint8\", contract=\"f32e\")\n");
}

TEST(MovePad, ZeroPointsAreAddedAfterTheRequantisation) {
  const std::string moved =
      "%0 = qnn.requantize(%x, 0.5f, 7, 0.25f, 9, out_dtype=\"uint8\", contract=\"f32e\");\n"
      "%1 = nn.pad(%0, 9, pad_width=[[0, 0], [1, 2]]);\n%1\n";
  EXPECT_EQ(move("7"), moved);
  EXPECT_EQ(move("7f"), moved);
  EXPECT_EQ(move("7u8"), moved);
}

TEST(MovePad, OtherValuesStay) { EXPECT_EQ(move("8"), "unchanged"); }

TEST(MovePad, APadThatSomethingElseReadsStays) {
  EXPECT_EQ(run_pass("move_pad", "%x: Tensor[(1, 2), uint8]",
                     "  %0 = nn.pad(%x, 7, pad_width=[[0, 0], [1, 2]]);\n"
                     "  %1 = qnn.requantize(%0, 0.5f, 7, 0.25f, 9, out_dtype=\"uint8\");\n"
                     "  concatenate((%0, %1))\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::move_pad_test
