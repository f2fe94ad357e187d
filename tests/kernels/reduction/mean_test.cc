// Every variant of mean against the exact formula.
#include <gtest/gtest.h>

#include "kernels/reduction/reduction.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::mean_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct MeanSpec {
  Extents input = {1, 2, 3, 4};
  Extents output = {1, 1, 1, 4};
  format::Contract contract = format::Contract_TFL2;
  uint32_t axes = 0b0110;
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t multiplier = 1431655765;
  int32_t shift = -2;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_mean);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_MeanParams,
                format::CreateMeanParams(step.builder(), contract, axes, input_zero_point, output_zero_point,
                                         multiplier, shift)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

template <typename T>
std::vector<T> exact(const MeanSpec& spec, const std::vector<T>& x) {
  Extents kept = spec.input;
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    if ((spec.axes >> axis & 1) != 0) kept[axis] = 1;
  }
  std::vector<int64_t> sums(testing::num_elements(kept), 0);
  int64_t i = 0;
  testing::for_each_position(spec.input, [&](const Extents& at) {
    sums[testing::broadcast_index(kept, at)] += x[i++] - spec.input_zero_point;
  });
  std::vector<T> result;
  for (const int64_t sum : sums) {
    const int64_t mean = testing::exact_tfl2(sum, spec.multiplier, spec.shift) + spec.output_zero_point;
    result.push_back(static_cast<T>(
        testing::exact_clamp(mean, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
  }
  return result;
}

class MeanVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(MeanSpec spec, uint64_t seed) {
    Random random(seed);
    spec.input_zero_point = random.full_range<T>(1)[0];
    spec.output_zero_point = random.full_range<T>(1)[0];
    int64_t reduced = 1;
    spec.output.clear();
    const bool keep = random.chance(0.5);
    for (size_t axis = 0; axis < spec.input.size(); ++axis) {
      if ((spec.axes >> axis & 1) == 0) spec.output.push_back(spec.input[axis]);
      if ((spec.axes >> axis & 1) != 0 && keep) spec.output.push_back(1);
      if ((spec.axes >> axis & 1) != 0) reduced *= spec.input[axis];
    }
    // About 1 / reduced, and below 2^30 as the packer's division can leave it.
    spec.multiplier = static_cast<int32_t>(random.integer(1 << 29, INT32_MAX));
    spec.shift = static_cast<int32_t>(random.integer(-1, 2));
    for (int64_t n = reduced; n > 1; n /= 2) --spec.shift;
    if (random.chance(0.1)) spec.shift = static_cast<int32_t>(random.integer(-31, 30));
    const auto x = random.full_range<T>(testing::num_elements(spec.input));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kMeanFamily, *GetParam(), seed)) return;
    EXPECT_EQ(testing::output_values<T>(step), exact(spec, x)) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, MeanVariant, ::testing::ValuesIn(testing::variants_of(kMeanFamily)),
                         testing::variant_test_name);

TEST_P(MeanVariant, EqualsTheExactFormulaForAnyAxes) {
  for (uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    Random random(seed);
    MeanSpec spec;
    spec.input = testing::random_shape(random, random.integer(1, 6), 6);
    spec.axes = static_cast<uint32_t>(random.integer(1, (1 << spec.input.size()) - 1));
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
}

TEST_P(MeanVariant, ReducesHeightAndWidthOfImages) {
  uint64_t seed = 0;
  for (const int64_t channels : {1, 15, 16, 17, 32, 33, 63, 64, 65, 200}) {
    MeanSpec spec;
    spec.input = {2, 7, 7, channels};
    spec.axes = 0b0110;
    expect_exact<uint8_t>(spec, ++seed);
    expect_exact<int8_t>(spec, ++seed);
  }
}

TEST_P(MeanVariant, SumsOfManyExtremesAreExact) {
  MeanSpec spec;
  spec.input = {300000, 2};
  spec.output = {2};
  spec.axes = 1;
  spec.input_zero_point = 255;
  spec.multiplier = INT32_MAX;
  spec.shift = -19;
  spec.output_zero_point = 200;
  const std::vector<uint8_t> x(600000, 0);
  TestStep step = spec.make_of<uint8_t>(x);
  if (!testing::run_step(step, kMeanFamily, *GetParam(), 1)) return;
  EXPECT_EQ(testing::output_values<uint8_t>(step), exact(spec, x));
}

TEST(Mean, ValuesByHand) {
  // Six elements, equal scales: 1 and 2^30 * 2^1 become (2^30 << 2) / 6 = 715827882 and a shift of 1 - 2.
  MeanSpec spec;
  spec.input = {2, 3};
  spec.axes = 0b11;
  spec.output = {1, 1};
  spec.multiplier = 715827882;
  spec.shift = -1;
  TestStep step = spec.make_of<int8_t>({1, 2, 3, 4, 5, 7});  // 22 / 6 = 3.67
  ASSERT_TRUE(testing::run_step(step, kMeanFamilyReference, kMeanFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{4}));
}

TEST(Mean, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<MeanSpec>(kMeanFamily, {
    {[](MeanSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](MeanSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input"},
    {[](MeanSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](MeanSpec& s) { s.contract = format::Contract_TFL1; }, "contract TFL1", QPLAN_KERNEL_MISSING},
    {[](MeanSpec& s) { s.axes = 0; }, "axes 0"},
    {[](MeanSpec& s) { s.axes = 16; }, "axes 16"},
    {[](MeanSpec& s) { s.axes = 0x80000000u; }, "axes"},
    {[](MeanSpec& s) { s.axes = 0b0010; }, "reduced along axes"},
    {[](MeanSpec& s) { s.output = {1, 4, 1}; }, "reduced along axes"},
    {[](MeanSpec& s) { s.output = {1, 1, 4}; }, "reduced along axes"},
    {[](MeanSpec& s) { s.output = {1}; }, "reduced along axes"},
    {[](MeanSpec& s) {
       s.input = {1, (1 << 23) + 1, 1, 1};
       s.output = {1, 1};
     },
     "number of reduced elements 8388609"},
    {[](MeanSpec& s) { s.input_zero_point = 128; }, "input_zero_point"},
    {[](MeanSpec& s) { s.output_zero_point = -129; }, "output_zero_point"},
    {[](MeanSpec& s) { s.multiplier = -1; }, "multiplier"},
    {[](MeanSpec& s) { s.shift = 31; }, "shift"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::mean_test
