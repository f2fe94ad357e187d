// Parts of networks (--begin-at, --end-at): of a graph by hand, and of each format. What a part becomes is
// compared with a model that has only its operators.
#include "src/packer/import/part.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/packer/import/import.h"
#include "tests/packer/import/exported_builder.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/onnx_helpers.h"
#include "tests/packer/import/pytorch_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::part_test {
namespace {

using importer::PartGraph;
using importer::TensorNames;
using Names = std::vector<std::string>;

// ---- a graph by hand

struct NamedOperator {
  Names reads, writes;
};

PartGraph graph_of(const std::vector<NamedOperator>& operators, const Names& inputs, const Names& outputs,
                   const Names& constants = {}) {
  PartGraph graph;
  const auto names = std::make_shared<TensorNames>();
  const auto numbers_of = [&](const Names& list) {
    std::vector<importer::TensorNumber> numbers;
    for (const std::string& name : list) numbers.push_back(names->number(name));
    return numbers;
  };
  for (const NamedOperator& op : operators)
    graph.operators.push_back({numbers_of(op.reads), numbers_of(op.writes)});
  graph.inputs = numbers_of(inputs);
  graph.outputs = numbers_of(outputs);
  for (const importer::TensorNumber constant : numbers_of(constants)) graph.constants.insert(constant);
  importer::set_names(names, &graph);
  return graph;
}

// image -> [0] a -> [1] b -> [2] out, and a with size -> [3] c -> [4] other; w is a constant.
PartGraph fork() {
  return graph_of({{{"image", "w"}, {"a"}},
                   {{"a"}, {"b"}},
                   {{"b", "w"}, {"out"}},
                   {{"a", "size"}, {"c"}},
                   {{"c"}, {"other"}}},
                  {"image", "size"}, {"out", "other"}, {"w"});
}

// "operators 0 1; image -> b", or the refusal.
std::string selected(const PartGraph& graph, const Part& part) {
  try {
    const importer::Selection selection = importer::select_part(graph, part, nullptr);
    std::string text = "operators";
    for (size_t i = 0; i < selection.operators.size(); ++i) {
      if (selection.operators[i]) text += " " + std::to_string(i);
    }
    text += ";";
    for (const importer::TensorNumber input : selection.inputs) text += " " + graph.name(input);
    text += " ->";
    for (const importer::TensorNumber output : selection.outputs) text += " " + graph.name(output);
    return text;
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    return error.what();
  }
}

TEST(Part, EndsWhereItIsToldAndReadsOnlyTheInputsThatItNeeds) {
  EXPECT_EQ(selected(fork(), {{}, {"b"}}), "operators 0 1; image -> b");
  EXPECT_EQ(selected(fork(), {{}, {"c", "b"}}), "operators 0 1 3; image size -> c b");
  EXPECT_EQ(selected(fork(), {{}, {"other"}}), "operators 0 3 4; image size -> other");
}

TEST(Part, BeginsWhereItIsToldInTheOrderOfTheNames) {
  EXPECT_EQ(selected(fork(), {{"a", "size"}, {}}), "operators 1 2 3 4; a size -> out other");
  EXPECT_EQ(selected(fork(), {{"size", "a"}, {"other"}}), "operators 3 4; size a -> other");
  EXPECT_EQ(selected(fork(), {{"a"}, {"b"}}), "operators 1; a -> b");
  EXPECT_EQ(selected(fork(), {{"image"}, {"a"}}), "operators 0; image -> a");
}

TEST(Part, NamesMustBeThoseOfTensorsThatAreComputed) {
  EXPECT_EQ(selected(fork(), {{}, {"nothing"}}),
            "--end-at 'nothing': the model has no such tensor; it has 'out', 'other'");
  EXPECT_EQ(selected(fork(), {{"ou"}, {}}),
            "--begin-at 'ou': the model has no such tensor; did you mean 'out'");
  EXPECT_EQ(selected(fork(), {{"w"}, {}}),
            "--begin-at 'w': the tensor is a constant or a variable, expected one that is computed");
  EXPECT_EQ(selected(fork(), {{}, {"b", "b"}}), "--end-at 'b': the tensor is named twice");
}

TEST(Part, AllTensorsWhereItBeginsMustBeNamed) {
  EXPECT_EQ(selected(fork(), {{"a"}, {}}),
            "--begin-at 'a': the part also reads the input 'size' of the model; name all tensors where it "
            "begins");
  EXPECT_EQ(selected(fork(), {{"b", "c"}, {"out"}}),
            "--begin-at 'c': nothing between it and the end of the part reads it");
  EXPECT_EQ(selected(fork(), {{"a"}, {"a"}}), "the part begins and ends at 'a': nothing is left of it");
}

// Otherwise the operator would make the first again.
TEST(Part, BeginsAtAllResultsOfAnOperatorThatItReads) {
  const PartGraph graph =
      graph_of({{{"x"}, {"a", "b", "c"}}, {{"a"}, {"d"}}, {{"b", "d"}, {"y"}}}, {"x"}, {"y"});
  EXPECT_EQ(selected(graph, {{"a", "x"}, {}}),
            "--begin-at 'a': the part also reads 'b', which the same operator computes; begin at all of its "
            "results that are read");
  EXPECT_EQ(selected(graph, {{"a", "b"}, {}}), "operators 1 2; a b -> y");
}

TEST(Part, NamesOfAnotherModelAreLeftToIt) {
  std::set<std::string> others;
  const PartGraph graph = fork();
  const importer::Selection selection = importer::select_part(graph, {{}, {"b", "of_another"}}, &others);
  EXPECT_EQ(selection.outputs, graph.find("b"));
  EXPECT_EQ(others, std::set<std::string>{"of_another"});
}

std::string parts(const PartGraph& graph, const std::vector<size_t>& refused) {
  std::vector<bool> is_refused(graph.operators.size());
  for (const size_t i : refused) is_refused[i] = true;
  return importer::parts_without(graph, is_refused);
}

TEST(Part, WhatCanDoWithoutAnOperatorIsNamed) {
  EXPECT_EQ(parts(fork(), {2}), "\nthe part before them, 4 of 5 operators: --end-at 'b' --end-at 'other'");
  // Both branches begin after operator 0, one of them at another input of the model as well.
  EXPECT_EQ(parts(fork(), {0}), "\nthe part after them, 4 of 5 operators: --begin-at 'a' --begin-at 'size'");
  const PartGraph chain = graph_of({{{"x"}, {"a"}}, {{"a"}, {"b"}}, {{"b"}, {"y"}}}, {"x"}, {"y"});
  EXPECT_EQ(parts(chain, {1}),
            "\nthe part before them, 1 of 3 operators: --end-at 'a'"
            "\nthe part after them, 1 of 3 operators: --begin-at 'b'");
}

TEST(Part, ItNeitherBeginsNorEndsAtWhatIsMadeOfConstants) {
  const PartGraph graph = graph_of({{{"w"}, {"t"}}, {{"x", "t"}, {"a"}}, {{"a"}, {"b"}}, {{"b", "t"}, {"y"}}},
                                   {"x"}, {"y"}, {"w"});
  EXPECT_EQ(parts(graph, {2}),
            "\nthe part before them, 2 of 4 operators: --end-at 'a'"
            "\nthe part after them, 2 of 4 operators: --begin-at 'b'");
}

TEST(Part, SmallOnesAndThoseThatAShellWouldNotTakeAreNotNamed) {
  std::vector<NamedOperator> chain;
  for (int i = 0; i < 9; ++i) chain.push_back({{"t" + std::to_string(i)}, {"t" + std::to_string(i + 1)}});
  EXPECT_EQ(parts(graph_of(chain, {"t0"}, {"t9"}), {2, 7}), "");  // 2 before them, 1 after
  const PartGraph quoted = graph_of({{{"x"}, {"it's"}}, {{"it's"}, {"y"}}}, {"x"}, {"y"});
  EXPECT_EQ(parts(quoted, {1}), "");
  EXPECT_EQ(parts(fork(), {0, 2, 4}), "");
  // The name would be printed otherwise than it is.
  const PartGraph turned = graph_of({{{"x"}, {"a\u202e"}}, {{"a\u202e"}, {"y"}}}, {"x"}, {"y"});
  EXPECT_EQ(parts(turned, {1}), "");
  EXPECT_EQ(parts(fork(), {}), "");  // no operator is at fault
}

// What is named is what can be selected.
TEST(Part, NamedPartsHaveNoneOfTheOperators) {
  const PartGraph graph = fork();
  for (size_t refused = 0; refused < graph.operators.size(); ++refused) {
    const std::string text = parts(graph, {refused});
    Part part;
    for (size_t at = 0; (at = text.find("-at '", at)) != std::string::npos;) {
      const bool begins = text.compare(at - 5, 5, "begin") == 0;
      const size_t name = at + 5, end = text.find('\'', name);
      (begins ? part.begin_at : part.end_at).push_back(text.substr(name, end - name));
      at = end;
    }
    if (part.empty() || !(part.begin_at.empty() || part.end_at.empty())) continue;
    EXPECT_FALSE(importer::select_part(graph, part, nullptr).operators[refused]) << text;
  }
}

// The chain x -> a -> b -> y, whose second operator is not imported.
void expect_both_parts_named(const std::function<void()>& import) {
  try {
    import();
    FAIL() << "imported";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED);
    const std::string text = error.what();
    EXPECT_TRUE(
        text.ends_with("\nthe part before them, 1 of 3 operators: --end-at 'a'"
                       "\nthe part after them, 1 of 3 operators: --begin-at 'b'"))
        << text;
  }
}

// ---- TFLite: x -> NEG a -> custom b -> ABS y, of float32

using tflite_test::TfliteBuilder;

int32_t floats(TfliteBuilder& b, const std::string& name) {
  return b.tensor({.name = name, .type = tflite::TensorType_FLOAT32, .shape = {1, 4}});
}

std::vector<uint8_t> tflite_chain(const char* a_name = "a", const char* b_name = "b") {
  TfliteBuilder b;
  const int32_t x = floats(b, "x"), a = floats(b, a_name), t = floats(b, b_name), y = floats(b, "y");
  b.op(tflite::BuiltinOperator_NEG, {x}, {a});
  b.op(tflite::BuiltinOperator_CUSTOM, {a}, {t}, tflite::BuiltinOptions_NONE, 0, "Odd");
  b.op(tflite::BuiltinOperator_ABS, {t}, {y});
  return b.finish({x}, {y});
}

// The body, or the refusal with all its lines.
std::string tflite_part(const std::vector<uint8_t>& model, const Part& part) {
  try {
    ImportOptions options;
    options.part = part;
    const ir::Module module = import_tflite(model, "net.tflite", {}, options);
    ir::verify(module);
    return tflite_test::body_of(module);
  } catch (const PackError& error) {
    return error.what();
  }
}

TEST(PartOfTflite, HasNoneOfTheOperatorsAroundIt) {
  EXPECT_EQ(tflite_part(tflite_chain(), {{}, {"a"}}), "%0 = negative(%x);\n%0\n");
  EXPECT_EQ(tflite_part(tflite_chain(), {{"b"}, {}}), "%0 = abs(%b);\n%0\n");
}

TEST(PartOfTflite, IsNamedWhereAnOperatorIsNotImported) {
  expect_both_parts_named([] { (void)import_tflite(tflite_chain(), "net.tflite"); });
}

TEST(PartOfTflite, TensorsWithoutNamesOfTheirOwnHaveNumbers) {
  EXPECT_EQ(
      tflite_part(tflite_chain("same", "same"), {{}, {"same"}}),
      "tflite: 'net.tflite': --end-at 'same': 2 tensors have this name; give the number of the one that "
      "is meant: 1, 2");
  EXPECT_EQ(tflite_part(tflite_chain("same", "same"), {{}, {"1"}}), "%0 = negative(%x);\n%0\n");
  const std::string error = tflite_part(tflite_chain("", ""), {});
  EXPECT_NE(error.find("--end-at '1'\n"), std::string::npos) << error;
  EXPECT_NE(error.find("--begin-at '2'"), std::string::npos) << error;
}

TEST(PartOfTflite, NumbersThatAreNamesOfOtherTensorsAreNotNamed) {
  EXPECT_EQ(tflite_part(tflite_chain("2", ""), {{}, {"2"}}), "%0 = negative(%x);\n%0\n");
  const std::string error = tflite_part(tflite_chain("2", ""), {});
  EXPECT_NE(error.find("--end-at '2'"), std::string::npos) << error;
  EXPECT_EQ(error.find("--begin-at '"), std::string::npos)
      << error;  // tensor 2, whose number is the name of 1
}

TEST(PartOfTflite, OperatorsThatShareAVariableStayTogether) {
  TfliteBuilder b;
  const int32_t x = floats(b, "x"), a = floats(b, "a"), y = floats(b, "y");
  const int32_t state =
      b.tensor({.name = "state", .type = tflite::TensorType_FLOAT32, .shape = {1, 4}, .is_variable = true});
  b.op(tflite::BuiltinOperator_CUSTOM, {x, state}, {a}, tflite::BuiltinOptions_NONE, 0, "First");
  b.op(tflite::BuiltinOperator_CUSTOM, {a, state}, {y}, tflite::BuiltinOptions_NONE, 0, "Second");
  const std::vector<uint8_t> model = b.finish({x}, {y});
  const std::string error = tflite_part(model, {{}, {"a"}});
  EXPECT_NE(error.find("custom operator 'Second'"), std::string::npos) << error;
  EXPECT_EQ(error.find("--begin-at '"), std::string::npos) << error;
  EXPECT_EQ(tflite_part(model, {{"state"}, {}}),
            "tflite: 'net.tflite': --begin-at 'state': the tensor is a constant or a variable, expected one "
            "that is "
            "computed");
}

// An operator code out of range, and a tensor of another type than plans have.
TEST(PartOfTflite, WhatIsOutsideOfItMayBeAnything) {
  TfliteBuilder b;
  const int32_t x = floats(b, "x"), y = floats(b, "y");
  const int32_t text = b.tensor({.name = "text", .type = tflite::TensorType_STRING, .shape = {1}});
  b.op(tflite::BuiltinOperator_NEG, {x}, {y});
  b.op(300, {y}, {text});
  EXPECT_EQ(tflite_part(b.finish({x}, {text}), {{}, {"y"}}), "%0 = negative(%x);\n%0\n");
}

TEST(PartOfTflite, InputsAndOutputsHaveTheQuantisationOfTheirTensors) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 3), a = b.activation("a", {1, 4}, 0.25f, -5),
                y = b.activation("y", {1, 4}, 0.125f, 7);
  b.op(tflite::BuiltinOperator_QUANTIZE, {x}, {a});
  b.op(tflite::BuiltinOperator_QUANTIZE, {a}, {y});
  const std::vector<uint8_t> model = b.finish({x}, {y});
  ImportOptions options;
  options.part.begin_at = {"a"};
  const ir::Module second = import_tflite(model, "net.tflite", {}, options);
  EXPECT_EQ(input_quantization(second.main(), 0)->scale, 0.25f);
  EXPECT_EQ(input_quantization(second.main(), 0)->zero_point, -5);
  options.part = {{}, {"a"}};
  const ir::Module first = import_tflite(model, "net.tflite", {}, options);
  EXPECT_EQ(output_quantization(first.main(), 0)->scale, 0.25f);
  EXPECT_EQ(output_quantization(first.main(), 0)->zero_point, -5);
}

// x added to a variable, which it becomes: y = x + v, v = y; z = -y.
std::vector<uint8_t> tflite_sum() {
  TfliteBuilder b;
  const int32_t handle = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE});
  b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {handle}, tflite::BuiltinOptions_VarHandleOptions,
       tflite::CreateVarHandleOptionsDirect(b.fbb(), "", "v").Union());
  const int32_t x = floats(b, "x"), v = floats(b, "v"), y = floats(b, "y"), z = floats(b, "z"),
                other = floats(b, "other");
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {handle}, {v});
  b.op(tflite::BuiltinOperator_ADD, {x, v}, {y}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb()).Union());
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {handle, y}, {});
  b.op(tflite::BuiltinOperator_NEG, {y}, {z});
  b.op(tflite::BuiltinOperator_ABS, {x}, {other});
  return b.finish({x}, {z, other});
}

TEST(PartOfTflite, KeepsTheVariablesThatItReadsAndNoOthers) {
  EXPECT_EQ(tflite_part(tflite_sum(), {{}, {"y"}}), "%0 = add(%x, %v);\n(%0, %0)\n");
  EXPECT_EQ(tflite_part(tflite_sum(), {{}, {"other"}}), "%0 = abs(%x);\n%0\n");
  EXPECT_EQ(tflite_part(tflite_sum(), {{"y"}, {"z"}}), "%0 = negative(%y);\n%0\n");
}

// ---- ONNX: x -> Neg a -> Odd b -> Abs y

using onnx_test::kFloat;
using onnx_test::OnnxBuilder;

OnnxBuilder onnx_chain() {
  OnnxBuilder b;
  b.input("x", kFloat, {1, 4}).node("Neg", {"x"}, {"a"}).node("Odd", {"a"}, {"b"});
  b.node("Abs", {"b"}, {"y"}).output("y", kFloat, {1, 4});
  return b;
}

ImportOptions onnx_options(const Part& part) {
  ImportOptions options;
  options.part = part;
  return options;
}

TEST(PartOfOnnx, HasNoneOfTheNodesAroundIt) {
  EXPECT_EQ(onnx_test::import_body(onnx_chain(), onnx_options({{}, {"a"}})), "%0 = negative(%x);\n%0\n");
  ImportOptions options = onnx_options({{"b"}, {}});
  options.input_types["b"] = {ir::kFloat32, {1, 4}};
  EXPECT_EQ(onnx_test::import_body(onnx_chain(), options), "%0 = abs(%b);\n%0\n");
}

TEST(PartOfOnnx, TakesTheTypesOfItsInputsFromTheModelOrTheCaller) {
  EXPECT_EQ(
      onnx_test::refusal(onnx_chain(), onnx_options({{"b"}, {}})),
      std::to_string(QPLAN_INVALID_ARGUMENT) +
          ": onnx: 'net.onnx': --begin-at 'b': the model does not say the type of this tensor; give it: "
          "--input-shape NAME=1x3x224x224:float32 with its name, shape and dtype, or write the types of "
          "all tensors into the model (onnx.shape_inference.infer_shapes)");
  OnnxBuilder typed = onnx_chain();
  typed.value("b", kFloat, {1, 4});
  EXPECT_EQ(onnx_test::import_body(typed, onnx_options({{"b"}, {}})), "%0 = abs(%b);\n%0\n");
  ImportOptions wrong = onnx_options({{"b"}, {}});
  wrong.input_types["b"] = {ir::kFloat32, {1, 5}};
  EXPECT_NE(onnx_test::refusal(typed, wrong).find("is given as Tensor[(1, 5), float32]"), std::string::npos);
}

TEST(PartOfOnnx, TypesOfInputsThatItLeavesOutAreNoMistake) {
  ImportOptions options = onnx_options({{"b"}, {}});
  options.input_types["b"] = options.input_types["x"] = {ir::kFloat32, {1, 4}};
  EXPECT_EQ(onnx_test::import_body(onnx_chain(), options), "%0 = abs(%b);\n%0\n");
  options.input_types["z"] = {ir::kFloat32, {1, 4}};
  EXPECT_NE(onnx_test::refusal(onnx_chain(), options).find("names 'z'"), std::string::npos);
}

TEST(PartOfOnnx, IsNamedWhereANodeIsNotImported) {
  expect_both_parts_named([] { (void)onnx_test::import_builder(onnx_chain()); });
}

TEST(PartOfOnnx, HasWhatBranchesReadOfTheGraphAroundThem) {
  OnnxBuilder b;
  b.input("x", kFloat, {2}).constant<uint8_t>("yes", onnx_test::kBool, {}, {1});
  b.node("Neg", {"x"}, {"a"});
  onnx_test::Message branch;
  branch.message(1, onnx_test::node_message("Abs", {"a"}, {"inner"}))
      .message(12, onnx_test::Message().bytes(1, "inner"));
  const auto graph_attribute = [&](const char* name) { return onnx_test::attr(name, 5).message(6, branch); };
  b.node("If", {"yes"}, {"b"}, {graph_attribute("then_branch"), graph_attribute("else_branch")});
  b.node("Odd", {"b"}, {"y"}).output("y", kFloat, {2});
  EXPECT_EQ(onnx_test::import_body(b, onnx_options({{}, {"b"}})), "%0 = negative(%x);\n%1 = abs(%0);\n%1\n");
}

// ---- PyTorch

pytorch_test::ExportedBuilder exported_chain() {
  pytorch_test::ExportedBuilder b;
  b.input("x", {1, 4}).input("unused", {3});
  b.node("aten.neg.default", "a", {{"self", pytorch_test::tensor("x")}});
  b.node("aten.odd.default", "b", {{"self", pytorch_test::tensor("a")}});
  b.node("aten.abs.default", "y", {{"self", pytorch_test::tensor("b")}}).output("y");
  b.graph()["tensor_values"]["b"] = b.graph()["tensor_values"]["x"];
  return b;
}

std::string exported_part(const pytorch_test::ExportedBuilder& builder, const Part& part) {
  ImportOptions options;
  options.part = part;
  return pytorch_test::import_text(builder.build(), options);
}

TEST(PartOfExportedProgram, HasNoneOfTheNodesAroundIt) {
  EXPECT_EQ(exported_part(exported_chain(), {{}, {"a"}}), "%0 = negative(%x);\n%0\n");
  EXPECT_EQ(exported_part(exported_chain(), {{"b"}, {}}), "%0 = abs(%b);\n%0\n");
}

TEST(PartOfExportedProgram, HasOnlyTheInputsThatItReads) {
  ImportOptions options;
  options.part.end_at = {"a"};
  const ir::Module module = import_pytorch(exported_chain().build(), "net.pt2", {}, options);
  EXPECT_EQ(module.main().params().size(), 1u);
}

// A buffer that becomes x + buffer; y is the negative of that, z the absolute value of x.
TEST(PartOfExportedProgram, BuffersThatItReadsAndTheProgramChangesAreRefused) {
  pytorch_test::ExportedBuilder b;
  b.input("x", {2}).weight("sum", {2}, pytorch_test::kFloat, pytorch_test::Bytes(8));
  b.specs("input_specs").back() = {
      {"buffer", {{"arg", {{"name", "p_sum"}}}, {"buffer_name", "sum"}, {"persistent", true}}}};
  b.node("aten.add.Tensor", "r",
         {{"self", pytorch_test::tensor("x")}, {"other", pytorch_test::tensor("p_sum")}});
  b.node("aten.neg.default", "y", {{"self", pytorch_test::tensor("r")}}).output("y");
  b.node("aten.abs.default", "z", {{"self", pytorch_test::tensor("x")}}).output("z");
  b.specs("output_specs")
      .push_back({{"buffer_mutation", {{"arg", {{"name", "r"}}}, {"buffer_name", "sum"}}}});
  EXPECT_EQ(exported_part(b, {{}, {"z"}}), "%0 = abs(%x);\n%0\n");
  const std::string refused = "a buffer that the model changes ('sum')";
  EXPECT_NE(exported_part(b, {{}, {"y"}}).find(refused), std::string::npos);
  try {
    (void)import_pytorch(b.build(), "net.pt2");
    FAIL() << "imported";
  } catch (const PackError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(refused), std::string::npos) << text;
    EXPECT_EQ(text.find("\nthe part "), std::string::npos) << text;
  }
}

TEST(PartOfExportedProgram, IsNamedWhereANodeIsNotImported) {
  expect_both_parts_named([] { (void)import_pytorch(exported_chain().build(), "net.pt2"); });
}

TEST(Part, FormatsWithoutNamesOfTensorsRefuseIt) {
  ImportOptions options = pytorch_test::with_input({1, 4});
  options.part.end_at = {"a"};
  EXPECT_EQ(
      pytorch_test::import_text(pytorch_test::ArchiveBuilder("return x").build(), options),
      std::to_string(QPLAN_INVALID_ARGUMENT) +
          ": pytorch: 'net.pt': --end-at: TorchScript has no names of tensors; return these tensors from "
          "forward, or save the model by torch.export (.pt2)");
  const std::string text = "fn (%x: Tensor[(2), float32]) { abs(%x) }";
  options = {};
  options.part.begin_at = {"x"};
  try {
    (void)import_relay({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "net.relay", {},
                       options);
    FAIL();
  } catch (const PackError& error) {
    EXPECT_EQ(std::string(error.what()), "--begin-at: Relay text has no names of tensors; edit the text");
  }
}

}  // namespace
}  // namespace qplan::part_test
