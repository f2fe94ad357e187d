// Archives of torch.export as a whole: both forms, inputs and their extents, tensors, and files that are
// something else or broken.
#include <gtest/gtest.h>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/exported_program.h"
#include "tests/packer/import/exported_builder.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::exported_import_test {
namespace {

std::string import_of(const ExportedBuilder& builder, const ImportOptions& options = {},
                      std::string* log = nullptr) {
  return import_text(builder.build(), options, log);
}

// relu of x.
ExportedBuilder small(const Json& sizes = {2, 3}) {
  ExportedBuilder b;
  b.input("x", sizes).node("aten.relu.default", "y", {{"self", tensor("x")}}).output("y");
  return b;
}

constexpr char kRefused[] = "-49: pytorch: 'net.pt': ";
constexpr char kBroken[] = "-48: pytorch: 'net.pt': ";

TEST(ExportedImport, AllFormsAreOneModule) {
  const ExportedBuilder b = QuantisedNetwork().builder();
  const std::string body =
      "%0 = qnn.dequantize(const(Tensor[(3, 2, 2, 2), int8], [17, -127, 33, 4, -90, 55, 127, -8, 61, -44, 5, "
      "102, -6, 78, -71, 19, 88, -25, 40, -113, 9, 64, -37, 2]), const(Tensor[(3), float32], [0.01, 0.007, "
      "0.0125]), 0, axis=0, contract=\"f32e\");\n"
      "%1 = qnn.quantize(%x, 0.05f, -3, contract=\"f32e\", rule=\"mul_even\");\n"
      "%2 = qnn.dequantize(%1, 0.05f, -3, contract=\"f32e\");\n"
      "%3 = nn.conv2d(%2, %0, padding=[1, 1, 1, 1]);\n"
      "%4 = nn.bias_add(%3, const(Tensor[(3), float32], [0.3, -0.51, 0.0725]));\n"
      "%5 = nn.relu(%4);\n"
      "%6 = qnn.quantize(%5, 0.021f, -128, contract=\"f32e\", rule=\"mul_even\");\n"
      "%7 = qnn.dequantize(%6, 0.021f, -128, contract=\"f32e\");\n"
      "%8 = qnn.dequantize(%6, 0.021f, -128, contract=\"f32e\");\n"
      "%9 = add(%7, %8);\n"
      "%10 = qnn.quantize(%9, 0.04f, -100, contract=\"f32e\", rule=\"mul_even\");\n"
      "%10\n";
  for (const ExportedForm form : {ExportedForm::kFiles, ExportedForm::kSaved, ExportedForm::kPayloads})
    EXPECT_EQ(import_text(b.build(form), {}), body);
}

TEST(ExportedImport, TensorsOfAnotherByteOrderAreRefused) {
  for (const ExportedForm form : {ExportedForm::kFiles, ExportedForm::kSaved, ExportedForm::kPayloads}) {
    ExportedBuilder b = QuantisedNetwork().builder();
    const std::string body = import_text(b.build(form), {});
    b.byte_order = "little";
    EXPECT_EQ(import_text(b.build(form), {}), body);
    b.byte_order = "big";
    const std::string refused = import_text(b.build(form), {});
    EXPECT_EQ(refused.find(kRefused), 0u) << refused;
    EXPECT_NE(refused.find("the archive's numbers have byte order 'big', expected 'little'"),
              std::string::npos)
        << refused;
  }
}

TEST(ExportedImport, OutputsKeepTheirQuantisation) {
  const ir::Module module = import_pytorch(QuantisedNetwork().builder().build(), "net.pt2");
  EXPECT_EQ(module.main().output_names(), (std::vector<std::string>{"output_0"}));
  const auto quantization = output_quantization(module.main(), 0);
  ASSERT_TRUE(quantization);
  EXPECT_EQ(quantization->scale, 0.04f);
  EXPECT_EQ(quantization->zero_point, -100);
}

TEST(ExportedImport, NodesHaveTheNamesOfTheGraph) {
  const ir::Module module = import_pytorch(small().build(), "net.pt2");
  EXPECT_EQ(module.main().nodes()[0].name, "y");
  EXPECT_EQ(module.main().value(module.main().outputs()[0]).name, "y");
}

// -- extents

ir::Shape shape_of(const ExportedBuilder& b, const ImportOptions& options = {}, std::string* log = nullptr) {
  const LogFunction listen = [&](uint32_t, const std::string& text) {
    if (log != nullptr) *log += text + "\n";
  };
  const ir::Module module = import_pytorch(b.build(), "net.pt2", listen, options);
  return module.main().type(module.main().outputs()[0]).shape;
}

// PyTorch 2.6 writes the symbol's class, later ones its name alone.
TEST(ExportedImport, AnOpenBatchIsOne) {
  for (const char* symbol : {"Symbol('s0', positive=True, integer=True)", "s0"}) {
    std::string log;
    EXPECT_EQ(shape_of(small({symbol, 3}), {}, &log), (ir::Shape{1, 3}));
    EXPECT_EQ(log, "pytorch: input 'x' has an open batch extent: 1 is taken\n");
  }
}

TEST(ExportedImport, AnOpenBatchIsTheLeastThatTheProgramWasExportedFor) {
  ExportedBuilder b = small({"s0", 3});
  b.program["range_constraints"]["s0"] = {{"min_val", 4}, {"max_val", 8}};
  EXPECT_EQ(shape_of(b), (ir::Shape{4, 3}));
  EXPECT_EQ(shape_of(b, with_input({8, 3})), (ir::Shape{8, 3}));
  EXPECT_EQ(
      import_of(b, with_input({9, 3})),
      "-1: pytorch: 'net.pt': input 'x' is given with extent 9, but the program was exported for 4 to 8");
  b.program["range_constraints"]["s0"] = {{"min_val", 2}, {"max_val", nullptr}};
  EXPECT_EQ(shape_of(b), (ir::Shape{1, 3})) << "PyTorch's least open extent means any";
}

TEST(ExportedImport, GivenExtentsAreThoseOfTheirSymbol) {
  ExportedBuilder b;
  b.input("x", {"s0", 3}).input("y", {"s0", 3});
  b.node("aten.add.Tensor", "z", {{"self", tensor("x")}, {"other", tensor("y")}}).output("z");
  EXPECT_EQ(shape_of(b, with_input({5, 3}, "y")), (ir::Shape{5, 3}));
  ImportOptions options = with_input({5, 3}, "y");
  options.input_types["x"] = {ir::kFloat32, {4, 3}};
  EXPECT_EQ(import_of(b, options),
            "-1: pytorch: 'net.pt': input 'y' is given with extent 5, but the program has 4 in its place");
}

TEST(ExportedImport, OtherOpenExtentsMustBeGiven) {
  EXPECT_EQ(import_of(small({1, "s0", 8, "2*s1"})),
            "-1: pytorch: 'net.pt': input 'x' has shape 1x?x8x?: extent 1 is open; give it, for example: "
            "--input-shape x=1x2x8x2:float32");
  EXPECT_EQ(shape_of(small({1, "s0", 8, "2*s1"}), with_input({1, 4, 8, 6})), (ir::Shape{1, 4, 8, 6}));
}

TEST(ExportedImport, DerivedExtentsFollowTheirSymbols) {
  for (const char* twice : {"2*s0", "Mul(Integer(2), Symbol('s0', positive=True, integer=True))"}) {
    ExportedBuilder b;
    b.input("x", {"s0", 3}).input("y", {twice, 3}).node("aten.relu.default", "z", {{"self", tensor("y")}});
    b.output("z");
    EXPECT_EQ(shape_of(b), (ir::Shape{2, 3}));
    EXPECT_EQ(shape_of(b, with_input({5, 3})), (ir::Shape{10, 3}));
    EXPECT_EQ(import_of(b, with_input({7, 3}, "y")),
              std::string("-1: pytorch: 'net.pt': input 'y' is given with extent 7, but the program has 2 in "
                          "its place: ") +
                  twice);
  }
}

TEST(ExportedImport, ExtentsAreEvaluated) {
  const auto of = [](const std::string& text) {
    return pt::evaluate_extent(text, [](const std::string& name) {
      return name == "s0" ? std::optional<int64_t>(7) : std::nullopt;
    });
  };
  const std::pair<const char*, int64_t> known[] = {
      {"s0", 7},
      {"2*s0 + 1", 15},
      {"s0 - 3 - 2", 2},
      {"-(s0 + 1)*2", -16},
      {"(s0 - 1)//4", 1},
      {"(-s0)//2", -4},
      {"2*s0//3*2", 8},
      {"FloorDiv(Add(Symbol('s0', positive=True, integer=True), Integer(-1)), Integer(4))", 1},
      {"Add(Mul(Integer(2), s0), Integer(1))", 15}};
  for (const auto& [text, value] : known) EXPECT_EQ(of(text), value) << text;
  for (const char* text :
       {"", "s1", "2*s1", "s0**2", "s0//0", "s0 s0", "(s0", "s0)", "Max(1, s0)", "2x", "s0*",
        "99999999999999999999", "s0*1000000000*1000000000", "Symbol('s0'", "Symbol(s0)"})
    EXPECT_EQ(of(text), std::nullopt) << text;
  EXPECT_EQ(of(std::string(1000, '(')), std::nullopt);
  EXPECT_EQ(of(std::string(1000, '-') + "1"), std::nullopt);
}

TEST(ExportedImport, TypesThatContradictTheProgramAreRefused) {
  EXPECT_EQ(import_of(small(), with_input({2, 4})),
            "-1: pytorch: 'net.pt': input 'x' is given as Tensor[(2, 4), float32], but the program declares "
            "float32 2x3");
  EXPECT_EQ(import_of(small(), with_input({2, 3}, "z")),
            "-1: pytorch: 'net.pt': a type is given for 'z', which is no input; inputs are 'x'");
}

// Integers of a program are indices, which targets read as int32.
TEST(ExportedImport, IntegersMayBeGivenNarrower) {
  ExportedBuilder b;
  b.weight("w", {4, 2}, kFloat, bytes_of<float>(std::vector<float>(8))).input("i", {2, 3}, kLong);
  b.node("aten.embedding.default", "y", {{"weight", tensor("p_w")}, {"indices", tensor("i")}}).output("y");
  ImportOptions options;
  options.input_types["i"] = {ir::kInt32, {2, 3}};
  EXPECT_NE(import_of(b, options).find("take("), std::string::npos) << import_of(b, options);
  options.input_types["i"] = {ir::kInt8, {2, 3}};
  EXPECT_NE(import_of(b, options).find("the program declares int64"), std::string::npos);
}

TEST(ExportedImport, ExtentsOfTheGraphAreNumbers) {
  ExportedBuilder b;
  b.input("x", {"s0", 6, 2});
  b.raw_node("torch.ops.aten.sym_size.int", Json::array({{{"as_sym_int", {{"as_name", "n"}}}}}),
             {{"self", tensor("x")}, {"dim", integer(0)}});
  b.raw_node("_operator.mul", Json::array({{{"as_sym_int", {{"as_name", "m"}}}}}),
             {{"a", {{"as_sym_int", {{"as_name", "n"}}}}}, {"b", integer(3)}});
  b.node("aten.view.default", "y",
         {{"self", tensor("x")},
          {"size", {{"as_sym_ints", Json::array({{{"as_name", "m"}}, {{"as_int", 4}}})}}}});
  b.output("y");
  EXPECT_EQ(shape_of(b, with_input({2, 6, 2})), (ir::Shape{6, 4}));
}

TEST(ExportedImport, BoundInputsBecomeConstants) {
  ImportOptions options;
  options.bindings["x"] = ir::make_constant<float>(ir::kFloat32, {2}, {1, -2});
  EXPECT_EQ(import_of(small({2}), options), "%0 = nn.relu(const(Tensor[(2), float32], [1, -2]));\n%0\n");
}

// -- what is not imported

// Two operators that are not imported: a = fft(x), b = relu(a), c = fft(second).
ExportedBuilder with_two_missing(const std::string& second) {
  ExportedBuilder b;
  b.input("x", {2, 3});
  b.node("aten.fft_fft.default", "a", {{"self", tensor("x")}});
  b.node("aten.relu.default", "b", {{"self", tensor("a")}});
  b.node("aten.fft_fft.default", "c", {{"self", tensor(second)}});
  return b;
}

TEST(ExportedImport, AllMissingOperatorsAreListedWithTheirNumber) {
  ExportedBuilder b = with_two_missing("b");
  b.node("aten._foo.out", "d", {{"self", tensor("x")}});
  b.output("c");
  EXPECT_EQ(import_of(b),
            std::string(kRefused) +
                "3 operators that qplan does not import:\n  2 x aten::fft_fft (first 'a')\n  1 x "
                "aten::_foo ('d')");
}

// For `qplan pack --coverage`: what is not imported is a parameter, so that the rest is.
TEST(ExportedImport, OperatorsAreNotedWhereTheyAreAskedFor) {
  ExportedBuilder b = with_two_missing("x");
  b.node("aten.relu.default", "d", {{"self", tensor("c")}});
  b.output("b");
  b.graph()["tensor_values"]["a"] = b.graph()["tensor_values"]["x"];
  std::vector<SourceOperator> operators;
  ImportOptions options;
  options.operators = &operators;
  const ir::Module module = import_pytorch(b.build(), "net.pt2", {}, options);
  std::string text;
  for (const SourceOperator& op : operators) text += op.kind + " " + op.name + ": " + op.reason + "\n";
  EXPECT_EQ(
      text,
      "aten::fft_fft a: not imported\naten::relu b: \naten::fft_fft c: not imported\naten::relu d: it needs "
      "what an operator that is not imported computes\n");
  EXPECT_EQ(tflite_test::body_of(module), "%0 = nn.relu(%a);\n%0\n");
}

TEST(ExportedImport, ControlFlowIsNamedWithWhatIsInIt) {
  ExportedBuilder body;
  body.node("aten.fft_fft.default", "f", {{"self", tensor("i")}});
  body.node("aten.relu.default", "g", {{"self", tensor("f")}});
  ExportedBuilder b;
  b.input("x", {2, 3}).node("aten.relu.default", "p", {{"self", tensor("x")}});
  const Json graph = {{"as_graph", {{"name", "true_graph"}, {"graph", body.graph()}}}};
  b.raw_node("torch.ops.higher_order.cond", Json::array({tensors({"y"})}),
             {{"pred", tensor("p")}, {"true_fn", graph}, {"false_fn", graph}});
  b.output("y");
  EXPECT_EQ(import_of(b),
            std::string(kRefused) +
                "3 operators that qplan does not import:\n  2 x aten::fft_fft inside cond (first "
                "'f')\n  1 x higher_order::cond ('y')");
}

TEST(ExportedImport, BlocksWithoutGradientsAreFollowed) {
  ExportedBuilder body;
  body.graph()["inputs"] = Json::array({tensor("i")});
  body.graph()["outputs"] = Json::array({tensor("r")});
  body.node("aten.relu.default", "r", {{"self", tensor("i")}});
  ExportedBuilder b;
  b.input("x", {2, 3});
  b.raw_node("torch.ops.higher_order.wrap_with_set_grad_enabled", Json::array({tensor("y")}),
             {{"a", boolean(false)},
              {"b", {{"as_graph", {{"name", "g"}, {"graph", body.graph()}}}}},
              {"c", tensor("x")}});
  b.output("y");
  EXPECT_EQ(import_of(b), "%0 = nn.relu(%x);\n%0\n");
}

// Per row: PT2E's quantisers write one scale for a tensor.
TEST(ExportedImport, OtherDynamicQuantisationIsExplained) {
  ExportedBuilder b;
  b.input("x", {2, 3});
  b.raw_node("torch.ops.quantized_decomposed.choose_qparams_per_token.default",
             Json::array({tensor("scale"), tensor("point")}), {{"input", tensor("x")}});
  b.node("quantized_decomposed.quantize_per_token.default", "q",
         {{"input", tensor("x")}, {"scales", tensor("scale")}, {"zero_points", tensor("point")}});
  b.output("q");
  const std::string text = import_of(b);
  EXPECT_EQ(
      text.find(std::string(kRefused) + "the model is quantised dynamically, in a way that is not read"), 0u)
      << text;
  EXPECT_NE(text.find("quantized_decomposed::choose_qparams_per_token ('scale')"), std::string::npos) << text;
}

TEST(ExportedImport, BuffersThatTheModelChangesAreNamed) {
  ExportedBuilder b = small();
  const Json changed = {{"buffer_mutation", {{"arg", {{"name", "y"}}}, {"buffer_name", "count"}}}};
  b.specs("output_specs").push_back(changed);
  EXPECT_EQ(import_of(b),
            std::string(kRefused) +
                "1 operator that qplan does not import: a buffer that the model changes ('count')");
}

TEST(ExportedImport, OtherVersionsAreNamed) {
  ExportedBuilder b = small();
  b.program["schema_version"]["major"] = 7;
  b.program["torch_version"] = "2.5.1";
  const std::string text = std::string(kRefused) +
                           "the program has version 7 of PyTorch's schema (PyTorch 2.5.1), qplan reads "
                           "version 8; export the model "
                           "again with PyTorch 2.6 or later";
  EXPECT_EQ(import_of(b), text);
  b.program["schema_version"] = 7;
  EXPECT_EQ(import_of(b), text);
  ZipBuilder zip;
  zip.add("net/archive_format", to_bytes("pt2"));
  zip.add("net/archive_version", to_bytes("1"));
  EXPECT_EQ(import_text(zip.build(), {}),
            std::string(kRefused) + "the archive has version '1', expected '0'");
}

TEST(ExportedImport, OtherArchivesAreNamed) {
  ZipBuilder compiled;
  compiled.add("net/archive_format", to_bytes("pt2"));
  compiled.add("net/data/aotinductor/model/x.so", to_bytes("x"));
  EXPECT_EQ(import_text(compiled.build(), {}),
            std::string(kRefused) +
                "the archive holds code that AOTInductor compiled, not a program; save the exported program: "
                "torch.export.save(program, 'model.pt2')");
  ZipBuilder several;
  several.add("net/archive_format", to_bytes("pt2"));
  several.add("net/models/a.json", to_bytes("{}"));
  several.add("net/models/b.json", to_bytes("{}"));
  EXPECT_EQ(import_text(several.build(), {}),
            std::string(kRefused) +
                "the archive holds 2 programs ('models/a.json', 'models/b.json'); save the one that is meant "
                "alone: torch.export.save(program, 'model.pt2')");
  ZipBuilder none;
  none.add("net/archive_format", to_bytes("pt2"));
  EXPECT_EQ(import_text(none.build(), {}),
            std::string(kBroken) + "the archive has no models/*.json: it holds no exported program");
}

// -- broken files

TEST(ExportedImport, BrokenProgramsAreRefused) {
  ExportedBuilder missing = small();
  missing.graph().erase("nodes");
  EXPECT_EQ(import_of(missing), std::string(kBroken) + "the program lacks member 'nodes'");
  ExportedBuilder kind = small();
  kind.graph()["nodes"] = 3;
  EXPECT_EQ(import_of(kind), std::string(kBroken) + "member 'nodes' of the program is not a list");
  ExportedBuilder wide = small();
  wide.graph()["nodes"][0]["inputs"][0]["arg"] = {{"as_tensor", 1}, {"as_int", 1}};
  EXPECT_EQ(import_of(wide),
            std::string(kBroken) + "the program has a union that is not an object of one member");
  ExportedBuilder unknown;
  unknown.input("x", {1}).node("aten.relu.default", "y", {{"self", tensor("z")}}).output("y");
  EXPECT_EQ(import_of(unknown), std::string(kBroken) + "value 'z' is read before any node writes it");
  ExportedBuilder twice = small();
  twice.node("aten.relu.default", "x", {{"self", tensor("y")}});
  EXPECT_EQ(import_of(twice), std::string(kBroken) + "value 'x' is defined twice");
  ExportedBuilder several;
  several.input("x", {1});
  several.raw_node("torch.ops.aten.relu.default", Json::array({tensor("a"), tensor("b")}),
                   {{"self", tensor("x")}});
  EXPECT_EQ(import_of(several), std::string(kBroken) + "node 'a' has 2 results, which aten::relu has not");
  ExportedBuilder twins = small();
  twins.input("x", {2, 3});
  EXPECT_EQ(import_of(twins), std::string(kBroken) + "two inputs are called 'x'");
}

TEST(ExportedImport, ProgramsThatAreNoJsonAreRefused) {
  const auto with_program = [](const std::string& text) {
    ZipBuilder zip;
    zip.add("serialized_exported_program.json", to_bytes(text));
    return import_text(zip.build(), {});
  };
  EXPECT_EQ(with_program("{"),
            std::string(kBroken) + "'serialized_exported_program.json' is not JSON (byte 2)");
  EXPECT_EQ(with_program(std::string(1000, '[')),
            std::string(kBroken) + "'serialized_exported_program.json' nests more than 64 deep");
  EXPECT_EQ(
      with_program("[" + std::string(5'000'000, ',') + "]"),
      std::string(kBroken) +
          "'serialized_exported_program.json' has 5000001 commas and brackets, at most 4000000 are read: "
          "it is no network");
  EXPECT_EQ(with_program("{}"), std::string(kBroken) + "the program lacks member 'schema_version'");
}

// As Python writes them; later versions of PyTorch write strings.
TEST(ExportedImport, InfinitiesAreNumbers) {
  ExportedBuilder b;
  b.input("x", {2}).node("aten.clamp.default", "y",
                         {{"self", tensor("x")}, {"min", number(0)}, {"max", number(1)}});
  b.output("y");
  const std::string program = b.program.dump();
  const size_t at = program.find("{\"as_float\":1.0}");
  ASSERT_NE(at, std::string::npos) << program;
  for (const std::string infinity : {"Infinity", "\"Infinity\""}) {
    std::string text = program;
    text.replace(at, 16, "{\"as_float\":" + infinity + "}");
    text.insert(1, "\"a \\\"NaN\": \"-Infinity \\\\\",");
    ZipBuilder weights;
    weights.add("archive/data.pkl", PickleWriter().op('}').stop());
    ZipBuilder zip;
    zip.add("serialized_exported_program.json", to_bytes(text));
    zip.add("serialized_state_dict.pt", weights.build());
    zip.add("serialized_constants.pt", weights.build());
    EXPECT_EQ(import_text(zip.build(), {}), "%0 = nn.relu(%x);\n%0\n") << infinity;
  }
}

TEST(ExportedImport, TensorsThatAreNotThereAreNamed) {
  ExportedBuilder b = small();
  b.specs("input_specs").push_back({{"parameter", {{"arg", {{"name", "p_w"}}}, {"parameter_name", "w"}}}});
  EXPECT_EQ(import_of(b), std::string(kBroken) + "tensor 'w' is not among the state dict");
  b.specs("input_specs").back() = {
      {"buffer", {{"arg", {{"name", "p_w"}}}, {"buffer_name", "w"}, {"persistent", false}}}};
  EXPECT_EQ(import_of(b), std::string(kBroken) + "tensor 'w' is not among the constants");
}

TEST(ExportedImport, TensorsThatLeaveTheirBytesAreRefused) {
  ExportedBuilder b;
  b.input("x", {2, 3}).weight("w", {2, 3}, kFloat, bytes_of<float>({1, 2, 3, 4, 5}));
  b.node("aten.add.Tensor", "y", {{"self", tensor("x")}, {"other", tensor("p_w")}}).output("y");
  for (const ExportedForm form : {ExportedForm::kFiles, ExportedForm::kPayloads}) {
    EXPECT_EQ(
        import_text(b.build(form), {}),
        std::string(kBroken) +
            "aten::add 'y': a tensor of shape [2, 3], strides [3, 1] and offset 0 leaves its storage of 5 "
            "elements");
  }
}

// Each of the two would be within the limit.
TEST(ExportedImport, ZipsInTheZipShareItsLimit) {
  constexpr int64_t kElements = int64_t{10} << 20;
  const Bytes zeros(kElements * sizeof(float));
  ExportedBuilder b;
  b.deflates = true;
  b.input("x", {1}).weight("w", {kElements}, kFloat, zeros).constant("c", {kElements}, kFloat, zeros);
  b.node("aten.add.Tensor", "s", {{"self", tensor("x")}, {"other", tensor("p_w")}});
  b.node("aten.add.Tensor", "t", {{"self", tensor("s")}, {"other", tensor("c_c")}}).output("t");
  EXPECT_EQ(import_of(b),
            std::string(kBroken) +
                "aten::add 't': entry 'archive/data/0': the entries take more than 16 times the "
                "file's size");
}

// A pickle in a zip in the zip: names are looked up in the same list.
TEST(ExportedImport, PicklesOfWeightsExecuteNothing) {
  ZipBuilder inner;
  inner.add("archive/data.pkl", PickleWriter().global("os", "system").stop());
  const Bytes saved = inner.build();
  ZipBuilder zip;
  zip.add("serialized_exported_program.json", to_bytes(small().program.dump()));
  zip.add("serialized_state_dict.pt", saved);
  zip.add("serialized_constants.pt", saved);
  EXPECT_EQ(
      import_text(zip.build(), {}),
      std::string(kBroken) +
          "'serialized_state_dict.pt': byte 2: the pickle names 'os.system', which no network needs; it was "
          "not executed");
}

// One file of torch.save, which so many names name.
std::string with_pickle(const PickleWriter& pickle, size_t names) {
  ZipBuilder inner;
  inner.add("archive/data.pkl", pickle.stop());
  ZipBuilder zip;
  zip.add("net/models/model.json", to_bytes(small().program.dump()));
  zip.add("net/data/weights/w.pt", inner.build(), true);
  Json config = Json::object();
  for (size_t i = 0; i < names; ++i) {
    config["w" + std::to_string(i)] = {
        {"path_name", "w.pt"}, {"is_param", true}, {"use_pickle", true}, {"tensor_meta", Json::object()}};
  }
  zip.add("net/data/weights/model_weights_config.json", to_bytes(Json{{"config", config}}.dump()));
  zip.add("net/data/constants/model_constants_config.json", to_bytes("{\"config\":{}}"));
  return import_text(zip.build(), {});
}

// Read for every name, the pickle would make 5,000,000 values.
TEST(ExportedImport, APickleWithManyNamesIsReadOnce) {
  const PickleWriter pickle = PickleWriter().op('(').raw(std::string(1000, 'N')).op('t');
  EXPECT_EQ(with_pickle(pickle, 5'000), "%0 = nn.relu(%x);\n%0\n");
}

TEST(ExportedImport, TheOpcodesOfAPickleAreCounted) {
  constexpr size_t kMost = 8'000'000;
  std::string remembered(2 * kMost, '\0');
  for (size_t i = 0; i < remembered.size(); i += 2) remembered[i] = 'q';
  EXPECT_EQ(with_pickle(PickleWriter().op('N').raw(remembered), 1),
            std::string(kBroken) +
                "'net/data/weights/w.pt': byte 15999999: the pickle has more than 8000000 opcodes");
}

// As a network of 1,500 layers has them.
TEST(ExportedImport, AProgramMayHaveManyTensors) {
  ExportedBuilder b = small();
  std::string values;
  for (int i = 0; i < 30'000; ++i) values += ",\"t" + std::to_string(i) + "\":{}";
  std::string text = b.program.dump();
  const size_t at = text.find("},\"sym_int_values\"");
  ASSERT_NE(at, std::string::npos) << text;
  text.insert(at, values);
  ZipBuilder weights;
  weights.add("archive/data.pkl", PickleWriter().op('}').stop());
  ZipBuilder zip;
  zip.add("serialized_exported_program.json", to_bytes(text));
  zip.add("serialized_state_dict.pt", weights.build());
  zip.add("serialized_constants.pt", weights.build());
  EXPECT_EQ(import_text(zip.build(), {}), "%0 = nn.relu(%x);\n%0\n");
}

TEST(ExportedImport, AnOutputThatIsAParameterIsNamed) {
  ExportedBuilder b = small();
  b.weight("w", {2}, kFloat, bytes_of<float>({1, 2})).output("p_w");
  EXPECT_EQ(import_of(b), std::string(kRefused) +
                              "output 1 is a constant of the model, expected a tensor that it computes");
}

// zip -r adds the folders.
TEST(ExportedImport, FoldersAreNoPrograms) {
  ZipBuilder weights;
  weights.add("archive/data.pkl", PickleWriter().op('}').stop());
  ZipBuilder zip;
  for (const char* folder : {"net/", "net/models/", "net/data/"}) zip.add(folder, {});
  zip.add("net/models/model.json", to_bytes(small().program.dump()));
  zip.add("net/data/weights/model.pt", weights.build());
  zip.add("net/data/constants/model.pt", weights.build());
  EXPECT_EQ(import_text(zip.build(), {}), "%0 = nn.relu(%x);\n%0\n");
}

TEST(ExportedImport, EveryTruncationIsRefused) {
  const Bytes whole = QuantisedNetwork().builder().build();
  for (size_t size = 0; size < whole.size(); size += 7) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(import_text(cut, {}).find(kBroken), 0u) << size;
  }
}

}  // namespace
}  // namespace qplan::pytorch_test::exported_import_test
