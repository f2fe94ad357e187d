// The weights of real networks are packed as the vector kernels multiply them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/conv2d/conv2d_line_buffer.h"
#include "src/packer/inspect/inspect.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/cascade.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::testing::weights_in_place_test {
namespace {

class WeightsOf : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_in_place(const StepView& step, const std::string& name) {
    if (step.step->kernel() == kKernel_chain) {
      for (uint32_t i = 0; i < step.step->params_as_CascadeParams()->layers()->size(); ++i) {
        expect_in_place(cascade_layer(step, i), name + ", stage " + std::to_string(i));
      }
    }
    if (step.step->kernel() != kKernel_conv2d) return;
    alignas(kArgsAlignment) uint8_t storage[kMaxArgsBytes];
    Error error;
    ASSERT_EQ(kConv2dFamily.bind(step, true, storage, &error), QPLAN_OK) << error.text();
    const auto& args = *reinterpret_cast<const Conv2dArgs*>(storage);
    if (!has_vector_variants(args)) return;
    EXPECT_EQ(line_buffer_accepts(args, true, false, false), Refusal::kNone) << name;
  }
};

TEST_P(WeightsOf, AreMultipliedWhereTheyLie) {
  if (GetParam().empty()) GTEST_SKIP() << kNoDataDirectory;
  for (const uint32_t fuse : {QPLAN_FUSE_OFF, QPLAN_FUSE_ALL}) {
    const std::vector<uint8_t> bytes = pack_model(model_path(GetParam()).string(), "cpu", true, fuse);
    const inspect::PlanReader reader(bytes);
    const format::PlanView& plan = reader.view();
    std::vector<void*> data(plan.num_tensors(), nullptr);
    for (uint32_t t = 0; t < plan.num_tensors(); ++t) {
      data[t] = const_cast<void*>(plan.constant_data(t));  // NOLINT: only looked at
    }
    for (uint32_t i = 0; i < plan.num_steps(); ++i) {
      expect_in_place({&plan.plan(), &plan.step(i), data.data()}, plan.step_name(i));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WeightsOf, ::testing::ValuesIn(golden_models()),
                         [](const auto& test) { return as_test_name(test.param); });

}  // namespace
}  // namespace qplan::testing::weights_in_place_test
