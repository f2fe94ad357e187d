// The IR that operators become which exported programs have: quantisation as PT2E writes it, and layers on
// float32. Others are TorchScript's (pytorch_operators_test.cc), with the names of arguments that a program
// gives them.
#include <gtest/gtest.h>

#include <cctype>

#include "tests/packer/import/exported_builder.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::exported_operators_test {
namespace {

using Arguments = ExportedBuilder::Arguments;

// One node on x, and what other tensors it names.
std::string of_node(const std::string& target, const Arguments& arguments, const Json& shape = {1, 2, 4, 4},
                    ExportedBuilder b = {}) {
  b.input("x", shape).node(target, "y", arguments).output("y");
  return import_text(b.build(), {});
}

std::string unsupported(const std::string& what) {
  return "-49: pytorch: 'net.pt': 1 operator that qplan does not import: " + what + " ('y')";
}
std::string broken(const std::string& what) { return "-48: pytorch: 'net.pt': " + what; }

Arguments quantise(double scale, int64_t zero_point, int64_t min, int64_t max, int64_t type) {
  return {{"input", tensor("x")},      {"scale", number(scale)},    {"zero_point", integer(zero_point)},
          {"quant_min", integer(min)}, {"quant_max", integer(max)}, {"dtype", dtype(type)}};
}

constexpr char kQuantize[] = "quantized_decomposed.quantize_per_tensor.default";
constexpr char kDequantize[] = "quantized_decomposed.dequantize_per_tensor.default";

TEST(ExportedOperators, QuantizeMultipliesByTheReciprocal) {
  EXPECT_EQ(of_node(kQuantize, quantise(0.5, -3, -128, 127, kChar)),
            "%0 = qnn.quantize(%x, 0.5f, -3, contract=\"f32e\", rule=\"mul_even\");\n%0\n");
  EXPECT_EQ(
      of_node(kQuantize, quantise(0.5, 3, 0, 255, kByte)),
      "%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n%0\n");
}

// Activations of x86's quantiser have 7 bits, weights are symmetric.
TEST(ExportedOperators, ANarrowerRangeIsAClamp) {
  EXPECT_EQ(of_node(kQuantize, quantise(0.5, 3, 0, 127, kByte)),
            "%0 = qnn.quantize(%x, 0.5f, 3, out_dtype=\"uint8\", contract=\"f32e\", rule=\"mul_even\");\n"
            "%1 = clip(%0, a_min=0f, a_max=127f);\n%1\n");
  EXPECT_EQ(of_node(kQuantize, quantise(0.5, 0, -127, 127, kChar)),
            "%0 = qnn.quantize(%x, 0.5f, 0, contract=\"f32e\", rule=\"mul_even\");\n"
            "%1 = clip(%0, a_min=-127f, a_max=127f);\n%1\n");
}

TEST(ExportedOperators, WrongQuantisationIsRefused) {
  EXPECT_EQ(
      of_node(kQuantize, quantise(0, 0, -128, 127, kChar)),
      broken("quantized_decomposed::quantize_per_tensor 'y': the scale is 0, expected a positive finite "
             "number"));
  EXPECT_EQ(of_node(kQuantize, quantise(1, 128, -128, 127, kChar)),
            broken("quantized_decomposed::quantize_per_tensor 'y': zero point 128 is outside of int8"));
  EXPECT_EQ(of_node(kQuantize, quantise(1, 0, 200, 300, kChar)),
            broken("quantized_decomposed::quantize_per_tensor 'y': the range 200 to 300 has no int8"));
  EXPECT_EQ(
      of_node(kQuantize, quantise(1, 0, 0, 1, 12)),
      unsupported("quantized_decomposed::quantize_per_tensor with elements of scalar type 11 as integers"));
  EXPECT_EQ(of_node(kDequantize, quantise(1, 0, -128, 127, kChar)),
            broken("quantized_decomposed::dequantize_per_tensor 'y': the tensor is float32, expected int8"));
}

TEST(ExportedOperators, ScalesMayBeTensors) {
  ExportedBuilder b;
  b.constant("s", {}, kFloat, bytes_of<float>({0.5f})).constant("z", {1}, kLong, bytes_of<int64_t>({3}));
  Arguments arguments = quantise(0, 0, -128, 127, kChar);
  arguments[1].second = tensor("c_s");
  arguments[2].second = tensor("c_z");
  EXPECT_EQ(of_node("quantized_decomposed.quantize_per_tensor.tensor", arguments, {2}, b),
            "%0 = qnn.quantize(%x, 0.5f, 3, contract=\"f32e\", rule=\"mul_even\");\n%0\n");
}

Arguments of_channels(const std::string& input) {
  return {{"input", tensor(input)}, {"scales", tensor("c_s")},    {"zero_points", tensor("c_z")},
          {"axis", integer(1)},     {"quant_min", integer(-127)}, {"quant_max", integer(127)},
          {"dtype", dtype(kChar)}};
}

TEST(ExportedOperators, OneScaleForEachChannel) {
  ExportedBuilder b;
  b.constant("s", {2}, kFloat, bytes_of<float>({0.5f, 0.25f}));
  b.constant("z", {2}, kLong, bytes_of<int64_t>({1, 2}));
  EXPECT_EQ(
      of_node("quantized_decomposed.quantize_per_channel.default", of_channels("x"), {1, 2}, b),
      "%0 = qnn.quantize(%x, const(Tensor[(2), float32], [0.5, 0.25]), const(Tensor[(2), int32], [1, 2]), "
      "axis=1, contract=\"f32e\", rule=\"mul_even\");\n"
      "%1 = clip(%0, a_min=-127f, a_max=127f);\n%1\n");
  b.weight("w", {1, 2}, kChar, bytes_of<int8_t>({7, 8}));
  EXPECT_EQ(
      of_node("quantized_decomposed.dequantize_per_channel.default", of_channels("p_w"), {1}, b),
      "%0 = qnn.dequantize(const(Tensor[(1, 2), int8], [7, 8]), const(Tensor[(2), float32], [0.5, 0.25]), "
      "const(Tensor[(2), int32], [1, 2]), axis=1, contract=\"f32e\");\n%0\n");
  EXPECT_EQ(of_node("quantized_decomposed.quantize_per_channel.default", of_channels("x"), {1, 3}, b),
            broken("quantized_decomposed::quantize_per_channel 'y': there are 2 scales, expected 3"));
}

// -- layers

ExportedBuilder with_weights() {
  ExportedBuilder b;
  b.weight("w", {2, 2, 1, 1}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  b.weight("b", {2}, kFloat, bytes_of<float>({5, 6}));
  return b;
}
constexpr char kWeights[] = "const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4])";

TEST(ExportedOperators, Convolutions) {
  const std::string conv = std::string("%0 = nn.conv2d(%x, ") + kWeights;
  EXPECT_EQ(of_node("aten.conv2d.default", {{"input", tensor("x")}, {"weight", tensor("p_w")}}, {1, 2, 4, 4},
                    with_weights()),
            conv + ");\n%0\n");
  EXPECT_EQ(of_node("aten.conv2d.default",
                    {{"input", tensor("x")},
                     {"weight", tensor("p_w")},
                     {"bias", tensor("p_b")},
                     {"stride", integers({2, 1})},
                     {"padding", integers({0, 1})},
                     {"dilation", integers({1, 2})},
                     {"groups", integer(1)}},
                    {1, 2, 4, 4}, with_weights()),
            conv +
                ", strides=[2, 1], padding=[0, 1, 0, 1], dilation=[1, 2]);\n"
                "%1 = nn.bias_add(%0, const(Tensor[(2), float32], [5, 6]));\n%1\n");
  const Arguments core = {{"input", tensor("x")},
                          {"weight", tensor("p_w")},
                          {"bias", none()},
                          {"stride", integers({1, 1})},
                          {"padding", integers({0, 0})},
                          {"dilation", integers({1, 1})},
                          {"transposed", boolean(false)},
                          {"output_padding", integers({0, 0})},
                          {"groups", integer(1)}};
  for (const char* target : {"aten.convolution.default", "aten._convolution.default"})
    EXPECT_EQ(of_node(target, core, {1, 2, 4, 4}, with_weights()), conv + ");\n%0\n");
  Arguments transposed = core;
  transposed[6].second = boolean(true);
  EXPECT_EQ(of_node("aten.convolution.default", transposed, {1, 2, 4, 4}, with_weights()),
            of_node("aten.conv_transpose2d.input", {{"input", tensor("x")}, {"weight", tensor("p_w")}},
                    {1, 2, 4, 4}, with_weights()));
}

// The odd row and column are after the data, as PyTorch has them.
TEST(ExportedOperators, PaddingByName) {
  ExportedBuilder b;
  b.weight("w", {1, 2, 2, 3}, kFloat, bytes_of(std::vector<float>(12, 1)));
  const auto of = [&](const char* mode) {
    return of_node("aten.conv2d.padding",
                   {{"input", tensor("x")},
                    {"weight", tensor("p_w")},
                    {"bias", none()},
                    {"stride", integers({1, 1})},
                    {"padding", {{"as_string", mode}}}},
                   {1, 2, 4, 4}, b);
  };
  EXPECT_NE(of("same").find("padding=[0, 1, 1, 1]"), std::string::npos) << of("same");
  EXPECT_EQ(of("valid").find("padding"), std::string::npos) << of("valid");
}

TEST(ExportedOperators, ConvolutionsOfRows) {
  ExportedBuilder b;
  b.weight("w", {2, 2, 1}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  EXPECT_EQ(of_node("aten.conv1d.default",
                    {{"input", tensor("x")},
                     {"weight", tensor("p_w")},
                     {"bias", none()},
                     {"stride", integers({2})},
                     {"padding", integers({3})}},
                    {1, 2, 8}, b),
            "%0 = reshape(%x, newshape=[1, 2, 1, 8]);\n"
            "%1 = reshape(const(Tensor[(2, 2, 1), float32], [1, 2, 3, 4]), newshape=[2, 2, 1, 1]);\n"
            "%2 = nn.conv2d(%0, %1, strides=[1, 2], padding=[0, 3, 0, 3]);\n"
            "%3 = reshape(%2, newshape=[1, 2, 7]);\n%3\n");
}

TEST(ExportedOperators, TransposedConvolutionsOfRows) {
  ExportedBuilder b;
  b.weight("w", {2, 1, 2}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  const std::string body = of_node(
      "aten.conv_transpose1d.default",
      {{"input", tensor("x")}, {"weight", tensor("p_w")}, {"stride", {{"as_ints", {2}}}}}, {1, 2, 3}, b);
  EXPECT_NE(body.find("newshape=[1, 2, 1, 6]"), std::string::npos) << body;
  EXPECT_NE(body.find("padding=[0, 1, 0, 0]"), std::string::npos) << body;
  EXPECT_NE(body.find("newshape=[1, 1, 6]);"), std::string::npos) << body;
}

TEST(ExportedOperators, LinearLayersAndProducts) {
  ExportedBuilder b;
  b.weight("w", {2, 3}, kFloat, bytes_of<float>({1, 2, 3, 4, 5, 6}));
  b.weight("b", {2}, kFloat, bytes_of<float>({7, 8}));
  b.weight("t", {3, 2}, kFloat, bytes_of<float>({1, 4, 2, 5, 3, 6}));
  const std::string bias = ", const(Tensor[(2), float32], [7, 8])";
  EXPECT_EQ(
      of_node("aten.linear.default",
              {{"input", tensor("x")}, {"weight", tensor("p_w")}, {"bias", tensor("p_b")}}, {1, 5, 3}, b),
      "%0 = nn.dense(%x, const(Tensor[(2, 3), float32], [1, 2, 3, 4, 5, 6]));\n"
      "%1 = nn.bias_add(%0" +
          bias + ", axis=2);\n%1\n");
  const std::string transposed =
      "%0 = transpose(const(Tensor[(3, 2), float32], [1, 4, 2, 5, 3, 6]), axes=[1, 0]);\n"
      "%1 = nn.dense(%x, %0);\n";
  EXPECT_EQ(of_node("aten.addmm.default",
                    {{"self", tensor("p_b")}, {"mat1", tensor("x")}, {"mat2", tensor("p_t")}}, {1, 3}, b),
            transposed + "%2 = nn.bias_add(%1" + bias + ");\n%2\n");
  EXPECT_EQ(of_node("aten.mm.default", {{"self", tensor("x")}, {"mat2", tensor("p_t")}}, {1, 3}, b),
            transposed + "%1\n");
  EXPECT_EQ(of_node("aten.bmm.default", {{"self", tensor("x")}, {"mat2", tensor("x")}}, {2, 3, 3}),
            "%0 = nn.batch_matmul(%x, %x);\n%0\n");
}

TEST(ExportedOperators, BatchNormalisation) {
  ExportedBuilder b;
  for (const char* name : {"g", "m", "v"}) b.weight(name, {2}, kFloat, bytes_of<float>({1, 2}));
  Arguments arguments = {
      {"input", tensor("x")},          {"weight", tensor("p_g")},      {"bias", none()},
      {"running_mean", tensor("p_m")}, {"running_var", tensor("p_v")}, {"training", boolean(false)},
      {"momentum", number(0.1)},       {"eps", number(0.001)},         {"cudnn_enabled", boolean(true)}};
  const std::string same = "const(Tensor[(2), float32], [1, 2])";
  const std::string body = "%0 = nn.batch_norm(%x, " + same + ", const(Tensor[(2), float32], [0, 0]), " +
                           same + ", " + same + ", epsilon=0.001f64);\n%0\n";
  EXPECT_EQ(of_node("aten.batch_norm.default", arguments, {1, 2, 4, 4}, b), body);
  arguments[5].second = boolean(true);
  EXPECT_EQ(of_node("aten.batch_norm.default", arguments, {1, 2, 4, 4}, b),
            unsupported("aten::batch_norm with training=True"));
  arguments[5].second = boolean(false);
  EXPECT_EQ(of_node("aten.batch_norm.default", arguments, {1, 3, 4, 4}, b),
            broken("aten::batch_norm 'y': the statistics are [2] of 3 channels"));
  arguments[3].second = tensor("x");
  EXPECT_EQ(of_node("aten.batch_norm.default", arguments, {1, 2, 4, 4}, b),
            unsupported("aten::batch_norm with statistics that the model computes"));
  arguments[3].second = tensor("p_m");
  arguments.erase(arguments.begin() + 5);
  arguments.pop_back();
  b.input("x", {1, 2, 4, 4});
  b.raw_node("torch.ops.aten._native_batch_norm_legit_no_training.default",
             Json::array({tensor("y"), tensor("a"), tensor("b")}), arguments);
  b.output("y");
  EXPECT_EQ(import_text(b.build(), {}), body);
}

// The convolution of data with zeros between its elements, with weights that are turned around.
TEST(ExportedOperators, TransposedConvolutions) {
  ExportedBuilder b;
  b.weight("w", {2, 1, 3, 3}, kFloat, bytes_of(std::vector<float>(18, 1)));
  const std::string body = of_node("aten.conv_transpose2d.input",
                                   {{"input", tensor("x")},
                                    {"weight", tensor("p_w")},
                                    {"bias", none()},
                                    {"stride", integers({2, 2})},
                                    {"padding", integers({1, 1})},
                                    {"output_padding", integers({1, 0})}},
                                   {1, 2, 4, 4}, b);
  EXPECT_EQ(body.substr(0, body.find("%3")),
            "%0 = reshape(%x, newshape=[1, 2, 4, 1, 4, 1]);\n"
            "%1 = nn.pad(%0, 0f, pad_width=[[0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [0, 1]]);\n"
            "%2 = reshape(%1, newshape=[1, 2, 8, 8]);\n");
  EXPECT_NE(body.find("begin=[2, 2], end=[-4, -4], strides=[-1, -1], axes=[2, 3]"), std::string::npos)
      << body;
  // After the rows come one of the padding of outputs, less the zeros that follow the last element.
  EXPECT_NE(body.find("= nn.conv2d(%2, %4, padding=[1, 1, 1, 0]);\n%5\n"), std::string::npos) << body;
  EXPECT_EQ(
      of_node(
          "aten.conv_transpose2d.input",
          {{"input", tensor("x")}, {"weight", tensor("p_w")}, {"bias", none()}, {"stride", integers({0, 1})}},
          {1, 2, 4, 4}, b),
      broken("aten::conv_transpose2d 'y': a stride, dilation or window of 0"));
}

// -- functions and normalisations

TEST(ExportedOperators, FunctionsOfOneElement) {
  const auto of = [](const std::string& target, const Arguments& more = {}) {
    Arguments arguments = {{"self", tensor("x")}};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return of_node(target, arguments, {2, 2});
  };
  const std::pair<const char*, const char*> plain[] = {
      {"exp", "exp"},      {"sqrt", "sqrt"}, {"rsqrt", "rsqrt"}, {"log", "log"},
      {"neg", "negative"}, {"abs", "abs"},   {"erf", "erf"}};
  for (const auto& [name, ir_op] : plain)
    EXPECT_EQ(of(std::string("aten.") + name + ".default"), std::string("%0 = ") + ir_op + "(%x);\n%0\n");
  EXPECT_EQ(of("aten.reciprocal.default"), "%0 = divide(1f, %x);\n%0\n");
  for (const char* name : {"silu", "silu_"})
    EXPECT_EQ(of(std::string("aten.") + name + ".default"),
              "%0 = sigmoid(%x);\n%1 = multiply(%x, %0);\n%1\n");
  EXPECT_EQ(of("aten.elu.default", {{"alpha", number(0.5)}}), "%0 = nn.elu(%x, alpha=0.5f);\n%0\n");
  EXPECT_EQ(of("aten.gelu.default"),
            "%0 = multiply(%x, 0.70710677f);\n%1 = erf(%0);\n%2 = multiply(%x, 0.5f);\n%3 = add(%1, 1f);\n"
            "%4 = multiply(%2, %3);\n%4\n");
  EXPECT_NE(of("aten.gelu.default", {{"approximate", {{"as_string", "tanh"}}}}).find("tanh("),
            std::string::npos);
  EXPECT_EQ(of("aten.pow.Tensor_Scalar", {{"exponent", integer(2)}}), "%0 = multiply(%x, %x);\n%0\n");
  EXPECT_EQ(of("aten.pow.Tensor_Scalar", {{"exponent", number(0.5)}}), "%0 = sqrt(%x);\n%0\n");
  EXPECT_EQ(of("aten.pow.Tensor_Scalar", {{"exponent", integer(3)}}), "%0 = power(%x, 3f);\n%0\n");
  EXPECT_EQ(of("aten.div.Tensor", {{"other", number(4)}}), "%0 = divide(%x, 4f);\n%0\n");
  EXPECT_EQ(of("aten.div.Tensor_mode", {{"other", number(4)}, {"rounding_mode", {{"as_string", "floor"}}}}),
            unsupported("aten::div with a rounding mode"));
  EXPECT_EQ(of("aten.maximum.default", {{"other", tensor("x")}}), "%0 = maximum(%x, %x);\n%0\n");
  EXPECT_EQ(of("aten.minimum.default", {{"other", tensor("x")}}), "%0 = minimum(%x, %x);\n%0\n");
  EXPECT_EQ(of("aten.clamp_min.default", {{"min", number(0)}}), "%0 = nn.relu(%x);\n%0\n");
  EXPECT_NE(of("aten.clamp_max.default", {{"max", number(6)}}).find("a_max=6f"), std::string::npos);
}

TEST(ExportedOperators, SoftmaxAndReductions) {
  const auto of = [](const std::string& target, const Arguments& more) {
    Arguments arguments = {{"self", tensor("x")}};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return of_node(target, arguments, {2, 3});
  };
  EXPECT_EQ(of("aten._softmax.default", {{"dim", integer(-1)}, {"half_to_float", boolean(false)}}),
            "%0 = nn.softmax(%x, axis=1);\n%0\n");
  EXPECT_EQ(of("aten.log_softmax.int", {{"dim", integer(1)}}), "%0 = nn.log_softmax(%x, axis=1);\n%0\n");
  EXPECT_EQ(of("aten._log_softmax.default", {{"dim", integer(1)}, {"half_to_float", boolean(false)}}),
            "%0 = nn.log_softmax(%x, axis=1);\n%0\n");
  EXPECT_EQ(of("aten.sum.dim_IntList", {{"dim", integers({1, 0})}, {"keepdim", boolean(true)}}),
            "%0 = sum(%x, axis=[0, 1], keepdims=True);\n%0\n");
  EXPECT_EQ(of("aten.sum.default", {}), "%0 = sum(%x, axis=[0, 1]);\n%0\n");
  EXPECT_EQ(of("aten.amax.default", {{"dim", integers({-1})}}), "%0 = max(%x, axis=[1]);\n%0\n");
  EXPECT_EQ(of("aten.amin.default", {{"dim", integers({-1})}}), "%0 = min(%x, axis=[1]);\n%0\n");
  EXPECT_EQ(of("aten.mean.dim", {{"dim", integers({1})}, {"dtype", dtype(kFloat)}}),
            "%0 = mean(%x, axis=[1]);\n%0\n");
}

TEST(ExportedOperators, Normalisations) {
  ExportedBuilder b;
  b.weight("g", {4}, kFloat, bytes_of<float>({1, 2, 3, 4}))
      .weight("h", {4}, kFloat, bytes_of<float>({5, 6, 7, 8}));
  const std::string g = "const(Tensor[(4), float32], [1, 2, 3, 4])",
                    h = "const(Tensor[(4), float32], [5, 6, 7, 8])";
  const auto over = [](const std::string& axis, const std::string& from) {
    const std::string attrs = ", axis=[" + axis + "], keepdims=True);\n";
    return "%N = mean(" + from + attrs + "%N = subtract(" + from +
           ", %N);\n%N = multiply(%N, %N);\n%N = mean(%N" + attrs +
           "%N = add(%N, 1e-05f);\n%N = sqrt(%N);\n%N = divide(%N, %N);\n";
  };
  // Without the numbers of values.
  const auto without_numbers = [](const std::string& text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
      result += text[i];
      if (text[i] != '%' || text[i + 1] == 'x') continue;
      while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0) ++i;
      result += 'N';
    }
    return result;
  };
  const Arguments layer = {{"input", tensor("x")},
                           {"normalized_shape", integers({4})},
                           {"weight", tensor("p_g")},
                           {"bias", tensor("p_h")}};
  EXPECT_EQ(without_numbers(of_node("aten.layer_norm.default", layer, {2, 4}, b)),
            over("1", "%x") + "%N = multiply(%N, " + g + ");\n%N = add(%N, " + h + ");\n%N\n");
  ExportedBuilder native = b;
  native.input("x", {2, 4});
  native.raw_node("torch.ops.aten.native_layer_norm.default",
                  Json::array({tensor("y"), tensor("m"), tensor("r")}), layer);
  native.output("y");
  EXPECT_EQ(import_text(native.build(), {}), of_node("aten.layer_norm.default", layer, {2, 4}, b));
  EXPECT_EQ(
      without_numbers(of_node("aten.group_norm.default",
                              {{"input", tensor("x")}, {"num_groups", integer(2)}, {"weight", tensor("p_g")}},
                              {1, 4, 3, 3}, b)),
      "%N = reshape(%x, newshape=[1, 2, 18]);\n" + over("2", "%N") +
          "%N = reshape(%N, newshape=[1, 4, 3, 3]);\n%N = reshape(" + g +
          ", newshape=[1, 4, 1, 1]);\n%N = multiply(%N, %N);\n%N\n");
  ExportedBuilder core = b;
  core.input("x", {1, 4, 3, 3});
  core.raw_node("torch.ops.aten.native_group_norm.default",
                Json::array({tensor("y"), tensor("m"), tensor("r")}),
                {{"input", tensor("x")},
                 {"weight", tensor("p_g")},
                 {"bias", none()},
                 {"N", integer(1)},
                 {"C", integer(4)},
                 {"HxW", integer(9)},
                 {"group", integer(2)},
                 {"eps", number(1e-5)}});
  core.output("y");
  const Arguments groups = {{"input", tensor("x")}, {"num_groups", integer(2)}, {"weight", tensor("p_g")}};
  EXPECT_EQ(import_text(core.build(), {}), of_node("aten.group_norm.default", groups, {1, 4, 3, 3}, b));
  EXPECT_EQ(
      without_numbers(of_node("aten.instance_norm.default",
                              {{"input", tensor("x")}, {"use_input_stats", boolean(true)}}, {1, 4, 3, 3}, b)),
      "%N = reshape(%x, newshape=[1, 4, 9]);\n" + over("2", "%N") +
          "%N = reshape(%N, newshape=[1, 4, 3, 3]);\n%N\n");
  EXPECT_EQ(of_node("aten.layer_norm.default", {{"input", tensor("x")}, {"normalized_shape", integers({3})}},
                    {2, 4}),
            broken("aten::layer_norm 'y': normalized_shape [3] is not the end of [2, 4]"));
}

TEST(ExportedOperators, Attention) {
  const Arguments arguments = {{"query", tensor("x")}, {"key", tensor("x")}, {"value", tensor("x")}};
  EXPECT_EQ(of_node("aten.scaled_dot_product_attention.default", arguments, {1, 2, 3, 4}),
            "%0 = nn.batch_matmul(%x, %x, transpose_b=True);\n%1 = multiply(%0, 0.5f);\n"
            "%2 = nn.softmax(%1, axis=3);\n%3 = nn.batch_matmul(%2, %x);\n%3\n");
  Arguments causal = arguments;
  causal.emplace_back("is_causal", boolean(true));
  EXPECT_EQ(of_node("aten.scaled_dot_product_attention.default", causal, {1, 2, 3, 4}),
            unsupported("aten::scaled_dot_product_attention with is_causal=True"));
}

// -- recurrent layers

Arguments recurrent(const Json& states, int64_t layers = 1) {
  return {{"input", tensor("x")},
          {"hx", states},
          {"params", tensors({"p_w", "p_r"})},
          {"has_biases", boolean(false)},
          {"num_layers", integer(layers)},
          {"dropout", number(0)},
          {"train", boolean(false)},
          {"bidirectional", boolean(false)},
          {"batch_first", boolean(true)}};
}

// PyTorch's gates of a GRU are r, z, n, and those of the IR z, r, n.
TEST(ExportedOperators, RecurrentLayers) {
  ExportedBuilder b;
  b.input("x", {1, 4, 2}).input("h", {1, 1, 1});
  b.weight("w", {3, 2}, kFloat, bytes_of<float>({1, 2, 3, 4, 5, 6}));
  b.weight("r", {3, 1}, kFloat, bytes_of<float>({7, 8, 9}));
  b.raw_node("torch.ops.aten.gru.input", Json::array({tensor("y"), tensor("s")}), recurrent(tensor("h")));
  b.output("y").output("s");
  const std::string body = import_text(b.build(), {});
  const std::string weights = "const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6])";
  EXPECT_EQ(body.substr(0, body.find("%4")),
            "%0 = strided_slice(" + weights +
                ", begin=[1], end=[2], strides=[1], axes=[0]);\n%1 = strided_slice(" + weights +
                ", begin=[0], end=[1], strides=[1], axes=[0]);\n%2 = strided_slice(" + weights +
                ", begin=[2], end=[3], strides=[1], axes=[0]);\n%3 = concatenate((%0, %1, %2));\n");
  EXPECT_NE(body.find("reset_after=True"), std::string::npos) << body;

  ExportedBuilder lstm;
  lstm.input("x", {1, 4, 2}).input("h", {1, 1, 1}).input("c", {1, 1, 1});
  lstm.weight("w", {4, 2}, kFloat, bytes_of(std::vector<float>(8, 1)));
  lstm.weight("r", {4, 1}, kFloat, bytes_of(std::vector<float>(4, 2)));
  lstm.raw_node("torch.ops.aten.lstm.input", Json::array({tensor("y"), tensor("s"), tensor("t")}),
                recurrent(tensors({"h", "c"})));
  lstm.output("y");
  EXPECT_NE(import_text(lstm.build(), {}).find("= nn.lstm(%x, const(Tensor[(4, 2), float32]"),
            std::string::npos)
      << import_text(lstm.build(), {});
  lstm.graph()["nodes"][0]["inputs"][4]["arg"] = integer(2);
  EXPECT_EQ(import_text(lstm.build(), {}),
            unsupported("aten::lstm with 2 weights and biases in the place of 4 (a projection?)"));
}

TEST(ExportedOperators, ConstantsOfOneValue) {
  const auto sum_with = [](const std::string& target, const Arguments& arguments) {
    ExportedBuilder b;
    b.input("x", {2}).node(target, "c", arguments);
    b.node("aten.add.Tensor", "y", {{"self", tensor("x")}, {"other", tensor("c")}}).output("y");
    return import_text(b.build(), {});
  };
  const auto sum_of = [](const std::string& values) {
    return "%0 = add(%x, const(Tensor[(2), float32], [" + values + "]));\n%0\n";
  };
  const std::pair<std::string, Json> size = {"size", integers({2})};
  EXPECT_EQ(sum_with("aten.zeros.default", {size, {"device", {{"as_device", {{"type", "cpu"}}}}}}),
            sum_of("0, 0"));
  EXPECT_EQ(sum_with("aten.ones.default", {size, {"dtype", dtype(kFloat)}}), sum_of("1, 1"));
  EXPECT_EQ(sum_with("aten.full.default", {size, {"fill_value", number(2.5)}}), sum_of("2.5, 2.5"));
  EXPECT_NE(
      sum_with("aten.zeros.default", {size, {"dtype", dtype(kLong)}}).find("a result other than float32"),
      std::string::npos);
  EXPECT_NE(sum_with("aten.ones.default", {{"size", integers({1 << 10, 1 << 11})}}).find("2097152 elements"),
            std::string::npos);
}

// -- movement

TEST(ExportedOperators, Shapes) {
  const auto of = [](const std::string& target, const Arguments& more, const Json& shape) {
    Arguments arguments = {{"self", tensor("x")}};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return of_node(target, arguments, shape);
  };
  EXPECT_EQ(of("aten._unsafe_view.default", {{"size", integers({3, 2})}}, {2, 3}),
            "%0 = reshape(%x, newshape=[3, 2]);\n%0\n");
  EXPECT_EQ(of("aten.unflatten.int", {{"dim", integer(1)}, {"sizes", integers({2, -1})}}, {2, 6}),
            "%0 = reshape(%x, newshape=[2, 2, -1]);\n%0\n");
  EXPECT_EQ(of("aten.t.default", {}, {2, 3}), "%0 = transpose(%x, axes=[1, 0]);\n%0\n");
  EXPECT_EQ(of("aten.pixel_shuffle.default", {{"upscale_factor", integer(2)}}, {1, 8, 3, 4}),
            "%0 = reshape(%x, newshape=[1, 2, 2, 2, 3, 4]);\n%1 = transpose(%0, axes=[0, 1, 4, 2, 5, 3]);\n"
            "%2 = reshape(%1, newshape=[1, 2, 6, 8]);\n%2\n");
  EXPECT_EQ(of("aten.expand.default", {{"size", integers({2, -1, 3})}}, {2, 1}),
            "%0 = reshape(%x, newshape=[1, 2, 1]);\n%1 = take(%0, const(Tensor[(2), int64], [0, 0]));\n"
            "%2 = take(%1, const(Tensor[(3), int64], [0, 0, 0]), axis=2);\n%2\n");
  EXPECT_EQ(of("aten.expand.default", {{"size", integers({3, 2})}}, {2, 2}),
            broken("aten::expand 'y': sizes [3, 2] of a tensor [2, 2]"));
  for (const char* same : {"aten.alias.default", "aten.lift_fresh_copy.default", "aten._to_copy.default"})
    EXPECT_EQ(of(same, {}, {2, 3}), "%x\n");
  EXPECT_EQ(of("aten.to.dtype", {{"dtype", dtype(kFloat)}}, {2, 3}), "%x\n");
  EXPECT_EQ(of("aten.to.dtype", {{"dtype", dtype(kLong)}}, {2, 3}),
            unsupported("aten::to with another dtype"));
}

// Each makes a constant of 8 MiB of a few bytes of the program.
TEST(ExportedOperators, RepeatedElementsAreCounted) {
  ExportedBuilder b;
  b.input("x", {1, 1});
  for (int64_t i = 0; i < 100; ++i) {
    b.node("aten.expand.default", "y" + std::to_string(i),
           {{"self", tensor("x")}, {"size", integers({1, (1 << 20) - i})}});
  }
  EXPECT_EQ(import_text(b.build(), {}),
            broken("aten::expand 'y61': the code takes more than 1000000 steps: it is no network"));
}

TEST(ExportedOperators, PartsAndRows) {
  ExportedBuilder b;
  b.input("x", {2, 3});
  b.raw_node("torch.ops.aten.unbind.int", Json::array({tensors({"a", "b"})}), {{"self", tensor("x")}});
  b.node("aten.stack.default", "y", {{"tensors", tensors({"b", "a"})}, {"dim", integer(1)}});
  b.output("y");
  EXPECT_EQ(import_text(b.build(), {}),
            "%0 = split(%x, indices_or_sections=2);\n%1 = reshape(%0.0, newshape=[3]);\n"
            "%2 = reshape(%0.1, newshape=[3]);\n%3 = reshape(%2, newshape=[3, 1]);\n"
            "%4 = reshape(%1, newshape=[3, 1]);\n%5 = concatenate((%3, %4), axis=1);\n%5\n");
  ExportedBuilder table;
  table.input("i", {1, 2}, kLong).weight("w", {3, 1}, kFloat, bytes_of<float>({1, 2, 3}));
  table.node("aten.embedding.default", "y", {{"weight", tensor("p_w")}, {"indices", tensor("i")}})
      .output("y");
  EXPECT_EQ(import_text(table.build(), {}),
            "%0 = take(const(Tensor[(3, 1), float32], [1, 2, 3]), %i);\n%0\n");
}

TEST(ExportedOperators, ImagesOfAnotherSize) {
  Arguments arguments = {{"input", tensor("x")},
                         {"output_size", none()},
                         {"align_corners", boolean(false)},
                         {"scale_factors", {{"as_floats", {2.0, 2.0}}}}};
  EXPECT_EQ(of_node("aten.upsample_bilinear2d.vec", arguments, {1, 1, 3, 4}),
            "%0 = image.resize2d(%x, size=[6, 8]);\n%0\n");
  arguments[1].second = integers({5, 7});
  EXPECT_EQ(of_node("aten.upsample_bilinear2d.vec", arguments, {1, 1, 3, 4}),
            unsupported("aten::upsample_bilinear2d with a factor that makes no whole number of 3"));
  EXPECT_EQ(
      of_node("aten.upsample_bilinear2d.default",
              {{"self", tensor("x")}, {"output_size", integers({5, 7})}, {"align_corners", boolean(true)}},
              {1, 1, 3, 4}),
      "%0 = image.resize2d(%x, size=[5, 7], coordinate_transformation_mode=\"align_corners\");\n%0\n");
  EXPECT_EQ(of_node("aten.upsample_nearest2d.default",
                    {{"self", tensor("x")}, {"output_size", integers({3, 2})}}, {1, 1, 3, 4}),
            "%0 = take(%x, const(Tensor[(2), int64], [0, 2]), axis=3);\n%0\n");
}

TEST(ExportedOperators, PoolsOfTheCoreOperators) {
  ExportedBuilder b;
  b.input("x", {1, 2, 4, 4});
  b.raw_node("torch.ops.aten.max_pool2d_with_indices.default", Json::array({tensor("y"), tensor("at")}),
             {{"self", tensor("x")}, {"kernel_size", integers({2, 2})}, {"stride", integers({2, 2})}});
  b.node("aten._adaptive_avg_pool2d.default", "z",
         {{"self", tensor("y")}, {"output_size", integers({1, 1})}});
  b.output("z");
  EXPECT_EQ(import_text(b.build(), {}),
            "%0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]);\n"
            "%1 = nn.avg_pool2d(%0, pool_size=[2, 2], strides=[2, 2]);\n%1\n");
}

TEST(ExportedOperators, AssertionsAreDropped) {
  ExportedBuilder b;
  b.input("x", {2, 3});
  for (const char* target : {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range_for_size"}) {
    const char* first = std::string_view(target).starts_with("sym") ? "size" : "self";
    b.raw_node(std::string("torch.ops.aten.") + target + ".default", Json::array(), {{first, integer(1)}});
  }
  b.node("aten.relu.default", "y", {{"self", tensor("x")}}).output("y");
  EXPECT_EQ(import_text(b.build(), {}), "%0 = nn.relu(%x);\n%0\n");
}

// -- constants of one element, and other overloads

ExportedBuilder with_ones() {
  ExportedBuilder b;
  b.weight("k", {1, 1, 1}, kFloat, bytes_of<float>({2})).weight("s", {}, kFloat, bytes_of<float>({0.5f}));
  b.weight("d", {1}, kFloat, bytes_of<float>({0.25f}));
  return b;
}

// A constant of rank 3 makes a result of rank 3.
TEST(ExportedOperators, ConstantsOfOneElementKeepTheirRank) {
  const auto of = [](const std::string& target, const std::string& second, const std::string& other) {
    return of_node(target, {{"self", tensor("x")}, {second, tensor(other)}}, {2, 3}, with_ones());
  };
  EXPECT_EQ(of("aten.mul.Tensor", "other", "p_k"),
            "%0 = multiply(%x, const(Tensor[(1, 1, 1), float32], [2]));\n%0\n");
  EXPECT_EQ(of("aten.mul.Tensor", "other", "p_s"), "%0 = multiply(%x, 0.5f);\n%0\n");
  EXPECT_EQ(of("aten.mul.Tensor", "other", "p_d"), "%0 = multiply(%x, 0.25f);\n%0\n");
  EXPECT_EQ(of("aten.pow.Tensor_Tensor", "exponent", "p_k"),
            "%0 = power(%x, const(Tensor[(1, 1, 1), float32], [2]));\n%0\n");
  EXPECT_EQ(of("aten.pow.Tensor_Tensor", "exponent", "p_d"), "%0 = power(%x, 0.25f);\n%0\n");
}

TEST(ExportedOperators, ConstantsOfOneElementAreAddedAndMultiplied) {
  for (const auto& [target, ir_op] : {std::pair{"mul", "multiply"}, std::pair{"add", "add"}}) {
    ExportedBuilder b = with_ones();
    b.node(std::string("aten.") + target + ".Tensor", "c",
           {{"self", tensor("p_s")}, {"other", tensor("p_d")}});
    const std::string body =
        of_node("aten.maximum.default", {{"self", tensor("x")}, {"other", tensor("c")}}, {2, 3}, b);
    EXPECT_EQ(body, std::string("%0 = ") + ir_op +
                        "(0.5f, const(Tensor[(1), float32], [0.25]));\n%1 = maximum(%x, %0);\n%1\n");
  }
}

TEST(ExportedOperators, ResultsOfAnotherTypeAreRefused) {
  for (const char* target : {"softmax", "log_softmax"}) {
    const std::string name = std::string("aten.") + target + ".int";
    const Arguments doubles = {{"self", tensor("x")}, {"dim", integer(1)}, {"dtype", dtype(8)}};
    EXPECT_EQ(of_node(name, doubles, {2, 3}),
              unsupported(std::string("aten::") + target + " with a result other than float32"));
    const Arguments floats = {{"self", tensor("x")}, {"dim", integer(1)}, {"dtype", dtype(kFloat)}};
    EXPECT_EQ(of_node(name, floats, {2, 3}), std::string("%0 = nn.") + target + "(%x, axis=1);\n%0\n");
  }
}

// What PyTorch computes is no broken model.
TEST(ExportedOperators, OtherOverloadsAreMissing) {
  EXPECT_EQ(of_node("aten.clamp.Tensor", {{"self", tensor("x")}, {"min", tensor("x")}}, {2, 3}),
            unsupported("aten::clamp with a tensor in the place of a number"));
  EXPECT_EQ(of_node("aten.pow.Scalar", {{"self", number(2)}, {"exponent", tensor("x")}}, {2, 3}),
            "%0 = power(2f, %x);\n%0\n");
  EXPECT_EQ(of_node("aten.exp.default", {{"self", number(2)}}, {2, 3}),
            unsupported("aten::exp with a number in the place of a tensor"));
  ExportedBuilder two;
  two.input("z", {2, 3}).node("aten.clamp.Tensor", "a", {{"self", tensor("z")}, {"min", tensor("z")}});
  const std::string text = of_node("aten.fft_fft.default", {{"self", tensor("x")}}, {2, 3}, two);
  EXPECT_NE(text.find("2 operators that qplan does not import"), std::string::npos) << text;
}

// Bounds in the wrong order: all elements are the upper one, but hardtanh refuses them.
TEST(ExportedOperators, AClampWithoutARangeIsItsUpperBound) {
  EXPECT_EQ(
      of_node("aten.clamp.default", {{"self", tensor("x")}, {"min", number(3)}, {"max", number(1)}}, {2}),
      "%0 = clip(%x, a_min=1f, a_max=1f);\n%0\n");
  EXPECT_EQ(of_node("aten.hardtanh.default",
                    {{"self", tensor("x")}, {"min_val", number(3)}, {"max_val", number(1)}}, {2}),
            broken("aten::hardtanh 'y': the lower bound is above the upper one"));
}

TEST(ExportedOperators, StacksAreOfOneShape) {
  ExportedBuilder b;
  b.input("z", {3, 2});
  EXPECT_EQ(of_node("aten.stack.default", {{"tensors", tensors({"x", "z"})}}, {2, 3}, b),
            broken("aten::stack 'y': tensors of shapes [2, 3] and [3, 2]"));
}

}  // namespace
}  // namespace qplan::pytorch_test::exported_operators_test
