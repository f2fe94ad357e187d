// The border of a model: its inputs in planes (NCHW) or as reals cost what they take themselves, and no more.
// A network is in the same steps and cascades whichever importer read it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/models/golden_data.h"

namespace qplan::testing::border_test {
namespace {

struct Border {
  const char* io = "";
  const char* layout = "";
  const char* target = "";
  const char* contract = "";
};

struct Packed {
  uint64_t arena_bytes = 0;
  uint64_t scratch_bytes = 0;  // of a worker
  uint32_t num_cascades = 0;
  std::vector<std::string> layers;  // steps, and in place of cascades their layers; without conversions
  uint32_t num_conversions = 0;     // steps that only convert an input: quantize, transpose
};

bool is_conversion(const std::string& op) { return op == "quantize" || op == "transpose"; }

Packed pack_file(const std::filesystem::path& path, const Border& border) {
  PackOptions options;
  options.io = border.io;
  options.io_layout = border.layout;
  options.target = border.target[0] == '\0' ? "cpu" : border.target;
  options.contract = border.contract;
  if (path.extension() == ".pt") options.import.input_types["x"] = {ir::kFloat32, {1, 3, 224, 224}};
  const AlignedBytes plan = pack(read_bytes(path), path.string(), options);
  const auto json = nlohmann::json::parse(inspect::inspect_json(inspect::PlanReader(plan.span()).view()));
  Packed packed;
  packed.arena_bytes = json.at("memory").at("arena_bytes");
  packed.scratch_bytes = json.at("memory").at("scratch_per_worker_bytes");
  const auto add = [&](const std::string& op) {
    if (!is_conversion(op)) packed.layers.push_back(op);
  };
  for (const nlohmann::json& step : json.at("steps")) {
    if (is_conversion(step.at("op"))) ++packed.num_conversions;
    if (step.at("op") != "chain") {
      add(step.at("op"));
      continue;
    }
    ++packed.num_cascades;
    for (const nlohmann::json& layer : step.at("layers")) add(layer.at("op"));
  }
  return packed;
}

std::filesystem::path onnx(const std::string& name) { return shared_directory() / "onnx" / name; }
std::filesystem::path torch(const std::string& name) { return shared_directory() / "torch" / name; }

constexpr uint64_t kImage = 3 * 224 * 224;  // elements

TEST(Border, MobilenetOfOnnxTakesWhatThatOfTfliteTakes) {
  const auto planes = onnx("tf2_mobilenet_v2_1.0_224_ptq_A.onnx");
  if (!std::filesystem::exists(planes)) GTEST_SKIP() << kNoDataDirectory;
  const Packed tflite = pack_file(model_path("tf2_mobilenet_v2_1.0_224_ptq.tflite"), {.contract = "f32e"});
  const Packed found = pack_file(planes, {});
  EXPECT_EQ(found.arena_bytes, tflite.arena_bytes);
  EXPECT_EQ(found.scratch_bytes, tflite.scratch_bytes);
  EXPECT_EQ(found.num_cascades, tflite.num_cascades);
  EXPECT_GT(found.num_cascades, 4u);
  EXPECT_EQ(found.layers, tflite.layers);
  EXPECT_EQ(found.num_conversions, 0u);
}

// Its tables between layers and its planes take no memory; reals take three bytes more for each element.
// Its weights have no zero point, so that depthwise kernels may take less scratch.
TEST(Border, MobilenetOfPytorchTakesWhatThatOfTfliteTakes) {
  const auto model = torch("mnv2_torch_frozen.pt");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << kNoDataDirectory;
  const Packed tflite = pack_file(model_path("mobilenet_v2_1.0_224_quant.tflite"), {});
  for (const char* layout : {"nchw", "nhwc"}) {
    const Packed bytes = pack_file(model, {.io = "int8", .layout = layout});
    EXPECT_EQ(bytes.arena_bytes, tflite.arena_bytes) << layout;
    EXPECT_LE(bytes.scratch_bytes, tflite.scratch_bytes) << layout;
    EXPECT_EQ(bytes.num_cascades, tflite.num_cascades) << layout;
    EXPECT_EQ(bytes.num_conversions, 0u) << layout;
    const Packed reals = pack_file(model, {.io = "float", .layout = layout});
    EXPECT_EQ(reals.arena_bytes, tflite.arena_bytes + 3 * kImage) << layout;
    EXPECT_EQ(reals.scratch_bytes, bytes.scratch_bytes) << layout;
    EXPECT_EQ(reals.num_cascades, tflite.num_cascades) << layout;
    EXPECT_EQ(reals.num_conversions, 0u) << layout;
  }
}

// A network too small for cascades: one step converts the input, whichever border it has.
TEST(Border, SmallNetworksConvertTheirInputInOneStep) {
  const auto model = onnx("pretrainedResnet_quant_B.onnx");
  if (!std::filesystem::exists(model)) GTEST_SKIP() << kNoDataDirectory;
  const Packed bytes = pack_file(model_path("pretrainedResnet_quant.tflite"), {.contract = "f32e"});
  EXPECT_EQ(bytes.num_conversions, 0u);
  for (const char* io : {"int8", "float"}) {
    const Packed planes = pack_file(model, {.io = io, .layout = "nchw"});
    EXPECT_EQ(planes.num_conversions, 1u) << io;
    EXPECT_EQ(planes.num_cascades, bytes.num_cascades) << io;
  }
}

}  // namespace
}  // namespace qplan::testing::border_test
