#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::qdq_to_integer_movement_test {
namespace {

std::string lower(const std::string& params, const std::string& body) {
  return run_pass("qdq_to_integer", params, body);
}

const std::string kInt8 = "%x: Tensor[(1, 2, 4, 4), int8]";
const std::string kFloat = "%x: Tensor[(1, 2, 4, 4), float32]";
const std::string kDequantize = "  %0 = qnn.dequantize(%x, 0.5f, 3);\n";

TEST(QdqMovement, DequantiseSinksThroughAChainInOneVisit) {
  EXPECT_EQ(lower(kInt8, kDequantize + "  %1 = transpose(%0, axes=[0, 2, 3, 1]);\n"
                                       "  %2 = nn.pad(%1, 0f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n"
                                       "  %3 = nn.max_pool2d(%2, pool_size=[2, 2], layout=\"NHWC\");\n"
                                       "  reshape(%3, newshape=[-1])\n"),
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%1 = nn.pad(%0, 3, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n"
            "%2 = nn.max_pool2d(%1, pool_size=[2, 2], layout=\"NHWC\");\n"
            "%3 = reshape(%2, newshape=[-1]);\n"
            "%4 = qnn.dequantize(%3, 0.5f, 3);\n%4\n");
}

TEST(QdqMovement, NoIntegerStandsForNegativeZero) {
  EXPECT_EQ(lower(kInt8, kDequantize + "  nn.pad(%0, -0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])\n"),
            "unchanged");
  EXPECT_EQ(lower(kInt8, kDequantize + "  clip(%0, a_min=-0f, a_max=inff)\n"), "unchanged");
}

TEST(QdqMovement, APadValueMustBeExact) {
  const auto pad = [](const std::string& value) {
    return kDequantize + "  nn.pad(%0, " + value +
           ", pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], name=\"p\")\n";
  };
  EXPECT_EQ(lower(kInt8, pad("-2.5f")),
            "%0 = nn.pad(%x, -2, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n%1 = qnn.dequantize(%0, 0.5f, "
            "3);\n%1\n");
  EXPECT_EQ(lower(kInt8, pad("-2")),
            "%0 = nn.pad(%x, -1, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n"
            "%1 = qnn.dequantize(%0, 0.5f, 3);\n%1\n");
  EXPECT_EQ(lower(kInt8, pad("0.25f")), "unchanged");
  EXPECT_EQ(lower(kInt8, pad("100f")), "unchanged");
  EXPECT_EQ(why_not("qdq_to_integer", "sink_dequantize", kInt8, pad("0.25f")),
            "nn.pad 'p': the pattern matches, but its pad value is not exactly an integer");
}

TEST(QdqMovement, AxesOfScalesMoveAlong) {
  const std::string constant = "const(Tensor[(2, 3), int8], [1, 2, 3, 4, 5, 6])";
  const std::string scales = "const(Tensor[(3), float32], [1, 2, 3])";
  EXPECT_EQ(lower("", "  %0 = qnn.dequantize(" + constant + ", " + scales +
                          ", 0, axis=1);\n"
                          "  transpose(%0, axes=[1, 0])\n"),
            "%0 = transpose(" + constant + ", axes=[1, 0]);\n%1 = qnn.dequantize(%0, " + scales +
                ", 0, axis=0);\n%1\n");
  EXPECT_EQ(lower("", "  %0 = qnn.dequantize(" + constant + ", " + scales +
                          ", 0, axis=1);\n"
                          "  reshape(%0, newshape=[2, 1, 3, 1])\n"),
            "%0 = reshape(" + constant + ", newshape=[2, 1, 3, 1]);\n%1 = qnn.dequantize(%0, " + scales +
                ", 0, axis=2);\n%1\n");
  EXPECT_EQ(lower("", "  %0 = qnn.dequantize(" + constant + ", " + scales +
                          ", 0, axis=1);\n"
                          "  reshape(%0, newshape=[6])\n"),
            "unchanged");
}

TEST(QdqMovement, ConcatenationsOfEqualScalesSink) {
  const std::string params = "%x: Tensor[(1, 4), uint8], %y: Tensor[(1, 2), uint8]";
  EXPECT_EQ(
      lower(params, kDequantize + "  %1 = qnn.dequantize(%y, 0.5f, 3);\n  concatenate((%0, %1), axis=1)\n"),
      "%0 = concatenate((%x, %y), axis=1);\n%1 = qnn.dequantize(%0, 0.5f, 3);\n%1\n");
  EXPECT_EQ(
      lower(params, kDequantize + "  %1 = qnn.dequantize(%y, 0.5f, 4);\n  concatenate((%0, %1), axis=1)\n"),
      "unchanged");
}

TEST(QdqMovement, ConcatenationsOfOtherScalesAreRequantised) {
  EXPECT_EQ(
      lower("%x: Tensor[(1, 4), uint8], %y: Tensor[(1, 2), uint8]",
            kDequantize + "  %1 = qnn.dequantize(%y, 0.25f, 4);\n  %2 = concatenate((%0, %1), axis=1);\n"
                          "  qnn.quantize(%2, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\")\n"),
      "%0 = qnn.requantize(%y, 0.25f, 4, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\");\n"
      "%1 = concatenate((%x, %0), axis=1);\n%1\n");
}

TEST(QdqMovement, TheLargerAndTheSmallerOfDequantisedValuesAreChosenAmongQuantisedOnes) {
  const std::string params = "%x: Tensor[(1, 4), uint8], %y: Tensor[(1, 4), uint8]";
  const std::string tail = "  qnn.quantize(%2, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\")\n";
  for (const std::string name : {"maximum", "minimum"}) {
    const std::string choice = "  %2 = " + name + "(%0, %1);\n";
    EXPECT_EQ(lower(params, kDequantize + "  %1 = qnn.dequantize(%y, 0.25f, 4);\n" + choice + tail),
              "%0 = qnn.requantize(%y, 0.25f, 4, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\");\n"
              "%1 = " +
                  name + "(%x, %0);\n%1\n");
    EXPECT_EQ(lower(params, kDequantize + "  %1 = qnn.dequantize(%y, 0.5f, 3);\n" + choice + tail),
              "%0 = " + name + "(%x, %y);\n%0\n");
  }
}

TEST(QdqMovement, ALeakySlopeIsLeftToTheTable) {
  const std::string params = "%x: Tensor[(1, 4), uint8]";
  EXPECT_EQ(
      lower(params, kDequantize + "  %1 = multiply(%0, 0.125f);\n  %2 = maximum(%0, %1);\n"
                                  "  qnn.quantize(%2, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\")\n"),
      "unchanged");
}

TEST(QdqMovement, SplitsSink) {
  EXPECT_EQ(lower(kInt8, kDequantize + "  %1 = split(%0, indices_or_sections=2, axis=1);\n  (%1.0, %1.1)\n"),
            "%0 = split(%x, indices_or_sections=2, axis=1);\n%1 = qnn.dequantize(%0.0, 0.5f, 3);\n"
            "%2 = qnn.dequantize(%0.1, 0.5f, 3);\n(%1, %2)\n");
}

TEST(QdqMovement, ClipsToWholeStepsSink) {
  EXPECT_EQ(lower(kInt8, kDequantize + "  clip(%0, a_min=0f, a_max=inff)\n"),
            "%0 = clip(%x, a_min=3f, a_max=127f);\n%1 = qnn.dequantize(%0, 0.5f, 3);\n%1\n");
  EXPECT_EQ(lower(kInt8, kDequantize + "  clip(%0, a_min=-1f, a_max=6.1f)\n"), "unchanged");
}

TEST(QdqMovement, QuantiseRisesAboveMovement) {
  EXPECT_EQ(lower(kFloat,
                  "  %0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
                  "  %1 = nn.pad(%0, 1.3f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n"
                  "  qnn.quantize(%1, 0.5f, 3)\n"),
            "%0 = qnn.quantize(%x, 0.5f, 3);\n"
            "%1 = transpose(%0, axes=[0, 2, 3, 1]);\n"
            "%2 = nn.pad(%1, 6, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n%2\n");
}

// NaN stays NaN in the least of floats that begins with it, and is quantised to the zero point, which would
// be compared as a number.
TEST(QdqMovement, QuantiseStaysBelowAComparisonThatMaySeeNan) {
  EXPECT_EQ(lower(kFloat, "  %0 = min(%x, axis=[1]);\n  qnn.quantize(%0, 0.5f, 3)\n"), "unchanged");
  EXPECT_EQ(lower(kFloat, "  %0 = nn.max_pool2d(%x, pool_size=[2, 2]);\n  qnn.quantize(%0, 0.5f, 3)\n"),
            "unchanged");
}

TEST(QdqMovement, QuantiseRisesAboveAComparisonOfSums) {
  const std::string sum =
      "  %0 = qnn.dequantize(%x, 0.5f, 3);\n  %1 = qnn.dequantize(%x, 0.25f, 1);\n"
      "  %2 = add(%0, %1);\n";
  const std::string text = lower(kInt8, sum + "  %3 = min(%2, axis=[1]);\n  qnn.quantize(%3, 0.5f, 3)\n");
  EXPECT_NE(text.find("qnn.add"), std::string::npos) << text;
}

TEST(QdqMovement, AMovementWithOtherReadersStays) {
  EXPECT_EQ(
      lower(kFloat, "  %0 = reshape(%x, newshape=[32]);\n  %1 = qnn.quantize(%0, 0.5f, 3);\n  (%0, %1)\n"),
      "unchanged");
}

TEST(QdqMovement, QuantiseRisesAboveClips) {
  // Half away from zero: 2.25 / 0.5 + 3 is 7.5.
  EXPECT_EQ(lower(kFloat, "  %0 = clip(%x, a_min=0f, a_max=2.25f);\n  qnn.quantize(%0, 0.5f, 3)\n"),
            "%0 = qnn.quantize(%x, 0.5f, 3);\n%1 = clip(%0, a_min=3f, a_max=8f);\n%1\n");
  EXPECT_EQ(
      lower(kFloat,
            "  %0 = clip(%x, a_min=0f, a_max=2.25f);\n  qnn.quantize(%0, 0.5f, 3, contract=\"f32e\")\n"),
      "%0 = qnn.quantize(%x, 0.5f, 3, contract=\"f32e\");\n%1 = clip(%0, a_min=3f, a_max=7f);\n%1\n");
  EXPECT_EQ(
      lower(kFloat,
            "  %0 = clip(%x, a_min=0f, a_max=inff);\n  qnn.quantize(%0, 0.5f, 0, out_dtype=\"uint8\")\n"),
      "%0 = qnn.quantize(%x, 0.5f, 0, out_dtype=\"uint8\");\n%0\n");
}

// NaN passes a clip and is quantised to the zero point, also where that is outside of the clip.
TEST(QdqMovement, QuantiseStaysBelowAClipThatLeavesOutZero) {
  EXPECT_EQ(lower(kFloat, "  %0 = clip(%x, a_min=1f, a_max=2f);\n  qnn.quantize(%0, 0.5f, 3)\n"),
            "unchanged");
  EXPECT_EQ(why_not("qdq_to_integer", "raise_quantize_above_clip", kFloat,
                    "  %0 = clip(%x, a_min=1f, a_max=2f);\n  qnn.quantize(%0, 0.5f, 3, name=\"q\")\n"),
            "qnn.quantize 'q': the pattern matches, but NaN would become an end of [5, 7] in place of the "
            "zero point 3");
}

TEST(QdqMovement, QuantiseRisesAboveAnyClipOfALayerOfIntegers) {
  const std::string weights = "const(Tensor[(1, 2), int8], [1, 2])";
  const std::string text = lower("%x: Tensor[(3, 2), int8]",
                                 "  %0 = qnn.dequantize(%x, 0.5f, 3);\n  %1 = qnn.dequantize(" + weights +
                                     ", 0.5f, 0);\n  %2 = nn.dense(%0, %1);\n"
                                     "  %3 = clip(%2, a_min=1f, a_max=2f);\n"
                                     "  qnn.quantize(%3, 0.5f, 3)\n");
  EXPECT_NE(text.find("qnn.dense"), std::string::npos) << text;
  EXPECT_NE(text.find("a_min=5f, a_max=7f"), std::string::npos) << text;
}

TEST(QdqMovement, DequantiseAndQuantiseMeet) {
  EXPECT_EQ(lower(kInt8, kDequantize + "  qnn.quantize(%0, 0.5f, 3)\n"), "%x\n");
  EXPECT_EQ(lower(kInt8, kDequantize + "  qnn.quantize(%0, 0.5f, 3, rule=\"mul_even\", contract=\"f32e\")\n"),
            "%x\n");
  EXPECT_EQ(lower(kInt8, kDequantize + "  qnn.quantize(%0, 0.25f, 3, contract=\"f32e\")\n"),
            "%0 = qnn.requantize(%x, 0.5f, 3, 0.25f, 3, contract=\"f32e\");\n%0\n");
  EXPECT_EQ(lower(kInt8, kDequantize + "  qnn.quantize(%0, 0.5f, 131, out_dtype=\"uint8\")\n"),
            "%0 = qnn.requantize(%x, 0.5f, 3, 0.5f, 131, out_dtype=\"uint8\");\n%0\n");
  // hardtanh of PyTorch, between two observers of one scale.
  EXPECT_EQ(
      lower(kInt8, kDequantize + "  %1 = clip(%0, a_min=0f, a_max=6.1f);\n  qnn.quantize(%1, 0.5f, 3)\n"),
      "%0 = clip(%x, a_min=3f, a_max=15f);\n%0\n");
}

// The layout of a float result is changed before it is dequantised: passes of both kinds must agree on that.
TEST(QdqMovement, ADequantisedResultInAnotherLayoutIsAFixpoint) {
  EXPECT_EQ(
      run_passes({"qdq_to_integer", "convert_layout", "eliminate_layout", "dead_code"},
                 "%x: Tensor[(1, 2, 4, 4), int8]",
                 "  %0 = nn.max_pool2d(%x, pool_size=[2, 2]);\n  qnn.dequantize(%0, 0.5f, 3)\n"),
      "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n%1 = nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\");\n"
      "%2 = transpose(%1, axes=[0, 3, 1, 2]);\n%3 = qnn.dequantize(%2, 0.5f, 3);\n%3\n");
}

TEST(QdqMovement, KeepFloatLeavesEverything) {
  passes::PassContext context;
  context.keep_float = true;
  EXPECT_EQ(run_pass("qdq_to_integer", kInt8, kDequantize + "  qnn.quantize(%0, 0.5f, 3)\n", context),
            "unchanged");
}

// On the reference kernels: before and after give the same bytes.
TEST(QdqMovement, ExactRewritesKeepTheBytes) {
  const std::string body = kDequantize +
                           "  %1 = transpose(%0, axes=[0, 2, 3, 1]);\n  %2 = reshape(%1, newshape=[4, 8]);\n"
                           "  qnn.quantize(%2, 0.5f, -3, contract=\"tfl2\")\n";
  const std::string after = lower(kInt8, body);
  EXPECT_EQ(after.find("dequantize"), std::string::npos) << after;
  EXPECT_EQ(results_of(kInt8, body, 1), results_of(kInt8, after, 1));
}

TEST(QdqMovement, ALongChainTakesOneVisit) {
  std::string body = kDequantize;
  constexpr int kLength = 20000;
  for (int i = 1; i <= kLength; ++i) {
    body += "  %" + std::to_string(i) + " = transpose(%" + std::to_string(i - 1) + ", axes=[0, 1, 3, 2]);\n";
  }
  const std::string last = "%" + std::to_string(kLength);
  EXPECT_TRUE(
      lower(kInt8, body + "  " + last + "\n")
          .ends_with(" = qnn.dequantize(%" + std::to_string(kLength - 1) + ", 0.5f, 3);\n" + last + "\n"));
}

}  // namespace
}  // namespace qplan::passes_test::qdq_to_integer_movement_test
