// Real networks against TFLite's reference kernels: every output byte, whatever target, ISA and number of
// threads.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing {
namespace {

struct Setting {
  const char* name;
  const char* target;
  uint32_t isa;
  uint32_t num_threads;
};

constexpr Setting kSettings[] = {
    {"reference", "cpu", QPLAN_ISA_REFERENCE, 1},
    {"reference_2_threads", "cpu", QPLAN_ISA_REFERENCE, 2},
    {"best", "cpu", QPLAN_ISA_AUTO, 1},
    {"best_2_threads", "cpu", QPLAN_ISA_AUTO, 2},
    {"avx2", "cpu,isa=avx2", QPLAN_ISA_AVX2, 1},
    {"for_reference", "cpu,isa=reference", QPLAN_ISA_REFERENCE, 1},
    {"for_cortex_m", "cpu,arch=cortex-m", QPLAN_ISA_REFERENCE, 2},
};

class Golden : public ::testing::TestWithParam<std::tuple<std::string, Setting>> {};

void expect_same(const std::vector<uint8_t>& found, const std::vector<uint8_t>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  size_t differences = 0, first = 0;
  for (size_t i = expected.size(); i-- > 0;) {
    if (found[i] == expected[i]) continue;
    ++differences;
    first = i;
  }
  EXPECT_EQ(differences, 0u) << what << ": of " << expected.size() << " bytes, the first at " << first
                             << ": found " << int{found[first]} << ", expected " << int{expected[first]};
}

TEST_P(Golden, EveryOutputByteIsTheReferences) {
  const auto& [model, setting] = GetParam();
  if (model.empty()) GTEST_SKIP() << kNoDataDirectory;
  if (setting.isa != QPLAN_ISA_AUTO && qplan_isa_available(setting.isa) == 0) {
    GTEST_SKIP() << "this machine or build has no " << qplan_isa_name(setting.isa);
  }
  const std::vector<uint8_t> plan = pack_model(model_path(model).string(), setting.target);
  ModelSession session(plan, setting.isa, setting.num_threads);
  const std::map<std::string, std::vector<GoldenCase>> cases = golden_cases("A");
  for (const GoldenCase& golden : cases.at(model)) {
    std::vector<std::vector<uint8_t>> inputs;
    for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
    const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
    ASSERT_EQ(outputs.size(), golden.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      expect_same(outputs[i], read_bytes(golden.outputs[i]), golden.name + ", output " + std::to_string(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         ::testing::Combine(::testing::ValuesIn(golden_models()),
                                            ::testing::ValuesIn(kSettings)),
                         [](const auto& test) {
                           return as_test_name(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
                         });

}  // namespace
}  // namespace qplan::testing
