// Real networks against TFLite's reference kernels: every output byte, whatever target, ISA and number of
// threads.
#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing {
namespace {

struct Setting {
  const char* name;
  const char* target;
  uint32_t isa;
  uint32_t most_threads;
  uint32_t fuse = QPLAN_FUSE_AUTO;
};

void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

// Every instruction set on the plan of the default target, without chains of layers and with all that there
// can be, and the plans of other targets.
constexpr Setting kSettings[] = {
    {"reference", "cpu", QPLAN_ISA_REFERENCE, 2, QPLAN_FUSE_OFF},
    {"sse41", "cpu", QPLAN_ISA_SSE41, 2, QPLAN_FUSE_OFF},
    {"avx2", "cpu", QPLAN_ISA_AVX2, 2, QPLAN_FUSE_OFF},
    {"avxvnni", "cpu", QPLAN_ISA_AVXVNNI, 2, QPLAN_FUSE_OFF},
    {"avx512vnni", "cpu", QPLAN_ISA_AVX512VNNI, 2, QPLAN_FUSE_OFF},
    {"fused_reference", "cpu", QPLAN_ISA_REFERENCE, 2, QPLAN_FUSE_ALL},
    {"fused_sse41", "cpu", QPLAN_ISA_SSE41, 2, QPLAN_FUSE_ALL},
    {"fused_avx2", "cpu", QPLAN_ISA_AVX2, 2, QPLAN_FUSE_ALL},
    {"fused_avxvnni", "cpu", QPLAN_ISA_AVXVNNI, 2, QPLAN_FUSE_ALL},
    {"fused_avx512vnni", "cpu", QPLAN_ISA_AVX512VNNI, 2, QPLAN_FUSE_ALL},
    {"default", "cpu", QPLAN_ISA_AUTO, 2},
    {"for_sse41", "cpu,isa=sse41", QPLAN_ISA_SSE41, 1},
    {"for_avx2", "cpu,isa=avx2", QPLAN_ISA_AVX2, 1},
    {"for_reference", "cpu,isa=reference", QPLAN_ISA_REFERENCE, 1},
    {"for_cortex_m", "cpu,arch=cortex-m", QPLAN_ISA_REFERENCE, 1},
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
  QPLAN_SKIP_UNLESS_ISA(setting.isa);
  const std::vector<uint8_t> plan =
      pack_model(model_path(model).string(), setting.target, true, setting.fuse);
  const std::map<std::string, std::vector<GoldenCase>> cases = golden_cases("A");
  for (uint32_t num_threads = 1; num_threads <= setting.most_threads; ++num_threads) {
    ModelSession session(plan, setting.isa, num_threads);
    for (const GoldenCase& golden : cases.at(model)) {
      std::vector<std::vector<uint8_t>> inputs;
      for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
      const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
      ASSERT_EQ(outputs.size(), golden.outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        expect_same(
            outputs[i], read_bytes(golden.outputs[i]),
            golden.name + ", output " + std::to_string(i) + ", " + std::to_string(num_threads) + " threads");
      }
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
