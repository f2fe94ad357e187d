// Every quantised network of the data directory becomes operators on integers; floats are left where the
// function quantises its inputs and dequantises its outputs, and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/models/golden_data.h"

namespace qplan::no_float_left_test {
namespace {

std::vector<std::filesystem::path> models() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"onnx", "torch"}) {
    std::error_code absent;
    for (const auto& entry :
         std::filesystem::directory_iterator(testing::shared_directory() / folder, absent)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".onnx" || extension == ".pt") paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

// TorchScript does not say what its inputs are; the networks' names do.
PackOptions options_for(const std::filesystem::path& path) {
  PackOptions options;
  if (path.extension() != ".pt") return options;
  const std::string name = path.filename().string();
  const int64_t extent = name.starts_with("mnv2") ? 224 : name.starts_with("resnet8") ? 32 : 96;
  options.import.input_types.insert({"x", {ir::kFloat32, {1, 3, extent, extent}}});
  return options;
}

TEST(NoFloatLeft, InAnyNetwork) {
  const std::vector<std::filesystem::path> paths = models();
  if (paths.empty()) GTEST_SKIP() << testing::kNoDataDirectory;
  for (const std::filesystem::path& path : paths) {
    SCOPED_TRACE(path.filename().string());
    const ir::Module module = canonical_module(testing::read_bytes(path), path.string(), options_for(path));
    const ir::Function& main = module.main();
    EXPECT_EQ(passes::explain_float_leftovers(main, {}), "");
    for (const ir::Node& node : main.nodes()) {
      if (node.op->name == "qnn.quantize") {
        EXPECT_EQ(main.value(node.operands[0]).kind, ir::ValueKind::kParam) << node.name;
      } else if (node.op->name == "qnn.dequantize") {
        EXPECT_NE(std::ranges::find(main.outputs(), node.results[0]), main.outputs().end()) << node.name;
      } else {
        EXPECT_FALSE(main.type(node.results[0]).dtype.is_float())
            << node.op->name << " '" << node.name << "'";
      }
    }
  }
}

}  // namespace
}  // namespace qplan::no_float_left_test
