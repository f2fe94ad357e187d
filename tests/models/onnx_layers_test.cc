// Each layer by itself: given ONNX Runtime's own input to it, its output is at most 1 away from ONNX
// Runtime's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::onnx_layers_test {
namespace {

struct Layer {
  int index;
  std::string tensor;  // that the layer writes
  ir::Shape shape;     // NCHW
};

std::vector<Layer> layers_of(const std::filesystem::path& folder) {
  std::vector<Layer> layers;
  for (const auto& entry : nlohmann::json::parse(std::ifstream(folder / "layers.json"))) {
    layers.push_back({entry.at("k"), entry.at("tensor"), entry.at("shape").get<ir::Shape>()});
  }
  return layers;
}

// The layer whose output the node makes: nodes have the name of the tensor and what became of it.
std::optional<size_t> layer_of(const std::vector<Layer>& layers, const ir::Function& main,
                               const ir::Node& node) {
  const ir::DType dtype = main.type(node.results[0]).dtype;
  if (dtype != ir::kInt8 && dtype != ir::kUint8) return std::nullopt;
  std::optional<size_t> best;
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string& tensor = layers[i].tensor;
    if (node.name != tensor && !node.name.starts_with(tensor + "_")) continue;
    if (!best || layers[*best].tensor.size() < tensor.size()) best = i;
  }
  return best;
}

// NCHW as NHWC.
std::vector<uint8_t> channels_last(const std::vector<uint8_t>& bytes, const ir::Shape& shape) {
  if (shape.size() != 4) return bytes;
  const auto c = static_cast<size_t>(shape[1]), hw = static_cast<size_t>(shape[2] * shape[3]);
  std::vector<uint8_t> moved(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) moved[i % hw * c + i / hw] = bytes[i];
  return moved;
}

// The layers side by side: each reads parameters in place of what the others write.
struct Apart {
  ir::Module module;
  std::vector<size_t> layers;  // by output, and by parameter after the first
};

Apart taken_apart(const ir::Function& main, const std::vector<Layer>& layers) {
  Apart apart;
  ir::Function& function = apart.module.add_function("main");
  std::vector<ir::ValueId> values(main.num_values()), outputs;
  values[main.params()[0].index] = function.add_param("input", main.type(main.params()[0]));
  const auto value_of = [&](ir::ValueId id) {
    return main.is_constant(id) ? function.add_constant(main.value(id).constant) : values[id.index];
  };
  const auto& nodes = main.nodes();
  // The last node of a layer counts: a clip may follow, and reshapes have the name of what they reshape.
  std::vector<std::optional<size_t>> last(layers.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto layer = layer_of(layers, main, nodes[i])) last[*layer] = i;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId operand : nodes[i].operands) operands.push_back(value_of(operand));
    const ir::ValueId result =
        function.add_node(*nodes[i].op, std::move(operands), nodes[i].attrs, nodes[i].name).results[0];
    values[nodes[i].results[0].index] = result;
    const auto layer = layer_of(layers, main, nodes[i]);
    if (!layer || last[*layer] != i) continue;
    outputs.push_back(result);
    apart.layers.push_back(*layer);
    values[nodes[i].results[0].index] =
        function.add_param("layer_" + std::to_string(*layer), function.type(result));
  }
  function.set_outputs(std::move(outputs));
  return apart;
}

struct Network {
  const char* name;
  const char* layers;  // folder
  const char* input;   // case
};

class OnnxLayers : public ::testing::TestWithParam<Network> {};

TEST_P(OnnxLayers, AreAtMostOneFromOnnxRuntime) {
  const auto& [name, folder_name, input_name] = GetParam();
  const std::filesystem::path golden = shared_directory() / "golden_onnx" / name;
  const std::filesystem::path folder = golden / folder_name;
  if (!std::filesystem::exists(folder / "layers.json")) {
    GTEST_SKIP() << "no data directory: set QPLAN_SHARED to a folder with golden_onnx/ (default: ../shared)";
  }
  const std::filesystem::path path = shared_directory() / "onnx" / (std::string(name) + "_A.onnx");
  const ir::Module module = canonical_module(read_bytes(path), path.filename().string(), {});
  const std::vector<Layer> layers = layers_of(folder);
  const Apart apart = taken_apart(module.main(), layers);

  const auto golden_of = [&](size_t layer) {
    char file[32];
    std::snprintf(file, sizeof file, "%03d_ort.bin", layers[layer].index);
    return channels_last(read_bytes(folder / file), layers[layer].shape);
  };
  std::vector<std::vector<uint8_t>> inputs{read_bytes(golden / input_name / "input_nchw.bin")};
  for (const size_t layer : apart.layers) inputs.push_back(golden_of(layer));
  const std::string text = text::print(apart.module);
  const AlignedBytes plan =
      pack({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, "layers.relay", {});
  ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
  const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);

  ASSERT_EQ(outputs.size(), apart.layers.size());
  EXPECT_EQ(apart.layers.size(), layers.size()) << "layers that no node was found for";
  size_t exact = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<uint8_t> expected = golden_of(apart.layers[i]);
    ASSERT_EQ(outputs[i].size(), expected.size());
    const bool is_signed = module.main().type(module.main().params()[0]).dtype == ir::kInt8;
    int most = 0;
    for (size_t k = 0; k < expected.size(); ++k) {
      const int found = is_signed ? static_cast<int8_t>(outputs[i][k]) : outputs[i][k];
      const int wanted = is_signed ? static_cast<int8_t>(expected[k]) : expected[k];
      most = std::max(most, std::abs(found - wanted));
    }
    EXPECT_LE(most, 1) << "layer " << layers[apart.layers[i]].index << " '" << layers[apart.layers[i]].tensor
                       << "'";
    exact += most == 0;
  }
  std::printf("  %s: %zu of %zu layers are equal, the others at most 1 apart\n", name, exact, outputs.size());
}

constexpr Network kNetworks[] = {
    {"kws_ref_model", "kws_input0_layers", "kws_input0"},
    {"mobilenet_v1_0.25_128_quant", "cat_layers", "cat"},
    {"pretrainedResnet_quant", "cat_layers", "cat"},
};
INSTANTIATE_TEST_SUITE_P(Models, OnnxLayers, ::testing::ValuesIn(kNetworks),
                         [](const auto& test) { return as_test_name(test.param.name); });

}  // namespace
}  // namespace qplan::testing::onnx_layers_test
