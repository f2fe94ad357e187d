#include <gtest/gtest.h>

#include "tests/packer/op/infer_text.h"

namespace qplan::conv_test {
namespace {

// %x is the data, %w the weight, quantisation constants are scalars.
std::string conv(const std::string& data, const std::string& weight, const std::string& attrs) {
  return infer_text(
      "%x: Tensor[(" + data + "), uint8], %w: Tensor[(" + weight + "), int8]",
      "qnn.conv2d(%x, %w, 128, 0, 0.5f, 0.25f, name=\"c\"" + (attrs.empty() ? "" : ", " + attrs) + ")");
}

TEST(InferConv2d, DefaultsAreNchwOihwWithoutPadding) {
  EXPECT_EQ(conv("1, 24, 7, 9", "10, 24, 3, 5", ""), "Tensor[(1, 10, 5, 5), int32]");
}

TEST(InferConv2d, NhwcWithEachKernelLayout) {
  const std::string nhwc = "data_layout=\"NHWC\", kernel_layout=";
  EXPECT_EQ(conv("2, 7, 9, 24", "10, 3, 5, 24", nhwc + "\"OHWI\""), "Tensor[(2, 5, 5, 10), int32]");
  EXPECT_EQ(conv("2, 7, 9, 24", "10, 24, 3, 5", nhwc + "\"OIHW\""), "Tensor[(2, 5, 5, 10), int32]");
  EXPECT_EQ(conv("2, 7, 9, 24", "3, 5, 24, 10", nhwc + "\"HWIO\""), "Tensor[(2, 5, 5, 10), int32]");
}

TEST(InferConv2d, PaddingIsTopLeftBottomRight) {
  EXPECT_EQ(conv("1, 1, 10, 10", "1, 1, 3, 3", "padding=[0, 1, 2, 4]"), "Tensor[(1, 1, 10, 13), int32]");
  EXPECT_EQ(conv("1, 1, 10, 10", "1, 1, 3, 3", "padding=[1, 2]"), "Tensor[(1, 1, 10, 12), int32]");
  EXPECT_EQ(conv("1, 1, 10, 10", "1, 1, 3, 3", "padding=[1]"), "Tensor[(1, 1, 10, 10), int32]");
  EXPECT_EQ(conv("1, 1, 10, 10", "1, 1, 3, 3", "padding=1"), "Tensor[(1, 1, 10, 10), int32]");
}

TEST(InferConv2d, StridesRoundDownAndDilationSpreads) {
  EXPECT_EQ(conv("1, 1, 10, 11", "1, 1, 3, 3", "strides=[2, 3]"), "Tensor[(1, 1, 4, 3), int32]");
  EXPECT_EQ(conv("1, 1, 10, 11", "1, 1, 3, 3", "dilation=[4, 5]"), "Tensor[(1, 1, 2, 1), int32]");
}

TEST(InferConv2d, GroupsDivideChannels) {
  EXPECT_EQ(conv("1, 24, 4, 4", "48, 1, 1, 1", "groups=24"), "Tensor[(1, 48, 4, 4), int32]");
  EXPECT_EQ(conv("1, 24, 4, 4", "10, 24, 1, 1", "groups=5"),
            "qnn.conv2d 'c': input channels 24 are not divisible by groups 5");
  EXPECT_EQ(conv("1, 24, 4, 4", "10, 6, 1, 1", "groups=4"),
            "qnn.conv2d 'c': output channels 10 are not divisible by groups 4");
  EXPECT_EQ(conv("1, 24, 4, 4", "8, 24, 1, 1", "groups=4"),
            "qnn.conv2d 'c': 'weight' has 24 input channels, expected 6 (24 channels of 'data' in 4 groups)");
  EXPECT_EQ(conv("1, 24, 4, 4", "8, 24, 1, 1", "groups=0"),
            "qnn.conv2d 'c': attribute 'groups' is 0, expected at least 1");
}

TEST(InferConv2d, StatedChannelsAndKernelSizeMustFitTheWeight) {
  EXPECT_EQ(conv("1, 3, 4, 4", "8, 3, 1, 2", "channels=8, kernel_size=[1, 2]"),
            "Tensor[(1, 8, 4, 3), int32]");
  EXPECT_EQ(conv("1, 3, 4, 4", "8, 3, 1, 2", "channels=9"),
            "qnn.conv2d 'c': attribute 'channels' is 9, but 'weight' has 8 output channels");
  EXPECT_EQ(conv("1, 3, 4, 4", "8, 3, 1, 2", "kernel_size=[2, 1]"),
            "qnn.conv2d 'c': attribute 'kernel_size' is [2, 1], but 'weight' is Tensor[(8, 3, 1, 2), int8] "
            "in layout "
            "OIHW");
}

TEST(InferConv2d, WindowMustFit) {
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 5, 1", ""),
            "qnn.conv2d 'c': the window covers 5 of the height of the input, which is only 4 with padding");
  EXPECT_EQ(
      conv("1, 1, 4, 4", "1, 1, 1, 3", "dilation=[1, 2147483648]"),
      "qnn.conv2d 'c': the window covers 4294967297 of the width of the input, which is only 4 with padding");
}

TEST(InferConv2d, HostileAttributesAreRefused) {
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "strides=[0, 1]"),
            "qnn.conv2d 'c': attribute 'strides' is [0, 1], expected values from 1 to 2147483648");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "strides=[1, 1, 1]"),
            "qnn.conv2d 'c': attribute 'strides' has 3 values, expected 1 or 2");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "padding=[-1, 0, 0, 0]"),
            "qnn.conv2d 'c': attribute 'padding' is [-1, 0, 0, 0], expected values from 0 to 2147483648");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "padding=[1, 1, 1]"),
            "qnn.conv2d 'c': attribute 'padding' has 3 values, expected 1, 2 or 4");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "dilation=[9223372036854775807, 1]"),
            "qnn.conv2d 'c': attribute 'dilation' is [9223372036854775807, 1], expected values from 1 to "
            "2147483648");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "padding=[2147483648, 0, 0, 2147483648]"),
            "qnn.conv2d 'c': result: Tensor[(1, 1, 2147483652, 2147483652), int32] is larger than "
            "1099511627776 bytes");
}

TEST(InferConv2d, LayoutsAndDtypesAreKnownOnes) {
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "data_layout=\"NCHW4c\""),
            "qnn.conv2d 'c': data layout 'NCHW4c' is not supported, expected 'NHWC' or 'NCHW'");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "kernel_layout=\"HWOI\""),
            "qnn.conv2d 'c': kernel layout 'HWOI' is not supported, expected 'OHWI', 'OIHW' or 'HWIO'");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "out_dtype=\"int16\""),
            "qnn.conv2d 'c': attribute 'out_dtype' is int16, expected int32");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "out_dtype=\"i\""),
            "qnn.conv2d 'c': attribute 'out_dtype' names an unknown dtype 'i'");
  EXPECT_EQ(conv("1, 4, 4", "1, 1, 1, 1", ""),
            "qnn.conv2d 'c': 'data' is Tensor[(1, 4, 4), uint8], expected rank 4");
  EXPECT_EQ(
      infer_text("%x: Tensor[(1, 1, 1, 1), int32], %w: Tensor[(1, 1, 1, 1), int8]",
                 "qnn.conv2d(%x, %w, 0, 0, 1f, 1f)"),
      "qnn.conv2d (node 0): dtype int32 of 'data' is not supported, expected one of int8, uint8, int16");
  EXPECT_EQ(infer_text("%x: Tensor[(1, 1, 1, 1), int16], %w: Tensor[(1, 1, 1, 1), int8]",
                       "qnn.conv2d(%x, %w, 0, 0, 1f, 1f, out_dtype=\"int64\")"),
            "Tensor[(1, 1, 1, 1), int64]");
  EXPECT_EQ(infer_text("%x: Tensor[(1, 1, 1, 1), int16], %w: Tensor[(1, 1, 1, 1), int16]",
                       "qnn.conv2d(%x, %w, 0, 0, 1f, 1f)"),
            "qnn.conv2d (node 0): dtype int16 of 'weight' is not supported, expected one of int8, uint8");
}

TEST(InferConv2d, PadValueIsOptionalAndOfTheDataDtype) {
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "pad_value=255"), "Tensor[(1, 1, 4, 4), int32]");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "pad_value=-1"),
            "qnn.conv2d 'c': attribute 'pad_value' is -1, outside of uint8");
}

std::string conv_constants(const std::string& constants) {
  return infer_text("%x: Tensor[(1, 2, 3, 3), uint8], %w: Tensor[(3, 2, 1, 1), int8], %s: float32",
                    "qnn.conv2d(%x, %w, " + constants + ", name=\"c\")");
}

TEST(InferConv2d, KernelConstantsMayBePerOutputChannel) {
  EXPECT_EQ(
      conv_constants("0, const(Tensor[(3), int32], [0, 1, -1]), 1f, const(Tensor[(3), float32], [1, 2, 3])"),
      "Tensor[(1, 3, 3, 3), int32]");
  EXPECT_EQ(
      conv_constants("0, 0, 1f, const(Tensor[(2), float32], [1, 2])"),
      "qnn.conv2d 'c': 'kernel_scale' is Tensor[(2), float32], expected float32 or Tensor[(3), float32]");
  EXPECT_EQ(conv_constants("0, 0, const(Tensor[(3), float32], [1, 2, 3]), 1f"),
            "qnn.conv2d 'c': 'input_scale' is Tensor[(3), float32], expected float32");
}

TEST(InferConv2d, QuantisationConstantsAreChecked) {
  EXPECT_EQ(conv_constants("256, 0, 1f, 1f"),
            "qnn.conv2d 'c': 'input_zero_point' has a value 256, outside of uint8");
  EXPECT_EQ(conv_constants("0, -129, 1f, 1f"),
            "qnn.conv2d 'c': 'kernel_zero_point' has a value -129, outside of int8");
  EXPECT_EQ(conv_constants("0, 0, 0f, 1f"),
            "qnn.conv2d 'c': 'input_scale' has a value 0f, expected positive and finite");
  EXPECT_EQ(conv_constants("0, 0, inff, 1f"),
            "qnn.conv2d 'c': 'input_scale' has a value inff, expected positive and finite");
  EXPECT_EQ(conv_constants("0, 0, nanf, 1f"),
            "qnn.conv2d 'c': 'input_scale' has a value nanf, expected positive and finite");
  EXPECT_EQ(conv_constants("0f, 0, 1f, 1f"), "qnn.conv2d 'c': 'input_zero_point' is float32, expected int32");
  EXPECT_EQ(conv_constants("0, 0, %s, 1f"),
            "qnn.conv2d 'c': 'input_scale' must be a constant, got parameter 's'; fold or bind it first");
}

TEST(InferConv2d, OperandsAndAttributesAreCounted) {
  EXPECT_EQ(infer_text("%x: Tensor[(1, 1, 1, 1), int8]", "qnn.conv2d(%x, %x, 0, 0, 1f)"),
            "qnn.conv2d (node 0): there are 5 operands, expected 6 (data, weight, input_zero_point, "
            "kernel_zero_point, "
            "input_scale, kernel_scale)");
  EXPECT_EQ(
      conv("1, 1, 4, 4", "1, 1, 1, 1", "stride=[1, 1]"),
      "qnn.conv2d 'c': unknown attribute 'stride'; known are strides, padding, dilation, groups, channels, "
      "kernel_size, data_layout, kernel_layout, out_dtype, pad_value");
  EXPECT_EQ(conv("1, 1, 4, 4", "1, 1, 1, 1", "groups=\"one\""),
            "qnn.conv2d 'c': attribute 'groups' must be an integer");
}

TEST(InferDense, KeepsLeadingExtents) {
  const std::string params = "%x: Tensor[(2, 5, 4), int8], %w: Tensor[(3, 4), int8]";
  EXPECT_EQ(infer_text(params, "qnn.dense(%x, %w, 0, 0, 1f, 1f, units=3)"), "Tensor[(2, 5, 3), int32]");
  EXPECT_EQ(infer_text(params, "qnn.dense(%x, %w, 0, 0, 1f, const(Tensor[(3), float32], [1, 2, 3]))"),
            "Tensor[(2, 5, 3), int32]");
  EXPECT_EQ(infer_text(params, "qnn.dense(%x, %w, 0, 0, 1f, 1f, units=4)"),
            "qnn.dense (node 0): attribute 'units' is 4, but 'weight' has 3 rows");
  EXPECT_EQ(
      infer_text("%x: Tensor[(2, 5), int8], %w: Tensor[(3, 4), int8]", "qnn.dense(%x, %w, 0, 0, 1f, 1f)"),
      "qnn.dense (node 0): 'data' is Tensor[(2, 5), int8] and 'weight' is Tensor[(3, 4), int8]: last extents "
      "5 "
      "and 4 differ");
  EXPECT_EQ(infer_text("%x: int8, %w: Tensor[(3, 4), int8]", "qnn.dense(%x, %w, 0, 0, 1f, 1f)"),
            "qnn.dense (node 0): 'data' is int8, expected rank 1 or more");
}

TEST(InferBiasAdd, BiasFitsTheAxis) {
  const std::string params =
      "%x: Tensor[(1, 4, 2, 3), int32], %b: Tensor[(4), int32], %f: Tensor[(3), float32]";
  EXPECT_EQ(infer_text(params, "nn.bias_add(%x, %b)"), "Tensor[(1, 4, 2, 3), int32]");
  EXPECT_EQ(infer_text(params, "nn.bias_add(%x, %b, axis=-1)"),
            "nn.bias_add (node 0): 'bias' is Tensor[(4), int32], expected 3 values for axis 3 of "
            "Tensor[(1, 4, 2, 3), int32]");
  EXPECT_EQ(infer_text(params, "nn.bias_add(%x, %b, axis=4)"),
            "nn.bias_add (node 0): axis 4 is out of range, expected from -4 to 3");
  EXPECT_EQ(infer_text(params, "nn.bias_add(%x, %f, axis=-1)"),
            "nn.bias_add (node 0): 'bias' is float32, expected int32 as 'data'");
  EXPECT_EQ(infer_text(params, "nn.bias_add(%x, %x)"),
            "nn.bias_add (node 0): 'bias' is Tensor[(1, 4, 2, 3), int32], expected rank 1");
}

std::string pool(const std::string& attrs) {
  return infer_text("%x: Tensor[(1, 7, 9, 3), int8]",
                    "nn.max_pool2d(%x, name=\"p\", layout=\"NHWC\", " + attrs + ")");
}

TEST(InferPool2d, WindowOverHeightAndWidth) {
  EXPECT_EQ(pool("pool_size=[2, 3], strides=[2, 3]"), "Tensor[(1, 3, 3, 3), int8]");
  EXPECT_EQ(pool("pool_size=[3, 3], strides=[2, 2], padding=[0, 1, 2, 1]"), "Tensor[(1, 4, 5, 3), int8]");
  EXPECT_EQ(infer_text("%x: Tensor[(1, 3, 7, 9), uint8]",
                       "qnn.avg_pool2d(%x, 1f, 128, 1f, 128, pool_size=[7, 9], count_include_pad=True)"),
            "Tensor[(1, 3, 1, 1), uint8]");
}

TEST(InferPool2d, RefusesWindowsWithoutInput) {
  EXPECT_EQ(pool("pool_size=[2, 2], padding=[0, 0, 2, 0]"),
            "nn.max_pool2d 'p': attribute 'padding' [0, 0, 2, 0] must be smaller than 'pool_size' [2, 2]");
  EXPECT_EQ(
      pool("pool_size=[8, 1]"),
      "nn.max_pool2d 'p': the window covers 8 of the height of the input, which is only 7 with padding");
  EXPECT_EQ(pool("strides=[1, 1]"), "nn.max_pool2d 'p': attribute 'pool_size' is missing");
  EXPECT_EQ(pool("pool_size=[1, 0]"),
            "nn.max_pool2d 'p': attribute 'pool_size' is [1, 0], expected values from 1 to 2147483648");
}

}  // namespace
}  // namespace qplan::conv_test
