// Every variant of mul against the exact formula.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::mul_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct MulSpec {
  Extents a = {2, 3};
  Extents b = {2, 3};
  Extents output = {2, 3};
  format::Contract contract = format::Contract_TFL2;
  int32_t input1_zero_point = 0;
  int32_t input2_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t multiplier = 1 << 30;
  int32_t shift = -5;
  int32_t clamp_min = -128;
  int32_t clamp_max = 127;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& a_values, const std::vector<T>& b_values) const {
    TestStep step(kKernel_mul);
    step.input<T>(a, a_values);
    step.input<T>(b, b_values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_MulParams,
                format::CreateMulParams(step.builder(), contract, input1_zero_point, input2_zero_point,
                                        output_zero_point, multiplier, shift, clamp_min, clamp_max)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(a)),
                           std::vector<int8_t>(testing::num_elements(b)));
  }
};

int64_t exact(const MulSpec& spec, int64_t a, int64_t b) {
  const int64_t product = (a - spec.input1_zero_point) * (b - spec.input2_zero_point);
  const int64_t result = testing::exact_tfl2(product, spec.multiplier, spec.shift);
  return testing::exact_clamp(result + spec.output_zero_point, spec.clamp_min, spec.clamp_max);
}

class MulVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(MulSpec spec, uint64_t seed) {
    Random random(seed);
    const auto zero_point = [&] { return static_cast<int32_t>(random.full_range<T>(1)[0]); };
    spec.input1_zero_point = zero_point();
    spec.input2_zero_point = zero_point();
    spec.output_zero_point = zero_point();
    const testing::ChannelScale scale = testing::random_scale(random, 65025);
    spec.multiplier = scale.multiplier;
    spec.shift = scale.shift;
    testing::random_clamp(random, std::is_signed_v<T> ? Dtype::kS8 : Dtype::kU8, &spec.clamp_min,
                          &spec.clamp_max);
    const auto a = random.full_range<T>(testing::num_elements(spec.a));
    const auto b = random.full_range<T>(testing::num_elements(spec.b));
    TestStep step = spec.make_of<T>(a, b);
    if (!testing::run_step(step, kMulFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      expected.push_back(static_cast<T>(
          exact(spec, a[testing::broadcast_index(spec.a, at)], b[testing::broadcast_index(spec.b, at)])));
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, MulVariant, ::testing::ValuesIn(testing::variants_of(kMulFamily)),
                         testing::variant_test_name);

TEST_P(MulVariant, EqualsTheExactFormulaForEqualShapesAroundTheVectorWidth) {
  for (int64_t count = 1; count <= 140 && !HasFailure(); ++count) {
    MulSpec spec;
    spec.a = spec.b = spec.output = {count};
    expect_exact<uint8_t>(spec, static_cast<uint64_t>(count));
    expect_exact<int8_t>(spec, static_cast<uint64_t>(count));
  }
}

TEST_P(MulVariant, EqualsTheExactFormulaAcrossWorkItems) {
  MulSpec spec;
  spec.a = spec.output = {3, 5000, 2};
  spec.b = {5000, 1};
  expect_exact<uint8_t>(spec, 1);
  expect_exact<int8_t>(spec, 2);
}

TEST_P(MulVariant, BroadcastsLikeNumPy) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    Random random(seed);
    MulSpec spec;
    testing::draw_broadcast(random, &spec);
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
}

TEST(Mul, ValuesByHand) {
  MulSpec spec;  // a * b / 64
  spec.a = spec.b = spec.output = {5};
  TestStep step = spec.make_of<int8_t>({8, 8, -8, -128, 127}, {8, 12, 12, -128, -128});
  ASSERT_TRUE(testing::run_step(step, kMulFamilyReference, kMulFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{1, 2, -2, 127, -128}));
}

TEST(Mul, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<MulSpec>> refusals = {
      // clang-format off
      {[](MulSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 2"},
      {[](MulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input 1"},
      {[](MulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "input 2"},
      {[](MulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 1; }; }, "output"},
      {[](MulSpec& s) { s.output = {3, 2}; }, "broadcast to"},
      {[](MulSpec& s) { s.b = {2, 1, 3}; }, "broadcast to"},
      {[](MulSpec& s) { s.contract = format::Contract_ACC32; }, "contract ACC32", QPLAN_KERNEL_MISSING},
      {[](MulSpec& s) { s.input1_zero_point = 128; }, "input1_zero_point"},
      {[](MulSpec& s) { s.input2_zero_point = -129; }, "input2_zero_point"},
      {[](MulSpec& s) { s.output_zero_point = 255; }, "output_zero_point"},
      {[](MulSpec& s) { s.multiplier = -1; }, "output multiplier"},
      {[](MulSpec& s) { s.shift = 31; }, "output shift 31"},
      {[](MulSpec& s) { s.shift = -32; }, "output shift -32"},
      {[](MulSpec& s) { s.clamp_min = -129; }, "clamp_min"},
      {[](MulSpec& s) { s.clamp_max = 128; }, "clamp_max"},
      {[](MulSpec& s) { s.clamp_min = 5, s.clamp_max = 4; }, "above"},
      // clang-format on
  };
  testing::expect_refusals(kMulFamily, refusals);
}

}  // namespace
}  // namespace qplan::mul_test
