#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::normalize_operators_test {
namespace {

TEST(NormalizeOperators, WritesWindowsOut) {
  EXPECT_EQ(
      run_pass("normalize_operators", "%x: Tensor[(1, 4, 4, 2), int8], %w: Tensor[(3, 2, 2, 2), int8]",
               "  qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, padding=[1], strides=[2, 2], data_layout=\"NHWC\", "
               "kernel_layout=\"OHWI\")\n"),
      "%0 = qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, strides=[2, 2], padding=[1, 1, 1, 1], channels=3, "
      "kernel_size=[2, 2], data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n%0\n");
}

TEST(NormalizeOperators, AnAxisWithoutPerAxisConstantsIsDropped) {
  EXPECT_EQ(run_pass("normalize_operators", "%x: Tensor[(1, 4), int32]",
                     "  qnn.requantize(%x, 1f, 0, 2f, 0, axis=1)\n"),
            "%0 = qnn.requantize(%x, 1f, 0, 2f, 0);\n%0\n");
}

TEST(NormalizeOperators, AnAxisWithPerAxisConstantsCountsFromTheFront) {
  EXPECT_EQ(run_pass("normalize_operators", "%x: Tensor[(1, 2), int32]",
                     "  qnn.requantize(%x, const(Tensor[(2), float32], [1, 2]), 0, 2f, 0)\n"),
            "%0 = qnn.requantize(%x, const(Tensor[(2), float32], [1, 2]), 0, 2f, 0, axis=1);\n%0\n");
}

TEST(NormalizeOperators, TheAxisOfExpandDimsIsOneOfItsResult) {
  for (const char* axis : {"-1", "2"}) {
    EXPECT_EQ(run_pass("normalize_operators", "%x: Tensor[(1, 4), int8]",
                       std::string("  expand_dims(%x, axis=") + axis + ")\n"),
              "unchanged");
  }
}

TEST(NormalizeOperators, EqualZeroPointsBecomeOne) {
  EXPECT_EQ(run_pass("normalize_operators", "%x: Tensor[(1, 2), int8], %w: Tensor[(2, 2), int8]",
                     "  qnn.dense(%x, %w, 3, const(Tensor[(2), int32], [5, 5]), 1f, const(Tensor[(2), "
                     "float32], [1, 2]))\n"),
            "%0 = qnn.dense(%x, %w, 3, 5, 1f, const(Tensor[(2), float32], [1, 2]), units=2);\n%0\n");
}

TEST(NormalizeOperators, TheMultiplierRuleMeansNothingToF32e) {
  EXPECT_EQ(run_pass("normalize_operators", "%x: Tensor[(1, 2), int32]",
                     "  qnn.requantize(%x, 1f, 0, 2f, 0, contract=\"f32e\", multiplier=\"product_f32\")\n"),
            "%0 = qnn.requantize(%x, 1f, 0, 2f, 0, contract=\"f32e\");\n%0\n");
}

}  // namespace
}  // namespace qplan::passes_test::normalize_operators_test
