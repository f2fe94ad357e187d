// Plans of earlier packers, kept in tests/data/plans for ever: today's runtime reads each, with the same
// output bytes (format/README.md, "Compatibility"). A plan <model>_v<version>_<target>.qplan goes with the
// inputs and outputs in tests/data/<model>; adding a version is adding a file. `planes` is the model of f32e
// with its input in NCHW, packed with --fuse all: the same outputs for the same images. `rests` is two
// convolutions with uint8 weights, three of which are rests; its outputs are those of the reference kernels
// and of a plan for them, which has a zero point of the weights instead. `computed_bias` is a convolution of
// its input and of a repeated pixel; its outputs are those of a packer that left the concatenation whole.
// `labels` is a resize and the index of its largest channel in one step, packed with --fuse all; its outputs
// are those of the reference kernels of the two. `pools` is convolutions and pools of two images (model.relay
// beside the images), in one cascade as far as it fits; its outputs are those of the reference kernels one
// after another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing::kept_plans_test {
namespace {

constexpr char kPlans[] = "tests/data/plans";

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

// The inputs of the model that a plan holds: those of which the output is kept beside them.
std::vector<std::filesystem::path> cases_of(const std::string& plan) {
  std::vector<std::filesystem::path> inputs;
  const std::filesystem::path folder = "tests/data/" + plan.substr(0, plan.find("_v"));
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().stem().string().ends_with("_input")) inputs.push_back(entry.path());
  }
  return inputs;
}

std::filesystem::path output_of(const std::filesystem::path& input) {
  std::string name = input.filename().string();
  name.replace(name.rfind("_input"), 6, "_output");
  return input.parent_path() / name;
}

class KeptPlan : public ::testing::TestWithParam<std::tuple<std::string, uint32_t>> {};

TEST_P(KeptPlan, GivesTheBytesItAlwaysGave) {
  const auto& [name, isa] = GetParam();
  QPLAN_SKIP_UNLESS_ISA(isa);
  const std::vector<uint8_t> plan = read_file(std::filesystem::path(kPlans) / (name + ".qplan"));
  const std::vector<std::filesystem::path> inputs = cases_of(name);
  ASSERT_FALSE(inputs.empty());
  ModelSession session(plan, isa, 2);
  for (const std::filesystem::path& input : inputs) {
    ASSERT_EQ(qplan_session_reset_state(session.get()), QPLAN_OK);
    const auto outputs = session.run({read_file(input)});
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0], read_file(output_of(input))) << input;
  }
  // What earlier packers stored of the bytes of each step, where they did.
  const qplan_status checked = qplan_session_self_check(session.get());
  EXPECT_TRUE(checked == QPLAN_OK || checked == QPLAN_NOT_FOUND) << qplan_status_name(checked);
}

INSTANTIATE_TEST_SUITE_P(All, KeptPlan,
                         ::testing::Combine(::testing::ValuesIn(plan_names()), ::testing::ValuesIn(kIsas)),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
                           return name + "_on_" + qplan_isa_name(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace qplan::testing::kept_plans_test
