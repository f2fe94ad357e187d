// The model around its operators: inputs, outputs, names, initializers, what a caller gives, and refusals.
#include <gtest/gtest.h>

#include <cstring>

#include "src/packer/import/import.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_graph_test {
namespace {

OnnxBuilder identity_model(const std::vector<int64_t>& shape) {
  OnnxBuilder b;
  b.input("x", kFloat, shape).node("Relu", {"x"}, {"y"}).output("y", kFloat, shape);
  return b;
}

const std::string kArgument = std::to_string(QPLAN_INVALID_ARGUMENT) + ": onnx: 'net.onnx': ";

TEST(OnnxGraph, NamesOfTheSourceAreKept) {
  OnnxBuilder b;
  b.input("data", kFloat, {2}).constant<float>("w", kFloat, {2}, {1, 2}).node("Add", {"data", "w"}, {"sum"});
  b.output("sum", kFloat, {2});
  const ir::Module module = import_builder(b);
  const ir::Function& main = module.main();
  EXPECT_EQ(main.value(main.params()[0]).name, "data");
  EXPECT_EQ(main.nodes()[0].name, "sum");  // the node has no name of its own
  EXPECT_EQ(main.value(main.nodes()[0].operands[1]).name, "w");
  EXPECT_EQ(main.value(main.outputs()[0]).name, "sum");
  EXPECT_EQ(main.output_names(), std::vector<std::string>{"sum"});
}

TEST(OnnxGraph, InitializersAmongTheInputsAreNoParameters) {
  OnnxBuilder b;
  b.input("x", kFloat, {1}).input("w", kFloat, {1}).constant<float>("w", kFloat, {1}, {2});
  b.node("Mul", {"x", "w"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(import_body(b), "%0 = multiply(%x, const(Tensor[(1), float32], [2]));\n%0\n");
}

TEST(OnnxGraph, AnOpenBatchIsOneAndSaidSo) {
  std::vector<std::string> log;
  const ir::Module module = import_builder(identity_model({-1, 3}), {}, &log);
  EXPECT_EQ(module.main().type(module.main().params()[0]).shape, (ir::Shape{1, 3}));
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0], "onnx: input 'x' has an open batch extent: 1 is taken");
}

TEST(OnnxGraph, OtherOpenExtentsMustBeGiven) {
  EXPECT_EQ(refusal(identity_model({1, -1})),
            kArgument +
                "input 'x' has shape [1, N]: extent 1 is open; give it: --input-shape "
                "NAME=1x3x224x224:float32 with its name and shape");
  ImportOptions options;
  options.input_types["x"] = {ir::kFloat32, {1, 7}};
  const ir::Module module = import_builder(identity_model({1, -1}), options);
  EXPECT_EQ(module.main().type(module.main().params()[0]).shape, (ir::Shape{1, 7}));
  options.input_types["x"] = {ir::kFloat32, {2, 7}};
  EXPECT_EQ(
      refusal(identity_model({1, -1}), options),
      kArgument + "input 'x' is given as Tensor[(2, 7), float32], but the model declares float32 [1, N]");
  options.input_types["x"] = {ir::kInt8, {1, 7}};
  EXPECT_EQ(refusal(identity_model({1, -1}), options),
            kArgument + "input 'x' is given as Tensor[(1, 7), int8], but the model declares float32 [1, N]");
}

TEST(OnnxGraph, BoundInputsBecomeConstants) {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).input("s", kFloat, {}).input("z", kInt8, {});
  b.node("QuantizeLinear", {"x", "s", "z"}, {"y"}).output("y", kInt8, {2});
  EXPECT_EQ(refusal(b), kList +
                            "QuantizeLinear with scales that are not constant, but input 's' (--bind gives "
                            "it a value) ('y')");
  ImportOptions options;
  options.bindings["s"] = ir::make_scalar(0.5f);
  options.bindings["z"] = ir::make_constant<int8_t>(ir::kInt8, {}, {3});
  EXPECT_EQ(import_body(b, options), "%0 = qnn.quantize(%x, 0.5f, 3, contract=\"f32e\");\n%0\n");
  options.bindings["z"] = ir::make_scalar(0.5f);
  EXPECT_EQ(refusal(b, options), kArgument + "input 'z' is bound as float32, but the model declares int8 []");
}

TEST(OnnxGraph, OptionsThatNameNoInputAreRefused) {
  ImportOptions options;
  options.bindings["w"] = ir::make_scalar(0.5f);
  EXPECT_EQ(refusal(identity_model({1}), options),
            kArgument + "a binding names 'w', but the model has no such input; inputs are 'x'");
  options.bindings.clear();
  options.input_types["v"] = {ir::kFloat32, {1}};
  EXPECT_EQ(refusal(identity_model({1}), options),
            kArgument + "an input type names 'v', but the model has no such input; inputs are 'x'");
}

TEST(OnnxGraph, QuantisationOfInputsAndOutputs) {
  OnnxBuilder b;
  b.input("x", kInt8, {1, 1, 2, 2}).scale("s", 0.5f).scale("t", 0.25f).zero_point("z", 3).ints("shape", {4});
  b.node("Reshape", {"x", "shape"}, {"r"}).node("DequantizeLinear", {"r", "s", "z"}, {"d"});
  b.node("Relu", {"d"}, {"e"}).node("QuantizeLinear", {"e", "t", "z"}, {"q"});
  b.node("Transpose", {"q"}, {"y"}).output("y", kInt8, {4}).output("e", kFloat, {4});
  const ir::Module module = import_builder(b);
  const auto input = input_quantization(module.main(), 0), output = output_quantization(module.main(), 0);
  ASSERT_TRUE(input && output);
  EXPECT_EQ(input->scale, 0.5f);
  EXPECT_EQ(input->zero_point, 3);
  EXPECT_EQ(output->scale, 0.25f);
  EXPECT_FALSE(output_quantization(module.main(), 1));
}

TEST(OnnxGraph, AllUnsupportedUsesAreToldAtOnce) {
  OnnxBuilder b;
  b.import_opset("my.domain", 1).input("x", kFloat, {1, 2});
  b.node("Foo", {"x"}, {"a"}, {}, "my.domain").node("Relu", {"a"}, {"b"}).node("Cosh", {"b"}, {"c"});
  b.node("Cosh", {"x"}, {"d"}).node("MaxPool", {"x"}, {"e"}, {attr_ints("kernel_shape", {2})});
  b.node("Relu", {"x"}, {"f"}, {attr_float("slope", 1)})
      .node("Add", {"c", "f"}, {"y"})
      .output("y", kFloat, {1});
  EXPECT_EQ(refusal(b),
            "-49: onnx: 'net.onnx': 5 operators that qplan does not import:\n"
            "  2 x Cosh (first 'c')\n"
            "  1 x MaxPool with data of rank 2; reshape it to rank 3, 4 or 5 ('e')\n"
            "  1 x Relu with attribute 'slope' ('f')\n"
            "  1 x my.domain.Foo ('a')");
}

// Nothing of such a domain is imported: its opset need not be named.
TEST(OnnxGraph, AnUnknownDomainNeedsNoOpset) {
  OnnxBuilder b;
  b.input("x", kFloat, {1}).node("Foo", {"x"}, {"y"}, {}, "my.domain").output("y", kFloat, {1});
  EXPECT_EQ(refusal(b), kList + "my.domain.Foo ('y')");
}

TEST(OnnxGraph, SubgraphsAndSparseConstantsAreRefused) {
  OnnxBuilder b = identity_model({1});
  b.node("If", {"x"}, {"z"}, {attr("then_branch", 5).message(6, Message().bytes(2, "g"))});
  EXPECT_EQ(refusal(b), kInvalid + "node 1 If 'z': a branch is missing");
  OnnxBuilder a;
  a.input("x", kFloat, {1}).node("Relu", {"x"}, {"y"}, {attr("body", 5).message(6, Message().bytes(2, "g"))});
  a.output("y", kFloat, {1});
  EXPECT_EQ(refusal(a), kList + "Relu with attribute 'body' ('y')");
  OnnxBuilder s = identity_model({1});
  s.graph().message(15, Message().message(1, tensor_header("w", kFloat, {1})));
  EXPECT_NE(refusal(s).find("imported"), std::string::npos);  // nobody reads it
  s.node("Add", {"x", "w"}, {"z"});
  EXPECT_EQ(refusal(s), kList + "Add with a sparse constant ('z')");
}

TEST(OnnxGraph, ExternalDataIsRefusedWithItsFile) {
  OnnxBuilder b;
  const Message location = Message().bytes(1, "location").bytes(2, "weights.bin");
  b.input("x", kFloat, {1}).initializer(tensor_header("w", kFloat, {1}).message(13, location).number(14, 1));
  b.node("Add", {"x", "w"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(refusal(b),
            kList +
                "Add with data in another file, 'weights.bin' (save the model in one file, with its data "
                "inside) ('y')");
}

TEST(OnnxGraph, BrokenGraphs) {
  OnnxBuilder undefined;
  undefined.node("Relu", {"x"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(refusal(undefined), kInvalid + "node 0 Relu 'y': value 'x' is read before any node writes it");
  OnnxBuilder twice = identity_model({1});
  twice.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(refusal(twice), kInvalid + "node 1 Relu 'y': value 'y' is defined twice");
  OnnxBuilder no_output;
  no_output.input("x", kFloat, {1});
  EXPECT_EQ(refusal(no_output), kInvalid + "the model has no outputs");
  OnnxBuilder missing;
  missing.input("x", kFloat, {1}).output("y", kFloat, {1});
  EXPECT_EQ(refusal(missing), kInvalid + "value 'y' is read before any node writes it");
  OnnxBuilder type;
  type.input("x", kFloat, {1}).node("Relu", {"x"}, {"y"}).output("y", kInt8, {1});
  EXPECT_EQ(refusal(type),
            kInvalid + "output 'y' is declared as int8, but its node gives Tensor[(1), float32]");
  OnnxBuilder domain;
  domain.input("x", kFloat, {1})
      .node("QLinearAdd", {"x"}, {"y"}, {}, "com.microsoft")
      .output("y", kFloat, {1});
  EXPECT_EQ(refusal(domain), kInvalid + "the model states no opset of domain 'com.microsoft'");
  OnnxBuilder arity;
  arity.input("x", kFloat, {1}).node("Relu", {"x", "x"}, {"y"}).output("y", kFloat, {1});
  EXPECT_EQ(refusal(arity), kInvalid + "node 0 Relu 'y': the node has 2 inputs, expected 1");
}

TEST(OnnxGraph, InputsThatNoFunctionCanHave) {
  EXPECT_EQ(refusal(identity_model({0, 3})),
            std::to_string(QPLAN_MODEL_UNSUPPORTED) +
                ": onnx: 'net.onnx': input 'x' has shape [0, 3]: no elements");
  EXPECT_EQ(refusal(identity_model({1, 1, 1, 1, 1, 1, 1, 1, 1})),
            kInvalid + "input 'x': rank 9 is larger than 8");
  OnnxBuilder text;
  text.input("x", kString, {1}).output("x", kString, {1});
  EXPECT_EQ(refusal(text),
            std::to_string(QPLAN_MODEL_UNSUPPORTED) +
                ": onnx: 'net.onnx': input 'x' is a string tensor; qplan runs networks on numbers");
  OnnxBuilder sequence;
  sequence.graph().message(11, Message().bytes(1, "x").message(2, Message().message(4, Message())));
  EXPECT_EQ(refusal(sequence),
            std::to_string(QPLAN_MODEL_UNSUPPORTED) + ": onnx: 'net.onnx': input 'x' is no tensor");
}

TEST(OnnxGraph, ANewerOpsetIsReadWithAWarning) {
  OnnxBuilder b(27);
  b.input("x", kFloat, {1}).node("Relu", {"x"}, {"y"}).output("y", kFloat, {1});
  std::vector<std::string> log;
  import_builder(b, {}, &log);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0],
            "onnx: 'net.onnx': opset 27 is newer than 25, the newest that is known: its operators are read "
            "as of that "
            "one");
}

TEST(OnnxGraph, AnotherDeclaredOutputShapeIsAWarning) {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 2}).node("Relu", {"x"}, {"y"}).output("y", kFloat, {-1, 3});
  std::vector<std::string> log;
  import_builder(b, {}, &log);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0],
            "onnx: output 'y' is declared with shape [N, 3], but its node gives Tensor[(1, 2), float32]");
}

TEST(OnnxSniff, KnowsModelsByTheirFields) {
  const std::vector<uint8_t> model = identity_model({1}).finish();
  EXPECT_TRUE(looks_like_onnx(model));
  EXPECT_TRUE(looks_like_onnx(std::span(model).first(model.size() / 2)));  // truncated within the graph
  const auto looks = [](std::string_view text) {
    return looks_like_onnx({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_FALSE(looks(""));
  EXPECT_FALSE(looks(std::string(64, '\0')));
  EXPECT_FALSE(looks(std::string(64, '\xff')));
  EXPECT_FALSE(looks("PK\3\4 and more of a zip"));
  EXPECT_FALSE(looks(std::string_view("\x1c\0\0\0TFL3\0\0\0\0", 12)));
  EXPECT_FALSE(looks("def @main(%x: Tensor[(1), int8]) { %x }"));
  EXPECT_FALSE(looks("#[version = \"0.0.5\"]\ndef @main() {}"));
  EXPECT_FALSE(looks("%0 = qnn.quantize(%x, 1f, 0);"));
  EXPECT_FALSE(looks("\n\n// a comment\ndef @main(%x: int8) { %x }"));
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_graph_test
