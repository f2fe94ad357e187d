#include <gtest/gtest.h>

#include "tests/packer/op/infer_text.h"

namespace qplan::movement_test {
namespace {

const char kParams[] =
    "%x: Tensor[(2, 3, 4), int8], %y: Tensor[(2, 5, 4), int8], %u: Tensor[(2, 5, 4), uint8], "
    "%z: Tensor[(2, 4), int8], %im: Tensor[(1, 5, 6, 3), int8], %s: int8";

std::string infer(const std::string& expression) { return infer_text(kParams, expression); }

TEST(InferReshape, OneExtentMayBeOpen) {
  EXPECT_EQ(infer("reshape(%x, newshape=[6, 4])"), "Tensor[(6, 4), int8]");
  EXPECT_EQ(infer("reshape(%x, newshape=[3, -1])"), "Tensor[(3, 8), int8]");
  EXPECT_EQ(infer("reshape(%x, newshape=-1)"), "Tensor[(24), int8]");
  EXPECT_EQ(infer("reshape(%s, newshape=[])"), "int8");
  EXPECT_EQ(infer("reshape(%s, newshape=[1, 1])"), "Tensor[(1, 1), int8]");
  EXPECT_EQ(infer("reshape(%x, newshape=[5, -1])"),
            "reshape (node 0): Tensor[(2, 3, 4), int8] cannot be reshaped to [5, -1]");
  EXPECT_EQ(infer("reshape(%x, newshape=[5])"),
            "reshape (node 0): Tensor[(2, 3, 4), int8] cannot be reshaped to [5]");
  const std::string extents = "expected extents of at least 1 and -1 once";
  EXPECT_EQ(infer("reshape(%x, newshape=[-1, -1])"),
            "reshape (node 0): attribute 'newshape' is [-1, -1], " + extents);
  EXPECT_EQ(infer("reshape(%x, newshape=[-2, 24])"),
            "reshape (node 0): attribute 'newshape' is [-2, 24], " + extents);
  EXPECT_EQ(
      infer("reshape(%x, newshape=[4294967296, 4294967296, 4294967296])"),
      "reshape (node 0): Tensor[(2, 3, 4), int8] cannot be reshaped to [4294967296, 4294967296, 4294967296]");
  EXPECT_EQ(infer("reshape(%x, newshape=[24, 1, 1, 1, 1, 1, 1, 1, 1])"),
            "reshape (node 0): result: rank 9 is larger than 8");
}

TEST(InferTranspose, AxesArePermutation) {
  EXPECT_EQ(infer("transpose(%x, axes=[2, 0, 1])"), "Tensor[(4, 2, 3), int8]");
  for (const std::string axes : {"[0, 1]", "[0, 1, 1]", "[0, 1, 3]", "[0, 1, -4]", "[0, 1, 2, 2]"}) {
    EXPECT_EQ(infer("transpose(%x, axes=" + axes + ")"),
              "transpose (node 0): attribute 'axes' is " + axes + ", expected a permutation of 0 to 2");
  }
}

TEST(InferConcatenate, ExtentsAddUpAlongTheAxis) {
  EXPECT_EQ(infer("concatenate((%x, %y, %x), axis=1)"), "Tensor[(2, 11, 4), int8]");
  EXPECT_EQ(infer("concatenate((%x, %y), axis=-2)"), "Tensor[(2, 8, 4), int8]");
  EXPECT_EQ(infer("concatenate((%x,))"), "Tensor[(2, 3, 4), int8]");
  EXPECT_EQ(
      infer("concatenate((%x, %y), axis=0)"),
      "concatenate (node 0): operand 1 is Tensor[(2, 5, 4), int8], but operand 0 is Tensor[(2, 3, 4), int8]: "
      "they may differ along axis 0 only");
  EXPECT_EQ(infer("concatenate((%y, %u), axis=0)"),
            "concatenate (node 0): operand 1 is Tensor[(2, 5, 4), uint8], but operand 0 is Tensor[(2, 5, 4), "
            "int8]: "
            "they may differ along axis 0 only");
  EXPECT_EQ(
      infer("concatenate((%x, %z), axis=2)"),
      "concatenate (node 0): operand 1 is Tensor[(2, 4), int8], but operand 0 is Tensor[(2, 3, 4), int8]: "
      "they may differ along axis 2 only");
  EXPECT_EQ(infer("concatenate((%x, %y), axis=3)"),
            "concatenate (node 0): axis 3 is out of range, expected from -3 to 2");
  EXPECT_EQ(infer("concatenate(())"), "concatenate (node 0): there are 0 operands, expected at least 1");
  EXPECT_EQ(infer("concatenate((%s, %s))"), "concatenate (node 0): axis 0 of a scalar does not exist");
}

TEST(InferSplit, SectionsOrIndices) {
  EXPECT_EQ(infer("split(%x, indices_or_sections=2, axis=2)"),
            "Tensor[(2, 3, 2), int8], Tensor[(2, 3, 2), int8]");
  EXPECT_EQ(infer("split(%x, indices_or_sections=[1], axis=1)"),
            "Tensor[(2, 1, 4), int8], Tensor[(2, 2, 4), int8]");
  EXPECT_EQ(infer("split(%x, indices_or_sections=[], axis=1)"), "Tensor[(2, 3, 4), int8]");
  EXPECT_EQ(infer("split(%x, indices_or_sections=2, axis=1)"),
            "split (node 0): extent 3 of axis 1 does not split into 2 equal sections");
  EXPECT_EQ(infer("split(%x, indices_or_sections=0, axis=1)"),
            "split (node 0): extent 3 of axis 1 does not split into 0 equal sections");
  for (const std::string indices : {"[0]", "[3]", "[2, 1]", "[1, 1]", "[-1]"}) {
    EXPECT_EQ(infer("split(%x, indices_or_sections=" + indices + ", axis=1)"),
              "split (node 0): attribute 'indices_or_sections' is " + indices +
                  ", expected increasing indices from 1 to 2");
  }
  EXPECT_EQ(infer_text("%x: Tensor[(1073741824), int8]", "split(%x, indices_or_sections=1073741824)"),
            "split (node 0): 1073741824 results are more than 4096");
}

TEST(InferPad, ValueMayBeWrittenAsFloat) {
  const std::string width = ", pad_width=[[0, 0], [1, 2], [3, 0]])";
  EXPECT_EQ(infer("nn.pad(%x, 114f" + width), "Tensor[(2, 6, 7), int8]");
  EXPECT_EQ(infer("nn.pad(%x, -128" + width), "Tensor[(2, 6, 7), int8]");
  EXPECT_EQ(infer("nn.pad(%x, 5i8" + width), "Tensor[(2, 6, 7), int8]");
  EXPECT_EQ(infer("nn.pad(%x, 0.5f" + width), "nn.pad (node 0): 'pad_value' is not a value of int8");
  EXPECT_EQ(infer("nn.pad(%x, 128" + width), "nn.pad (node 0): 'pad_value' is not a value of int8");
  EXPECT_EQ(infer("nn.pad(%x, nanf" + width), "nn.pad (node 0): 'pad_value' is not a value of int8");
  EXPECT_EQ(infer("nn.pad(%x, 5u8" + width),
            "nn.pad (node 0): 'pad_value' is uint8, expected a scalar of dtype int8 or int32 or float32");
  EXPECT_EQ(infer("nn.pad(%x, %s" + width),
            "nn.pad (node 0): 'pad_value' must be a constant, got parameter 's'; fold or bind it first");
}

TEST(InferPad, WidthsAreOnePairPerAxis) {
  EXPECT_EQ(infer("nn.pad(%s, 0, pad_width=[])"), "int8");
  EXPECT_EQ(infer("nn.pad(%x, 0, pad_width=[[1, 1]])"),
            "nn.pad (node 0): attribute 'pad_width' has 1 pairs, but 'data' is Tensor[(2, 3, 4), int8]");
  EXPECT_EQ(infer("nn.pad(%z, 0, pad_width=[[1, 1], [1]])"),
            "nn.pad (node 0): attribute 'pad_width' has [1] for axis 1, expected two values of at least 0");
  EXPECT_EQ(
      infer("nn.pad(%z, 0, pad_width=[[1, 1], [1, -1]])"),
      "nn.pad (node 0): attribute 'pad_width' has [1, -1] for axis 1, expected two values of at least 0");
  EXPECT_EQ(infer("nn.pad(%z, 0, pad_width=[[9223372036854775807, 0], [0, 0]])"),
            "nn.pad (node 0): attribute 'pad_width' [9223372036854775807, 0] is too large for axis 0");
  EXPECT_EQ(
      infer("nn.pad(%z, 0, pad_width=[[4611686018427387904, 0], [0, 0]])"),
      "nn.pad (node 0): result: Tensor[(4611686018427387906, 4), int8] is larger than 1099511627776 bytes");
  EXPECT_EQ(infer("nn.pad(%z, 0, pad_width=[[1, 1], [1, 1]], pad_mode=\"edge\")"),
            "nn.pad (node 0): attribute 'pad_mode' is 'edge', expected 'constant'");
}

TEST(InferReduce, AxesVanishOrStayAsOne) {
  const std::string q = "1f, 0, 1f, 0";
  EXPECT_EQ(infer("qnn.mean(%im, " + q + ", axis=[1, 2])"), "Tensor[(1, 3), int8]");
  EXPECT_EQ(infer("qnn.mean(%im, " + q + ", axis=[-2, 1], keepdims=True)"), "Tensor[(1, 1, 1, 3), int8]");
  EXPECT_EQ(infer("qnn.mean(%im, " + q + ")"), "int8");
  EXPECT_EQ(infer("qnn.mean(%im, " + q + ", axis=[1, -3])"), "qnn.mean (node 0): axis 1 is named twice");
  EXPECT_EQ(infer("qnn.mean(%im, " + q + ", axis=[4])"),
            "qnn.mean (node 0): axis 4 is out of range, expected from -4 to 3");
  EXPECT_EQ(infer("argmax(%im, axis=-1)"), "Tensor[(1, 5, 6), int32]");
  EXPECT_EQ(infer("argmax(%im, axis=[3], keepdims=True, dtype=\"int64\")"), "Tensor[(1, 5, 6, 1), int64]");
  EXPECT_EQ(infer("argmax(%im, axis=4)"), "argmax (node 0): axis 4 is out of range, expected from -4 to 3");
  EXPECT_EQ(infer("argmax(%im, axis=1, dtype=\"int8\")"),
            "argmax (node 0): attribute 'dtype' is int8, expected one of int32, int64");
}

TEST(InferResize, SizeReplacesHeightAndWidth) {
  EXPECT_EQ(infer("image.resize2d(%im, size=[10, 7], layout=\"NHWC\")"), "Tensor[(1, 10, 7, 3), int8]");
  EXPECT_EQ(infer("image.resize2d(%im, size=[10, 7])"), "Tensor[(1, 5, 10, 7), int8]");
  EXPECT_EQ(infer("image.resize2d(%im, size=[10])"),
            "image.resize2d (node 0): attribute 'size' is [10], expected height and width of at least 1");
  EXPECT_EQ(infer("image.resize2d(%im, size=[10, 0])"),
            "image.resize2d (node 0): attribute 'size' is [10, 0], expected height and width of at least 1");
  EXPECT_EQ(infer("image.resize2d(%im, size=[1, 1], method=\"cubic\")"),
            "image.resize2d (node 0): attribute 'method' is 'cubic', expected 'linear'");
  EXPECT_EQ(infer("image.resize2d(%im, size=[1, 1], coordinate_transformation_mode=\"tf\")"),
            "image.resize2d (node 0): attribute 'coordinate_transformation_mode' is 'tf', expected one of "
            "'half_pixel', 'align_corners', 'asymmetric'");
  EXPECT_EQ(infer("image.resize2d(%z, size=[1, 1])"),
            "image.resize2d (node 0): 'data' is Tensor[(2, 4), int8], expected rank 4");
}

}  // namespace
}  // namespace qplan::movement_test
