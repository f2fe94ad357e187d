#include <cmath>

#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::fold_batch_norm_test {
namespace {

const std::string kData = "%x: Tensor[(1, 2, 3, 3), uint8]";
const std::string kWeights = "const(Tensor[(2, 2, 1, 1), int8], [1, -2, 3, 4])";
const std::string kHead = "  %0 = qnn.dequantize(%x, 0.5f, 100);\n  %1 = qnn.dequantize(" + kWeights +
                          ", 0.25f, 0, name=\"w\");\n  %2 = nn.conv2d(%0, %1, name=\"c\");\n";
const std::string kQuantize = ", 0.125f, 7, name=\"q\")\n";

std::string fold(const std::string& body) { return run_pass("fold_batch_norm", kData, body); }
std::string reason(const std::string& body) {
  return why_not("fold_batch_norm", "fold_batch_norm", kData, body);
}

// weights: constant, scale and the rest of qnn.dequantize.
std::string folded(const std::string& weights, const std::string& bias) {
  return "%0 = qnn.dequantize(%x, 0.5f, 100);\n%1 = qnn.dequantize(" + weights +
         ", axis=0);\n%2 = nn.conv2d(%0, %1);\n%3 = nn.bias_add(%2, const(Tensor[(2), float32], [" + bias +
         "]));\n%4 = qnn.quantize(%3, 0.125f, 7);\n%4\n";
}

TEST(FoldBatchNorm, FactorsGoIntoTheScalesAndAddendsIntoTheBias) {
  // gamma / sqrt(var + eps) is [2, 0.5], beta - mean * that is [1 - 3 * 2, 2 - 4 * 0.5].
  EXPECT_EQ(
      fold(kHead +
           "  %3 = nn.batch_norm(%2, const(Tensor[(2), float32], [1, 1]), const(Tensor[(2), float32], [1, "
           "2]), "
           "const(Tensor[(2), float32], [3, 4]), const(Tensor[(2), float32], [0, 3.75]), epsilon=0.25f);\n"
           "  qnn.quantize(%3" +
           kQuantize),
      folded(kWeights + ", const(Tensor[(2), float32], [0.5, 0.125]), 0", "-5, 0"));
}

TEST(FoldBatchNorm, TheBiasThatIsThereIsScaled) {
  EXPECT_EQ(fold(kHead +
                 "  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [8, 4]));\n"
                 "  %4 = multiply(%3, const(Tensor[(1, 2, 1, 1), float32], [2, 4]));\n"
                 "  %5 = subtract(%4, const(Tensor[(2, 1, 1), float32], [1, 2]));\n  qnn.quantize(%5" +
                 kQuantize),
            folded(kWeights + ", const(Tensor[(2), float32], [0.5, 1]), 0", "15, 14"));
}

TEST(FoldBatchNorm, OneFactorForAllKeepsOneScale) {
  EXPECT_EQ(fold(kHead + "  %3 = divide(%2, 4f);\n  %4 = add(1f, %3);\n  qnn.quantize(%4" + kQuantize),
            folded(kWeights + ", 0.0625f, 0", "1, 1"));
}

TEST(FoldBatchNorm, FactorsAreIntegersOfEveryWidth) {
  for (const std::string dtype : {"int8", "int16", "int32"}) {
    EXPECT_EQ(fold(kHead + "  %3 = qnn.dequantize(const(Tensor[(2, 1, 1), " + dtype +
                   "], [100, 0]), 0.25f, 4);\n  %4 = add(%2, %3);\n  qnn.quantize(%4" + kQuantize),
              folded(kWeights + ", 0.25f, 0", "24, -1"));
  }
  EXPECT_EQ(fold(kHead +
                 "  %3 = qnn.dequantize(const(Tensor[(2, 1, 1), int16], [1000, 2000]), 0.5f, 0);\n"
                 "  %4 = multiply(%2, %3);\n  qnn.quantize(%4" +
                 kQuantize),
            folded(kWeights + ", const(Tensor[(2), float32], [125, 250]), 0", "0, 0"));
}

// Quantisation-aware training exports the weights' factor, its inverse, and the batch normalisation that has
// it again.
TEST(FoldBatchNorm, AFactorTakenAwayAndPutBackIsRoundedOnce) {
  const ir::Module module =
      parse_main(kData, kHead +
                            "  %3 = divide(%2, const(Tensor[(1, 2, 1, 1), float32], [0.3, 0.7]));\n"
                            "  %4 = nn.batch_norm(%3, const(Tensor[(2), float32], [0.6, 1.1]), "
                            "const(Tensor[(2), float32], [0, 0]), "
                            "const(Tensor[(2), float32], [0, 0]), const(Tensor[(2), float32], [1.5, "
                            "2.5]));\n  qnn.quantize(%4" +
                            kQuantize);
  passes::PassContext context;
  const auto result = passes::find_pass("fold_batch_norm")->run(module, module.main(), context);
  ASSERT_NE(result, nullptr);
  const auto scales = result->value(result->nodes()[1].operands[1]).constant->as<float>();
  for (size_t o = 0; o < 2; ++o) {
    const double gamma = static_cast<double>(o == 0 ? 0.6f : 1.1f), variance = o == 0 ? 1.5 : 2.5;
    const double divisor = static_cast<double>(o == 0 ? 0.3f : 0.7f);
    EXPECT_EQ(scales[o], static_cast<float>(0.25 * (gamma / std::sqrt(variance + 1e-5) / divisor))) << o;
  }
}

TEST(FoldBatchNorm, TheClipStaysBehind) {
  const std::string after =
      fold(kHead + "  %3 = multiply(%2, 2f);\n  %4 = clip(%3, a_min=0f, a_max=6f);\n  qnn.quantize(%4" +
           kQuantize);
  EXPECT_NE(after.find("%4 = clip(%3, a_min=0f, a_max=6f);\n%5 = qnn.quantize(%4, 0.125f, 7);\n"),
            std::string::npos)
      << after;
}

TEST(FoldBatchNorm, NegativeFactorsTurnTheWeights) {
  EXPECT_EQ(
      fold(kHead + "  %3 = multiply(%2, const(Tensor[(2, 1, 1), float32], [-2, 1]));\n  qnn.quantize(%3" +
           kQuantize),
      folded("const(Tensor[(2, 2, 1, 1), int8], [-1, 2, 3, 4]), const(Tensor[(2), float32], [0.5, 0.25]), 0",
             "0, 0"));
}

TEST(FoldBatchNorm, AFactorOfZeroLeavesTheBias) {
  EXPECT_EQ(
      fold(kHead + "  %3 = multiply(%2, const(Tensor[(2, 1, 1), float32], [0, 1]));\n  qnn.quantize(%3" +
           kQuantize),
      folded("const(Tensor[(2, 2, 1, 1), int8], [0, 0, 3, 4]), 0.25f, 0", "0, 0"));
}

TEST(FoldBatchNorm, WeightsWithoutCounterpartStay) {
  const std::string head =
      "  %0 = qnn.dequantize(%x, 0.5f, 100);\n"
      "  %1 = qnn.dequantize(const(Tensor[(2, 2, 1, 1), int8], [1, -128, 3, 4]), 0.25f, 0);\n"
      "  %2 = nn.conv2d(%0, %1);\n";
  EXPECT_EQ(
      reason(head + "  %3 = multiply(%2, -1f);\n  qnn.quantize(%3" + kQuantize),
      "qnn.quantize 'q': the pattern matches, but a factor is negative, and a weight of its channel has no "
      "counterpart on the other side of the zero point");
}

TEST(FoldBatchNorm, SaysWhyNot) {
  EXPECT_EQ(
      reason(kHead +
             "  %3 = multiply(%2, const(Tensor[(3), float32], [1, 2, 3]), name=\"m\");\n  qnn.quantize(%3" +
             kQuantize),
      "qnn.quantize 'q': the pattern matches, but operand 1 of 'm' (Tensor[(3), float32]) is not a constant "
      "with "
      "one value, or one per output channel");
  EXPECT_EQ(reason(kHead + "  %3 = divide(%2, 0f, name=\"d\");\n  qnn.quantize(%3" + kQuantize),
            "qnn.quantize 'q': the pattern matches, but with 'd' the factor or addend of channel 0 is no "
            "finite number");
  EXPECT_EQ(reason("  %0 = qnn.dequantize(%x, 0.5f, 100);\n"
                   "  %1 = nn.conv2d(%0, const(Tensor[(1, 2, 1, 1), float32], [1, 2]), name=\"c\");\n"
                   "  %2 = multiply(%1, 2f);\n  qnn.quantize(%2" +
                   kQuantize),
            "qnn.quantize 'q': the pattern matches, but the weights of 'c' are a constant, expected "
            "qnn.dequantize of an "
            "8-bit constant");
}

TEST(FoldBatchNorm, ABiasAloneIsLeftToTheLayer) {
  EXPECT_EQ(fold(kHead + "  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [8, 4]));\n  qnn.quantize(%3" +
                 kQuantize),
            "unchanged");
}

TEST(FoldBatchNorm, ValuesWithOtherReadersStay) {
  EXPECT_EQ(fold(kHead + "  %3 = multiply(%2, 2f);\n  %4 = qnn.quantize(%3, 0.125f, 7);\n  (%4, %2)\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::fold_batch_norm_test
