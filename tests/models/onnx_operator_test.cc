// ONNX operators of which ../shared has no case, on float32 and bool: each as a model of its own, through a
// plan, against the formula written out in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/models/onnx_run.h"

namespace qplan::testing::onnx_operator_test {
namespace {

using namespace onnx_run;  // NOLINT: the words of these models

TEST(OnnxOperator, FunctionsOfOneElement) {
  const struct {
    const char* op;
    double (*function)(double);
  } functions[] = {
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Selu",
       [](double x) { return 1.0507010221481323 * (x < 0 ? 1.6732631921768188 * std::expm1(x) : x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
  };
  for (const auto& [op, function] : functions)
    expect_near(run<float>({op}, kFloat, kShape, kX), mapped(kX, function), op);
}

// A network whose weights, inputs and outputs are float16 is computed in float32.
TEST(OnnxOperator, HalfPrecisionIsComputedInFloat32) {
  for (const bool has_wide_ends : {true, false}) {
    OnnxBuilder b(13);
    b.input("x", has_wide_ends ? kFloat : kFloat16, kShape);
    // 0.5, -2, 1.25, 3; 2^-24, the smallest; and the weights of three inputs by two outputs.
    b.constant<uint16_t>("w", kFloat16, {3, 2}, {0x3800, 0xc000, 0x3d00, 0x4200, 0x0001, 0x3c00});
    b.constant<uint16_t>("c", kFloat16, {2}, {0x3555, 0x0000});  // 0.333251953125
    const std::string data = has_wide_ends ? "h" : "x", last = has_wide_ends ? "r" : "y";
    if (has_wide_ends) b.node("Cast", {"x"}, {"h"}, {attr_int("to", kFloat16)});
    b.node("Gemm", {data, "w", "c"}, {"g"}).node("Relu", {"g"}, {last});
    if (has_wide_ends) b.node("Cast", {"r"}, {"y"}, {attr_int("to", kFloat)});
    b.output("y", has_wide_ends ? kFloat : kFloat16, {2, 2});
    ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
    const double w[3][2] = {{0.5, -2}, {1.25, 3}, {0x1p-24, 1}}, c[2] = {0.333251953125, 0};
    std::vector<double> expected;
    for (size_t i = 0; i < 2; ++i) {
      for (size_t o = 0; o < 2; ++o) {
        double sum = c[o];
        for (size_t k = 0; k < 3; ++k) sum += w[k][o] * static_cast<double>(kX[i * 3 + k]);
        expected.push_back(std::max(sum, 0.0));
      }
    }
    expect_near(values_of<float>(session.run({bytes_of(kX)}).at(0)), expected, "float16");
  }
}

TEST(OnnxOperator, SignsOfNumbers) {
  const std::vector<float> y =
      run<float>({"Sign"}, kFloat, kShape, std::vector<float>{-2.5f, 0, -0.0f, 1e-30f, 3, -1});
  EXPECT_EQ(y, (std::vector<float>{-1, 0, 0, 1, 1, -1}));
  using Ints = std::vector<int32_t>;
  const Ints x = {-7, 0, 5, INT32_MAX, -1, 2};
  EXPECT_EQ(run<int32_t>({"Sign"}, kInt32, kShape, x), (Ints{-1, 0, 1, 1, -1, 1}));
  EXPECT_EQ(run<int32_t>({"Neg"}, kInt32, kShape, x), (Ints{7, 0, -5, -INT32_MAX, 1, -2}));
  EXPECT_EQ(run<int32_t>({"Abs"}, kInt32, kShape, x), (Ints{7, 0, 5, INT32_MAX, 1, 2}));
}

double gelu(double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double fast_gelu(double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

TEST(OnnxOperator, GeluOfOnnxRuntime) {
  const auto with_bias = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("bias", kFloat, {3}, {0.5f, -0.5f, 0});
    inputs.push_back("bias");
  };
  std::vector<float> shifted = kX;
  for (size_t i = 0; i < shifted.size(); ++i) shifted[i] += i % 3 == 0 ? 0.5f : i % 3 == 1 ? -0.5f : 0;
  expect_near(run<float>({.op = "Gelu", .domain = "com.microsoft"}, kFloat, kShape, kX), mapped(kX, gelu),
              "Gelu");
  expect_near(run<float>({.op = "BiasGelu", .domain = "com.microsoft"}, kFloat, kShape, kX, with_bias),
              mapped(shifted, gelu), "BiasGelu");
  expect_near(run<float>({.op = "FastGelu", .domain = "com.microsoft"}, kFloat, kShape, kX, with_bias),
              mapped(shifted, fast_gelu), "FastGelu");
}

TEST(OnnxOperator, ParametersBroadcast) {
  const auto factor = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("factor", kFloat, {3}, {0.1f, 2, -1});
    inputs.push_back("factor");
  };
  std::vector<double> expected;
  for (size_t i = 0; i < kX.size(); ++i) {
    const double f = i % 3 == 0 ? 0.1f : i % 3 == 1 ? 2 : -1;
    expected.push_back(kX[i] < 0 ? f * kX[i] : kX[i]);
  }
  expect_near(run<float>({"PRelu"}, kFloat, kShape, kX, factor), expected, "PRelu");
  for (const float exponent : {2.0f, 0.5f, 1.5f}) {
    const std::vector<float> x = {0.25f, 1, 2, 3, 4, 5};
    std::vector<double> powers;
    for (const float value : x) powers.push_back(std::pow(static_cast<double>(value), exponent));
    const auto constant = [&](OnnxBuilder& b, Names& inputs) {
      b.constant<float>("n", kFloat, {}, {exponent});
      inputs.push_back("n");
    };
    expect_near(run<float>({"Pow"}, kFloat, kShape, x, constant), powers, "Pow");
  }
  const auto two_more = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("a", kFloat, {3}, {1, 2, 3}).constant<float>("b", kFloat, {2, 1}, {10, 20});
    inputs.insert(inputs.end(), {"a", "b"});
  };
  std::vector<double> sums;
  for (size_t i = 0; i < kX.size(); ++i)
    sums.push_back(static_cast<double>(kX[i]) + static_cast<double>(i % 3 + 1) + (i < 3 ? 10 : 20));
  expect_near(run<float>({"Sum"}, kFloat, kShape, kX, two_more), sums, "Sum");
}

TEST(OnnxOperator, ReductionsAndRows) {
  const auto axis = [](OnnxBuilder& b, Names& inputs) {
    b.ints("axis", {1});
    inputs.push_back("axis");
  };
  expect_near(
      run<float>({"ReduceProd", {attr_ints("axes", {1}), attr_int("keepdims", 0)}}, kFloat, kShape, kX),
      {-2.5 * -1 * -0.25, 0.125 * 0.75 * 3}, "ReduceProd");
  expect_near(run<float>({"CumSum"}, kFloat, kShape, kX, axis), {-2.5, -3.5, -3.75, 0.125, 0.875, 3.875},
              "CumSum");
  OnnxBuilder b(17);
  b.input("x", kFloat, kShape).ints("k", {2});
  b.node("TopK", {"x", "k"}, {"values", "positions"});
  b.graph().message(12, Message().bytes(1, "values")).message(12, Message().bytes(1, "positions"));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  const auto outputs = session.run({bytes_of(kX)});
  EXPECT_EQ(values_of<float>(outputs[0]), (std::vector<float>{-0.25f, -1, 3, 0.75f}));
  EXPECT_EQ(values_of<int64_t>(outputs[1]), (std::vector<int64_t>{2, 1, 2, 1}));
}

TEST(OnnxOperator, ConditionsAndLogic) {
  const auto limit = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("limit", kFloat, {3}, {-1, -1, 3});
    inputs.push_back("limit");
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(run<uint8_t>({"LessOrEqual"}, kFloat, kShape, kX, limit), (Bytes{1, 1, 1, 0, 0, 1}));
  EXPECT_EQ(run<uint8_t>({"GreaterOrEqual"}, kFloat, kShape, kX, limit), (Bytes{0, 1, 0, 1, 1, 1}));
  const auto other = [](OnnxBuilder& b, Names& inputs) {
    b.constant<uint8_t>("other", kBool, {4}, {0, 0, 1, 1});
    inputs.push_back("other");
  };
  const Bytes x = {0, 1, 0, 1};
  EXPECT_EQ(run<uint8_t>({"Not"}, kBool, {4}, x), (Bytes{1, 0, 1, 0}));
  EXPECT_EQ(run<uint8_t>({"And"}, kBool, {4}, x, other), (Bytes{0, 0, 0, 1}));
  EXPECT_EQ(run<uint8_t>({"Or"}, kBool, {4}, x, other), (Bytes{0, 1, 1, 1}));
  EXPECT_EQ(run<uint8_t>({"Xor"}, kBool, {4}, x, other), (Bytes{0, 1, 1, 0}));
}

std::vector<double> normalized(const std::vector<double>& x, size_t count, double epsilon) {
  std::vector<double> y;
  for (size_t begin = 0; begin < x.size(); begin += count) {
    double mean = 0, variance = 0;
    for (size_t i = begin; i < begin + count; ++i) mean += x[i] / static_cast<double>(count);
    for (size_t i = begin; i < begin + count; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
    for (size_t i = begin; i < begin + count; ++i) y.push_back((x[i] - mean) / std::sqrt(variance + epsilon));
  }
  return y;
}

// What ONNX says: every number but 0 is true, and true is 1.
TEST(OnnxOperator, CastsToBoolAskWhetherNumbersAreZero) {
  const std::vector<uint8_t> expected = {0, 1, 1, 1, 1, 1};
  const Case to_bool{"Cast", {attr_int("to", kBool)}};
  EXPECT_EQ(run<uint8_t>(to_bool, kFloat, kShape, std::vector<float>{-0.0f, 0.25f, -1, 2.5f, 256, NAN}),
            expected);
  EXPECT_EQ(run<uint8_t>(to_bool, kInt32, kShape, std::vector<int32_t>{0, 1, -1, 2, 256, INT32_MIN}),
            expected);
  EXPECT_EQ(run<uint8_t>(to_bool, kInt64, kShape, std::vector<int64_t>{0, 1, -1, 2, 256, INT64_MIN}),
            expected);
  EXPECT_EQ(run<uint8_t>(to_bool, kUint8, kShape, std::vector<uint8_t>{0, 1, 2, 3, 128, 255}), expected);
  EXPECT_EQ(run<uint8_t>(to_bool, kInt8, kShape, std::vector<int8_t>{0, 1, -1, 2, 127, -128}), expected);
}

TEST(OnnxOperator, Normalizations) {
  const auto channels = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("scale", kFloat, {2}, {2, -1}).constant<float>("bias", kFloat, {2}, {0.5f, 1});
    inputs.insert(inputs.end(), {"scale", "bias"});
  };
  std::vector<double> expected = normalized({kX.begin(), kX.end()}, 3, 1e-5);
  for (size_t i = 0; i < 6; ++i) expected[i] = i < 3 ? 2 * expected[i] + 0.5 : 1 - expected[i];
  expect_near(run<float>({"InstanceNormalization"}, kFloat, {1, 2, 3}, kX, channels), expected, "instance");

  const auto skip = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("skip", kFloat, {2, 3}, {1, 2, 3, 4, 5, 7})
        .constant<float>("gamma", kFloat, {3}, {1, 2, 3})
        .constant<float>("beta", kFloat, {3}, {0, 1, 0});
    inputs.insert(inputs.end(), {"skip", "gamma", "beta"});
  };
  std::vector<double> sums(kX.begin(), kX.end());
  const double added[] = {1, 2, 3, 4, 5, 7};
  for (size_t i = 0; i < 6; ++i) sums[i] += added[i];
  expected = normalized(sums, 3, 1e-12);
  for (size_t i = 0; i < 6; ++i)
    expected[i] = expected[i] * static_cast<double>(i % 3 + 1) + (i % 3 == 1 ? 1 : 0);
  expect_near(
      run<float>({.op = "SkipLayerNormalization", .domain = "com.microsoft"}, kFloat, kShape, kX, skip),
      expected, "SkipLayerNormalization");
}

// Rows divided by the root of the mean of their squares. Beside the normalised sum, the sum itself is a
// result.
TEST(OnnxOperator, NormalizationsWithoutAMean) {
  const auto normal = [](const std::vector<double>& x) {
    std::vector<double> y;
    for (size_t i = 0; i < x.size(); ++i) {
      const double* row = x.data() + i / 3 * 3;
      const double squares = row[0] * row[0] + row[1] * row[1] + row[2] * row[2];
      y.push_back(x[i] / std::sqrt(squares / 3 + 1e-5) * static_cast<double>(i % 3 + 1));
    }
    return y;
  };
  const std::vector<Message> epsilon = {attr_float("epsilon", 1e-5f)};
  const auto gamma = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("gamma", kFloat, {3}, {1, 2, 3});
    inputs.push_back("gamma");
  };
  expect_near(run<float>({"SimplifiedLayerNormalization", epsilon}, kFloat, kShape, kX, gamma),
              normal({kX.begin(), kX.end()}), "SimplifiedLayerNormalization");

  OnnxBuilder b(17);
  b.import_opset("com.microsoft", 1).input("x", kFloat, kShape);
  b.constant<float>("skip", kFloat, {2, 3}, {1, 2, 3, 4, 5, 7})
      .constant<float>("gamma", kFloat, {3}, {1, 2, 3});
  b.constant<float>("bias", kFloat, {3}, {0.5f, -1, 2});
  b.node("SkipSimplifiedLayerNormalization", {"x", "skip", "gamma", "bias"}, {"y", "", "", "sum"}, epsilon,
         "com.microsoft");
  for (const char* output : {"y", "sum"}) b.graph().message(12, Message().bytes(1, output));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  const auto outputs = session.run({bytes_of(kX)});
  const double added[] = {1.5, 1, 5, 4.5, 4, 9};
  std::vector<double> sums;
  for (size_t i = 0; i < 6; ++i) sums.push_back(static_cast<double>(kX[i]) + added[i]);
  expect_near(values_of<float>(outputs.at(0)), normal(sums), "SkipSimplifiedLayerNormalization");
  expect_near(values_of<float>(outputs.at(1)), sums, "sum");
}

TEST(OnnxOperator, NormalizationsByNeighboursAndLengths) {
  // Five channels of two elements; each is divided by what the channels around it have.
  const std::vector<float> x = {1, -2, 3, 0.5f, -1, 4, 2, 2.5f, 0.25f, -3};
  std::vector<double> expected;
  for (int c = 0; c < 5; ++c) {
    for (int i = 0; i < 2; ++i) {
      double sum = 0;
      for (int k = std::max(0, c - 1); k <= std::min(4, c + 1); ++k) {
        const auto other = static_cast<double>(x[static_cast<size_t>(k * 2 + i)]);
        sum += other * other;
      }
      expected.push_back(static_cast<double>(x[static_cast<size_t>(c * 2 + i)]) /
                         std::pow(2 + 0.5 / 3 * sum, 0.75));
    }
  }
  const std::vector<Message> lrn = {attr_int("size", 3), attr_float("alpha", 0.5f), attr_float("bias", 2)};
  expect_near(run<float>({"LRN", lrn}, kFloat, {1, 5, 2, 1}, x), expected, "LRN");

  expected = normalized({kX.begin(), kX.end()}, 3, 0);
  expect_near(run<float>({"MeanVarianceNormalization", {attr_ints("axes", {1})}}, kFloat, kShape, kX),
              expected, "MeanVarianceNormalization");
  for (const int64_t p : {1, 2}) {
    expected.clear();
    for (size_t row = 0; row < 6; row += 3) {
      double sum = 0;
      for (size_t i = row; i < row + 3; ++i)
        sum += p == 1 ? std::fabs(static_cast<double>(kX[i]))
                      : static_cast<double>(kX[i]) * static_cast<double>(kX[i]);
      for (size_t i = row; i < row + 3; ++i)
        expected.push_back(static_cast<double>(kX[i]) / (p == 1 ? sum : std::sqrt(sum)));
    }
    expect_near(run<float>({"LpNormalization", {attr_int("p", p)}}, kFloat, kShape, kX), expected,
                "LpNormalization");
  }
  EXPECT_EQ(run<float>({"LpNormalization"}, kFloat, {1, 2}, std::vector<float>{0, 0}),
            (std::vector<float>{0, 0}));
}

// ONNX Runtime fuses an activation with the convolution or the product before it.
TEST(OnnxOperator, FusedActivations) {
  const auto at = [](const char* name, const std::vector<float>& parameters) {
    std::vector<Message> attributes = {attr_string("activation", name)};
    if (!parameters.empty()) attributes.push_back(attr_floats("activation_params", parameters));
    // A convolution of 1x1 with weight 2, bias -1, and another addend of 0.5.
    return run<float>(
        {.op = "FusedConv", .attributes = attributes, .domain = "com.microsoft"}, kFloat, {1, 1, 2, 3}, kX,
        [](OnnxBuilder& b, Names& inputs) {
          b.constant<float>("w", kFloat, {1, 1, 1, 1}, {2}).constant<float>("b", kFloat, {1}, {-1});
          b.constant<float>("z", kFloat, {1, 1, 2, 3}, std::vector<float>(6, 0.5f));
          inputs.insert(inputs.end(), {"w", "b", "z"});
        });
  };
  const auto expect = [&](const char* name, const std::vector<float>& parameters, double (*f)(double)) {
    std::vector<double> expected;
    for (const float x : kX) expected.push_back(f(2 * static_cast<double>(x) - 0.5));
    expect_near(at(name, parameters), expected, name);
  };
  expect("Relu", {}, [](double v) { return std::max(v, 0.0); });
  expect("Tanh", {}, [](double v) { return std::tanh(v); });
  expect("Sigmoid", {}, [](double v) { return 1 / (1 + std::exp(-v)); });
  expect("LeakyRelu", {0.25f}, [](double v) { return v < 0 ? v / 4 : v; });
  expect("Clip", {-0.75f, 3}, [](double v) { return std::clamp(v, -0.75, 3.0); });
  expect("HardSigmoid", {0.125f, 0.25f}, [](double v) { return std::clamp(v / 8 + 0.25, 0.0, 1.0); });

  const std::vector<Message> leaky = {attr_string("activation", "LeakyRelu"),
                                      attr_float("activation_alpha", 0.5f)};
  const auto weights = [](OnnxBuilder& b, Names& inputs) {
    b.constant<float>("w", kFloat, {3, 2}, {1, 0, 0, 1, 0, 0}).constant<float>("b", kFloat, {2}, {1, -1});
    inputs.insert(inputs.end(), {"w", "b"});
  };
  expect_near(run<float>({.op = "FusedGemm", .attributes = leaky, .domain = "com.microsoft"}, kFloat, kShape,
                         kX, weights),
              {-0.75, -1, 1.125, -0.125}, "FusedGemm");
}

TEST(OnnxOperator, MaxPoolOfChannelsThatComeLast) {
  const std::vector<uint8_t> x = {1, 200, 3, 4, 250, 6, 7, 8, 9, 10, 11, 0};  // [1, 2, 3, 2]
  const std::vector<Message> window = {attr_ints("kernel_shape", {2, 2})};
  EXPECT_EQ(run<uint8_t>({.op = "NhwcMaxPool", .attributes = window, .domain = "com.microsoft"}, kUint8,
                         {1, 2, 3, 2}, x),
            (std::vector<uint8_t>{9, 200, 250, 10}));
}

// A product of integers whose scales and zero point the network computes: 8 bits of error in the first
// operand.
TEST(OnnxOperator, ProductsThatQuantizeTheirInput) {
  const std::vector<int8_t> weights = {1, -2, 3, 4, -5, 6};  // [3, 2]
  const auto inputs_of = [&](OnnxBuilder& b, Names& inputs) {
    b.constant<int8_t>("w", kInt8, {3, 2}, weights).scale("w_scale", 0.5f).zero_point("w_zero", 0);
    b.constant<float>("bias", kFloat, {2}, {10, -10});
    inputs.insert(inputs.end(), {"w", "w_scale", "w_zero", "bias"});
  };
  const std::vector<float> found =
      run<float>({.op = "DynamicQuantizeMatMul", .domain = "com.microsoft"}, kFloat, kShape, kX, inputs_of);
  ASSERT_EQ(found.size(), 4u);
  for (size_t r = 0; r < 2; ++r) {
    for (size_t c = 0; c < 2; ++c) {
      double sum = c == 0 ? 10 : -10;
      for (size_t k = 0; k < 3; ++k) sum += static_cast<double>(kX[r * 3 + k]) * 0.5 * weights[k * 2 + c];
      EXPECT_NEAR(found[r * 2 + c], sum, 0.0216 / 2 * 0.5 * 12) << r << ", " << c;  // 5.5 / 255 a step
    }
  }
  const std::vector<uint8_t> x = {100, 7, 255, 0, 128, 130};
  const auto rest = [&](OnnxBuilder& b, Names& inputs) {
    b.constant<int8_t>("w", kInt8, {3, 2}, weights).scale("x_scale", 0.25f).scale("w_scale", 0.5f);
    b.constant<uint8_t>("x_zero", kUint8, {}, {128}).zero_point("w_zero", 0);
    inputs.insert(inputs.end(), {"w", "x_scale", "w_scale", "x_zero", "w_zero"});
  };
  std::vector<double> expected;
  for (size_t r = 0; r < 2; ++r) {
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += (x[r * 3 + k] - 128.0) * 0.25 * 0.5 * weights[k * 2 + c];
      expected.push_back(sum);
    }
  }
  expect_near(run<float>({.op = "MatMulIntegerToFloat", .domain = "com.microsoft"}, kUint8, kShape, x, rest),
              expected, "MatMulIntegerToFloat");
}

// q = saturate(round(x / 0.5) + zero point), to 0 and 65535; y = (q - zero point) * 0.5.
TEST(OnnxOperator, Uint16SaturatesAtItsOwnEnds) {
  constexpr int kUint16 = 4;
  for (const int zero_point : {0, 30000, 32768, 65535}) {
    OnnxBuilder b(21);
    b.input("x", kFloat, {6}).scale("s", 0.5f);
    b.constant<uint16_t>("z", kUint16, {}, {static_cast<uint16_t>(zero_point)});
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"y"});
    ModelSession session(packed(b.output("y", kFloat, {6})), QPLAN_ISA_AUTO, 1);
    const std::vector<float> x = {-1e9f, -100.3f, 0, 0.3f, 0.25f, 1e9f};
    const float least = -0.5f * static_cast<float>(zero_point);
    const float most = 0.5f * static_cast<float>(65535 - zero_point);
    std::vector<float> expected = {least, -100.5f, 0, 0.5f, 0, most};
    for (float& y : expected) y = std::clamp(y, least, most);
    EXPECT_EQ(values_of<float>(session.run({bytes_of(x)}).at(0)), expected) << zero_point;
  }
}

}  // namespace
}  // namespace qplan::testing::onnx_operator_test
