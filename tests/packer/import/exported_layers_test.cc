// The IR that layers on float32 of exported programs become: convolutions, products, batch normalisation,
// LSTM and GRU.
#include <gtest/gtest.h>

#include "tests/packer/import/exported_helpers.h"

namespace qplan::pytorch_test::exported_layers_test {
namespace {

using Arguments = ExportedBuilder::Arguments;

ExportedBuilder with_weights() {
  ExportedBuilder b;
  b.weight("w", {2, 2, 1, 1}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  b.weight("b", {2}, kFloat, bytes_of<float>({5, 6}));
  return b;
}
constexpr char kWeights[] = "const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4])";

TEST(ExportedLayers, Convolutions) {
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
TEST(ExportedLayers, PaddingByName) {
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

TEST(ExportedLayers, ConvolutionsOfRows) {
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

TEST(ExportedLayers, ConvolutionsWithoutABatch) {
  const std::string image = of_node(
      "aten.conv2d.default", {{"input", tensor("x")}, {"weight", tensor("p_w")}, {"bias", tensor("p_b")}},
      {2, 4, 3}, with_weights());
  EXPECT_EQ(image, std::string("%0 = reshape(%x, newshape=[1, 2, 4, 3]);\n%1 = nn.conv2d(%0, ") + kWeights +
                       ");\n%2 = nn.bias_add(%1, const(Tensor[(2), float32], [5, 6]));\n"
                       "%3 = reshape(%2, newshape=[2, 4, 3]);\n%3\n");
  ExportedBuilder b;
  b.weight("w", {2, 2, 1}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  EXPECT_EQ(of_node("aten.conv1d.default", {{"input", tensor("x")}, {"weight", tensor("p_w")}}, {2, 8}, b),
            "%0 = reshape(%x, newshape=[1, 2, 1, 8]);\n"
            "%1 = reshape(const(Tensor[(2, 2, 1), float32], [1, 2, 3, 4]), newshape=[2, 2, 1, 1]);\n"
            "%2 = nn.conv2d(%0, %1);\n%3 = reshape(%2, newshape=[2, 8]);\n%3\n");
  ExportedBuilder turned;
  turned.weight("w", {2, 1, 2, 2}, kFloat, bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string body = of_node("aten.conv_transpose2d.input",
                                   {{"input", tensor("x")}, {"weight", tensor("p_w")}}, {2, 3, 3}, turned);
  EXPECT_NE(body.find("%0 = reshape(%x, newshape=[1, 2, 3, 3]);\n"), std::string::npos) << body;
  EXPECT_NE(body.find("newshape=[1, 4, 4]);"), std::string::npos) << body;
}

TEST(ExportedLayers, TransposedConvolutionsOfRows) {
  ExportedBuilder b;
  b.weight("w", {2, 1, 2}, kFloat, bytes_of<float>({1, 2, 3, 4}));
  const std::string body = of_node(
      "aten.conv_transpose1d.default",
      {{"input", tensor("x")}, {"weight", tensor("p_w")}, {"stride", {{"as_ints", {2}}}}}, {1, 2, 3}, b);
  EXPECT_NE(body.find("newshape=[1, 2, 1, 6]"), std::string::npos) << body;
  EXPECT_NE(body.find("padding=[0, 1, 0, 0]"), std::string::npos) << body;
  EXPECT_NE(body.find("newshape=[1, 1, 6]);"), std::string::npos) << body;
}

TEST(ExportedLayers, LinearLayersAndProducts) {
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

TEST(ExportedLayers, BatchNormalisation) {
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
TEST(ExportedLayers, TransposedConvolutions) {
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

// -- recurrent

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
TEST(ExportedLayers, RecurrentLayers) {
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

}  // namespace
}  // namespace qplan::pytorch_test::exported_layers_test
