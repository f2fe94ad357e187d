// Operators of the application's: what the session checks of their steps, and their state.
#include "qplan/custom_operator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "src/runtime/bind/family.h"
#include "tests/support/test_step.h"

namespace qplan::custom_operator_test {
namespace {

using testing::TestStep;

// y[i] = number "factor" * x[i], int16; refuses a factor below 0; asks for 24 bytes of scratch.
qplan_status prepare(const qplan_custom_operator*, const qplan_custom_call* call, qplan_custom_needs* needs) {
  if (qplan_custom_number(call, "factor", 1) < 0) return qplan_custom_refuse(needs, "the factor is below 0");
  if (call->inputs[0].data != nullptr) return qplan_custom_refuse(needs, "prepare has data");
  needs->scratch_bytes = 24;
  needs->work = 77;
  return QPLAN_OK;
}
void run(const qplan_custom_operator*, const qplan_custom_call* call) {
  const auto factor = static_cast<int16_t>(qplan_custom_number(call, "factor", 1));
  const auto* x = static_cast<const int16_t*>(call->inputs[0].data);
  auto* y = static_cast<int16_t*>(call->outputs[0].data);
  for (uint64_t i = 0; i < call->inputs[0].size_bytes / 2; ++i) y[i] = static_cast<int16_t>(factor * x[i]);
}
constexpr qplan_custom_operator kOperator = {
    sizeof(qplan_custom_operator), 0, "Times", nullptr, nullptr, prepare, run};
constexpr const qplan_custom_operator* kOperators[] = {&kOperator};

TEST(CustomOperator, ASetHasOnlyWholeOperators) {
  qplan_kernel_set_storage storage;
  EXPECT_NE(qplan_kernels_with_custom(&storage, qplan_kernels_all(), kOperators, 1), nullptr);
  EXPECT_NE(qplan_kernels_with_custom(&storage, qplan_kernels_all(), nullptr, 0), nullptr);
  EXPECT_EQ(qplan_kernels_with_custom(nullptr, qplan_kernels_all(), kOperators, 1), nullptr);
  EXPECT_EQ(qplan_kernels_with_custom(&storage, nullptr, kOperators, 1), nullptr);
  EXPECT_EQ(qplan_kernels_with_custom(&storage, qplan_kernels_all(), nullptr, 1), nullptr);
  for (const int part : {0, 1, 2, 3}) {
    qplan_custom_operator broken = kOperator;
    if (part == 0) broken.name = nullptr;
    if (part == 1) broken.prepare = nullptr;
    if (part == 2) broken.run = nullptr;
    if (part == 3) broken.struct_size = 0;
    const qplan_custom_operator* const list[] = {&kOperator, &broken};
    EXPECT_EQ(qplan_kernels_with_custom(&storage, qplan_kernels_all(), list, 2), nullptr) << part;
  }
}

struct Times {
  std::string name = "Times";
  std::vector<float> scales = {0, 0.5F};
  std::vector<int32_t> zero_points = {0, 3};
  uint64_t scratch_bytes = 24, state_bytes = 0;
  double factor = 3;
  bool has_option_name = true;

  void make(TestStep& step) const {
    step.input<int16_t>({3}, {1, -2, 5});
    step.output<int16_t>({3});
    auto& builder = step.builder();
    const auto option_name = has_option_name ? builder.CreateString("factor") : 0;
    const auto numbers = builder.CreateVector(std::vector<double>{factor});
    const std::vector<flatbuffers::Offset<format::CustomOption>> options = {
        format::CreateCustomOption(builder, option_name, numbers)};
    step.finish(format::KernelParams_CustomParams,
                format::CreateCustomParamsDirect(builder, name.c_str(), &options, &scales, &zero_points,
                                                 scratch_bytes, state_bytes)
                    .Union());
  }
};

// What bind says of a step with these parameters: "" where it accepts them.
std::string refusal(const Times& times) {
  TestStep step(kKernel_custom);
  times.make(step);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  qplan_kernel_set_storage storage;
  StepView view = step.view();
  view.kernels = qplan_kernels_with_custom(&storage, qplan_kernels_all(), kOperators, 1);
  return kCustomFamily.bind(view, true, args, &error) == QPLAN_OK ? "" : error.text();
}

TEST(CustomOperator, AStepThatLiesIsRefused) {
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.name = ""}).find("names no operator"), std::string::npos);
  EXPECT_NE(refusal({.scales = {1}}).find("1 scales and 2 zero points"), std::string::npos);
  EXPECT_NE(refusal({.scales = {1, -1}}).find("scale 1"), std::string::npos);
  EXPECT_NE(refusal({.scales = {__builtin_nanf(""), 1}}).find("scale 0"), std::string::npos);
  EXPECT_NE(refusal({.zero_points = {}}).find("0 zero points"), std::string::npos);
  EXPECT_NE(refusal({.scratch_bytes = UINT64_MAX}).find("bytes of scratch"), std::string::npos);
  EXPECT_NE(refusal({.state_bytes = 8}).find("state"), std::string::npos);
  EXPECT_NE(refusal({.factor = __builtin_inf()}).find("not finite"), std::string::npos);
  EXPECT_NE(refusal({.scratch_bytes = 23}).find("needs 24 bytes of scratch"), std::string::npos);
  EXPECT_NE(refusal({.factor = -1}).find("'Times' refuses: the factor is below 0"), std::string::npos);
  EXPECT_NE(refusal({.name = "Plus"}).find("'Plus' is not in the kernel set"), std::string::npos);
  EXPECT_NE(refusal({.has_option_name = false}).find("option 0 has no name"), std::string::npos);
}

TEST(CustomOperator, RunsWithTheOptionsOfTheStepAndStatesItsWork) {
  TestStep step(kKernel_custom);
  Times().make(step);
  qplan_kernel_set_storage storage;
  StepView view = step.view();
  view.kernels = qplan_kernels_with_custom(&storage, qplan_kernels_all(), kOperators, 1);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  ASSERT_EQ(kCustomFamily.bind(view, true, args, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(kCustomFamily.work(args), 77u);
  const KernelVariant& variant = kCustomFamily.variants[0];
  EXPECT_EQ(variant.scratch_bytes(args), 64u);
  EXPECT_EQ(variant.work_items(args), 1u);
  alignas(64) uint8_t scratch[64];
  variant.run(args, 0, 1, scratch);
  int16_t y[3];
  std::memcpy(y, view.output_data(0), sizeof(y));
  EXPECT_EQ(y[0], 3);
  EXPECT_EQ(y[1], -6);
  EXPECT_EQ(y[2], 15);
}

}  // namespace
}  // namespace qplan::custom_operator_test
