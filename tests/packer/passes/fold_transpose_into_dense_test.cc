#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fold_transpose_into_dense_test {
namespace {

TEST(FoldTransposeIntoDense, ColumnsTakeTheOrderOfTheData) {
  // [1, h 2, w 1, c 3] transposed to [1, 3, 2, 1] and flattened: columns c0h0 c0h1 c1h0 c1h1 c2h0 c2h1.
  const std::string before =
      "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n"
      "  %1 = reshape(%0, newshape=[1, 6]);\n"
      "  qnn.dense(%1, const(Tensor[(1, 6), int8], [1, 2, 3, 4, 5, 6]), 0, 0, 1f, 1f)\n";
  EXPECT_EQ(run_pass("fold_transpose_into_dense", "%x: Tensor[(1, 2, 1, 3), int8]", before),
            "%0 = reshape(const(Tensor[(1, 6), int8], [1, 2, 3, 4, 5, 6]), newshape=[1, 3, 2, 1]);\n"
            "%1 = transpose(%0, axes=[0, 2, 3, 1]);\n"
            "%2 = reshape(%1, newshape=[1, 6]);\n"
            "%3 = reshape(%x, newshape=[1, 6]);\n"
            "%4 = qnn.dense(%3, %2, 0, 0, 1f, 1f);\n%4\n");
}

TEST(FoldTransposeIntoDense, ABatchThatIsNotKeptStays) {
  EXPECT_EQ(run_pass("fold_transpose_into_dense", "%x: Tensor[(2, 2, 1, 3), int8]",
                     "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n  %1 = reshape(%0, newshape=[1, 12]);\n"
                     "  qnn.dense(%1, const(Tensor[(1, 12), int8], [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]), 0, "
                     "0, 1f, 1f)\n"),
            "unchanged");
}

TEST(FoldTransposeIntoDense, AScalarStays) {
  EXPECT_EQ(run_pass("fold_transpose_into_dense", "%x: int8",
                     "  %0 = transpose(%x, axes=[]);\n  %1 = reshape(%0, newshape=[1, 1]);\n"
                     "  qnn.dense(%1, const(Tensor[(1, 1), int8], [1]), 0, 0, 1f, 1f)\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::fold_transpose_into_dense_test
