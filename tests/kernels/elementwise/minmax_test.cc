// Every variant of maximum and minimum against the larger and the smaller of two.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::minmax_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct MinmaxSpec {
  KernelId kernel = kKernel_maximum;
  Extents a = {2, 3};
  Extents b = {2, 3};
  Extents output = {2, 3};
  std::function<void(TestStep&)> tweak = {};

  template <typename T>
  TestStep make_of(const std::vector<T>& a_values, const std::vector<T>& b_values) const {
    TestStep step(kernel);
    step.input<T>(a, a_values);
    step.input<T>(b, b_values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_NoParams, format::CreateNoParams(step.builder()).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(a)),
                           std::vector<int8_t>(testing::num_elements(b)));
  }
};

class MinmaxVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact_of(const MinmaxSpec& spec, uint64_t seed) {
    Random random(seed);
    const auto a = random.full_range<T>(testing::num_elements(spec.a));
    const auto b = random.full_range<T>(testing::num_elements(spec.b));
    TestStep step = spec.make_of<T>(a, b);
    const KernelFamily& family = spec.kernel == kKernel_maximum ? kMaximumFamily : kMinimumFamily;
    if (!testing::run_step(step, family, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      const T x = a[testing::broadcast_index(spec.a, at)], y = b[testing::broadcast_index(spec.b, at)];
      expected.push_back(spec.kernel == kKernel_maximum ? std::max(x, y) : std::min(x, y));
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << family.name << ", seed " << seed;
  }
  void expect_exact(MinmaxSpec spec, uint64_t seed) {
    for (const KernelId kernel : {kKernel_maximum, kKernel_minimum}) {
      spec.kernel = kernel;
      expect_exact_of<uint8_t>(spec, seed);
      expect_exact_of<int8_t>(spec, seed);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, MinmaxVariant, ::testing::ValuesIn(testing::variants_of(kMaximumFamily)),
                         testing::variant_test_name);

TEST_P(MinmaxVariant, IsExactForEqualShapesAroundTheVectorWidth) {
  for (int64_t count = 1; count <= 140 && !HasFailure(); ++count) {
    MinmaxSpec spec;
    spec.a = spec.b = spec.output = {count};
    expect_exact(spec, static_cast<uint64_t>(count));
  }
}

TEST_P(MinmaxVariant, IsExactAcrossWorkItems) {
  MinmaxSpec spec;
  spec.a = spec.output = {3, 5000, 2};
  spec.b = {5000, 1};
  expect_exact(spec, 1);
}

TEST_P(MinmaxVariant, BroadcastsLikeNumPy) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    Random random(seed);
    MinmaxSpec spec;
    testing::draw_broadcast(random, &spec);
    expect_exact(spec, seed);
  }
}

TEST(Minmax, ValuesByHand) {
  MinmaxSpec spec;
  spec.a = spec.b = spec.output = {4};
  TestStep larger = spec.make_of<int8_t>({-128, 5, -1, 127}, {127, 5, -2, -128});
  ASSERT_TRUE(testing::run_step(larger, kMaximumFamilyReference, kMaximumFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(larger), (std::vector<int8_t>{127, 5, -1, 127}));
  spec.kernel = kKernel_minimum;
  TestStep smaller = spec.make_of<int8_t>({-128, 5, -1, 127}, {127, 5, -2, -128});
  ASSERT_TRUE(testing::run_step(smaller, kMinimumFamilyReference, kMinimumFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(smaller), (std::vector<int8_t>{-128, 5, -2, -128}));
}

TEST(Minmax, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<MinmaxSpec>> refusals = {
      // clang-format off
      {[](MinmaxSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 2"},
      {[](MinmaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input 1"},
      {[](MinmaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "input 2"},
      {[](MinmaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 1; }; }, "output"},
      {[](MinmaxSpec& s) { s.output = {3, 2}; }, "broadcast to"},
      {[](MinmaxSpec& s) { s.b = {2, 1, 3}; }, "broadcast to"},
      // clang-format on
  };
  testing::expect_refusals(kMaximumFamily, refusals);
}

}  // namespace
}  // namespace qplan::minmax_test
