// Layers over depth, height and width: the layers over height and width that they become, and refused uses.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_volume_test {
namespace {

TEST(OnnxVolume, ConvReadsTheFramesOfEachOutput) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 1, 3, 4, 4}).constant<float>("w", kFloat, {1, 1, 2, 1, 1}, {1, 2});
  b.node("Conv", {"x", "w"}, {"y"}).output("y", kFloat, {1, 1, 2, 4, 4});
  EXPECT_EQ(
      import_body(b),
      "%0 = take(%x, const(Tensor[(4), int64], [0, 1, 1, 2]), axis=2);\n"
      "%1 = reshape(%0, newshape=[1, 1, 2, 2, 4, 4]);\n"
      "%2 = transpose(%1, axes=[0, 2, 1, 3, 4, 5]);\n"
      "%3 = reshape(%2, newshape=[2, 2, 4, 4]);\n"
      "%4 = nn.conv2d(%3, const(Tensor[(1, 2, 1, 1), float32], [1, 2]), channels=1, kernel_size=[1, 1]);\n"
      "%5 = reshape(%4, newshape=[1, 2, 1, 4, 4]);\n"
      "%6 = transpose(%5, axes=[0, 2, 1, 3, 4]);\n%6\n");
}

TEST(OnnxVolume, MaxPoolIsOneOfPlanesAndOneOfFrames) {
  EXPECT_EQ(unary_body({"MaxPool", {attr_ints("kernel_shape", {2, 2, 2})}, 13, kFloat, {1, 2, 3, 4, 4}}),
            "%0 = reshape(%x, newshape=[1, 6, 4, 4]);\n%1 = nn.max_pool2d(%0, pool_size=[2, 2]);\n"
            "%2 = reshape(%1, newshape=[1, 2, 3, 9]);\n%3 = nn.max_pool2d(%2, pool_size=[2, 1]);\n"
            "%4 = reshape(%3, newshape=[1, 2, 2, 3, 3]);\n%4\n");
}

TEST(OnnxVolume, DilatedMaxPoolTakesTheElementsOfEachWindow) {
  EXPECT_EQ(
      unary_body({"MaxPool",
                  {attr_ints("kernel_shape", {2}), attr_ints("dilations", {2}), attr_ints("pads", {1, 0})},
                  13,
                  kFloat,
                  {1, 1, 4}}),
      "%0 = take(%x, const(Tensor[(6), int64], [1, 1, 0, 2, 1, 3]), axis=2);\n"
      "%1 = reshape(%0, newshape=[1, 1, 3, 2]);\n%2 = max(%1, axis=[3]);\n%2\n");
}

TEST(OnnxVolume, DilatedAveragePoolIsOneForEachPhase) {
  EXPECT_EQ(
      unary_body({"AveragePool",
                  {attr_ints("kernel_shape", {2}), attr_ints("dilations", {2}), attr_ints("pads", {1, 0})},
                  19,
                  kFloat,
                  {1, 1, 6}}),
      "%0 = reshape(%x, newshape=[1, 1, 1, 6]);\n"
      "%1 = strided_slice(%0, begin=[0, 1], end=[1, 6], strides=[1, 2], axes=[2, 3]);\n"
      "%2 = nn.avg_pool2d(%1, pool_size=[1, 2], padding=[0, 1, 0, 0]);\n"
      "%3 = strided_slice(%0, begin=[0, 0], end=[1, 5], strides=[1, 2], axes=[2, 3]);\n"
      "%4 = nn.avg_pool2d(%3, pool_size=[1, 2]);\n"
      "%5 = concatenate((%2, %4), axis=3);\n"
      "%6 = take(%5, const(Tensor[(5), int64], [0, 3, 1, 4, 2]), axis=3);\n"
      "%7 = reshape(%6, newshape=[1, 1, 5]);\n%7\n");
}

TEST(OnnxVolume, RefusedUses) {
  const auto pool = [](const char* op, std::vector<Message> attributes) {
    attributes.push_back(attr_ints("kernel_shape", {2, 2, 2}));
    return unary_refusal({op, std::move(attributes), 19, kFloat, {1, 2, 3, 4, 4}});
  };
  EXPECT_EQ(unary_refusal({"AveragePool",
                           {attr_ints("kernel_shape", {2, 2}), attr_ints("dilations", {9, 8})},
                           19,
                           kFloat,
                           {1, 1, 20, 20}}),
            kList + "AveragePool with dilations with more than 64 phases; make them smaller ('y')");
  for (const std::vector<int64_t>& pads : {std::vector<int64_t>{4, 0}, {0, 4}, {1, 1}}) {
    EXPECT_EQ(
        unary_refusal({"AveragePool",
                       {attr_ints("kernel_shape", {2}), attr_ints("dilations", {3}), attr_ints("pads", pads)},
                       19,
                       kFloat,
                       {1, 1, 2}}),
        kList + "AveragePool with a window that lies in the padding; give it fewer pads ('y')");
  }
  EXPECT_EQ(pool("MaxPool", {attr_ints("pads", {-1, 0, 0, 0, 0, 0})}),
            kList + "MaxPool with negative pads; cut the data with Slice ('y')");
  EXPECT_EQ(pool("MaxPool", {attr_ints("dilations", {1, 1, 2}), attr_ints("pads", {0, 0, 9, 0, 0, 0})}),
            kList + "MaxPool with a window that lies in the padding; give it fewer pads ('y')");
  const auto expect_invalid = [](const std::string& text, const char* reason) {
    EXPECT_EQ(text.rfind(kInvalid, 0), 0u) << text;
    EXPECT_NE(text.find(reason), std::string::npos) << text;
  };
  expect_invalid(pool("MaxPool", {attr_ints("strides", {1, 1})}), "has 2 values, expected 3");
  expect_invalid(pool("MaxPool", {attr_ints("dilations", {4, 1, 1})}), "does not fit an axis of 3");
  expect_invalid(pool("MaxPool", {attr_string("auto_pad", "UP")}), "attribute 'auto_pad' is 'UP'");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_volume_test
