#include <gtest/gtest.h>

#include <cmath>

#include "kernels/reduction/reduction.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::arg_max_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct ArgMaxSpec {
  Extents input = {2, 3, 4};
  Extents output = {2, 4};
  uint32_t axis = 1;
  std::function<void(TestStep&)> tweak;

  template <typename T, typename Index>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_arg_max);
    step.input<T>(input, values);
    step.output<Index>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_ArgMaxParams, format::CreateArgMaxParams(step.builder(), axis).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t, int32_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class ArgMaxVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // Few different values, so that there are ties.
  template <typename T, typename Index>
  void expect_first_of_the_largest(ArgMaxSpec spec, uint64_t seed) {
    Random random(seed);
    spec.output = spec.input;
    if (random.chance(0.5)) {
      spec.output[spec.axis] = 1;
    } else {
      spec.output.erase(spec.output.begin() + spec.axis);
    }
    const int64_t lowest = std::is_signed_v<T> ? -2 : 0;
    const auto x = random.chance(0.5) ? random.integers<T>(testing::num_elements(spec.input), lowest, 3)
                                      : random.integers<T>(testing::num_elements(spec.input), 0, 127);
    TestStep step = spec.make_of<T, Index>(x);
    if (!testing::run_step(step, kArgMaxFamily, *GetParam(), seed)) return;
    Extents one = spec.input;
    one[spec.axis] = 1;
    std::vector<Index> expected;
    testing::for_each_position(one, [&](Extents at) {
      Index best = 0;
      const auto value = [&](Index k) {
        at[spec.axis] = k;
        return x[testing::broadcast_index(spec.input, at)];
      };
      for (Index k = 0; k < spec.input[spec.axis]; ++k) {
        if (value(k) > value(best)) best = k;
      }
      expected.push_back(best);
    });
    EXPECT_EQ((testing::output_values<Index>(step)), expected) << "seed " << seed;
  }

  void expect_first_of_the_largest_of_all_dtypes(const ArgMaxSpec& spec, uint64_t seed) {
    expect_first_of_the_largest<uint8_t, int32_t>(spec, seed);
    expect_first_of_the_largest<int8_t, int64_t>(spec, seed);
    expect_first_of_the_largest<uint8_t, int64_t>(spec, seed);
    expect_first_of_the_largest<int32_t, int32_t>(spec, seed);
    expect_first_of_the_largest<int64_t, int64_t>(spec, seed);
    expect_first_of_the_largest<float, int32_t>(spec, seed);
  }
};

INSTANTIATE_TEST_SUITE_P(All, ArgMaxVariant, ::testing::ValuesIn(testing::variants_of(kArgMaxFamily)),
                         testing::variant_test_name);

TEST_P(ArgMaxVariant, FindsTheFirstOfTheLargestAlongAnyAxis) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Random random(seed);
    ArgMaxSpec spec;
    spec.input = testing::random_shape(random, random.integer(1, 6), 5);
    spec.axis = static_cast<uint32_t>(random.integer(0, std::ssize(spec.input) - 1));
    expect_first_of_the_largest_of_all_dtypes(spec, seed);
  }
}

TEST_P(ArgMaxVariant, TakesRowsAroundTheVectorWidth) {
  for (int64_t extent = 1; extent <= 140 && !HasFailure(); ++extent) {
    ArgMaxSpec spec;
    spec.input = {7, extent};
    spec.axis = 1;
    expect_first_of_the_largest_of_all_dtypes(spec, static_cast<uint64_t>(extent));
  }
}

// Rows that are taken together, and those that remain of them.
TEST_P(ArgMaxVariant, TakesAnyNumberOfShortRows) {
  for (int64_t extent = 1; extent <= 33 && !HasFailure(); ++extent) {
    for (const int64_t rows : {16, 31, 32, 35, 64, 69, 130}) {
      ArgMaxSpec spec;
      spec.input = {rows, extent};
      spec.axis = 1;
      expect_first_of_the_largest_of_all_dtypes(spec, static_cast<uint64_t>(extent * 1000 + rows));
      expect_first_of_the_largest<int8_t, int32_t>(spec, static_cast<uint64_t>(extent * 1000 + rows));
    }
  }
}

// The largest element twice, at all pairs of places of a row longer than two vectors.
TEST_P(ArgMaxVariant, TakesTheFirstOfTwoEqualElements) {
  constexpr int64_t kExtent = 75;
  ArgMaxSpec spec;
  spec.input = {kExtent * kExtent, kExtent};
  spec.output = {kExtent * kExtent};
  std::vector<int8_t> x;
  std::vector<int32_t> expected;
  for (int64_t first = 0; first < kExtent; ++first) {
    for (int64_t second = 0; second < kExtent; ++second) {
      for (int64_t k = 0; k < kExtent; ++k) x.push_back(k == first || k == second ? -100 : -128);
      expected.push_back(static_cast<int32_t>(std::min(first, second)));
    }
  }
  TestStep step = spec.make_of<int8_t, int32_t>(x);
  if (!testing::run_step(step, kArgMaxFamily, *GetParam(), 1)) return;
  EXPECT_EQ(testing::output_values<int32_t>(step), expected);
}

TEST_P(ArgMaxVariant, TakesLongAxesAndManyOutputs) {
  ArgMaxSpec spec;
  spec.input = {3, 1001};
  spec.axis = 1;
  expect_first_of_the_largest_of_all_dtypes(spec, 1);
  spec.input = {5000, 21};
  expect_first_of_the_largest_of_all_dtypes(spec, 2);
  spec.input = {21, 5000};
  spec.axis = 0;
  expect_first_of_the_largest_of_all_dtypes(spec, 3);
}

TEST_P(ArgMaxVariant, NaNIsBelowEveryNumber) {
  ArgMaxSpec spec;
  spec.input = {4, 3};
  spec.output = {4};
  TestStep step = spec.make_of<float, int32_t>({NAN, 1, 2, 5, NAN, 4, NAN, -INFINITY, NAN, NAN, NAN, NAN});
  if (!testing::run_step(step, kArgMaxFamily, *GetParam(), 1)) return;
  EXPECT_EQ(testing::output_values<int32_t>(step), (std::vector<int32_t>{2, 0, 1, 0}));
}

TEST(ArgMax, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<ArgMaxSpec>(kArgMaxFamily, {
    {[](ArgMaxSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](ArgMaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 16; }; }, "input"},
    {[](ArgMaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](ArgMaxSpec& s) { s.axis = 3; }, "axis 3"},
    {[](ArgMaxSpec& s) { s.axis = UINT32_MAX; }, "axis 4294967295"},
    {[](ArgMaxSpec& s) { s.input = {}; s.output = {}; }, "axis 1"},
    {[](ArgMaxSpec& s) { s.axis = 0; }, "reduced along axis 0"},
    {[](ArgMaxSpec& s) { s.output = {2, 3, 1}; }, "reduced along axis 1"},
    {[](ArgMaxSpec& s) { s.output = {8}; }, "reduced along axis 1"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::arg_max_test
