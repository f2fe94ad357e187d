// Inference of the float operators and of those that reshape.
#include <gtest/gtest.h>

#include "tests/packer/op/infer_text.h"

namespace qplan::float_infer_test {
namespace {

const char kParams[] =
    "%f: Tensor[(1, 4, 8, 6), float32], %w: Tensor[(5, 4, 3, 3), float32], %v: Tensor[(4), float32], "
    "%i: Tensor[(1, 4, 8, 6), int8], %d: Tensor[(7, 6), float32], %l: Tensor[(2), int64], %b: Tensor[(4, 1, "
    "1), "
    "bool]";

std::string infer(const std::string& expression) { return infer_text(kParams, expression); }

TEST(InferFloat, Conv2dAndDense) {
  EXPECT_EQ(infer("nn.conv2d(%f, %w, strides=[2, 2], padding=[1, 1])"), "Tensor[(1, 5, 4, 3), float32]");
  EXPECT_EQ(infer("nn.conv2d(%i, %w)"),
            "nn.conv2d (node 0): dtype int8 of 'data' is not supported, expected float32");
  EXPECT_EQ(infer("nn.conv2d(%f, %w, groups=2)"),
            "nn.conv2d (node 0): output channels 5 are not divisible by groups 2");
  EXPECT_EQ(infer("nn.dense(%f, %d)"), "Tensor[(1, 4, 8, 7), float32]");
  EXPECT_EQ(infer("nn.dense(%f, %d, units=8)"),
            "nn.dense (node 0): attribute 'units' is 8, but 'weight' has 7 rows");
}

TEST(InferFloat, ElementwiseBroadcasts) {
  EXPECT_EQ(infer("add(%f, 1f)"), "Tensor[(1, 4, 8, 6), float32]");
  EXPECT_EQ(infer("multiply(%l, 2i64)"), "Tensor[(2), int64]");
  EXPECT_EQ(infer("less(%f, 1f)"), "Tensor[(1, 4, 8, 6), bool]");
  EXPECT_EQ(infer("where(%b, %f, 1f)"), "Tensor[(1, 4, 8, 6), float32]");
  EXPECT_EQ(infer("add(%f, 1)"), "add (node 0): 'rhs' is int32, expected float32 as 'lhs'");
  EXPECT_EQ(infer("add(%f, %v)"),
            "add (node 0): shapes [1, 4, 8, 6] and [4] do not broadcast: extents 6 and 4");
  EXPECT_EQ(infer("where(%f, %f, %f)"),
            "where (node 0): dtype float32 of 'condition' is not supported, expected bool");
}

TEST(InferFloat, UnaryKeepTheType) {
  for (const char* op : {"nn.relu", "nn.leaky_relu", "sigmoid", "tanh", "exp", "sqrt", "negative", "abs",
                         "round", "floor", "ceil", "hard_sigmoid", "nn.softmax"}) {
    EXPECT_EQ(infer(std::string(op) + "(%f)"), "Tensor[(1, 4, 8, 6), float32]") << op;
  }
  EXPECT_EQ(infer("nn.relu(%i)"), "Tensor[(1, 4, 8, 6), int8]");
  EXPECT_EQ(infer("sigmoid(%i)"),
            "sigmoid (node 0): dtype int8 of 'data' is not supported, expected one of float32, float64");
}

TEST(InferFloat, Reductions) {
  EXPECT_EQ(infer("nn.avg_pool2d(%f, pool_size=[2, 2], strides=[2, 2])"), "Tensor[(1, 4, 4, 3), float32]");
  EXPECT_EQ(infer("nn.global_avg_pool2d(%f)"), "Tensor[(1, 4, 1, 1), float32]");
  EXPECT_EQ(infer("nn.global_avg_pool2d(%f, layout=\"NHWC\")"), "Tensor[(1, 1, 1, 6), float32]");
  EXPECT_EQ(infer("mean(%f, axis=[2, 3])"), "Tensor[(1, 4), float32]");
  EXPECT_EQ(infer("mean(%f, axis=[-1], keepdims=True)"), "Tensor[(1, 4, 8, 1), float32]");
}

TEST(InferFloat, BatchNormWantsOneValuePerChannel) {
  EXPECT_EQ(infer("nn.batch_norm(%f, %v, %v, %v, %v)"), "Tensor[(1, 4, 8, 6), float32]");
  EXPECT_EQ(
      infer("nn.batch_norm(%f, %v, %v, %v, %v, axis=3)"),
      "nn.batch_norm (node 0): 'gamma' is Tensor[(4), float32], expected Tensor[(6), float32] for axis 3 of "
      "Tensor[(1, 4, 8, 6), float32]");
}

TEST(InferShape, OperatorsThatReshape) {
  EXPECT_EQ(infer("squeeze(%f)"), "Tensor[(4, 8, 6), float32]");
  EXPECT_EQ(
      infer("squeeze(%f, axis=[1])"),
      "squeeze (node 0): axis 1 of Tensor[(1, 4, 8, 6), float32] cannot be squeezed: its extent is not 1");
  EXPECT_EQ(infer("expand_dims(%v, axis=1, num_newaxis=2)"), "Tensor[(4, 1, 1), float32]");
  EXPECT_EQ(infer("nn.batch_flatten(%i)"), "Tensor[(1, 192), int8]");
  EXPECT_EQ(infer("strided_slice(%f, begin=[0, 1], end=[1, 3])"), "Tensor[(1, 2, 8, 6), float32]");
  EXPECT_EQ(infer("strided_slice(%f, begin=[3], end=[3], axes=[1])"),
            "strided_slice (node 0): nothing is left of axis 1 of Tensor[(1, 4, 8, 6), float32]: 'begin' "
            "[3], 'end' "
            "[3]");
  EXPECT_EQ(infer("strided_slice(%f, begin=[0], end=[1], strides=[0])"),
            "strided_slice (node 0): attribute 'strides' has 0 for axis 0");
  EXPECT_EQ(infer("take(%f, %l, axis=1)"), "Tensor[(1, 2, 8, 6), float32]");
  EXPECT_EQ(infer("take(%f, 0, axis=-1)"), "Tensor[(1, 4, 8), float32]");
}

TEST(InferLookup, WantsATableOf256) {
  std::string zeros = "0";
  for (int i = 1; i < 256; ++i) zeros += ", 0";
  EXPECT_EQ(infer("qnn.lookup(%i, const(Tensor[(256), uint8], [" + zeros + "]))"),
            "Tensor[(1, 4, 8, 6), uint8]");
  EXPECT_EQ(
      infer("qnn.lookup(%i, const(Tensor[(2), int8], [1, 2]))"),
      "qnn.lookup (node 0): 'table' is Tensor[(2), int8], expected 256 values: one for each byte of 'data'");
}

}  // namespace
}  // namespace qplan::float_infer_test
