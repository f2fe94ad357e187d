// Real networks with schedules that are no step's default: every output byte is still the reference's.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kModels[] = {"mobilenet_v1_0.25_128_quant.tflite", "person_detect.tflite",
                                   "pretrainedResnet_quant.tflite"};

void append_text(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

Json tuning_space(const std::vector<uint8_t>& plan) {
  std::string text;
  qplan_error error = empty_error();
  if (qplan_tuning_space(plan.data(), plan.size(), QPLAN_ISA_AUTO, 2, append_text, &text, &error) < 0)
    throw std::runtime_error(error.text);
  return Json::parse(text);
}

// A log in which the fastest schedule of each step is the n-th of those that could be, but never the default
// where there is another.
std::string log_of(const Json& space, size_t n) {
  std::string log;
  for (const Json& step : space.at("steps")) {
    const Json& candidates = step.at("candidates");
    Json line;
    line["key"] = step.at("key");
    line["schedule"] = candidates.size() < 2 ? candidates[0] : candidates[1 + n % (candidates.size() - 1)];
    line["threads"] = 2;
    line["ns"] = 1;
    log += line.dump() + "\n";
  }
  return log;
}

std::vector<uint8_t> pack_tuned(const std::string& model, const std::string& log) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "tuned_plan_test.jsonl";
  std::ofstream(path, std::ios::binary) << log;
  qplan_pack_options options = pack_options();
  options.tuning_file = path.c_str();
  options.tuning_threads = 2;
  std::vector<uint8_t> plan;
  qplan_error error = empty_error();
  const qplan_status status =
      qplan_pack_file(model_path(model).c_str(), &options, append_bytes, &plan, &error);
  std::filesystem::remove(path);
  if (status < 0) throw std::runtime_error(error.text);
  return plan;
}

class TunedPlan : public ::testing::TestWithParam<const char*> {};

TEST_P(TunedPlan, EveryOutputByteIsTheReferences) {
  const auto cases = golden_cases("A");
  if (cases.empty()) GTEST_SKIP() << kNoDataDirectory;
  ASSERT_EQ(cases.count(GetParam()), 1u) << "no golden case of the model";
  const std::vector<uint8_t> plain = pack_model(model_path(GetParam()).string());
  const Json space = tuning_space(plain);
  for (const size_t n : {0u, 5u, 11u, 17u, 23u, 29u}) {
    const std::vector<uint8_t> plan = pack_tuned(GetParam(), log_of(space, n));
    ASSERT_NE(plan, plain);
    for (const uint32_t num_threads : {1u, 2u}) {
      ModelSession session(plan, QPLAN_ISA_AUTO, num_threads);
      for (const GoldenCase& golden : cases.at(GetParam())) {
        std::vector<std::vector<uint8_t>> inputs, expected;
        for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
        for (const auto& path : golden.outputs) expected.push_back(read_bytes(path));
        EXPECT_TRUE(session.run(inputs) == expected)
            << golden.name << ", log " << n << ", " << num_threads << " threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TunedPlan, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing
