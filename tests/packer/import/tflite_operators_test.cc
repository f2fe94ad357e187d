#include <gtest/gtest.h>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_operators_test {
namespace {

using tflite::BuiltinOperator;

const std::string kList = "-49: tflite: 'net.tflite': 1 operator that qplan does not import: ";

struct Quant {
  float scale;
  int64_t zero_point;
};

// x (and for two operands x2) -> one operator -> y.
struct UnarySpec {
  BuiltinOperator op;
  std::vector<int32_t> in_shape, out_shape;
  Quant in{0.5f, 3}, out{0.5f, 3};
  tflite::TensorType in_type = tflite::TensorType_INT8, out_type = tflite::TensorType_INT8;
  std::vector<std::vector<int32_t>> constants = {};  // int32 operands after x
};

template <typename MakeOptions>
std::vector<uint8_t> unary_model(const UnarySpec& spec, tflite::BuiltinOptions kind, MakeOptions&& make) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", spec.in_shape, spec.in.scale, spec.in.zero_point, spec.in_type);
  const int32_t y = b.activation("y", spec.out_shape, spec.out.scale, spec.out.zero_point, spec.out_type);
  std::vector<int32_t> inputs{x};
  for (const std::vector<int32_t>& values : spec.constants) inputs.push_back(b.ints("c", values));
  b.op(spec.op, inputs, {y}, kind, make(b.fbb()));
  return b.finish({x}, {y});
}
std::vector<uint8_t> unary_model(const UnarySpec& spec) {
  return unary_model(spec, tflite::BuiltinOptions_NONE,
                     [](flatbuffers::FlatBufferBuilder&) { return flatbuffers::Offset<void>(); });
}

template <typename MakeOptions>
std::vector<uint8_t> binary_model(BuiltinOperator op, std::vector<int32_t> rhs_shape,
                                  tflite::BuiltinOptions kind, MakeOptions&& make) {
  TfliteBuilder b;
  const int32_t lhs = b.activation("a", {1, 2, 2}, 0.5f, 1);
  const int32_t rhs = b.activation("b", std::move(rhs_shape), 0.25f, 2);
  const int32_t y = b.activation("y", {1, 2, 2}, 1.0f, 3);
  b.op(op, {lhs, rhs}, {y}, kind, make(b.fbb()));
  return b.finish({lhs, rhs}, {y});
}

TEST(TfliteElementwise, AddSubMul) {
  const auto none = tflite::ActivationFunctionType_NONE;
  EXPECT_EQ(
      import_body(binary_model(tflite::BuiltinOperator_ADD, {1, 2, 2}, tflite::BuiltinOptions_AddOptions,
                               [&](auto& fbb) { return tflite::CreateAddOptions(fbb, none).Union(); })),
      "%0 = qnn.add(%a, %b, 0.5f, 1, 0.25f, 2, 1f, 3);\n%0\n");
  EXPECT_EQ(import_body(binary_model(tflite::BuiltinOperator_SUB, {2}, tflite::BuiltinOptions_SubOptions,
                                     [&](auto& fbb) { return tflite::CreateSubOptions(fbb, none).Union(); })),
            "%0 = qnn.subtract(%a, %b, 0.5f, 1, 0.25f, 2, 1f, 3);\n%0\n");
  EXPECT_EQ(import_body(binary_model(
                tflite::BuiltinOperator_MUL, {1, 1, 2}, tflite::BuiltinOptions_MulOptions,
                [&](auto& fbb) {
                  return tflite::CreateMulOptions(fbb, tflite::ActivationFunctionType_RELU6).Union();
                })),
            "%0 = qnn.mul(%a, %b, 0.5f, 1, 0.25f, 2, 1f, 3);\n%1 = clip(%0, a_min=3f, a_max=9f);\n%1\n");
}

TEST(TfliteElementwise, OperandsOfDifferentTypesAreRefused) {
  TfliteBuilder b;
  const int32_t lhs = b.activation("a", {2}, 0.5f, 1);
  const int32_t rhs = b.activation("b", {2}, 0.5f, 1, tflite::TensorType_UINT8);
  const int32_t y = b.activation("y", {2}, 0.5f, 1);
  b.op(tflite::BuiltinOperator_ADD, {lhs, rhs}, {y});
  EXPECT_EQ(import_error(b.finish({lhs, rhs}, {y})),
            kList + "ADD with int8 and uint8 tensors together ('y')");
}

TEST(TfliteElementwise, MaximumAndMinimumOfOneQuantisation) {
  const auto model = [](BuiltinOperator op, float rhs_scale, float out_scale) {
    TfliteBuilder b;
    const int32_t lhs = b.activation("a", {1, 2, 2}, 0.5f, 3, tflite::TensorType_UINT8);
    const int32_t rhs = b.activation("b", {2}, rhs_scale, 3, tflite::TensorType_UINT8);
    const int32_t y = b.activation("y", {1, 2, 2}, out_scale, 3, tflite::TensorType_UINT8);
    b.op(op, {lhs, rhs}, {y});
    return b.finish({lhs, rhs}, {y});
  };
  EXPECT_EQ(import_body(model(tflite::BuiltinOperator_MAXIMUM, 0.5f, 0.5f)), "%0 = maximum(%a, %b);\n%0\n");
  EXPECT_EQ(import_body(model(tflite::BuiltinOperator_MINIMUM, 0.5f, 0.5f)), "%0 = minimum(%a, %b);\n%0\n");
  const std::string why = " with inputs and output of different quantisation ('y')";
  EXPECT_EQ(import_error(model(tflite::BuiltinOperator_MAXIMUM, 0.25f, 0.5f)), kList + "MAXIMUM" + why);
  EXPECT_EQ(import_error(model(tflite::BuiltinOperator_MINIMUM, 0.5f, 1.0f)), kList + "MINIMUM" + why);
}

TEST(TfliteDiv, TakesAnActivationAndNo16Bits) {
  EXPECT_EQ(import_body(binary_model(tflite::BuiltinOperator_DIV, {2}, tflite::BuiltinOptions_DivOptions,
                                     [&](auto& fbb) {
                                       const auto relu = tflite::ActivationFunctionType_RELU;
                                       return tflite::CreateDivOptions(fbb, relu).Union();
                                     })),
            "%0 = qnn.divide(%a, %b, 0.5f, 1, 0.25f, 2, 1f, 3);\n%1 = clip(%0, a_min=3f, a_max=127f);\n%1\n");
  UnarySpec spec{tflite::BuiltinOperator_DIV, {4}, {4}};
  spec.constants = {{1, 2, 3, 4}};
  spec.in_type = spec.out_type = tflite::TensorType_INT16;
  EXPECT_EQ(import_error(unary_model(spec)), kList + "DIV with int16 input ('y')");
}

TEST(TfliteRelu, OfTheSameQuantisationIsAClip) {
  const UnarySpec spec{tflite::BuiltinOperator_RELU6, {4}, {4}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = clip(%x, a_min=3f, a_max=15f);\n%0\n");
}

TEST(TfliteRelu, OfAnotherQuantisationUsesTheFloat32QuotientOfTheScales) {
  // In double 0.1f / 0.3f is 0.33333332504...; the nearest float32 prints as 0.3333333.
  UnarySpec spec{tflite::BuiltinOperator_RELU, {4}, {4}, {0.1f, -3}, {0.3f, 10}};
  EXPECT_EQ(import_body(unary_model(spec)),
            "%0 = qnn.requantize(%x, 0.3333333f, -3, 1f, 10);\n%1 = clip(%0, a_min=10f, a_max=127f);\n%1\n");
  spec.op = tflite::BuiltinOperator_RELU_N1_TO_1;
  EXPECT_NE(import_body(unary_model(spec)).find("a_min=7f, a_max=13f"), std::string::npos);
  spec.op = tflite::BuiltinOperator_RELU_0_TO_1;
  EXPECT_NE(import_body(unary_model(spec)).find("a_min=10f, a_max=13f"), std::string::npos);
}

std::vector<uint8_t> pool_model(BuiltinOperator op, const UnarySpec& shape, tflite::Padding padding) {
  UnarySpec spec = shape;
  spec.op = op;
  return unary_model(spec, tflite::BuiltinOptions_Pool2DOptions, [&](auto& fbb) {
    return tflite::CreatePool2DOptions(fbb, padding, 2, 1, 3, 2, tflite::ActivationFunctionType_RELU).Union();
  });
}

TEST(TflitePool, WindowsStridesAndPadding) {
  const UnarySpec spec{{}, {1, 4, 5, 2}, {1, 4, 3, 2}};
  EXPECT_EQ(
      import_body(pool_model(tflite::BuiltinOperator_AVERAGE_POOL_2D, spec, tflite::Padding_SAME)),
      "%0 = qnn.avg_pool2d(%x, 0.5f, 3, 0.5f, 3, pool_size=[2, 3], strides=[1, 2], padding=[0, 1, 1, 1], "
      "layout=\"NHWC\");\n%1 = clip(%0, a_min=3f, a_max=127f);\n%1\n");
  const UnarySpec valid{{}, {1, 4, 5, 2}, {1, 3, 2, 2}};
  EXPECT_EQ(import_body(pool_model(tflite::BuiltinOperator_MAX_POOL_2D, valid, tflite::Padding_VALID)),
            "%0 = nn.max_pool2d(%x, pool_size=[2, 3], strides=[1, 2], layout=\"NHWC\");\n"
            "%1 = clip(%0, a_min=3f, a_max=127f);\n%1\n");
}

TEST(TflitePool, AnotherQuantisationIsRefused) {
  const UnarySpec spec{{}, {1, 4, 5, 2}, {1, 4, 3, 2}, {0.5f, 3}, {0.25f, 3}};
  EXPECT_EQ(import_error(pool_model(tflite::BuiltinOperator_AVERAGE_POOL_2D, spec, tflite::Padding_SAME)),
            kList + "AVERAGE_POOL_2D with different quantisation of input and output ('y')");
}

TEST(TfliteQuantize, FloatTo8BitAndBack) {
  UnarySpec spec{tflite::BuiltinOperator_QUANTIZE, {4}, {4}};
  spec.in_type = tflite::TensorType_FLOAT32;
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = qnn.quantize(%x, 0.5f, 3, rule=\"div_away\");\n%0\n");
  spec.out_type = tflite::TensorType_UINT8;
  EXPECT_EQ(import_body(unary_model(spec)),
            "%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"uint8\", rule=\"div_away\");\n%0\n");
  spec = {tflite::BuiltinOperator_DEQUANTIZE, {4}, {4}};
  spec.out_type = tflite::TensorType_FLOAT32;
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = qnn.dequantize(%x, 0.5f, 3);\n%0\n");
}

TEST(TfliteQuantize, BetweenTwo8BitTypesRequantizes) {
  UnarySpec spec{tflite::BuiltinOperator_QUANTIZE, {4}, {4}, {0.5f, 3}, {0.25f, 130}};
  spec.out_type = tflite::TensorType_UINT8;
  EXPECT_EQ(import_body(unary_model(spec)),
            "%0 = qnn.requantize(%x, 0.5f, 3, 0.25f, 130, out_dtype=\"uint8\");\n%0\n");
  spec.in_type = tflite::TensorType_INT16;
  EXPECT_EQ(import_error(unary_model(spec)),
            kList + "QUANTIZE with int16 tensors whose zero point is not 0 ('y')");
  spec.in_type = tflite::TensorType_INT64;
  EXPECT_EQ(import_error(unary_model(spec)), kList + "QUANTIZE with int64 input ('y')");
}

TEST(TfliteSoftmax, KeepsBetaAndWantsItsFixedOutputQuantisation) {
  UnarySpec spec{tflite::BuiltinOperator_SOFTMAX, {1, 4}, {1, 4}, {0.5f, 3}, {1.0f / 256, -128}};
  const auto model = [&] {
    return unary_model(spec, tflite::BuiltinOptions_SoftmaxOptions,
                       [](auto& fbb) { return tflite::CreateSoftmaxOptions(fbb, 0.5f).Union(); });
  };
  EXPECT_EQ(import_body(model()), "%0 = qnn.softmax(%x, 0.5f, 3, 0.00390625f, -128, beta=0.5f);\n%0\n");
  spec.out = {1.0f / 256, 0};
  EXPECT_EQ(
      import_error(model()),
      kList + "SOFTMAX with output scale 0.00390625 and zero point 0 instead of 0.00390625 and -128 ('y')");
}

TEST(TfliteLogSoftmax, WantsItsFixedOutputQuantisation) {
  UnarySpec spec{tflite::BuiltinOperator_LOG_SOFTMAX, {1, 4}, {1, 4}, {0.5f, 3}, {0.0625f, 127}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = qnn.log_softmax(%x, 0.5f, 3, 0.0625f, 127);\n%0\n");
  spec.in_type = spec.out_type = tflite::TensorType_UINT8;
  EXPECT_EQ(
      import_error(unary_model(spec)),
      kList + "LOG_SOFTMAX with output scale 0.0625 and zero point 127 instead of 0.0625 and 255 ('y')");
  spec.out.zero_point = 255;
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = qnn.log_softmax(%x, 0.5f, 3, 0.0625f, 255);\n%0\n");
  spec.in_type = tflite::TensorType_INT16;
  EXPECT_EQ(import_error(unary_model(spec)), kList + "LOG_SOFTMAX with int16 input ('y')");
}

TEST(TfliteLogistic, Uint8) {
  UnarySpec spec{tflite::BuiltinOperator_LOGISTIC, {1, 4}, {1, 4}, {0.5f, 3}, {1.0f / 256, 0}};
  spec.in_type = spec.out_type = tflite::TensorType_UINT8;
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = qnn.sigmoid(%x, 0.5f, 3, 0.00390625f, 0);\n%0\n");
}

TEST(TfliteMean, AxesAreNormalised) {
  const UnarySpec spec{
      tflite::BuiltinOperator_MEAN, {1, 2, 3, 4}, {1, 1, 1, 4}, {0.5f, 3}, {0.25f, 4}, {}, {}, {{-2, 1, 2}}};
  UnarySpec int8 = spec;
  int8.in_type = int8.out_type = tflite::TensorType_INT8;
  EXPECT_EQ(
      import_body(unary_model(int8, tflite::BuiltinOptions_ReducerOptions,
                              [](auto& fbb) { return tflite::CreateReducerOptions(fbb, true).Union(); })),
      "%0 = qnn.mean(%x, 0.5f, 3, 0.25f, 4, axis=[1, 2], keepdims=True);\n%0\n");
  int8.out_shape = {1, 4};
  EXPECT_EQ(import_body(unary_model(int8)), "%0 = qnn.mean(%x, 0.5f, 3, 0.25f, 4, axis=[1, 2]);\n%0\n");
}

TEST(TfliteArgMax, Int32AndInt64) {
  UnarySpec spec{tflite::BuiltinOperator_ARG_MAX, {1, 2, 3}, {1, 2}};
  spec.out_type = tflite::TensorType_INT64;
  spec.constants = {{-1}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = argmax(%x, axis=2, dtype=\"int64\");\n%0\n");
  spec.out_type = tflite::TensorType_INT32;
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = argmax(%x, axis=2);\n%0\n");
}

TEST(TfliteArgMax, OfFloats) {
  UnarySpec spec{tflite::BuiltinOperator_ARG_MAX, {1, 2, 3}, {1, 2}};
  spec.in_type = tflite::TensorType_FLOAT32;
  spec.out_type = tflite::TensorType_INT32;
  spec.constants = {{-1}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = argmax(%x, axis=2);\n%0\n");
}

TEST(TfliteReshape, TheOperandCountsBeforeTheOption) {
  UnarySpec spec{tflite::BuiltinOperator_RESHAPE, {1, 4}, {2, 2}};
  const auto model = [&] {
    return unary_model(spec, tflite::BuiltinOptions_ReshapeOptions, [](auto& fbb) {
      const std::vector<int32_t> shape{2, 2};
      return tflite::CreateReshapeOptionsDirect(fbb, &shape).Union();
    });
  };
  EXPECT_EQ(import_body(model()), "%0 = reshape(%x, newshape=[2, 2]);\n%0\n");
  spec.constants = {{4, -1}};
  spec.out_shape = {4, 1};
  EXPECT_EQ(import_body(model()), "%0 = reshape(%x, newshape=[4, -1]);\n%0\n");
  spec.constants = {};
  EXPECT_EQ(
      import_error(unary_model(spec)),
      "-48: tflite: 'net.tflite': operator 0 RESHAPE 'y': there is neither a shape operand nor the option "
      "new_shape");
}

TEST(TfliteTranspose, Permutation) {
  UnarySpec spec{tflite::BuiltinOperator_TRANSPOSE, {1, 2, 3}, {1, 3, 2}};
  spec.constants = {{0, 2, -2}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = transpose(%x, axes=[0, 2, 1]);\n%0\n");
}

TEST(TflitePad, PadsWithTheOutputZeroPoint) {
  UnarySpec spec{tflite::BuiltinOperator_PAD, {1, 2}, {1, 5}, {0.5f, 3}, {0.5f, 7}};
  spec.constants = {{0, 0, 1, 2}};
  EXPECT_EQ(import_body(unary_model(spec)), "%0 = nn.pad(%x, 7, pad_width=[[0, 0], [1, 2]]);\n%0\n");
  spec.constants = {{0, 0, 1}};
  EXPECT_EQ(
      import_error(unary_model(spec)),
      "-48: tflite: 'net.tflite': operator 0 PAD 'y': there are 3 paddings, expected 4, two per dimension");
}

TEST(TfliteResizeBilinear, TakesInt16) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 2, 2, 1}, 0.5f, 0, tflite::TensorType_INT16);
  const int32_t y = b.activation("y", {1, 4, 4, 1}, 0.5f, 0, tflite::TensorType_INT16);
  b.op(tflite::BuiltinOperator_RESIZE_BILINEAR, {x, b.ints("size", {4, 4})}, {y},
       tflite::BuiltinOptions_ResizeBilinearOptions, tflite::CreateResizeBilinearOptions(b.fbb()).Union());
  EXPECT_EQ(import_body(b.finish({x}, {y})),
            "%0 = image.resize2d(%x, size=[4, 4], layout=\"NHWC\", "
            "coordinate_transformation_mode=\"asymmetric\");\n%0\n");
}

TEST(TfliteBatchMatmul, TakesInt16) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.5f, 0, tflite::TensorType_INT16);
  const int32_t w = b.activation("w", {3, 4}, 0.25f, 0, tflite::TensorType_INT16);
  const int32_t y = b.activation("y", {2, 4}, 2.0f, 0, tflite::TensorType_INT16);
  b.op(tflite::BuiltinOperator_BATCH_MATMUL, {x, w}, {y});
  EXPECT_EQ(import_body(b.finish({x, w}, {y})),
            "%0 = qnn.batch_matmul(%x, %w, 0.5f, 0, 0.25f, 0, 2f, 0);\n%0\n");
}

TEST(TfliteResizeBilinear, ThreeCoordinateRules) {
  UnarySpec spec{tflite::BuiltinOperator_RESIZE_BILINEAR, {1, 2, 2, 1}, {1, 3, 5, 1}};
  spec.constants = {{3, 5}};
  const auto resize = [&](bool align_corners, bool half_pixel) {
    return import_error(unary_model(
               spec, tflite::BuiltinOptions_ResizeBilinearOptions,
               [&](auto& fbb) {
                 return tflite::CreateResizeBilinearOptions(fbb, align_corners, half_pixel).Union();
               })) != "imported"
               ? std::string("refused")
               : import_body(unary_model(spec, tflite::BuiltinOptions_ResizeBilinearOptions, [&](auto& fbb) {
                   return tflite::CreateResizeBilinearOptions(fbb, align_corners, half_pixel).Union();
                 }));
  };
  EXPECT_EQ(resize(false, true), "%0 = image.resize2d(%x, size=[3, 5], layout=\"NHWC\");\n%0\n");
  EXPECT_EQ(resize(true, false),
            "%0 = image.resize2d(%x, size=[3, 5], layout=\"NHWC\", "
            "coordinate_transformation_mode=\"align_corners\");\n%0\n");
  EXPECT_EQ(resize(false, false),
            "%0 = image.resize2d(%x, size=[3, 5], layout=\"NHWC\", "
            "coordinate_transformation_mode=\"asymmetric\");\n%0\n");
  EXPECT_EQ(resize(true, true), "refused");
}

TEST(TfliteSplit, EqualParts) {
  TfliteBuilder b;
  const int32_t axis = b.ints("axis", {-1});
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 3);
  const int32_t y0 = b.activation("y0", {1, 2}, 0.5f, 3);
  const int32_t y1 = b.activation("y1", {1, 2}, 0.5f, 3);
  b.op(tflite::BuiltinOperator_SPLIT, {axis, x}, {y0, y1}, tflite::BuiltinOptions_SplitOptions,
       tflite::CreateSplitOptions(b.fbb(), 2).Union());
  EXPECT_EQ(import_body(b.finish({x}, {y1, y0})),
            "%0 = split(%x, indices_or_sections=2, axis=1);\n(%0.1, %0.0)\n");
}

std::vector<uint8_t> concatenation_model(Quant a, Quant b_quant, Quant out, tflite::TensorType type) {
  TfliteBuilder b;
  const int32_t x = b.activation("a", {1, 2}, a.scale, a.zero_point, type);
  const int32_t x2 = b.activation("b", {1, 3}, b_quant.scale, b_quant.zero_point, type);
  const int32_t y = b.activation("y", {1, 5}, out.scale, out.zero_point, type);
  b.op(tflite::BuiltinOperator_CONCATENATION, {x, x2}, {y}, tflite::BuiltinOptions_ConcatenationOptions,
       tflite::CreateConcatenationOptions(b.fbb(), -1).Union());
  return b.finish({x, x2}, {y});
}

TEST(TfliteConcatenation, OfOneQuantisationCopies) {
  EXPECT_EQ(import_body(concatenation_model({0.5f, 3}, {0.5f, 3}, {0.5f, 3}, tflite::TensorType_INT8)),
            "%0 = concatenate((%a, %b), axis=1);\n%0\n");
}

TEST(TfliteConcatenation, Uint8RequantizesWhereThatGivesTheBytesOfTheFloatRescaling) {
  // A factor of 2: both ways are exact.
  EXPECT_EQ(import_body(concatenation_model({0.5f, 3}, {1.0f, 20}, {0.5f, 3}, tflite::TensorType_UINT8)),
            "%0 = qnn.requantize(%b, 1f, 20, 0.5f, 3, out_dtype=\"uint8\");\n"
            "%1 = concatenate((%a, %0), axis=1);\n%1\n");
}

TEST(TfliteConcatenation, Int8OfAnotherQuantisationIsRefused) {
  EXPECT_EQ(import_error(concatenation_model({0.5f, 3}, {1.0f, 13}, {0.5f, 3}, tflite::TensorType_INT8)),
            kList + "CONCATENATION with int8 inputs of different quantisation ('y')");
}

TEST(TfliteConcatenation, Uint8RescalingThatIsNoRequantisationIsATable) {
  const std::string body =
      import_body(concatenation_model({1.0f, 100}, {0.5f, 128}, {1.0f, 100}, tflite::TensorType_UINT8));
  EXPECT_TRUE(body.starts_with("%0 = qnn.lookup(%b, ")) << body;
  EXPECT_NE(body.find("%1 = concatenate((%a, %0), axis=1);\n%1\n"), std::string::npos) << body;
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_operators_test
