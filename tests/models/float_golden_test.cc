// Networks on float32, and those of int8 weights and float32 activations, against TFLite's reference kernels:
// within 1e-5 relative, and the same bits on every instruction set and with every number of threads.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/models/expect_golden.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"
#include "tests/models/near.h"
#include "tests/support/isas.h"

namespace qplan::testing::float_golden_test {
namespace {

const std::string kModels[] = {"hello_world_float.tflite",     "ad01_fp32.tflite",
                               "kws_ref_model_float32.tflite", "pretrainedResnet.tflite",
                               "model_ToyCar_quant.tflite",    "trained_lstm.tflite"};

class FloatGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(FloatGolden, IsNearTheReferenceAndTheSameEverywhere) {
  const auto all = golden_cases("B");
  if (all.empty()) GTEST_SKIP() << kNoDataDirectory;
  const std::vector<GoldenCase>& cases = all.at(GetParam());
  const std::vector<uint8_t> plan = pack_model(model_path(GetParam()).string());
  std::map<std::string, std::vector<std::vector<uint8_t>>> of_reference;
  std::vector<uint32_t> isas = {QPLAN_ISA_REFERENCE};
  for (const uint32_t isa : kIsas) {
    if (isa != QPLAN_ISA_REFERENCE && qplan_isa_available(isa) != 0) isas.push_back(isa);
  }
  for (const uint32_t isa : isas) {
    for (uint32_t num_threads = 1; num_threads <= 2; ++num_threads) {
      ModelSession session(plan, isa, num_threads);
      for (const GoldenCase& golden : cases) {
        std::vector<std::vector<uint8_t>> inputs;
        for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
        const std::vector<std::vector<uint8_t>> outputs = session.run(inputs);
        const std::string what = golden.name + ", " + qplan_isa_name(isa);
        const auto [known, is_first] = of_reference.try_emplace(golden.name, outputs);
        ASSERT_EQ(outputs.size(), golden.outputs.size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_EQ(far_element(outputs[i], read_bytes(golden.outputs[i])), "") << what;
          if (!is_first) expect_same(outputs[i], known->second[i], what);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FloatGolden, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing::float_golden_test
