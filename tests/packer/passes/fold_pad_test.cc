#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::fold_pad_test {
namespace {

const std::string kData = "%x: Tensor[(1, 3, 3, 1), int8]";
const std::string kWeights = "const(Tensor[(1, 2, 2, 1), int8], [1, 2, 3, 4])";

std::string conv(const std::string& data, const std::string& attrs, int zero_point = 7) {
  return "qnn.conv2d(" + data + ", " + kWeights + ", " + std::to_string(zero_point) + ", 0, 0.5f, 0.25f, " +
         attrs + "data_layout=\"NHWC\", kernel_layout=\"OHWI\")";
}
std::string pad(const std::string& value, const std::string& widths) {
  return "  %0 = nn.pad(%x, " + value + ", pad_width=" + widths + ");\n";
}
std::string fold(const std::string& body) { return run_pass("fold_pad", kData, body); }

const std::string kSpatial = "[[0, 0], [1, 0], [2, 3], [0, 0]]";

TEST(FoldPad, MovesSpatialPaddingIntoTheConvolution) {
  EXPECT_EQ(fold(pad("7", kSpatial) + "  " + conv("%0", "") + "\n"),
            "%0 = " + conv("%x", "padding=[1, 2, 0, 3], ") + ";\n%0\n");
}

TEST(FoldPad, AddsToThePaddingThatIsThere) {
  EXPECT_EQ(fold(pad("7f", kSpatial) + "  " + conv("%0", "padding=[1, 1], ") + "\n"),
            "%0 = " + conv("%x", "padding=[2, 3, 1, 4], ") + ";\n%0\n");
}

TEST(FoldPad, ChainsFoldInOneStep) {
  EXPECT_EQ(fold("  %0 = nn.pad(%x, 7, pad_width=[[0, 0], [1, 0], [0, 0], [0, 0]]);\n"
                 "  %1 = nn.pad(%0, 7, pad_width=[[0, 0], [1, 1], [0, 2], [0, 0]]);\n  " +
                 conv("%1", "") + "\n"),
            "%0 = " + conv("%x", "padding=[2, 0, 1, 2], ") + ";\n%0\n");
}

TEST(FoldPad, ThePadValueOfTheConvolutionCounts) {
  const std::string tail = "data_layout=\"NHWC\", kernel_layout=\"OHWI\", pad_value=5)";
  const auto with_value = [&](const std::string& data, const std::string& attrs) {
    return "qnn.conv2d(" + data + ", " + kWeights + ", 7, 0, 0.5f, 0.25f, " + attrs + tail;
  };
  EXPECT_EQ(fold(pad("5", kSpatial) + "  " + with_value("%0", "") + "\n"),
            "%0 = " + with_value("%x", "padding=[1, 2, 0, 3], ") + ";\n%0\n");
  EXPECT_EQ(fold(pad("7", kSpatial) + "  " + with_value("%0", "") + "\n"), "unchanged");
}

TEST(FoldPad, AnotherValueStays) {
  EXPECT_EQ(fold(pad("0", kSpatial) + "  " + conv("%0", "") + "\n"), "unchanged");
}

TEST(FoldPad, PaddedBatchesStay) {
  EXPECT_EQ(fold(pad("7", "[[1, 0], [1, 0], [2, 3], [0, 0]]") + "  " + conv("%0", "") + "\n"), "unchanged");
}

TEST(FoldPad, APadThatIsReadElsewhereStays) {
  EXPECT_EQ(fold(pad("7", kSpatial) + "  %1 = " + conv("%0", "") + ";\n  (%1, %0)\n"), "unchanged");
}

TEST(FoldPad, NothingButAConvolutionTakesIt) {
  EXPECT_EQ(fold(pad("7", kSpatial) + "  nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\")\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::fold_pad_test
