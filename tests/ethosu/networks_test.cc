// Real networks packed for Ethos-U: their share of the device, and every output byte on its simulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/ethosu/sim_device.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::ethosu_networks_test {
namespace {

using ethosu::testing::SimDevice;

constexpr const char* kConfigs[] = {"ethos-u55-128", "ethos-u65-256"};

// Every output byte is the golden one, and every region ran on the device.
void run_on_device(const std::string& model, const std::string& config, const std::vector<uint8_t>& plan,
                   const std::vector<GoldenCase>& cases) {
  const SimDevice device(config);
  ModelSession session(plan, QPLAN_ISA_AUTO, 1, device.config());
  for (const GoldenCase& golden : cases) {
    std::vector<std::vector<uint8_t>> inputs;
    for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
    const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
    ASSERT_EQ(outputs.size(), golden.outputs.size());
    for (size_t o = 0; o < outputs.size(); ++o)
      EXPECT_TRUE(outputs[o] == read_bytes(golden.outputs[o])) << golden.name << ", output " << o;
  }
  const uint32_t count = qplan_session_num_regions(session.get());
  ASSERT_GT(count, 0u);
  for (uint32_t i = 0; i < count; ++i) {
    qplan_region_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(qplan_session_region_info(session.get(), i, &info), QPLAN_OK);
    EXPECT_EQ(info.device_runs, cases.size()) << info.name << ": " << info.text;
    EXPECT_EQ(info.cpu_runs, 0u) << info.name << ": " << info.text;
    std::cout << model << " on " << config << ": " << info.name << ", " << info.last_cycles << " cycles\n";
  }
}

class EthosuNetworks : public ::testing::TestWithParam<std::tuple<std::string, const char*>> {
 protected:
  void SetUp() override {
    model_ = std::get<0>(GetParam()), config_ = std::get<1>(GetParam());
    if (model_.empty()) GTEST_SKIP() << kNoDataDirectory;
    cases_ = golden_cases("A").at(model_);
  }
  std::string model_, config_;
  std::vector<GoldenCase> cases_;
};

TEST_P(EthosuNetworks, RunOnTheDeviceToTheGoldenBytes) {
  const std::vector<uint8_t> plan = pack_model(model_path(model_).string(), (config_ + ", cpu").c_str());
  const Buffer<uint8_t> aligned(plan);
  std::vector<uint8_t> text;
  qplan_error error = empty_error();
  ASSERT_EQ(qplan_inspect_json(aligned.data(), aligned.size(), append_bytes, &text, &error), QPLAN_OK)
      << error.text;
  const nlohmann::json json = nlohmann::json::parse(text);
  uint64_t macs = 0;
  for (const nlohmann::json& region : json.at("regions")) macs += region.at("macs").get<uint64_t>();
  EXPECT_GE(macs * 100, json.at("functions")[0].at("macs").get<uint64_t>() * 95) << "share of the device";

  run_on_device(model_, config_, plan, cases_);
}

// Convolutions of int16 activations with biases of int64, each of which is a model of its own.
class EthosuInt16Layers : public ::testing::TestWithParam<const char*> {};

TEST_P(EthosuInt16Layers, RunOnTheDeviceToTheGoldenBytes) {
  const std::string config = GetParam(), target = config + ", cpu";
  qplan_pack_options options = pack_options(target.c_str());
  options.no_cost_gate = 1;
  size_t layers = 0;
  for (const auto& [model, cases] : golden_cases("C")) {
    if (!model.starts_with("seanet/conv")) continue;
    const std::vector<uint8_t> plan = pack_bytes(read_bytes(model_path(model)), model.c_str(), options);
    run_on_device(model, config, plan, cases);
    ++layers;
  }
  if (layers == 0) GTEST_SKIP() << kNoDataDirectory;
  EXPECT_EQ(layers, 11u);
}

INSTANTIATE_TEST_SUITE_P(All, EthosuInt16Layers,
                         ::testing::Values("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256",
                                           "ethos-u65-256", "ethos-u65-512"),
                         [](const auto& config) { return as_test_name(config.param); });

INSTANTIATE_TEST_SUITE_P(All, EthosuNetworks,
                         ::testing::Combine(::testing::ValuesIn(golden_models()),
                                            ::testing::ValuesIn(kConfigs)),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param) + "_" + std::get<1>(test.param);
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace qplan::testing::ethosu_networks_test
