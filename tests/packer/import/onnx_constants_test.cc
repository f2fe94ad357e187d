// Contents of tensors, and what is computed on import.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_constants_test {
namespace {

// The constant as it is printed, "const(...)" or a scalar, as a function's only output.
std::string printed(const Message& tensor) {
  OnnxBuilder b;
  b.initializer(tensor);
  b.graph().message(12, Message().bytes(1, "w"));
  return import_body(b);
}
std::string refused(const Message& tensor) {
  OnnxBuilder b;
  b.initializer(tensor);
  b.graph().message(12, Message().bytes(1, "w"));
  return refusal(b);
}

TEST(OnnxTensor, RawBytesAndTypedFields) {
  EXPECT_EQ(printed(tensor<float>("w", kFloat, {2}, {1, 2})), "const(Tensor[(2), float32], [1, 2])\n");
  EXPECT_EQ(printed(tensor_header("w", kFloat, {2}).packed<float>(4, {1, 2})),
            "const(Tensor[(2), float32], [1, 2])\n");
  EXPECT_EQ(printed(tensor_header("w", kInt8, {3}).packed<int32_t>(5, {-128, 0, 127})),
            "const(Tensor[(3), int8], [-128, 0, 127])\n");
  EXPECT_EQ(printed(tensor_header("w", kUint8, {2}).packed<int32_t>(5, {0, 255})),
            "const(Tensor[(2), uint8], [0, 255])\n");
  EXPECT_EQ(printed(tensor_header("w", kInt64, {1}).packed<int64_t>(7, {INT64_MIN})),
            "const(Tensor[(1), int64], [-9223372036854775808])\n");
  EXPECT_EQ(printed(tensor_header("w", kUint32, {1}).packed<uint64_t>(11, {4294967295u})),
            "const(Tensor[(1), uint32], [4294967295])\n");
  EXPECT_EQ(printed(tensor_header("w", kDouble, {1}).packed<double>(10, {0.5})),
            "const(Tensor[(1), float64], [0.5])\n");
  EXPECT_EQ(printed(tensor<uint8_t>("w", kBool, {2}, {0, 7})), "const(Tensor[(2), bool], [False, True])\n");
}

TEST(OnnxTensor, SizesMustFit) {
  EXPECT_EQ(refused(tensor<float>("w", kFloat, {3}, {1, 2})),
            kInvalid + "initializer 'w': it has 8 bytes, expected 12 for float32 [3]");
  EXPECT_EQ(refused(tensor_header("w", kFloat, {3}).packed<float>(4, {1, 2})),
            kInvalid + "initializer 'w': it has 2 values, expected 3 for float32 [3]");
  EXPECT_EQ(refused(tensor_header("w", kFloat, {3})),
            kInvalid + "initializer 'w': it has 0 values, expected 3 for float32 [3]");
  EXPECT_EQ(refused(tensor_header("w", kInt8, {1}).packed<int32_t>(5, {128})),
            kInvalid + "initializer 'w': its value 128 is outside of int8");
  EXPECT_EQ(refused(tensor_header("w", kUint32, {1}).packed<uint64_t>(11, {4294967296u})),
            kInvalid + "initializer 'w': its value 4294967296 is outside of uint32");
  EXPECT_EQ(refused(tensor_header("w", kFloat, {-1}).bytes(9, "")),
            kInvalid + "initializer 'w': extent -1 of shape [-1] is negative");
  EXPECT_EQ(refused(tensor_header("w", kFloat, {int64_t{1} << 40, int64_t{1} << 40}).bytes(9, "")),
            kInvalid + "initializer 'w': shape [1099511627776, 1099511627776] has too many elements");
  EXPECT_EQ(refused(tensor_header("w", kFloat, {int64_t{1} << 39}).bytes(9, "")),
            kInvalid + "initializer 'w': Tensor[(549755813888), float32] is larger than 1099511627776 bytes");
  EXPECT_EQ(refused(tensor_header("w", kFloat, std::vector<int64_t>(9, 1)).bytes(9, "")),
            kInvalid + "initializer 'w': rank 9 is larger than 8");
}

TEST(OnnxConstant, EveryAttribute) {
  const auto constant = [](const Message& attribute) {
    OnnxBuilder b;
    b.node("Constant", {}, {"y"}, {attribute});
    b.graph().message(12, Message().bytes(1, "y"));
    return refusal(b) == "imported" ? import_body(b) : refusal(b);
  };
  EXPECT_EQ(constant(attr_tensor("value", tensor<int32_t>("", kInt32, {1}, {5}))),
            "const(Tensor[(1), int32], [5])\n");
  EXPECT_EQ(constant(attr_float("value_float", 0.5f)), "0.5f\n");
  EXPECT_EQ(constant(attr_floats("value_floats", {1, 2})), "const(Tensor[(2), float32], [1, 2])\n");
  EXPECT_EQ(constant(attr_int("value_int", 3)), "3i64\n");
  EXPECT_EQ(constant(attr_ints("value_ints", {3})), "const(Tensor[(1), int64], [3])\n");
  EXPECT_EQ(constant(attr_string("value_string", "x")),
            kList + "Constant with a value that is neither a tensor nor numbers ('y')");
}

// As PyTorch writes the pads of a Pad: paddings from the last axis forwards, turned around.
TEST(OnnxConstant, PadsFromShapeArithmetic) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 1, 2, 2})
      .ints("given", {0, 1, 2, 3})
      .ints("minus1", {-1})
      .ints("last", {INT64_MIN + 1});
  b.ints("zero", {0}).ints("pairs", {-1, 2}).ints("flat", {-1}).ints("four", {4});
  b.node("ConstantOfShape", {"four"}, {"rest"},
         {attr_tensor("value", tensor<int64_t>("", kInt64, {1}, {0}))});
  b.node("Concat", {"given", "rest"}, {"all"}, {attr_int("axis", 0)});
  b.node("Reshape", {"all", "pairs"}, {"table"});
  b.node("Slice", {"table", "minus1", "last", "zero", "minus1"}, {"turned"});
  b.node("Transpose", {"turned"}, {"columns"}, {attr_ints("perm", {1, 0})});
  b.node("Reshape", {"columns", "flat"}, {"row"});
  b.node("Cast", {"row"}, {"pads"}, {attr_int("to", kInt64)});
  b.node("Pad", {"x", "pads"}, {"y"}).output("y", kFloat, {1, 1, 7, 3});
  EXPECT_EQ(import_body(b), "%0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 3], [0, 1]]);\n%0\n");
}

// Between quantised layers exporters write casts to the type that is there already.
TEST(OnnxConstant, CastsToTheSameTypeVanish) {
  OnnxBuilder b;
  b.input("x", kUint8, {1})
      .node("Cast", {"x"}, {"c"}, {attr_int("to", kUint8)})
      .node("CastLike", {"c", "x"}, {"d"});
  b.import_opset("", 13).node("Identity", {"d"}, {"e"}).node("Cast", {"e"}, {"y"}, {attr_int("to", kFloat)});
  b.output("y", kFloat, {1});
  OnnxBuilder newer(15);
  newer.input("x", kUint8, {1}).node("Cast", {"x"}, {"c"}, {attr_int("to", kUint8)});
  newer.node("CastLike", {"c", "x"}, {"d"}).node("Identity", {"d"}, {"e"});
  newer.node("Cast", {"e"}, {"y"}, {attr_int("to", kFloat)}).output("y", kFloat, {1});
  EXPECT_EQ(import_body(newer), "%0 = cast(%x, dtype=\"float32\");\n%0\n");
  EXPECT_EQ(refusal(b), kList + "CastLike of opset 13 (known from 15 on) ('d')");
}

// Bias as the PyTorch way writes it: round(b / (sx * sw)) as int32, all on constants.
TEST(OnnxConstant, FloatArithmeticOnConstants) {
  OnnxBuilder b;
  b.constant<float>("b", kFloat, {3}, {0.25f, 0.75f, -1}).scale("sx", 0.5f).scale("sw", 1);
  b.node("Mul", {"sx", "sw"}, {"s"}).node("Div", {"b", "s"}, {"q"}).node("Round", {"q"}, {"r"});
  b.node("Cast", {"r"}, {"y"}, {attr_int("to", kInt32)}).output("y", kInt32, {3});
  EXPECT_EQ(import_body(b), "const(Tensor[(3), int32], [0, 2, -2])\n");
}

TEST(OnnxConstant, ShapeAndItsParts) {
  const auto shape = [](const std::vector<Message>& attributes) {
    return unary_body({.op = "Shape", .attributes = attributes, .opset = 15});
  };
  EXPECT_EQ(shape({}), "const(Tensor[(4), int64], [1, 2, 4, 4])\n");
  EXPECT_EQ(shape({attr_int("start", 1), attr_int("end", -1)}), "const(Tensor[(2), int64], [2, 4])\n");
  EXPECT_EQ(shape({attr_int("start", INT64_MIN), attr_int("end", 1)}), "const(Tensor[(1), int64], [1])\n");
}

TEST(OnnxConstant, ReductionsOfConstants) {
  OnnxBuilder b;
  b.constant<float>("x", kFloat, {2, 3}, {1, 2, 6, -1, 5, 2}).ints("last", {-1});
  b.node("ReduceSum", {"x", "last"}, {"s"}, {attr_int("keepdims", 0)});
  b.node("ReduceMax", {"x"}, {"m"}, {attr_ints("axes", {0})}).node("ReduceMean", {"x"}, {"a"});
  b.output("s", kFloat, {2}).output("m", kFloat, {1, 3}).output("a", kFloat, {1, 1});
  EXPECT_EQ(import_body(b),
            "(const(Tensor[(2), float32], [9, 6]), const(Tensor[(1, 3), float32], [1, 5, 6]), "
            "const(Tensor[(1, 1), float32], [2.5]))\n");
}

TEST(OnnxConstant, EmptyTensorsPassThroughShapeArithmetic) {
  OnnxBuilder b(18);
  b.input("x", kFloat, {1, 2}).ints("none", {}).ints("zero", {0}).ints("two", {2});
  b.node("ConstantOfShape", {"zero"}, {"e"}, {attr_tensor("value", tensor<int64_t>("", kInt64, {1}, {1}))});
  b.node("Concat", {"e", "two", "none"}, {"shape"}, {attr_int("axis", 0)});
  b.node("Reshape", {"x", "shape"}, {"r"}).node("ReduceMean", {"r", "none"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(import_body(b), "%0 = reshape(%x, newshape=[2]);\n%1 = mean(%0, axis=[0], keepdims=True);\n%1\n");
}

TEST(OnnxConstant, TensorsWithoutElementsEnterNoFunction) {
  OnnxBuilder b;
  b.input("x", kFloat, {1}).constant<float>("e", kFloat, {0}, {}).node("Add", {"x", "e"}, {"y"});
  b.output("y", kFloat, {0});
  EXPECT_EQ(refusal(b), kList + "Add with a tensor without elements ('y')");
}

// 64 MiB are free: the shape and two results of 32 MiB are more.
TEST(OnnxConstant, MemoryIsBounded) {
  OnnxBuilder b;
  b.ints("shape", {8, 1 << 20});
  b.node("ConstantOfShape", {"shape"}, {"a"}).node("Neg", {"a"}, {"b"}).node("Neg", {"b"}, {"y"});
  b.output("y", kFloat, {8, 1 << 20});
  EXPECT_EQ(refusal(b),
            kInvalid + "node 1 Neg 'b': the model's constants take more than 24 times the file's size");
  OnnxBuilder huge;
  huge.ints("shape", {int64_t{1} << 39});
  huge.node("ConstantOfShape", {"shape"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(refusal(huge),
            kInvalid +
                "node 0 ConstantOfShape 'y': result: Tensor[(549755813888), float32] is larger than "
                "1099511627776 bytes");
}

// 500 nodes that share zero points, and 500 layers that share weights: each would keep 400 KB of its own.
TEST(OnnxConstant, WhatNodesMakeOfSharedConstantsIsBounded) {
  constexpr int64_t kCount = 100'000;
  const std::string bounded = "the model's constants take more than 24 times the file's size";
  OnnxBuilder b;
  b.input("x", kFloat, {1, kCount}).constant("s", kFloat, {kCount}, std::vector<float>(kCount, 1.0f));
  b.constant("z", kInt8, {kCount}, std::vector<int8_t>(kCount));
  for (int i = 0; i < 500; ++i) b.node("QuantizeLinear", {"x", "s", "z"}, {"y" + std::to_string(i)});
  b.output("y0", kInt8, {1, kCount});
  EXPECT_NE(refusal(b).find(bounded), std::string::npos);
  OnnxBuilder layers;
  layers.input("x", kInt8, {1, 1, 1, 1}).scale("s", 1.0f).zero_point("z", 0);
  layers.constant("w", kInt8, {kCount, 1, 1, 1}, std::vector<int8_t>(kCount));
  for (int i = 0; i < 500; ++i) {
    layers.node("QLinearConv", {"x", "s", "z", "w", "s", "z", "s", "z"}, {"y" + std::to_string(i)});
  }
  layers.output("y0", kInt8, {1, kCount, 1, 1});
  EXPECT_NE(refusal(layers).find(bounded), std::string::npos);
}

TEST(OnnxConstant, TrainingModeOfDropoutIsOneElement) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2}).constant<uint8_t>("mode", kBool, {0}, {});
  b.node("Dropout", {"x", "", "mode"}, {"y"}).output("y", kFloat, {1, 2});
  EXPECT_EQ(refusal(b),
            kInvalid + "node 0 Dropout 'y': the training mode is Tensor[(0), bool], expected a scalar");
}

TEST(OnnxConstant, WorkIsBounded) {
  OnnxBuilder b;
  b.ints("shape", {1 << 20}).ints("i", {0}).node("ConstantOfShape", {"shape"}, {"a"});
  for (int i = 0; i < 400; ++i) b.node("ReduceMax", {"a"}, {"m" + std::to_string(i)});
  b.output("m0", kFloat, {1});
  EXPECT_NE(refusal(b).find("arithmetic on constants take too long"), std::string::npos) << refusal(b);
}

// A bound condition: nothing is left of the Where, unless it mixes its operands or broadcasts.
TEST(OnnxConstants, AConditionThatIsTheSameEverywhereLeavesOneOperand) {
  const auto body = [](const std::vector<uint8_t>& condition, const std::vector<int64_t>& x_shape) {
    OnnxBuilder b;
    b.input("c", kBool, {2}).input("x", kFloat, x_shape).input("y", kFloat, {2});
    b.node("Where", {"c", "x", "y"}, {"z"}).output("z", kFloat, {2});
    ImportOptions options;
    options.bindings["c"] = ir::make_constant(ir::kBool, {2}, condition);
    return import_body(b, options);
  };
  EXPECT_EQ(body({1, 1}, {2}), "%x\n");
  EXPECT_EQ(body({0, 0}, {2}), "%y\n");
  EXPECT_EQ(body({0, 0}, {1}), "%y\n");
  EXPECT_EQ(body({0, 1}, {2}), "%0 = where(const(Tensor[(2), bool], [False, True]), %x, %y);\n%0\n");
  EXPECT_EQ(body({1, 1}, {1}), "%0 = where(const(Tensor[(2), bool], [True, True]), %x, %y);\n%0\n");
}

// Extents beside a 0 are multiplied all the same.
TEST(OnnxConstants, ExtentsOfATensorWithoutElementsAreBounded) {
  const auto model = [](const std::vector<int64_t>& extents) {
    OnnxBuilder b;
    b.input("x", kFloat, {1}).ints("e", extents).node("ConstantOfShape", {"e"}, {"c"});
    b.node("Flatten", {"c"}, {"f"}).node("Shape", {"f"}, {"y"}).output("y", kInt64, {2});
    return b;
  };
  EXPECT_EQ(import_body(model({0, 3, 5})), "const(Tensor[(2), int64], [0, 15])\n");
  const int64_t large = int64_t{1} << 62;
  EXPECT_EQ(
      refusal(model({0, large, large})),
      kInvalid +
          "node 0 ConstantOfShape 'c': shape [0, 4611686018427387904, 4611686018427387904] has too many "
          "elements");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_constants_test
