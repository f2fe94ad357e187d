#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::qdq_to_integer_layers_test {
namespace {

std::string lower(const std::string& params, const std::string& body) {
  return run_pass("qdq_to_integer", params, body);
}

const std::string kData = "%x: Tensor[(1, 2, 3, 3), uint8]";
const std::string kWeights = "const(Tensor[(2, 2, 1, 1), int8], [1, -2, 3, 4])";
const std::string kScales = "const(Tensor[(2), float32], [0.5, 0.25])";

// dequantize(x) -> conv2d with weights, bias and quantize as given.
std::string conv(const std::string& weights, const std::string& bias, const std::string& quantize) {
  return "  %0 = qnn.dequantize(%x, 0.5f, 100);\n  %1 = qnn.dequantize(" + weights +
         ", name=\"w\");\n  %2 = nn.conv2d(%0, %1, padding=[1, 1], name=\"c\");\n" + bias +
         "  qnn.quantize(" + (bias.empty() ? "%2" : "%b") + ", 0.125f, 7, " + quantize + "name=\"q\")\n";
}

const std::string kPerTensor = kWeights + ", 0.25f, 0";
const std::string kIntBias =
    "  %3 = qnn.dequantize(const(Tensor[(2), int32], [10, -20]), 0.125f, 0);\n"
    "  %b = nn.bias_add(%2, %3);\n";
const std::string kFloatBias = "  %b = nn.bias_add(%2, const(Tensor[(2), float32], [0.3125, -1]));\n";
const std::string kF32e = "out_dtype=\"uint8\", contract=\"f32e\", ";

std::string lowered(const std::string& bias) {
  return "%0 = qnn.conv2d(%x, " + kWeights +
         ", 100, 0, 0.5f, 0.25f, padding=[1, 1]);\n%1 = nn.bias_add(%0, " + bias +
         ");\n%2 = qnn.requantize(%1, 0.125f, 0, 0.125f, 7, out_dtype=\"uint8\", contract=\"f32e\");\n%2\n";
}

TEST(QdqLayers, AConvolutionOfIntegers) {
  EXPECT_EQ(lower(kData, conv(kPerTensor, kIntBias, kF32e)), lowered("const(Tensor[(2), int32], [10, -20])"));
}

TEST(QdqLayers, TheContractIsTheQuantizes) {
  EXPECT_EQ(log_of("qdq_to_integer", kData, conv(kPerTensor, kIntBias, kF32e)),
            std::vector<std::string>{"lower_conv2d: 'q': contract f32e; bias as it is"});
}

TEST(QdqLayers, WeightsPerChannel) {
  EXPECT_EQ(lower(kData,
                  conv(kWeights + ", " + kScales + ", const(Tensor[(2), int32], [0, 0]), axis=0", "", kF32e)),
            "%0 = qnn.conv2d(%x, " + kWeights + ", 100, const(Tensor[(2), int32], [0, 0]), 0.5f, " + kScales +
                ", padding=[1, 1]);\n"
                "%1 = qnn.requantize(%0, const(Tensor[(2), float32], [0.25, 0.125]), 0, 0.125f, 7, axis=1, "
                "out_dtype=\"uint8\", contract=\"f32e\");\n%1\n");
}

TEST(QdqLayers, WeightsPerInputChannelStay) {
  EXPECT_EQ(why_not("qdq_to_integer", "lower_conv2d", kData,
                    conv(kWeights + ", " + kScales + ", 0, axis=1", "", kF32e)),
            "qnn.quantize 'q': the pattern matches, but the weights Tensor[(2, 2, 1, 1), int8] have a scale "
            "per index "
            "of axis 1, expected one per output channel (axis 0)");
}

TEST(QdqLayers, AFloatBiasIsRoundedHalfToEven) {
  // 0.3125 / 0.125 is 2.5.
  EXPECT_EQ(lower(kData, conv(kPerTensor, kFloatBias, kF32e)), lowered("const(Tensor[(2), int32], [2, -8])"));
}

std::string float_bias(const std::string& values) {
  return "  %b = nn.bias_add(%2, const(Tensor[(2), float32], [" + values + "]));\n";
}

// Steps are 0.125. The weights of channel 1 are 3 and 4, those of the input 155 at most and -100 at least:
// the products add from -700 to 1085.
TEST(QdqLayers, ABiasThatInt32HoldsWithAllProductsIsRounded) {
  EXPECT_EQ(lower(kData, conv(kPerTensor, float_bias("3, 268435312"), kF32e)),
            lowered("const(Tensor[(2), int32], [24, 2147482496])"));
  EXPECT_EQ(lower(kData, conv(kPerTensor, float_bias("3, -268435360"), kF32e)),
            lowered("const(Tensor[(2), int32], [24, -2147482880])"));
  EXPECT_EQ(log_of("qdq_to_integer", kData, conv(kPerTensor, float_bias("3, 268435312"), kF32e)),
            std::vector<std::string>{"lower_conv2d: 'q': contract f32e; bias 2 values rounded half to even"});
}

TEST(QdqLayers, ALayerWhoseBiasInt32DoesNotHoldStays) {
  EXPECT_EQ(lower(kData, conv(kPerTensor, float_bias("3, 268435328"), kF32e)), "unchanged");
  EXPECT_EQ(lower(kData, conv(kPerTensor, float_bias("3, -268435376"), kF32e)), "unchanged");
  EXPECT_EQ(
      why_not("qdq_to_integer", "lower_conv2d", kData, conv(kPerTensor, float_bias("3, 1e9"), kF32e)),
      "qnn.quantize 'q': the pattern matches, but int32 does not hold the accumulator of channel 1: its "
      "bias 1e+09 is 8e+09 steps of input scale times weight scale, and its products add from -700 to "
      "1085");
}

// As it is, with products on top: 2147483647 + 1085.
TEST(QdqLayers, ALayerWhoseIntegerBiasLeavesNoRoomStays) {
  const auto bias = [](const std::string& value) {
    return "  %3 = qnn.dequantize(const(Tensor[(2), int32], [10, " + value +
           "]), 0.125f, 0);\n  %b = nn.bias_add(%2, %3);\n";
  };
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias("2147482562"), kF32e)),
            lowered("const(Tensor[(2), int32], [10, 2147482562])"));
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias("2147482563"), kF32e)), "unchanged");
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias("-2147482948"), kF32e)),
            lowered("const(Tensor[(2), int32], [10, -2147482948])"));
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias("-2147482949"), kF32e)), "unchanged");
}

// Channel 1 has weights that are their zero point. With a step of 0.25 the bias 1e9 is 4e9 steps, with four
// times that 1e9: at most 2^30.
TEST(QdqLayers, ADeadChannelGetsAScaleThatItsBiasFits) {
  const std::string weights = "const(Tensor[(2, 2, 1, 1), uint8], [9, 7, 8, 8])";
  const std::string body = conv(weights + ", 0.5f, 8", float_bias("3, -1e9"), kF32e);
  EXPECT_EQ(lower(kData, body),
            "%0 = qnn.conv2d(%x, " + weights +
                ", 100, 8, 0.5f, const(Tensor[(2), float32], [0.5, 2]), padding=[1, 1]);\n"
                "%1 = nn.bias_add(%0, const(Tensor[(2), int32], [12, -1000000000]));\n"
                "%2 = qnn.requantize(%1, const(Tensor[(2), float32], [0.25, 1]), 0, 0.125f, 7, axis=1, "
                "out_dtype=\"uint8\", contract=\"f32e\");\n%2\n");
  EXPECT_EQ(log_of("qdq_to_integer", kData, body),
            std::vector<std::string>{
                "lower_conv2d: 'q': contract f32e; bias 2 values rounded half to even, for which 1 channel "
                "without weights has another scale"});
}

TEST(QdqLayers, WeightsWithDifferentZeroPointsStay) {
  EXPECT_EQ(
      why_not("qdq_to_integer", "lower_conv2d", kData,
              conv(kWeights + ", " + kScales + ", const(Tensor[(2), int32], [0, 1]), axis=0", "", kF32e)),
      "qnn.quantize 'q': the pattern matches, but the weights Tensor[(2, 2, 1, 1), int8] have different "
      "zero points per channel, expected the same for all");
}

TEST(QdqLayers, ABiasOfNearlyTheSameScaleIsKept) {
  const std::string bias =
      "  %3 = qnn.dequantize(const(Tensor[(2), int32], [100000000, -20]), 0.125001f, 0);\n"
      "  %b = nn.bias_add(%2, %3);\n";
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias, kF32e)),
            lowered("const(Tensor[(2), int32], [100000000, -20])"));
}

TEST(QdqLayers, ABiasOfAnotherScaleIsRoundedAgain) {
  const std::string bias =
      "  %3 = qnn.dequantize(const(Tensor[(2), int32], [10, -30]), 0.0625f, 0);\n"
      "  %b = nn.bias_add(%2, %3);\n";
  EXPECT_EQ(lower(kData, conv(kPerTensor, bias, kF32e)), lowered("const(Tensor[(2), int32], [5, -15])"));
}

TEST(QdqLayers, AFullyConnectedLayer) {
  const std::string weights = "const(Tensor[(2, 3), uint8], [1, 2, 3, 4, 5, 6])";
  EXPECT_EQ(lower("%x: Tensor[(1, 3), int8]",
                  "  %0 = qnn.dequantize(%x, 0.5f, -1);\n  %1 = qnn.dequantize(" + weights +
                      ", 0.25f, 4);\n  %2 = nn.dense(%0, %1);\n"
                      "  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [1, 2]), axis=-1);\n"
                      "  qnn.quantize(%3, 2f, 0)\n"),
            "%0 = qnn.dense(%x, " + weights +
                ", -1, 4, 0.5f, 0.25f);\n%1 = nn.bias_add(%0, const(Tensor[(2), int32], [8, 16]));\n"
                "%2 = qnn.requantize(%1, 0.125f, 0, 2f, 0);\n%2\n");
}

TEST(QdqLayers, AMatrixProductWithTransposedWeightsPerColumn) {
  const std::string weights = "const(Tensor[(3, 2), int8], [1, 2, 3, 4, 5, 6])";
  EXPECT_EQ(
      run_passes({"fold_constants", "simplify", "qdq_to_integer", "dead_code"}, "%x: Tensor[(1, 3), int8]",
                 "  %0 = qnn.dequantize(%x, 0.5f, -1);\n  %1 = qnn.dequantize(" + weights + ", " + kScales +
                     ", 0, axis=1);\n  %2 = transpose(%1, axes=[1, 0]);\n  %3 = nn.dense(%0, %2);\n"
                     "  %4 = qnn.dequantize(const(Tensor[(1, 2), int32], [8, 9]), "
                     "const(Tensor[(2), float32], [0.25, 0.125]), 0, axis=1);\n"
                     "  %5 = add(%3, %4);\n  qnn.quantize(%5, 2f, 0)\n"),
      "%0 = qnn.dense(%x, const(Tensor[(2, 3), int8], [1, 3, 5, 2, 4, 6]), -1, 0, 0.5f, " + kScales +
          ");\n%1 = nn.bias_add(%0, const(Tensor[(2), int32], [8, 9]));\n"
          "%2 = qnn.requantize(%1, const(Tensor[(2), float32], [0.25, 0.125]), 0, 2f, 0, axis=1);\n%2\n");
}

TEST(QdqLayers, AnActivationBetweenBecomesAClip) {
  const std::string body = conv(kPerTensor, "  %b = clip(%2, a_min=0f, a_max=6f);\n", kF32e);
  const std::string after = lower(kData, body);
  EXPECT_TRUE(after.ends_with("contract=\"f32e\");\n%2 = clip(%1, a_min=7f, a_max=55f);\n%2\n")) << after;
}

TEST(QdqLayers, SharedResultsStay) {
  EXPECT_EQ(
      lower(kData, "  %0 = qnn.dequantize(%x, 0.5f, 100);\n  %1 = qnn.dequantize(" + kPerTensor +
                       ");\n  %2 = nn.conv2d(%0, %1);\n  %3 = qnn.quantize(%2, 0.125f, 7);\n  (%3, %2)\n"),
      "unchanged");
}

TEST(QdqLayers, SaysWhatStandsInThePlaceOfTheWeights) {
  EXPECT_EQ(why_not("qdq_to_integer", "lower_conv2d", kData + ", %w: Tensor[(2, 2, 1, 1), int8]",
                    conv("%w, 0.25f, 0", "", kF32e)),
            "qnn.quantize 'q': operand 0 (data) -> nn.conv2d 'c': operand 1 (weight) -> qnn.dequantize 'w': "
            "operand 0 "
            "(data): expected constant, found parameter '%w' (Tensor[(2, 2, 1, 1), int8])");
}

}  // namespace
}  // namespace qplan::passes_test::qdq_to_integer_layers_test
