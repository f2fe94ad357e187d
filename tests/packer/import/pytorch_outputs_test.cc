// What forward returns: tensors in tuples, lists, dicts and NamedTuples, and the names that the outputs have.
// Dicts within the code. Hints of refusals.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/packer/op/op_def.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_outputs_test {
namespace {

// "name=operator" of each output, or the error.
std::string outputs_of(const std::string& body, const std::string& code_before = "") {
  try {
    ArchiveBuilder builder(body);
    builder.file("__torch__/out.py", code_before);
    const ir::Module module = import_pytorch(builder.build(), "net.pt", {}, with_input({1, 4}));
    ir::verify(module);
    const ir::Function& main = *module.functions()[0];
    std::string text;
    for (size_t i = 0; i < main.outputs().size(); ++i) {
      const ir::Node* node = main.producer(main.outputs()[i]);
      text += (i == 0 ? "" : " ") + main.output_names()[i] + "=" + (node == nullptr ? "x" : node->op->name);
    }
    return text;
  } catch (const PackError& error) {
    return tflite_test::without_closing(error.what());
  }
}

TEST(PytorchOutputs, KeysOfADictAreNames) {
  EXPECT_EQ(outputs_of("    return {\"out\": torch.exp(x), \"aux\": torch.abs(x)}\n"), "out=exp aux=abs");
  EXPECT_EQ(outputs_of("    d = annotate(Dict[str, Tensor], {})\n"
                       "    _0 = torch._set_item(d, \"out\", torch.exp(x))\n"
                       "    _1 = torch._set_item(d, \"aux\", torch.abs(x))\n"
                       "    _2 = torch._set_item(d, \"out\", torch.neg(d[\"aux\"]))\n"
                       "    return d\n"),
            "out=negative aux=abs");
}

TEST(PytorchOutputs, FieldsOfANamedTupleAreNames) {
  constexpr char kClass[] = "class Out(NamedTuple):\n  logits : Tensor\n  aux : Tensor\n";
  EXPECT_EQ(outputs_of("    return __torch__.out.Out(torch.exp(x), aux=torch.abs(x))\n", kClass),
            "logits=exp aux=abs");
  EXPECT_EQ(
      outputs_of("    o = __torch__.out.Out(torch.exp(x), torch.abs(x))\n    return (o.aux, o[0])\n", kClass),
      "output_0=abs output_1=exp");
  EXPECT_EQ(
      outputs_of("    return __torch__.out.Out(torch.exp(x))\n", kClass),
      "pytorch: 'net.pt': 1 operator that qplan does not import: 1 of 2 fields of a NamedTuple ('forward')");
}

TEST(PytorchOutputs, NestedResultsStandOneAfterTheOther) {
  EXPECT_EQ(outputs_of("    return (torch.exp(x), (torch.abs(x), [torch.neg(x)]))\n"),
            "output_0=exp output_1=abs output_2=negative");
  EXPECT_EQ(outputs_of("    return {\"a\": (torch.exp(x), torch.abs(x)), \"b\": torch.neg(x)}\n"),
            "output_0=exp output_1=abs b=negative");
}

// Each names itself: as deep as it likes.
TEST(PytorchOutputs, ResultsThatHoldThemselvesAreRefused) {
  EXPECT_EQ(outputs_of("    a = [x]\n    b = [a]\n    _0 = torch.append(b, b)\n    return b\n"),
            "pytorch: 'net.pt': 1 operator that qplan does not import: results that are nested too deeply "
            "('forward')");
}

TEST(PytorchOutputs, DictsAndListsInTheCode) {
  EXPECT_EQ(outputs_of("    d = {\"a\": x, \"b\": 2.}\n"
                       "    if torch.__contains__(d, \"b\"):\n      y = torch.exp(d[\"a\"])\n"
                       "    else:\n      y = torch.abs(x)\n"
                       "    if torch.__contains__([1, 2], 3):\n      z = x\n    else:\n      z = y\n"
                       "    l = [x, x]\n    _0 = torch._set_item(l, -1, z)\n"
                       "    return l[1]\n"),
            "output_0=exp");
  EXPECT_EQ(outputs_of("    d = {\"a\": x}\n    return d[\"b\"]\n"),
            "pytorch: 'net.pt': a dict has no key 'b'");
  // The operator that is not imported is what the error names.
  EXPECT_EQ(
      outputs_of(
          "    d = {\"a\": x}\n    _0 = torch._set_item(d, \"b\", torch.fft(x))\n    return d[\"b\"]\n"),
      "pytorch: 'net.pt': 1 operator that qplan does not import: aten::fft ('_0/fft')");
}

TEST(PytorchHints, ModelsForTheKernelsOfOneProcessor) {
  EXPECT_EQ(outputs_of("    return ops.prepacked.conv2d_clamp_run(x, CONSTANTS.c0)\n"),
            "pytorch: 'net.pt': the model was prepared for the kernels of one processor "
            "(torch.jit.optimize_for_inference or optimize_for_mobile); save it without that: m = "
            "torch.jit.freeze(torch.jit.script(m.eval())), m.save('model.pt')\n1 operator that qplan does "
            "not import: prepacked::conv2d_clamp_run ('conv2d_clamp_run')");
  EXPECT_EQ(outputs_of("    return torch.to_mkldnn(x)\n"),
            "pytorch: 'net.pt': the model was prepared for the kernels of one processor "
            "(torch.jit.optimize_for_inference or optimize_for_mobile); save it without that: m = "
            "torch.jit.freeze(torch.jit.script(m.eval())), m.save('model.pt')\n1 operator that qplan does "
            "not import: aten::to_mkldnn ('to_mkldnn')");
}

// The share of a model in TorchScript is not counted: --coverage would print the same list.
TEST(PytorchHints, CoverageIsNotForTorchScript) {
  try {
    import_pytorch(ArchiveBuilder("    return torch.fft(x)\n").build(), "net.pt", {}, with_input({1, 4}));
    FAIL();
  } catch (const PackError& error) {
    EXPECT_NE(std::string(error.what()).find("\nto do: replace these operators"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find("--coverage"), std::string::npos);
  }
}

TEST(PytorchHints, IndicesOfInt64) {
  ImportOptions options;
  options.input_types["x"] = {ir::kInt64, {1, 3}};
  std::string log;
  import_text(ArchiveBuilder("    return torch.embedding(torch.full([4, 2], 0.5, dtype=6), x)\n").build(),
              options, &log);
  EXPECT_EQ(log,
            "pytorch: aten::embedding 'embedding': targets read indices of int32 only; give them as such: "
            "--input-shape x=1x3:int32\n");
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_outputs_test
