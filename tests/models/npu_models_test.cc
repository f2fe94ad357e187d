// Real networks packed for VTA: their share of the device, and every output byte, without the device and on
// its simulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/support/npu_sim_device.h"

namespace qplan::testing::npu_models_test {
namespace {

constexpr char kTarget[] = "vta, cpu";

struct Expected {
  const char* model;
  uint32_t percent;  // of the MACs, at least, on the device
};
constexpr Expected kModels[] = {
    {"kws_ref_model.tflite", 100},
    {"pretrainedResnet_quant.tflite", 95},
    {"person_detect.tflite", 95},
    {"tf2_mobilenet_v2_1.0_224_ptq.tflite", 95},
    {"mobilenet_v1_0.25_128_quant.tflite", 95},
    {"mobilenet_v1_0.75_192_quant.tflite", 95},
    {"mobilenet_v2_1.0_224_quant.tflite", 95},
};

void expect_golden(ModelSession& session, const GoldenCase& golden) {
  std::vector<std::vector<uint8_t>> inputs;
  for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
  const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
  ASSERT_EQ(outputs.size(), golden.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<uint8_t> expected = read_bytes(golden.outputs[i]);
    ASSERT_EQ(outputs[i].size(), expected.size());
    const auto differs = std::mismatch(outputs[i].begin(), outputs[i].end(), expected.begin());
    EXPECT_TRUE(differs.first == outputs[i].end())
        << golden.name << ", output " << i << ": differs from byte " << differs.first - outputs[i].begin();
  }
}

class NpuModels : public ::testing::TestWithParam<Expected> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_path(GetParam().model))) GTEST_SKIP() << kNoDataDirectory;
    cases_ = golden_cases("A").at(GetParam().model);
  }
  std::vector<uint8_t> pack(bool fallback = true) const {
    return pack_model(model_path(GetParam().model).string(), kTarget, fallback);
  }

  std::vector<GoldenCase> cases_;
};

uint64_t share_of_device(const std::vector<uint8_t>& plan) {
  const Buffer<uint8_t> aligned(plan);
  std::vector<uint8_t> text;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_inspect_json(aligned.data(), aligned.size(), append_bytes, &text, &error), QPLAN_OK)
      << error.text;
  const nlohmann::json json = nlohmann::json::parse(text);
  uint64_t device = 0;
  for (const nlohmann::json& region : json.at("regions")) device += region.at("macs").get<uint64_t>();
  return device * 100 / json.at("functions")[0].at("macs").get<uint64_t>();
}

TEST_P(NpuModels, MostOfTheMacsAreOnTheDeviceAndWithoutItTheBytesAreTheGoldenOnes) {
  const std::vector<uint8_t> plan = pack();
  EXPECT_GE(share_of_device(plan), GetParam().percent);
  ModelSession session(plan, QPLAN_ISA_AUTO, 2);
  EXPECT_GT(qplan_session_num_regions(session.get()), 0u);
  for (const GoldenCase& golden : cases_) expect_golden(session, golden);
}

TEST_P(NpuModels, OnTheSimulatorTheBytesAreTheGoldenOnes) {
  const NpuSimDevice device("vta");
  const std::vector<uint8_t> plan = pack();
  ModelSession session(plan, QPLAN_ISA_AUTO, 2, device.config());
  const auto begin = std::chrono::steady_clock::now();
  for (const GoldenCase& golden : cases_) expect_golden(session, golden);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const uint32_t count = qplan_session_num_regions(session.get());
  ASSERT_GT(count, 0u);
  uint64_t cycles = 0;
  for (uint32_t i = 0; i < count; ++i) {
    qplan_region_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(qplan_session_region_info(session.get(), i, &info), QPLAN_OK);
    EXPECT_EQ(info.device_runs, cases_.size()) << info.name << ": " << info.text;
    EXPECT_EQ(info.cpu_runs, 0u) << info.name << ": " << info.text;
    cycles += info.last_cycles;
  }
  std::cout << GetParam().model << ": " << count << " regions, " << cycles << " cycles, " << seconds
            << " s for " << cases_.size() << " cases on the simulator\n";
}

TEST_P(NpuModels, WithoutFallbackThePlanIsSmallerAndNeedsTheDevice) {
  const std::vector<uint8_t> whole = pack(), alone = pack(false);
  EXPECT_LT(alone.size(), whole.size());
  EXPECT_THROW(ModelSession(alone, QPLAN_ISA_AUTO, 1), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Models, NpuModels, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return as_test_name(test.param.model); });

// A design without MUL: convolutions leave their accumulators to the CPU, which requantises them.
class NpuWithoutMul : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_path(GetParam()))) GTEST_SKIP() << kNoDataDirectory;
    cases_ = golden_cases("A").at(GetParam());
    plan_ = pack_model(model_path(GetParam()).string(), "vta,mul=off, cpu");
  }

  std::vector<GoldenCase> cases_;
  std::vector<uint8_t> plan_;
};

TEST_P(NpuWithoutMul, TheCpuRequantisesToTheGoldenBytesWithTheDeviceAndWithout) {
  EXPECT_GE(share_of_device(plan_), 50u);
  {
    ModelSession session(plan_, QPLAN_ISA_AUTO, 2);
    for (const GoldenCase& golden : cases_) expect_golden(session, golden);
  }
  const NpuSimDevice device("vta", "multiply=0");
  ModelSession session(plan_, QPLAN_ISA_AUTO, 2, device.config());
  expect_golden(session, cases_.front());
  const uint32_t count = qplan_session_num_regions(session.get());
  ASSERT_GT(count, 0u);
  for (uint32_t i = 0; i < count; ++i) {
    qplan_region_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(qplan_session_region_info(session.get(), i, &info), QPLAN_OK);
    EXPECT_EQ(info.device_runs, 1u) << info.name << ": " << info.text;
    EXPECT_EQ(info.cpu_runs, 0u) << info.name << ": " << info.text;
  }
}

// Also with bytes that no picture and no recording has.
TEST_P(NpuWithoutMul, AnyInputGivesTheBytesOfAPlanForTheCpuAlone) {
  const NpuSimDevice device("vta", "multiply=0");
  ModelSession npu(plan_, QPLAN_ISA_AUTO, 2, device.config());
  ModelSession without(plan_, QPLAN_ISA_AUTO, 2);
  ModelSession cpu(pack_model(model_path(GetParam()).string()), QPLAN_ISA_AUTO, 2);
  std::vector<std::vector<uint8_t>> inputs;
  for (const auto& path : cases_.front().inputs) {
    std::vector<uint8_t> bytes = read_bytes(path);
    uint32_t state = 1;
    for (uint8_t& byte : bytes) {
      state = state * 1664525u + 1013904223u;
      byte = static_cast<uint8_t>(state >> 24);
    }
    inputs.push_back(std::move(bytes));
  }
  const auto expected = cpu.run(inputs);
  EXPECT_EQ(without.run(inputs), expected);
  EXPECT_EQ(npu.run(inputs), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, NpuWithoutMul,
                         ::testing::Values("kws_ref_model.tflite", "pretrainedResnet_quant.tflite"),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing::npu_models_test
