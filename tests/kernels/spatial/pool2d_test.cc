// Every variant of avg_pool2d and max_pool2d against a walk over all taps in rational arithmetic.
#include <gtest/gtest.h>

#include <string>

#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::pool2d_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct PoolSpec {
  bool average = true;
  Extents input = {1, 4, 4, 2};
  Extents output = {1, 2, 2, 2};
  format::Contract contract = format::Contract_TFL2;
  uint32_t pool_h = 2;
  uint32_t pool_w = 2;
  uint32_t stride_h = 2;
  uint32_t stride_w = 2;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  int32_t clamp_min = -128;
  int32_t clamp_max = 127;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(average ? kKernel_avg_pool2d : kKernel_max_pool2d);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_Pool2dParams,
                format::CreatePool2dParams(step.builder(), contract, pool_h, pool_w, stride_h, stride_w,
                                           pad_top, pad_left, clamp_min, clamp_max)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

// One output, from its definition: taps outside the input are left out.
template <typename T>
int64_t exact(const PoolSpec& spec, const std::vector<T>& x, const Extents& at) {
  int64_t sum = 0;
  int64_t count = 0;
  int64_t max = INT64_MIN;
  for (int64_t ky = 0; ky < spec.pool_h; ++ky) {
    for (int64_t kx = 0; kx < spec.pool_w; ++kx) {
      const int64_t y = at[1] * spec.stride_h + ky - spec.pad_top;
      const int64_t w = at[2] * spec.stride_w + kx - spec.pad_left;
      if (y < 0 || y >= spec.input[1] || w < 0 || w >= spec.input[2]) continue;
      const int64_t value = x[testing::broadcast_index(spec.input, {at[0], y, w, at[3]})];
      sum += value;
      ++count;
      max = std::max(max, value);
    }
  }
  // The nearest integer, halves away from zero. For odd counts there are no halves, so that count / 2
  // truncated is the same rule.
  const int64_t mean = static_cast<int64_t>(testing::round_half_away(sum, count));
  return testing::exact_clamp(spec.average ? mean : max, spec.clamp_min, spec.clamp_max);
}

class PoolVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  bool average() const { return std::string(GetParam()->name).substr(0, 3) == "avg"; }

  template <typename T>
  void expect_exact(PoolSpec spec, uint64_t seed) {
    Random random(seed);
    spec.average = average();
    testing::random_clamp(random, std::is_signed_v<T> ? Dtype::kS8 : Dtype::kU8, &spec.clamp_min,
                          &spec.clamp_max);
    const auto x = random.full_range<T>(testing::num_elements(spec.input));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, average() ? kAvgPool2dFamily : kMaxPool2dFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(
        spec.output, [&](const Extents& at) { expected.push_back(static_cast<T>(exact(spec, x, at))); });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

std::vector<const KernelVariant*> pool_variants() {
  std::vector<const KernelVariant*> all = testing::variants_of(kAvgPool2dFamily);
  for (const KernelVariant* variant : testing::variants_of(kMaxPool2dFamily)) all.push_back(variant);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, PoolVariant, ::testing::ValuesIn(pool_variants()), testing::variant_test_name);

// As many outputs as have a window that begins inside the input.
int64_t random_extent_of_outputs(Random& random, int64_t input, uint32_t stride, uint32_t pad) {
  return random.integer(1, (input - 1 + pad) / stride + 1);
}

TEST_P(PoolVariant, EqualsTheExactFormulaForRandomWindows) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    Random random(seed);
    PoolSpec spec;
    const std::vector<int64_t> channels = {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 130};
    spec.input = {random.integer(1, 3), random.integer(1, 9), random.integer(1, 9), random.pick(channels)};
    spec.pool_h = static_cast<uint32_t>(random.integer(1, 10));
    spec.pool_w = static_cast<uint32_t>(random.integer(1, 10));
    spec.stride_h = static_cast<uint32_t>(random.integer(1, 4));
    spec.stride_w = static_cast<uint32_t>(random.integer(1, 4));
    spec.pad_top = static_cast<uint32_t>(random.integer(0, spec.pool_h - 1));
    spec.pad_left = static_cast<uint32_t>(random.integer(0, spec.pool_w - 1));
    spec.output = {
        spec.input[0], random_extent_of_outputs(random, spec.input[1], spec.stride_h, spec.pad_top),
        random_extent_of_outputs(random, spec.input[2], spec.stride_w, spec.pad_left), spec.input[3]};
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
}

// The last layer of most networks; the sum leaves 16 bits.
TEST_P(PoolVariant, ReducesAWholeImage) {
  for (const int64_t extent : {7, 8, 20}) {
    PoolSpec spec;
    spec.input = {1, extent, extent, 70};
    spec.output = {1, 1, 1, 70};
    spec.pool_h = spec.pool_w = static_cast<uint32_t>(extent);
    expect_exact<uint8_t>(spec, static_cast<uint64_t>(extent));
    expect_exact<int8_t>(spec, static_cast<uint64_t>(extent));
  }
}

TEST(AvgPool2d, RoundsHalvesAwayFromZero) {
  PoolSpec spec;
  spec.input = {1, 1, 8, 1};
  spec.output = {1, 1, 4, 1};
  spec.pool_h = spec.stride_h = 1;
  TestStep step = spec.make_of<int8_t>({1, 2, -1, -2, 0, -1, 127, 126});
  ASSERT_TRUE(testing::run_step(step, kAvgPool2dFamilyReference, kAvgPool2dFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{2, -2, -1, 127}));
}

TEST(AvgPool2d, CountsOnlyElementsInsideTheInput) {
  PoolSpec spec;
  spec.input = {1, 1, 2, 1};
  spec.output = {1, 1, 2, 1};
  spec.pool_h = spec.pool_w = 3;
  spec.stride_h = spec.stride_w = 1;
  spec.pad_top = spec.pad_left = 1;
  spec.clamp_min = 0;
  spec.clamp_max = 255;
  TestStep step = spec.make_of<uint8_t>({10, 255});
  ASSERT_TRUE(testing::run_step(step, kAvgPool2dFamilyReference, kAvgPool2dFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<uint8_t>(step), (std::vector<uint8_t>{133, 133}));
}

TEST(MaxPool2d, ValuesByHand) {
  PoolSpec spec;
  spec.average = false;
  spec.input = {1, 2, 4, 1};
  spec.output = {1, 1, 2, 1};
  spec.clamp_max = 6;
  TestStep step = spec.make_of<int8_t>({-128, -3, 0, 1, -5, -4, 2, 100});
  ASSERT_TRUE(testing::run_step(step, kMaxPool2dFamilyReference, kMaxPool2dFamilyReference.variants[0], 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{-3, 6}));
}

const std::vector<testing::Refusal<PoolSpec>> kRefusals = {
    // clang-format off
    {[](PoolSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](PoolSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 32; }; }, "input"},
    {[](PoolSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](PoolSpec& s) { s.input = {4, 4, 2}; }, "rank 3"},
    {[](PoolSpec& s) { s.output = {2, 2, 2, 2}; }, "batch"},
    {[](PoolSpec& s) { s.output = {1, 2, 2, 1}; }, "channels"},
    {[](PoolSpec& s) { s.pool_h = 0; }, "height"},
    {[](PoolSpec& s) { s.pool_w = 0; }, "width"},
    {[](PoolSpec& s) { s.stride_h = 0; }, "height"},
    {[](PoolSpec& s) { s.stride_w = 0; }, "width"},
    {[](PoolSpec& s) { s.pad_top = 2; }, "height"},
    {[](PoolSpec& s) { s.pad_left = UINT32_MAX; }, "width"},
    {[](PoolSpec& s) { s.output = {1, 3, 2, 2}; }, "height"},
    {[](PoolSpec& s) { s.output = {1, 2, 3, 2}; }, "width"},
    {[](PoolSpec& s) { s.pool_h = UINT32_MAX; }, "height"},
    {[](PoolSpec& s) { s.stride_w = UINT32_MAX; }, "width"},
    {[](PoolSpec& s) { s.clamp_min = -129; }, "clamp_min"},
    {[](PoolSpec& s) { s.clamp_max = 128; }, "clamp_max"},
    {[](PoolSpec& s) { s.clamp_min = 5, s.clamp_max = 4; }, "above"},
    // clang-format on
};

TEST(AvgPool2d, BindRefusesWhatIsWrong) {
  testing::expect_refusals(kAvgPool2dFamily, kRefusals);
  testing::expect_refusals<PoolSpec>(
      kAvgPool2dFamily,
      {{[](PoolSpec& s) { s.contract = format::Contract_POT; }, "contract POT", QPLAN_KERNEL_MISSING}});
}

TEST(MaxPool2d, BindRefusesWhatIsWrong) { testing::expect_refusals(kMaxPool2dFamily, kRefusals); }

}  // namespace
}  // namespace qplan::pool2d_test
