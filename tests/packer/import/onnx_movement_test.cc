// The IR of operators that move elements: shapes, parts, joins and resizes.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_movement_test {
namespace {

TEST(OnnxMovement, BlocksMoveBetweenChannelsAndSpace) {
  EXPECT_NE(unary_body({"SpaceToDepth", {attr_int("blocksize", 2)}}).find("transpose("), std::string::npos);
  OnnxBuilder b;
  b.input("x", kFloat, {1, 8, 1, 1}).node("DepthToSpace", {"x"}, {"y"}, {attr_int("blocksize", 2)});
  b.output("y", kFloat, {1, 2, 2, 2});
  EXPECT_NE(import_body(b).find("transpose("), std::string::npos) << import_body(b);
}

TEST(OnnxMovement, ShapesOnly) {
  EXPECT_EQ(unary_body({.op = "Reshape", .ints = {{0, -1, 2}}}),
            "%0 = reshape(%x, newshape=[1, 16, 2]);\n%0\n");
  EXPECT_EQ(unary_body({"Flatten", {attr_int("axis", 3)}}), "%0 = reshape(%x, newshape=[8, 4]);\n%0\n");
  EXPECT_EQ(unary_body({"Flatten", {attr_int("axis", -4)}}), "%0 = reshape(%x, newshape=[1, 32]);\n%0\n");
  EXPECT_EQ(unary_body({"Squeeze"}), "%0 = reshape(%x, newshape=[2, 4, 4]);\n%0\n");
  EXPECT_EQ(unary_body({.op = "Squeeze", .ints = {{-4}}}), "%0 = reshape(%x, newshape=[2, 4, 4]);\n%0\n");
  EXPECT_EQ(unary_body({.op = "Unsqueeze", .ints = {{0, -1}}}),
            "%0 = reshape(%x, newshape=[1, 1, 2, 4, 4, 1]);\n%0\n");
  EXPECT_EQ(unary_body({"Transpose"}), "%0 = transpose(%x, axes=[3, 2, 1, 0]);\n%0\n");
  EXPECT_EQ(unary_body({"Transpose", {attr_ints("perm", {0, 2, 3, 1})}}),
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n%0\n");
}

TEST(OnnxMovement, ReshapeSaysWhatDoesNotFit) {
  const auto refused = [](const std::vector<int64_t>& shape) {
    const std::string text = unary_refusal({.op = "Reshape", .ints = {shape}});
    const std::string place = kInvalid + "node 0 Reshape 'y': shape ";
    return text.starts_with(place) ? text.substr(place.size()) : text;
  };
  EXPECT_EQ(refused({-1, -1}), "[-1, -1] for data of shape [1, 2, 4, 4]: -1 is given twice");
  EXPECT_EQ(refused({7}), "[7] for data of shape [1, 2, 4, 4]: 32 elements become 7");
  EXPECT_EQ(refused({3, -1}), "[3, -1] for data of shape [1, 2, 4, 4]: -1 would not be a whole number");
  EXPECT_EQ(
      refused({1, 2, 4, 4, 0}),
      "[1, 2, 4, 4, 0] for data of shape [1, 2, 4, 4]: 0 is given for an axis that the data does not have");
  EXPECT_EQ(refused({-2}), "[-2] for data of shape [1, 2, 4, 4]: a negative extent");
  EXPECT_EQ(refused({INT64_MAX, 4}),
            "[9223372036854775807, 4] for data of shape [1, 2, 4, 4]: too many elements");
}

// What the positions of a take are, one axis of a counted vector after the other: ONNX's definitions by hand.
TEST(OnnxParts, RepeatsAndPadsAreTakes) {
  const auto positions = [](const std::string& op, std::vector<Message> attributes, std::vector<int64_t> ints,
                            std::vector<int64_t> shape) {
    OnnxBuilder b;
    b.input("x", kFloat, {4})
        .ints("c", ints)
        .node(op, {"x", "c"}, {"y"}, attributes)
        .output("y", kFloat, shape);
    const std::string body = import_body(b);
    const size_t begin = body.rfind('['), end = body.rfind(']');
    return begin == std::string::npos ? body : body.substr(begin, end - begin + 1);
  };
  EXPECT_EQ(positions("Tile", {}, {2}, {8}), "[0, 1, 2, 3, 0, 1, 2, 3]");
  EXPECT_EQ(positions("Pad", {attr_string("mode", "reflect")}, {2, 1}, {7}), "[2, 1, 0, 1, 2, 3, 2]");
  EXPECT_EQ(positions("Pad", {attr_string("mode", "edge")}, {2, 1}, {7}), "[0, 0, 0, 1, 2, 3, 3]");
  EXPECT_EQ(positions("Pad", {attr_string("mode", "wrap")}, {2, 1}, {7}), "[2, 3, 0, 1, 2, 3, 0]");
  EXPECT_EQ(positions("Expand", {}, {1}, {4}), "%x\n");
}

TEST(OnnxParts, ConcatSplitSliceGatherPad) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 6}).ints("sizes", {1, 2, 3}).ints("i", {-1, 0});
  b.node("Split", {"x", "sizes"}, {"a", "b", "c"}, {attr_int("axis", 1)});
  b.node("Split", {"x"}, {"d", "e"}, {attr_int("axis", -1)});
  b.node("Concat", {"a", "b", "d"}, {"f"}, {attr_int("axis", -1)});
  b.ints("begin", {5, INT64_MAX}).ints("end", {INT64_MIN, 0}).ints("axes", {1, 0}).ints("steps", {-2, -1});
  b.node("Slice", {"f", "begin", "end", "axes", "steps"}, {"g"});
  b.node("Gather", {"g", "i"}, {"h"}, {attr_int("axis", 1)});
  b.ints("pads", {0, 1, 2, 0}).constant<float>("v", kFloat, {1}, {1.5f});
  b.node("Pad", {"h", "pads", "v"}, {"y"}).output("y", kFloat, {3, 3});
  EXPECT_EQ(import_body(b),
            "%0 = split(%x, indices_or_sections=[1, 3], axis=1);\n"
            "%1 = split(%x, indices_or_sections=2, axis=1);\n"
            "%2 = concatenate((%0.0, %0.1, %1.0), axis=1);\n"
            "%3 = strided_slice(%2, begin=[5, 9223372036854775807], end=[-9223372036854775808, 0], "
            "strides=[-2, -1], axes=[1, 0]);\n"
            "%4 = take(%3, const(Tensor[(2), int64], [-1, 0]), axis=1, mode=\"fast\");\n"
            "%5 = nn.pad(%4, 1.5f, pad_width=[[0, 2], [1, 0]]);\n%5\n");
}

// The specification clamps it to the first element; NumPy's slice would be empty.
TEST(OnnxParts, ABackwardSliceFromBeforeTheFirstElementIsThatElement) {
  EXPECT_EQ(unary_body({.op = "Slice", .ints = {{-100}, {INT64_MIN}, {3}, {-1}}}),
            "%0 = strided_slice(%x, begin=[-4], end=[-9223372036854775808], strides=[-1], axes=[3]);\n%0\n");
}

TEST(OnnxParts, NegativePadsCutAndUnknownModesAreRefused) {
  EXPECT_EQ(
      unary_refusal(
          {.op = "Pad", .attributes = {attr_string("mode", "mirror")}, .ints = {{0, 0, 1, 0, 0, 0, 0, 0}}}),
      kList + "Pad with mode 'mirror' ('y')");
  EXPECT_EQ(unary_body({.op = "Pad", .ints = {{0, 0, -1, 0, 0, 0, 0, 0}}}),
            "%0 = strided_slice(%x, begin=[0, 0, 1, 0], end=[1, 2, 4, 4]);\n%0\n");
  EXPECT_EQ(unary_body({.op = "Pad", .ints = {{0, 0, 0, 0, 0, 0, 0, 0}}}), "%x\n");
}

TEST(OnnxParts, NothingLeftIsRefused) {
  EXPECT_EQ(unary_refusal({.op = "Slice", .ints = {{4}, {4}, {2}}}),
            kList + "Slice with a result without elements ('y')");
  EXPECT_EQ(unary_refusal({.op = "Slice", .ints = {{0}, {4}, {2}, {0}}}),
            kInvalid + "node 0 Slice 'y': attribute 'strides' has 0 for axis 2");
}

TEST(OnnxResize, BilinearOnly) {
  const auto model = [](const std::vector<Message>& attributes, const std::vector<float>& scales,
                        const std::vector<int64_t>& sizes) {
    OnnxBuilder b(13);
    b.input("x", kFloat, {1, 2, 4, 4}).constant("s", kFloat, {static_cast<int64_t>(scales.size())}, scales);
    b.ints("n", sizes)
        .node("Resize", sizes.empty() ? Names{"x", "", "s"} : Names{"x", "", "", "n"}, {"y"}, attributes);
    b.graph().message(12, Message().bytes(1, "y"));
    return b;
  };
  const Message linear = attr_string("mode", "linear");
  EXPECT_EQ(import_body(model({linear}, {1, 1, 2, 0.5f}, {})),
            "%0 = image.resize2d(%x, size=[8, 2], contract=\"f32e\");\n%0\n");
  EXPECT_EQ(import_body(model({linear, attr_string("coordinate_transformation_mode", "align_corners")}, {},
                              {1, 2, 5, 6})),
            "%0 = image.resize2d(%x, size=[5, 6], coordinate_transformation_mode=\"align_corners\", "
            "contract=\"f32e\");\n%0\n");
  EXPECT_EQ(import_body(model({linear, attr_string("coordinate_transformation_mode", "pytorch_half_pixel")},
                              {}, {1, 2, 5, 6})),
            "%0 = image.resize2d(%x, size=[5, 6], contract=\"f32e\");\n%0\n");
  EXPECT_EQ(refusal(model({linear, attr_string("coordinate_transformation_mode", "pytorch_half_pixel")}, {},
                          {1, 2, 1, 6})),
            kList +
                "Resize with coordinate_transformation_mode 'pytorch_half_pixel'; export it with half_pixel, "
                "align_corners or asymmetric ('y')");
  EXPECT_EQ(refusal(model({attr_string("mode", "cubic")}, {1, 1, 2, 2}, {})),
            kList + "Resize with mode 'cubic'; export it with linear or nearest ('y')");
  EXPECT_EQ(refusal(model({linear}, {1, 1, 1.3f, 2}, {})),
            kList +
                "Resize with scale 1.3 of extent 4, which is no whole number; give it sizes instead of "
                "scales ('y')");
  EXPECT_EQ(
      refusal(model({linear}, {1, 2, 2, 2}, {})),
      kList +
          "Resize with another axis than height and width; transpose it so that axes 2 and 3 change ('y')");
}

TEST(OnnxResize, BothScalesAndSizesAreNoModel) {
  const auto model = [](const std::vector<int64_t>& sizes) {
    OnnxBuilder b(13);
    b.input("x", kFloat, {1, 1, 2, 2}).constant<float>("s", kFloat, {4}, {1, 1, 2, 2}).ints("n", sizes);
    b.node("Resize", {"x", "", "s", "n"}, {"y"}, {attr_string("mode", "linear")});
    b.graph().message(12, Message().bytes(1, "y"));
    return b;
  };
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 1, 6, 6}, {1, 1, 4, 4}}) {
    EXPECT_EQ(refusal(model(sizes)),
              kInvalid + "node 0 Resize 'y': there are both scales and sizes, expected one of them");
  }
  EXPECT_EQ(import_body(model({})), "%0 = image.resize2d(%x, size=[4, 4], contract=\"f32e\");\n%0\n");
}

// The positions along an axis of 4 elements. Expected: ONNX's formulas by hand.
TEST(OnnxResize, NearestPositions) {
  const auto positions = [](const std::string& mode, const std::string& nearest, float scale, int64_t size) {
    OnnxBuilder b(13);
    b.input("x", kFloat, {4}).constant("s", kFloat, {1}, std::vector<float>{scale}).ints("n", {size});
    b.node("Resize", size == 0 ? Names{"x", "", "s"} : Names{"x", "", "", "n"}, {"y"},
           {attr_string("mode", "nearest"), attr_string("coordinate_transformation_mode", mode),
            attr_string("nearest_mode", nearest)});
    b.graph().message(12, Message().bytes(1, "y"));
    const std::string body = import_body(b);
    const size_t begin = body.rfind('['), end = body.rfind(']');
    return begin == std::string::npos ? body : body.substr(begin, end - begin + 1);
  };
  EXPECT_EQ(positions("asymmetric", "floor", 2, 0), "[0, 0, 1, 1, 2, 2, 3, 3]");
  EXPECT_EQ(positions("asymmetric", "ceil", 2, 0), "[0, 1, 1, 2, 2, 3, 3, 3]");
  // (i + 0.5) / 2 - 0.5: -0.25, 0.25, 0.75, ...
  EXPECT_EQ(positions("half_pixel", "round_prefer_floor", 2, 0), "[0, 0, 1, 1, 2, 2, 3, 3]");
  // 0, 0.75, 1.5, 2.25, 3: the half goes down or up
  EXPECT_EQ(positions("align_corners", "round_prefer_floor", 0, 5), "[0, 1, 1, 2, 3]");
  EXPECT_EQ(positions("align_corners", "round_prefer_ceil", 0, 5), "[0, 1, 2, 2, 3]");
  EXPECT_EQ(positions("pytorch_half_pixel", "floor", 0, 1), "[0]");
  EXPECT_EQ(positions("half_pixel", "floor", 0, 1), "[1]");  // 1.5
  // 2.6 elements become 2; of the centre 2 the two lie at 2 - 2 * 2 / 2.6 + (i + 0.5) / 0.65 - 0.5
  EXPECT_EQ(positions("half_pixel_symmetric", "round_prefer_floor", 0.65f, 0), "[1, 2]");
  EXPECT_EQ(positions("asymmetric", "round_prefer_floor", 0.6f, 0), "[0, 2]");  // 0, 1.67
  EXPECT_EQ(positions("asymmetric", "floor", 1, 0), "%x\n");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_movement_test
