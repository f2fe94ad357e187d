#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::merge_requantize_test {
namespace {

std::string merge(const std::string& params, const std::string& body) {
  return run_pass("merge_requantize", params, body);
}

const std::string kAccumulator = "%x: Tensor[(1, 4), int32]";
const std::string kInt8 = "%x: Tensor[(1, 4), int8]";
// int8 with zero point 3 as uint8.
const std::string kResign = "0.25f, 3, 0.25f, 131, out_dtype=\"uint8\")";

TEST(MergeRequantize, AnAccumulatorIsRequantisedToTheOtherDtype) {
  EXPECT_EQ(merge(kAccumulator,
                  "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, contract=\"f32e\");\n"
                  "  qnn.requantize(%0, " +
                      kResign + "\n"),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 131, out_dtype=\"uint8\", contract=\"f32e\");\n%0\n");
}

TEST(MergeRequantize, TheClipBetweenMovesAlong) {
  EXPECT_EQ(merge(kAccumulator,
                  "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n  %1 = clip(%0, a_min=3f, a_max=50f);\n"
                  "  qnn.requantize(%1, " +
                      kResign + "\n"),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 131, out_dtype=\"uint8\");\n"
            "%1 = clip(%0, a_min=131f, a_max=178f);\n%1\n");
}

TEST(MergeRequantize, ReadersReadWhatWasThereBefore) {
  EXPECT_EQ(
      merge(kInt8, "  %0 = qnn.requantize(%x, " + kResign + ";\n  qnn.requantize(%0, 0.25f, 131, 1f, 7)\n"),
      "%0 = qnn.requantize(%x, 0.25f, 3, 1f, 7);\n%0\n");
  EXPECT_EQ(merge(kInt8, "  %0 = qnn.requantize(%x, " + kResign + ";\n  qnn.dequantize(%0, 0.25f, 131)\n"),
            "%0 = qnn.dequantize(%x, 0.25f, 3);\n%0\n");
}

TEST(MergeRequantize, AConvolutionsPadValueMovesAlong) {
  const auto conv = [](const std::string& data, const std::string& zero_point, const std::string& pad_value) {
    return "qnn.conv2d(" + data + ", const(Tensor[(1, 1, 1, 1), int8], [2]), " + zero_point +
           ", 0, 0.25f, 0.5f, padding=[1, 1], pad_value=" + pad_value + ")";
  };
  EXPECT_EQ(merge("%x: Tensor[(1, 1, 2, 2), int8]",
                  "  %0 = qnn.requantize(%x, " + kResign + ";\n  " + conv("%0", "131", "130") + "\n"),
            "%0 = " + conv("%x", "3", "2") + ";\n%0\n");
}

// One copy of the accumulator's requantisation: no target supports a layer with two.
TEST(MergeRequantize, WhereProducerAndReaderCouldTakeItTheProducerDoes) {
  for (const std::string clip : {"", "clip"}) {
    const std::string clipped = "  %1 = clip(%0, a_min=3f, a_max=50f);\n";
    const std::string text = merge(
        kAccumulator, "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n" + (clip.empty() ? "" : clipped) +
                          "  %2 = qnn.requantize(" + (clip.empty() ? "%0" : "%1") + ", " + kResign +
                          ";\n  %3 = qnn.dequantize(%2, 0.25f, 131);\n  (%2, %3)\n");
    EXPECT_EQ(text, "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 131, out_dtype=\"uint8\");\n" +
                        (clip.empty() ? std::string("%1 = qnn.dequantize(%0, 0.25f, 131);\n(%0, %1)\n")
                                      : std::string("%1 = clip(%0, a_min=131f, a_max=178f);\n"
                                                    "%2 = qnn.dequantize(%1, 0.25f, 131);\n(%1, %2)\n")));
  }
}

// Pairs are requantisations that change nothing, which fuse_activation drops.
TEST(MergeRequantize, ChainsOfResigningsGo) {
  std::string body = "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n";
  constexpr int kLength = 1000;
  for (int i = 1; i <= kLength; ++i) {
    body += "  %" + std::to_string(i) + " = qnn.requantize(%" + std::to_string(i - 1) + ", " +
            (i % 2 == 1 ? kResign : std::string("0.25f, 131, 0.25f, 3)")) + ";\n";
  }
  EXPECT_EQ(run_passes({"merge_requantize", "fuse_activation"}, kAccumulator,
                       body + "  %" + std::to_string(kLength) + "\n"),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n%0\n");
}

TEST(MergeRequantize, RoundingTwiceStays) {
  EXPECT_EQ(
      merge(kInt8, "  %0 = qnn.requantize(%x, 0.25f, 3, 0.5f, 3);\n  qnn.requantize(%0, 0.5f, 3, 1f, 7)\n"),
      "unchanged");
  // The zero points are not 128 apart: values saturate.
  EXPECT_EQ(merge(kAccumulator,
                  "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n"
                  "  qnn.requantize(%0, 0.25f, 3, 0.25f, 130, out_dtype=\"uint8\")\n"),
            "unchanged");
}

TEST(MergeRequantize, AProducerWithOtherReadersStays) {
  EXPECT_EQ(merge(kAccumulator, "  %0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3);\n  %1 = qnn.requantize(%0, " +
                                    kResign + ";\n  (%0, %1)\n"),
            "unchanged");
}

TEST(MergeRequantize, KeepsTheBytes) {
  const std::string params = "%x: Tensor[(1, 8, 8, 1), int8]";
  const std::string body =
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 2, 2, 1), int8], [50, -120, 33, 99]), 3, 0, 0.25f, 0.5f, "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  %1 = qnn.requantize(%0, 0.125f, 0, 9f, -5);\n  %2 = clip(%1, a_min=-60f, a_max=70f);\n"
      "  %3 = qnn.requantize(%2, 9f, -5, 9f, 123, out_dtype=\"uint8\");\n  qnn.requantize(%3, 9f, 123, 8f, "
      "3)\n";
  const std::string after = merge(params, body);
  EXPECT_EQ(after.find("uint8"), std::string::npos) << after;
  EXPECT_EQ(results_of(params, body, 5), results_of(params, after, 5));
}

}  // namespace
}  // namespace qplan::passes_test::merge_requantize_test
