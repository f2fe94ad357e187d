// Layers and pools of sequences, and operators that are computed on the integers of quantised tensors: the IR
// of each. tests/python/torch_operators_test.py compares what they compute with PyTorch.
#include <gtest/gtest.h>

#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_sequences_test {
namespace {

constexpr char kQuantize[] = "    q = torch.quantize_per_tensor(x, 0.5, 3, 13)\n";

// The lines after the quantise.
std::string of_quantized(const std::string& expression, const ir::Shape& shape = {1, 2, 4, 4}) {
  const std::string body = import_forward(kQuantize + ("    return " + expression + "\n"), shape);
  return body.starts_with("%0 = ") ? body.substr(body.find('\n') + 1) : body;
}
std::string of(const std::string& expression, const ir::Shape& shape) {
  return import_forward("    return " + expression + "\n", shape);
}

TEST(PytorchSequences, PoolsHaveAHeightOfOne) {
  EXPECT_EQ(of("torch.max_pool1d(x, [2])", {1, 2, 4}),
            "%0 = reshape(%x, newshape=[1, 2, 1, 4]);\n%1 = nn.max_pool2d(%0, pool_size=[1, 2], strides=[1, "
            "2]);\n%2 = reshape(%1, newshape=[1, 2, 2]);\n%2\n");
  EXPECT_EQ(
      of("torch.avg_pool1d(x, [3], [2], [1])", {1, 2, 4}),
      "%0 = reshape(%x, newshape=[1, 2, 1, 4]);\n%1 = nn.avg_pool2d(%0, pool_size=[1, 3], strides=[1, 2], "
      "padding=[0, 1, 0, 1], count_include_pad=True);\n%2 = reshape(%1, newshape=[1, 2, 2]);\n%2\n");
  EXPECT_EQ(
      of_quantized("torch.adaptive_avg_pool1d(q, [2])", {1, 2, 4}),
      "%1 = reshape(%0, newshape=[1, 2, 1, 4]);\n%2 = qnn.avg_pool2d(%1, 0.5f, 3, 0.5f, 3, pool_size=[1, 2], "
      "strides=[1, 2], contract=\"f32e\");\n%3 = reshape(%2, newshape=[1, 2, 2]);\n%3\n");
}

TEST(PytorchSequences, PoolsOfDataWithoutABatch) {
  EXPECT_EQ(of("torch.max_pool2d(x, [2, 2], [2, 2])", {2, 4, 4}),
            "%0 = reshape(%x, newshape=[1, 2, 4, 4]);\n%1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, "
            "2]);\n%2 = reshape(%1, newshape=[2, 2, 2]);\n%2\n");
  EXPECT_EQ(of("torch.max_pool1d(x, [2])", {2, 4}),
            "%0 = reshape(%x, newshape=[1, 2, 1, 4]);\n%1 = nn.max_pool2d(%0, pool_size=[1, 2], strides=[1, "
            "2]);\n%2 = reshape(%1, newshape=[2, 2]);\n%2\n");
  EXPECT_EQ(of("torch.max_pool1d(x, [2])", {1, 2, 4, 4}),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::max_pool1d with a tensor "
            "of rank 4 ('max_pool1d')");
  EXPECT_EQ(of("torch.max_pool1d(x, [2, 2])", {1, 2, 4}),
            "-48: pytorch: 'net.pt': aten::max_pool1d 'max_pool1d': argument 1 has 2 items, expected 1");
}

TEST(PytorchSequences, PaddingOfConvolutionsByName) {
  EXPECT_EQ(of("torch._convolution_mode(x, torch.full([1, 2, 4], 0.5, dtype=6), None, [1], \"same\", [1], 1)",
               {1, 2, 4}),
            "%0 = reshape(%x, newshape=[1, 2, 1, 4]);\n%1 = reshape(const(Tensor[(1, 2, 4), float32], [0.5, "
            "0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]), newshape=[1, 2, 1, 4]);\n%2 = nn.conv2d(%0, %1, "
            "padding=[0, 1, 0, 2]);\n%3 = reshape(%2, newshape=[1, 1, 4]);\n%3\n");
  EXPECT_EQ(of("torch._convolution_mode(x, torch.full([1, 2, 2, 2], 0.5, dtype=6), None, [1, 1], \"valid\", "
               "[1, 1], 1)",
               {1, 2, 4, 4}),
            "%0 = nn.conv2d(%x, const(Tensor[(1, 2, 2, 2), float32], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, "
            "0.5]));\n%0\n");
}

// c0 as it is, and made by the prepack operator, which gives the weights a height.
TEST(PytorchSequences, ConvolutionsOfPackedParameters) {
  EXPECT_EQ(of_quantized("ops.quantized.conv1d(q, CONSTANTS.c0, 2., 7)", {1, 2, 4}),
            "%1 = reshape(%0, newshape=[1, 2, 1, 4]);\n%2 = qnn.conv2d(%1, const(Tensor[(2, 2, 1, 1), int8], "
            "[1, 2, 3, 4]), 3, 0, 0.5f, const(Tensor[(2), float32], [0.5, 0.25]));\n%3 = nn.bias_add(%2, "
            "const(Tensor[(2), int32], [4, -16]));\n%4 = qnn.requantize(%3, const(Tensor[(2), float32], "
            "[0.25, 0.125]), 0, 2f, 7, axis=1, out_dtype=\"uint8\", contract=\"f32e\");\n%5 = reshape(%4, "
            "newshape=[1, 2, 4]);\n%5\n");
  EXPECT_NE(of_quantized("ops.quantized.conv1d_relu(q, CONSTANTS.c0, 2., 7)", {1, 2, 4}).find("a_min=7f"),
            std::string::npos);
}

// A module with the attribute w: these two numbers, or int8 weights of a convolution [1, 2, 2] of scale 0.5.
std::string of_attribute(const std::string& expression, const ir::Shape& shape, bool is_weight = false) {
  ArchiveBuilder builder(std::string(kQuantize) + "    w = self.w\n    return " + expression + "\n");
  PickleWriter module;
  module.global("__torch__", "Net").raw(")\x81}(").text("w");
  if (is_weight) {
    module.begin_quantized("0", 4, {1, 2, 2}, {4, 2, 1}).global("torch", "per_tensor_affine");
    module.number(0.5).integer(0).end_quantized();
    builder.storage("data/0", bytes_of<int8_t>({1, 2, 3, 4}));
  } else {
    module.tensor("FloatStorage", "0", 2, 0, {2}, {1});
    builder.storage("data/0", bytes_of<float>({0.75f, 2.0f}));
  }
  const std::string body = import_text(builder.module(module.raw("ub")).build(), with_input(shape));
  return body.starts_with("%0 = ") ? body.substr(body.find('\n') + 1) : body;
}

TEST(PytorchSequences, WeightsThatAreNotPackedGetAHeight) {
  EXPECT_EQ(
      of_attribute("ops.quantized.conv1d(q, ops.quantized.conv1d_prepack(w, None, [2], [1], [3], 1), 2., 7)",
                   {1, 2, 6}, true),
      "%1 = reshape(%0, newshape=[1, 2, 1, 6]);\n%2 = qnn.conv2d(%1, const(Tensor[(1, 2, 1, 2), int8], [1, "
      "2, 3, 4]), 3, 0, 0.5f, 0.5f, strides=[1, 2], padding=[0, 1, 0, 1], dilation=[1, 3]);\n%3 = "
      "nn.bias_add(%2, const(Tensor[(1), int32], [0]));\n%4 = qnn.requantize(%3, 0.25f, 0, 2f, 7, "
      "out_dtype=\"uint8\", contract=\"f32e\");\n%5 = reshape(%4, newshape=[1, 1, 3]);\n%5\n");
  EXPECT_EQ(of_attribute("ops.quantized.conv1d_prepack(w, None, [2], [1], [3], 1)", {1, 2, 6}),
            "-48: pytorch: 'net.pt': quantized::conv1d_prepack 'conv1d_prepack': the weights are no tensor "
            "of rank 3");
}

// The channel with 0.75: 1 / sqrt(0.75 + 0.25) = 1, so that the factor is 0.75 * 0.5 / 0.25 = 1.5 and the
// offset (0.75 - 0.75 * 0.75) / 0.25 = 0.75. The other one: 2 / 1.5 * 0.5 / 0.25 and (2 - 2 * 2 / 1.5) /
// 0.25.
TEST(PytorchIntegers, BatchNormalisationHasAFactorAndAnOffsetForEachChannel) {
  const std::string text =
      of_attribute("ops.quantized.batch_norm2d(q, w, w, w, w, 0.25, 0.25, 7)", {1, 2, 4, 4});
  EXPECT_EQ(text,
            "%1 = qnn.dequantize(%0, 1f, 3, contract=\"f32e\");\n%2 = multiply(%1, const(Tensor[(1, 2, 1, "
            "1), float32], [1.5, 2.6666667]));\n%3 = add(%2, const(Tensor[(1, 2, 1, 1), float32], [0.75, "
            "-2.666667]));\n%4 = qnn.quantize(%3, 1f, 7, out_dtype=\"uint8\", contract=\"f32e\", "
            "rule=\"mul_even\");\n%4\n");
  EXPECT_EQ(of_attribute("ops.quantized.batch_norm(q, w, w, w, w, 0.25, 0.25, 7)", {1, 2, 4, 4}), text);
  EXPECT_EQ(of_attribute("ops.quantized.batch_norm1d(q, w, w, w, w, 0.25, 0.25, 7)", {1, 2, 4}),
            "%1 = qnn.dequantize(%0, 1f, 3, contract=\"f32e\");\n%2 = multiply(%1, const(Tensor[(1, 2, 1), "
            "float32], [1.5, 2.6666667]));\n%3 = add(%2, const(Tensor[(1, 2, 1), float32], [0.75, "
            "-2.666667]));\n%4 = qnn.quantize(%3, 1f, 7, out_dtype=\"uint8\", contract=\"f32e\", "
            "rule=\"mul_even\");\n%4\n");
  for (const char* name : {"batch_norm_relu", "batch_norm1d_relu", "batch_norm2d_relu"}) {
    EXPECT_NE(of_attribute(cat("ops.quantized.", name, "(q, w, w, w, w, 0.25, 0.25, 7)"), {1, 2, 4, 4})
                  .find("clip(%4, a_min=7f, a_max=255f)"),
              std::string::npos)
        << name;
  }
  EXPECT_EQ(of_attribute("ops.quantized.batch_norm2d(q, w, w, w, w, 0.25, 0.25, 7)", {1, 3, 4, 4}),
            "-48: pytorch: 'net.pt': quantized::batch_norm2d 'batch_norm2d': the weight has 2 values of 3 "
            "channels");
}

TEST(PytorchIntegers, SumsWithANumberMoveTheZeroPoint) {
  // 1.25 / 0.5 = 2.5 is half way and goes to the even 2.
  EXPECT_EQ(of_quantized("torch.dequantize(ops.quantized.add_scalar(q, 1.25))"),
            "%1 = qnn.dequantize(%0, 0.5f, 1, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(of_quantized("torch.dequantize(ops.quantized.add(q, -2))"),
            "%1 = qnn.dequantize(%0, 0.5f, 7, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(of_quantized("ops.quantized.add_scalar_relu(q, -2)"),
            "%1 = clip(%0, a_min=7f, a_max=255f);\n%1\n");
}

// 3 - 10 is outside of uint8: the zero point becomes 0, the scale grows by (255 + 7) / 255.
TEST(PytorchIntegers, SumsBeyondTheRangeHaveAnotherScale) {
  const std::string text = of_quantized("torch.dequantize(ops.quantized.add_relu(q, 5))");
  EXPECT_NE(text.find("qnn.lookup"), std::string::npos) << text;
  EXPECT_EQ(text,
            "%1 = qnn.lookup(%0, meta[relay.Constant][0]);\n%2 = qnn.dequantize(%1, 0.5137255f, 0, "
            "contract=\"f32e\");\n%2\n");
  EXPECT_EQ(of_quantized("ops.quantized.add_scalar(q, 1e30)"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: quantized::add_scalar with a "
            "number of more than 2^30 steps ('add_scalar')");
}

TEST(PytorchIntegers, ProductsWithANumberHaveAnotherScale) {
  EXPECT_EQ(of_quantized("torch.dequantize(ops.quantized.mul_scalar(q, 2.5))"),
            "%1 = qnn.dequantize(%0, 1.25f, 3, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(
      of_quantized("torch.dequantize(ops.quantized.mul_relu(q, 2.5))"),
      "%1 = clip(%0, a_min=3f, a_max=255f);\n%2 = qnn.dequantize(%1, 1.25f, 3, contract=\"f32e\");\n%2\n");
  EXPECT_EQ(of_quantized("torch.dequantize(ops.quantized.mul_scalar(q, -2.5))"),
            "%1 = qnn.lookup(%0, meta[relay.Constant][0]);\n%2 = qnn.dequantize(%1, 1.25f, 252, "
            "contract=\"f32e\");\n%2\n");
  EXPECT_EQ(of_quantized("torch.dequantize(ops.quantized.mul_scalar_relu(q, 0))"),
            "%1 = qnn.lookup(%0, meta[relay.Constant][0]);\n%2 = qnn.dequantize(%1, 1f, 0, "
            "contract=\"f32e\");\n%2\n");
}

TEST(PytorchIntegers, InterpolationOfOnePixelIsUnsupported) {
  EXPECT_NE(of_quantized("torch.upsample_bilinear2d(q, [2, 2], False)", {1, 2, 1, 1}).find("of one pixel"),
            std::string::npos);
  EXPECT_EQ(of_quantized("torch.upsample_bilinear2d(q, [2, 2], False)", {1, 1, 1, 1}).find("of one pixel"),
            std::string::npos);
}

TEST(PytorchIntegers, InterpolationOfEighthsIsExact) {
  EXPECT_EQ(of_quantized("torch.upsample_bilinear2d(q, [8, 2], False)"),
            "%1 = qnn.dequantize(%0, 1f, 3, contract=\"f32e\");\n%2 = image.resize2d(%1, size=[8, 2]);\n%3 = "
            "qnn.quantize(%2, 1f, 3, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n%3\n");
  EXPECT_EQ(of_quantized("torch.upsample_bilinear2d(q, [7, 7], True)"),
            "%1 = qnn.dequantize(%0, 1f, 3, contract=\"f32e\");\n%2 = image.resize2d(%1, size=[7, 7], "
            "coordinate_transformation_mode=\"align_corners\");\n%3 = qnn.quantize(%2, 1f, 3, "
            "out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n%3\n");
  EXPECT_EQ(of_quantized("torch.upsample_bilinear2d(q, [4, 4], False)"), "%0\n");
  EXPECT_EQ(of_quantized("torch.upsample_bilinear2d(q, [4, 6], False)"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::upsample_bilinear2d with a "
            "quantised tensor from 4 to 6 elements, where kernels of PyTorch round halves one way or the "
            "other (a factor of 2, 4 or 8 without align_corners has no such; or interpolate after "
            "dequantize) ('upsample_bilinear2d')");
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_sequences_test
