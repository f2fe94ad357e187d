#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::eliminate_layout_test {
namespace {

std::string eliminate(const std::string& shape, const std::string& body) {
  return run_pass("eliminate_layout", "%x: Tensor[" + shape + ", int8]", body);
}

TEST(EliminateLayout, DropsIdentities) {
  EXPECT_EQ(eliminate("(2, 3)", "  reshape(%x, newshape=[2, 3])\n"), "%x\n");
  EXPECT_EQ(eliminate("(2, 3)", "  transpose(%x, axes=[0, 1])\n"), "%x\n");
  EXPECT_EQ(eliminate("(2, 3)", "  concatenate((%x), axis=0)\n"), "%x\n");
  EXPECT_EQ(eliminate("(2, 3)", "  split(%x, indices_or_sections=1, axis=0)\n"), "%x\n");
}

TEST(EliminateLayout, MergesReshapes) {
  EXPECT_EQ(eliminate("(2, 6)", "  %0 = reshape(%x, newshape=[12]);\n  reshape(%0, newshape=[3, 4])\n"),
            "%0 = reshape(%x, newshape=[3, 4]);\n%0\n");
  EXPECT_EQ(eliminate("(2, 6)", "  %0 = reshape(%x, newshape=[12]);\n  reshape(%0, newshape=[2, 6])\n"),
            "%x\n");
}

TEST(EliminateLayout, WritesTheNewShapeOut) {
  EXPECT_EQ(eliminate("(2, 6)", "  reshape(%x, newshape=[3, -1])\n"),
            "%0 = reshape(%x, newshape=[3, 4]);\n%0\n");
}

TEST(EliminateLayout, MergesTransposes) {
  // [a, b, c] -> [c, a, b] -> [b, c, a]
  EXPECT_EQ(
      eliminate("(2, 3, 4)", "  %0 = transpose(%x, axes=[2, 0, 1]);\n  transpose(%0, axes=[2, 0, 1])\n"),
      "%0 = transpose(%x, axes=[1, 2, 0]);\n%0\n");
  EXPECT_EQ(eliminate("(1, 3, 4, 5)",
                      "  %0 = transpose(%x, axes=[0, 2, 3, 1]);\n  transpose(%0, axes=[0, 3, 1, 2])\n"),
            "%x\n");
}

TEST(EliminateLayout, ATransposeOfUnitExtentsIsAReshape) {
  EXPECT_EQ(eliminate("(1, 1, 1, 5)", "  transpose(%x, axes=[0, 3, 1, 2])\n"),
            "%0 = reshape(%x, newshape=[1, 5, 1, 1]);\n%0\n");
  EXPECT_EQ(eliminate("(1, 5, 1, 1)",
                      "  %0 = reshape(%x, newshape=[1, 1, 1, 5]);\n  transpose(%0, axes=[0, 3, 1, 2])\n"),
            "%x\n");
}

TEST(EliminateLayout, LeavesWhatMoves) {
  EXPECT_EQ(eliminate("(2, 3)", "  transpose(%x, axes=[1, 0])\n"), "unchanged");
  EXPECT_EQ(eliminate("(2, 3)", "  reshape(%x, newshape=[6])\n"), "unchanged");
  EXPECT_EQ(eliminate("(2, 3)", "  %0 = transpose(%x, axes=[1, 0]);\n  reshape(%0, newshape=[6])\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::eliminate_layout_test
