#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::qdq_to_integer_elementwise_test {
namespace {

std::string lower(const std::string& params, const std::string& body) {
  return run_pass("qdq_to_integer", params, body);
}

const std::string kTwo = "%x: Tensor[(1, 4), int8], %y: Tensor[(1, 4), int8]";
const std::string kDequantize = "  %0 = qnn.dequantize(%x, 0.5f, 3);\n";
const std::string kBoth = kDequantize + "  %1 = qnn.dequantize(%y, 0.25f, -3);\n";

TEST(QdqElementwise, SumsDifferencesAndProducts) {
  for (const auto& [from, to] :
       {std::pair{"add", "qnn.add"}, {"subtract", "qnn.subtract"}, {"multiply", "qnn.mul"}}) {
    EXPECT_EQ(
        lower(kTwo, kBoth + "  %2 = " + from + "(%0, %1);\n  qnn.quantize(%2, 1f, 5, contract=\"f32e\")\n"),
        std::string("%0 = ") + to + "(%x, %y, 0.5f, 3, 0.25f, -3, 1f, 5, contract=\"f32e\");\n%0\n");
  }
}

// Half of 1 and of -1: away from zero they are 1 and -1, under tfl2 1 and 0.
TEST(QdqElementwise, TflitesFloatsAreATableWhereTfl2GivesOtherBytes) {
  const auto quantised = [](const std::string& operands) {
    return lower("%x: Tensor[(1, 4), int8]", kDequantize + "  qnn.quantize(%0, " + operands + ")\n");
  };
  EXPECT_EQ(quantised("1f, 5, rule=\"div_away\""),
            "%0 = qnn.requantize(%x, 0.5f, 3, 1f, 5, multiplier=\"none\");\n%0\n");
  EXPECT_EQ(quantised("0.25f, 130, out_dtype=\"uint8\", rule=\"div_away\""),
            "%0 = qnn.requantize(%x, 0.5f, 3, 0.25f, 130, out_dtype=\"uint8\");\n%0\n");
  EXPECT_EQ(quantised("0.5f, 3, rule=\"div_away\""), "%x\n");
  // Those of other sources have the contract's arithmetic.
  EXPECT_EQ(quantised("1f, 5"), "%0 = qnn.requantize(%x, 0.5f, 3, 1f, 5);\n%0\n");
  EXPECT_EQ(quantised("1f, 5, contract=\"f32e\", rule=\"div_away\""),
            "%0 = qnn.requantize(%x, 0.5f, 3, 1f, 5, contract=\"f32e\");\n%0\n");
}

TEST(QdqElementwise, TflitesFloatsKeepTheirBytes) {
  const std::string params = "%x: Tensor[(1, 1000), int8]";
  for (const char* scales : {"0.3f, 0.2f", "0.5f, 1f", "0.07f, 0.31f", "1e-38f, 3e38f", "3e38f, 1e-38f"}) {
    const std::string text = scales, in = text.substr(0, text.find(',')),
                      out = text.substr(text.find(' ') + 1);
    const std::string body = "  %0 = qnn.dequantize(%x, " + in + ", -7);\n  qnn.quantize(%0, " + out +
                             ", 100, out_dtype=\"uint8\", rule=\"div_away\")\n";
    EXPECT_EQ(results_of(params, "  " + lower(params, body), 5), results_of(params, body, 5)) << scales;
  }
}

TEST(QdqElementwise, OneOperandMayBeAConstantOrTheSame) {
  EXPECT_EQ(
      lower(kTwo, kDequantize + "  %1 = qnn.dequantize(const(Tensor[(4), int8], [1, 2, 3, 4]), 0.25f, 0);\n"
                                "  %2 = add(%0, %1);\n  qnn.quantize(%2, 1f, 5)\n"),
      "%0 = qnn.add(%x, const(Tensor[(4), int8], [1, 2, 3, 4]), 0.5f, 3, 0.25f, 0, 1f, 5);\n%0\n");
  EXPECT_EQ(lower(kTwo, kDequantize + "  %1 = multiply(%0, %0);\n  qnn.quantize(%1, 1f, 5)\n"),
            "%0 = qnn.mul(%x, %x, 0.5f, 3, 0.5f, 3, 1f, 5);\n%0\n");
}

TEST(QdqElementwise, OperandsTakeTheDtypeOfTheResult) {
  EXPECT_EQ(lower("%x: Tensor[(1, 4), int8], %y: Tensor[(1, 4), uint8]",
                  kDequantize + "  %1 = qnn.dequantize(%y, 0.25f, 200);\n  %2 = add(%0, %1);\n"
                                "  qnn.quantize(%2, 1f, 5, contract=\"f32e\")\n"),
            "%0 = qnn.requantize(%y, 0.25f, 200, 0.25f, 72, contract=\"f32e\");\n"
            "%1 = qnn.add(%x, %0, 0.5f, 3, 0.25f, 72, 1f, 5, contract=\"f32e\");\n%1\n");
}

TEST(QdqElementwise, ASumWithAFloatStays) {
  EXPECT_EQ(why_not("qdq_to_integer", "lower_add", "%x: Tensor[(1, 4), int8], %y: Tensor[(1, 4), float32]",
                    kDequantize + "  %1 = add(%0, %y, name=\"a\");\n  qnn.quantize(%1, 1f, 5, name=\"q\")\n"),
            "qnn.quantize 'q': operand 0 (data) -> add 'a': operand 1 (rhs): expected "
            "qnn.dequantize(any of dtype int8 or uint8, constant of shape [], constant of shape []), found "
            "parameter "
            "'%y' (Tensor[(1, 4), float32])");
}

TEST(QdqElementwise, Pools) {
  const std::string params = "%x: Tensor[(1, 2, 4, 4), int8]";
  EXPECT_EQ(lower(params, kDequantize +
                              "  %1 = nn.avg_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[1, 1], "
                              "count_include_pad=True);\n  qnn.quantize(%1, 1f, 5, contract=\"f32e\")\n"),
            "%0 = qnn.avg_pool2d(%x, 0.5f, 3, 1f, 5, pool_size=[2, 2], strides=[2, 2], padding=[1, 1], "
            "count_include_pad=True, contract=\"f32e\");\n%0\n");
  EXPECT_EQ(lower(params,
                  kDequantize + "  %1 = mean(%0, axis=[2, 3], keepdims=True);\n  qnn.quantize(%1, 1f, 5)\n"),
            "%0 = qnn.mean(%x, 0.5f, 3, 1f, 5, axis=[2, 3], keepdims=True);\n%0\n");
}

TEST(QdqElementwise, SoftmaxAndSigmoid) {
  EXPECT_EQ(
      lower(kTwo, kDequantize + "  %1 = nn.softmax(%0, axis=1);\n  qnn.quantize(%1, 0.00390625f, -128)\n"),
      "%0 = qnn.softmax(%x, 0.5f, 3, 0.00390625f, -128, axis=1);\n%0\n");
  EXPECT_EQ(lower(kTwo, kDequantize + "  %1 = sigmoid(%0);\n  qnn.quantize(%1, 0.00390625f, -128)\n"),
            "%0 = qnn.sigmoid(%x, 0.5f, 3, 0.00390625f, -128);\n%0\n");
}

TEST(QdqElementwise, TflitesSigmoidHasOneOutputScale) {
  const std::string body = kDequantize + "  %1 = sigmoid(%0);\n  qnn.quantize(%1, 0.01f, 0, name=\"q\")\n";
  EXPECT_EQ(why_not("qdq_to_integer", "lower_sigmoid", kTwo, body),
            "qnn.quantize 'q': the pattern matches, but contract tfl2 has a sigmoid with output scale 1/256 "
            "and zero "
            "point -128 only");
  EXPECT_NE(run_passes({"qdq_to_integer", "fuse_unary_chain"}, kTwo, body).find("qnn.lookup(%x"),
            std::string::npos);
}

TEST(QdqElementwise, TflitesSoftmaxWithAnotherOutputScaleStaysFloat) {
  const std::string body =
      kDequantize + "  %1 = nn.softmax(%0, axis=1);\n  qnn.quantize(%1, 0.01f, 0, name=\"q\")\n";
  EXPECT_EQ(why_not("qdq_to_integer", "lower_softmax", kTwo, body),
            "qnn.quantize 'q': the pattern matches, but contract tfl2 has a softmax with output scale 1/256 "
            "and zero point -128 only");
}

}  // namespace
}  // namespace qplan::passes_test::qdq_to_integer_elementwise_test
