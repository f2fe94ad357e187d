// LSTM and GRU of ONNX through a plan: against an oracle in NumPy, over every form of the operators
// (tests/data/operators/recurrent.py), and models that PyTorch exported against PyTorch's outputs
// (tests/data/recurrent/export.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/models/near.h"
#include "tests/packer/import/onnx_builder.h"

namespace qplan::testing::onnx_recurrent_test {
namespace {

using namespace onnx_test;  // NOLINT: the words of the builder
using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

Bytes from_hexadecimal(const std::string& text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

int onnx_type(const std::string& name) {
  if (name == "int8") return kInt8;
  return name == "int32" ? kInt32 : kFloat;
}

struct Network {
  Bytes model;
  std::vector<Bytes> inputs, outputs;
};

Network network_of(const Json& json) {
  OnnxBuilder b(json.at("operators").back().at("domain") == "" ? 14 : 13);
  b.import_opset("com.microsoft", 1);
  Network network;
  for (const Json& tensor : json.at("tensors")) {
    const std::string name = tensor.at("name");
    const int type = onnx_type(tensor.at("type"));
    const std::vector<int64_t> shape = tensor.at("shape");
    const Bytes bytes = from_hexadecimal(tensor.at("data"));
    if (tensor.at("is_input").get<bool>()) {
      b.input(name, type, shape);
      network.inputs.push_back(bytes);
    } else {
      b.constant<uint8_t>(name, type, shape, bytes);
    }
  }
  for (const Json& node : json.at("operators")) {
    std::vector<Message> attributes;
    for (const auto& [key, value] : node.at("attributes").items())
      attributes.push_back(value.is_string() ? attr_string(key, value.get<std::string>())
                                             : attr_int(key, value.get<int64_t>()));
    b.node(node.at("op").get<std::string>(), node.at("inputs").get<Names>(), node.at("outputs").get<Names>(),
           attributes, node.at("domain").get<std::string>());
  }
  for (const Json& output : json.at("outputs")) {
    b.output(output.at("name").get<std::string>(), kFloat, output.at("shape"));
    network.outputs.push_back(from_hexadecimal(output.at("data")));
  }
  network.model = b.finish();
  return network;
}

// Outputs of these layers are in [-1, 1], or near it: within 1e-5 of the oracle, on each of these ISAs, and
// the same bytes on both.
void expect_network(const Network& network) {
  const Bytes plan = pack_bytes(network.model, "net.onnx");
  std::vector<std::vector<Bytes>> results;
  for (const uint32_t isa : {QPLAN_ISA_AUTO, QPLAN_ISA_REFERENCE}) {
    ModelSession session(plan, isa, 1);
    results.push_back(session.run(network.inputs));
  }
  EXPECT_EQ(results[0], results[1]) << "the reference computes other bytes";
  ASSERT_EQ(results[0].size(), network.outputs.size());
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    const std::vector<float> found = floats_of(results[0][i]), expected = floats_of(network.outputs[i]);
    ASSERT_EQ(found.size(), expected.size()) << "output " << i;
    for (size_t k = 0; k < found.size(); ++k)
      ASSERT_NEAR(found[k], expected[k], 1e-5 * std::max(1.0f, std::fabs(expected[k])))
          << "output " << i << ", element " << k;
  }
}

TEST(OnnxRecurrent, EveryFormIsNearTheOracle) {
  std::ifstream file("tests/data/operators/recurrent.json");
  const Json cases = Json::parse(file);
  ASSERT_GE(cases.size(), 20u);
  for (const Json& json : cases) {
    const Json& node = json.at("operators").back();
    SCOPED_TRACE(node.at("op").get<std::string>() + " " + node.at("attributes").dump() + " " +
                 node.at("inputs").dump());
    EXPECT_NO_THROW(expect_network(network_of(json)));
  }
}

Bytes file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

TEST(OnnxRecurrent, ModelsOfPyTorchGiveItsOutputs) {
  struct Exported {
    const char* name;
    std::vector<size_t> inputs, outputs;  // their elements
  };
  const Exported models[] = {{"tagger", {7 * 6}, {7 * 3}},
                             {"classifier", {11 * 4}, {3}},
                             {"streaming_lstm", {6, 8, 8}, {16, 8, 8}},
                             {"streaming_gru", {6, 16}, {32, 16}}};
  for (const Exported& model : models) {
    SCOPED_TRACE(model.name);
    const std::string path = std::string("tests/data/recurrent/") + model.name;
    const Bytes values = file_bytes(path + ".bin");
    size_t at = 0;
    const auto take = [&](const std::vector<size_t>& counts) {
      std::vector<Bytes> tensors;
      for (const size_t count : counts) {
        const auto first = values.begin() + static_cast<ptrdiff_t>(at);
        tensors.emplace_back(first, first + static_cast<ptrdiff_t>(count * sizeof(float)));
        at += count * sizeof(float);
      }
      return tensors;
    };
    Network network{file_bytes(path + ".onnx"), take(model.inputs), take(model.outputs)};
    ASSERT_EQ(at, values.size());
    EXPECT_NO_THROW(expect_network(network));
  }
}

}  // namespace
}  // namespace qplan::testing::onnx_recurrent_test
