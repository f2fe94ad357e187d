// Real networks with schedules that are no step's default, and with the cascades that times of steps ask for:
// every output byte is still the reference's.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/models/expect_golden.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing::tuned_plan_test {
namespace {

using Json = nlohmann::ordered_json;

// 239 to 868 million multiply-accumulates a run, the others at most 14. A large one takes the reference 4 to
// 15 seconds for all its cases, so that golden_test.cc alone runs them with it; vectors have two logs for a
// large one.
constexpr std::string_view kLargeModels[] = {
    "deeplabv3_mnv2_dm05_pascal_quant.tflite",
    "mobilenet_v1_0.75_192_quant.tflite",
    "mobilenet_v1_1.0_224_quant_embedding_extractor.tflite",
    "mobilenet_v2_1.0_224_quant.tflite",
    "mobilenet_v2_quantized_1x3x224x224.tflite",
    "tf2_mobilenet_v2_1.0_224_ptq.tflite",
};
// Steps of a few bytes: there is nothing to set.
constexpr std::string_view kTinyModels[] = {"hello_world_int8.tflite", "split_concat.tflite"};

bool is_among(const std::string& model, const auto& models) {
  return std::ranges::find(models, model) != std::end(models);
}

void append_text(void* user, const char* bytes, size_t size) {
  static_cast<std::string*>(user)->append(bytes, size);
}

// The reference has nothing to set but what its cascades follow: it runs what is tuned for this machine.
Json tuning_space(const std::vector<uint8_t>& plan, uint32_t isa) {
  std::string text;
  qplan_error error = empty_error();
  const uint32_t meant = isa == QPLAN_ISA_REFERENCE ? uint32_t{QPLAN_ISA_AUTO} : isa;
  if (qplan_tuning_space(plan.data(), plan.size(), meant, 2, append_text, &text, &error) < 0)
    throw std::runtime_error(error.text);
  return Json::parse(text);
}

Json inspect(const std::vector<uint8_t>& plan) {
  std::string text;
  qplan_error error = empty_error();
  if (qplan_inspect_json(plan.data(), plan.size(), append_text, &text, &error) < 0)
    throw std::runtime_error(error.text);
  return Json::parse(text);
}

// A log of `tune --fuse off`, `auto` and `all`, one after another, of a machine on which never the default is
// the fastest schedule, and every other cascade is faster than its layers.
class PretendedLog {
 public:
  // number: of the log, whose schedules differ from those of others where there are enough.
  PretendedLog(const std::vector<Json>& spaces, size_t number) {
    for (const Json& space : spaces) {
      for (const Json& step : space.at("steps")) add(step, 13 * number + 5 * schedules_.size());
    }
  }

  const std::string& text() const { return text_; }
  bool sets_something() const { return sets_something_; }
  // A convolution with a residual may be in no log: apart it has none, and in cascades it is a stage.
  Json schedule(const std::string& key) const {
    const auto found = schedules_.find(key);
    if (found != schedules_.end()) return found->second;
    EXPECT_NE(key.find("residual="), key.npos) << key;
    return Json::object();
  }

 private:
  void add(const Json& step, size_t choice) {
    const std::string key = step.at("key");
    const Json& candidates = step.at("candidates");
    const Json& schedule =
        candidates.size() < 2 ? candidates[0] : candidates[1 + choice % (candidates.size() - 1)];
    if (!schedules_.emplace(key, schedule).second) return;
    sets_something_ = sets_something_ || !schedule.empty();
    Json line;
    line["key"] = key;
    line["schedule"] = schedule;
    line["threads"] = 2;
    line["ns"] = key.starts_with("chain {") && schedules_.size() % 2 == 0 ? 100'000 : 1'000;
    text_ += line.dump() + "\n";
  }

  std::map<std::string, Json> schedules_;
  std::string text_;
  bool sets_something_ = false;
};

std::vector<uint8_t> pack_tuned(const std::string& model, const Fusing& fusing, const PretendedLog& log) {
  // Other tests may run at the same time.
  const std::string name = std::to_string(getpid()) + "_tuned_plan_test.jsonl";
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << log.text();
  qplan_pack_options options = pack_options("cpu");
  options.fuse = fusing.fuse;
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

// Grains are not in the schedule but in min_units_per_task, together with what the packer makes of them.
void expect_schedules(const std::vector<uint8_t>& plan, uint32_t isa, const PretendedLog& log) {
  const Json space = tuning_space(plan, isa);
  const Json inspected = inspect(plan);
  for (const Json& step : space.at("steps")) {
    Json expected = log.schedule(step.at("key"));
    expected.erase("grain");
    EXPECT_EQ(inspected.at("steps").at(step.at("step").get<size_t>()).at("schedule"), expected)
        << "step " << step.at("step");
  }
}

class TunedPlan : public ::testing::TestWithParam<std::tuple<std::string, uint32_t>> {};

TEST_P(TunedPlan, EveryOutputByteIsTheReferences) {
  const auto& [model, isa] = GetParam();
  if (model.empty()) GTEST_SKIP() << kNoDataDirectory;
  // Without vectors there is little to set.
  QPLAN_SKIP_UNLESS_ISA(isa == QPLAN_ISA_REFERENCE ? uint32_t{QPLAN_ISA_SSE41} : isa);
  const std::vector<GoldenCase> cases = golden_cases("A").at(model);
  std::vector<Json> spaces;
  for (const Fusing& fusing : kFusings) {
    const std::vector<uint8_t> plain = pack_model(model_path(model).string(), "cpu", true, fusing.fuse);
    spaces.push_back(tuning_space(plain, isa));
  }
  const size_t num_logs = isa == QPLAN_ISA_REFERENCE || is_among(model, kLargeModels) ? 2 : 6;
  for (size_t number = 0; number < num_logs; ++number) {
    const PretendedLog log(spaces, number);
    ASSERT_TRUE(log.sets_something() || is_among(model, kTinyModels));
    for (const Fusing& fusing : kFusings) {
      SCOPED_TRACE(std::string(fusing.name) + ", log " + std::to_string(number));
      const std::vector<uint8_t> plan = pack_tuned(model, fusing, log);
      expect_schedules(plan, isa, log);
      expect_golden(plan, cases, isa);
    }
  }
}

std::vector<std::tuple<std::string, uint32_t>> tuned_models() {
  std::vector<std::tuple<std::string, uint32_t>> params;
  for (const std::string& model : golden_models()) {
    for (const uint32_t isa : kIsas) {
      if (isa != QPLAN_ISA_REFERENCE || !is_among(model, kLargeModels)) params.emplace_back(model, isa);
    }
  }
  return params;
}

INSTANTIATE_TEST_SUITE_P(Models, TunedPlan, ::testing::ValuesIn(tuned_models()), [](const auto& test) {
  return as_test_name(std::get<0>(test.param)) + "_" + qplan_isa_name(std::get<1>(test.param));
});

}  // namespace
}  // namespace qplan::testing::tuned_plan_test
