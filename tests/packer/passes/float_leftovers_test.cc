#include "src/packer/passes/pass.h"
#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::float_leftovers_test {
namespace {

std::string explain(const std::string& params, const std::string& body, bool keep_float = false) {
  const ir::Module module = parse_main(params, body);
  passes::PassContext context;
  context.keep_float = keep_float;
  return passes::explain_float_leftovers(module.main(), context);
}

const std::string kData = "%x: Tensor[(1, 1, 2, 2), int8]";
const std::string kDequantize = "  %0 = qnn.dequantize(%x, 0.5f, 3);\n";

TEST(FloatLeftovers, BordersAndMovementAreNone) {
  EXPECT_EQ(explain(kData, kDequantize + "  transpose(%0, axes=[0, 2, 3, 1])\n"), "");
  EXPECT_EQ(explain("%x: Tensor[(4), float32]", "  qnn.quantize(%x, 1f, 0)\n"), "");
}

TEST(FloatLeftovers, NamesTheRewriteThatCameNearest) {
  EXPECT_EQ(
      explain(kData, kDequantize +
                         "  %1 = nn.conv2d(%0, const(Tensor[(1, 1, 1, 1), float32], [2]), name=\"c\");\n"
                         "  qnn.quantize(%1, 1f, 0, name=\"q\")\n"),
      "float operators are left: nn.conv2d 'c' before qnn.quantize 'q': rewrite 'lower_conv2d': qnn.quantize "
      "'q': operand 0 (data) -> nn.conv2d 'c': operand 1 (weight): expected qnn.dequantize(constant of dtype "
      "int8 or uint8, constant, constant), found a constant (Tensor[(1, 1, 1, 1), float32])");
}

TEST(FloatLeftovers, NamesTheReasonOfAnExtraCondition) {
  EXPECT_EQ(
      explain(kData + ", %y: Tensor[(1, 1, 2, 2), int8]",
              kDequantize +
                  "  %1 = qnn.dequantize(%y, 0.5f, 3, name=\"b\");\n  %2 = subtract(%0, %1, name=\"m\");\n"
                  "  qnn.quantize(%2, 1f, 0, name=\"q\")\n"),
      "float operators are left: subtract 'm' before qnn.quantize 'q': rewrite 'fold_batch_norm': "
      "qnn.quantize "
      "'q': the pattern matches, but what is multiplied or added to is not the result of a convolution or "
      "dense "
      "layer, rewrite 'fuse_unary_chain': qnn.quantize 'q': the pattern matches, but it is a function of two "
      "values, '' and 'b'");
}

TEST(FloatLeftovers, RefusalsAreThoseOfPatternsThatMatch) {
  const auto refusals = [](const std::string& bias, bool keep_float) {
    const ir::Module module =
        parse_main(kData, kDequantize +
                              "  %1 = qnn.dequantize(const(Tensor[(1, 1, 1, 1), int8], [2]), 0.5f, 0);\n"
                              "  %2 = nn.conv2d(%0, %1);\n"
                              "  %3 = nn.bias_add(%2, const(Tensor[(1), float32], [" +
                              bias + "]));\n  qnn.quantize(%3, 1f, 0, name=\"q\")\n");
    passes::PassContext context;
    context.keep_float = keep_float;
    return passes::explain_refusals(module.main(), context);
  };
  EXPECT_EQ(refusals("1e10", false),
            std::vector<std::string>{
                "rewrite 'lower_conv2d': qnn.quantize 'q': the pattern matches, but int32 does not hold the "
                "accumulator of channel 0: its bias 1e+10 is 4e+10 steps of input scale times weight scale, "
                "and its products add from -262 to 248"});
  EXPECT_TRUE(refusals("1", false).empty());  // it fires
  EXPECT_TRUE(refusals("1e10", true).empty());
}

TEST(FloatLeftovers, OperatorsOfTwoTensorsWithoutAKernelAreSaidInASentence) {
  for (const std::string name : {"minimum", "maximum", "divide"}) {
    EXPECT_EQ(
        explain(kData + ", %y: Tensor[(1, 1, 2, 2), int8]",
                kDequantize + "  %1 = qnn.dequantize(%y, 0.5f, 3, name=\"b\");\n  %2 = " + name +
                    "(%0, %1, name=\"m\");\n  qnn.quantize(%2, 1f, 0, name=\"q\")\n"),
        "float operators are left: " + name + " 'm': no integer kernel computes " + name +
            " of several tensors that the model computes; give it one of them as a constant, or compute it "
            "outside of the packed network");
  }
}

TEST(FloatLeftovers, ANetworkIsFloatWhereNothingIsQuantised) {
  const auto is_float = [](const std::string& params, const std::string& body) {
    return passes::is_float_network(parse_main(params, body).main());
  };
  EXPECT_TRUE(is_float("%x: Tensor[(4), float32]", "  tanh(%x)\n"));
  EXPECT_FALSE(is_float("%x: Tensor[(4), float32]", "  %0 = tanh(%x);\n  qnn.quantize(%0, 1f, 0)\n"));
  EXPECT_FALSE(is_float("%x: Tensor[(2, 2), float32]", "  transpose(%x, axes=[1, 0])\n"));
}

TEST(FloatLeftovers, ResultsThatNobodyQuantises) {
  EXPECT_EQ(explain(kData, kDequantize + "  tanh(%0, name=\"t\")\n"),
            "float operators are left: tanh 't': no qnn.quantize comes after it");
}

TEST(FloatLeftovers, TheFirstPlacesAreEnough) {
  std::string body = kDequantize;
  for (int i = 1; i <= 5; ++i) body += "  %" + std::to_string(i) + " = tanh(%0, name=\"t\");\n";
  const std::string text = explain(kData, body + "  (%1, %2, %3, %4, %5)\n");
  EXPECT_TRUE(text.ends_with("\n  and 2 more places")) << text;
}

TEST(FloatLeftovers, KeepFloatIsTheReason) {
  EXPECT_EQ(explain(kData, kDequantize + "  tanh(%0, name=\"t\")\n", true),
            "float operators are left: rewrites that make them integers are left out (keep_float)");
}

}  // namespace
}  // namespace qplan::passes_test::float_leftovers_test
