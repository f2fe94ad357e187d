// Networks that PyTorch quantised: TorchScript archives against PyTorch's own outputs, and against the ONNX
// exports of the same networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/pipeline/stages.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/packer/import/pytorch_builder.h"

namespace qplan::testing::torch_models_test {
namespace {

std::filesystem::path torch_path(const std::string& name) { return shared_directory() / "torch" / name; }

constexpr char kNoTorch[] =
    "no data directory: set QPLAN_SHARED to a folder with torch/ (default: ../shared)";
bool has_data() { return std::filesystem::exists(torch_path("resnet8_torch_frozen.pt")); }

PackOptions with_input(int64_t extent) {
  PackOptions options;
  options.import.input_types["x"] = {ir::kFloat32, {1, 3, extent, extent}};
  return options;
}

std::vector<float> as_floats(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// One step of the output: the scale with which it is dequantised.
float output_step(const ir::Function& main) {
  ir::ValueId value = main.outputs()[0];
  for (const ir::Node* node = main.producer(value); node != nullptr; node = main.producer(value)) {
    if (node->op->name == "qnn.dequantize") return main.value(node->operands[1]).constant->as<float>()[0];
    value = node->operands[0];
  }
  throw std::runtime_error("the output is not dequantised");
}

class TorchModel {
 public:
  TorchModel(const std::string& name, int64_t extent) {
    const std::vector<uint8_t> model = read_bytes(torch_path(name));
    const PackOptions options = with_input(extent);
    step_ = output_step(import_model(model, name, options).main());
    const AlignedBytes plan = pack(model, name, options);
    plan_.assign(plan.data(), plan.data() + plan.size());
  }

  std::vector<float> run(const std::filesystem::path& input, uint32_t isa) {
    ModelSession session(plan_, isa, 1);
    return as_floats(session.run({read_bytes(input)}).at(0));
  }
  float step() const { return step_; }

 private:
  std::vector<uint8_t> plan_;
  float step_ = 0;
};

// The largest difference in units of `step`. Every variant gives the same bytes.
struct Distance {
  double steps = 0;
  bool same_top1 = false;
};
Distance distance(TorchModel& model, const std::filesystem::path& input, const std::vector<float>& expected,
                  double step) {
  const std::vector<float> found = model.run(input, QPLAN_ISA_AUTO);
  EXPECT_EQ(found, model.run(input, QPLAN_ISA_REFERENCE)) << "the reference kernels differ";
  EXPECT_EQ(found.size(), expected.size());
  Distance result;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    result.steps = std::max(result.steps, std::fabs(double{found[i]} - double{expected[i]}) / step);
  }
  result.same_top1 = std::ranges::max_element(found) - found.begin() ==
                     std::ranges::max_element(expected) - expected.begin();
  return result;
}

struct GoldenModel {
  const char* file;
  const char* folder;
  int64_t extent;
  // What ONNX Runtime reaches on the export of the same network, in steps of the case's own scale.
  double most_steps;
};
constexpr GoldenModel kGoldenModels[] = {
    {"resnet8_torch_frozen.pt", "torch_resnet8", 32, 5},
    {"resnet8_torch_traced.pt", "torch_resnet8", 32, 5},
    {"mnv2_torch_frozen.pt", "torch_mnv2", 224, 12},
};

class TorchGolden : public ::testing::TestWithParam<GoldenModel> {};

TEST_P(TorchGolden, SameTopClassAndFewStepsFromPytorch) {
  if (!has_data()) GTEST_SKIP() << kNoTorch;
  const GoldenModel& golden = GetParam();
  TorchModel model(golden.file, golden.extent);
  for (const char* name : {"cat", "grace_hopper", "sunflower"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = torch_path("golden") / golden.folder / name;
    const double step = nlohmann::json::parse(std::ifstream(folder / "case.json")).at("output").at("scale");
    const Distance found = distance(model, folder / "input_nchw_f32.bin",
                                    as_floats(read_bytes(folder / "output_torch_f32.bin")), step);
    EXPECT_LE(found.steps, golden.most_steps + 0.01);
    EXPECT_TRUE(found.same_top1);
    std::printf("  %s, %s: at most %.2f steps from PyTorch\n", golden.file, name, found.steps);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TorchGolden, ::testing::ValuesIn(kGoldenModels),
                         [](const auto& test) { return as_test_name(test.param.file); });

struct StepModel {
  const char* file;
  const char* input;
  const char* output;
};
constexpr StepModel kStepModels[] = {
    {"mbv2like_eager_qnnpack_frozen.pt", "x_qnnpack.bin", "y_eager_qnnpack.bin"},
    {"mbv2like_fx_qnnpack_frozen.pt", "x_qnnpack.bin", "y_fx_qnnpack.bin"},
    {"qat_fused_frozen.pt", "x_qatf.bin", "y_qatf_int8.bin"},
};

class TorchSteps : public ::testing::TestWithParam<StepModel> {};

TEST_P(TorchSteps, AtMostOneStepFromPytorch) {
  if (!has_data()) GTEST_SKIP() << kNoTorch;
  TorchModel model(GetParam().file, 96);
  const Distance found = distance(model, torch_path(GetParam().input),
                                  as_floats(read_bytes(torch_path(GetParam().output))), model.step());
  EXPECT_LE(found.steps, 1.01);
  std::printf("  %s: at most %.2f steps from PyTorch\n", GetParam().file, found.steps);
}

INSTANTIATE_TEST_SUITE_P(Models, TorchSteps, ::testing::ValuesIn(kStepModels),
                         [](const auto& test) { return as_test_name(test.param.file); });

struct Pair {
  const char* first;
  const char* second;
  int64_t extent;
  uint64_t biases;  // values that the exporter truncates to another number
  const char* difference = "";
};
// A dead channel, whose bias does not fit int32 at its scale: the exporter writes -2^31 and keeps the scale,
// the importer of TorchScript takes four times the scale.
constexpr char kDeadChannel[] =
    "node 1: qnn.conv2d 'input0' | '/1/Conv': kernel_scale 4.7683716e-07 | 1.1920929e-07 at index 7 (1 of 32 "
    "values differ)";
constexpr Pair kPairs[] = {
    {"resnet8_torch_frozen.pt", "resnet8_torch_traced.pt", 32, 0},
    {"resnet8_torch_frozen.pt", "resnet8_torch_qdq.onnx", 32, 168},
    {"mnv2_torch_frozen.pt", "mnv2_torch_qdq.onnx", 224, 8900, kDeadChannel},
    {"mbv2like_eager_qnnpack_frozen.pt", "mbv2like_eager_qnnpack_opset13.onnx", 96, 1359},
    {"mbv2like_fx_qnnpack_frozen.pt", "mbv2like_fx_qnnpack_opset13.onnx", 96, 1355},
};

class TorchPair : public ::testing::TestWithParam<Pair> {};

TEST_P(TorchPair, HaveOneCanonicalBody) {
  if (!has_data()) GTEST_SKIP() << kNoTorch;
  const Pair& pair = GetParam();
  const auto canonical = [&](const char* name) {
    PackOptions options = with_input(pair.extent);
    const bool onnx = std::string(name).ends_with(".onnx");
    if (onnx) options.import.input_types.clear();  // exports record their shapes
    options.skip = {"remove_dead_channels"};       // bodies have all channels
    return canonical_module(read_bytes(torch_path(name)), name, options);
  };
  const ir::Module first = canonical(pair.first), second = canonical(pair.second);
  const pipeline::BodyDifference difference = pipeline::compare_bodies(
      pipeline::canonical_body(first.main()), pipeline::canonical_body(second.main()));
  EXPECT_EQ(difference.first, pair.difference);
  EXPECT_EQ(difference.biases, pair.biases);
  std::printf("  %s: %llu of %llu biases differ by 1\n", pair.second,
              static_cast<unsigned long long>(difference.biases),
              static_cast<unsigned long long>(difference.biases_total));
}

INSTANTIATE_TEST_SUITE_P(Models, TorchPair, ::testing::ValuesIn(kPairs),
                         [](const auto& test) { return as_test_name(test.param.second); });

// The input is the numbers 0 to 19 in five rows. What is expected are the outputs of torch.max_pool2d and
// torch.avg_pool2d of PyTorch 1.13.
TEST(TorchPools, CeilModeGivesPytorchsNumbers) {
  std::vector<float> data(20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  std::vector<uint8_t> input(data.size() * sizeof(float));
  std::memcpy(input.data(), data.data(), input.size());
  const std::pair<const char*, std::vector<float>> cases[] = {
      {"torch.max_pool2d(x, [3], [2], [1], [1], True)", {5, 7, 7, 13, 15, 15, 17, 19, 19}},
      {"torch.avg_pool2d(x, [3], [2], [1], True, True)",
       {10.f / 9, 24.f / 9, 10.f / 6, 51.f / 9, 10, 33.f / 6, 58.f / 9, 96.f / 9, 34.f / 6}},
      {"torch.avg_pool2d(x, [3], [2], [1], True, False)", {2.5, 4, 5, 8.5, 10, 11, 14.5, 16, 17}},
      {"torch.avg_pool2d(x, [2], [2], [0], True, True)", {2.5, 4.5, 10.5, 12.5, 16.5, 18.5}},
  };
  for (const auto& [call, expected] : cases) {
    PackOptions options;
    options.import.input_types["x"] = {ir::kFloat32, {1, 1, 5, 4}};
    const AlignedBytes plan = pack(
        pytorch_test::ArchiveBuilder("    return " + std::string(call) + "\n").build(), "net.pt", options);
    ModelSession session({plan.data(), plan.data() + plan.size()}, QPLAN_ISA_AUTO, 1);
    const std::vector<float> found = as_floats(session.run({input}).at(0));
    ASSERT_EQ(found.size(), expected.size()) << call;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-6f * expected[i]) << call << ", element " << i;
  }
}

}  // namespace
}  // namespace qplan::testing::torch_models_test
