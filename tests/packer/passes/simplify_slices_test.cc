#include <string>

#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::simplify_slices_test {
namespace {

constexpr char kParams[] = "%a: Tensor[(2, 3), int8], %b: Tensor[(4, 3), int8], %c: Tensor[(1, 3), int8]";

std::string simplified(const std::string& body) { return run_pass("simplify_slices", kParams, body); }

TEST(SimplifySlices, ASliceOfASliceIsOne) {
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[1], end=[4], axes=[0]);\n"
                       "  strided_slice(%0, begin=[1], end=[2], axes=[0])\n"),
            "%0 = strided_slice(%b, begin=[2], end=[3], axes=[0]);\n%0\n");
}

TEST(SimplifySlices, SlicesOfTwoAxesStay) {
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[1], end=[4], axes=[0]);\n"
                       "  strided_slice(%0, begin=[1], end=[2], axes=[1])\n"),
            "unchanged");
}

TEST(SimplifySlices, SlicesWithStepsStay) {
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[0], end=[4], strides=[2], axes=[0]);\n"
                       "  strided_slice(%0, begin=[1], end=[2], axes=[0])\n"),
            "unchanged");
}

TEST(SimplifySlices, ASliceOfJoinedPartsIsOneOfThePart) {
  EXPECT_EQ(simplified("  %0 = concatenate((%a, %b), axis=0);\n"
                       "  strided_slice(%0, begin=[3], end=[5], axes=[0])\n"),
            "%0 = strided_slice(%b, begin=[1], end=[3], axes=[0]);\n%0\n");
  EXPECT_EQ(simplified("  %0 = concatenate((%a, %b), axis=0);\n"
                       "  strided_slice(%0, begin=[2], end=[6], axes=[0])\n"),
            "%b\n");
}

TEST(SimplifySlices, ASliceOfWholePartsJoinsThem) {
  EXPECT_EQ(simplified("  %0 = concatenate((%a, %c, %b), axis=0);\n"
                       "  strided_slice(%0, begin=[0], end=[3], axes=[0])\n"),
            "%0 = concatenate((%a, %c));\n%0\n");
}

TEST(SimplifySlices, ASliceThatEndsWithinAPartStays) {
  EXPECT_EQ(simplified("  %0 = concatenate((%a, %b), axis=0);\n"
                       "  strided_slice(%0, begin=[0], end=[3], axes=[0])\n"),
            "unchanged");
}

TEST(SimplifySlices, JoinedNeighboursAreOneSlice) {
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[0], end=[1], axes=[0]);\n"
                       "  %1 = strided_slice(%b, begin=[1], end=[3], axes=[0]);\n"
                       "  %2 = strided_slice(%b, begin=[3], end=[4], axes=[0]);\n"
                       "  (concatenate((%0, %1, %2), axis=0), concatenate((%0, %1, %a), axis=0))\n"),
            "%0 = strided_slice(%b, begin=[0], end=[3], axes=[0]);\n"
            "%1 = concatenate((%0, %a));\n(%b, %1)\n");
}

TEST(SimplifySlices, PartsThatAreNoNeighboursStay) {
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[0], end=[1], axes=[0]);\n"
                       "  %1 = strided_slice(%b, begin=[2], end=[3], axes=[0]);\n"
                       "  concatenate((%0, %1), axis=0)\n"),
            "unchanged");
  EXPECT_EQ(simplified("  %0 = strided_slice(%b, begin=[0], end=[1], axes=[0]);\n"
                       "  %1 = strided_slice(%b, begin=[1], end=[2], axes=[0]);\n"
                       "  concatenate((%0, %1), axis=1)\n"),
            "unchanged");
}

// A list of four rows that a loop writes one after another, in a single run of the pass.
TEST(SimplifySlices, AListThatIsWrittenRowByRowIsJoinedOnce) {
  const std::string body =
      "  %0 = strided_slice(%b, begin=[1], end=[4], axes=[0]);\n"
      "  %1 = concatenate((%c, %0), axis=0);\n"
      "  %2 = negative(%c);\n"
      "  %3 = strided_slice(%1, begin=[0], end=[1], axes=[0]);\n"
      "  %4 = strided_slice(%1, begin=[2], end=[4], axes=[0]);\n"
      "  %5 = concatenate((%3, %2, %4), axis=0);\n"
      "  %6 = abs(%2);\n"
      "  %7 = strided_slice(%5, begin=[0], end=[2], axes=[0]);\n"
      "  %8 = strided_slice(%5, begin=[3], end=[4], axes=[0]);\n"
      "  concatenate((%7, %6, %8), axis=0)\n";
  EXPECT_EQ(run_pass("simplify_slices", "%b: Tensor[(4, 3), float32], %c: Tensor[(1, 3), float32]", body),
            "%0 = negative(%c);\n"
            "%1 = abs(%0);\n"
            "%2 = concatenate((%c, %0));\n"
            "%3 = strided_slice(%b, begin=[3], end=[4], axes=[0]);\n"
            "%4 = concatenate((%2, %1, %3));\n%4\n");
}

}  // namespace
}  // namespace qplan::passes_test::simplify_slices_test
