// Dynamic quantisation of exported programs: the IR of scales that the network computes, which layers become
// products of integers, and what is refused. tests/models/exported_models_test.cc compares the numbers.
#include <gtest/gtest.h>

#include "tests/packer/import/exported_helpers.h"

namespace qplan::pytorch_test::exported_dynamic_test {
namespace {

using Arguments = ExportedBuilder::Arguments;

constexpr char kChoose[] = "torch.ops.quantized_decomposed.choose_qparams.tensor";
constexpr char kChooseSymmetric[] = "torch.ops.quantized_decomposed.choose_qparams_symmetric.tensor";

Arguments choice(int64_t min, int64_t max, int64_t type, double eps = 0.25) {
  return {{"input", tensor("x")},
          {"quant_min", integer(min)},
          {"quant_max", integer(max)},
          {"eps", number(eps)},
          {"dtype", dtype(type)}};
}

// x and the scale s and zero point z that a node chooses for it.
ExportedBuilder chosen(const Json& shape, const char* target = kChoose,
                       const Arguments& arguments = choice(-128, 127, kChar)) {
  ExportedBuilder b;
  b.input("x", shape);
  b.raw_node(target, Json::array({tensor("s"), tensor("z")}), arguments);
  return b;
}

Arguments with_scale(const std::string& input, int64_t min, int64_t max, int64_t type) {
  return {{"input", tensor(input)},    {"scale", tensor("s")},      {"zero_point", tensor("z")},
          {"quant_min", integer(min)}, {"quant_max", integer(max)}, {"dtype", dtype(type)}};
}

std::string choice_text(ExportedBuilder b) { return import_text(b.output("s").output("z").build(), {}); }

TEST(ExportedDynamic, ScaleAndZeroPointAreThoseOfTheEnds) {
  const std::string ends =
      "%0 = reshape(%x, newshape=[1, 2, 1, 3]);\n"
      "%1 = nn.max_pool2d(%0, pool_size=[2, 1], layout=\"NHWC\");\n"
      "%2 = reshape(%1, newshape=[1, 3, 1, 1]);\n"
      "%3 = nn.max_pool2d(%2, pool_size=[3, 1], layout=\"NHWC\");\n"
      "%4 = reshape(%3, newshape=[1]);\n"
      "%5 = maximum(%4, 0f);\n"
      "%6 = negative(%x);\n"
      "%7 = reshape(%6, newshape=[1, 2, 1, 3]);\n"
      "%8 = nn.max_pool2d(%7, pool_size=[2, 1], layout=\"NHWC\");\n"
      "%9 = reshape(%8, newshape=[1, 3, 1, 1]);\n"
      "%10 = nn.max_pool2d(%9, pool_size=[3, 1], layout=\"NHWC\");\n"
      "%11 = reshape(%10, newshape=[1]);\n"
      "%12 = maximum(%11, 0f);\n";
  EXPECT_EQ(choice_text(chosen({2, 3})), ends +
                                             "%13 = add(%5, %12);\n"
                                             "%14 = divide(%13, 255f);\n"
                                             "%15 = maximum(%14, 0.25f);\n"
                                             "%16 = divide(%12, %15);\n"
                                             "%17 = round(%16);\n"
                                             "%18 = add(%17, -128f);\n"
                                             "%19 = clip(%18, a_min=-128f, a_max=127f);\n"
                                             "%20 = cast(%19, dtype=\"int32\");\n"
                                             "(%15, %20)\n");
  EXPECT_EQ(choice_text(chosen({2, 3}, kChooseSymmetric, choice(-127, 127, kChar))),
            ends +
                "%13 = maximum(%12, %5);\n"
                "%14 = divide(%13, 127f);\n"
                "%15 = maximum(%14, 0.25f);\n"
                "(%15, const(Tensor[(1), int32], [0]))\n");
  EXPECT_EQ(choice_text(chosen({2, 3}, kChooseSymmetric, choice(0, 255, kByte))),
            ends +
                "%13 = maximum(%12, %5);\n"
                "%14 = divide(%13, 127.5f);\n"
                "%15 = maximum(%14, 0.25f);\n"
                "(%15, const(Tensor[(1), int32], [128]))\n");
}

std::string tail_of(const std::string& text, const std::string& from) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.substr(at);
}

TEST(ExportedDynamic, QuantizeAndDequantizeRoundAsPytorch) {
  ExportedBuilder b = chosen({2, 3});
  b.node("quantized_decomposed.quantize_per_tensor.tensor", "q", with_scale("x", -128, 127, kChar));
  b.node("quantized_decomposed.dequantize_per_tensor.tensor", "y", with_scale("q", -128, 127, kChar));
  b.output("y");
  EXPECT_EQ(tail_of(import_text(b.build(), {}), "%21"),
            "%21 = divide(1f, %15);\n"
            "%22 = multiply(%x, %21);\n"
            "%23 = round(%22);\n"
            "%24 = cast(%20, dtype=\"float32\");\n"
            "%25 = add(%23, %24);\n"
            "%26 = clip(%25, a_min=-128f, a_max=127f);\n"
            "%27 = cast(%26, dtype=\"int8\");\n"
            "%28 = cast(%27, dtype=\"float32\");\n"
            "%29 = cast(%20, dtype=\"float32\");\n"
            "%30 = subtract(%28, %29);\n"
            "%31 = multiply(%30, %15);\n"
            "%31\n");
}

// The tensor "y" is what x's integers stand for; "w" are weights [2, k] of integers, "t" their transpose.
ExportedBuilder before_layer(const Json& shape, const std::vector<int64_t>& weights_shape) {
  ExportedBuilder b = chosen(shape);
  b.node("quantized_decomposed.quantize_per_tensor.tensor", "q", with_scale("x", -128, 127, kChar));
  b.node("quantized_decomposed.dequantize_per_tensor.tensor", "y", with_scale("q", -128, 127, kChar));
  int64_t count = 1;
  for (const int64_t extent : weights_shape) count *= extent;
  std::vector<int8_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i + 1);
  b.weight("q", weights_shape, kChar, bytes_of(values));
  b.constant("ws", {2}, kFloat, bytes_of<float>({0.5f, 0.25f}));
  b.constant("wz", {2}, kLong, bytes_of<int64_t>({0, 0}));
  b.node("quantized_decomposed.dequantize_per_channel.default", "w",
         {{"input", tensor("p_q")},
          {"scales", tensor("c_ws")},
          {"zero_points", tensor("c_wz")},
          {"axis", integer(0)},
          {"quant_min", integer(-127)},
          {"quant_max", integer(127)},
          {"dtype", dtype(kChar)}});
  return b;
}

const std::string kProduct =
    " = qnn.dense(%27, const(Tensor[(2, 3), int8], [1, 2, 3, 4, 5, 6]), 0, 0, 1f, 1f);\n";
const std::string kScaled =
    ", %15, %20, const(Tensor[(2), float32], [0.5, 0.25]), const(Tensor[(2), int32], [6, 15]), rows=0);\n";

TEST(ExportedDynamic, LinearLayersAreProductsOfIntegers) {
  ExportedBuilder b = before_layer({2, 3}, {2, 3});
  b.weight("b", {2}, kFloat, bytes_of<float>({1, 2}));
  b.node("aten.linear.default", "z0",
         {{"input", tensor("y")}, {"weight", tensor("w")}, {"bias", tensor("p_b")}});
  EXPECT_EQ(tail_of(import_text(b.output("z0").build(), {}), "%33"),
            "%33" + kProduct + "%34 = nn.dynamic_dequantize(%33" + kScaled +
                "%35 = nn.bias_add(%34, const(Tensor[(2), float32], [1, 2]));\n%35\n");
}

TEST(ExportedDynamic, ProductsWithTransposedWeightsAreLinearLayers) {
  ExportedBuilder b = before_layer({2, 3}, {2, 3});
  b.node("aten.t.default", "t", {{"self", tensor("w")}});
  b.node("aten.mm.default", "z0", {{"self", tensor("y")}, {"mat2", tensor("t")}});
  EXPECT_EQ(tail_of(import_text(b.output("z0").build(), {}), "%34"),
            "%34" + kProduct + "%35 = nn.dynamic_dequantize(%34" + kScaled + "%35\n");
}

TEST(ExportedDynamic, OtherUsesStayFloat) {
  ExportedBuilder b = before_layer({2, 3}, {2, 3});
  b.node("aten.relu.default", "r", {{"self", tensor("y")}});
  b.node("aten.linear.default", "z0", {{"input", tensor("r")}, {"weight", tensor("w")}});
  const std::string text = import_text(b.output("z0").build(), {});
  EXPECT_NE(text.find("= nn.dense("), std::string::npos) << text;
  EXPECT_EQ(text.find("qnn.dense("), std::string::npos) << text;
}

// "w" are the weights of a convolution of y, whose zero point is uint8's 128 or what int8 can hold.
std::string padded_convolution(const char* target, const Arguments& arguments, int64_t padding) {
  ExportedBuilder b = chosen({1, 2, 4, 4}, target, arguments);
  b.node("quantized_decomposed.quantize_per_tensor.tensor", "q", with_scale("x", -128, 127, kChar));
  b.node("quantized_decomposed.dequantize_per_tensor.tensor", "y", with_scale("q", -128, 127, kChar));
  b.weight("q", {1, 2, 3, 3}, kChar, bytes_of(std::vector<int8_t>(18, 1)));
  b.node("quantized_decomposed.dequantize_per_tensor.default", "w",
         {{"input", tensor("p_q")},
          {"scale", number(0.5)},
          {"zero_point", integer(0)},
          {"quant_min", integer(-127)},
          {"quant_max", integer(127)},
          {"dtype", dtype(kChar)}});
  b.node("aten.conv2d.default", "z0",
         {{"input", tensor("y")},
          {"weight", tensor("w")},
          {"stride", integers({1, 1})},
          {"padding", integers({padding, padding})}});
  return import_text(b.output("z0").build(), {});
}

TEST(ExportedDynamic, PaddingIsAnIntegerOnlyWhereTheZeroPointIsOne) {
  const auto is_product = [](const std::string& text) {
    return text.find("qnn.conv2d(") != std::string::npos;
  };
  EXPECT_TRUE(is_product(padded_convolution(kChoose, choice(-128, 127, kChar), 1)));
  EXPECT_TRUE(is_product(padded_convolution(kChooseSymmetric, choice(-127, 127, kChar), 1)));
  // 128 is no int8: the layer pads the real 0.
  const Arguments other = choice(0, 255, kByte);
  for (const char* const target : {kChoose, kChooseSymmetric}) {
    const std::string text = padded_convolution(target, other, 1);
    EXPECT_FALSE(is_product(text)) << text;
    EXPECT_NE(text.find("nn.conv2d("), std::string::npos) << text;
    EXPECT_TRUE(is_product(padded_convolution(target, other, 0)));
  }
}

TEST(ExportedDynamic, WeightsThatWereAScalarStayFloat) {
  ExportedBuilder b = chosen({2, 1});
  b.node("quantized_decomposed.quantize_per_tensor.tensor", "q", with_scale("x", -128, 127, kChar));
  b.node("quantized_decomposed.dequantize_per_tensor.tensor", "y", with_scale("q", -128, 127, kChar));
  b.weight("q", std::vector<int64_t>{}, kChar, bytes_of(std::vector<int8_t>{3}));
  b.node("quantized_decomposed.dequantize_per_tensor.default", "w",
         {{"input", tensor("p_q")},
          {"scale", number(0.5)},
          {"zero_point", integer(0)},
          {"quant_min", integer(-127)},
          {"quant_max", integer(127)},
          {"dtype", dtype(kChar)}});
  b.node("aten.view.default", "v", {{"self", tensor("w")}, {"size", integers({1, 1})}});
  b.node("aten.linear.default", "z0", {{"input", tensor("y")}, {"weight", tensor("v")}});
  const std::string text = import_text(b.output("z0").build(), {});
  EXPECT_NE(text.find("= nn.dense("), std::string::npos) << text;
}

TEST(ExportedDynamic, WrongChoicesAreRefused) {
  const std::string name = "quantized_decomposed::choose_qparams";
  const auto refusal = [&](const Arguments& arguments, const Json& shape = {2, 3}) {
    return choice_text(chosen(shape, kChoose, arguments));
  };
  EXPECT_NE(refusal(choice(-128, 127, kLong))
                .find("1 operator that qplan does not import: " + name +
                      " with elements of scalar type 4 as integers ('s')"),
            std::string::npos);
  EXPECT_EQ(refusal(choice(127, -128, kChar)), broken(name + " 's': the range 127 to -128 is none of int8"));
  EXPECT_EQ(refusal(choice(0, 255, kChar)), broken(name + " 's': the range 0 to 255 is none of int8"));
  EXPECT_EQ(refusal(choice(-128, 127, kChar, 0)),
            broken(name + " 's': the least scale is 0, expected a positive finite number"));
  ExportedBuilder b = chosen({2, 3});
  Arguments mixed = with_scale("x", -128, 127, kChar);
  mixed[2].second = integer(3);
  b.node("quantized_decomposed.quantize_per_tensor.tensor", "y", mixed).output("y");
  EXPECT_EQ(import_text(b.build(), {}),
            unsupported("quantized_decomposed::quantize_per_tensor with a scale or zero point that the model "
                        "computes"));
  ExportedBuilder wide = chosen({2, 3});
  wide.node("quantized_decomposed.quantize_per_tensor.tensor", "y", [] {
    Arguments arguments = with_scale("x", -128, 127, kChar);
    arguments[1].second = tensor("x");
    return arguments;
  }());
  EXPECT_EQ(
      import_text(wide.output("y").build(), {}),
      broken("quantized_decomposed::quantize_per_tensor 'y': the scale is [2, 3], expected one element"));
}

}  // namespace
}  // namespace qplan::pytorch_test::exported_dynamic_test
