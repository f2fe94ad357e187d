#include <gtest/gtest.h>

#include "tests/packer/op/infer_text.h"

namespace qplan::elementwise_test {
namespace {

const char kParams[] =
    "%f: Tensor[(2, 3), float32], %i: Tensor[(2, 3), int8], %u: Tensor[(2, 3), uint8], "
    "%b: Tensor[(2, 3), int32], %s: int8, %h: Tensor[(2, 3), float16]";

std::string infer(const std::string& expression) { return infer_text(kParams, expression); }

TEST(InferQuantize, TakesItsDtypeFromTheAttribute) {
  EXPECT_EQ(infer("qnn.quantize(%f, 0.5f, 0)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("qnn.quantize(%f, 0.5f, 200, out_dtype=\"uint8\")"), "Tensor[(2, 3), uint8]");
  EXPECT_EQ(infer("qnn.quantize(%f, 0.5f, 70000, out_dtype=\"int32\")"), "Tensor[(2, 3), int32]");
  EXPECT_EQ(infer("qnn.quantize(%i, 0.5f, 0)"),
            "qnn.quantize (node 0): dtype int8 of 'data' is not supported, expected float32");
  EXPECT_EQ(infer("qnn.quantize(%f, 0.5f, 128)"),
            "qnn.quantize (node 0): 'output_zero_point' has a value 128, outside of int8");
  EXPECT_EQ(
      infer("qnn.quantize(%f, 0.5f, 0, out_dtype=\"int64\")"),
      "qnn.quantize (node 0): attribute 'out_dtype' is int64, expected one of int8, uint8, int16, int32");
  EXPECT_EQ(
      infer("qnn.quantize(%f, 0.5f, 0, contract=\"tfl3\")"),
      "qnn.quantize (node 0): attribute 'contract' is 'tfl3', expected one of 'tfl2', 'tfl1', 'f32e', 'pot', "
      "'acc32'");
}

TEST(InferQuantize, ConstantsAlongAnAxis) {
  const std::string scale3 = "const(Tensor[(3), float32], [1, 2, 3])",
                    zero2 = "const(Tensor[(2), int32], [1, 2])";
  EXPECT_EQ(infer("qnn.quantize(%f, " + scale3 + ", 0)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("qnn.quantize(%f, 1f, " + zero2 + ", axis=0)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("qnn.quantize(%f, 1f, 0, axis=7)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("qnn.quantize(%f, " + scale3 + ", 0, axis=0)"),
            "qnn.quantize (node 0): 'output_scale' is Tensor[(3), float32], expected float32 or Tensor[(2), "
            "float32]");
  EXPECT_EQ(infer("qnn.quantize(%f, " + scale3 + ", 0, axis=2)"),
            "qnn.quantize (node 0): axis 2 is out of range, expected from -2 to 1");
  EXPECT_EQ(infer_text("%f: float32", "qnn.quantize(%f, " + scale3 + ", 0)"),
            "qnn.quantize (node 0): axis -1 of a scalar does not exist");
}

TEST(InferDequantize, GivesFloat) {
  EXPECT_EQ(infer("qnn.dequantize(%u, 0.5f, 255)"), "Tensor[(2, 3), float32]");
  EXPECT_EQ(infer("qnn.dequantize(%b, 0.5f, 0)"), "Tensor[(2, 3), float32]");
  EXPECT_EQ(infer("qnn.dequantize(%i, 0.5f, 255)"),
            "qnn.dequantize (node 0): 'input_zero_point' has a value 255, outside of int8");
  EXPECT_EQ(infer("qnn.dequantize(%f, 0.5f, 0)"),
            "qnn.dequantize (node 0): dtype float32 of 'data' is not supported, expected one of int8, uint8, "
            "int16, int32");
}

TEST(InferRequantize, FromAccumulatorsAndQuantised) {
  EXPECT_EQ(
      infer("qnn.requantize(%b, const(Tensor[(3), float32], [1, 2, 3]), 0, 1f, 3, out_dtype=\"uint8\")"),
      "Tensor[(2, 3), uint8]");
  EXPECT_EQ(infer("qnn.requantize(%i, 1f, -128, 1f, 0, out_dtype=\"uint8\", multiplier=\"product_f32\")"),
            "Tensor[(2, 3), uint8]");
  EXPECT_EQ(infer("qnn.requantize(%i, 1f, 0, -1f, 0)"),
            "qnn.requantize (node 0): 'output_scale' has a value -1f, expected positive and finite");
  EXPECT_EQ(infer("qnn.requantize(%u, 1f, 0, 1f, 0, multiplier=\"none\")"), "Tensor[(2, 3), int8]");
  const std::string one_byte =
      "qnn.requantize (node 0): attribute 'multiplier' is \"none\", expected 8-bit results and scales of one "
      "number";
  EXPECT_EQ(infer("qnn.requantize(%i, 1f, 0, 1f, 0, out_dtype=\"int16\", multiplier=\"none\")"), one_byte);
  EXPECT_EQ(infer("qnn.requantize(%i, const(Tensor[(3), float32], [1, 2, 3]), 0, 1f, 3, "
                  "multiplier=\"none\")"),
            one_byte);
  EXPECT_EQ(infer("qnn.requantize(%b, 1f, 0, 1f, 0, multiplier=\"none\")"),
            "qnn.requantize (node 0): dtype int32 of 'data' is not supported, expected one of int8, uint8");
  EXPECT_EQ(infer("qnn.requantize(%i, 1f, 0, 1f, 0, multiplier=\"other\")"),
            "qnn.requantize (node 0): attribute 'multiplier' is 'other', expected one of 'product_f64', "
            "'product_f32', 'none'");
}

TEST(InferBinary, BroadcastsLikeNumPy) {
  const std::string params =
      "%a: Tensor[(4, 1, 3), int8], %b: Tensor[(2, 1), int8], %c: Tensor[(5), int8], "
      "%d: int8, %u: Tensor[(4, 2, 3), uint8]";
  const std::string q = ", 1f, 0, 1f, 0, 1f, 0";
  EXPECT_EQ(infer_text(params, "qnn.add(%a, %b" + q + ")"), "Tensor[(4, 2, 3), int8]");
  EXPECT_EQ(infer_text(params, "qnn.subtract(%d, %a" + q + ")"), "Tensor[(4, 1, 3), int8]");
  EXPECT_EQ(infer_text(params, "qnn.mul(%b, %a" + q + ")"), "Tensor[(4, 2, 3), int8]");
  EXPECT_EQ(infer_text(params, "qnn.mul(%a, %c" + q + ")"),
            "qnn.mul (node 0): shapes [4, 1, 3] and [5] do not broadcast: extents 3 and 5");
  EXPECT_EQ(infer_text(params, "qnn.add(%a, %u" + q + ")"),
            "qnn.add (node 0): 'rhs' is uint8, expected int8 as 'lhs'");
  EXPECT_EQ(infer_text(params, "qnn.add(%a, %b, 1f, 0, 1f, 200, 1f, 0)"),
            "qnn.add (node 0): 'rhs_zero_point' has a value 200, outside of int8");
}

TEST(InferBinary, BroadcastThatExplodesIsRefused) {
  EXPECT_EQ(infer_text("%a: Tensor[(2000000, 1), int8], %b: Tensor[(1, 2000000), int8]",
                       "qnn.add(%a, %b, 1f, 0, 1f, 0, 1f, 0)"),
            "qnn.add (node 0): result: Tensor[(2000000, 2000000), int8] is larger than 1099511627776 bytes");
}

TEST(InferClip, BoundsAreOrderedAndWhole) {
  EXPECT_EQ(infer("clip(%i, a_min=0f, a_max=127f)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("clip(%i, a_min=0, a_max=inff)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("clip(%f, a_min=-0.5f, a_max=0.5f)"), "Tensor[(2, 3), float32]");
  EXPECT_EQ(infer("clip(%i, a_min=0.5f, a_max=3f)"),
            "clip (node 0): attributes 'a_min' and 'a_max' must be integers for int8");
  const std::string order =
      "clip (node 0): attribute 'a_min' must not be larger than 'a_max', and neither may be NaN";
  EXPECT_EQ(infer("clip(%i, a_min=4f, a_max=3f)"), order);
  EXPECT_EQ(infer("clip(%f, a_min=nanf, a_max=3f)"), order);
  EXPECT_EQ(infer("clip(%i, a_min=4f)"), "clip (node 0): attribute 'a_max' is missing");
  EXPECT_EQ(
      infer("clip(%h, a_min=0f, a_max=1f)"),
      "clip (node 0): dtype float16 of 'data' is not supported, expected one of int8, uint8, int16, int32, "
      "int64, float32, float64");
}

TEST(InferCast, AnyOfTheKnownDtypes) {
  EXPECT_EQ(infer("cast(%b, dtype=\"int8\")"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("cast(%s, dtype=\"int64\")"), "int64");
  EXPECT_EQ(infer("cast(%s, dtype=\"float16\")"),
            "cast (node 0): attribute 'dtype' is float16, expected one of int8, uint8, int16, uint16, int32, "
            "uint32, int64, uint64, float32, float64, bool");
  EXPECT_EQ(infer("cast(%s, dtype=3)"), "cast (node 0): attribute 'dtype' must be a string");
}

TEST(InferActivation, KeepsTheType) {
  EXPECT_EQ(infer("qnn.sigmoid(%i, 1f, 0, 0.00390625f, -128)"), "Tensor[(2, 3), int8]");
  EXPECT_EQ(infer("qnn.softmax(%u, 1f, 0, 0.00390625f, 0, axis=1, beta=0.5f)"), "Tensor[(2, 3), uint8]");
  EXPECT_EQ(infer("qnn.softmax(%u, 1f, 0, 1f, 0, axis=2)"),
            "qnn.softmax (node 0): axis 2 is out of range, expected from -2 to 1");
  EXPECT_EQ(infer("qnn.softmax(%u, 1f, 0, 1f, 0, beta=0f)"),
            "qnn.softmax (node 0): attribute 'beta' must be positive and finite");
  EXPECT_EQ(infer("qnn.sigmoid(%f, 1f, 0, 1f, 0)"),
            "qnn.sigmoid (node 0): dtype float32 of 'data' is not supported, expected one of int8, uint8");
}

}  // namespace
}  // namespace qplan::elementwise_test
