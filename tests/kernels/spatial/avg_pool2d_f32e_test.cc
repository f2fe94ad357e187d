// Every variant of avg_pool2d under F32E against a walk over all taps.
#include <gtest/gtest.h>

#include <limits>

#include "src/runtime/bind/family.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::avg_pool2d_f32e_test {
namespace {

using testing::Extents;
using testing::f32;
using testing::Random;
using testing::TestStep;

struct PoolSpec {
  Extents input = {1, 4, 4, 2};
  Extents output = {1, 2, 2, 2};
  uint32_t pool_h = 2, pool_w = 2;
  uint32_t stride_h = 2, stride_w = 2;
  uint32_t pad_top = 0, pad_left = 0;
  int32_t clamp_min = -128, clamp_max = 127;
  float input_scale = 1.0f;
  int32_t input_zero_point = 0;
  float output_scale = 1.0f;
  int32_t output_zero_point = 0;
  bool count_include_pad = false;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_avg_pool2d);
    step.input<T>(input, values);
    step.output<T>(output);
    step.finish(
        format::KernelParams_Pool2dParams,
        format::CreatePool2dParams(step.builder(), format::Contract_F32E, pool_h, pool_w, stride_h, stride_w,
                                   pad_top, pad_left, clamp_min, clamp_max, input_scale, input_zero_point,
                                   output_scale, output_zero_point, count_include_pad)
            .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

template <typename T>
int64_t exact(const PoolSpec& spec, const std::vector<T>& x, const Extents& at) {
  int64_t sum = 0, count = 0;
  for (int64_t ky = 0; ky < spec.pool_h; ++ky) {
    for (int64_t kx = 0; kx < spec.pool_w; ++kx) {
      const int64_t y = at[1] * spec.stride_h + ky - spec.pad_top;
      const int64_t w = at[2] * spec.stride_w + kx - spec.pad_left;
      if (y < 0 || y >= spec.input[1] || w < 0 || w >= spec.input[2]) continue;
      sum += x[testing::broadcast_index(spec.input, {at[0], y, w, at[3]})] - spec.input_zero_point;
      ++count;
    }
  }
  if (spec.count_include_pad) count = int64_t{spec.pool_h} * spec.pool_w;
  const double divisor = f32(static_cast<double>(spec.output_scale) * testing::f32_of_integer(count));
  const auto scale = static_cast<float>(static_cast<double>(spec.input_scale) / divisor);
  return testing::exact_f32e(sum, scale, spec.output_zero_point, spec.clamp_min, spec.clamp_max);
}

class AvgPool2dF32eVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // True if the variant takes it.
  template <typename T>
  bool expect_exact(PoolSpec spec, uint64_t seed) {
    Random random(seed);
    const Dtype dtype = std::is_signed_v<T> ? Dtype::kS8 : Dtype::kU8;
    testing::random_clamp(random, dtype, &spec.clamp_min, &spec.clamp_max);
    spec.input_zero_point = testing::random_zero_point(random, dtype);
    spec.output_zero_point = testing::random_zero_point(random, dtype);
    // Powers of two make ties.
    spec.input_scale = static_cast<float>(random.chance(0.5) ? 0.5 : 0.1 + random.unit());
    spec.output_scale = static_cast<float>(random.chance(0.5) ? 0.5 : 0.1 + random.unit());
    const auto x = random.full_range<T>(testing::num_elements(spec.input));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kAvgPool2dFamily, *GetParam(), seed)) return false;
    std::vector<T> expected;
    testing::for_each_position(
        spec.output, [&](const Extents& at) { expected.push_back(static_cast<T>(exact(spec, x, at))); });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
    return true;
  }
};

INSTANTIATE_TEST_SUITE_P(All, AvgPool2dF32eVariant,
                         ::testing::ValuesIn(testing::variants_of(kAvgPool2dFamily)),
                         testing::variant_test_name);

TEST_P(AvgPool2dF32eVariant, EqualsTheExactFormulaForRandomWindows) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Random random(seed);
    const auto draw = [&](int64_t lo, int64_t hi) { return static_cast<uint32_t>(random.integer(lo, hi)); };
    PoolSpec spec;
    spec.pool_h = draw(1, 5), spec.pool_w = draw(1, 5);
    spec.stride_h = draw(1, 3), spec.stride_w = draw(1, 3);
    spec.pad_top = draw(0, spec.pool_h - 1), spec.pad_left = draw(0, spec.pool_w - 1);
    spec.count_include_pad = random.chance(0.5);
    spec.input = {draw(1, 2), draw(1, 9), draw(1, 9), draw(1, 40)};
    spec.output = {spec.input[0], 1 + (spec.input[1] - 1) / spec.stride_h,
                   1 + (spec.input[2] - 1) / spec.stride_w, spec.input[3]};
    EXPECT_TRUE(expect_exact<uint8_t>(spec, seed));
    EXPECT_TRUE(expect_exact<int8_t>(spec, seed));
  }
}

TEST_P(AvgPool2dF32eVariant, TakesSumsThatAreNoFloats) {
  PoolSpec spec;  // 510 * 510 * 255 is beyond 2^24
  spec.input = {1, 510, 510, 1};
  spec.output = {1, 1, 1, 1};
  spec.pool_h = spec.pool_w = 510;
  for (uint64_t seed = 300; seed < 305; ++seed) {
    const bool taken = expect_exact<uint8_t>(spec, seed);
    EXPECT_TRUE(taken || GetParam()->isa != QPLAN_ISA_REFERENCE);
  }
}

TEST_P(AvgPool2dF32eVariant, TiesGoToTheEvenNeighbour) {
  PoolSpec spec;
  spec.input = {1, 1, 2, 4};
  spec.output = {1, 1, 1, 4};
  spec.pool_h = 1;
  TestStep step = spec.make_of<int8_t>({0, 1, -1, -2, 1, 2, 0, -1});
  ASSERT_TRUE(testing::run_step(step, kAvgPool2dFamily, *GetParam(), 1));
  // 1 3 -1 -3, halved
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{0, 2, 0, -2}));
}

TEST(AvgPool2dF32e, BindRefusesWhatIsWrong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<testing::Refusal<PoolSpec>> refusals = {
      {[](PoolSpec& s) { s.input_scale = 0.0f; }, "input_scale is not in (0, 2^100]"},
      {[=](PoolSpec& s) { s.input_scale = infinity; }, "input_scale is not in"},
      {[=](PoolSpec& s) { s.output_scale = nan; }, "output_scale is not in"},
      {[](PoolSpec& s) { s.output_scale = -1.0f; }, "output_scale is not in"},
      {[](PoolSpec& s) { s.input_scale = 0x1p64f, s.output_scale = 0x1p-64f; }, "is not finite"},
      {[](PoolSpec& s) { s.input_zero_point = 128; }, "input_zero_point 128 is outside int8"},
      {[](PoolSpec& s) { s.output_zero_point = -129; }, "output_zero_point -129 is outside int8"},
  };
  testing::expect_refusals(kAvgPool2dFamily, refusals);
}

}  // namespace
}  // namespace qplan::avg_pool2d_f32e_test
