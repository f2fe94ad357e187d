// Plans of earlier packers, kept in tests/data/plans for ever: today's runtime reads each, with the same output bytes
// (format/README.md, "Compatibility"). They hold the digits model; adding a version is adding a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/model_session.h"

namespace qplan::testing {
namespace {

constexpr char kPlans[] = "tests/data/plans";
constexpr char kDigits[] = "tests/data/digits";

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> plan_names() {
  std::vector<std::string> names;
  std::error_code absent;  // run elsewhere than in the repository: no cases, instead of no program
  for (const auto& entry : std::filesystem::directory_iterator(kPlans, absent)) {
    if (entry.path().extension() == ".qplan") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class KeptPlan : public ::testing::TestWithParam<std::string> {};

TEST_P(KeptPlan, GivesTheBytesItAlwaysGave) {
  const std::vector<uint8_t> plan = read_file(std::filesystem::path(kPlans) / (GetParam() + ".qplan"));
  for (const uint32_t isa : {QPLAN_ISA_REFERENCE, QPLAN_ISA_AUTO}) {
    ModelSession session(plan, isa, 2);
    for (int digit = 0; digit < 10; ++digit) {
      const std::string name = "digit" + std::to_string(digit);
      const auto outputs = session.run({read_file(std::filesystem::path(kDigits) / (name + "_input.bin"))});
      ASSERT_EQ(outputs.size(), 1u);
      EXPECT_EQ(outputs[0], read_file(std::filesystem::path(kDigits) / (name + "_output.bin"))) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KeptPlan, ::testing::ValuesIn(plan_names()), [](const auto& plan) {
  std::string name = plan.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
});

}  // namespace
}  // namespace qplan::testing
