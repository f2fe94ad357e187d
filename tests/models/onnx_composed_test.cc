// Functions that ONNX defines by other operators, and forms that are others with their data moved or turned
// around, through a plan. Numbers that are written out are ONNX Runtime's; functions are in double.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_composed_test {
namespace {

using namespace onnx_run;  // NOLINT: the words of these models

using AddInputs = std::function<void(OnnxBuilder&, Names&)>;

AddInputs floats(const std::vector<std::vector<float>>& constants) {
  return [constants](OnnxBuilder& b, Names& inputs) {
    for (const std::vector<float>& values : constants) {
      inputs.push_back("f" + std::to_string(inputs.size()));
      b.constant(inputs.back(), kFloat, {static_cast<int64_t>(values.size())}, values);
    }
  };
}
AddInputs ints(const std::vector<int64_t>& values, size_t absent = 0) {
  return [values, absent](OnnxBuilder& b, Names& inputs) {
    for (size_t i = 0; i < absent; ++i) inputs.emplace_back();
    b.ints("ints", values);
    inputs.emplace_back("ints");
  };
}

double softplus(double x) { return std::log1p(std::exp(x)); }
double swish(double x, double alpha) { return x / (1 + std::exp(-alpha * x)); }

TEST(OnnxComposed, OfOneElement) {
  expect_near(run<float>({.op = "Mish", .opset = 18}, kFloat, kShape, kX),
              mapped(kX, [](double x) { return x * std::tanh(softplus(x)); }), "Mish");
  expect_near(run<float>({.op = "Swish", .opset = 24}, kFloat, kShape, kX),
              mapped(kX, [](double x) { return swish(x, 1); }), "Swish");
  expect_near(run<float>({.op = "QuickGelu", .domain = "com.microsoft"}, kFloat, kShape, kX),
              mapped(kX, [](double x) { return swish(x, 1.702); }), "QuickGelu");
  expect_near(run<float>({"Celu"}, kFloat, kShape, kX),
              mapped(kX, [](double x) { return x < 0 ? std::expm1(x) : x; }), "Celu");
  expect_near(run<float>({"Celu", {attr_float("alpha", 0.5f)}}, kFloat, kShape, kX),
              mapped(kX, [](double x) { return x < 0 ? 0.5 * std::expm1(x / 0.5) : x; }), "Celu of 0.5");
  EXPECT_EQ(run<float>({"ThresholdedRelu", {attr_float("alpha", 0.125f)}}, kFloat, kShape, kX),
            (std::vector<float>{0, 0, 0, 0, 0.75f, 3}));
}

TEST(OnnxComposed, HardmaxIsOneAtTheFirstOfTheLargest) {
  const std::vector<float> x = {1, 3, 3, 2, 0, 2};
  EXPECT_EQ(run<float>({"Hardmax"}, kFloat, kShape, x), (std::vector<float>{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(run<float>({"Hardmax", {attr_int("axis", 0)}}, kFloat, kShape, x),
            (std::vector<float>{0, 1, 1, 1, 0, 0}));
  // Before opset 13 the axes from this one on are one.
  EXPECT_EQ(
      run<float>({.op = "Hardmax", .attributes = {attr_int("axis", 0)}, .opset = 11}, kFloat, kShape, x),
      (std::vector<float>{0, 1, 0, 0, 0, 0}));
}

TEST(OnnxComposed, ReductionsOfFunctions) {
  const auto row = [](const char* op) {
    return run<float>({op, {attr_ints("axes", {1}), attr_int("keepdims", 0)}}, kFloat, kShape, kX);
  };
  expect_near(row("ReduceL1"), {3.75, 3.875}, "ReduceL1");
  expect_near(row("ReduceSumSquare"), {7.3125, 9.578125}, "ReduceSumSquare");
  expect_near(row("ReduceL2"), {std::sqrt(7.3125), std::sqrt(9.578125)}, "ReduceL2");
  expect_near(row("ReduceLogSumExp"),
              {std::log(std::exp(-2.5) + std::exp(-1) + std::exp(-0.25)),
               std::log(std::exp(0.125) + std::exp(0.75) + std::exp(3))},
              "ReduceLogSumExp");
  expect_near(run<float>({.op = "ReduceLogSum", .opset = 18}, kFloat, {2, 2}, std::vector<float>{1, 2, 3, 4},
                         ints({0})),
              {std::log(4.0), std::log(6.0)}, "ReduceLogSum");
}

TEST(OnnxComposed, TheLogarithmOfASumOfExponentialsDoesNotOverflow) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> found = run<float>({"ReduceLogSumExp", {attr_ints("axes", {1})}}, kFloat, {3, 2},
                                              std::vector<float>{300, 300, -kInf, -kInf, 1, kInf});
  EXPECT_NEAR(found[0], 300 + std::log(2.0), 1e-4);
  EXPECT_EQ(found[1], -kInf);
  EXPECT_EQ(found[2], kInf);
}

TEST(OnnxComposed, SumsOfConstantsAreComputedOnImport) {
  OnnxBuilder b(18);
  b.input("x", kFloat, {2}).constant<float>("c", kFloat, {2}, {3, -4}).node("ReduceL2", {"c"}, {"n"});
  b.node("Mul", {"x", "n"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(import_body(b), "%0 = multiply(%x, const(Tensor[(1), float32], [5]));\n%0\n");
}

TEST(OnnxComposed, NormalizationsOfGroupsAndByTheRootMeanSquare) {
  const std::vector<float> x = {-2.5f, -1, -0.25f, 0.125f, 0.75f, 3, 1, -4};
  const std::vector<Message> groups = {attr_int("num_groups", 2)};
  expect_near(run<float>({.op = "GroupNormalization", .attributes = groups, .opset = 21}, kFloat, {1, 4, 2},
                         x, floats({{1, 2, -1, 0.5f}, {0, 1, 0, -1}})),
              {-1.58525038, -0.0932500213, 2.30550051, 3.05150056, -0.218861997, -1.09431005, -0.841933012,
               -1.81465292},
              "one scale per channel");
  expect_near(
      run<float>({.op = "GroupNormalization", .attributes = groups, .opset = 18}, kFloat, {1, 4, 2}, x,
                 floats({{1, 2}, {0, 1}})),
      {-1.58525038, -0.0932500213, 0.652750194, 1.02575028, 1.43772399, 3.18862009, 1.63226795, -2.25861192},
      "one scale per group");
  expect_near(run<float>({.op = "RMSNormalization", .opset = 23}, kFloat, kShape, kX, floats({{1, 2, -1}})),
              {-1.60127819, -1.28102255, 0.160127819, 0.0699567646, 0.839481175, -1.67896235},
              "RMSNormalization");
}

TEST(OnnxComposed, FusedMatMul) {
  const std::vector<float> w = {1, -2, 3, 4, -5, 6};
  const auto product = [&](const std::vector<Message>& attributes, const std::vector<int64_t>& shape,
                           const std::vector<int64_t>& of_w) {
    return run<float>({"FusedMatMul", attributes, "com.microsoft"}, kFloat, shape, kX,
                      [&](OnnxBuilder& b, Names& inputs) {
                        b.constant("w", kFloat, of_w, w);
                        inputs.emplace_back("w");
                      });
  };
  std::vector<double> expected;
  for (size_t r = 0; r < 2; ++r) {
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += static_cast<double>(kX[r * 3 + k]) * w[c * 3 + k];
      expected.push_back(sum / 2);
    }
  }
  expect_near(product({attr_int("transB", 1), attr_float("alpha", 0.5f)}, {2, 3}, {2, 3}), expected,
              "transB");
  expected.clear();
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      expected.push_back(static_cast<double>(kX[r]) * w[c] + static_cast<double>(kX[3 + r]) * w[3 + c]);
    }
  }
  expect_near(product({attr_int("transA", 1)}, {2, 3}, {2, 3}), expected, "transA");
}

TEST(OnnxComposed, UpsampleIsResize) {
  const std::vector<float> scales = {1, 1, 2, 2};
  const std::vector<double> twice = {-2.5,   -1.75, -1,    -0.625, -0.25, -0.25,  -1.1875, -0.65625,
                                     -0.125, 0.625, 1.375, 1.375,  0.125, 0.4375, 0.75,    1.875,
                                     3,      3,     0.125, 0.4375, 0.75,  1.875,  3,       3};
  const Message linear = attr_string("mode", "linear");
  expect_near(
      run<float>({"Upsample", {linear, attr_floats("scales", scales)}, "", 7}, kFloat, {1, 1, 2, 3}, kX),
      twice, "opset 7");
  expect_near(run<float>({"Upsample", {linear}, "", 9}, kFloat, {1, 1, 2, 3}, kX, floats({scales})), twice,
              "opset 9");
  EXPECT_EQ(run<float>({"Upsample", {}, "", 9}, kFloat, {1, 1, 2, 3}, kX, floats({{1, 1, 1, 2}})),
            (std::vector<float>{-2.5f, -2.5f, -1, -1, -0.25f, -0.25f, 0.125f, 0.125f, 0.75f, 0.75f, 3, 3}));
}

TEST(OnnxComposed, LinearResizeOfLowerRanks) {
  const Message linear = attr_string("mode", "linear");
  const Message corners = attr_string("coordinate_transformation_mode", "align_corners");
  expect_near(run<float>({"Resize", {linear}}, kFloat, {1, 2, 3}, kX, ints({1, 2, 5}, 2)),
              {-2.5, -1.89999986, -1, -0.549999893, -0.25, 0.125, 0.375, 0.75, 2.10000038, 3}, "width");
  expect_near(run<float>({"Resize", {linear, corners}}, kFloat, {1, 2, 3}, kX, ints({1, 3, 5}, 2)),
              {-2.5, -1.75, -1, -0.625, -0.25, -1.1875, -0.65625, -0.125, 0.625, 1.375, 0.125, 0.4375, 0.75,
               1.875, 3},
              "height and width of rank 3");
  expect_near(run<float>({"Resize", {linear, corners}}, kFloat, {2, 3}, kX, ints({3, 5}, 2)),
              {-2.5, -1.75, -1, -0.625, -0.25, -1.1875, -0.65625, -0.125, 0.625, 1.375, 0.125, 0.4375, 0.75,
               1.875, 3},
              "rank 2");
}

TEST(OnnxComposed, NegativePadsCut) {
  const auto padded = [](const char* mode) {
    return run<float>({"Pad", {attr_string("mode", mode)}, "", 13}, kFloat, kShape, kX, ints({0, -1, 1, 2}));
  };
  EXPECT_EQ(padded("constant"), (std::vector<float>{-1, -0.25f, 0, 0, 0.75f, 3, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(padded("edge"), (std::vector<float>{-1, -0.25f, -0.25f, -0.25f, 0.75f, 3, 3, 3, 0.75f, 3, 3, 3}));
  EXPECT_EQ(run<float>({"Pad", {}, "", 13}, kFloat, kShape, kX, ints({-1, 0, 0, -1})),
            (std::vector<float>{0.125f, 0.75f}));
  EXPECT_EQ(unary_refusal({.op = "Pad", .shape = {2, 3}, .ints = {{-1, 0, -1, 0}}}),
            kList + "Pad with pads that leave nothing of the data ('y')");
}

TEST(OnnxComposed, TheSmallestElementsAlongAnyAxis) {
  const auto top = [](int type, const std::vector<int64_t>& shape, const std::vector<uint8_t>& x,
                      const std::vector<Message>& attributes) {
    OnnxBuilder b(17);
    b.input("x", type, shape).ints("k", {2}).node("TopK", {"x", "k"}, {"values", "positions"}, attributes);
    b.graph().message(12, Message().bytes(1, "values")).message(12, Message().bytes(1, "positions"));
    ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
    return session.run({x});
  };
  const Message smallest = attr_int("largest", 0), first = attr_int("axis", 0);
  const std::vector<float> x = {1, 0, 1, 5, 0, 3, 0, 0};  // [4, 2]
  auto found = top(kFloat, {4, 2}, bytes_of(x), {smallest, first});
  EXPECT_EQ(values_of<float>(found[0]), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(values_of<int64_t>(found[1]), (std::vector<int64_t>{2, 0, 3, 3}));
  found = top(kFloat, {4, 2}, bytes_of(x), {first});
  EXPECT_EQ(values_of<float>(found[0]), (std::vector<float>{1, 5, 1, 3}));
  EXPECT_EQ(values_of<int64_t>(found[1]), (std::vector<int64_t>{0, 1, 1, 2}));
  const std::vector<int32_t> integers = {INT32_MAX, 7, INT32_MIN, -1};
  found = top(kInt32, {4}, bytes_of(integers), {smallest});
  EXPECT_EQ(values_of<int32_t>(found[0]), (std::vector<int32_t>{INT32_MIN, -1}));
  EXPECT_EQ(values_of<int64_t>(found[1]), (std::vector<int64_t>{2, 3}));
}

// (x - 120) * 0.02 by weights with a zero point of their own for each output, + bias: by hand, in double.
TEST(OnnxComposed, QLinearConvWithZeroPointsPerChannel) {
  const std::vector<uint8_t> x = {120, 130, 100, 255, 0, 121};  // [1, 2, 1, 3]
  const std::vector<uint8_t> w = {10, 200, 130, 90};            // [2, 2, 1, 1]
  const std::vector<uint8_t> zero_points = {100, 128};
  const std::vector<float> scales = {0.5f, 0.25f};
  const std::vector<int32_t> bias = {100, -300};
  OnnxBuilder b(17);
  b.input("x", kUint8, {1, 2, 1, 3}).scale("xs", 0.02f).constant<uint8_t>("xz", kUint8, {}, {120});
  b.constant("w", kUint8, {2, 2, 1, 1}, w).constant("ws", kFloat, {2}, scales);
  b.constant("wz", kUint8, {2}, zero_points).scale("ys", 4).constant<uint8_t>("yz", kUint8, {}, {128});
  b.constant("b", kInt32, {2}, bias);
  b.node("QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"}, {"y"});
  ModelSession session(packed(b.output("y", kUint8, {1, 2, 1, 3})), QPLAN_ISA_AUTO, 1);
  std::vector<uint8_t> expected;
  for (size_t o = 0; o < 2; ++o) {
    for (size_t p = 0; p < 3; ++p) {
      double sum = bias[o];
      for (size_t i = 0; i < 2; ++i) sum += (x[i * 3 + p] - 120.0) * (w[o * 2 + i] - zero_points[o]);
      const double real = sum * double{0.02f} * static_cast<double>(scales[o]);
      expected.push_back(static_cast<uint8_t>(std::clamp(std::nearbyint(real / 4) + 128, 0.0, 255.0)));
    }
  }
  EXPECT_EQ(session.run({x}).at(0), expected);
}

TEST(OnnxComposed, QGemmWithAFactorAndWithFloatOutput) {
  const std::vector<uint8_t> x = {130, 100, 255, 0, 121, 119};
  const std::vector<int8_t> w = {1, -2, 3, 4, -5, 6};  // [3, 2]
  const std::vector<int32_t> bias = {100, -300};
  for (const bool is_float : {true, false}) {
    OnnxBuilder b(17);
    b.import_opset("com.microsoft", 1).input("x", kUint8, {2, 3}).scale("xs", 0.02f);
    b.constant<uint8_t>("xz", kUint8, {}, {120}).constant("w", kInt8, {3, 2}, w).scale("ws", 0.5f);
    b.zero_point("wz", 0).constant("b", kInt32, {2}, bias);
    b.scale("ys", 0.13f).constant<uint8_t>("yz", kUint8, {}, {128});
    Names inputs = {"x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"};
    if (is_float) inputs.resize(7);
    b.node("QGemm", inputs, {"y"}, {attr_float("alpha", 0.75f)}, "com.microsoft");
    ModelSession session(packed(b.output("y", is_float ? kFloat : kUint8, {2, 2})), QPLAN_ISA_AUTO, 1);
    std::vector<double> reals;
    std::vector<uint8_t> quantized;
    for (size_t r = 0; r < 2; ++r) {
      for (size_t c = 0; c < 2; ++c) {
        double sum = bias[c];
        for (size_t k = 0; k < 3; ++k) sum += (x[r * 3 + k] - 120.0) * w[k * 2 + c];
        reals.push_back(sum * 0.75 * double{0.02f} * 0.5);
        quantized.push_back(
            static_cast<uint8_t>(std::clamp(std::nearbyint(reals.back() / double{0.13f}) + 128, 0.0, 255.0)));
      }
    }
    const std::vector<uint8_t> found = session.run({x}).at(0);
    if (is_float) {
      expect_near(values_of<float>(found), reals, "QGemm");
    } else {
      EXPECT_EQ(found, quantized);
    }
  }
}

}  // namespace
}  // namespace qplan::testing::onnx_composed_test
