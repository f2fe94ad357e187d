// Networks in ONNX's forms against ONNX Runtime's outputs, under its arithmetic and under TFLite's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::onnx_golden_test {
namespace {

constexpr char kNoOnnx[] =
    "no data directory: set QPLAN_SHARED to a folder with onnx/ and golden_onnx/ (default: ../shared)";

std::filesystem::path onnx_path(const std::string& network, const std::string& form) {
  return shared_directory() / "onnx" / (network + "_" + form + ".onnx");
}
bool has_data() { return std::filesystem::exists(onnx_path("kws_ref_model", "A")); }

std::vector<std::filesystem::path> cases_of(const std::string& network) {
  std::vector<std::filesystem::path> cases;
  for (const auto& entry :
       std::filesystem::directory_iterator(shared_directory() / "golden_onnx" / network)) {
    if (std::filesystem::exists(entry.path() / "case.json")) cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

class OnnxModel {
 public:
  OnnxModel(const std::string& network, const std::string& form, const PackOptions& options = {}) {
    const std::filesystem::path path = onnx_path(network, form);
    const AlignedBytes plan = pack(read_bytes(path), path.filename().string(), options);
    plan_.assign(plan.data(), plan.data() + plan.size());
  }
  // Every variant gives the same bytes.
  std::vector<uint8_t> run(const std::vector<uint8_t>& input) const {
    ModelSession best(plan_, QPLAN_ISA_AUTO, 1), reference(plan_, QPLAN_ISA_REFERENCE, 2);
    const std::vector<uint8_t> output = best.run({input}).at(0);
    EXPECT_EQ(output, reference.run({input}).at(0)) << "the reference kernels differ";
    return output;
  }

 private:
  std::vector<uint8_t> plan_;
};

// 8-bit numbers of either kind.
int number(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

int most_apart(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, bool is_signed) {
  EXPECT_EQ(a.size(), b.size());
  int most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(number(a[i], is_signed) - number(b[i], is_signed)));
  }
  return most;
}

size_t top1(const std::vector<uint8_t>& bytes, bool is_signed) {
  const auto less = [&](uint8_t a, uint8_t b) { return number(a, is_signed) < number(b, is_signed); };
  return static_cast<size_t>(std::ranges::max_element(bytes, less) - bytes.begin());
}

struct Network {
  const char* name;
  bool is_signed;                  // input and output of form A
  std::vector<const char*> forms;  // that have integer input and output, of A's dtype
  int most_apart;  // from ONNX Runtime's bytes, its integer kernels; 255: only the best class counts
};
const std::vector<Network>& networks() {
  static const std::vector<Network> kNetworks = {
      {"kws_ref_model", true, {"A", "Apad"}, 0},
      {"mobilenet_v1_0.25_128_quant", false, {"A", "Apad", "As8w", "qop"}, 1},
      {"pretrainedResnet_quant", true, {"A", "Apad"}, 255},
      {"tf2_mobilenet_v2_1.0_224_ptq", false, {"A"}, 255},
  };
  return kNetworks;
}

TEST(OnnxGolden, BytesOfOnnxRuntime) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  for (const Network& network : networks()) {
    for (const char* form : network.forms) {
      const OnnxModel model(network.name, form);
      for (const std::filesystem::path& path : cases_of(network.name)) {
        SCOPED_TRACE(std::string(network.name) + "_" + form + ", " + path.filename().string());
        const std::vector<uint8_t> expected = read_bytes(path / "output_A_all.bin");
        const std::vector<uint8_t> found = model.run(read_bytes(path / "input_nchw.bin"));
        const int apart = most_apart(found, expected, network.is_signed);
        EXPECT_LE(apart, network.most_apart);
        EXPECT_EQ(top1(found, network.is_signed), top1(expected, network.is_signed));
        std::printf("  %s_%s, %s: at most %d apart\n", network.name, form, path.filename().c_str(), apart);
      }
    }
  }
}

// Float input and output, float weights: the same bytes after quantising the output.
TEST(OnnxGolden, TheFloatEpilogueGivesTheBytesOfTheIntegerForm) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  for (const Network& network : networks()) {
    if (!std::filesystem::exists(onnx_path(network.name, "B"))) continue;
    const OnnxModel integer(network.name, "A"), floating(network.name, "B");
    for (const std::filesystem::path& path : cases_of(network.name)) {
      SCOPED_TRACE(path.string());
      const auto output = nlohmann::json::parse(std::ifstream(path / "case.json")).at("output");
      const auto scale = static_cast<float>(output.at("scale").get<double>());
      const int zero_point = output.at("zero_point");
      const std::vector<uint8_t> bytes = floating.run(read_bytes(path / "input_nchw_f32.bin"));
      std::vector<uint8_t> quantized(bytes.size() / sizeof(float));
      for (size_t i = 0; i < quantized.size(); ++i) {
        float value = 0;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        quantized[i] = static_cast<uint8_t>(static_cast<int>(std::nearbyint(value / scale)) + zero_point);
      }
      EXPECT_EQ(quantized, integer.run(read_bytes(path / "input_nchw.bin")));
    }
  }
}

// Weights or activations moved between uint8 and int8: the same real values, so the same bytes up to the
// sign.
TEST(OnnxGolden, ResignedFormsGiveTheSameRealValues) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  for (const Network& network : networks()) {
    if (!std::filesystem::exists(onnx_path(network.name, "Au8a"))) continue;
    const OnnxModel plain(network.name, "A"), resigned(network.name, "Au8a");
    for (const std::filesystem::path& path : cases_of(network.name)) {
      SCOPED_TRACE(path.string());
      std::vector<uint8_t> input = read_bytes(path / "input_nchw.bin");
      std::vector<uint8_t> expected = plain.run(input);
      if (network.is_signed) {  // its input and output become uint8
        for (uint8_t& byte : input) byte ^= 0x80;
        for (uint8_t& byte : expected) byte ^= 0x80;
      }
      EXPECT_EQ(resigned.run(input), expected);
    }
  }
}

TEST(OnnxGolden, UnderTflitesArithmeticTheyGiveTflitesBytes) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  PackOptions options;
  options.contract = "tfl2";
  for (const Network& network : networks()) {
    const OnnxModel model(network.name, "A", options);
    for (const std::filesystem::path& path : cases_of(network.name)) {
      EXPECT_EQ(model.run(read_bytes(path / "input_nchw.bin")), read_bytes(path / "output_np_tflite_ref.bin"))
          << path;
    }
  }
}

// ONNX Runtime's own optimised files: integer operators where it has them, float ones between.
TEST(OnnxGolden, QOperatorFormsRunAndFindTheSameClass) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  for (const Network& network : networks()) {
    if (!std::filesystem::exists(onnx_path(network.name, "qop"))) continue;
    const OnnxModel model(network.name, "qop");
    for (const std::filesystem::path& path : cases_of(network.name)) {
      const std::vector<uint8_t> found = model.run(read_bytes(path / "input_nchw.bin"));
      EXPECT_EQ(top1(found, network.is_signed),
                top1(read_bytes(path / "output_A_all.bin"), network.is_signed))
          << path;
    }
  }
}

TEST(OnnxGolden, QOperatorMobilenetHasTheLayersOfTheQdqForm) {
  if (!has_data()) GTEST_SKIP() << kNoOnnx;
  const auto canonical = [](const char* form) {
    const std::filesystem::path path = onnx_path("mobilenet_v1_0.25_128_quant", form);
    return canonical_module(read_bytes(path), path.filename().string(), {});
  };
  const ir::Module qdq = canonical("A"), qop = canonical("qop");
  EXPECT_EQ(pipeline::compare_bodies(qdq.main(), qop.main()).first, "");
  const auto contracts = [](const ir::Module& module) {
    std::vector<std::string> found;
    for (const ir::Node& node : module.main().nodes()) found.push_back(node.attrs.get_string("contract", ""));
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(contracts(qdq), contracts(qop));
}

// ---- what PyTorch's exporter writes ----

struct Export {
  const char* file;
  const char* input;
  const char* output;
  double most_steps;  // of the output's scale
};

std::vector<Export> exports() {
  std::vector<Export> all = {
      {"mbv2like_eager_qnnpack_opset13.onnx", "x_qnnpack.bin", "y_eager_qnnpack.bin", 1},
      {"mbv2like_fx_qnnpack_opset13.onnx", "x_qnnpack.bin", "y_fx_qnnpack.bin", 1},
      {"qat_fakequant_opset13.onnx", "x_qat.bin", "y_qat.bin", 1},
  };
  for (const char* name : {"cat", "grace_hopper", "sunflower"}) {
    static std::vector<std::string> kept;
    kept.reserve(12);
    for (const auto& [file, folder, steps] : {std::tuple("resnet8_torch_qdq.onnx", "torch_resnet8", 5.0),
                                              std::tuple("mnv2_torch_qdq.onnx", "torch_mnv2", 12.0)}) {
      const std::string path = std::string("golden/") + folder + "/" + name;
      kept.push_back(path + "/input_nchw_f32.bin");
      kept.push_back(path + "/output_torch_f32.bin");
      all.push_back({file, kept[kept.size() - 2].c_str(), kept.back().c_str(), steps});
    }
  }
  return all;
}

std::vector<float> as_floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

float output_step(const ir::Function& main) {
  const ir::Node* node = main.producer(main.outputs()[0]);
  while (node != nullptr && node->op->name != "qnn.dequantize") node = main.producer(node->operands[0]);
  if (node == nullptr) throw std::runtime_error("the output is not dequantised");
  return main.value(node->operands[1]).constant->as<float>()[0];
}

TEST(OnnxExports, AreNearPytorchsOutputs) {
  const std::filesystem::path torch = shared_directory() / "torch";
  if (!std::filesystem::exists(torch / "resnet8_torch_qdq.onnx")) GTEST_SKIP() << kNoOnnx;
  for (const Export& e : exports()) {
    SCOPED_TRACE(std::string(e.file) + ", " + e.input);
    const std::vector<uint8_t> model = read_bytes(torch / e.file);
    const float step = output_step(canonical_module(model, e.file, {}).main());
    const AlignedBytes plan = pack(model, e.file, {});
    ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
    const std::vector<float> found = as_floats(session.run({read_bytes(torch / e.input)}).at(0));
    const std::vector<float> expected = as_floats(read_bytes(torch / e.output));
    ASSERT_EQ(found.size(), expected.size());
    double steps = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      steps = std::max(steps, std::fabs(double{found[i]} - double{expected[i]}) / double{step});
    }
    EXPECT_LE(steps, e.most_steps + 0.01);
    EXPECT_EQ(std::ranges::max_element(found) - found.begin(),
              std::ranges::max_element(expected) - expected.begin());
    std::printf("  %s, %s: at most %.2f steps from PyTorch\n", e.file, e.input, steps);
  }
}

}  // namespace
}  // namespace qplan::testing::onnx_golden_test
