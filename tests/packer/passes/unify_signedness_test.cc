#include "tests/packer/passes/pass_test_support.h"

namespace qplan::passes_test::unify_signedness_test {
namespace {

std::string unify(const std::string& params, const std::string& body, bool contract_is_chosen = false) {
  passes::PassContext context;
  context.contract_is_chosen = contract_is_chosen;
  return run_pass("unify_signedness", params, body, context);
}

// float32 [1, 2, 2, 1] as uint8 with zero point 131, and back from it.
const std::string kFloat = "%x: Tensor[(1, 2, 2, 1), float32]";
const std::string kQuantize = "  %0 = qnn.quantize(%x, 0.5f, 131, out_dtype=\"uint8\");\n";
const std::string kQuantized = "%0 = qnn.quantize(%x, 0.5f, 3);\n";
std::string dequantize(const std::string& value, int zero_point) {
  return "qnn.dequantize(" + value + ", 0.5f, " + std::to_string(zero_point) + ")";
}

// What becomes of a node between the two, which is the same in int8.
std::string between(const std::string& node, bool contract_is_chosen = false) {
  const std::string text = unify(
      kFloat, kQuantize + "  %1 = " + node + ";\n  " + dequantize("%1", 131) + "\n", contract_is_chosen);
  const size_t begin = text.find("%1 = ");
  return begin == std::string::npos ? text : text.substr(begin + 5, text.find(";\n", begin) - begin - 5);
}

TEST(UnifySignedness, WhatIsQuantisedInsideIsInt8) {
  EXPECT_EQ(unify(kFloat, kQuantize + "  %1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n  " +
                              dequantize("%1", 131) + "\n"),
            kQuantized + "%1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n%2 = " +
                dequantize("%1", 3) + ";\n%2\n");
}

TEST(UnifySignedness, Int8NetworksStay) {
  EXPECT_EQ(unify(kFloat, "  %0 = qnn.quantize(%x, 0.5f, 3);\n  %1 = clip(%0, a_min=3f, a_max=9f);\n  " +
                              dequantize("%1", 3) + "\n"),
            "unchanged");
}

TEST(UnifySignedness, ZeroPointsBoundsAndConstantsMoveAlong) {
  EXPECT_EQ(between("clip(%0, a_min=131f, a_max=300f)"), "clip(%0, a_min=3f, a_max=127f)");
  EXPECT_EQ(between("nn.pad(%0, 131f, pad_width=[[0, 0], [1, 1], [0, 0], [0, 0]])"),
            "nn.pad(%0, 3, pad_width=[[0, 0], [1, 1], [0, 0], [0, 0]])");
  EXPECT_EQ(between("qnn.add(%0, const(Tensor[(1), uint8], [255]), 0.5f, 131, 0.25f, 128, 0.5f, 131)"),
            "qnn.add(%0, const(Tensor[(1), int8], [127]), 0.5f, 3, 0.25f, 0, 0.5f, 3)");
  EXPECT_EQ(between("qnn.mean(%0, 0.5f, 131, 0.25f, 0, axis=[1], keepdims=True)"),
            "qnn.mean(%0, 0.5f, 3, 0.25f, -128, axis=[1], keepdims=True)");
  EXPECT_EQ(between("concatenate((%0, const(Tensor[(1, 2, 2, 1), uint8], [0, 1, 128, 255])), axis=3)"),
            "concatenate((%0, const(Tensor[(1, 2, 2, 1), int8], [-128, -127, 0, 127])), axis=3)");
  EXPECT_EQ(between("qnn.softmax(%0, 0.5f, 131, 0.00390625f, 0)"),
            "qnn.softmax(%0, 0.5f, 3, 0.00390625f, -128)");
}

TEST(UnifySignedness, TablesAreReadAndWrittenInTheOtherOrder) {
  std::string table, expected;
  for (int i = 0; i < 256; ++i) table += (i == 0 ? "" : ", ") + std::to_string(255 - i);
  // uint8 x gives 255 - x. As int8 y = x - 128 it gives 127 - x = -1 - y; the byte of y >= 0 is y.
  for (int i = 0; i < 256; ++i) {
    const int y = i < 128 ? i : i - 256;
    expected += (i == 0 ? "" : ", ") + std::to_string(-1 - y);
  }
  const ir::Module module =
      parse_main(kFloat, kQuantize + "  %1 = qnn.lookup(%0, const(Tensor[(256), uint8], [" + table +
                             "]));\n  " + dequantize("%1", 131) + "\n");
  passes::PassContext context;
  const auto result = passes::find_pass("unify_signedness")->run(module, module.main(), context);
  ASSERT_NE(result, nullptr);
  const std::string text = text::print(*result, {.metadata = false, .inline_elements = 256});
  EXPECT_NE(text.find("const(Tensor[(256), int8], [" + expected + "])"), std::string::npos) << text;
}

const std::string kConv =
    ", const(Tensor[(1, 1, 1, 1), int8], [2]), 131, 0, 0.5f, 0.5f, padding=[1, 1], data_layout=\"NHWC\", "
    "kernel_layout=\"OHWI\", pad_value=130)";

// The convolution reads the input as it is and writes int8: no step more.
TEST(UnifySignedness, InputsAndOutputsStayAndConvolutionsConvert) {
  const std::string input = "%x: Tensor[(1, 2, 2, 1), uint8]";
  const std::string requantize = ", 0.25f, 0, 0.5f, 131, out_dtype=\"uint8\")";
  const std::string body = "  %0 = qnn.conv2d(%x" + kConv + ";\n  %1 = qnn.requantize(%0" + requantize +
                           ";\n  %2 = qnn.conv2d(%1" + kConv + ";\n  qnn.requantize(%2" + requantize + "\n";
  EXPECT_EQ(
      unify(input, body),
      "%0 = qnn.conv2d(%x" + kConv +
          ";\n%1 = qnn.requantize(%0, 0.25f, 0, 0.5f, 3);\n%2 = qnn.conv2d(%1, const(Tensor[(1, 1, 1, 1), "
          "int8], [2]), 3, 0, 0.5f, 0.5f, padding=[1, 1], data_layout=\"NHWC\", "
          "kernel_layout=\"OHWI\", pad_value=2);\n%3 = qnn.requantize(%2" +
          requantize + ";\n%3\n");
}

// A convolution whose activations have the dtype, with zero points `offset` above those of int8, and what
// `after` makes of its output %2.
std::string convolution_of(const std::string& dtype, int offset, const std::string& weights,
                           const std::string& after = "") {
  const auto zero_point = [&](int value) { return std::to_string(value + offset); };
  return kQuantize.substr(0, kQuantize.find("131")) + zero_point(3) +
         (dtype == "uint8" ? ", out_dtype=\"uint8\")" : ")") + ";\n  %1 = qnn.conv2d(%0, " + weights +
         ", 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  %2 = qnn.requantize(%1, 0.25f, "
         "0, "
         "0.5f, " +
         zero_point(3) + (dtype == "uint8" ? ", out_dtype=\"uint8\");\n  " : ");\n  ") + after +
         dequantize(after.empty() ? "%2" : "%3", 3 + offset) + "\n";
}

// A zero point of weights: TFLite's uint8 arithmetic is the only one of its two that knows such a network.
TEST(UnifySignedness, NetworksWithWeightZeroPointsAreUint8) {
  const std::string asymmetric = "const(Tensor[(1, 1, 1, 1), int8], [2]), ";
  EXPECT_EQ(unify(kFloat, convolution_of("uint8", 128, asymmetric + "131, -5")), "unchanged");
  EXPECT_NE(unify(kFloat, convolution_of("int8", 0, asymmetric + "3, -5")).find("out_dtype=\"uint8\""),
            std::string::npos);
  // 128 is the middle of uint8.
  const std::string symmetric = "const(Tensor[(1, 1, 1, 1), uint8], [130]), ";
  EXPECT_EQ(unify(kFloat, convolution_of("int8", 0, symmetric + "3, 128")), "unchanged");
  EXPECT_NE(unify(kFloat, convolution_of("uint8", 128, symmetric + "131, 128")), "unchanged");
}

// TFLite's average is rounded away from the 0 of the stored integers: 1 and 2 give 2, -127 and -126 give
// -127.
TEST(UnifySignedness, AnAverageOfAnEvenNumberKeepsItsDtype) {
  const auto pool = [](const std::string& size, int zero_point, const std::string& contract) {
    const std::string zero = std::to_string(zero_point);
    return "qnn.avg_pool2d(%0, 0.5f, " + zero + ", 0.5f, " + zero + ", pool_size=" + size +
           ", layout=\"NHWC\"" + contract + ")";
  };
  EXPECT_EQ(between(pool("[2, 1]", 131, "")), "unchanged");
  EXPECT_EQ(between(pool("[2, 1]", 131, ""), true), pool("[2, 1]", 3, "")) << "the contract was chosen";
  EXPECT_EQ(between(pool("[1, 1]", 131, "")), pool("[1, 1]", 3, ""));
  EXPECT_EQ(between(pool("[2, 1]", 131, ", contract=\"f32e\"")), pool("[2, 1]", 3, ", contract=\"f32e\""));
}

TEST(UnifySignedness, ResizingKeepsItsDtype) {
  EXPECT_EQ(between("image.resize2d(%0, size=[3, 3], layout=\"NHWC\")"), "unchanged");
}

// Kernels that multiply signed bytes take one instruction less for int8; what is rounded by the network's
// dtype stays in it, so that all targets give the same bytes.
TEST(UnifySignedness, KernelsOfSignedBytesReadInt8InEveryNetwork) {
  const std::string weights = "const(Tensor[(1, 1, 1, 1), int8], [2]), 131, -5";
  passes::PassContext context;
  context.activation_zero_point = passes::ActivationZeroPoint::kDtypeMiddle;
  const auto run = [&](const std::string& after) {
    return run_pass("unify_signedness", kFloat, convolution_of("uint8", 128, weights, after), context);
  };
  EXPECT_EQ(run("").find("uint8"), std::string::npos) << run("");
  context.contract_is_chosen = true;
  const std::string pool = "qnn.avg_pool2d(%2, 0.5f, 131, 0.5f, 131, pool_size=[2, 1], layout=\"NHWC\")";
  const std::string text = run("%3 = " + pool + ";\n  ");
  EXPECT_NE(text.find("%0 = qnn.quantize(%x, 0.5f, 3);"), std::string::npos) << text;
  EXPECT_NE(text.find(pool), std::string::npos) << text;
}

// TFLite multiplies uint8 by 128 before it multiplies by the length, and int8 not.
TEST(UnifySignedness, VectorsDividedByTheirLengthKeepTheirDtype) {
  EXPECT_EQ(between("qnn.l2_normalize(%0, 0.5f, 131, 0.0078125f, 128)"), "unchanged");
}

TEST(UnifySignedness, WhatLooksAtTheIntegersKeepsThem) {
  EXPECT_EQ(
      unify(kFloat, kQuantize + "  %1 = clip(%0, a_min=131f, a_max=140f);\n  cast(%1, dtype=\"int32\")\n"),
      "unchanged");
}

// What a rewrite will make of the float operator may depend on the dtype.
TEST(UnifySignedness, FloatOperatorsAreLoweredFirst) {
  EXPECT_EQ(unify(kFloat, kQuantize + "  %1 = " + dequantize("%0", 131) +
                              ";\n  nn.avg_pool2d(%1, pool_size=[2, 1], layout=\"NHWC\")\n"),
            "unchanged");
}

TEST(UnifySignedness, FloatOperatorsThatStayAreNoReason) {
  passes::PassContext context;
  context.floats_stay = true;
  EXPECT_EQ(run_pass("unify_signedness", kFloat,
                     kQuantize + "  %1 = " + dequantize("%0", 131) + ";\n  tanh(%1)\n", context),
            kQuantized + "%1 = " + dequantize("%0", 3) + ";\n%2 = tanh(%1);\n%2\n");
}

// What became of a change of sign ties both sides until another pass drops it: the pass has nothing to do.
TEST(UnifySignedness, ARequantisationThatChangesNothingIsNoReasonToTurnBack) {
  EXPECT_EQ(unify(kFloat,
                  "  %0 = qnn.quantize(%x, 0.5f, 131, out_dtype=\"uint8\");\n"
                  "  %1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n"
                  "  qnn.requantize(%1, 0.5f, 131, 0.5f, 131, out_dtype=\"uint8\")\n"),
            "unchanged");
}

// Input and pool can only have one dtype: where no other input or output objects, it is the input's.
TEST(UnifySignedness, ARequantisationOfTheSameRealsDisappears) {
  EXPECT_EQ(unify("%x: Tensor[(1, 2, 2, 1), uint8]",
                  "  %0 = qnn.requantize(%x, 0.5f, 131, 0.5f, 3);\n"
                  "  %1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n  " +
                      dequantize("%1", 3) + "\n"),
            "%0 = qnn.requantize(%x, 0.5f, 131, 0.5f, 131, out_dtype=\"uint8\");\n"
            "%1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n%2 = " +
                dequantize("%1", 131) + ";\n%2\n")
      << "fuse_activation drops what changes nothing";
}

TEST(UnifySignedness, BetweenAnInputAndAnOutputOfBothDtypesItStays) {
  EXPECT_EQ(unify("%x: Tensor[(1, 2, 2, 1), uint8]",
                  "  %0 = qnn.requantize(%x, 0.5f, 131, 0.5f, 3);\n"
                  "  nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\")\n"),
            "unchanged");
}

}  // namespace
}  // namespace qplan::passes_test::unify_signedness_test
