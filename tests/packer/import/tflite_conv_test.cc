#include <gtest/gtest.h>

#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::tflite_test::tflite_conv_test {
namespace {

const char kWeights[] =
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]";

TEST(TfliteConv2d, Int8FormsItsMultiplierInDouble) {
  EXPECT_EQ(import_body(conv_model({})),
            std::string("%0 = qnn.conv2d(%x, const(Tensor[(3, 2, 2, 2), int8], ") + kWeights +
                "), 3, 0, 0.5f, 0.25f, padding=[0, 0, 1, 1], channels=3, kernel_size=[2, 2], "
                "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                "%1 = nn.bias_add(%0, const(Tensor[(3), int32], [10, -20, 30]), axis=3);\n"
                "%2 = qnn.requantize(%1, 0.125f, 0, 0.25f, -5);\n"
                "%2\n");
}

TEST(TfliteConv2d, Uint8KeepsTheWeightZeroPointAndFormsItsMultiplierFromAFloat32Product) {
  EXPECT_EQ(import_body(conv_model(
                {.type = tflite::TensorType_UINT8, .output_zero_point = 5, .weight_zero_points = {7}})),
            std::string("%0 = qnn.conv2d(%x, const(Tensor[(3, 2, 2, 2), uint8], ") + kWeights +
                "), 3, 7, 0.5f, 0.25f, padding=[0, 0, 1, 1], channels=3, kernel_size=[2, 2], "
                "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                "%1 = nn.bias_add(%0, const(Tensor[(3), int32], [10, -20, 30]), axis=3);\n"
                "%2 = qnn.requantize(%1, 0.125f, 0, 0.25f, 5, out_dtype=\"uint8\", "
                "multiplier=\"product_f32\");\n"
                "%2\n");
}

TEST(TfliteConv2d, PerChannelScalesMultiplyTheInputScale) {
  const std::string body = import_body(
      conv_model({.weight_scales = {0.25f, 0.5f, 0.125f}, .weight_zero_points = {0, 0, 0}, .bias = false}));
  EXPECT_NE(body.find("3, 0, 0.5f, const(Tensor[(3), float32], [0.25, 0.5, 0.125])"), std::string::npos)
      << body;
  EXPECT_NE(body.find("qnn.requantize(%1, const(Tensor[(3), float32], [0.125, 0.25, 0.0625]), 0, 0.25f, -5, "
                      "axis=3)"),
            std::string::npos)
      << body;
}

// Training drives the weights of unused channels towards 0: their scales are of any size.
TEST(TfliteConv2d, AScaleOfADeadChannelMayBeSubnormal) {
  const std::string body = import_body(conv_model(
      {.input_scale = 0.5f, .weight_scales = {0.25f, 1e-38f, 1e-41f}, .weight_zero_points = {0, 0, 0}}));
  EXPECT_NE(body.find("qnn.requantize(%1, const(Tensor[(3), float32], [0.125, 5e-39, 5e-42]), 0, 0.25f, -5, "
                      "axis=3)"),
            std::string::npos)
      << body;
}

TEST(TfliteConv2d, AnAbsentBiasIsZeros) {
  const std::string body = import_body(conv_model({.bias = false}));
  EXPECT_NE(body.find("nn.bias_add(%0, const(Tensor[(3), int32], [0, 0, 0]), axis=3)"), std::string::npos)
      << body;
}

// Bounds in output units, scale 0.25 and zero point -5: 0 is -5, 6 is 19, 1 is -1.
TEST(TfliteConv2d, AnActivationBecomesAClipInQuantisedUnits) {
  const auto clip = [](tflite::ActivationFunctionType activation) {
    const std::string body = import_body(conv_model({.activation = activation}));
    const size_t at = body.find("clip(");
    return at == std::string::npos ? std::string("none") : body.substr(at, body.find(';', at) - at);
  };
  EXPECT_EQ(clip(tflite::ActivationFunctionType_NONE), "none");
  EXPECT_EQ(clip(tflite::ActivationFunctionType_RELU), "clip(%2, a_min=-5f, a_max=127f)");
  EXPECT_EQ(clip(tflite::ActivationFunctionType_RELU6), "clip(%2, a_min=-5f, a_max=19f)");
  EXPECT_EQ(clip(tflite::ActivationFunctionType_RELU_N1_TO_1), "clip(%2, a_min=-9f, a_max=-1f)");
}

TEST(TfliteConv2d, AnActivationAsWideAsTheDtypeLeavesNoClip) {
  // 0 is -128, and 6 / 0.0235 = 255.3 is above 127.
  const std::string body = import_body(conv_model({.output_scale = 0.0235f,
                                                   .output_zero_point = -128,
                                                   .activation = tflite::ActivationFunctionType_RELU6}));
  EXPECT_EQ(body.find("clip"), std::string::npos) << body;
}

TEST(TfliteConv2d, ActivationBoundsRoundHalfAwayFromZero) {
  // 1 / 0.4 = 2.5 in float32: 3 and -3 around the zero point.
  const std::string body =
      import_body(conv_model({.output_scale = 0.4f,
                              .output_zero_point = 0,
                              .activation = tflite::ActivationFunctionType_RELU_N1_TO_1}));
  EXPECT_NE(body.find("a_min=-3f, a_max=3f"), std::string::npos) << body;
}

TEST(TfliteConv2d, SamePaddingPutsTheOddOneBehind) {
  const auto padding = [](ConvSpec spec) {
    const std::string body = import_body(conv_model(spec));
    const size_t at = body.find("padding=");
    return at == std::string::npos ? std::string("none") : body.substr(at, body.find(']', at) + 1 - at);
  };
  EXPECT_EQ(padding({}), "padding=[0, 0, 1, 1]");
  EXPECT_EQ(padding({.padding = tflite::Padding_VALID, .output_shape = {1, 2, 2, 3}}), "none");
  EXPECT_EQ(padding({.stride = 2, .output_shape = {1, 2, 2, 3}}), "padding=[0, 0, 1, 1]");
  EXPECT_EQ(padding({.dilation = 2}), "padding=[1, 1, 1, 1]");
  // ceil(3 / 3) = 1 window of 2 fits: nothing is padded.
  EXPECT_EQ(padding({.stride = 3, .output_shape = {1, 1, 1, 3}}), "none");
}

TEST(TfliteConv2d, ABiasScaleFarFromTheProductIsAWarning) {
  std::vector<std::string> warnings;
  const auto log = [&](uint32_t level, const std::string& text) {
    if (level == QPLAN_LOG_WARNING) warnings.push_back(text);
  };
  import_tflite(conv_model({}), "net.tflite", log);
  import_tflite(conv_model({.bias_scale = 0.125f + 0.0049f}), "net.tflite", log);  // 0.0196 output units
  EXPECT_TRUE(warnings.empty());
  import_tflite(conv_model({.bias_scale = 0.125f + 0.0051f}), "net.tflite", log);  // 0.0204
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(
      warnings[0],
      "tflite: CONV_2D 'y': bias scale 0.1301 is not input scale * weight scale, 0.125; the product is used");
}

TEST(TfliteConv2d, RefusesWhatTfliteReadsDifferently) {
  EXPECT_EQ(
      import_error(conv_model({.weight_zero_points = {1}})),
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: CONV_2D with int8 weights whose "
      "zero point is not 0 ('y')");
  EXPECT_EQ(
      import_error(conv_model({.type = tflite::TensorType_UINT8,
                               .output_zero_point = 5,
                               .weight_scales = {0.25f, 0.5f, 0.125f},
                               .weight_zero_points = {0, 0, 0}})),
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: CONV_2D with per-channel uint8 "
      "weights ('y')");
  EXPECT_EQ(
      import_error(
          conv_model({.weight_scales = {0.25f, 0.5f}, .weight_zero_points = {0, 0}, .weight_axis = 3})),
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: CONV_2D with weights quantised "
      "along axis 3 ('y')");
  EXPECT_EQ(
      import_error(conv_model({.activation = tflite::ActivationFunctionType_TANH})),
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: CONV_2D with fused activation TANH, "
      "which TFLite's kernels leave out "
      "('y')");
}

TEST(TfliteConv2d, RefusesWhatIsBroken) {
  const std::string place = "-48: tflite: 'net.tflite': operator 0 CONV_2D 'y': ";
  EXPECT_EQ(import_error(conv_model({.weight_scales = {0.25f, 0.5f}, .weight_zero_points = {0, 0}})),
            place + "the weights have 2 scales, expected 3, one per output channel");
  EXPECT_EQ(import_error(conv_model({.stride = 0})), place + "stride 0 must be at least 1");
  EXPECT_EQ(import_error(conv_model({.dilation = -1})), place + "dilation -1 must be at least 1");
  EXPECT_EQ(import_error(conv_model({.padding = static_cast<tflite::Padding>(7)})),
            place + "padding 7 is unknown");
  EXPECT_EQ(import_error(conv_model({.input_scale = 0.0f})),
            place + "tensor 0 'x' has scale 0, expected a positive finite number");
  EXPECT_EQ(import_error(conv_model({.input_zero_point = 128})),
            place + "tensor 0 'x' has zero point 128, outside of int8");
  EXPECT_EQ(import_error(conv_model({.input_scale = 1e-30f, .weight_scales = {1e-30f}})),
            place + "input scale 1e-30 times weight scale 1e-30 leaves the range of float32");
  EXPECT_EQ(
      import_error(conv_model({.output_scale = 1e-20f, .activation = tflite::ActivationFunctionType_RELU6})),
      place + "scale 1e-20 is too small for the activation's bound 6");
  EXPECT_EQ(import_error(conv_model({.output_shape = {1, 3, 3, 4}})),
            place + "output 'y' is declared as int8 [1, 3, 3, 4], but the operator gives int8 [1, 3, 3, 3]");
}

// [1, 1, 2, 4]: two positions of four channels, channel c of position p is 10 * p + c.
// Per-channel scales name axis 3; weights of rank 3 have none.
TEST(TfliteDepthwiseConv2d, WeightsOfAnotherRankAreRefused) {
  const auto error = [](int32_t code, const std::vector<int32_t>& shape, int32_t axis) {
    TfliteBuilder b;
    const int32_t x = b.activation("x", {1, 3, 3, 2}, 0.5f, 3);
    const int32_t w = b.tensor({.name = "w",
                                .shape = shape,
                                .scales = {0.25f, 0.5f},
                                .zero_points = {0, 0},
                                .quantized_dimension = axis,
                                .data = std::vector<uint8_t>(shape.empty() ? 1 : 8, 1)});
    const int32_t y = b.activation("y", {1, 2, 2, 2}, 0.5f, 0);
    if (code == tflite::BuiltinOperator_CONV_2D) {
      b.op(code, {x, w}, {y}, tflite::BuiltinOptions_Conv2DOptions,
           tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1).Union());
    } else if (code == tflite::BuiltinOperator_FULLY_CONNECTED) {
      b.op(code, {x, w}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
           tflite::CreateFullyConnectedOptions(b.fbb()).Union());
    } else {
      b.op(code, {x, w}, {y}, tflite::BuiltinOptions_DepthwiseConv2DOptions,
           tflite::CreateDepthwiseConv2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 1).Union());
    }
    return import_error(b.finish({x}, {y}));
  };
  const std::string file = "-48: tflite: 'net.tflite': operator 0 ";
  EXPECT_EQ(error(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, {2, 2, 2}, 3),
            file + "DEPTHWISE_CONV_2D 'y': the weights have shape [2, 2, 2], expected rank 4");
  EXPECT_EQ(error(tflite::BuiltinOperator_CONV_2D, {}, 0),
            file + "CONV_2D 'y': the weights have shape [], expected rank 4");
  EXPECT_EQ(error(tflite::BuiltinOperator_FULLY_CONNECTED, {}, 0),
            file + "FULLY_CONNECTED 'y': the weights have shape [], expected rank 2");
}

// A sparse tensor's buffer is shorter than its shape says.
TEST(TfliteDepthwiseConv2d, SparseWeightsNeedADescription) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 3, 3, 2}, 0.5f, 3);
  const int32_t w = b.tensor({.name = "w",
                              .shape = {1, 2, 2, 2},
                              .scales = {0.25f},
                              .zero_points = {0},
                              .data = {1, 2, 3},
                              .sparsity = tflite::CreateSparsityParameters(b.fbb())});
  const int32_t y = b.activation("y", {1, 2, 2, 2}, 0.5f, 0);
  b.op(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, {x, w}, {y}, tflite::BuiltinOptions_DepthwiseConv2DOptions,
       tflite::CreateDepthwiseConv2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 1).Union());
  const std::string error = import_error(b.finish({x}, {y}));
  EXPECT_NE(error.find("-48: "), std::string::npos) << error;
  EXPECT_NE(error.find("tensor 1 'w': its description has not one level for each axis"), std::string::npos)
      << error;
}

TEST(TfliteDepthwiseConv2d, WeightsBecomeAGroupPerInputChannel) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 1, 2, 2}, 0.5f, 0);
  const int32_t w = b.tensor({.name = "w",
                              .shape = {1, 1, 2, 4},
                              .scales = {1, 2, 4, 8},
                              .zero_points = {0, 0, 0, 0},
                              .quantized_dimension = 3,
                              .data = {0, 1, 2, 3, 10, 11, 12, 13}});
  const int32_t y = b.activation("y", {1, 1, 1, 4}, 1.0f, 0);
  b.op(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, {x, w}, {y}, tflite::BuiltinOptions_DepthwiseConv2DOptions,
       tflite::CreateDepthwiseConv2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 2).Union());
  EXPECT_EQ(
      import_body(b.finish({x}, {y})),
      "%0 = qnn.conv2d(%x, const(Tensor[(4, 1, 2, 1), int8], [0, 10, 1, 11, 2, 12, 3, 13]), 0, 0, 0.5f, "
      "const(Tensor[(4), float32], [1, 2, 4, 8]), groups=2, channels=4, kernel_size=[1, 2], "
      "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "%1 = nn.bias_add(%0, const(Tensor[(4), int32], [0, 0, 0, 0]), axis=3);\n"
      "%2 = qnn.requantize(%1, const(Tensor[(4), float32], [0.5, 1, 2, 4]), 0, 1f, 0, axis=3);\n"
      "%2\n");
}

struct DenseSpec {
  tflite::TensorType type = tflite::TensorType_INT8;
  std::vector<int32_t> input_shape = {2, 3};
  std::vector<int32_t> output_shape = {2, 2};
  std::vector<float> weight_scales = {0.25f};
  std::vector<int64_t> weight_zero_points = {0};
  bool keep_num_dims = false;
  bool shuffled = false;
  bool constant_weights = true;
  std::vector<int32_t> bias = {};  // empty: absent
  bool four_bits = false;
};

std::vector<uint8_t> dense_model(const DenseSpec& spec) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", spec.input_shape, 0.5f, 3, spec.type);
  TensorSpec weights{.name = "w",
                     .type = spec.type == tflite::TensorType_INT16 ? tflite::TensorType_INT8 : spec.type,
                     .shape = {2, 3},
                     .scales = spec.weight_scales,
                     .zero_points = spec.weight_zero_points,
                     .data = {1, 2, 3, 4, 5, 6}};
  if (!spec.constant_weights) weights.data.clear();
  if (spec.four_bits) weights.type = tflite::TensorType_INT4, weights.data = {0x81, 0xf7, 0x30};
  const int32_t w = b.tensor(weights);
  const int32_t bias = spec.bias.empty() ? -1 : b.ints("b", spec.bias);
  const int32_t y = b.activation("y", spec.output_shape, 0.25f, 5, spec.type);
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, w, bias}, {y},
       tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb(), tflite::ActivationFunctionType_NONE,
                                           spec.shuffled
                                               ? tflite::FullyConnectedOptionsWeightsFormat_SHUFFLED4x16INT8
                                               : tflite::FullyConnectedOptionsWeightsFormat_DEFAULT,
                                           spec.keep_num_dims)
           .Union());
  return b.finish(spec.constant_weights ? std::vector<int32_t>{x} : std::vector<int32_t>{x, w}, {y});
}

TEST(TfliteFullyConnected, OneScaleFormsItsMultiplierFromAFloat32ProductAlsoForInt8) {
  EXPECT_EQ(
      import_body(dense_model({})),
      "%0 = qnn.dense(%x, const(Tensor[(2, 3), int8], [1, 2, 3, 4, 5, 6]), 3, 0, 0.5f, 0.25f, units=2);\n"
      "%1 = nn.bias_add(%0, const(Tensor[(2), int32], [0, 0]));\n"
      "%2 = qnn.requantize(%1, 0.125f, 0, 0.25f, 5, multiplier=\"product_f32\");\n"
      "%2\n");
}

// Two to a byte, the first in the lower half.
TEST(TfliteFullyConnected, WeightsOfFourBitsHaveEight) {
  const std::string body = import_body(dense_model({.four_bits = true}));
  EXPECT_NE(body.find("const(Tensor[(2, 3), int8], [1, -8, 7, -1, 0, 3])"), std::string::npos) << body;
}

TEST(TfliteFullyConnected, PerChannelFormsItsMultipliersInDouble) {
  const std::string body =
      import_body(dense_model({.weight_scales = {0.25f, 0.5f}, .weight_zero_points = {0, 0}}));
  EXPECT_NE(body.find("qnn.requantize(%1, const(Tensor[(2), float32], [0.125, 0.25]), 0, 0.25f, 5, axis=1);"),
            std::string::npos)
      << body;
}

TEST(TfliteFullyConnected, Int8WeightsMayHaveAZeroPoint) {
  const std::string body = import_body(dense_model({.weight_zero_points = {-7}}));
  EXPECT_NE(body.find("3, -7, 0.5f, 0.25f"), std::string::npos) << body;
}

TEST(TfliteFullyConnected, WeightsThatTheNetworkComputesAreTheOtherOperandOfAProduct) {
  const std::string product =
      "%0 = qnn.batch_matmul(%x, %w, 0.5f, 3, 0.25f, 0, 0.25f, 5, transpose_b=True);\n%0\n";
  EXPECT_EQ(import_body(dense_model({.constant_weights = false})), product);
  EXPECT_EQ(import_body(dense_model({.constant_weights = false, .bias = {0, 0}})), product);
}

// w [3, 2], stored as its transpose, in the place of the weights of a layer.
TEST(TfliteFullyConnected, WeightsMayBeConstantsThatMoved) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {2, 3}, 0.5f, 3), y = b.activation("y", {2, 2}, 0.25f, 5);
  const int32_t stored = b.tensor({.name = "stored",
                                   .shape = {3, 2},
                                   .scales = {0.25f, 0.5f},
                                   .zero_points = {0, 0},
                                   .quantized_dimension = 1,
                                   .data = {1, 2, 3, 4, 5, 6}});
  const int32_t w = b.tensor({.name = "w", .shape = {2, 3}, .scales = {0.25f, 0.5f}, .zero_points = {0, 0}});
  b.op(tflite::BuiltinOperator_TRANSPOSE, {stored, b.ints("axes", {1, 0})}, {w});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, w, -1}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  const std::string body = import_body(b.finish({x}, {y}));
  EXPECT_NE(body.find("qnn.dense(%x, const(Tensor[(2, 3), int8], [1, 3, 5, 2, 4, 6]), 3, 0, 0.5f, "
                      "const(Tensor[(2), float32], [0.25, 0.5])"),
            std::string::npos)
      << body;
}

TEST(TfliteFullyConnected, FlattensItsInputUnlessDimensionsAreKept) {
  const std::string flat = import_body(dense_model({.input_shape = {1, 2, 1, 3}}));
  EXPECT_TRUE(flat.starts_with("%0 = reshape(%x, newshape=[2, 3]);\n%1 = qnn.dense(%0,")) << flat;
  const std::string kept =
      import_body(dense_model({.input_shape = {1, 2, 3}, .output_shape = {1, 2, 2}, .keep_num_dims = true}));
  EXPECT_TRUE(kept.starts_with("%0 = qnn.dense(%x,")) << kept;
  EXPECT_NE(kept.find("nn.bias_add(%0, const(Tensor[(2), int32], [0, 0]), axis=2)"), std::string::npos)
      << kept;
}

TEST(TfliteFullyConnected, Refusals) {
  const std::string list =
      "-49: tflite: 'net.tflite': 1 operator that qplan does not import: FULLY_CONNECTED with ";
  EXPECT_EQ(import_error(dense_model({.shuffled = true})), list + "shuffled weights ('y')");
  EXPECT_EQ(import_error(dense_model({.constant_weights = false, .bias = {0, 1}})),
            list + "weights that are not constant, and a bias ('y')");
  const std::string wide = import_error(dense_model({.type = tflite::TensorType_INT16}));
  EXPECT_TRUE(wide.ends_with("FULLY_CONNECTED with int16 tensors whose zero point is not 0 ('y')")) << wide;
  EXPECT_EQ(
      import_error(dense_model({.input_shape = {2, 2}})),
      "-48: tflite: 'net.tflite': operator 0 FULLY_CONNECTED 'y': the input has shape [2, 2], which does not "
      "fit weights of shape [2, 3]");
}

TEST(TfliteTransposeConv, TheOutputHasTheBatchOfTheInputAndTheChannelsOfTheWeights) {
  const auto model = [](const std::vector<int32_t>& shape, bool is_float) {
    TfliteBuilder b;
    const auto tensor = [&](const char* name, std::vector<int32_t> extents, std::vector<uint8_t> data = {}) {
      TensorSpec spec{.name = name, .shape = std::move(extents), .data = std::move(data)};
      if (is_float) {
        spec.type = tflite::TensorType_FLOAT32;
      } else {
        spec.scales = {0.5f};
        spec.zero_points = {0};
      }
      return b.tensor(spec);
    };
    const int32_t x = tensor("x", {2, 2, 2, 3});
    const int32_t w = tensor("w", {1, 2, 2, 3}, std::vector<uint8_t>(is_float ? 48 : 12));
    const int32_t y = tensor("y", {2, 4, 4, 1});
    b.op(tflite::BuiltinOperator_TRANSPOSE_CONV, {b.ints("shape", shape), w, x}, {y},
         tflite::BuiltinOptions_TransposeConvOptions,
         tflite::CreateTransposeConvOptions(b.fbb(), tflite::Padding_SAME, 2, 2).Union());
    return b.finish({x}, {y});
  };
  for (const bool is_float : {false, true}) {
    EXPECT_EQ(import_error(model({2, 4, 4, 1}, is_float)), "imported");
    EXPECT_EQ(import_error(model({7, 4, 4, 5}, is_float)),
              "-48: tflite: 'net.tflite': operator 0 TRANSPOSE_CONV 'y': the output's shape is given as "
              "[7, 4, 4, 5], but data and weights make [2, 4, 4, 1]");
    for (const std::vector<int32_t>& shape : {std::vector<int32_t>{7, 4, 4, 1}, {2, 4, 4, 5}})
      EXPECT_NE(import_error(model(shape, is_float)), "imported");
  }
}

}  // namespace
}  // namespace qplan::tflite_test::tflite_conv_test
