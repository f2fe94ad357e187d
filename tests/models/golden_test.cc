// Real networks against TFLite's reference kernels: every output byte, whatever ISA, number of threads,
// cascades of layers and target. With schedules other than the defaults: tuned_plan_test.cc.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>

#include "tests/models/expect_golden.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/support/isas.h"

namespace qplan::testing::golden_test {
namespace {

class Golden : public ::testing::TestWithParam<std::tuple<std::string, uint32_t, Fusing>> {};

TEST_P(Golden, EveryOutputByteIsTheReferences) {
  const auto& [model, isa, fusing] = GetParam();
  if (model.empty()) GTEST_SKIP() << kNoDataDirectory;
  QPLAN_SKIP_UNLESS_ISA(isa);
  const std::vector<uint8_t> plan = pack_model(model_path(model).string(), "cpu", true, fusing.fuse);
  expect_golden(plan, golden_cases("A").at(model), isa);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         ::testing::Combine(::testing::ValuesIn(golden_models()), ::testing::ValuesIn(kIsas),
                                            ::testing::ValuesIn(kFusings)),
                         [](const auto& test) {
                           return as_test_name(std::get<0>(test.param)) + "_" +
                                  qplan_isa_name(std::get<1>(test.param)) + "_" +
                                  std::get<2>(test.param).name;
                         });

struct Target {
  const char* name;
  const char* text;
  uint32_t isa;
  uint32_t most_threads;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

constexpr Target kTargets[] = {
#define QPLAN_ISA(arch, name, NAME, id, base, vectors, macs_per_cycle, features, flags) \
  {"for_" #name, "cpu,arch=" #arch ",isa=" #name, QPLAN_ISA_##NAME, 2},
#include "kernels/isa.def"
#undef QPLAN_ISA
    {"for_reference", "cpu,isa=reference", QPLAN_ISA_REFERENCE, 1},
    {"for_cortex_m", "cpu,arch=cortex-m", QPLAN_ISA_REFERENCE, 1},
};

class GoldenOfTarget : public ::testing::TestWithParam<std::tuple<std::string, Target>> {};

TEST_P(GoldenOfTarget, EveryOutputByteIsTheReferences) {
  const auto& [model, target] = GetParam();
  if (model.empty()) GTEST_SKIP() << kNoDataDirectory;
  QPLAN_SKIP_UNLESS_ISA(target.isa);
  const std::vector<uint8_t> plan = pack_model(model_path(model).string(), target.text);
  expect_golden(plan, golden_cases("A").at(model), target.isa, target.most_threads);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOfTarget,
                         ::testing::Combine(::testing::ValuesIn(golden_models()),
                                            ::testing::ValuesIn(kTargets)),
                         [](const auto& test) {
                           return as_test_name(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
                         });

// Networks of group B whose outputs are integers, or one step from them.
class GoldenOfGroupB : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenOfGroupB, EveryOutputByteIsTheReferences) {
  const auto all = golden_cases("B");
  if (all.empty()) GTEST_SKIP() << kNoDataDirectory;
  for (const char* target : {"cpu", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
    const std::vector<uint8_t> plan = pack_model(model_path(GetParam()).string(), target);
    expect_golden(plan, all.at(GetParam()), QPLAN_ISA_AUTO);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOfGroupB,
                         ::testing::Values("keras_lstm_mnist_ptq.tflite", "trained_lstm_int8.tflite",
                                           "dtln_noise_suppression.tflite", "keyword_scrambled.tflite",
                                           "movenet_single_pose_lightning_ptq.tflite",
                                           "simple_add_model.tflite"),
                         [](const auto& test) { return as_test_name(test.param); });

// Networks of one operator on int16.
class GoldenOfInt16 : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenOfInt16, EveryOutputByteIsTheReferences) {
  const std::string& model = GetParam();
  if (model.empty()) GTEST_SKIP() << kNoDataDirectory;
  for (const char* target : {"cpu", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
    const std::vector<uint8_t> plan = pack_model(model_path(model).string(), target);
    expect_golden(plan, golden_cases("C").at(model), QPLAN_ISA_AUTO);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOfInt16, ::testing::ValuesIn(golden_models("C")),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing::golden_test
