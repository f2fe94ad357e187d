// The IR that operators become which exported programs have: quantisation as PT2E writes it, functions,
// normalisations and movement. Layers are in exported_layers_test.cc. Others are TorchScript's
// (pytorch_operators_test.cc), with the names of arguments that a program gives them.
#include <gtest/gtest.h>

#include <cctype>

#include "tests/packer/import/exported_helpers.h"

namespace qplan::pytorch_test::exported_operators_test {
namespace {

using Arguments = ExportedBuilder::Arguments;

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
  EXPECT_NE(of("aten.clamp_max.default", {{"max", number(6)}}).find("a_min=-inff, a_max=6f"),
            std::string::npos);
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
  EXPECT_EQ(
      of("aten.expand.default", {{"size", integers({2, -1, 3})}}, {2, 1}),
      "%0 = reshape(%x, newshape=[1, 2, 1]);\n%1 = take(%0, const(Tensor[(2), int64], [0, 0]), axis=0);\n"
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
            "%0 = take(const(Tensor[(3, 1), float32], [1, 2, 3]), %i, axis=0, mode=\"fast\");\n%0\n");
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
