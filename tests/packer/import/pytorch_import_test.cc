// Archives as a whole: inputs, outputs, what is logged, and files that are something else.
#include <gtest/gtest.h>

#include "src/packer/import/import.h"
#include "tests/packer/import/pytorch_helpers.h"

namespace qplan::pytorch_test::pytorch_import_test {
namespace {

TEST(PytorchImport, ShapesOfInputsMustBeGiven) {
  EXPECT_EQ(
      import_text(ArchiveBuilder("    return a\n", ", a: Tensor, b: Tensor").build(), {}),
      "-1: pytorch: 'net.pt': TorchScript does not record the shapes of inputs; give them, for example: "
      "--input-shape a=1x3x224x224:float32 --input-shape b=1x3x224x224:float32");
}

TEST(PytorchImport, NamesThatAreNoInputsAreRefused) {
  EXPECT_EQ(import_text(ArchiveBuilder("    return x\n").build(), with_input({1}, "y")),
            "-1: pytorch: 'net.pt': a type is given for 'y', which is no input; inputs are 'x'");
}

TEST(PytorchImport, BoundInputsBecomeConstants) {
  ImportOptions options = with_input({2});
  options.bindings["b"] = ir::make_constant<float>(ir::kFloat32, {2}, {1, 2});
  EXPECT_EQ(
      import_text(ArchiveBuilder("    return torch.add(x, b)\n", ", x: Tensor, b: Tensor").build(), options),
      "%0 = add(%x, const(Tensor[(2), float32], [1, 2]));\n%0\n");
}

TEST(PytorchImport, InputsThatAreNoTensorsAreUnsupported) {
  EXPECT_EQ(import_text(ArchiveBuilder("    return x\n", ", x: List[Tensor]").build(), with_input({1})),
            "-49: pytorch: 'net.pt': input 'x' is 'List[Tensor]', expected a Tensor");
}

TEST(PytorchImport, OutputsKeepTheirQuantisation) {
  const Bytes bytes =
      ArchiveBuilder("    q = torch.quantize_per_tensor(x, 0.5, 3, 13)\n    return (x, q)\n").build();
  const ir::Module module = import_pytorch(bytes, "net.pt", {}, with_input({1, 4}));
  EXPECT_EQ(module.main().output_names(), (std::vector<std::string>{"output_0", "output_1"}));
  EXPECT_FALSE(output_quantization(module.main(), 0));
  const auto quantization = output_quantization(module.main(), 1);
  ASSERT_TRUE(quantization);
  EXPECT_EQ(quantization->scale, 0.5f);
  EXPECT_EQ(quantization->zero_point, 3);
}

// 1 / 0.25 and -2 / 0.125 are whole numbers; with a scale of 0.3 at the input they are not, and one of them
// is truncated to another number than it is rounded to: 6.67 to 7, -26.67 to -27.
TEST(PytorchImport, BiasesThatTruncationWouldChangeAreCounted) {
  std::string log;
  import_text(ArchiveBuilder("    q = torch.quantize_per_tensor(x, 0.3, 3, 13)\n"
                             "    return ops.quantized.conv2d(q, CONSTANTS.c0, 2., 7)\n")
                  .build(),
              with_input({1, 2, 4, 4}), &log);
  EXPECT_EQ(
      log,
      "pytorch: 'net.pt': 2 bias values became int32, rounded half to even; truncation (as torch.onnx.export "
      "does) would give 2 of them another value\n");
}

TEST(PytorchImport, ModulesThatAreNotFrozenAreToldHow) {
  PickleWriter module;
  module.global("__torch__", "Net").raw(")\x81}(").text("weight").tensor("FloatStorage", "0", 1, 0, {1}, {1});
  module.raw("ub");
  ArchiveBuilder builder("    return torch.cumsum(x, 1)\n");
  builder.module(module);
  EXPECT_EQ(
      import_text(builder.build(), with_input({1, 4})),
      "-49: pytorch: 'net.pt': 1 operator that qplan does not import: aten::cumsum ('cumsum')\nfreeze the "
      "model: m = torch.jit.freeze(m.eval()), m.save('model.pt')");
}

TEST(PytorchImport, OtherFilesOfPytorchAreToldApart) {
  ZipBuilder saved;
  saved.add("net/data.pkl", PickleWriter().op('N').stop());
  EXPECT_EQ(
      import_text(saved.build(), {}).find("-49: pytorch: 'net.pt': the file holds pickled Python objects"),
      0u);
  ZipBuilder other;
  other.add("readme.txt", to_bytes("hello"));
  EXPECT_EQ(import_text(other.build(), {}),
            "-48: pytorch: 'net.pt': the zip has no constants.pkl: it is no TorchScript archive");
}

TEST(PytorchImport, EveryTruncationIsRefused) {
  const Bytes whole = ArchiveBuilder("    return x\n").build();
  ASSERT_EQ(import_text(whole, with_input({1, 4})), "%x\n");
  for (size_t size = 0; size < whole.size(); size += 5) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(import_text(cut, with_input({1, 4})).find("-48: pytorch: 'net.pt': "), 0u) << size;
  }
}

}  // namespace
}  // namespace qplan::pytorch_test::pytorch_import_test
