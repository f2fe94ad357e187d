// The IR that each operator of a current opset becomes.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_operators_test {
namespace {

TEST(OnnxQuantize, PerTensorAndPerAxis) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 3}).scale("s", 0.5f).zero_point("z", 3);
  b.constant<float>("ss", kFloat, {3}, {0.25f, 0.5f, 1.0f}).constant<int8_t>("zz", kInt8, {3}, {0, 1, 2});
  b.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  b.node("QuantizeLinear", {"d", "ss", "zz"}, {"y"}, {attr_int("axis", -1)}).output("y", kInt8, {2, 3});
  EXPECT_EQ(import_body(b),
            "%0 = qnn.quantize(%x, 0.5f, 3, contract=\"f32e\");\n"
            "%1 = qnn.dequantize(%0, 0.5f, 3, contract=\"f32e\");\n"
            "%2 = qnn.quantize(%1, const(Tensor[(3), float32], [0.25, 0.5, 1]), "
            "const(Tensor[(3), int32], [0, 1, 2]), axis=1, contract=\"f32e\");\n%2\n");
}

// 2^15 less, with zero points that are 2^15 less.
TEST(OnnxQuantize, Uint16IsComputedAsInt16) {
  constexpr int kUint16 = 4;
  const auto quantised = [] {
    OnnxBuilder b(21);
    b.input("x", kFloat, {2}).scale("s", 0.5f).constant<uint16_t>("z", kUint16, {}, {30000});
    b.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
    return b;
  };
  OnnxBuilder b = quantised();
  b.node("DequantizeLinear", {"q", "s", "z"}, {"y"}).output("y", kFloat, {2});
  EXPECT_EQ(import_body(b),
            "%0 = qnn.quantize(%x, 0.5f, -2768, out_dtype=\"int16\", contract=\"f32e\");\n"
            "%1 = qnn.dequantize(%0, 0.5f, -2768, contract=\"f32e\");\n%1\n");
  OnnxBuilder read = quantised();
  read.node("Relu", {"q"}, {"y"}).output("y", kUint16, {2});
  EXPECT_EQ(refusal(read), kList + "Relu with uint16 data, which only DequantizeLinear may read ('y')");
  OnnxBuilder constant(21);
  constant.scale("s", 0.5f).constant<uint16_t>("z", kUint16, {}, {30000}).input("x", kFloat, {2});
  constant.constant<uint16_t>("w", kUint16, {2}, {0, 65535}).node("DequantizeLinear", {"w", "s", "z"}, {"d"});
  constant.node("Add", {"x", "d"}, {"y"}).output("y", kFloat, {2});
  EXPECT_EQ(
      import_body(constant),
      "%0 = qnn.dequantize(const(Tensor[(2), int16], [-32768, 32767]), 0.5f, -2768, contract=\"f32e\");\n"
      "%1 = add(%x, %0);\n%1\n");
}

TEST(OnnxQuantize, AnInt32NumberIsDequantizedToo) {
  OnnxBuilder b;
  b.input("x", kInt32, {})
      .scale("s", 0.5f)
      .node("DequantizeLinear", {"x", "s"}, {"y"})
      .output("y", kFloat, {});
  EXPECT_EQ(import_body(b),
            "%0 = subtract(%x, 0);\n%1 = cast(%0, dtype=\"float32\");\n%2 = multiply(%1, 0.5f);\n%2\n");
}

// The accumulators of ConvInteger.
TEST(OnnxQuantize, Int32IsDequantizedByArithmetic) {
  OnnxBuilder b;
  b.input("x", kInt32, {2, 3})
      .scale("s", 0.5f)
      .node("DequantizeLinear", {"x", "s"}, {"y"})
      .output("y", kFloat, {2, 3});
  EXPECT_EQ(import_body(b),
            "%0 = subtract(%x, 0);\n%1 = cast(%0, dtype=\"float32\");\n%2 = multiply(%1, 0.5f);\n%2\n");
}

TEST(OnnxQuantize, WithoutAZeroPointIsUint8) {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).constant<float>("s", kFloat, {1}, {0.5f});
  b.node("QuantizeLinear", {"x", "s"}, {"y"}).output("y", kUint8, {2});
  EXPECT_EQ(import_body(b), "%0 = qnn.quantize(%x, 0.5f, 0, out_dtype=\"uint8\", contract=\"f32e\");\n%0\n");
}

TEST(OnnxQuantize, WeightsStayAsTheSourceHasThem) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2})
      .constant<float>("w", kFloat, {1, 2}, {0.5f, 1.0f})
      .scale("s", 0.5f)
      .zero_point("z", 0);
  b.node("QuantizeLinear", {"w", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  b.node("Gemm", {"x", "d"}, {"y"}, {attr_int("transB", 1)}).output("y", kFloat, {1, 1});
  EXPECT_EQ(import_body(b),
            "%0 = qnn.quantize(const(Tensor[(1, 2), float32], [0.5, 1]), 0.5f, 0, contract=\"f32e\");\n"
            "%1 = qnn.dequantize(%0, 0.5f, 0, contract=\"f32e\");\n"
            "%2 = nn.dense(%x, %1);\n%2\n");
}

// Two to a byte, the first in the lower half; their number may be odd, and they may be raw or not.
TEST(OnnxQuantize, WeightsOfFourBitsHaveEight) {
  constexpr int kUint4 = 21, kInt4 = 22;
  OnnxBuilder b(21);
  b.scale("s", 0.5f).initializer(tensor_header("z", kUint4, {}).bytes(9, "\x08"));
  b.initializer(tensor_header("w", kInt4, {2, 3}).bytes(9, "\x81\xf7\x30"));
  b.initializer(tensor_header("u", kUint4, {3}).number(5, 0xf1).number(5, 9));
  b.node("DequantizeLinear", {"w", "s"}, {"a"}).node("DequantizeLinear", {"u", "s", "z"}, {"b"});
  b.node("Add", {"a", "b"}, {"c"}).input("x", kFloat, {2, 3}).node("Mul", {"x", "c"}, {"y"});
  b.output("y", kFloat, {2, 3});
  const std::string body = import_body(b);
  for (const char* part : {"const(Tensor[(2, 3), int8], [1, -8, 7, -1, 0, 3]), 0.5f, 0",
                           "const(Tensor[(3), uint8], [1, 15, 9]), 0.5f, 8"}) {
    EXPECT_NE(body.find(part), std::string::npos) << part << " in\n" << body;
  }
}

TEST(OnnxQuantize, WhatTheIrCannotSayIsRefusedByName) {
  constexpr int kUint16 = 4;
  const auto model = [](int type, const std::vector<Message>& attributes, int64_t opset = 21) {
    OnnxBuilder b(opset);
    b.input("x", kFloat, {2, 4}).scale("s", 0.5f);
    b.initializer(tensor_header("z", type, {}).bytes(9, std::string(type == kUint16 ? 2 : 1, '\0')));
    b.node("QuantizeLinear", {"x", "s", "z"}, {"y"}, attributes).output("y", type, {2, 4});
    return refusal(b);
  };
  EXPECT_EQ(model(kInt8, {attr_int("block_size", 2)}),
            kList + "QuantizeLinear with quantisation in blocks ('y')");
  EXPECT_EQ(model(kUint16, {}),
            "-49: onnx: 'net.onnx': output 'y' is uint16; let a DequantizeLinear give it");
  EXPECT_EQ(model(17, {}), kList + "QuantizeLinear with a constant of float8e4m3fn ('y')");
  EXPECT_EQ(model(kInt8, {attr_int("output_dtype", 16)}),
            kList + "QuantizeLinear with bfloat16 output ('y')");
}

OnnxBuilder conv_model(const std::vector<Message>& attributes, bool bias,
                       const std::vector<int64_t>& kernel) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2, 5, 6});
  const int64_t count = kernel[0] * kernel[1] * kernel[2] * kernel[3];
  b.constant("w", kFloat, kernel, std::vector<float>(static_cast<size_t>(count)));
  b.constant("b", kFloat, {kernel[0]}, std::vector<float>(static_cast<size_t>(kernel[0])));
  b.node("Conv", bias ? Names{"x", "w", "b"} : Names{"x", "w"}, {"y"}, attributes);
  b.graph().message(12, Message().bytes(1, "y"));
  return b;
}

// Without the constants.
std::string conv_attrs(const std::vector<Message>& attributes, const std::vector<int64_t>& kernel) {
  const std::string body = import_body(conv_model(attributes, false, kernel));
  const size_t begin =
      body.find("strides=") == std::string::npos ? body.find("padding=") : body.find("strides=");
  return body.substr(begin, body.find(");") - begin);
}

TEST(OnnxConv, BiasIsABiasAdd) {
  EXPECT_EQ(
      import_body(conv_model({}, true, {1, 2, 1, 1})),
      "%0 = nn.conv2d(%x, const(Tensor[(1, 2, 1, 1), float32], [0, 0]), channels=1, kernel_size=[1, 1]);\n"
      "%1 = nn.bias_add(%0, const(Tensor[(1), float32], [0]));\n%1\n");
}

TEST(OnnxConv, WindowAttributes) {
  EXPECT_EQ(
      conv_attrs({attr_ints("strides", {2, 1}), attr_ints("pads", {0, 1, 2, 3}),
                  attr_ints("dilations", {1, 2}), attr_int("group", 2), attr_ints("kernel_shape", {3, 2})},
                 {2, 1, 3, 2}),
      "strides=[2, 1], padding=[0, 1, 2, 3], dilation=[1, 2], groups=2, channels=2, kernel_size=[3, 2]");
}

// Height 5, width 6, kernel 3 x 2, strides 2 x 2: totals of padding 2 and 0; stride 1 x 1: 2 and 1.
TEST(OnnxConv, AutoPad) {
  const std::vector<int64_t> kernel{1, 2, 3, 2};
  EXPECT_EQ(conv_attrs({attr_string("auto_pad", "SAME_UPPER"), attr_ints("strides", {1, 1})}, kernel),
            "padding=[1, 0, 1, 1], channels=1, kernel_size=[3, 2]");
  EXPECT_EQ(conv_attrs({attr_string("auto_pad", "SAME_LOWER")}, kernel),
            "padding=[1, 1, 1, 0], channels=1, kernel_size=[3, 2]");
  EXPECT_EQ(conv_attrs({attr_string("auto_pad", "SAME_UPPER"), attr_ints("strides", {2, 2})}, kernel),
            "strides=[2, 2], padding=[1, 0, 1, 0], channels=1, kernel_size=[3, 2]");
  EXPECT_EQ(conv_attrs({attr_string("auto_pad", "VALID"), attr_ints("strides", {2, 2})}, kernel),
            "strides=[2, 2], channels=1, kernel_size=[3, 2]");
}

// A height of 1: the window's values are those of the width.
TEST(OnnxConv, OneSpatialAxis) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2, 7}).constant("w", kFloat, {1, 2, 3}, std::vector<float>(6));
  b.node("Conv", {"x", "w"}, {"y"},
         {attr_ints("strides", {2}), attr_ints("pads", {1, 2}), attr_ints("dilations", {2}),
          attr_ints("kernel_shape", {3})});
  b.node("MaxPool", {"y"}, {"z"}, {attr_ints("kernel_shape", {2}), attr_ints("pads", {0, 1})});
  b.output("z", kFloat, {1, 1, 3});
  EXPECT_EQ(import_body(b),
            "%0 = reshape(%x, newshape=[1, 2, 1, 7]);\n"
            "%1 = nn.conv2d(%0, const(Tensor[(1, 2, 1, 3), float32], [0, 0, 0, 0, 0, 0]), strides=[1, 2], "
            "padding=[0, 1, 0, 2], dilation=[1, 2], channels=1, kernel_size=[1, 3]);\n"
            "%2 = reshape(%1, newshape=[1, 1, 3]);\n%3 = reshape(%2, newshape=[1, 1, 1, 3]);\n"
            "%4 = nn.max_pool2d(%3, pool_size=[1, 2], padding=[0, 0, 0, 1]);\n"
            "%5 = reshape(%4, newshape=[1, 1, 3]);\n%5\n");
}

TEST(OnnxConv, OtherRanksAndBrokenWindows) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2, 5, 1, 1, 1}).constant("w", kFloat, {1, 2, 1, 1, 1, 1}, std::vector<float>(2));
  b.node("Conv", {"x", "w"}, {"y"}).output("y", kFloat, {1, 1, 5, 1, 1, 1});
  const std::string end = "\n1 operator that qplan does not import: Conv with ";
  EXPECT_TRUE(refusal(b).ends_with(end + "data of rank 6; reshape it to rank 3, 4 or 5 ('y')")) << refusal(b);
  const std::string pads = refusal(conv_model({attr_ints("pads", {-1, 0, 0, 0})}, false, {1, 2, 1, 1}));
  EXPECT_TRUE(pads.ends_with(end + "negative pads; cut the data with Slice ('y')")) << pads;
  EXPECT_EQ(
      refusal(conv_model({attr_ints("strides", {0, 1})}, false, {1, 2, 1, 1})),
      kInvalid + "node 0 Conv 'y': attribute 'strides' is [0, 1], expected values from 1 to 2147483648");
  EXPECT_EQ(refusal(conv_model({attr_ints("kernel_shape", {3, 3})}, false, {1, 2, 1, 1})),
            kInvalid + "node 0 Conv 'y': attribute 'kernel_shape' is [3, 3], but the weights have [1, 1]");
  EXPECT_EQ(refusal(conv_model({}, false, {1, 2, 9, 1})),
            kInvalid + "node 0 Conv 'y': a window of 9 does not fit an axis of 5 with pads 0 and 0");
  EXPECT_EQ(refusal(conv_model({attr_int("group", 0)}, false, {1, 2, 1, 1})),
            kInvalid + "node 0 Conv 'y': nn.conv2d 'y': attribute 'groups' is 0, expected at least 1");
}

// ONNX has weights of the data's rank: a kernel of height 1 more, or of one axis less, is another model.
TEST(OnnxConv, WeightsHaveTheRankOfTheData) {
  const struct {
    std::vector<int64_t> data, weights;
    const char* reason;
  } cases[] = {
      {{1, 1, 7}, {1, 1, 1, 3}, "(1, 1, 1, 3), float32], expected rank 3"},
      {{1, 1, 7, 7}, {1, 1, 3}, "(1, 1, 3), float32], expected rank 4"},
      {{1, 1, 7, 7}, {1, 1, 1, 3, 1}, "(1, 1, 1, 3, 1), float32], expected rank 4"},
  };
  for (const auto& [data, weights, reason] : cases) {
    OnnxBuilder b;
    b.input("x", kFloat, data).constant("w", kFloat, weights, std::vector<float>(3));
    b.node("Conv", {"x", "w"}, {"y"}).graph().message(12, Message().bytes(1, "y"));
    EXPECT_EQ(refusal(b), kInvalid + "node 0 Conv 'y': the weights are Tensor[" + reason);
    OnnxBuilder integer;
    integer.input("x", kUint8, data).constant("w", kUint8, weights, std::vector<uint8_t>(3));
    integer.node("ConvInteger", {"x", "w"}, {"y"}).graph().message(12, Message().bytes(1, "y"));
    EXPECT_NE(refusal(integer).find("ConvInteger 'y': the weights are"), std::string::npos)
        << refusal(integer);
    OnnxBuilder quantized;
    quantized.input("x", kInt8, data).scale("s", 1).zero_point("z", 0);
    quantized.constant("w", kInt8, weights, std::vector<int8_t>(3));
    quantized.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"y"});
    quantized.graph().message(12, Message().bytes(1, "y"));
    EXPECT_NE(refusal(quantized).find("QLinearConv 'y': the weights are"), std::string::npos)
        << refusal(quantized);
  }
}

TEST(OnnxQLinearConv, BecomesIntegersAtOnce) {
  for (const bool bias : {false, true}) {
    OnnxBuilder b;
    b.input("x", kUint8, {1, 1, 2, 2}).scale("xs", 0.5f).constant<uint8_t>("xz", kUint8, {}, {128});
    b.constant<int8_t>("w", kInt8, {2, 1, 1, 1}, {1, -2}).constant<float>("ws", kFloat, {2}, {0.25f, 0.125f});
    b.constant<int8_t>("wz", kInt8, {2}, {0, 0}).scale("ys", 2).constant<uint8_t>("yz", kUint8, {}, {7});
    b.constant<int32_t>("b", kInt32, {2}, {10, 20});
    Names inputs{"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"};
    if (bias) inputs.push_back("b");
    b.node("QLinearConv", inputs, {"y"}).output("y", kUint8, {1, 2, 2, 2});
    EXPECT_EQ(import_body(b),
              "%0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, -2]), 128, const(Tensor[(2), "
              "int32], [0, 0]), "
              "0.5f, const(Tensor[(2), float32], [0.25, 0.125]), channels=2, kernel_size=[1, 1]);\n"
              "%1 = nn.bias_add(%0, const(Tensor[(2), int32], " +
                  std::string(bias ? "[10, 20]" : "[0, 0]") +
                  "));\n"
                  "%2 = qnn.requantize(%1, const(Tensor[(2), float32], [0.125, 0.0625]), 0, 2f, 7, axis=1, "
                  "out_dtype=\"uint8\", contract=\"f32e\");\n%2\n");
  }
}

// ONNX Runtime's own QLinearConv keeps the weights OIHW when the data is NHWC.
TEST(OnnxQLinearConv, ChannelsLast) {
  OnnxBuilder b;
  b.import_opset("com.microsoft", 1).input("x", kInt8, {1, 4, 4, 2}).scale("s", 1).zero_point("z", 0);
  b.constant("w", kInt8, {1, 2, 3, 3}, std::vector<int8_t>(18));
  b.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"y"}, {attr_int("channels_last", 1)},
         "com.microsoft");
  b.output("y", kInt8, {1, 2, 2, 1});
  const std::string body = import_body(b);
  EXPECT_NE(body.find("channels=1, kernel_size=[3, 3], data_layout=\"NHWC\");"), std::string::npos) << body;
  EXPECT_NE(body.find("nn.bias_add(%0, const(Tensor[(1), int32], [0]), axis=3);"), std::string::npos) << body;
}

TEST(OnnxMatMul, TheSecondOperandIsTransposed) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 3, 2}).constant<float>("w", kFloat, {2, 2}, {1, 2, 3, 4});
  b.node("MatMul", {"x", "w"}, {"y"}).output("y", kFloat, {2, 3, 2});
  EXPECT_EQ(import_body(b), "%0 = nn.dense(%x, const(Tensor[(2, 2), float32], [1, 3, 2, 4]));\n%0\n");
}

TEST(OnnxMatMul, VectorsLoseTheirAxis) {
  OnnxBuilder b;
  b.input("x", kFloat, {3}).constant<float>("w", kFloat, {3}, {1, 2, 3}).node("MatMul", {"x", "w"}, {"y"});
  b.output("y", kFloat, {});
  EXPECT_EQ(import_body(b),
            "%0 = reshape(%x, newshape=[1, 3]);\n"
            "%1 = nn.dense(%0, const(Tensor[(1, 3), float32], [1, 2, 3]));\n"
            "%2 = reshape(%1, newshape=[]);\n%2\n");
  OnnxBuilder m;
  m.input("x", kFloat, {3})
      .constant("w", kFloat, {3, 2}, std::vector<float>(6))
      .node("MatMul", {"x", "w"}, {"y"});
  m.output("y", kFloat, {2});
  EXPECT_EQ(import_builder(m).main().type(import_builder(m).main().outputs()[0]).shape, ir::Shape{2});
}

// One data matrix, two of weights: the batch is written out.
TEST(OnnxMatMul, BatchesOfWeightsBecomeLayers) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 3, 1}).constant<float>("w", kFloat, {2, 1, 2}, {1, 2, 3, 4});
  b.node("MatMul", {"x", "w"}, {"y"}).output("y", kFloat, {2, 3, 2});
  EXPECT_EQ(import_body(b),
            "%0 = reshape(%x, newshape=[3, 1]);\n"
            "%1 = nn.dense(%0, const(Tensor[(2, 1), float32], [1, 2]));\n"
            "%2 = reshape(%1, newshape=[1, 3, 2]);\n"
            "%3 = nn.dense(%0, const(Tensor[(2, 1), float32], [3, 4]));\n"
            "%4 = reshape(%3, newshape=[1, 3, 2]);\n"
            "%5 = concatenate((%2, %4));\n%5\n");
  OnnxBuilder many;
  many.input("x", kFloat, {65, 1, 1}).constant<float>("w", kFloat, {65, 1, 1}, std::vector<float>(65));
  many.node("MatMul", {"x", "w"}, {"y"}).output("y", kFloat, {65, 1, 1});
  EXPECT_TRUE(
      refusal(many).ends_with("\n1 operator that qplan does not import: MatMul with 65 matrix products (at "
                              "most 64) ('y')"))
      << refusal(many);
}

TEST(OnnxGemm, BiasAlphaBeta) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2})
      .constant<float>("w", kFloat, {1, 2}, {1, 2})
      .constant<float>("c", kFloat, {1, 1}, {3});
  b.node("Gemm", {"x", "w", "c"}, {"y"},
         {attr_float("alpha", 0.5f), attr_float("beta", 2), attr_int("transB", 1)});
  b.output("y", kFloat, {1, 1});
  EXPECT_EQ(import_body(b),
            "%0 = nn.dense(%x, const(Tensor[(1, 2), float32], [1, 2]));\n"
            "%1 = multiply(%0, 0.5f);\n"
            "%2 = nn.bias_add(%1, const(Tensor[(1), float32], [6]));\n%2\n");
}

TEST(OnnxGemm, TransposedDataAndOtherAddends) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 3})
      .constant<float>("w", kFloat, {1, 2}, {1, 2})
      .constant<float>("c", kFloat, {3, 1}, {3, 4, 5});
  b.node("Gemm", {"x", "w", "c"}, {"y"}, {attr_int("transA", 1), attr_int("transB", 1)});
  b.output("y", kFloat, {3, 1});
  EXPECT_EQ(import_body(b),
            "%0 = transpose(%x, axes=[1, 0]);\n"
            "%1 = nn.dense(%0, const(Tensor[(1, 2), float32], [1, 2]));\n"
            "%2 = add(%1, const(Tensor[(3, 1), float32], [3, 4, 5]));\n%2\n");
}

TEST(OnnxGemm, OfTwoTensorsThatTheNetworkComputes) {
  for (const bool is_transposed : {false, true}) {
    OnnxBuilder b;
    b.input("x", kFloat, {2, 3}).input("w", kFloat, is_transposed ? ir::Shape{4, 3} : ir::Shape{3, 4});
    b.input("c", kFloat, {1, 4});
    b.node("Gemm", {"x", "w", "c"}, {"y"}, {attr_int("transB", is_transposed ? 1 : 0)});
    b.output("y", kFloat, {2, 4});
    EXPECT_EQ(import_body(b), std::string("%0 = nn.batch_matmul(%x, %w") +
                                  (is_transposed ? ", transpose_b=True" : "") +
                                  ");\n%1 = add(%0, %c);\n%1\n");
  }
}

TEST(OnnxQLinear, MatMulAndGemm) {
  OnnxBuilder b;
  b.import_opset("com.microsoft", 1).input("x", kInt8, {1, 2}).scale("s", 0.5f).zero_point("z", 1);
  b.constant<int8_t>("w", kInt8, {2, 1}, {3, 4}).constant<int32_t>("c", kInt32, {1}, {9});
  b.node("QLinearMatMul", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"m"});
  b.constant<int8_t>("v", kInt8, {1, 1}, {5});
  b.node("QGemm", {"m", "s", "z", "v", "s", "z", "c", "s", "z"}, {"y"}, {}, "com.microsoft");
  b.output("y", kInt8, {1, 1});
  EXPECT_EQ(import_body(b),
            "%0 = qnn.dense(%x, const(Tensor[(1, 2), int8], [3, 4]), 1, 1, 0.5f, 0.5f);\n"
            "%1 = nn.bias_add(%0, const(Tensor[(1), int32], [0]));\n"
            "%2 = qnn.requantize(%1, 0.25f, 0, 0.5f, 1, contract=\"f32e\");\n"
            "%3 = qnn.dense(%2, const(Tensor[(1, 1), int8], [5]), 1, 1, 0.5f, 0.5f);\n"
            "%4 = nn.bias_add(%3, const(Tensor[(1), int32], [9]));\n"
            "%5 = qnn.requantize(%4, 0.25f, 0, 0.5f, 1, contract=\"f32e\");\n%5\n");
}

TEST(OnnxQLinear, ElementwiseAndPools) {
  OnnxBuilder b;
  b.import_opset("com.microsoft", 1)
      .input("x", kInt8, {1, 1, 2, 2})
      .scale("s", 0.5f)
      .scale("t", 1)
      .zero_point("z", 1);
  const auto ms = [&](const char* op, const Names& inputs, const char* to,
                      const std::vector<Message>& attributes = {}) {
    b.node(op, inputs, {to}, attributes, "com.microsoft");
  };
  ms("QLinearAdd", {"x", "s", "z", "x", "t", "z", "s", "z"}, "a");
  ms("QLinearMul", {"a", "s", "z", "x", "t", "z", "s", "z"}, "m");
  ms("QLinearSigmoid", {"m", "s", "z", "t", "z"}, "g");
  ms("QLinearLeakyRelu", {"g", "s", "z", "t", "z"}, "l", {attr_float("alpha", 0.25f)});
  ms("QLinearConcat", {"s", "z", "l", "t", "z", "x", "s", "z"}, "c", {attr_int("axis", 1)});
  ms("QLinearAveragePool", {"c", "s", "z", "t", "z"}, "p",
     {attr_ints("kernel_shape", {2, 2}), attr_ints("pads", {1, 0, 0, 0}), attr_int("count_include_pad", 1)});
  ms("QLinearGlobalAveragePool", {"p", "s", "z", "t", "z"}, "h");
  ms("QLinearSoftmax", {"h", "s", "z", "t", "z"}, "y", {attr_int("opset", 13), attr_int("axis", 1)});
  b.output("y", kInt8, {1, 2, 1, 1});
  EXPECT_EQ(import_body(b),
            "%0 = qnn.add(%x, %x, 0.5f, 1, 1f, 1, 0.5f, 1, contract=\"f32e\");\n"
            "%1 = qnn.mul(%0, %x, 0.5f, 1, 1f, 1, 0.5f, 1, contract=\"f32e\");\n"
            "%2 = qnn.sigmoid(%1, 0.5f, 1, 1f, 1, contract=\"f32e\");\n"
            "%3 = qnn.dequantize(%2, 0.5f, 1, contract=\"f32e\");\n"
            "%4 = nn.leaky_relu(%3);\n"
            "%5 = qnn.quantize(%4, 1f, 1, contract=\"f32e\");\n"
            "%6 = qnn.requantize(%5, 1f, 1, 0.5f, 1, contract=\"f32e\");\n"
            "%7 = concatenate((%6, %x), axis=1);\n"
            "%8 = qnn.avg_pool2d(%7, 0.5f, 1, 1f, 1, pool_size=[2, 2], padding=[1, 0, 0, 0], "
            "count_include_pad=True, "
            "contract=\"f32e\");\n"
            "%9 = qnn.avg_pool2d(%8, 0.5f, 1, 1f, 1, pool_size=[2, 1], contract=\"f32e\");\n"
            "%10 = qnn.softmax(%9, 0.5f, 1, 1f, 1, axis=1, contract=\"f32e\");\n%10\n");
}

TEST(OnnxPool, Windows) {
  EXPECT_EQ(unary_body({"MaxPool", {attr_ints("kernel_shape", {2, 2}), attr_ints("strides", {2, 2})}}),
            "%0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]);\n%0\n");
  EXPECT_EQ(unary_body({"AveragePool",
                        {attr_ints("kernel_shape", {3, 3}), attr_ints("pads", {1, 1, 1, 1}),
                         attr_int("count_include_pad", 1)}}),
            "%0 = nn.avg_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True);\n%0\n");
  EXPECT_EQ(unary_body({"GlobalAveragePool"}), "%0 = nn.global_avg_pool2d(%x);\n%0\n");
  EXPECT_EQ(unary_body({"GlobalMaxPool"}), "%0 = nn.max_pool2d(%x, pool_size=[4, 4]);\n%0\n");
}

// 4 elements, window 3, stride 2: the second window hangs over by one.
TEST(OnnxPool, CeilModePadsBehind) {
  EXPECT_EQ(unary_body({"MaxPool",
                        {attr_ints("kernel_shape", {3, 3}), attr_ints("strides", {2, 2}),
                         attr_int("ceil_mode", 1)}}),
            "%0 = nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 1, 1]);\n%0\n");
  // Window 1, stride 5 over 4 elements and one of padding: a window that begins in the padding is left out.
  EXPECT_EQ(unary_body({"MaxPool",
                        {attr_ints("kernel_shape", {2, 2}), attr_ints("strides", {4, 4}),
                         attr_ints("pads", {0, 0, 1, 1}), attr_int("ceil_mode", 1)}}),
            "%0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[4, 4], padding=[0, 0, 1, 1]);\n%0\n");
  // count_include_pad counts the pads that the file names alone.
  EXPECT_EQ(unary_body({"AveragePool",
                        {attr_ints("kernel_shape", {3, 3}), attr_ints("strides", {2, 2}),
                         attr_ints("pads", {1, 0, 1, 0}), attr_int("ceil_mode", 1),
                         attr_int("count_include_pad", 1)}}),
            "%0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 0]]);\n"
            "%1 = nn.avg_pool2d(%0, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 1, 1]);\n%1\n");
}

TEST(OnnxPool, IndicesAreRefused) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2, 4, 4}).node("MaxPool", {"x"}, {"y", "i"}, {attr_ints("kernel_shape", {2, 2})});
  b.output("y", kFloat, {1, 2, 3, 3});
  EXPECT_EQ(import_body(b), "%0 = nn.max_pool2d(%x, pool_size=[2, 2]);\n%0\n");  // nobody reads them
  b.output("i", kInt64, {1, 2, 3, 3});
  EXPECT_EQ(refusal(b), kList + "MaxPool with output 2 in use ('y')");
}

TEST(OnnxActivation, FunctionsOfOneTensor) {
  EXPECT_EQ(unary_body({"Relu"}), "%0 = nn.relu(%x);\n%0\n");
  EXPECT_EQ(unary_body({"LeakyRelu", {attr_float("alpha", 0.5f)}}),
            "%0 = nn.leaky_relu(%x, alpha=0.5f);\n%0\n");
  EXPECT_EQ(unary_body({"HardSigmoid"}), "%0 = hard_sigmoid(%x, alpha=0.2f);\n%0\n");
  EXPECT_EQ(unary_body({"HardSwish", {}, 14}),
            "%0 = hard_sigmoid(%x, alpha=0.16666667f);\n%1 = multiply(%x, %0);\n%1\n");
  for (const auto& [onnx, relay] : {std::pair{"Abs", "abs"},
                                    {"Ceil", "ceil"},
                                    {"Erf", "erf"},
                                    {"Exp", "exp"},
                                    {"Floor", "floor"},
                                    {"Log", "log"},
                                    {"Neg", "negative"},
                                    {"Round", "round"},
                                    {"Sigmoid", "sigmoid"},
                                    {"Sqrt", "sqrt"},
                                    {"Tanh", "tanh"}}) {
    EXPECT_EQ(unary_body({onnx}), "%0 = " + std::string(relay) + "(%x);\n%0\n");
  }
}

// What onnxruntime's quantize_dynamic writes: the zero point is the network's, its product with the sums of
// the weights' columns (less their own zero point) is taken off.
TEST(OnnxProduct, IntegersTakeAZeroPointThatTheNetworkComputes) {
  OnnxBuilder b(11);
  b.input("x", kFloat, {2, 3}).constant<int8_t>("w", kInt8, {3, 2}, {1, 2, 3, 4, 5, 6});
  b.constant<int8_t>("wz", kInt8, {}, {1});
  b.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}).node("MatMulInteger", {"q", "w", "z", "wz"}, {"y"});
  b.output("y", kInt32, {2, 2});
  const std::string body = import_body(b);
  for (const char* part : {"nn.max_pool2d(", "cast(", "dtype=\"uint8\"", "qnn.dense(",
                           "const(Tensor[(2), int32], [6, 9])", "subtract("}) {
    EXPECT_NE(body.find(part), std::string::npos) << part << " in\n" << body;
  }
  OnnxBuilder c(11);
  c.input("x", kUint8, {1, 1, 2, 2}).input("z", kUint8, {}).constant<int8_t>("w", kInt8, {1, 1, 1, 1}, {1});
  c.node("ConvInteger", {"x", "w", "z"}, {"y"}).output("y", kInt32, {1, 1, 2, 2});
  const std::string convolution = import_body(c);
  for (const char* part : {"qnn.conv2d(%x, ", "cast(%z, dtype=\"int32\")", "subtract("})
    EXPECT_NE(convolution.find(part), std::string::npos) << part << " in\n" << convolution;
}

// The importer sums the weights of each output, less their zero points.
TEST(OnnxProduct, ConvIntegerRefusesWeightsThatDoNotFitTheirZeroPoints) {
  const auto model = [](std::vector<int64_t> kernel, size_t num_zero_points) {
    OnnxBuilder b(11);
    const auto count = static_cast<size_t>(kernel[0]);
    b.input("x", kUint8, {1, 1, 2, 2}).input("z", kUint8, {});
    b.constant<int8_t>("w", kInt8, kernel, std::vector<int8_t>(count));
    b.constant<int8_t>("k", kInt8, {static_cast<int64_t>(num_zero_points)},
                       std::vector<int8_t>(num_zero_points));
    b.node("ConvInteger", {"x", "w", "z", "k"}, {"y"});
    b.graph().message(12, Message().bytes(1, "y"));
    return b;
  };
  EXPECT_EQ(refusal(model({9, 1, 1, 1}, 9)), "imported");
  EXPECT_EQ(refusal(model({9, 1, 1, 1}, 2)),
            kInvalid + "node 0 ConvInteger 'y': there are 2 zero points of the weights, expected 1 or 9");
  EXPECT_NE(refusal(model({0, 1, 1, 1}, 1)).find("expected an output channel"), std::string::npos);
  OnnxBuilder floats(11);
  floats.input("x", kUint8, {1, 1, 2, 2})
      .input("z", kUint8, {})
      .constant<float>("w", kFloat, {1, 1, 1, 1}, {1e30f});
  floats.node("ConvInteger", {"x", "w", "z"}, {"y"}).output("y", kInt32, {1, 1, 2, 2});
  EXPECT_NE(refusal(floats).find("expected int8 or uint8"), std::string::npos) << refusal(floats);
}

TEST(OnnxActivation, LogSoftmaxGeluAndLayerNormalization) {
  EXPECT_EQ(unary_body({"LogSoftmax", {}, 13}), "%0 = nn.log_softmax(%x, axis=3);\n%0\n");
  EXPECT_EQ(unary_body({"Gelu", {}, 20}),
            "%0 = multiply(%x, 0.70710677f);\n%1 = erf(%0);\n%2 = multiply(%x, 0.5f);\n%3 = add(%1, 1f);\n"
            "%4 = multiply(%2, %3);\n%4\n");
  EXPECT_EQ(unary_body({"Gelu", {attr_string("approximate", "tanh")}, 20}),
            "%0 = multiply(%x, %x);\n%1 = multiply(%0, %x);\n%2 = multiply(%1, 0.044715f);\n"
            "%3 = add(%x, %2);\n%4 = multiply(%3, 0.7978846f);\n%5 = tanh(%4);\n%6 = multiply(%x, 0.5f);\n"
            "%7 = add(%5, 1f);\n%8 = multiply(%6, %7);\n%8\n");
  OnnxBuilder b(17);
  b.input("x", kFloat, {2, 3}).input("s", kFloat, {3}).input("b", kFloat, {3});
  b.node("LayerNormalization", {"x", "s", "b"}, {"y"}, {attr_float("epsilon", 0.5f)})
      .output("y", kFloat, {2, 3});
  EXPECT_EQ(import_body(b),
            "%0 = mean(%x, axis=[1], keepdims=True);\n%1 = subtract(%x, %0);\n%2 = multiply(%1, %1);\n"
            "%3 = mean(%2, axis=[1], keepdims=True);\n%4 = add(%3, 0.5f);\n%5 = sqrt(%4);\n"
            "%6 = divide(%1, %5);\n%7 = multiply(%6, %s);\n%8 = add(%7, %b);\n%8\n");
}

TEST(OnnxActivation, BatchNormalization) {
  const auto model = [](const std::vector<Message>& attributes) {
    OnnxBuilder b(15);
    b.input("x", kFloat, {1, 1, 2, 2}).constant<float>("p", kFloat, {1}, {1});
    b.node("BatchNormalization", {"x", "p", "p", "p", "p"}, {"y"}, attributes)
        .output("y", kFloat, {1, 1, 2, 2});
    return b;
  };
  const std::string one = "const(Tensor[(1), float32], [1])";
  EXPECT_EQ(
      import_body(model({attr_float("epsilon", 0.5f), attr_float("momentum", 0.1f)})),
      "%0 = nn.batch_norm(%x, " + one + ", " + one + ", " + one + ", " + one + ", epsilon=0.5f);\n%0\n");
  EXPECT_EQ(refusal(model({attr_int("training_mode", 1)})),
            kList + "BatchNormalization with attribute 'training_mode' ('y')");
}

TEST(OnnxElementwise, BroadcastsAndChains) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 2}).input("v", kFloat, {2}).scale("s", 3);
  b.node("Add", {"x", "v"}, {"a"}).node("Sub", {"a", "s"}, {"b"}).node("Mul", {"b", "s"}, {"c"});
  b.node("Div", {"c", "v"}, {"d"}).node("Max", {"d", "v", "s"}, {"e"}).node("Min", {"e"}, {"f"});
  b.node("Less", {"f", "v"}, {"l"}).node("Where", {"l", "f", "v"}, {"g"}).node("Greater", {"g", "v"}, {"h"});
  b.node("Equal", {"h", "l"}, {"y"}).output("y", kBool, {2, 2});
  EXPECT_EQ(import_body(b),
            "%0 = add(%x, %v);\n%1 = subtract(%0, 3f);\n%2 = multiply(%1, 3f);\n%3 = divide(%2, %v);\n"
            "%4 = maximum(%3, %v);\n%5 = maximum(%4, 3f);\n%6 = less(%5, %v);\n%7 = where(%6, %5, %v);\n"
            "%8 = less(%v, %7);\n%9 = equal(%8, %6);\n%9\n");
}

TEST(OnnxReduce, MeanAndArgMax) {
  EXPECT_EQ(unary_body({"ReduceMean", {attr_ints("axes", {-1, 2}), attr_int("keepdims", 0)}}),
            "%0 = mean(%x, axis=[2, 3]);\n%0\n");
  EXPECT_EQ(unary_body({"ReduceMean"}), "%0 = mean(%x, axis=[0, 1, 2, 3], keepdims=True);\n%0\n");
  EXPECT_EQ(unary_body({"ArgMax", {attr_int("axis", 1)}}),
            "%0 = argmax(%x, axis=1, keepdims=True, dtype=\"int64\");\n%0\n");
  EXPECT_EQ(unary_body({"ArgMin", {attr_int("axis", 1)}}),
            "%0 = argmin(%x, axis=1, keepdims=True, dtype=\"int64\");\n%0\n");
  EXPECT_EQ(unary_body({"ReduceMin", {attr_ints("axes", {1}), attr_int("keepdims", 0)}}),
            "%0 = min(%x, axis=[1]);\n%0\n");
  EXPECT_EQ(unary_body({"ReduceSum"}), "%0 = sum(%x, axis=[0, 1, 2, 3], keepdims=True);\n%0\n");
}

// The output is the accumulator.
TEST(OnnxProduct, IntegersWithoutScales) {
  OnnxBuilder b;
  b.input("x", kUint8, {1, 2}).constant<int8_t>("w", kInt8, {2, 1}, {1, 2}).zero_point("z", 3);
  b.node("MatMulInteger", {"x", "w"}, {"y"}).output("y", kInt32, {1, 1});
  EXPECT_NE(import_body(b).find("qnn.dense(%x, "), std::string::npos) << import_body(b);
  OnnxBuilder c;
  c.input("x", kUint8, {1, 1, 2, 2}).constant<int8_t>("w", kInt8, {1, 1, 1, 1}, {2});
  c.node("ConvInteger", {"x", "w"}, {"y"}).output("y", kInt32, {1, 1, 2, 2});
  EXPECT_NE(import_body(c).find("qnn.conv2d(%x, "), std::string::npos) << import_body(c);
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_operators_test
