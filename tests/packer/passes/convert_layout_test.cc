#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::convert_layout_test {
namespace {

std::string convert(const std::string& params, const std::string& body) {
  return run_pass("convert_layout", params, body);
}

// 1 image of 2 channels, 3 x 4; weights of 2 output channels, 1 x 1.
const std::string kParams = "%x: Tensor[(1, 2, 3, 4), int8], %w: Tensor[(2, 2, 1, 1), int8]";
const std::string kConv = "qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f)";

TEST(ConvertLayout, AConvolutionReadsAndMakesChannelsLast) {
  EXPECT_EQ(convert(kParams, "  " + kConv + "\n"),
            "%0 = transpose(%w, axes=[0, 2, 3, 1]);\n"
            "%1 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%2 = qnn.conv2d(%1, %0, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
            "%3 = transpose(%2, axes=[0, 3, 1, 2]);\n"
            "%3\n");
}

TEST(ConvertLayout, WeightsOfAnNhwcConvolutionBecomeOhwi) {
  EXPECT_EQ(convert("%x: Tensor[(1, 3, 4, 2), int8], %w: Tensor[(1, 1, 2, 5), int8]",
                    "  qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n"),
            "%0 = transpose(%w, axes=[3, 0, 1, 2]);\n"
            "%1 = qnn.conv2d(%x, %0, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
            "%1\n");
}

TEST(ConvertLayout, WhatIsInItsFormAlreadyStays) {
  EXPECT_EQ(convert("%x: Tensor[(1, 3, 4, 2), int8], %w: Tensor[(5, 1, 1, 2), int8]",
                    "  qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\")\n"),
            "unchanged");
}

// As resizing to the nearest element between two convolutions.
TEST(ConvertLayout, ATakeAlongOneAxisFollowsItsData) {
  const std::string body =
      run_passes({"convert_layout", "eliminate_layout", "dead_code"}, "%x: Tensor[(1, 2, 3, 4), int8]",
                 "  %0 = nn.max_pool2d(%x, pool_size=[2, 2]);\n"
                 "  %1 = take(%0, const(Tensor[(4), int32], [0, 0, 1, 1]), axis=2);\n"
                 "  nn.max_pool2d(%1, pool_size=[2, 2])\n");
  EXPECT_EQ(body,
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%1 = nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\");\n"
            "%2 = take(%1, const(Tensor[(4), int32], [0, 0, 1, 1]), axis=1);\n"
            "%3 = nn.max_pool2d(%2, pool_size=[2, 2], layout=\"NHWC\");\n"
            "%4 = transpose(%3, axes=[0, 3, 1, 2]);\n%4\n");
}

TEST(ConvertLayout, ATakeAtPositionsOfTwoAxesKeepsItsOrder) {
  const std::string body =
      run_passes({"convert_layout", "eliminate_layout", "dead_code"}, "%x: Tensor[(2, 3, 4), int8]",
                 "  %0 = take(%x, const(Tensor[(2, 2), int32], [0, 0, 1, 1]), axis=1);\n"
                 "  nn.max_pool2d(%0, pool_size=[1, 1])\n");
  EXPECT_NE(body.find("take(%x, const(Tensor[(2, 2), int32], [0, 0, 1, 1]), axis=1)"), std::string::npos)
      << body;
}

// To NHWC and to NHWC again is to NCHW.
TEST(ConvertLayout, OneValueInAllOrdersIsNotTurnedForEver) {
  EXPECT_EQ(run_passes({"convert_layout", "eliminate_layout", "common_subexpressions", "dead_code"},
                       "%x: Tensor[(1, 2, 2, 2), int8]",
                       "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n"
                       "  %1 = transpose(%x, axes=[0, 2, 3, 1]);\n"
                       "  concatenate((%0, %0, %1, %x), axis=2)\n"),
            "%0 = transpose(%x, axes=[0, 3, 1, 2]);\n"
            "%1 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%2 = concatenate((%x, %x, %0, %1), axis=1);\n"
            "%3 = transpose(%2, axes=[0, 3, 1, 2]);\n"
            "%3\n");
}

// A reader of a layer in the other order transposes its 8 bits, not its accumulators.
TEST(ConvertLayout, ALayerStaysOneWithItsRequantisation) {
  EXPECT_EQ(
      convert("%x: Tensor[(1, 3, 4, 2), int8], %w: Tensor[(2, 1, 1, 2), int8]",
              "  %0 = qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
              "  %1 = qnn.requantize(%0, 0.25f, 0, 1f, 0);\n"
              "  nn.max_pool2d(%1, pool_size=[2, 2])\n"),
      "%0 = qnn.conv2d(%x, %w, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "%1 = qnn.requantize(%0, 0.25f, 0, 1f, 0);\n"
      "%2 = transpose(%1, axes=[0, 2, 3, 1]);\n"
      "%3 = nn.max_pool2d(%2, pool_size=[2, 2], layout=\"NHWC\");\n"
      "%4 = transpose(%3, axes=[0, 3, 1, 2]);\n"
      "%4\n");
}

TEST(ConvertLayout, ElementwiseOperatorsFollowAndTheirAxesMove) {
  EXPECT_EQ(convert(kParams, "  %0 = " + kConv +
                                 ";\n"
                                 "  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [1, 2]), axis=1);\n"
                                 "  %2 = qnn.requantize(%1, 0.25f, 0, 1f, 0, axis=1, out_dtype=\"int8\");\n"
                                 "  clip(%2, a_min=0f, a_max=6f)\n"),
            "%0 = transpose(%w, axes=[0, 2, 3, 1]);\n"
            "%1 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%2 = qnn.conv2d(%1, %0, 0, 0, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
            "%3 = nn.bias_add(%2, const(Tensor[(2), int32], [1, 2]), axis=3);\n"
            "%4 = qnn.requantize(%3, 0.25f, 0, 1f, 0, axis=3);\n"
            "%5 = clip(%4, a_min=0f, a_max=6f);\n"
            "%6 = transpose(%5, axes=[0, 3, 1, 2]);\n"
            "%6\n");
}

TEST(ConvertLayout, BetweenTwoConvolutionsNothingIsTransposed) {
  const std::string text =
      convert(kParams, "  %0 = " + kConv +
                           ";\n  %1 = qnn.requantize(%0, 0.25f, 0, 1f, 0);\n"
                           "  %2 = nn.pad(%1, 0, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]);\n"
                           "  nn.max_pool2d(%2, pool_size=[2, 2])\n");
  EXPECT_NE(text.find("nn.pad(%3, 0, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]])"), std::string::npos)
      << text;
  EXPECT_NE(text.find("nn.max_pool2d(%4, pool_size=[2, 2], layout=\"NHWC\")"), std::string::npos) << text;
  size_t transposes = 0;
  for (size_t at = 0; (at = text.find("transpose(", at)) != std::string::npos; ++at) ++transposes;
  EXPECT_EQ(transposes, 3u) << "weights, input, output:\n" << text;
}

TEST(ConvertLayout, ABroadcastConstantIsGivenFourAxes) {
  // A value per channel, [2, 1, 1].
  EXPECT_EQ(convert(kParams,
                    "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n"
                    "  qnn.add(%0, const(Tensor[(2, 1, 1), int8], [1, 2]), 1f, 0, 1f, 0, 1f, 0)\n"),
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%1 = nn.max_pool2d(%0, pool_size=[1, 1], layout=\"NHWC\");\n"
            "%2 = reshape(const(Tensor[(2, 1, 1), int8], [1, 2]), newshape=[1, 2, 1, 1]);\n"
            "%3 = transpose(%2, axes=[0, 2, 3, 1]);\n"
            "%4 = qnn.add(%1, %3, 1f, 0, 1f, 0, 1f, 0);\n"
            "%5 = transpose(%4, axes=[0, 3, 1, 2]);\n"
            "%5\n");
}

TEST(ConvertLayout, MeanOverHeightAndWidthFollows) {
  EXPECT_EQ(convert(kParams,
                    "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n"
                    "  qnn.mean(%0, 1f, 0, 1f, 0, axis=[2, 3])\n"),
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%1 = nn.max_pool2d(%0, pool_size=[1, 1], layout=\"NHWC\");\n"
            "%2 = qnn.mean(%1, 1f, 0, 1f, 0, axis=[1, 2]);\n"
            "%2\n");
}

// A sum of floats is rounded element by element, in the model's order.
TEST(ConvertLayout, AReductionThatRoundsInOrderReadsTheOldOrder) {
  const auto axes_of = [](const std::string& dtype, const std::string& call) {
    const std::string text = convert("%x: Tensor[(1, 2, 3, 4), " + dtype + "]",
                                     "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n  " + call + "\n");
    return text.substr(text.find("axis="), sizeof("axis=[1, 2]") - 1);
  };
  EXPECT_EQ(axes_of("float32", "sum(%0, axis=[1, 3], keepdims=True)"), "axis=[1, 3]");
  EXPECT_EQ(axes_of("float32", "mean(%0, axis=[2, 3])"), "axis=[1, 2]");
  EXPECT_EQ(axes_of("int8", "qnn.prod(%0, 1f, 0, 1f, 0, axis=[1, 3], keepdims=True)"), "axis=[1, 3]");
  EXPECT_EQ(axes_of("int8", "qnn.sum(%0, 1f, 0, 1f, 0, axis=[1, 3], keepdims=True)"), "axis=[2, 3]");
}

// The kernel computes along the last axis.
TEST(ConvertLayout, ASoftmaxOfRowsReadsTheOldOrder) {
  const std::string text = convert(kParams,
                                   "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n"
                                   "  qnn.softmax(%0, 1f, 0, 0.00390625f, -128)\n");
  EXPECT_NE(text.find("qnn.softmax(%2, 1f, 0, 0.00390625f, -128);"), std::string::npos) << text;
}

TEST(SoftmaxOfRows, TheAxisBecomesTheLastOne) {
  EXPECT_EQ(run_pass("softmax_of_rows", "%x: Tensor[(2, 3, 4), int8]",
                     "  qnn.softmax(%x, 1f, 0, 0.00390625f, -128, axis=0)\n"),
            "%0 = transpose(%x, axes=[1, 2, 0]);\n%1 = qnn.softmax(%0, 1f, 0, 0.00390625f, -128, axis=2);\n"
            "%2 = transpose(%1, axes=[2, 0, 1]);\n%2\n");
  EXPECT_EQ(
      run_pass("softmax_of_rows", "%x: Tensor[(1, 3, 4, 2), int8]",
               "  qnn.softmax(%x, 1f, 0, 0.00390625f, -128, axis=-3)\n"),
      "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n%1 = qnn.softmax(%0, 1f, 0, 0.00390625f, -128, axis=3);\n"
      "%2 = transpose(%1, axes=[0, 3, 1, 2]);\n%2\n");
  EXPECT_EQ(run_pass("softmax_of_rows", "%x: Tensor[(2, 3), int8]",
                     "  qnn.softmax(%x, 1f, 0, 0.00390625f, -128)\n"),
            "unchanged");
}

TEST(ConvertLayout, AMeanThatLeavesChannelsBesideHeightReadsTheOldOrder) {
  const std::string text = convert(kParams,
                                   "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n"
                                   "  qnn.mean(%0, 1f, 0, 1f, 0, axis=[3])\n");
  EXPECT_NE(text.find("qnn.mean(%2, 1f, 0, 1f, 0, axis=[3])"), std::string::npos) << text;
}

TEST(ConvertLayout, TransposesOfTheSourceMeetTheTwin) {
  EXPECT_EQ(
      convert(kParams, "  %0 = nn.max_pool2d(%x, pool_size=[1, 1]);\n  transpose(%0, axes=[0, 2, 3, 1])\n"),
      "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
      "%1 = nn.max_pool2d(%0, pool_size=[1, 1], layout=\"NHWC\");\n"
      "%1\n");
  EXPECT_EQ(convert("%x: Tensor[(1, 3, 4, 2), int8]",
                    "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n  %1 = nn.max_pool2d(%0, pool_size=[1, 1]);\n"
                    "  transpose(%1, axes=[0, 2, 3, 1])\n"),
            "%0 = nn.max_pool2d(%x, pool_size=[1, 1], layout=\"NHWC\");\n%0\n");
}

}  // namespace
}  // namespace qplan::passes_test::convert_layout_test
