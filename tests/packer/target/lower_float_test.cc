// Operators on float32: which steps they become, and what these compute. Expected values are worked out by
// hand; all of them are exact in float32.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/packer/target/lower_helpers.h"

namespace qplan::testing::lower_float_test {
namespace {

using Reals = std::vector<float>;

// 1x1 convolution of two channels into one: x0 - 2 * x1, and what follows.
std::string conv_text(const std::string& tail) {
  return main_text(
      "%x: Tensor[(1, 1, 2, 2), float32]",
      "  %0 = nn.conv2d(%x, const(Tensor[(1, 1, 1, 2), float32], [1, -2]), data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\", name=\"conv\");\n" +
          tail);
}

TEST(LowerFloat, BiasBatchNormAndClampBelongToTheLayer) {
  const std::string text = conv_text(
      "  %1 = nn.bias_add(%0, const(Tensor[(1), float32], [3]), axis=3);\n"
      "  %2 = nn.batch_norm(%1, const(Tensor[(1), float32], [4]), const(Tensor[(1), float32], [0.5]), "
      "const(Tensor[(1), float32], [1]), const(Tensor[(1), float32], [4]), axis=3, epsilon=0f);\n"
      "  %3 = clip(%2, a_min=-4f, a_max=20f);\n  %3");
  EXPECT_EQ(kernels_of(lower_text(text)), "float_conv2d");
  // (1 - 4 + 3 - 1) / 2 * 4 + 0.5 = -1.5; (20 - 2 + 3 - 1) * 2 + 0.5 = 40.5, clipped to 20
  EXPECT_EQ((run_text<float>(text, Reals{1, 2, 20, 1})), (Reals{-1.5f, 20}));
}

TEST(LowerFloat, AnAdditionOfAConstantForEachChannelIsABias) {
  const std::string text =
      conv_text("  %1 = add(%0, const(Tensor[(1, 1, 1, 1), float32], [3]));\n  %2 = nn.relu(%1);\n  %2");
  EXPECT_EQ(kernels_of(lower_text(text)), "float_conv2d");
  EXPECT_EQ((run_text<float>(text, Reals{1, 2, -20, 1})), (Reals{0, 0}));
  EXPECT_EQ((run_text<float>(text, Reals{1, 1, 20, 1})), (Reals{2, 21}));
  // That of another tensor is not.
  const std::string sum = conv_text("  %1 = add(%0, %0);\n  %1");
  EXPECT_EQ(kernels_of(lower_text(sum)), "float_conv2d float_binary");
  EXPECT_EQ((run_text<float>(sum, Reals{1, 2, 20, 1})), (Reals{-6, 36}));
}

TEST(LowerFloat, WhatTwoOperatorsReadIsATensor) {
  const std::string text =
      conv_text("  %1 = nn.bias_add(%0, const(Tensor[(1), float32], [3]), axis=3);\n  (%0, %1)");
  EXPECT_EQ(kernels_of(lower_text(text)), "float_conv2d float_binary");
  EXPECT_EQ((run_text<float>(text, Reals{1, 2, 20, 1})), (Reals{-3, 18}));
}

TEST(LowerFloat, DenseLayersOfMoreThan16OutputsKeepTheirOrder) {
  std::string weights, bias;
  Reals expected;
  for (int o = 0; o < 18; ++o) {
    weights += (o == 0 ? "" : ", ") + std::to_string(o) + ", 1";
    bias += (o == 0 ? "" : ", ") + std::to_string(100 * o);
    expected.push_back(static_cast<float>(2 * o + 3 + 100 * o));
  }
  const std::string text = main_text("%x: Tensor[(1, 2), float32]",
                                     "  %0 = nn.dense(%x, const(Tensor[(18, 2), float32], [" + weights +
                                         "]), units=18);\n  %1 = nn.bias_add(%0, const(Tensor[(18), "
                                         "float32], [" +
                                         bias + "]));\n  %1");
  EXPECT_EQ(kernels_of(lower_text(text)), "float_conv2d");
  EXPECT_EQ((run_text<float>(text, Reals{2, 3})), expected);
}

// [32, 32]: integers of 4 bits times 1 / 4, but for the last weight.
std::string weights_of_4_bits(float last) {
  std::string values;
  for (int i = 0; i < 32 * 32; ++i) {
    const float value = i + 1 < 32 * 32 ? static_cast<float>(i * 7 % 16 - 8) / 4 : last;
    values += (i == 0 ? "" : ", ") + std::to_string(value);
  }
  return "const(Tensor[(32, 32), float32], [" + values + "])";
}

TEST(LowerFloat, WeightsThatAreIntegersTimesScalesAreIntegersInThePlan) {
  const auto text = [](float last) {
    return main_text("%x: Tensor[(2, 32), float32]", "  %0 = nn.dense(%x, " + weights_of_4_bits(last) +
                                                         ", units=32);\n  %1 = nn.relu(%0);\n  %1");
  };
  EXPECT_EQ(kernels_of(lower_text(text(1.25f))), "weight_only_dense");
  EXPECT_EQ(kernels_of(lower_text(text(1.2345678f))), "float_conv2d");  // no multiple of the row's scale
  Reals x(64), expected;
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
  for (size_t row = 0; row < 2; ++row) {
    for (size_t o = 0; o < 32; ++o) {
      float sum = 0;  // exact: quarters
      for (size_t k = 0; k < 32; ++k) {
        const size_t i = o * 32 + k;
        sum +=
            x[row * 32 + k] * (i == 1023 ? 1.25f : static_cast<float>(static_cast<int>(i * 7 % 16) - 8) / 4);
      }
      expected.push_back(std::max(sum, 0.0f));
    }
  }
  EXPECT_EQ((run_text<float>(text(1.25f), x)), expected);
}

TEST(LowerFloat, OfConvolutionsOnlyThoseOfOnePixelHaveWeightsOfIntegers) {
  const auto text = [](const std::string& shape, const std::string& attributes) {
    std::string weights = weights_of_4_bits(0);
    weights.replace(weights.find("(32, 32)"), 8, shape);
    return main_text("%x: Tensor[(1, 4, 4, 32), float32]",
                     "  %0 = nn.conv2d(%x, " + weights + ", data_layout=\"NHWC\", kernel_layout=\"OHWI\"" +
                         attributes + ");\n  %0");
  };
  EXPECT_EQ(kernels_of(lower_text(text("(32, 1, 1, 32)", ""))), "weight_only_dense");
  EXPECT_EQ(kernels_of(lower_text(text("(32, 1, 1, 32)", ", strides=[2, 2]"))), "float_conv2d");
  EXPECT_EQ(kernels_of(lower_text(text("(8, 2, 2, 32)", ""))), "float_conv2d");
}

TEST(LowerFloat, NormalisationsAndBiasesWithoutALayerAreProductsAndSums) {
  const std::string norm = main_text(
      "%x: Tensor[(1, 2, 2), float32]",
      "  %0 = nn.batch_norm(%x, const(Tensor[(2), float32], [4, 1]), const(Tensor[(2), float32], [0.5, 0]), "
      "const(Tensor[(2), float32], [1, 0]), const(Tensor[(2), float32], [4, 1]), axis=1, epsilon=0f);\n  %0");
  EXPECT_EQ(kernels_of(lower_text(norm)), "float_binary float_binary");
  EXPECT_EQ((run_text<float>(norm, Reals{1, 2, 3, 4})), (Reals{0.5f, 2.5f, 3, 4}));
  const std::string bias =
      main_text("%x: Tensor[(1, 2, 2), float32]",
                "  %0 = nn.bias_add(%x, const(Tensor[(2), float32], [10, 20]), axis=1);\n  %0");
  EXPECT_EQ((run_text<float>(bias, Reals{1, 2, 3, 4})), (Reals{11, 12, 23, 24}));
}

TEST(LowerFloat, PoolsMeansAndElementwiseOperators) {
  const std::string window = "pool_size=[2, 2], layout=\"NHWC\");\n  %0";
  const auto pool = [&](const std::string& op) {
    return main_text("%x: Tensor[(1, 2, 2, 1), float32]", "  %0 = " + op + "(%x, " + window);
  };
  EXPECT_EQ((run_text<float>(pool("nn.max_pool2d"), Reals{1, 7, -3, 3})), (Reals{7}));
  EXPECT_EQ((run_text<float>(pool("nn.avg_pool2d"), Reals{1, 7, -3, 3})), (Reals{2}));
  const auto one = [&](const std::string& call) {
    return main_text("%x: Tensor[(2, 2), float32]", "  %0 = " + call + ";\n  %0");
  };
  const Reals x = {-4, 2, -1, 8};
  EXPECT_EQ((run_text<float>(one("mean(%x, axis=[1])"), x)), (Reals{-1, 3.5f}));
  EXPECT_EQ((run_text<float>(one("mean(%x, axis=[0], keepdims=True)"), x)), (Reals{-2.5f, 5}));
  EXPECT_EQ((run_text<float>(one("nn.leaky_relu(%x, alpha=0.25f)"), x)), (Reals{-1, 2, -0.25f, 8}));
  EXPECT_EQ((run_text<float>(one("hard_sigmoid(%x, alpha=0.125f, beta=0.5f)"), x)),
            (Reals{0, 0.75f, 0.375f, 1}));
  EXPECT_EQ((run_text<float>(one("abs(%x)"), x)), (Reals{4, 2, 1, 8}));
  EXPECT_EQ((run_text<float>(one("divide(%x, const(Tensor[(2), float32], [4, 2]))"), x)),
            (Reals{-1, 1, -0.25f, 4}));
  EXPECT_EQ((run_text<float>(one("maximum(%x, 0f)"), x)), (Reals{0, 2, 0, 8}));
  EXPECT_EQ((run_text<float>(one("nn.softmax(multiply(%x, 0f), axis=0)"), x)),
            (Reals{0.5f, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ((run_text<float>(one("clip(add(%x, 1f), a_min=0f, a_max=3f)"), x)), (Reals{0, 3, 0, 3}));
  EXPECT_EQ(kernels_of(lower_text(one("clip(add(%x, 1f), a_min=0f, a_max=3f)"))), "float_binary");
}

// Rows [-1, 1.54] and [0, 2.55] have scales of 0.01 and zero points of -28 and -128, without symmetry.
TEST(LowerFloat, DynamicLayersQuantiseEachRowByItself) {
  const std::string text =
      main_text("%x: Tensor[(2, 2), float32]",
                "  %0 = nn.dynamic_quantize(%x);\n"
                "  %1 = qnn.dense(%0.0, const(Tensor[(1, 2), int8], [3, 5]), 0, 0, 1f, 1f, units=1);\n"
                "  %2 = nn.dynamic_dequantize(%1, %0.1, %0.2, const(Tensor[(1), float32], [2]), "
                "const(Tensor[(1), int32], "
                "[8]));\n"
                "  %3 = nn.bias_add(%2, const(Tensor[(1), float32], [1]));\n  %3");
  EXPECT_EQ(kernels_of(lower_text(text)), "dynamic_quantize fully_connected dynamic_dequantize");
  const Reals found = run_text<float>(text, Reals{-1, 1.55f, 0, 2.55f});
  EXPECT_NEAR(found[0], 2 * (-3 + 5 * 1.55) + 1, 1e-4);
  EXPECT_NEAR(found[1], 2 * 5 * 2.55 + 1, 1e-4);
}

TEST(LowerFloat, WeightsThatTheModelComputesAreRefused) {
  const std::string text = main_text("%x: Tensor[(1, 2), float32], %w: Tensor[(3, 2), float32]",
                                     "  %0 = nn.dense(%x, %w, units=3, name=\"d\");\n  %0");
  EXPECT_NE(
      lower_refusal(text).find("nn.dense 'd': the weights are not a constant [cpu.float_dense.weights]"),
      std::string::npos)
      << lower_refusal(text);
}

// -0 equals the default of its field in a plan, and is another number.
TEST(LowerFloat, AClampToNegativeZeroKeepsItsSign) {
  const std::string text = main_text("%x: Tensor[(3), float32]", "  clip(%x, a_min=-0f, a_max=2f)");
  const std::vector<float> found = run_text<float>(text, std::vector<float>{-1, 1, 3});
  EXPECT_EQ(found, (std::vector<float>{0, 1, 2}));
  EXPECT_TRUE(std::signbit(found[0]));
}

}  // namespace
}  // namespace qplan::testing::lower_float_test
