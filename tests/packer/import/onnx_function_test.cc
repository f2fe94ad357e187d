// Functions of an ONNX model (ModelProto.functions): a call is imported as the nodes that it stands for.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_function_test {
namespace {

struct Function {
  std::string name;
  Names inputs, outputs;
  std::vector<Message> nodes;
  Names attributes = {};
  std::vector<Message> defaults = {};
  int64_t opset = 13;
};

Message message_of(const Function& function) {
  Message message;
  message.bytes(1, function.name);
  for (const std::string& name : function.inputs) message.bytes(4, name);
  for (const std::string& name : function.outputs) message.bytes(5, name);
  for (const std::string& name : function.attributes) message.bytes(6, name);
  for (const Message& node : function.nodes) message.message(7, node);
  message.message(9, Message().bytes(1, "").number(2, function.opset));
  message.message(9, Message().bytes(1, "my").number(2, 1));
  message.bytes(10, "my");
  for (const Message& attribute : function.defaults) message.message(11, attribute);
  return message;
}

// x -> my.F -> y
OnnxBuilder calling(const std::vector<Function>& functions, const std::vector<Message>& attributes = {}) {
  OnnxBuilder b;
  b.import_opset("my", 1).input("x", kFloat, {2, 3});
  b.node(functions[0].name, {"x"}, {"y"}, attributes, "my").output("y", kFloat, {2, 3});
  for (const Function& function : functions) b.function(message_of(function));
  return b;
}

const Function kTwice{
    "F", {"a"}, {"c"}, {node_message("Relu", {"a"}, {"b"}), node_message("Add", {"b", "a"}, {"c"})}};

TEST(OnnxFunction, ACallIsItsNodes) {
  EXPECT_EQ(import_body(calling({kTwice})), "%0 = nn.relu(%x);\n%1 = add(%0, %x);\n%1\n");
}

TEST(OnnxFunction, EachCallHasNamesOfItsOwn) {
  OnnxBuilder b;
  // "b" and "c" are names of the caller's, too.
  b.import_opset("my", 1).input("b", kFloat, {2}).node("F", {"b"}, {"c"}, {}, "my");
  b.node("F", {"c"}, {"y"}, {}, "my").output("y", kFloat, {2}).function(message_of(kTwice));
  EXPECT_EQ(import_body(b),
            "%0 = nn.relu(%b);\n%1 = add(%0, %b);\n%2 = nn.relu(%1);\n%3 = add(%2, %1);\n%3\n");
  const ir::Module module = import_builder(b);
  std::vector<std::string> names;
  for (const auto& node : module.main().nodes()) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"c/b", "c/c", "y/b", "y/c"}));
}

TEST(OnnxFunction, FunctionsCallFunctions) {
  const Function outer{
      "G", {"a"}, {"r"}, {node_message("F", {"a"}, {"t"}, {}, "my"), node_message("Abs", {"t"}, {"r"})}};
  EXPECT_EQ(import_body(calling({outer, kTwice})),
            "%0 = nn.relu(%x);\n%1 = add(%0, %x);\n%2 = abs(%1);\n%2\n");
}

TEST(OnnxFunction, AttributesComeFromTheCallOrTheDefault) {
  Function leaky{
      "F", {"a"}, {"b"}, {node_message("LeakyRelu", {"a"}, {"b"}, {attr_reference("alpha", 1, "slope")})}};
  leaky.attributes = {"slope"};
  EXPECT_EQ(import_body(calling({leaky}, {attr_float("slope", 0.25F)})),
            unary_body({"LeakyRelu", {attr_float("alpha", 0.25F)}, 13, kFloat, {2, 3}}));
  EXPECT_EQ(import_body(calling({leaky})), unary_body({"LeakyRelu", {}, 13, kFloat, {2, 3}}))
      << "the operator's default";
  leaky.attributes = {};
  leaky.defaults = {attr_float("slope", 0.5F)};
  EXPECT_EQ(import_body(calling({leaky})),
            unary_body({"LeakyRelu", {attr_float("alpha", 0.5F)}, 13, kFloat, {2, 3}}));
  EXPECT_EQ(refusal(calling({leaky}, {attr_float("other", 1)})),
            kList + "my.F with attribute 'other', which the function does not have ('y')");
}

// Tensors of defaults live as long as the model, whatever message they came in.
TEST(OnnxFunction, ADefaultMayBeATensor) {
  std::vector<float> values(300);
  Message typed = tensor_header("", kFloat, {300});
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
    typed.real(4, values[i]);
  }
  for (const Message& value : {tensor<float>("", kFloat, {300}, values), typed}) {
    Function constant{"F", {"a"}, {"b"}, {}};
    constant.nodes = {node_message("Constant", {}, {"c"}, {attr_reference("value", 4, "c")}),
                      node_message("Add", {"a", "c"}, {"b"})};
    constant.defaults = {attr_tensor("c", value)};
    OnnxBuilder b;
    b.import_opset("my", 1)
        .input("x", kFloat, {300})
        .node("F", {"x"}, {"y"}, {}, "my")
        .output("y", kFloat, {300});
    const ir::Module module = import_builder(b.function(message_of(constant)));
    const ir::ConstantRef found = module.main().value(module.main().nodes()[0].operands[1]).constant;
    ASSERT_NE(found, nullptr);
    EXPECT_TRUE(std::ranges::equal(found->as<float>(), values));
  }
}

TEST(OnnxFunction, SubgraphsReadTheFunctionsValuesAndAttributes) {
  Message branch =
      Message().message(1, node_message("LeakyRelu", {"a"}, {"c"}, {attr_reference("alpha", 1, "slope")}));
  branch.bytes(2, "branch").message(12, Message().bytes(1, "c"));
  const auto graph = [&](std::string_view name) { return attr(name, 5).message(6, branch); };
  Function choice{"F", {"a"}, {"b"}, {}};
  choice.nodes = {
      node_message("Constant", {}, {"yes"}, {attr_tensor("value", tensor<uint8_t>("", kBool, {}, {1}))}),
      node_message("If", {"yes"}, {"b"}, {graph("then_branch"), graph("else_branch")})};
  choice.attributes = {"slope"};
  EXPECT_EQ(import_body(calling({choice}, {attr_float("slope", 0.25F)})),
            unary_body({"LeakyRelu", {attr_float("alpha", 0.25F)}, 13, kFloat, {2, 3}}));
}

TEST(OnnxFunction, InputsThatTheCallLacksAreAbsent) {
  // Clip without a minimum.
  Function clip{"F", {"a", "low", "high"}, {"b"}, {node_message("Clip", {"a", "low", "high"}, {"b"})}};
  OnnxBuilder b, expected;
  for (OnnxBuilder* model : {&b, &expected}) {
    model->input("x", kFloat, {2}).constant<float>("six", kFloat, {}, {6}).output("y", kFloat, {2});
  }
  b.import_opset("my", 1).node("F", {"x", "", "six"}, {"y"}, {}, "my").function(message_of(clip));
  expected.node("Clip", {"x", "", "six"}, {"y"});
  EXPECT_EQ(import_body(b), import_body(expected));
}

TEST(OnnxFunction, OpsetsAreTheFunctions) {
  // Softmax of opset 11 flattens the axes from its own on.
  Function softmax{"F", {"a"}, {"b"}, {node_message("Softmax", {"a"}, {"b"}, {attr_int("axis", 1)})}};
  softmax.opset = 11;
  OnnxBuilder b, expected(11);
  b.import_opset("my", 1).node("F", {"x"}, {"y"}, {}, "my").function(message_of(softmax));
  expected.node("Softmax", {"x"}, {"y"}, {attr_int("axis", 1)});
  for (OnnxBuilder* model : {&b, &expected})
    model->input("x", kFloat, {1, 2, 3}).output("y", kFloat, {1, 2, 3});
  EXPECT_EQ(import_body(b), import_body(expected));
}

TEST(OnnxFunction, WhatAFunctionHasThatIsNotImportedIsListed) {
  const Function cosh{"F", {"a"}, {"b"}, {node_message("Cosh", {"a"}, {"b"})}};
  EXPECT_EQ(refusal(calling({cosh})), kList + "Cosh ('y/b')");
}

TEST(OnnxFunction, AFunctionSeesNothingOfItsCaller) {
  const Function reads_x{"F", {"a"}, {"b"}, {node_message("Relu", {"x"}, {"b"})}};
  EXPECT_EQ(refusal(calling({reads_x})),
            kInvalid + "node 0 my.F 'y': node 0 Relu 'y/b': value 'x' is read before any node writes it");
}

TEST(OnnxFunction, BrokenOnes) {
  const Function self{"F", {"a"}, {"b"}, {node_message("F", {"a"}, {"b"}, {}, "my")}};
  EXPECT_EQ(refusal(calling({self})),
            kInvalid + "node 0 my.F 'y': node 0 my.F 'y/b': the function calls itself");
  const Function none{"F", {}, {"b"}, {}};
  EXPECT_EQ(
      refusal(calling({none})),
      kInvalid + "node 0 my.F 'y': it has 1 inputs and 1 outputs; the function of the model has 0 and 1");
  EXPECT_EQ(refusal(calling({kTwice, kTwice})),
            kList + "my.F with several functions of this name (overloads) ('y')");
}

// Ten functions that call the next one ten times are ten thousand million nodes.
TEST(OnnxFunction, CallsThatMultiplyAreRefused) {
  std::vector<Function> functions;
  for (int i = 0; i < 10; ++i) {
    Function function{i == 0 ? "F" : "F" + std::to_string(i), {"v0"}, {"v10"}, {}};
    for (int k = 0; k < 10; ++k) {
      function.nodes.push_back(node_message(i == 9 ? "Identity" : "F" + std::to_string(i + 1),
                                            {"v" + std::to_string(k)}, {"v" + std::to_string(k + 1)}, {},
                                            i == 9 ? "" : "my"));
    }
    functions.push_back(function);
  }
  EXPECT_NE(refusal(calling(functions)).find("take too long"), std::string::npos);
  // Inputs that a call lacks are looked at, too.
  std::vector<Function> wide;
  const Names many(20000, "");
  for (int i = 0; i < 18; ++i) {
    Names inputs = i == 0 ? Names{"a"} : Names{};
    for (int k = 0; i > 0 && k < 20000; ++k) inputs.push_back("a" + std::to_string(k));
    Names given = many;
    given[0] = i == 0 ? "a" : "a0";
    const std::string next = "F" + std::to_string(i + 1);
    wide.push_back({i == 0 ? "F" : "F" + std::to_string(i), inputs, {"b"}, {}});
    wide.back().nodes = i == 17 ? std::vector<Message>{node_message("Relu", {given[0]}, {"b"})}
                                : std::vector<Message>{node_message(next, given, {"t"}, {}, "my"),
                                                       node_message(next, given, {"b"}, {}, "my")};
  }
  EXPECT_NE(refusal(calling(wide)).find("take too long"), std::string::npos);
  std::vector<Function> chain;
  for (int i = 0; i < 100; ++i) {
    chain.push_back({i == 0 ? "F" : "F" + std::to_string(i),
                     {"a"},
                     {"b"},
                     {node_message("F" + std::to_string(i + 1), {"a"}, {"b"}, {}, "my")}});
  }
  EXPECT_NE(refusal(calling(chain)).find("functions call each other 32 deep"), std::string::npos);
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_function_test
