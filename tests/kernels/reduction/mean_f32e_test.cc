// Every variant of mean under F32E against the exact formula.
#include <gtest/gtest.h>

#include <limits>

#include "src/runtime/bind/family.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::mean_f32e_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct MeanSpec {
  Extents input = {2, 5, 3};
  Extents output = {2, 1, 3};
  uint32_t axes = 0b010;
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  float scale = 0.2f;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_mean);
    step.input<T>(input, values);
    step.output<T>(output);
    step.finish(format::KernelParams_MeanParams,
                format::CreateMeanParams(step.builder(), format::Contract_F32E, axes, input_zero_point,
                                         output_zero_point, -1, 99, scale)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class MeanF32eVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(MeanSpec spec, uint64_t seed) {
    Random random(seed);
    const Dtype dtype = std::is_signed_v<T> ? Dtype::kS8 : Dtype::kU8;
    spec.input_zero_point = testing::random_zero_point(random, dtype);
    spec.output_zero_point = testing::random_zero_point(random, dtype);
    const auto x = random.full_range<T>(testing::num_elements(spec.input));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kMeanFamily, *GetParam(), seed)) return;
    std::vector<int64_t> sums(testing::num_elements(spec.output), 0);
    int64_t i = 0;
    testing::for_each_position(spec.input, [&](const Extents& at) {
      sums[testing::broadcast_index(spec.output, at)] += x[i++] - spec.input_zero_point;
    });
    std::vector<T> expected;
    for (const int64_t sum : sums) {
      expected.push_back(
          static_cast<T>(testing::exact_f32e(sum, spec.scale, spec.output_zero_point,
                                             std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
    }
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, MeanF32eVariant, ::testing::ValuesIn(testing::variants_of(kMeanFamily)),
                         testing::variant_test_name);

TEST_P(MeanF32eVariant, ReducesHeightAndWidthOfImages) {
  uint64_t seed = 1000;
  for (const int64_t channels : {1, 15, 16, 17, 32, 33, 63, 64, 65, 200}) {
    MeanSpec spec;
    spec.input = {2, 17, 18, channels};
    spec.axes = 0b0110;
    spec.output = {2, 1, 1, channels};
    spec.scale = 1.0f / (17 * 18);
    expect_exact<uint8_t>(spec, ++seed);
    expect_exact<int8_t>(spec, ++seed);
  }
}

TEST_P(MeanF32eVariant, EqualsTheExactFormula) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Random random(seed);
    MeanSpec spec;
    spec.input = testing::random_shape(random, static_cast<size_t>(random.integer(1, 5)), 7);
    spec.axes = static_cast<uint32_t>(random.integer(1, (1 << spec.input.size()) - 1));
    spec.output = spec.input;
    int64_t count = 1;
    for (size_t axis = 0; axis < spec.input.size(); ++axis) {
      if ((spec.axes >> axis & 1) == 0) continue;
      count *= spec.input[axis];
      spec.output[axis] = 1;
    }
    // Powers of two and one over the count make ties.
    const double ratio = random.chance(0.5) ? 0.5 : 0.5 + random.unit();
    spec.scale = static_cast<float>(ratio / static_cast<double>(count));
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
}

TEST_P(MeanF32eVariant, TakesSumsThatAreNoFloats) {
  MeanSpec spec;
  spec.input = {300000, 3};
  spec.output = {1, 3};
  spec.axes = 0b01;
  spec.scale = 1.0f / 300000.0f;
  expect_exact<uint8_t>(spec, 1000);
  expect_exact<int8_t>(spec, 1001);
}

TEST(MeanF32e, BindRefusesWhatIsWrong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<testing::Refusal<MeanSpec>> refusals = {
      {[](MeanSpec& s) { s.scale = 0.0f; }, "scale is not in (0, 2^100]"},
      {[=](MeanSpec& s) { s.scale = infinity; }, "scale is not in (0, 2^100]"},
      {[](MeanSpec& s) { s.scale = -1.0f; }, "scale is not in (0, 2^100]"},
      {[](MeanSpec& s) { s.input_zero_point = 128; }, "input_zero_point"},
  };
  testing::expect_refusals(kMeanFamily, refusals);
}

}  // namespace
}  // namespace qplan::mean_f32e_test
