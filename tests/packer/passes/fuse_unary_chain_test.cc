#include <algorithm>
#include <cmath>

#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::fuse_unary_chain_test {
namespace {

const std::string kData = "%x: Tensor[(1, 4), int8]";
const std::string kDequantize = "  %0 = qnn.dequantize(%x, 0.0625f, -10);\n";

// The table of the qnn.lookup that the pass makes; empty when it makes none.
std::vector<int8_t> table_of(const std::string& body) {
  const ir::Module module = parse_main(kData, body);
  passes::PassContext context;
  const auto result = passes::find_pass("fuse_unary_chain")->run(module, module.main(), context);
  if (result == nullptr || result->nodes().size() != 1 || result->nodes()[0].op->name != "qnn.lookup")
    return {};
  EXPECT_EQ(result->nodes()[0].operands[0], result->params()[0]);
  const auto values = result->value(result->nodes()[0].operands[1]).constant->as<int8_t>();
  return {values.begin(), values.end()};
}

// clamp(rne(f(x) / 0.03125) + 5), each operation of f in float32.
template <typename F>
std::vector<int8_t> expected(F f) {
  std::vector<int8_t> table;
  for (int byte = 0; byte < 256; ++byte) {
    const float x = static_cast<float>(static_cast<int8_t>(byte) + 10) * 0.0625f;
    const float real = std::nearbyint(f(x) / 0.03125f) + 5.0f;
    table.push_back(static_cast<int8_t>(std::clamp(real, -128.0f, 127.0f)));
  }
  return table;
}

const std::string kQuantize = ", 0.03125f, 5, contract=\"f32e\", name=\"q\")\n";

TEST(FuseUnaryChain, OneOperator) {
  EXPECT_EQ(table_of(kDequantize + "  %1 = tanh(%0);\n  qnn.quantize(%1" + kQuantize),
            expected([](float x) { return static_cast<float>(std::tanh(static_cast<double>(x))); }));
  EXPECT_EQ(table_of(kDequantize + "  %1 = nn.leaky_relu(%0, alpha=0.25f);\n  qnn.quantize(%1" + kQuantize),
            expected([](float x) { return x < 0 ? x * 0.25f : x; }));
}

TEST(FuseUnaryChain, OperatorsWithScalarsInTheOrderOfTheGraph) {
  EXPECT_EQ(
      table_of(kDequantize +
               "  %1 = subtract(3.1f, %0);\n  %2 = multiply(%1, const(Tensor[(1, 1), float32], [0.3]));\n"
               "  %3 = clip(%2, a_min=-0.5f, a_max=0.7f);\n  %4 = negative(%3);\n  qnn.quantize(%4" +
               kQuantize),
      expected([](float x) { return -std::clamp((3.1f - x) * 0.3f, -0.5f, 0.7f); }));
}

TEST(FuseUnaryChain, TheValueMayBeReadSeveralTimes) {
  // HardSwish.
  const auto hard_swish = expected([](float x) {
    const double gate = std::clamp(static_cast<double>(x) / 6.0 + 0.5, 0.0, 1.0);
    return x * static_cast<float>(gate);
  });
  EXPECT_EQ(
      table_of(kDequantize +
               "  %1 = hard_sigmoid(%0, alpha=0.16666666666666666f64, beta=0.5f);\n  %2 = multiply(%0, %1);\n"
               "  qnn.quantize(%2" +
               kQuantize),
      hard_swish);
  // Exporters write a DequantizeLinear for each reader.
  EXPECT_EQ(
      table_of(kDequantize +
               "  %1 = qnn.dequantize(%x, 0.0625f, -10);\n"
               "  %2 = hard_sigmoid(%0, alpha=0.16666666666666666f64, beta=0.5f);\n  %3 = multiply(%1, %2);\n"
               "  qnn.quantize(%3" +
               kQuantize),
      hard_swish);
}

TEST(FuseUnaryChain, NothingBetweenIsNotForIt) {
  EXPECT_TRUE(table_of(kDequantize + "  qnn.quantize(%0" + kQuantize).empty());
}

TEST(FuseUnaryChain, SaysWhatIsNoFunctionOfOneValue) {
  const auto reason = [](const std::string& params, const std::string& body) {
    return why_not("fuse_unary_chain", "fuse_unary_chain", params, body);
  };
  EXPECT_EQ(reason(kData + ", %y: Tensor[(1, 4), float32]",
                   kDequantize + "  %1 = add(%0, %y);\n  qnn.quantize(%1" + kQuantize),
            "qnn.quantize 'q': the pattern matches, but parameter '%y' is no function of one 8-bit value");
  EXPECT_EQ(
      reason(
          kData + ", %y: Tensor[(1, 4), int8]",
          "  %0 = qnn.dequantize(%x, 0.5f, 0, name=\"a\");\n  %1 = qnn.dequantize(%y, 0.5f, 0, name=\"b\");\n"
          "  %2 = add(%0, %1);\n  qnn.quantize(%2" +
              kQuantize),
      "qnn.quantize 'q': the pattern matches, but it is a function of two values, 'a' and 'b'");
  EXPECT_EQ(
      reason(kData, kDequantize + "  %1 = nn.softmax(%0, name=\"s\");\n  %2 = abs(%1);\n  qnn.quantize(%2" +
                        kQuantize),
      "qnn.quantize 'q': the pattern matches, but nn.softmax 's' is no function of one 8-bit value");
}

TEST(FuseUnaryChain, TheLogNamesOperatorsAndContract) {
  EXPECT_EQ(log_of("fuse_unary_chain", kData,
                   kDequantize + "  %1 = tanh(%0);\n  %2 = abs(%1);\n  qnn.quantize(%2" + kQuantize),
            std::vector<std::string>{"fuse_unary_chain: 'q': a table of tanh, abs; contract f32e"});
}

}  // namespace
}  // namespace qplan::passes_test::fuse_unary_chain_test
