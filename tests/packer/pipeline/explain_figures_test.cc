// What explain reports of a model is what the plan of that model has.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"

namespace qplan::explain_figures_test {
namespace {

using Json = nlohmann::json;

class ExplainFigures : public ::testing::TestWithParam<schedule::Fuse> {
 protected:
  void SetUp() override {
    std::ifstream file("samples/models/digits.tflite", std::ios::binary);
    model_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(model_.empty()) << "samples/models/digits.tflite is missing";
    options_.target = "vta, cpu";
    options_.cost_gate = false;
    options_.fuse = GetParam();
  }

  AlignedBytes pack_digits() const { return pack(model_, "digits.tflite", options_); }
  static Json inspected(const AlignedBytes& plan) {
    return Json::parse(inspect::inspect_json(inspect::PlanReader(plan.span()).view()));
  }
  static std::string stored(const AlignedBytes& plan) {
    const inspect::PlanReader reader(plan.span());
    return reader.view().names()->explain()->str();
  }

  std::vector<uint8_t> model_;
  PackOptions options_;
};

TEST_P(ExplainFigures, OfAModelAreThoseOfItsPlan) {
  const std::string plans = stored(pack_digits());
  EXPECT_EQ(explain_text(model_, "digits.tflite", options_, ExplainFormat::kJson), plans);
}

TEST_P(ExplainFigures, OfRegionsAreThoseOfThePlansSteps) {
  const AlignedBytes plan = pack_digits();
  const Json explained = Json::parse(stored(plan)).at("regions"), found = inspected(plan).at("regions");
  ASSERT_FALSE(found.empty());
  ASSERT_EQ(explained.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(explained[i].at("function"), found[i].at("name"));
    for (const char* figure :
         {"macs", "copies", "copy_bytes", "estimated_cycles", "blob_bytes", "program_bytes"}) {
      EXPECT_EQ(explained[i].at(figure), found[i].at(figure)) << figure;
    }
  }
}

TEST_P(ExplainFigures, OfSavingsAreTheDifferenceOfTwoPlans) {
  const Json with = inspected(pack_digits()).at("memory");
  options_.fallback = false;
  const AlignedBytes plan = pack_digits();
  const Json without = inspected(plan).at("memory"), explained = Json::parse(stored(plan));
  EXPECT_FALSE(explained.at("fallback").get<bool>());
  const auto saved = [&](const char* figure) {
    return with.at(figure).get<int64_t>() - without.at(figure).get<int64_t>();
  };
  EXPECT_EQ(explained.at("saved_constant_bytes").get<int64_t>(), saved("constants_bytes"));
  EXPECT_EQ(explained.at("saved_memory_bytes").get<int64_t>(), saved("arena_bytes") + saved("device_bytes"));
  EXPECT_GT(saved("constants_bytes"), 0);
}

INSTANTIATE_TEST_SUITE_P(Fuse, ExplainFigures,
                         ::testing::Values(schedule::Fuse::kOff, schedule::Fuse::kAuto, schedule::Fuse::kAll,
                                           schedule::Fuse::kMemory));

}  // namespace
}  // namespace qplan::explain_figures_test
