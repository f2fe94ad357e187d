#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::convert_uint8_weights_test {
namespace {

std::string convert(const std::string& params, const std::string& body) {
  return run_pass("convert_uint8_weights", params, body);
}

TEST(ConvertUint8Weights, DenseWeightsAndZeroPointLose128) {
  EXPECT_EQ(
      convert("%x: Tensor[(1, 4), uint8]",
              "  qnn.dense(%x, const(Tensor[(1, 4), uint8], [0, 127, 128, 255]), 5, 130, 0.5f, 0.25f)\n"),
      "%0 = qnn.dense(%x, const(Tensor[(1, 4), int8], [-128, -1, 0, 127]), 5, 2, 0.5f, 0.25f);\n%0\n");
}

TEST(ConvertUint8Weights, ConvolutionsWithAZeroPointPerChannel) {
  EXPECT_EQ(
      convert("%x: Tensor[(1, 1, 1, 1), int8]",
              "  qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), uint8], [1, 2]), 5, const(Tensor[(2), int32], [0, "
              "255]), "
              "0.5f, 0.25f, data_layout=\"NHWC\", kernel_layout=\"OHWI\")\n"),
      "%0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [-127, -126]), 5, const(Tensor[(2), int32], "
      "[-128, 127]), 0.5f, 0.25f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n%0\n");
}

TEST(ConvertUint8Weights, LeavesInt8AndWhatIsNotConstant) {
  EXPECT_EQ(convert("%x: Tensor[(1, 2), uint8]",
                    "  qnn.dense(%x, const(Tensor[(1, 2), int8], [1, 2]), 5, 0, 0.5f, 0.25f)\n"),
            "unchanged");
  EXPECT_EQ(convert("%x: Tensor[(1, 2), uint8], %w: Tensor[(1, 2), uint8]",
                    "  qnn.dense(%x, %w, 5, 0, 0.5f, 0.25f)\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::convert_uint8_weights_test
