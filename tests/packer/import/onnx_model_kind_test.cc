// The error states what a model was compiled for, or how it was quantised, before the list of its operators.
#include <gtest/gtest.h>

#include "tests/packer/import/onnx_helpers.h"

namespace qplan::onnx_test::onnx_model_kind_test {
namespace {

const std::string kFile = "-49: onnx: 'net.onnx': ";
const std::string kStatic =
    "quantise it statically (onnxruntime.quantization.quantize_static with calibration data)\n";

std::string node_error(const std::string& op, const std::string& domain = "",
                       const std::vector<Message>& attributes = {}) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 2}).node(op, {"x"}, {"y"}, attributes, domain).output("y", kFloat, {2, 2});
  return refusal(b);
}

TEST(OnnxModelKind, CompiledModelsSaySoFirst) {
  EXPECT_EQ(node_error("EPContext", "com.microsoft", {attr_string("source", "QNN")}),
            kFile +
                "the model is compiled for a device: com.microsoft.EPContext 'y' (made by 'QNN') holds a "
                "program for it; pack the model that was compiled\n"
                "1 operator that qplan does not import: com.microsoft.EPContext ('y')");
  EXPECT_EQ(node_error("Conv", "com.microsoft.nchwc"),
            kFile +
                "the model was optimised by ONNX Runtime for one processor (first com.microsoft.nchwc.Conv "
                "'y'); save "
                "it with at most ORT_ENABLE_EXTENDED, or pack the model before that\n"
                "1 operator that qplan does not import: com.microsoft.nchwc.Conv ('y')");
  EXPECT_TRUE(node_error("MVAU_hls", "finn.custom_op.fpgadataflow.hls")
                  .starts_with(kFile + "the model is compiled by FINN for an FPGA (first "));
}

TEST(OnnxModelKind, QonnxSaysSoFirst) {
  for (const auto& [op, domain] :
       {std::pair{"Quant", "qonnx.custom_op.general"}, std::pair{"BipolarQuant", "onnx.brevitas"},
        std::pair{"Trunc", "qonnx.custom_op.general"}, std::pair{"Quant", ""}}) {
    const std::string name = *domain == 0 ? op : std::string(domain) + "." + op;
    EXPECT_EQ(node_error(op, domain),
              kFile + "the model is QONNX (first " + name +
                  " 'y'), which qplan does not read; write it with QuantizeLinear and DequantizeLinear: "
                  "brevitas.export.export_onnx_qcdq, or QuantToQCDQ of the qonnx package\n"
                  "1 operator that qplan does not import: " +
                  name + " ('y')");
  }
}

TEST(OnnxModelKind, DynamicQuantisationIsSaidFirst) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 2}).node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"}, {attr_int("more", 1)});
  b.output("q", kUint8, {2, 2});
  EXPECT_EQ(refusal(b),
            kFile +
                "the model is quantised dynamically (first DynamicQuantizeLinear 'q'): the scales "
                "of its activations would be found while it runs; " +
                kStatic +
                "1 operator that qplan does not import: DynamicQuantizeLinear with attribute 'more' ('q')");
  EXPECT_TRUE(node_error("MatMulBnb4", "com.microsoft")
                  .starts_with(kFile + "only the weights of the model are quantised, in blocks (first "));
}

TEST(OnnxModelKind, AFloatModelIsSaidToBeOneWhereItIsRefused) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 2}).node("MatMul", {"x", "x"}, {"y"}, {attr_int("more", 1)});
  b.output("y", kFloat, {2, 2});
  EXPECT_EQ(refusal(b),
            kFile +
                "the model is not quantised: its 1 layer with weights (first MatMul 'y') computes in "
                "float; " +
                kStatic + "1 operator that qplan does not import: MatMul with attribute 'more' ('y')");
}

// Dynamic and float layers run: another operator is refused in a model that is quantised statically, too.
TEST(OnnxModelKind, HowAModelIsQuantisedIsNotSaidOfOtherOperators) {
  OnnxBuilder b;
  b.input("x", kFloat, {2, 2}).node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  b.node("MatMul", {"x", "x"}, {"m"}).node("Cosh", {"m"}, {"y"}).output("y", kFloat, {2, 2});
  EXPECT_EQ(refusal(b), kFile + "1 operator that qplan does not import: Cosh ('y')");
}

TEST(OnnxModelKind, StringInputsAreNamed) {
  OnnxBuilder b;
  b.input("words", kString, {2}).node("Identity", {"words"}, {"y"}).output("y", kString, {2});
  EXPECT_EQ(refusal(b), kFile + "input 'words' is a string tensor; qplan runs networks on numbers");
}

Message branch(const std::string& op, const std::string& input, const std::string& output) {
  const Message node = Message().bytes(1, input).bytes(2, output).bytes(4, op);
  return Message().message(1, node).bytes(2, "branch").message(12, Message().bytes(1, output));
}
Message attr_graph(std::string_view name, const Message& graph) { return attr(name, 5).message(6, graph); }

OnnxBuilder if_model() {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).input("c", kBool, {});
  b.node("If", {"c"}, {"y"},
         {attr_graph("then_branch", branch("Relu", "x", "a")),
          attr_graph("else_branch", branch("Abs", "x", "b"))});
  return b.output("y", kFloat, {2});
}

TEST(OnnxModelKind, OperatorsInsideOfSubgraphsAreListed) {
  EXPECT_EQ(
      refusal(if_model()),
      kFile +
          "3 operators that qplan does not import:\n"
          "  1 x Abs inside If ('b')\n"
          "  1 x If with conditions that are not constant, but input 'c' (--bind gives it a value) ('y')\n"
          "  1 x Relu inside If ('a')");
  OnnxBuilder loop;
  loop.input("x", kFloat, {2});
  loop.node("Loop", {"", "", "x"}, {"y"}, {attr_graph("body", branch("Foo", "x", "z"))})
      .output("y", kFloat, {2});
  EXPECT_EQ(refusal(loop), kFile +
                               "2 operators that qplan does not import:\n"
                               "  1 x Foo inside Loop ('z')\n"
                               "  1 x Loop ('y')");
}

TEST(OnnxIf, AKnownConditionChoosesTheBranch) {
  ImportOptions options;
  options.bindings["c"] = ir::make_constant<uint8_t>(ir::kBool, {}, {1});
  EXPECT_EQ(import_body(if_model(), options), "%0 = nn.relu(%x);\n%0\n");
  options.bindings["c"] = ir::make_constant<uint8_t>(ir::kBool, {}, {0});
  EXPECT_EQ(import_body(if_model(), options), "%0 = abs(%x);\n%0\n");
  // Computed on import.
  OnnxBuilder b;
  b.input("x", kFloat, {2, 3}).node("Shape", {"x"}, {"s"}).ints("zero", {0}).ints("two", {2});
  b.node("Gather", {"s", "zero"}, {"rows"}).node("Equal", {"rows", "two"}, {"c"});
  b.node("If", {"c"}, {"y"},
         {attr_graph("then_branch", branch("Relu", "x", "a")),
          attr_graph("else_branch", branch("Foo", "x", "b"))});
  EXPECT_EQ(import_body(b.output("y", kFloat, {2, 3})), "%0 = nn.relu(%x);\n%0\n");
}

// Only names that a subgraph sees must differ from its own.
TEST(OnnxIf, BranchesHaveNamesOfTheirOwn) {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).constant<uint8_t>("yes", kBool, {}, {1});
  for (const auto& [from, to] : {std::pair{"x", "m"}, std::pair{"m", "n"}}) {
    Message add = Message().message(1, node_message("Add", {from, "one"}, {"sum"})).bytes(2, "branch");
    add.message(5, tensor<float>("one", kFloat, {1}, {1}));
    add.message(12, Message().bytes(1, "sum"));
    b.node("If", {"yes"}, {to}, {attr_graph("then_branch", add), attr_graph("else_branch", add)});
  }
  b.node("Relu", {"n"}, {"sum"}).output("sum", kFloat, {2});
  EXPECT_EQ(import_body(b),
            "%0 = add(%x, const(Tensor[(1), float32], [1]));\n%1 = add(%0, const(Tensor[(1), float32], "
            "[1]));\n%2 = nn.relu(%1);\n%2\n");
}

TEST(OnnxIf, NamesOfABranchAreGoneAfterIt) {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).constant<uint8_t>("yes", kBool, {}, {1});
  b.node("If", {"yes"}, {"y"},
         {attr_graph("then_branch", branch("Relu", "x", "a")),
          attr_graph("else_branch", branch("Abs", "x", "b"))});
  b.node("Relu", {"a"}, {"z"}).output("z", kFloat, {2});
  EXPECT_EQ(refusal(b), kInvalid + "node 1 Relu 'z': value 'a' is read before any node writes it");
}

TEST(OnnxIf, BrokenOnes) {
  ImportOptions options;
  options.bindings["c"] = ir::make_constant<uint8_t>(ir::kBool, {}, {1});
  OnnxBuilder missing;
  missing.input("x", kFloat, {2}).input("c", kBool, {});
  missing.node("If", {"c"}, {"y"},
               {attr_graph("then_branch", branch("Relu", "nothing", "a")),
                attr_graph("else_branch", branch("Abs", "x", "b"))});
  missing.output("y", kFloat, {2});
  EXPECT_EQ(refusal(missing, options),
            kInvalid +
                "node 0 If 'y': node 0 Relu 'a': value 'nothing' is read before any "
                "node writes it");
  OnnxBuilder counts;
  counts.input("x", kFloat, {2}).input("c", kBool, {});
  counts.node("If", {"c"}, {"y", "z"},
              {attr_graph("then_branch", branch("Relu", "x", "a")),
               attr_graph("else_branch", branch("Abs", "x", "b"))});
  counts.output("y", kFloat, {2});
  EXPECT_EQ(refusal(counts, options),
            kInvalid + "node 0 If 'y': the number of outputs of the branch is 1, expected 2");
  OnnxBuilder kind;
  kind.input("x", kFloat, {2}).constant<float>("c", kFloat, {}, {1});
  kind.node("If", {"c"}, {"y"},
            {attr_graph("then_branch", branch("Relu", "x", "a")),
             attr_graph("else_branch", branch("Abs", "x", "b"))});
  kind.output("y", kFloat, {2});
  EXPECT_EQ(refusal(kind), kInvalid + "node 0 If 'y': the condition is float32, expected one bool");
}

}  // namespace
}  // namespace qplan::onnx_test::onnx_model_kind_test
