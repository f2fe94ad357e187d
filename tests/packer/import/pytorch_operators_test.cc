// The IR that each operator of a TorchScript archive becomes.
#include <gtest/gtest.h>

#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_operators_test {
namespace {

constexpr char kQuantize[] = "    q = torch.quantize_per_tensor(x, 0.5, 3, 13)\n";
constexpr char kQuantizeLine[] =
    "%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n";

// The lines after the quantise of `return <expression>`, where q is a quantised tensor of scale 0.5, zero
// point 3.
std::string of_quantized(const std::string& expression, const ir::Shape& shape = {1, 2, 4, 4}) {
  const std::string body = import_forward(kQuantize + ("    return " + expression + "\n"), shape);
  return body.starts_with(kQuantizeLine) ? body.substr(sizeof(kQuantizeLine) - 1) : body;
}

TEST(PytorchOperators, QuantizeMultipliesByTheReciprocal) {
  EXPECT_EQ(import_forward("    return torch.quantize_per_tensor(x, 0.5, 3, 13)\n"),
            std::string(kQuantizeLine) + "%0\n");
  EXPECT_EQ(import_forward("    return torch.quantize_per_tensor(x, 0.5, -3, 12)\n"),
            "%0 = qnn.quantize(%x, 0.5f, -3, contract=\"f32e\", rule=\"mul_even\");\n%0\n");
}

TEST(PytorchOperators, QuantizeToInt32IsUnsupported) {
  EXPECT_EQ(import_forward("    return torch.quantize_per_tensor(x, 0.5, 0, 14)\n"),
            "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::quantize_per_tensor with "
            "dtype 14 "
            "instead of quint8 (13) or qint8 (12) ('quantize_per_tensor')");
}

TEST(PytorchOperators, DequantizeOfFloatsIsNothing) {
  EXPECT_EQ(of_quantized("torch.dequantize(q)"),
            "%1 = qnn.dequantize(%0, 0.5f, 3, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(import_forward("    return torch.relu(torch.dequantize(x))\n"), "%0 = nn.relu(%x);\n%0\n");
}

// Bias / (input scale * weight scale): 1 / 0.25 and -2 / 0.125.
TEST(PytorchOperators, ConvolutionOfPackedParameters) {
  EXPECT_EQ(
      of_quantized("ops.quantized.conv2d(q, CONSTANTS.c0, 2., 7)"),
      "%1 = qnn.conv2d(%0, const(Tensor[(2, 2, 1, 1), int8], [1, 2, 3, 4]), 3, 0, 0.5f, const(Tensor[(2), "
      "float32], [0.5, 0.25]));\n"
      "%2 = nn.bias_add(%1, const(Tensor[(2), int32], [4, -16]));\n"
      "%3 = qnn.requantize(%2, const(Tensor[(2), float32], [0.25, 0.125]), 0, 2f, 7, axis=1, "
      "out_dtype=\"uint8\", contract=\"f32e\");\n%3\n");
}

// 1 / (2^-31 * 0.5) is 2^32: the passes see whether another scale would do.
TEST(PytorchOperators, AConvolutionWhoseBiasInt32DoesNotHoldStaysFloat) {
  std::string log;
  const std::string body =
      import_text(ArchiveBuilder("    q = torch.quantize_per_tensor(x, 4.656612873077393e-10, 3, 13)\n"
                                 "    return ops.quantized.conv2d_relu(q, CONSTANTS.c0, 2., 7)\n")
                      .build(),
                  with_input({1, 2, 4, 4}), &log);
  EXPECT_EQ(
      body.substr(body.find("%1")),
      "%1 = qnn.dequantize(%0, 4.656613e-10f, 3, contract=\"f32e\");\n"
      "%2 = qnn.dequantize(const(Tensor[(2, 2, 1, 1), int8], [1, 2, 3, 4]), const(Tensor[(2), float32], "
      "[0.5, 0.25]), 0, axis=0, contract=\"f32e\");\n"
      "%3 = nn.conv2d(%1, %2);\n"
      "%4 = nn.bias_add(%3, const(Tensor[(2), float32], [1, -2]));\n"
      "%5 = qnn.quantize(%4, 2f, 7, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n"
      "%6 = clip(%5, a_min=7f, a_max=255f);\n%6\n");
  EXPECT_EQ(log,
            "pytorch: 'net.pt': int32 might not hold the sums of 1 layer, biases included: imported as float "
            "operators between quantise nodes\n");
}

TEST(PytorchOperators, ConvolutionsWindowComesFromItsConfiguration) {
  ArchiveBuilder builder(std::string(kQuantize) +
                         "    return ops.quantized.conv2d(q, CONSTANTS.c0, 2., 7)\n");
  builder.conv_config = {2, 2, 1, 1, 0, 1, 1, 0, 0, 1, 0};
  EXPECT_NE(
      import_text(builder.build(), with_input({1, 2, 4, 4})).find("strides=[2, 1], padding=[1, 0, 1, 0]"),
      std::string::npos);
}

TEST(PytorchOperators, TransposedConvolutionIsUnsupported) {
  ArchiveBuilder builder(std::string(kQuantize) +
                         "    return ops.quantized.conv2d(q, CONSTANTS.c0, 2., 7)\n");
  builder.conv_config.back() = 1;
  EXPECT_EQ(
      import_text(builder.build(), with_input({1, 2, 4, 4})),
      "-49: pytorch: 'net.pt': 1 operator that qplan does not import: quantized::conv2d with a transposed "
      "convolution ('conv2d')");
}

TEST(PytorchOperators, ReluIsAClampAtTheZeroPoint) {
  EXPECT_NE(of_quantized("ops.quantized.conv2d_relu(q, CONSTANTS.c0, 2., 7)")
                .find("%4 = clip(%3, a_min=7f, a_max=255f);\n%4\n"),
            std::string::npos);
  EXPECT_EQ(of_quantized("ops.quantized.conv2d_relu(q, CONSTANTS.c0, 2., 0)").find("clip"),
            std::string::npos);
  EXPECT_EQ(of_quantized("torch.relu(q)"), "%1 = clip(%0, a_min=3f, a_max=255f);\n%1\n");
}

TEST(PytorchOperators, LinearWithoutBias) {
  EXPECT_EQ(
      of_quantized("ops.quantized.linear(q, CONSTANTS.c1, 2., 7)", {1, 4}),
      "%1 = qnn.dense(%0, const(Tensor[(3, 4), int8], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), 3, 0, 0.5f, "
      "0.5f);\n"
      "%2 = nn.bias_add(%1, const(Tensor[(3), int32], [0, 0, 0]));\n"
      "%3 = qnn.requantize(%2, 0.25f, 0, 2f, 7, out_dtype=\"uint8\", contract=\"f32e\");\n%3\n");
}

// 6 * (1 / 0.5) + 3; 0.25 / 0.5 = 0.5 is half way and goes to the even 0.
TEST(PytorchOperators, ClampsAreInQuantisedUnits) {
  EXPECT_EQ(of_quantized("torch.hardtanh(q, 0., 6.)"), "%1 = clip(%0, a_min=3f, a_max=15f);\n%1\n");
  EXPECT_EQ(of_quantized("torch.hardtanh(q)"), "%1 = clip(%0, a_min=1f, a_max=5f);\n%1\n");
  EXPECT_EQ(of_quantized("torch.clamp(q, 0.25, None)"), "%1 = clip(%0, a_min=3f, a_max=255f);\n%1\n");
  EXPECT_EQ(of_quantized("torch.clamp(q, -100., 1000.)"), "%0\n");
}

// An absent bound lets infinity pass.
TEST(PytorchOperators, ClampsWithOneBoundAreInfiniteOnTheOtherSide) {
  EXPECT_EQ(import_forward("    return torch.clamp_min(x, 0.5)\n"),
            "%0 = clip(%x, a_min=0.5f, a_max=inff);\n%0\n");
  EXPECT_EQ(import_forward("    return torch.clamp(x, None, 0.5)\n"),
            "%0 = clip(%x, a_min=-inff, a_max=0.5f);\n%0\n");
  EXPECT_EQ(import_forward("    return torch.clamp(x, -1e300, 0.5)\n"),
            "%0 = clip(%x, a_min=-3.4028235e+38f, a_max=0.5f);\n%0\n");
}

TEST(PytorchOperators, SumsAndProducts) {
  EXPECT_EQ(of_quantized("ops.quantized.add(q, q, 0.25, 9)"),
            "%1 = qnn.add(%0, %0, 0.5f, 3, 0.5f, 3, 0.25f, 9, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(of_quantized("ops.quantized.mul_relu(q, q, 0.25, 9)"),
            "%1 = qnn.mul(%0, %0, 0.5f, 3, 0.5f, 3, 0.25f, 9, contract=\"f32e\");\n"
            "%2 = clip(%1, a_min=9f, a_max=255f);\n%2\n");
  EXPECT_EQ(import_forward("    return torch.mul(torch.add(x, x), 2.)\n"),
            "%0 = add(%x, %x);\n%1 = multiply(%0, 2f);\n%1\n");
}

// An operator with a ReLU clamps at the output's zero point.
TEST(PytorchOperators, FusedRelusClampWhatTheyFollow) {
  EXPECT_EQ(of_quantized("ops.quantized.add_relu(q, q, 0.25, 9)"),
            "%1 = qnn.add(%0, %0, 0.5f, 3, 0.5f, 3, 0.25f, 9, contract=\"f32e\");\n"
            "%2 = clip(%1, a_min=9f, a_max=255f);\n%2\n");
  EXPECT_EQ(of_quantized("ops.quantized.cat_relu([q, q], 1, 0.5, 3)"),
            "%1 = concatenate((%0, %0), axis=1);\n%2 = clip(%1, a_min=3f, a_max=255f);\n%2\n");
  EXPECT_EQ(
      of_quantized("ops.quantized.linear_relu(q, CONSTANTS.c1, 2., 7)", {1, 4}),
      "%1 = qnn.dense(%0, const(Tensor[(3, 4), int8], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), 3, 0, 0.5f, "
      "0.5f);\n"
      "%2 = nn.bias_add(%1, const(Tensor[(3), int32], [0, 0, 0]));\n"
      "%3 = qnn.requantize(%2, 0.25f, 0, 2f, 7, out_dtype=\"uint8\", contract=\"f32e\");\n"
      "%4 = clip(%3, a_min=7f, a_max=255f);\n%4\n");
  EXPECT_EQ(import_forward("    return torch.hardsigmoid(x)\n"),
            "%0 = hard_sigmoid(%x, alpha=0.16666666666666666f64);\n%0\n");
}

TEST(PytorchOperators, ConcatenationRescalesWhatHasAnotherScale) {
  EXPECT_EQ(of_quantized("ops.quantized.cat([q, torch.relu(q)], 1, 0.5, 3)"),
            "%1 = clip(%0, a_min=3f, a_max=255f);\n%2 = concatenate((%0, %1), axis=1);\n%2\n");
  EXPECT_EQ(of_quantized("ops.quantized.cat([q], -3, 0.25, 1)"),
            "%1 = qnn.requantize(%0, 0.5f, 3, 0.25f, 1, out_dtype=\"uint8\", contract=\"f32e\");\n"
            "%2 = concatenate((%1,), axis=1);\n%2\n");
}

TEST(PytorchOperators, PoolsKeepTheQuantisation) {
  EXPECT_EQ(of_quantized("torch.max_pool2d(q, [2, 2], [2, 2], [0, 0])"),
            "%1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);\n%1\n");
  EXPECT_EQ(
      of_quantized("torch.avg_pool2d(q, [2], [], [1])"),
      "%1 = qnn.avg_pool2d(%0, 0.5f, 3, 0.5f, 3, pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 1, 1], "
      "count_include_pad=True, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(of_quantized("torch.adaptive_avg_pool2d(q, [2, 1])"),
            "%1 = qnn.avg_pool2d(%0, 0.5f, 3, 0.5f, 3, pool_size=[2, 4], strides=[2, 4], "
            "contract=\"f32e\");\n%1\n");
  EXPECT_EQ(of_quantized("torch.mean(q, [-1, 2], True)"),
            "%1 = qnn.mean(%0, 0.5f, 3, 0.5f, 3, axis=[2, 3], keepdims=True, contract=\"f32e\");\n%1\n");
}

// 4 elements, windows of 3, strides of 2: the last window reaches beyond the data by one element, or by two
// with a padding of one.
TEST(PytorchOperators, CeilModePadsAfterTheData) {
  EXPECT_EQ(of_quantized("torch.max_pool2d(q, [3], [2], [0], [1], True)"),
            "%1 = nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 1, 1]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.avg_pool2d(q, [3], [2], [1], True, False)"),
            "%1 = qnn.avg_pool2d(%0, 0.5f, 3, 0.5f, 3, pool_size=[3, 3], strides=[2, 2], "
            "padding=[1, 1, 2, 2], contract=\"f32e\");\n%1\n");
  // What the file calls padding is counted, what ceil_mode adds is not.
  EXPECT_EQ(of_quantized("torch.avg_pool2d(q, [3], [2], [1], True, True)"),
            "%1 = nn.pad(%0, 3, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n"
            "%2 = qnn.avg_pool2d(%1, 0.5f, 3, 0.5f, 3, pool_size=[3, 3], strides=[2, 2], "
            "padding=[0, 0, 1, 1], contract=\"f32e\");\n%2\n");
  EXPECT_EQ(import_forward("    return torch.avg_pool2d(x, [3], [2], [0], True, True)\n"),
            "%0 = nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[0, 0, 1, 1]);\n%0\n");
}

TEST(PytorchOperators, PartsKeepTheQuantisation) {
  EXPECT_EQ(of_quantized("torch.cat(torch.chunk(q, 2, 1), 1)"),
            "%1 = split(%0, indices_or_sections=2, axis=1);\n%2 = concatenate((%1.0, %1.1), axis=1);\n%2\n");
  // Parts of three, the last one of one element; and one part.
  EXPECT_EQ(of_quantized("torch.cat(torch.split(q, 3, -1), 3)"),
            "%1 = split(%0, indices_or_sections=[3], axis=3);\n"
            "%2 = concatenate((%1.0, %1.1), axis=3);\n%2\n");
  EXPECT_EQ(of_quantized("torch.cat(torch.split(q, 9, 1), 1)"), "%1 = concatenate((%0,), axis=1);\n%1\n");
  EXPECT_EQ(of_quantized("torch.cat(torch.split_with_sizes(q, [1, 2, 1], 2), 2)"),
            "%1 = split(%0, indices_or_sections=[1, 3], axis=2);\n"
            "%2 = concatenate((%1.0, %1.1, %1.2), axis=2);\n%2\n");
  EXPECT_EQ(of_quantized("torch.slice(q, 2, 1, 9223372036854775807, 2)"),
            "%1 = strided_slice(%0, begin=[1], end=[4], strides=[2], axes=[2]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.slice(q, -1, -9, -1)"),
            "%1 = strided_slice(%0, begin=[0], end=[3], strides=[1], axes=[3]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.slice(q, 1, 0, 9223372036854775807)"), "%0\n");
  EXPECT_EQ(of_quantized("torch.narrow(q, 3, -3, 2)"),
            "%1 = strided_slice(%0, begin=[1], end=[3], strides=[1], axes=[3]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.select(q, 1, -1)"),
            "%1 = strided_slice(%0, begin=[1], end=[2], strides=[1], axes=[1]);\n"
            "%2 = reshape(%1, newshape=[1, 4, 4]);\n%2\n");
}

TEST(PytorchOperators, WrongPartsAreRefused) {
  const auto expect = [](const char* call, const char* reason) {
    EXPECT_NE(of_quantized(call).find(reason), std::string::npos) << of_quantized(call);
  };
  expect("torch.cat(torch.chunk(q, 0, 1), 1)", "there are 0 chunks, expected at least 1");
  expect("torch.cat(torch.split(q, 0, 1), 1)", "a part has 0 elements, expected at least 1");
  expect("torch.cat(torch.split_with_sizes(q, [1, 2], 2), 2)", "sizes [1, 2] do not make 4");
  expect("torch.cat(torch.split_with_sizes(q, [9223372036854775807, 4], 2), 2)", "do not make 4");
  expect("torch.cat(torch.split_with_sizes(q, [0, 4], 2), 2)", "a part without elements");
  expect("torch.slice(q, 2, 3, 3)", "a part without elements");
  expect("torch.slice(q, 2, 0, 3, 0)", "the step is 0, expected at least 1");
  expect("torch.narrow(q, 3, 2, 3)", "elements 2 to 2 + 3 of an axis of 4");
  expect("torch.select(q, 1, 2)", "position 2 of an axis of 2");
}

// 4 rows as 8, each twice; 4 columns as 3, of which the last is floor(2 * 4 / 3).
TEST(PytorchOperators, NearestUpsamplingRepeatsElements) {
  EXPECT_EQ(of_quantized("torch.upsample_nearest2d(q, None, [2., 1.])"),
            "%1 = take(%0, const(Tensor[(8), int64], [0, 0, 1, 1, 2, 2, 3, 3]), axis=2);\n%1\n");
  EXPECT_EQ(of_quantized("torch.upsample_nearest2d(q, [4, 3], None)"),
            "%1 = take(%0, const(Tensor[(3), int64], [0, 1, 2]), axis=3);\n%1\n");
  EXPECT_NE(of_quantized("torch.upsample_nearest2d(q, None, None)").find("neither a size nor a factor"),
            std::string::npos);
  EXPECT_NE(of_quantized("torch.upsample_nearest2d(q, [0, 3], None)").find("the size is 0, expected 1 to"),
            std::string::npos);
}

// PyTorch 1.13: floor(o * float32(1 / factor)), also where the factor leaves an extent as it is; quantised
// tensors that keep both extents are copied.
TEST(PytorchOperators, NearestUpsamplingMovesElementsWithinAnExtentThatStays) {
  const std::string within = "const(Tensor[(4), int64], [0, 0, 1, 2])";
  EXPECT_EQ(import_forward("    return torch.upsample_nearest2d(x, None, [1.2, 1.2])\n"),
            "%0 = take(%x, " + within + ", axis=2);\n%1 = take(%0, " + within + ", axis=3);\n%1\n");
  EXPECT_EQ(of_quantized("torch.relu(torch.upsample_nearest2d(q, None, [1.2, 1.2]))"),
            "%1 = clip(%0, a_min=3f, a_max=255f);\n%1\n");
  EXPECT_EQ(of_quantized("torch.upsample_nearest2d(q, None, [1.25, 1.2])"),
            "%1 = take(%0, const(Tensor[(5), int64], [0, 0, 1, 2, 3]), axis=2);\n"
            "%2 = take(%1, " +
                within + ", axis=3);\n%2\n");
}

TEST(PytorchOperators, AdaptivePoolWithWindowsOfTwoSizesIsUnsupported) {
  EXPECT_NE(
      of_quantized("torch.adaptive_avg_pool2d(q, [3, 3])").find("output extent 3 of 4, windows of two sizes"),
      std::string::npos);
}

TEST(PytorchOperators, Movement) {
  EXPECT_EQ(of_quantized("torch.flatten(q, 1)"), "%1 = reshape(%0, newshape=[1, 32]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.view(q, [torch.size(q, 0), -1])"),
            "%1 = reshape(%0, newshape=[1, -1]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.permute(q, [0, 2, -1, 1])"), "%1 = transpose(%0, axes=[0, 2, 3, 1]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.transpose(q, 1, -1)"), "%1 = transpose(%0, axes=[0, 3, 2, 1]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.squeeze(q, 0)"), "%1 = reshape(%0, newshape=[2, 4, 4]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.unsqueeze(q, -1)"), "%1 = reshape(%0, newshape=[1, 2, 4, 4, 1]);\n%1\n");
  EXPECT_EQ(of_quantized("torch.dropout(torch.contiguous(q), 0.5, False)"), "%0\n");
}

TEST(PytorchOperators, PadsStandInPairsFromTheLastAxis) {
  EXPECT_EQ(import_forward("    return torch.pad(x, [0, 1, 2, 3], \"constant\", 0.)\n"),
            "%0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 3], [0, 1]]);\n%0\n");
  EXPECT_EQ(of_quantized("torch.constant_pad_nd(q, [1, 1], 2)"),
            "%1 = nn.pad(%0, 7, pad_width=[[0, 0], [0, 0], [0, 0], [1, 1]]);\n%1\n");
  EXPECT_NE(
      import_forward("    return torch.pad(x, [1, 1], \"reflect\")\n").find("aten::pad with mode 'reflect'"),
      std::string::npos);
}

TEST(PytorchOperators, FunctionsOfQuantisedTensors) {
  EXPECT_EQ(of_quantized("torch.sigmoid(q)"),
            "%1 = qnn.sigmoid(%0, 0.5f, 3, 0.00390625f, 0, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(
      of_quantized("ops.quantized.hardswish(q, 0.25, 1)"),
      "%1 = qnn.dequantize(%0, 0.5f, 3, contract=\"f32e\");\n"
      "%2 = hard_sigmoid(%1, alpha=0.16666666666666666f64);\n"
      "%3 = multiply(%1, %2);\n"
      "%4 = qnn.quantize(%3, 0.25f, 1, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n%4\n");
  EXPECT_EQ(of_quantized("ops.quantized.softmax(q, -1, 0.00390625, 0)"),
            "%1 = qnn.softmax(%0, 0.5f, 3, 0.00390625f, 0, axis=3, contract=\"f32e\");\n%1\n");
  EXPECT_EQ(import_forward("    return torch.softmax(x, 1)\n"), "%0 = nn.softmax(%x, axis=1);\n%0\n");
}

TEST(PytorchOperators, EverythingThatIsNotImportedIsListed) {
  EXPECT_EQ(import_forward("    a = torch.cumsum(x, 1)\n    b = torch.relu(torch.cumsum(a, 1))\n"
                           "    return torch.add(b, torch.fft(x), alpha=2)\n"),
            "-49: pytorch: 'net.pt': 3 operators that qplan does not import:\n"
            "  2 x aten::cumsum (first 'a')\n"
            "  1 x aten::fft ('fft')");
}

TEST(PytorchOperators, ErrorsNameTheOperatorAndTheVariable) {
  EXPECT_EQ(import_forward("    y = torch.quantize_per_tensor(x, 0., 3, 13)\n    return y\n"),
            "-48: pytorch: 'net.pt': aten::quantize_per_tensor 'y': the scale is 0, expected a positive "
            "finite number");
  EXPECT_EQ(of_quantized("torch.flatten(q, 5)"),
            "-48: pytorch: 'net.pt': aten::flatten 'flatten': axis 5 is out of range for rank 4");
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_operators_test
