// ConvTranspose: the pads that its attributes mean, and attributes of hostile files.
#include <gtest/gtest.h>

#include <limits>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_conv_transpose_test {
namespace {

OnnxBuilder model(std::vector<Message> attributes, const std::vector<int64_t>& kernel = {1, 1, 3, 3}) {
  OnnxBuilder b;
  size_t count = 1;
  for (const int64_t extent : kernel) count *= static_cast<size_t>(extent);
  b.input("x", kFloat, {1, 1, 4, 4}).constant("w", kFloat, kernel, std::vector<float>(count));
  b.node("ConvTranspose", {"x", "w"}, {"y"}, std::move(attributes));
  b.graph().message(12, Message().bytes(1, "y"));
  return b;
}

std::string last_line(const OnnxBuilder& builder) {
  const std::string body = import_body(builder);
  const size_t at = body.rfind("nn.conv2d");
  return at == std::string::npos ? body : body.substr(body.find("padding", at), 20);
}

// Each side gets kernel - 1 - pad zeros.
TEST(OnnxConvTranspose, Pads) {
  EXPECT_EQ(last_line(model({})), "padding=[2, 2, 2, 2]");
  EXPECT_EQ(last_line(model({attr_ints("pads", {1, 0, 2, 1})})), "padding=[1, 2, 0, 1]");
  EXPECT_EQ(last_line(model({attr_ints("pads", {1, 0, 2, 1}), attr_string("auto_pad", "VALID")})),
            "padding=[2, 2, 2, 2]");
  // 6 outputs without pads, 5 asked for: one pad, before the output except under SAME_UPPER.
  EXPECT_EQ(last_line(model({attr_ints("output_shape", {5, 6})})), "padding=[1, 2, 2, 2]");
  EXPECT_EQ(last_line(model({attr_ints("output_shape", {1, 1, 5, 6})})), "padding=[1, 2, 2, 2]");
  EXPECT_EQ(last_line(model({attr_ints("output_shape", {5, 6}), attr_string("auto_pad", "SAME_UPPER")})),
            "padding=[2, 2, 1, 2]");
  // More than there are: they follow the others.
  EXPECT_EQ(last_line(model({attr_ints("output_shape", {7, 9})})), "padding=[2, 2, 3, 5]");
}

TEST(OnnxConvTranspose, AttributesOutOfRangeAreRefused) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const auto expect_invalid = [](const OnnxBuilder& builder, const std::string& reason) {
    EXPECT_EQ(refusal(builder), kInvalid + "node 0 ConvTranspose 'y': " + reason);
  };
  expect_invalid(model({attr_ints("output_shape", {5})}),
                 "attribute 'output_shape' has 1 values, expected 2 or 4");
  expect_invalid(
      model({attr_ints("output_shape", {kLeast, 5})}),
      "attribute 'output_shape' is [-9223372036854775808, 5], expected values from 1 to 2147483647");
  expect_invalid(model({attr_ints("pads", {kLeast, 0, 0, 0})}),
                 "attribute 'pads' is [-9223372036854775808, 0, 0, 0], expected values from -2147483648 to "
                 "2147483648");
  expect_invalid(model({attr_ints("strides", {0, 1})}),
                 "attribute 'strides' is [0, 1], expected values from 1 to 2147483648");
  expect_invalid(model({attr_ints("output_padding", {0, -1})}),
                 "attribute 'output_padding' is [0, -1], expected values from 0 to 2147483648");
  expect_invalid(model({attr_string("auto_pad", "SAME")}),
                 "attribute 'auto_pad' is 'SAME', expected 'NOTSET', 'VALID', 'SAME_UPPER' or 'SAME_LOWER'");
  expect_invalid(model({attr_ints("dilations", {1})}), "attribute 'dilations' has 1 values, expected 2");
  expect_invalid(model({attr_ints("kernel_shape", {3, 2})}),
                 "attribute 'kernel_shape' is [3, 2], but the weights have [3, 3]");
  expect_invalid(model({}, {1, 1, 0, 3}), "the weights have a window of 0, expected 1 to 2147483648");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_conv_transpose_test
