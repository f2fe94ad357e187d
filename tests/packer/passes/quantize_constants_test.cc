#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::quantize_constants_test {
namespace {

// The constant after the pass.
std::string quantize(const std::string& values, const std::string& attrs) {
  return run_pass("quantize_constants", "", "  qnn.quantize(" + values + ", " + attrs + ")\n");
}

const std::string kHalves = "const(Tensor[(4), float32], [0.5, 1.5, -0.5, -2.5])";

TEST(QuantizeConstants, RoundsAsTheContractSays) {
  EXPECT_EQ(quantize(kHalves, "1f, 0"), "const(Tensor[(4), int8], [1, 2, -1, -3])\n");
  EXPECT_EQ(quantize(kHalves, "1f, 0, contract=\"f32e\""), "const(Tensor[(4), int8], [0, 2, 0, -2])\n");
}

TEST(QuantizeConstants, PyTorchMultipliesByTheReciprocal) {
  // In float32 2.25 / 0.3 is 7.5 less a bit, 2.25 * (1 / 0.3) is 7.5.
  const std::string value = "const(Tensor[(1), float32], [2.25])";
  EXPECT_EQ(quantize(value, "0.3f, 0, contract=\"f32e\""), "const(Tensor[(1), int8], [7])\n");
  EXPECT_EQ(quantize(value, "0.3f, 0, contract=\"f32e\", rule=\"mul_even\""),
            "const(Tensor[(1), int8], [8])\n");
}

TEST(QuantizeConstants, PerTensorToUint8) {
  EXPECT_EQ(quantize(kHalves, "0.5f, 114, out_dtype=\"uint8\""),
            "const(Tensor[(4), uint8], [115, 117, 113, 109])\n");
}

TEST(QuantizeConstants, PerAxis) {
  EXPECT_EQ(quantize("const(Tensor[(2, 3), float32], [1, 2, 3, 1, 2, 3])",
                     "const(Tensor[(2), float32], [1, 0.5]), const(Tensor[(2), int32], [0, 10]), axis=0"),
            "const(Tensor[(2, 3), int8], [1, 2, 3, 12, 14, 16])\n");
  EXPECT_EQ(quantize("const(Tensor[(2, 3), float32], [1, 2, 3, 1, 2, 3])",
                     "const(Tensor[(3), float32], [1, 0.5, 0.25]), 0, axis=-1"),
            "const(Tensor[(2, 3), int8], [1, 4, 12, 1, 4, 12])\n");
}

TEST(QuantizeConstants, CountsWhatSaturates) {
  const std::string body = "  qnn.quantize(const(Tensor[(3), float32], [1, 200, -1e9]), 1f, 0, name=\"w\")\n";
  EXPECT_EQ(run_pass("quantize_constants", "", body), "const(Tensor[(3), int8], [1, 127, -128])\n");
  EXPECT_EQ(log_of("quantize_constants", "", body),
            std::vector<std::string>{"quantize_constant: 'w': 3 values to int8, 2 saturated"});
}

TEST(QuantizeConstants, BiasToInt32) {
  EXPECT_EQ(quantize("const(Tensor[(3), float32], [1, -1, 1e9])", "0.001f, 0, out_dtype=\"int32\""),
            "const(Tensor[(3), int32], [1000, -1000, 2147483647])\n");
}

TEST(QuantizeConstants, ToInt16) {
  EXPECT_EQ(quantize("const(Tensor[(4), float32], [100, -200, 3000, 32767])", "0.5f, 0, out_dtype=\"int16\""),
            "const(Tensor[(4), int16], [200, -400, 6000, 32767])\n");
}

TEST(QuantizeConstants, LeavesWhatIsNoConstant) {
  EXPECT_EQ(run_pass("quantize_constants", "%x: Tensor[(4), float32]", "  qnn.quantize(%x, 1f, 0)\n"),
            "unchanged");
  EXPECT_EQ(
      why_not("quantize_constants", "quantize_constant", "%w: Tensor[(4), float32]",
              "  qnn.quantize(%w, 1f, 0, name=\"q\")\n"),
      "qnn.quantize 'q': operand 0 (data): expected constant, found parameter '%w' (Tensor[(4), float32])");
}

// A constant of the file may be read any number of times, each time with another scale.
TEST(QuantizeConstants, CopiesOfOneConstantAreLimited) {
  passes::PassContext context;
  context.fold_budget.bytes = 7;
  const std::string second = "qnn.quantize(" + kHalves + ", 0.5f, 0)";
  const std::string third = "qnn.quantize(" + kHalves + ", 0.25f, 0)";
  EXPECT_EQ(
      run_pass("quantize_constants", "",
               "  %0 = qnn.quantize(" + kHalves + ", 1f, 0);\n  %1 = " + second + ";\n  %2 = " + third +
                   ";\n  (%0, %1, %2)\n",
               context),
      "%0 = " + second + ";\n%1 = " + third + ";\n(const(Tensor[(4), int8], [1, 2, -1, -3]), %0, %1)\n");
}

TEST(QuantizeConstants, CanBeSkipped) {
  passes::PassContext context;
  context.skip = {"quantize_constant"};
  EXPECT_EQ(run_pass("quantize_constants", "", "  qnn.quantize(" + kHalves + ", 1f, 0)\n", context),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::quantize_constants_test
