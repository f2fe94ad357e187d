#include "tests/packer/passes/rewrite_test_support.h"

namespace qplan::passes_test::simplify_test {
namespace {

std::string simplify(const std::string& params, const std::string& body) {
  return run_pass("simplify", params, body);
}

const std::string kX = "%x: Tensor[(1, 2, 4, 4), float32]";

TEST(Simplify, SqueezesAreReshapes) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 8, 1, 1), float32]", "  squeeze(%x, axis=[2, 3])\n"),
            "%0 = reshape(%x, newshape=[1, 8]);\n%0\n");
  EXPECT_EQ(simplify("%x: Tensor[(8), int8]", "  expand_dims(%x, axis=0, num_newaxis=2)\n"),
            "%0 = reshape(%x, newshape=[1, 1, 8]);\n%0\n");
  EXPECT_EQ(simplify(kX, "  nn.batch_flatten(%x)\n"), "%0 = reshape(%x, newshape=[1, 32]);\n%0\n");
}

TEST(Simplify, PositionsOfAnyShapeAreAList) {
  EXPECT_EQ(simplify("%x: Tensor[(2, 3), int8]",
                     "  take(%x, const(Tensor[(2, 2), int32], [0, 1, 2, 0]), axis=1)\n"),
            "%0 = reshape(const(Tensor[(2, 2), int32], [0, 1, 2, 0]), newshape=[4]);\n"
            "%1 = take(%x, %0, axis=1, mode=\"fast\");\n%2 = reshape(%1, newshape=[2, 2, 2]);\n%2\n");
  EXPECT_EQ(simplify("%x: Tensor[(2, 3), int8]", "  take(%x, const(Tensor[(2), int32], [0, 1]), axis=1)\n"),
            "unchanged");
}

TEST(Simplify, ASliceOfEverythingIsNothing) {
  const std::string x = "%x: Tensor[(2, 3), float32]";
  EXPECT_EQ(simplify(x, "  %0 = sigmoid(%x);\n  strided_slice(%0, begin=[0], end=[9])\n"),
            "%0 = sigmoid(%x);\n%0\n");
  EXPECT_EQ(simplify(x, "  strided_slice(%x, begin=[-1], end=[-9], strides=[-1])\n"), "unchanged");
  EXPECT_EQ(simplify(x, "  strided_slice(%x, begin=[0], end=[1])\n"), "unchanged");
}

TEST(Simplify, AResizeToTheSameSizeOfIntegersIsNothing) {
  const std::string x = "%x: Tensor[(1, 3, 5, 2), uint8]";
  for (const char* mode : {"half_pixel", "align_corners", "asymmetric"}) {
    const std::string attrs =
        std::string(", layout=\"NHWC\", coordinate_transformation_mode=\"") + mode + "\")\n";
    EXPECT_EQ(simplify(x, "  image.resize2d(%x, size=[3, 5]" + attrs), "%x\n");
    EXPECT_EQ(simplify(x, "  image.resize2d(%x, size=[3, 6]" + attrs), "unchanged");
  }
  EXPECT_EQ(simplify(kX, "  image.resize2d(%x, size=[4, 4])\n"), "unchanged");
}

TEST(Simplify, RequantisationsGoBeforeResizesThatRepeat) {
  const std::string resize = "image.resize2d(%x, size=[3, 5], layout=\"NHWC\")";
  const std::string body =
      "  %0 = " + resize + ";\n  qnn.requantize(%0, 0.5f, 0, 0.25f, 3, out_dtype=\"uint8\")\n";
  EXPECT_EQ(simplify("%x: Tensor[(1, 1, 1, 2), uint8]", body),
            "%0 = qnn.requantize(%x, 0.5f, 0, 0.25f, 3, out_dtype=\"uint8\");\n"
            "%1 = image.resize2d(%0, size=[3, 5], layout=\"NHWC\");\n%1\n");
  EXPECT_EQ(simplify("%x: Tensor[(1, 1, 2, 2), uint8]", body), "unchanged");
}

TEST(Simplify, AGlobalPoolHasTheWholeWindow) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 2, 5, 4), float32]", "  nn.global_avg_pool2d(%x)\n"),
            "%0 = nn.avg_pool2d(%x, pool_size=[5, 4]);\n%0\n");
  EXPECT_EQ(simplify("%x: Tensor[(1, 5, 4, 2), float32]", "  nn.global_avg_pool2d(%x, layout=\"NHWC\")\n"),
            "%0 = nn.avg_pool2d(%x, pool_size=[5, 4], layout=\"NHWC\");\n%0\n");
}

TEST(Simplify, ClampsAreClips) {
  EXPECT_EQ(simplify(kX, "  nn.relu(%x)\n"), "%0 = clip(%x, a_min=0f, a_max=inff);\n%0\n");
  EXPECT_EQ(simplify(kX, "  maximum(%x, -1f)\n"), "%0 = clip(%x, a_min=-1f, a_max=inff);\n%0\n");
  EXPECT_EQ(simplify(kX, "  minimum(6f, %x)\n"), "%0 = clip(%x, a_min=-inff, a_max=6f);\n%0\n");
}

TEST(Simplify, AClampThatBroadcastsStays) {
  EXPECT_EQ(simplify("%x: Tensor[(4), float32]", "  maximum(%x, const(Tensor[(1, 1), float32], [1]))\n"),
            "unchanged");
}

TEST(Simplify, ChainsOfClipsAreOne) {
  EXPECT_EQ(simplify(kX,
                     "  %0 = nn.relu(%x);\n  %1 = clip(%0, a_min=-1f, a_max=6f);\n"
                     "  %2 = clip(%1, a_min=0.5f, a_max=8f);\n  clip(%2, a_min=-inff, a_max=inff)\n"),
            "%0 = clip(%x, a_min=0.5f, a_max=6f);\n%0\n");
}

TEST(Simplify, NestedConcatenationsAlongOneAxisAreOne) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 2), int8], %y: Tensor[(1, 3), int8], %z: Tensor[(1, 4), int8]",
                     "  %0 = concatenate((%x, %y), axis=1);\n  %1 = concatenate((%z, %0), axis=-1);\n"
                     "  concatenate((%1, %x), axis=1)\n"),
            "%0 = concatenate((%z, %x, %y, %x), axis=1);\n%0\n");
}

TEST(Simplify, ConcatenationsThatOthersReadOrAlongOtherAxesStay) {
  const std::string inner = "  %0 = concatenate((%x, %y), axis=1);\n";
  const std::string params = "%x: Tensor[(1, 2), int8], %y: Tensor[(1, 2), int8]";
  EXPECT_EQ(simplify(params, inner + "  concatenate((%0, %0), axis=1)\n"), "unchanged");
  EXPECT_EQ(simplify(params + ", %z: Tensor[(1, 4), int8]", inner + "  concatenate((%0, %z), axis=0)\n"),
            "unchanged");
}

TEST(Simplify, AConcatenationOfManyPartsStaysNested) {
  std::string parts = "%x";
  for (int i = 0; i < 63; ++i) parts += ", %x";
  EXPECT_EQ(simplify("%x: Tensor[(1, 1), int8]",
                     "  %0 = concatenate((" + parts + "), axis=1);\n  concatenate((%0, %x), axis=1)\n"),
            "unchanged");
}

TEST(Simplify, NeutralConstantsGo) {
  const std::string zeros = "const(Tensor[(2, 1, 1), float32], [-0, -0])";
  EXPECT_EQ(simplify(kX, "  add(%x, " + zeros + ")\n"), "%x\n");
  EXPECT_EQ(simplify(kX, "  add(-0f, %x)\n"), "%x\n");
  EXPECT_EQ(simplify(kX, "  subtract(%x, 0f)\n"), "%x\n");
  EXPECT_EQ(simplify(kX, "  multiply(1f, %x)\n"), "%x\n");
  EXPECT_EQ(simplify(kX, "  divide(%x, 1f)\n"), "%x\n");
}

// -0 + 0 is +0: the operator that changes no bit of other numbers changes that one.
TEST(Simplify, ZerosThatChangeTheSignOfAZeroStay) {
  EXPECT_EQ(simplify(kX, "  add(%x, 0f)\n"), "unchanged");
  EXPECT_EQ(simplify(kX, "  subtract(%x, -0f)\n"), "unchanged");
  EXPECT_EQ(why_not("simplify", "drop_neutral_add", kX, "  add(%x, 0f, name=\"a\")\n"),
            "add 'a': the pattern matches, but the data may be -0, of which it makes +0");
}

TEST(Simplify, ZerosAfterWhatIsNeverNegativeZeroGo) {
  const std::string x = "%x: Tensor[(4), int8]", dequantize = "  %0 = qnn.dequantize(%x, 0.5f, 3);\n";
  EXPECT_EQ(simplify(x, dequantize + "  add(%0, 0f)\n"), "%0 = qnn.dequantize(%x, 0.5f, 3);\n%0\n");
  const std::string dense = "nn.dense(%x, const(Tensor[(1, 2), float32], [1, 2]))";
  EXPECT_EQ(simplify("%x: Tensor[(3, 2), float32]", "  %0 = " + dense + ";\n  add(%0, 0f)\n"),
            "%0 = " + dense + ";\n%0\n");
}

TEST(Simplify, OtherConstantsStay) {
  EXPECT_EQ(simplify(kX, "  subtract(0f, %x)\n"), "unchanged");
  EXPECT_EQ(simplify(kX, "  divide(1f, %x)\n"), "unchanged");
  EXPECT_EQ(simplify(kX, "  multiply(%x, 0f)\n"), "unchanged");
  EXPECT_EQ(simplify("%x: Tensor[(4), float32]", "  add(%x, const(Tensor[(2, 1), float32], [0, 0]))\n"),
            "unchanged");
}

TEST(Simplify, CastsToTheSameDtypeGo) {
  EXPECT_EQ(simplify("%x: Tensor[(4), uint8]", "  cast(%x, dtype=\"uint8\")\n"), "%x\n");
  EXPECT_EQ(simplify("%x: Tensor[(4), uint8]", "  cast(%x, dtype=\"int8\")\n"), "unchanged");
}

const std::string kWeights = "const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4])";
const std::string kConv = "  %0 = nn.conv2d(%x, " + kWeights + ");\n";

TEST(Simplify, AnAddendPerChannelIsABias) {
  EXPECT_EQ(simplify(kX, kConv + "  add(%0, const(Tensor[(1, 2, 1, 1), float32], [5, 6]))\n"),
            "%0 = nn.conv2d(%x, " + kWeights +
                ");\n%1 = reshape(const(Tensor[(1, 2, 1, 1), float32], [5, 6]), newshape=[2]);\n"
                "%2 = nn.bias_add(%0, %1);\n%2\n");
}

TEST(Simplify, AnAddendOfAMatrixProductIsABias) {
  const std::string dense = "nn.dense(%x, const(Tensor[(2, 3), float32], [1, 2, 3, 4, 5, 6]))";
  const std::string bias = "const(Tensor[(2), int32], [7, 8])";
  EXPECT_EQ(simplify("%x: Tensor[(1, 3), float32]",
                     "  %0 = " + dense + ";\n  %1 = qnn.dequantize(" + bias + ", 0.5f, 0);\n  add(%1, %0)\n"),
            "%0 = " + dense + ";\n%1 = qnn.dequantize(" + bias +
                ", 0.5f, 0);\n%2 = reshape(%1, newshape=[2]);\n%3 = nn.bias_add(%0, %2);\n%3\n");
}

TEST(Simplify, AnAddendPerColumnIsNoBias) {
  EXPECT_EQ(simplify(kX, kConv + "  add(%0, const(Tensor[(4), float32], [5, 6, 7, 8]))\n"), "unchanged");
  EXPECT_EQ(why_not("simplify", "add_to_bias_add", kX,
                    kConv + "  add(%0, const(Tensor[(4), float32], [5, 6, 7, 8]), name=\"a\")\n"),
            "add 'a': the pattern matches, but the addend Tensor[(4), float32] is not one per channel of "
            "Tensor[(1, 2, 4, 4), float32]");
}

TEST(Simplify, ABiasOfZerosGoes) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 2), int32]", "  nn.bias_add(%x, const(Tensor[(2), int32], [0, 0]))\n"),
            "%x\n");
  EXPECT_EQ(simplify("%x: Tensor[(1, 2), int32]", "  nn.bias_add(%x, const(Tensor[(2), int32], [0, 1]))\n"),
            "unchanged");
  // -0 + 0 is 0; a product has no -0.
  const std::string zeros = "const(Tensor[(2), float32], [0, 0])";
  EXPECT_EQ(simplify("%x: Tensor[(1, 2), float32]", "  nn.bias_add(%x, " + zeros + ")\n"), "unchanged");
  EXPECT_EQ(simplify("%x: Tensor[(1, 2), float32], %y: Tensor[(2, 2), float32]",
                     "  %0 = nn.dense(%x, %y);\n  nn.bias_add(%0, " + zeros + ")\n"),
            "%0 = nn.dense(%x, %y);\n%0\n");
}

TEST(Simplify, ACastToBoolIsAComparison) {
  EXPECT_EQ(simplify("%x: Tensor[(2), float32]", "  cast(%x, dtype=\"bool\")\n"),
            "%0 = equal(%x, 0f);\n%1 = equal(%0, False);\n%1\n");
  EXPECT_EQ(simplify("%x: Tensor[(2), uint8]", "  cast(%x, dtype=\"bool\")\n"),
            "%0 = equal(%x, 0u8);\n%1 = equal(%0, False);\n%1\n");
  EXPECT_EQ(simplify("%x: Tensor[(2), bool]", "  cast(%x, dtype=\"float32\")\n"), "unchanged");
}

TEST(Simplify, AWindowOverEverythingHasNoStride) {
  EXPECT_EQ(simplify(kX, "  nn.avg_pool2d(%x, pool_size=[4, 4], strides=[4, 4])\n"),
            "%0 = nn.avg_pool2d(%x, pool_size=[4, 4]);\n%0\n");
  EXPECT_EQ(simplify(kX, "  nn.max_pool2d(%x, pool_size=[4, 2], strides=[4, 2])\n"),
            "%0 = nn.max_pool2d(%x, pool_size=[4, 2], strides=[1, 2]);\n%0\n");
  // One window, but not over everything: with stride 1 there would be two.
  EXPECT_EQ(simplify(kX, "  nn.max_pool2d(%x, pool_size=[3, 3], strides=[3, 3])\n"), "unchanged");
}

TEST(Simplify, PadValuesOfIntegersAreInt32) {
  const std::string pad = "nn.pad(%x, -3, pad_width=[[1, 1]])";
  EXPECT_EQ(simplify("%x: Tensor[(4), int8]", "  nn.pad(%x, -3f, pad_width=[[1, 1]])\n"),
            "%0 = " + pad + ";\n%0\n");
  EXPECT_EQ(simplify("%x: Tensor[(4), int8]", "  nn.pad(%x, -3i8, pad_width=[[1, 1]])\n"),
            "%0 = " + pad + ";\n%0\n");
  EXPECT_EQ(simplify("%x: Tensor[(4), int8]", "  " + pad + "\n"), "unchanged");
}

TEST(Simplify, TransposesGoBeforePads) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 2, 4, 4), int8]",
                     "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [1, 2], [0, 0], [0, 0]]);\n"
                     "  %1 = nn.pad(%0, 4, pad_width=[[0, 0], [0, 0], [5, 6], [7, 8]]);\n"
                     "  transpose(%1, axes=[0, 2, 3, 1])\n"),
            "%0 = transpose(%x, axes=[0, 2, 3, 1]);\n"
            "%1 = nn.pad(%0, 3, pad_width=[[0, 0], [0, 0], [0, 0], [1, 2]]);\n"
            "%2 = nn.pad(%1, 4, pad_width=[[0, 0], [5, 6], [7, 8], [0, 0]]);\n%2\n");
  EXPECT_EQ(simplify("%x: Tensor[(2, 4), int8]",
                     "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [1, 2]]);\n  %1 = transpose(%0, axes=[1, 0]);\n"
                     "  (%0, %1)\n"),
            "unchanged");
}

// Otherwise convert_layout, which pads with the channels last, and this never end.
TEST(Simplify, ATransposeToNchwStaysBehindItsPad) {
  const std::string params = "%x: Tensor[(1, 4, 5, 2), int8]";
  EXPECT_EQ(simplify(params,
                     "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [1, 2], [0, 0], [0, 0]]);\n"
                     "  transpose(%0, axes=[0, 3, 1, 2])\n"),
            "unchanged");
  EXPECT_EQ(run_passes({"simplify", "convert_layout", "eliminate_layout"}, params,
                       "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n"
                       "  nn.pad(%0, 3, pad_width=[[0, 0], [0, 0], [1, 2], [0, 0]])\n"),
            "%0 = nn.pad(%x, 3, pad_width=[[0, 0], [1, 2], [0, 0], [0, 0]]);\n"
            "%1 = transpose(%0, axes=[0, 3, 1, 2]);\n%1\n");
}

TEST(Simplify, ReshapesThatMoveExtentsOfOneGoBeforePads) {
  EXPECT_EQ(simplify("%x: Tensor[(1, 1, 4, 1), int8]",
                     "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]);\n"
                     "  reshape(%0, newshape=[1, 7, 8, 1])\n"),
            "%0 = reshape(%x, newshape=[1, 4, 1, 1]);\n"
            "%1 = nn.pad(%0, 3, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]]);\n%1\n");
  EXPECT_EQ(simplify("%x: Tensor[(1, 1, 4, 1), int8]",
                     "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]);\n"
                     "  reshape(%0, newshape=[8, 7])\n"),
            "unchanged");
}

TEST(Simplify, AChainOfManyClipsTakesOneVisit) {
  std::string body = "  %0 = clip(%x, a_min=0f, a_max=1000000f);\n";
  constexpr int kLength = 20000;
  for (int i = 1; i < kLength; ++i) {
    body += "  %" + std::to_string(i) + " = clip(%" + std::to_string(i - 1) +
            ", a_min=0f, a_max=" + std::to_string(1000000 - i) + "f);\n";
  }
  EXPECT_EQ(simplify("%x: Tensor[(4), float32]", body + "  %" + std::to_string(kLength - 1) + "\n"),
            "%0 = clip(%x, a_min=0f, a_max=980001f);\n%0\n");
}

}  // namespace
}  // namespace qplan::passes_test::simplify_test
