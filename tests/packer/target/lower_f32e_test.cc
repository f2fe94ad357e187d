// Nodes that say contract="f32e" or "tfl1": what becomes which step, and that it computes what docs/numerics
// says. Expected values are worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::lower_f32e_test {
namespace {

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string unary_text(const std::string& type, const std::string& body) {
  return main_text("%x: Tensor[" + type + "]", body);
}

// The values of a step's constant input.
template <typename T>
std::vector<T> constant_of(const target::Program& program, size_t input) {
  const target::ProgramTensor& tensor = program.tensors[program.steps.at(0).inputs.at(input)];
  const auto* values = reinterpret_cast<const T*>(tensor.constant->data());
  return {values, values + tensor.constant->size() / sizeof(T)};
}

// One channel in, two out: x + 1 and 3 * x, at scales 0.5 and 0.25.
std::string conv_text(const std::string& contract, const std::string& tail) {
  return main_text(
      "%x: Tensor[(1, 1, 2, 1), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, 3]), 0, 0, 0.5f, "
      "const(Tensor[(2), float32], [1, 0.5]), data_layout=\"NHWC\", kernel_layout=\"OHWI\", name=\"conv\");\n"
      "  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [1, 0]), axis=3);\n"
      "  %2 = qnn.requantize(%1, const(Tensor[(2), float32], [0.5, 0.25]), 0, 1f, 10, axis=3, contract=\"" +
          contract + "\");\n" + tail);
}

TEST(LowerF32e, ConvolutionsRoundHalfToEven) {
  const std::string text = conv_text("f32e", "  %3 = clip(%2, a_min=-100f, a_max=12f);\n  %3");
  const target::Program program = lower_text(text);
  EXPECT_EQ(kernels_of(program), "conv2d");
  ASSERT_EQ(program.steps[0].inputs.size(), 4u);  // no shifts
  EXPECT_EQ(program.tensors[program.steps[0].inputs[3]].type.dtype, ir::kFloat32);
  const std::vector<float> scale = constant_of<float>(program, 3);
  EXPECT_EQ((std::vector<float>{scale[0], scale[1]}), (std::vector<float>{0.5f, 0.25f}));
  // (2 + 1) / 2 = 1.5 -> 2, 2 * 3 / 4 = 1.5 -> 2; (-6 + 1) / 2 = -2.5 -> -2, -18 / 4 = -4.5 -> -4
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{2, -6})), (std::vector<int8_t>{12, 12, 8, 6}));
}

TEST(LowerF32e, EveryVariantGivesTheSame) {
  const std::string text = conv_text("f32e", "  %2");
  for (const std::string isa : {"reference", "sse41", "avx2", "avxvnni", "avx512vnni"}) {
    EXPECT_EQ(kernels_of(lower_text(text, "cpu,isa=" + isa)), "conv2d") << isa;
  }
}

TEST(LowerF32e, ProductAndQuotientOfScalesAreFloats) {
  const std::string text =
      main_text("%x: Tensor[(1, 1), int8]",
                "  %0 = qnn.dense(%x, const(Tensor[(1, 1), int8], [1]), 0, 0, 0.1f, 0.3f, units=1);\n"
                "  %1 = qnn.requantize(%0, 0.030000001f, 0, 0.7f, 0, contract=\"f32e\");\n  %1");
  const target::Program program = lower_text(text);
  EXPECT_EQ(kernels_of(program), "fully_connected");
  const volatile float product = 0.1f * 0.3f;
  EXPECT_EQ(constant_of<float>(program, 3)[0], product / 0.7f);
}

TEST(LowerF32e, DepthwiseConvolutions) {
  const std::string text = main_text(
      "%x: Tensor[(1, 1, 1, 2), uint8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, -1]), 128, 0, 1f, 0.5f, groups=2, "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  %1 = qnn.requantize(%0, 0.5f, 0, 1f, 0, out_dtype=\"uint8\", contract=\"f32e\");\n  %1");
  EXPECT_EQ(kernels_of(lower_text(text)), "depthwise_conv2d");
  // 5 / 2 -> 2, 7 / 2 -> 4
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<uint8_t>{133, 121})), (std::vector<uint8_t>{2, 4}));
}

TEST(LowerTfl1, RoundsOnce) {
  const std::string text =
      main_text("%x: Tensor[(1, 1), int8]",
                "  %0 = qnn.dense(%x, const(Tensor[(1, 1), int8], [1]), 0, 0, 1f, 0.25f, units=1);\n"
                "  %1 = qnn.requantize(%0, 0.25f, 0, 1f, 0, contract=\"tfl1\");\n  %1");
  // 1/4 rounds to 0, and to 1 in two steps; -1/2 goes up.
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{1})), (std::vector<int8_t>{0}));
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{-2})), (std::vector<int8_t>{0}));
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int8_t>{-3})), (std::vector<int8_t>{-1}));
}

TEST(LowerF32e, AddSubtractAndMul) {
  const std::string params = "%a: Tensor[(3), int8], %b: Tensor[(3), int8]";
  const std::vector<int8_t> a = {3, -3, 127}, b = {2, -2, 127};
  // (a / 2 + b) / 2 + 1: 1.75, -1.75, 95.25
  EXPECT_EQ((run_text<int8_t>(main_text(params,
                                        "  %0 = qnn.add(%a, %b, 0.5f, 0, 1f, 0, 2f, 1, contract=\"f32e\");\n"
                                        "  %1 = clip(%0, a_min=-128f, a_max=90f);\n  %1"),
                              a, b)),
            (std::vector<int8_t>{3, -1, 90}));
  // (a - b) / 2: 0.5, -0.5, 0
  EXPECT_EQ((run_text<int8_t>(main_text(params,
                                        "  %0 = qnn.subtract(%a, %b, 1f, 0, 1f, 0, 2f, 0, "
                                        "contract=\"f32e\");\n  %0"),
                              a, b)),
            (std::vector<int8_t>{0, 0, 0}));
  // a * b / 4: 1.5, 1.5
  EXPECT_EQ((run_text<int8_t>(main_text(params,
                                        "  %0 = qnn.mul(%a, %b, 0.5f, 0, 0.5f, 0, 1f, 0, "
                                        "contract=\"f32e\");\n  %0"),
                              a, b)),
            (std::vector<int8_t>{2, 2, 127}));
}

TEST(LowerF32e, AveragesMayRescale) {
  const auto text = [](const std::string& attrs) {
    return unary_text("(1, 1, 2, 1), int8",
                      "  %0 = qnn.avg_pool2d(%x, 1f, 2, 0.5f, -3, pool_size=[1, 2], layout=\"NHWC\", "
                      "contract=\"f32e\"" +
                          attrs + ");\n  %0");
  };
  // the mean of 3 and 4, twice, less 3
  EXPECT_EQ((run_text<int8_t>(text(""), std::vector<int8_t>{5, 6})), (std::vector<int8_t>{4}));
  // windows {3}, {3, 4}, {4}; padding is zero and not counted, or counted
  EXPECT_EQ((run_text<int8_t>(text(", padding=[0, 1, 0, 1]"), std::vector<int8_t>{5, 6})),
            (std::vector<int8_t>{3, 4, 5}));
  EXPECT_EQ(
      (run_text<int8_t>(text(", padding=[0, 1, 0, 1], count_include_pad=True"), std::vector<int8_t>{5, 6})),
      (std::vector<int8_t>{0, 4, 1}));
}

TEST(LowerF32e, MeanDividesByTheCount) {
  const std::string text =
      unary_text("(1, 2, 2, 1), uint8",
                 "  %0 = qnn.mean(%x, 1f, 1, 1f, 10, axis=[1, 2], keepdims=False, contract=\"f32e\");\n  %0");
  // (1 + 2 + 3 + 4) / 4 = 2.5 -> 2
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<uint8_t>{2, 3, 4, 5})), (std::vector<uint8_t>{12}));
}

TEST(LowerF32e, SoftmaxTakesAnyOutputScale) {
  const std::string text = unary_text(
      "(1, 3), uint8", "  %0 = qnn.softmax(%x, 0.6931472f, 0, 0.01f, 5, contract=\"f32e\");\n  %0");
  EXPECT_EQ(kernels_of(lower_text(text)), "softmax");
  // 4/7, 2/7, 1/7 in hundredths
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<uint8_t>{12, 11, 10})), (std::vector<uint8_t>{62, 34, 19}));
  EXPECT_TRUE(mentions(lower_refusal(unary_text("(1, 3), uint8",
                                                "  %0 = qnn.softmax(%x, 1f, 0, 0.01f, 5, beta=2f, "
                                                "contract=\"f32e\", name=\"s\");\n  %0")),
                       "qnn.softmax 's': its beta is not 1, which contract 'f32e' has no rule for"));
}

TEST(LowerF32e, QuantizeRoundsAsItsRuleSays) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto text = [](const std::string& attrs) {
    return main_text("%x: Tensor[(5), float32]",
                     "  %0 = qnn.quantize(%x, 2f, 1, out_dtype=\"int8\"" + attrs + ");\n  %0");
  };
  const std::vector<float> x = {1.0f, 3.0f, 5.0f, -5.0f, infinity};
  EXPECT_EQ((run_text<int8_t>(text(""), x)), (std::vector<int8_t>{2, 3, 4, -2, 127}));
  EXPECT_EQ((run_text<int8_t>(text(", contract=\"f32e\""), x)), (std::vector<int8_t>{1, 3, 3, -1, 127}));
  EXPECT_EQ((run_text<int8_t>(text(", contract=\"f32e\", rule=\"div_away\""), x)),
            (std::vector<int8_t>{2, 3, 4, -2, 127}));
  // 37.5f / 15f is 2.5, 37.5f * (1 / 15f) is more.
  const auto fifteenths = [](const std::string& rule) {
    return main_text("%x: Tensor[(1), float32]",
                     "  %0 = qnn.quantize(%x, 15f, 0, contract=\"f32e\", rule=\"" + rule + "\");\n  %0");
  };
  EXPECT_EQ((run_text<int8_t>(fifteenths("div_even"), std::vector<float>{37.5f})), (std::vector<int8_t>{2}));
  EXPECT_EQ((run_text<int8_t>(fifteenths("mul_even"), std::vector<float>{37.5f})), (std::vector<int8_t>{3}));
}

TEST(LowerF32e, AnAccumulatorAloneIsRequantised) {
  const std::string text = main_text("%x: Tensor[(3), int32]",
                                     "  %0 = qnn.requantize(%x, 0.5f, 0, 1f, 3, contract=\"f32e\");\n  %0");
  EXPECT_EQ(kernels_of(lower_text(text)), "requantize");
  EXPECT_EQ((run_text<int8_t>(text, std::vector<int32_t>{1, 3, INT32_MIN})),
            (std::vector<int8_t>{3, 5, -128}));
}

TEST(LowerF32e, UnaryChainsAreTables) {
  // (x - 128) / 2 to even; then the logistic of an eighth of that, in hundredths.
  const std::string text =
      unary_text("(4), uint8",
                 "  %0 = qnn.requantize(%x, 0.0625f, 128, 0.125f, 0, contract=\"f32e\");\n"
                 "  %1 = qnn.sigmoid(%0, 0.125f, 0, 0.01f, 0, contract=\"f32e\");\n  %1");
  EXPECT_EQ(kernels_of(lower_text(text)), "lut8");
  const std::vector<uint8_t> x = {128, 129, 131, 111};  // 0, 0, 2, -8
  std::vector<int8_t> expected;
  for (const double real : {0.0, 0.0, 0.25, -1.0}) {
    expected.push_back(static_cast<int8_t>(std::nearbyint(100 / (1 + std::exp(-real)))));
  }
  EXPECT_EQ((run_text<int8_t>(text, x)), expected);
}

TEST(LowerUnary, LookupsArePartOfTheTable) {
  std::string table = "const(Tensor[(256), uint8], [";
  for (int byte = 0; byte < 256; ++byte) table += (byte == 0 ? "" : ", ") + std::to_string(255 - byte);
  table += "])";
  const std::string text = unary_text(
      "(4), int8", "  %0 = qnn.lookup(%x, " + table + ");\n  %1 = clip(%0, a_min=0f, a_max=200f);\n  %1");
  EXPECT_EQ(kernels_of(lower_text(text)), "lut8");
  EXPECT_EQ((run_text<uint8_t>(text, std::vector<int8_t>{0, 127, -128, -1})),
            (std::vector<uint8_t>{200, 128, 127, 0}));
}

TEST(LowerContracts, WhatHasNoRuleIsRefused) {
  EXPECT_TRUE(mentions(lower_refusal(unary_text("(1, 2, 2, 1), int8",
                                                "  %0 = image.resize2d(%x, size=[4, 4], layout=\"NHWC\", "
                                                "contract=\"f32e\", name=\"r\");\n  %0")),
                       "image.resize2d 'r': contract 'f32e' has no rule here, expected 'tfl2'"));
  EXPECT_TRUE(mentions(lower_refusal(unary_text("(1, 3), int8",
                                                "  %0 = qnn.softmax(%x, 1f, 0, 0.00390625f, -128, "
                                                "contract=\"tfl1\", name=\"s\");\n  %0")),
                       "qnn.softmax 's': contract 'tfl1' has no rule here, expected 'tfl2' or 'f32e'"));
  EXPECT_TRUE(mentions(lower_refusal(conv_text("acc32", "  %2")),
                       "contract 'acc32' has no rule here, expected 'tfl2' or 'tfl1' or 'f32e'"));
}

}  // namespace
}  // namespace qplan::testing::lower_f32e_test
