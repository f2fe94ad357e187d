// Operators on float32, and layers of int8 weights and float32 activations: the resulting text, the log's
// hint, and what is refused.
#include <gtest/gtest.h>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_float_test {
namespace {

constexpr auto kFloat = tflite::TensorType_FLOAT32;
constexpr auto kRelu = tflite::ActivationFunctionType_RELU;
constexpr auto kNone = tflite::ActivationFunctionType_NONE;

int32_t real(TfliteBuilder& b, const std::string& name, std::vector<int32_t> shape) {
  return b.tensor({.name = name, .type = kFloat, .shape = std::move(shape)});
}
int32_t reals(TfliteBuilder& b, const std::string& name, std::vector<int32_t> shape,
              const std::vector<float>& values) {
  return b.tensor({.name = name, .type = kFloat, .shape = std::move(shape), .data = bytes_of(values)});
}

// One operator from x (and the operands) to y.
using MakeOptions = std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)>;
std::string body(tflite::BuiltinOperator op, std::vector<int32_t> in, std::vector<int32_t> out,
                 tflite::BuiltinOptions kind = tflite::BuiltinOptions_NONE, const MakeOptions& make = {},
                 const std::vector<std::vector<int32_t>>& more = {}) {
  TfliteBuilder b;
  std::vector<int32_t> inputs = {real(b, "x", std::move(in))};
  for (const auto& shape : more) inputs.push_back(real(b, "z", shape));
  const int32_t y = real(b, "y", std::move(out));
  b.op(op, inputs, {y}, kind, make ? make(b.fbb()) : flatbuffers::Offset<void>());
  return import_body(b.finish(inputs, {y}));
}

TEST(TfliteFloat, ElementwiseOperatorsAreThoseOfTheIr) {
  const std::vector<int32_t> shape = {2, 3};
  EXPECT_EQ(body(tflite::BuiltinOperator_RELU, shape, shape), "%0 = nn.relu(%x);\n%0\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_RELU6, shape, shape), "%0 = clip(%x, a_min=0f, a_max=6f);\n%0\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_LOGISTIC, shape, shape), "%0 = sigmoid(%x);\n%0\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_TANH, shape, shape), "%0 = tanh(%x);\n%0\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_HARD_SWISH, shape, shape),
            "%0 = add(%x, 3f);\n%1 = clip(%0, a_min=0f, a_max=6f);\n%2 = multiply(%x, %1);\n"
            "%3 = divide(%2, 6f);\n%3\n");
  EXPECT_EQ(
      body(tflite::BuiltinOperator_SQUARED_DIFFERENCE, shape, shape, tflite::BuiltinOptions_NONE, {}, {{3}}),
      "%0 = subtract(%x, %z);\n%1 = multiply(%0, %0);\n%1\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_ADD, shape, shape, tflite::BuiltinOptions_AddOptions,
                 [](auto& fbb) { return tflite::CreateAddOptions(fbb, kRelu).Union(); }, {{1}}),
            "%0 = add(%x, %z);\n%1 = nn.relu(%0);\n%1\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_DIV, shape, shape, tflite::BuiltinOptions_DivOptions,
                 [](auto& fbb) { return tflite::CreateDivOptions(fbb, kNone).Union(); }, {{2, 3}}),
            "%0 = divide(%x, %z);\n%0\n");
  EXPECT_EQ(body(tflite::BuiltinOperator_SOFTMAX, shape, shape, tflite::BuiltinOptions_SoftmaxOptions,
                 [](auto& fbb) { return tflite::CreateSoftmaxOptions(fbb, 2.0f).Union(); }),
            "%0 = nn.softmax(%x, beta=2f);\n%0\n");
}

TEST(TfliteFloat, BilinearResizesHaveOneRuleOfCoordinates) {
  const auto model = [](bool align_corners, bool half_pixel) {
    TfliteBuilder b;
    const int32_t x = real(b, "x", {1, 2, 2, 1}), y = real(b, "y", {1, 3, 5, 1});
    b.op(tflite::BuiltinOperator_RESIZE_BILINEAR, {x, b.ints("size", {3, 5})}, {y},
         tflite::BuiltinOptions_ResizeBilinearOptions,
         tflite::CreateResizeBilinearOptions(b.fbb(), align_corners, half_pixel).Union());
    return b.finish({x}, {y});
  };
  EXPECT_EQ(import_error(model(true, false)), "imported");
  EXPECT_EQ(import_error(model(false, true)), "imported");
  EXPECT_EQ(import_error(model(true, true)),
            "-48: tflite: 'net.tflite': operator 0 RESIZE_BILINEAR 'y': align_corners and half_pixel_centers "
            "exclude each other");
}

// A transform of 2 rows; `more` adds what follows to it and returns the output.
using AddMore = std::function<int32_t(TfliteBuilder&, int32_t spectrum)>;
std::vector<uint8_t> spectrum_model(const AddMore& more) {
  TfliteBuilder b;
  const int32_t x = real(b, "x", {2, 1, 2});
  const int32_t z = b.tensor({.name = "z", .type = tflite::TensorType_COMPLEX64, .shape = {2, 1, 2}});
  b.op(tflite::BuiltinOperator_RFFT2D, {x, b.ints("length", {1, 2})}, {z});
  return b.finish({x}, {more(b, z)});
}

TEST(TfliteFloat, ComplexNumbersHaveTheirShapeChangedAsTwoTensors) {
  const std::string body = import_body(spectrum_model([](TfliteBuilder& b, int32_t z) {
    const int32_t rows = b.tensor({.name = "rows", .type = tflite::TensorType_COMPLEX64, .shape = {2, 2}});
    const int32_t wide = b.tensor({.name = "wide", .type = tflite::TensorType_COMPLEX64, .shape = {2, 2, 1}});
    const int32_t flat = b.tensor({.name = "flat", .type = tflite::TensorType_COMPLEX64, .shape = {4}});
    const int32_t y = real(b, "y", {4});
    b.op(tflite::BuiltinOperator_SQUEEZE, {z}, {rows});
    b.op(tflite::BuiltinOperator_EXPAND_DIMS, {rows, b.ints("axis", {-1})}, {wide});
    b.op(tflite::BuiltinOperator_RESHAPE, {wide, b.ints("shape", {-1})}, {flat});
    b.op(tflite::BuiltinOperator_IMAG, {flat}, {y});
    return y;
  }));
  EXPECT_EQ(body.substr(body.find("%2 = ")),
            "%2 = reshape(%0, newshape=[2, 2]);\n%3 = reshape(%1, newshape=[2, 2]);\n"
            "%4 = reshape(%2, newshape=[2, 2, 1]);\n%5 = reshape(%3, newshape=[2, 2, 1]);\n"
            "%6 = reshape(%4, newshape=[-1]);\n%7 = reshape(%5, newshape=[-1]);\n%7\n");
}

TEST(TfliteFloat, ComplexOutputsAndOtherUsesAreNotImported) {
  EXPECT_EQ(import_error(spectrum_model([](TfliteBuilder&, int32_t z) { return z; })),
            "-49: tflite: 'net.tflite': a plan has no complex numbers: end the model with their absolute "
            "values, or with real and imaginary parts\n"
            "1 operator that qplan does not import: output of type complex64 ('z')");
  const std::string error = import_error(spectrum_model([](TfliteBuilder& b, int32_t z) {
    const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_INT32, .shape = {3}});
    b.op(tflite::BuiltinOperator_SHAPE, {z}, {y});
    return y;
  }));
  EXPECT_NE(error.find("SHAPE with complex64 input ('y')"), std::string::npos) << error;
}

// A fully connected layer [1, 2] to [1, 3] with weights of this tensor.
std::vector<uint8_t> dense_model(TfliteBuilder& b, int32_t weights, bool asymmetric = false) {
  const int32_t x = real(b, "x", {1, 2}), y = real(b, "y", {1, 3});
  const int32_t bias = reals(b, "bias", {3}, {1, 2, 3});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, weights, bias}, {y},
       tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb(), kRelu, tflite::FullyConnectedOptionsWeightsFormat_DEFAULT,
                                           false, asymmetric)
           .Union());
  return b.finish({x}, {y});
}

const std::string kDense =
    "%0 = nn.dense(%x, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, -0.5]), units=3);\n"
    "%1 = nn.bias_add(%0, const(Tensor[(3), float32], [1, 2, 3]));\n%2 = nn.relu(%1);\n%2\n";

TEST(TfliteFloat, TheNegativeIsThatOfTheIr) {
  EXPECT_EQ(body(tflite::BuiltinOperator_NEG, {2, 3}, {2, 3}), "%0 = negative(%x);\n%0\n");
}

TEST(TfliteFloat, FullyConnectedLayersAddTheirBiasLast) {
  TfliteBuilder b;
  const std::string text = import_body(dense_model(b, reals(b, "w", {3, 2}, {1, 2, 3, 4, 5, -0.5f})));
  EXPECT_EQ(text, kDense);
}

// 1, 2, 3, 4, 5, -0.5 as binary16; and the least subnormal, infinity.
TEST(TfliteFloat, WeightsOfHalfPrecisionAreWidened) {
  const auto half_dense = [](const std::vector<uint16_t>& halves) {
    TfliteBuilder b;
    const int32_t half = b.tensor(
        {.name = "h", .type = tflite::TensorType_FLOAT16, .shape = {3, 2}, .data = bytes_of(halves)});
    const int32_t w = real(b, "w", {3, 2});
    b.op(tflite::BuiltinOperator_DEQUANTIZE, {half}, {w});
    return import_body(dense_model(b, w));
  };
  EXPECT_EQ(half_dense({0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0xb800}), kDense);
  const std::string text = half_dense({0x0001, 0x83ff, 0x7c00, 0xfc00, 0x7bff, 0x8000});
  EXPECT_NE(text.find("[5.9604645e-08, -6.097555e-05, inf, -inf, 65504, -0]"), std::string::npos) << text;
}

TEST(TfliteFloat, WeightsWithOneScalePerChannelAreWidened) {
  TfliteBuilder b;
  const int32_t stored = b.tensor({.name = "q",
                                   .type = tflite::TensorType_INT8,
                                   .shape = {3, 2},
                                   .scales = {0.5f, 1, 0.25f},
                                   .zero_points = {0, 0, 0},
                                   .data = {2, 4, 3, 4, 20, 254}});
  const int32_t w = real(b, "w", {3, 2});
  b.op(tflite::BuiltinOperator_DEQUANTIZE, {stored}, {w});
  const std::string text = import_body(dense_model(b, w));
  EXPECT_TRUE(
      text.starts_with("%0 = qnn.dequantize(const(Tensor[(3, 2), int8], [2, 4, 3, 4, 20, -2]), "
                       "const(Tensor[(3), float32], [0.5, 1, 0.25]), 0, axis=0);\n"
                       "%1 = nn.dense(%x, %0, units=3);\n"))
      << text;
}

// As a fully connected layer does, of the matrix's columns.
TEST(TfliteFloat, AProductWithAnIntegerMatrixQuantisesItsInputWhileTheModelRuns) {
  for (const bool transposes : {false, true}) {
    TfliteBuilder b;
    const int32_t x = real(b, "x", {1, 4, 2}), y = real(b, "y", {1, 4, 3});
    const int32_t w = b.tensor({.name = "w",
                                .shape = transposes ? std::vector<int32_t>{3, 2} : std::vector<int32_t>{2, 3},
                                .scales = {0.5f},
                                .zero_points = {0},
                                .data = transposes ? std::vector<uint8_t>{1, 2, 3, 4, 5, 250}
                                                   : std::vector<uint8_t>{1, 3, 5, 2, 4, 250}});
    b.op(tflite::BuiltinOperator_BATCH_MATMUL, {x, w}, {y}, tflite::BuiltinOptions_BatchMatMulOptions,
         tflite::CreateBatchMatMulOptions(b.fbb(), false, transposes, transposes).Union());
    EXPECT_EQ(import_body(b.finish({x}, {y})),
              std::string("%0 = nn.dynamic_quantize(%x, rows=2") + (transposes ? "" : ", symmetric=True") +
                  ");\n%1 = qnn.dense(%0.0, const(Tensor[(3, 2), int8], [1, 2, 3, 4, 5, -6]), 0, 0, 1f, 1f, "
                  "units=3);\n%2 = nn.dynamic_dequantize(%1, %0.1, %0.2, const(Tensor[(3), float32], [0.5, "
                  "0.5, 0.5]), const(Tensor[(3), int32], [3, 7, -1]), rows=2);\n%2\n");
  }
}

// TFLite rounds larger sums to float32 on the way.
TEST(TfliteFloat, AProductWithAnIntegerMatrixWhoseSumsFloatDoesNotHoldIsRefused) {
  const auto product = [](int32_t depth) {
    TfliteBuilder b;
    const int32_t x = real(b, "x", {1, depth}), y = real(b, "y", {1, 1});
    const int32_t w = b.tensor({.name = "w",
                                .shape = {1, depth},
                                .scales = {0.5f},
                                .zero_points = {0},
                                .data = std::vector<uint8_t>(static_cast<size_t>(depth), 0x81)});
    b.op(tflite::BuiltinOperator_BATCH_MATMUL, {x, w}, {y}, tflite::BuiltinOptions_BatchMatMulOptions,
         tflite::CreateBatchMatMulOptions(b.fbb(), false, true, true).Union());
    return import_error(b.finish({x}, {y}));
  };
  EXPECT_EQ(product(518), "imported");
  EXPECT_NE(product(519).find("BATCH_MATMUL with asymmetric_quantize_inputs and sums beyond 2^24 ('y')"),
            std::string::npos)
      << product(519);
}

TEST(TfliteFloat, IntegerWeightsQuantiseTheInputWhileTheModelRuns) {
  const auto model = [](std::vector<float> scales, bool asymmetric) {
    TfliteBuilder b;
    const std::vector<int64_t> zeros(scales.size(), 0);
    const int32_t w = b.tensor({.name = "w",
                                .type = tflite::TensorType_INT8,
                                .shape = {3, 2},
                                .scales = std::move(scales),
                                .zero_points = zeros,
                                .data = {1, 2, 3, 4, 5, 250}});
    return import_body(dense_model(b, w, asymmetric));
  };
  const auto expected = [](const std::string& quantize, const std::string& scales) {
    return "%0 = nn.dynamic_quantize(" + quantize +
           ");\n%1 = qnn.dense(%0.0, const(Tensor[(3, 2), int8], [1, 2, 3, 4, 5, -6]), 0, 0, 1f, 1f, "
           "units=3);\n%2 = nn.dynamic_dequantize(%1, %0.1, %0.2, const(Tensor[(3), float32], [" +
           scales +
           "]), const(Tensor[(3), int32], [3, 7, -1]));\n%3 = nn.bias_add(%2, const(Tensor[(3), float32], "
           "[1, 2, 3]));\n%4 = nn.relu(%3);\n%4\n";
  };
  EXPECT_EQ(model({0.5f}, false), expected("%x, symmetric=True", "0.5, 0.5, 0.5"));
  EXPECT_EQ(model({0.5f, 0.25f, 0.125f}, true), expected("%x", "0.5, 0.25, 0.125"));
}

// TFLite has zero points of inputs where weights have several scales, not where they have one for the one
// channel.
TEST(TfliteFloat, AConvolutionOfOneChannelQuantisesItsInputWithoutAZeroPoint) {
  for (const int32_t channels : {1, 2}) {
    TfliteBuilder b;
    const int32_t x = real(b, "x", {1, 2, 2, 1}), y = real(b, "y", {1, 2, 2, channels});
    const auto count = static_cast<size_t>(channels);
    const int32_t w = b.tensor({.name = "w",
                                .type = tflite::TensorType_INT8,
                                .shape = {channels, 1, 1, 1},
                                .scales = std::vector<float>(count, 0.5f),
                                .zero_points = std::vector<int64_t>(count, 0),
                                .data = std::vector<uint8_t>(count, 3)});
    b.op(tflite::BuiltinOperator_CONV_2D, {x, w}, {y}, tflite::BuiltinOptions_Conv2DOptions,
         tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1, kNone).Union());
    const std::string text = import_body(b.finish({x}, {y}));
    EXPECT_EQ(text.find("symmetric=True") != std::string::npos, channels == 1) << text;
  }
}

TEST(TfliteFloat, ConvolutionsAndPoolsKeepTheirWindows) {
  TfliteBuilder b;
  const int32_t x = real(b, "x", {1, 4, 4, 1}), y = real(b, "y", {1, 2, 2, 1}),
                z = real(b, "z", {1, 1, 1, 1});
  const int32_t w = reals(b, "w", {1, 2, 2, 1}, {1, 2, 3, 4});
  b.op(tflite::BuiltinOperator_CONV_2D, {x, w}, {y}, tflite::BuiltinOptions_Conv2DOptions,
       tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 2, 2, tflite::ActivationFunctionType_RELU6)
           .Union());
  b.op(tflite::BuiltinOperator_AVERAGE_POOL_2D, {y}, {z}, tflite::BuiltinOptions_Pool2DOptions,
       tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 2, 2, 2, 2, kNone).Union());
  EXPECT_EQ(import_body(b.finish({x}, {z})),
            "%0 = nn.conv2d(%x, const(Tensor[(1, 2, 2, 1), float32], [1, 2, 3, 4]), "
            "strides=[2, 2], channels=1, kernel_size=[2, 2], data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
            "%1 = clip(%0, a_min=0f, a_max=6f);\n"
            "%2 = nn.avg_pool2d(%1, pool_size=[2, 2], strides=[2, 2], layout=\"NHWC\");\n%2\n");
}

TEST(TfliteFloat, TheLogSaysHowToQuantise) {
  TfliteBuilder b;
  const std::vector<uint8_t> bytes = dense_model(b, reals(b, "w", {3, 2}, {1, 2, 3, 4, 5, 6}));
  std::string log;
  import_tflite(bytes, "net.tflite", [&](uint32_t level, const std::string& text) {
    if (level == QPLAN_LOG_INFO) log += text;
  });
  EXPECT_NE(log.find("the model is not quantised: its one operator with weights (first 'y') computes in "
                     "float32; quantise it fully: give the TFLite converter a representative dataset"),
            std::string::npos)
      << log;
}

// TFLite's kernels compute such an operator as if it had no activation.
TEST(TfliteFloat, AFusedTanhIsRefused) {
  TfliteBuilder b;
  const int32_t x = real(b, "x", {2}), y = real(b, "y", {2});
  b.op(tflite::BuiltinOperator_ADD, {x, x}, {y}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb(), tflite::ActivationFunctionType_TANH).Union());
  const std::string error = import_error(b.finish({x}, {y}));
  EXPECT_NE(error.find("ADD with fused activation TANH, which TFLite's kernels leave out ('y')"),
            std::string::npos)
      << error;
}

TEST(TfliteFloat, WhatDoesNotFitIsRefused) {
  TfliteBuilder b;
  const int32_t w = b.tensor({.name = "w",
                              .type = tflite::TensorType_UINT8,
                              .shape = {3, 2},
                              .scales = {0.5f},
                              .zero_points = {3},
                              .data = {1, 2, 3, 4, 5, 6}});
  const std::string error = import_error(dense_model(b, w));
  EXPECT_NE(error.find("FULLY_CONNECTED with float32 input and uint8 weights ('y')"), std::string::npos)
      << error;
  TfliteBuilder wrong;
  const std::string mismatch =
      import_error(dense_model(wrong, reals(wrong, "w", {3, 5}, std::vector<float>(15))));
  EXPECT_NE(mismatch.find("does not fit weights of shape [3, 5]"), std::string::npos) << mismatch;
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_float_test
