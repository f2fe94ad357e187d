// Operators whose meaning or form changed between opsets: each version is read as its own.
#include <gtest/gtest.h>

#include "src/packer/import/onnx/op_context.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_versions_test {
namespace {

TEST(OnnxVersions, ClipHasAttributesThenInputs) {
  EXPECT_EQ(unary_body({"Clip", {attr_float("min", 0), attr_float("max", 6)}, 10}),
            "%0 = clip(%x, a_min=0f, a_max=6f);\n%0\n");
  const auto model = [](const Names& inputs) {
    OnnxBuilder b(11);
    b.input("x", kFloat, {2}).input("v", kFloat, {}).scale("lo", -1).scale("hi", 6);
    b.node("Clip", inputs, {"y"}).output("y", kFloat, {2});
    return import_body(b);
  };
  EXPECT_EQ(model({"x", "lo", "hi"}), "%0 = clip(%x, a_min=-1f, a_max=6f);\n%0\n");
  EXPECT_EQ(model({"x", "", "hi"}), "%0 = clip(%x, a_min=-3.4028235e+38f, a_max=6f);\n%0\n");
  EXPECT_EQ(model({"x", "hi", "lo"}), "%0 = clip(%x, a_min=-1f, a_max=-1f);\n%0\n");  // the upper bound wins
  EXPECT_EQ(model({"x", "lo", "v"}), "%0 = maximum(%x, -1f);\n%1 = minimum(%0, %v);\n%1\n");
  EXPECT_EQ(unary_refusal({"Clip", {attr_float("min", 0)}, 11}), kList + "Clip with attribute 'min' ('y')");
  EXPECT_EQ(unary_body({.op = "Clip", .opset = 12, .type = kInt8}),
            "%0 = clip(%x, a_min=-128f, a_max=127f);\n%0\n");
}

TEST(OnnxVersions, SoftmaxFlattensBeforeOpset13) {
  EXPECT_EQ(unary_body({"Softmax", {}, 13}), "%0 = nn.softmax(%x, axis=3);\n%0\n");
  EXPECT_EQ(unary_body({"Softmax", {attr_int("axis", 1)}, 13}), "%0 = nn.softmax(%x, axis=1);\n%0\n");
  EXPECT_EQ(unary_body({"Softmax", {}, 12}),
            "%0 = reshape(%x, newshape=[1, 32]);\n%1 = nn.softmax(%0, axis=1);\n"
            "%2 = reshape(%1, newshape=[1, 2, 4, 4]);\n%2\n");
  EXPECT_EQ(unary_body({"Softmax", {attr_int("axis", -1)}, 12}), "%0 = nn.softmax(%x, axis=3);\n%0\n");
  EXPECT_EQ(unary_body({.op = "Softmax", .opset = 12, .shape = {1, 9, 1, 1}}),
            "%0 = nn.softmax(%x, axis=1);\n%0\n");
}

TEST(OnnxVersions, AxesAreAttributesThenInputs) {
  const Message axes = attr_ints("axes", {0});
  EXPECT_EQ(unary_body({"Squeeze", {axes}, 12}), "%0 = reshape(%x, newshape=[2, 4, 4]);\n%0\n");
  EXPECT_EQ(unary_body({"Unsqueeze", {axes}, 12}), "%0 = reshape(%x, newshape=[1, 1, 2, 4, 4]);\n%0\n");
  EXPECT_EQ(unary_refusal({"Squeeze", {axes}, 13}), kList + "Squeeze with attribute 'axes' ('y')");
  EXPECT_EQ(unary_body({"ReduceMean", {axes}, 17}), "%0 = mean(%x, axis=[0], keepdims=True);\n%0\n");
  EXPECT_EQ(unary_body({.op = "ReduceMean", .opset = 18, .ints = {{0}}}),
            "%0 = mean(%x, axis=[0], keepdims=True);\n%0\n");
  EXPECT_EQ(unary_body({"ReduceMean", {attr_int("noop_with_empty_axes", 1)}, 18}), "%x\n");
  EXPECT_EQ(unary_refusal({"ReduceMean", {axes}, 18}), kList + "ReduceMean with attribute 'axes' ('y')");
}

TEST(OnnxVersions, SliceAndPadHaveAttributesThenInputs) {
  EXPECT_EQ(
      unary_body({"Slice", {attr_ints("starts", {1}), attr_ints("ends", {3}), attr_ints("axes", {2})}, 9}),
      "%0 = strided_slice(%x, begin=[1], end=[3], axes=[2]);\n%0\n");
  const std::vector<int64_t> pads{0, 0, 1, 1, 0, 0, 2, 2};
  const std::string padded = "%0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [1, 2]]);\n%0\n";
  EXPECT_EQ(unary_body({"Pad", {attr_ints("pads", pads)}, 10}), padded);
  EXPECT_EQ(unary_body({.op = "Pad", .opset = 11, .ints = {pads}}), padded);
  OnnxBuilder b(18);
  b.input("x", kFloat, {1, 2, 4, 4}).ints("p", {1, 1, 2, 2}).ints("a", {-2, 3});
  b.node("Pad", {"x", "p", "", "a"}, {"y"}).output("y", kFloat, {1, 2, 7, 7});
  EXPECT_EQ(import_body(b), padded);
}

TEST(OnnxVersions, SplitSizesAreAnAttributeThenAnInput) {
  const auto model = [](int64_t opset, const std::vector<Message>& attributes, int outputs) {
    OnnxBuilder b(opset);
    Names names;
    for (int i = 0; i < outputs; ++i) names.push_back("y" + std::to_string(i));
    b.input("x", kFloat, {7}).node("Split", {"x"}, names, attributes);
    b.graph().message(12, Message().bytes(1, "y0"));
    return b;
  };
  EXPECT_EQ(import_body(model(11, {attr_ints("split", {3, 4})}, 2)),
            "%0 = split(%x, indices_or_sections=[3]);\n%0.0\n");
  EXPECT_EQ(refusal(model(13, {}, 2)),
            kInvalid + "node 0 Split 'y0': extent 7 does not split into 2 equal parts");
  // From opset 18 on the last part may be smaller.
  EXPECT_EQ(import_body(model(18, {attr_int("num_outputs", 2)}, 2)),
            "%0 = split(%x, indices_or_sections=[4]);\n%0.0\n");
  EXPECT_EQ(refusal(model(18, {attr_int("num_outputs", 3)}, 2)),
            kInvalid + "node 0 Split 'y0': attribute 'num_outputs' is 3, but the node has 2 outputs");
}

TEST(OnnxVersions, ReshapeAllowsZeroFrom14) {
  EXPECT_EQ(
      unary_body({.op = "Reshape", .attributes = {attr_int("allowzero", 0)}, .opset = 14, .ints = {{0, 32}}}),
      "%0 = reshape(%x, newshape=[1, 32]);\n%0\n");
  EXPECT_EQ(
      unary_refusal(
          {.op = "Reshape", .attributes = {attr_int("allowzero", 1)}, .opset = 14, .ints = {{0, 32}}}),
      kInvalid + "node 0 Reshape 'y': shape [0, 32] for data of shape [1, 2, 4, 4]: 32 elements become 0");
}

TEST(OnnxVersions, ArithmeticBroadcastsByAttributesBefore7) {
  const auto model = [](const std::vector<int64_t>& rhs, const std::vector<Message>& attributes) {
    OnnxBuilder b(6);
    b.input("x", kFloat, {2, 3, 4}).input("v", kFloat, rhs).node("Mul", {"x", "v"}, {"y"}, attributes);
    return b.output("y", kFloat, {2, 3, 4});
  };
  EXPECT_EQ(import_body(model({3}, {attr_int("broadcast", 1), attr_int("axis", 1)})),
            "%0 = reshape(%v, newshape=[3, 1]);\n%1 = multiply(%x, %0);\n%1\n");
  EXPECT_EQ(import_body(model({3, 4}, {attr_int("broadcast", 1)})), "%0 = multiply(%x, %v);\n%0\n");
  EXPECT_EQ(refusal(model({4}, {})), kInvalid +
                                         "node 0 Mul 'y': the operands are Tensor[(2, 3, 4), float32] and "
                                         "Tensor[(4), float32]");
}

TEST(OnnxVersions, DropoutInTrainingIsRefused) {
  EXPECT_EQ(unary_body({"Dropout", {attr_float("ratio", 0.3f)}, 10}), "%x\n");
  OnnxBuilder b(13);
  b.input("x", kFloat, {2}).scale("r", 0.5f).constant<uint8_t>("t", kBool, {}, {1});
  b.node("Dropout", {"x", "r", "t"}, {"y"}).output("y", kFloat, {2});
  EXPECT_EQ(refusal(b), kList + "Dropout with training_mode ('y')");
}

TEST(OnnxVersions, ResizeOfOpset10IsAsymmetric) {
  OnnxBuilder b(10);
  b.input("x", kFloat, {1, 1, 2, 2}).constant<float>("s", kFloat, {4}, {1, 1, 2, 2});
  b.node("Resize", {"x", "s"}, {"y"}, {attr_string("mode", "linear")}).output("y", kFloat, {1, 1, 4, 4});
  EXPECT_EQ(import_body(b),
            "%0 = image.resize2d(%x, size=[4, 4], coordinate_transformation_mode=\"asymmetric\", "
            "contract=\"f32e\");\n%0\n");
}

// No attribute says how positions are rounded: up along an axis that shrinks, down along others. Expected:
// the positions of ONNX's own case resize_downsample_nearest, 0 and 1.67, and of others by hand.
TEST(OnnxVersions, ResizeOfOpset10ToTheNearestRoundsUpWhereItShrinks) {
  const auto body = [](const std::vector<int64_t>& shape, const std::vector<float>& scales) {
    OnnxBuilder b(10);
    b.input("x", kFloat, shape).constant<float>("s", kFloat, {std::ssize(scales)}, scales);
    b.node("Resize", {"x", "s"}, {"y"}, {attr_string("mode", "nearest")});
    b.graph().message(12, Message().bytes(1, "y"));
    return import_body(b);
  };
  EXPECT_EQ(body({1, 1, 2, 4}, {1, 1, 0.6f, 0.6f}),
            "%0 = take(%x, const(Tensor[(1), int64], [0]), axis=2);\n"
            "%1 = take(%0, const(Tensor[(2), int64], [0, 2]), axis=3);\n%1\n");
  // 0, 0.67, 1.33; 0, 1.33, 2.67
  EXPECT_EQ(body({1, 1, 2, 4}, {1, 1, 1.5f, 0.75f}),
            "%0 = take(%x, const(Tensor[(3), int64], [0, 0, 1]), axis=2);\n"
            "%1 = take(%0, const(Tensor[(3), int64], [0, 2, 3]), axis=3);\n%1\n");
}

TEST(OnnxVersions, OlderThanTheOldestKnownIsRefusedByName) {
  EXPECT_EQ(unary_refusal({"LeakyRelu", {}, 5}), kList + "LeakyRelu of opset 5 (known from 6 on) ('y')");
  EXPECT_EQ(unary_refusal({"HardSwish", {}, 13}), kList + "HardSwish of opset 13 (known from 14 on) ('y')");
}

// A row twice, or versions the wrong way round, would not be found otherwise.
TEST(OnnxVersions, RowsAreSortedAndInOrder) {
  const auto rows = onnx::rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(rows[i].oldest, rows[i].newest) << rows[i].op_type;
    EXPECT_LE(rows[i].newest, 25) << rows[i].op_type;
    if (i == 0) continue;
    EXPECT_LT(std::pair(rows[i - 1].domain, rows[i - 1].op_type), std::pair(rows[i].domain, rows[i].op_type));
  }
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_versions_test
