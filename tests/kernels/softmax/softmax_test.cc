// Every variant of softmax: bit for bit against the fixed-point rule in 128-bit rationals, and within one
// step of the real function.
#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/numeric/requantize.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::softmax_test {
namespace {

using testing::Extents;
using testing::int128;
using testing::Random;
using testing::TestStep;

constexpr int128 kOne31 = int128{1} << 31;

// A product of fixed-point numbers: rounded to nearest, ties upwards.
int128 times(int128 a, int128 b) { return testing::round_half_up(a * b, kOne31); }
int128 shifted(int128 a, int count) { return testing::round_half_away(a, int128{1} << count); }

// exp(a / 2^26) * 2^31 for a <= 0.
int128 exact_exp(int128 a) {
  if (a == 0) return kOne31 - 1;
  const int128 quarter = int128{1} << 24;
  // a = rest - quarters * 2^24 with rest in [-2^24, 0).
  const int128 quarters = -testing::floor_divide(a, quarter) - 1;
  const int128 rest = a + quarters * quarter;
  const int128 x = rest * 32 + (int128{1} << 28);
  const int128 x2 = times(x, x);
  const int128 x3 = times(x2, x);
  const int128 x4 = times(x2, x2);
  const int128 tail = shifted(times(shifted(x4, 2) + x3, 715827883) + x2, 1);
  int128 result = 1895147668 + times(1895147668, x + tail);
  const int128 factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
  for (int bit = 0; bit < 7; ++bit) {
    if ((quarters >> bit & 1) != 0) result = times(result, factors[bit]);
  }
  return result;
}

// 2^31 / (1 + a / 2^31).
int128 exact_reciprocal(int128 a) {
  const int128 half = testing::round_half_up(a + kOne31 - 1, 2);
  int128 x = 1515870810 + times(half, -1010580540);
  for (int i = 0; i < 3; ++i) x += 4 * times(x, (int128{1} << 29) - times(half, x));
  return std::min<int128>(2 * x, kOne31 - 1);
}

struct Scaling {
  int32_t multiplier;
  int32_t left_shift;
  int32_t diff_min;
};

// As docs/numerics/softmax.md states for packers.
Scaling scaling_of(double beta, double scale) {
  const double real = std::min(beta * scale * (1 << 26), 2147483647.0);
  const QuantizedMultiplier q = quantize_multiplier(real);
  return {q.multiplier, q.shift, -static_cast<int32_t>((int64_t{31} << 26) >> q.shift)};
}

struct SoftmaxSpec {
  Extents shape = {2, 10};
  Extents output = {2, 10};
  format::Contract contract = format::Contract_TFL2;
  Scaling scaling = scaling_of(1.0, 0.1);
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_softmax);
    step.input<T>(shape, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_SoftmaxParams,
                format::CreateSoftmaxParams(step.builder(), contract, scaling.multiplier, scaling.left_shift,
                                            scaling.diff_min)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(shape)));
  }
};

template <typename T>
std::vector<T> exact_row(const Scaling& scaling, const std::vector<T>& row) {
  const int32_t max = *std::max_element(row.begin(), row.end());
  const auto exp_of = [&](T x) {
    return exact_exp(times(int128{x - max} * (int128{1} << scaling.left_shift), scaling.multiplier));
  };
  int128 sum = 0;
  for (const T x : row) {
    if (x - max >= scaling.diff_min) sum += shifted(exp_of(x), 12);
  }
  sum = std::min<int128>(sum, kOne31 - 1);
  int power = 0;
  while (sum >> (power + 20) != 0) ++power;
  const int128 reciprocal = exact_reciprocal((sum << (12 - power)) - kOne31);
  std::vector<T> result;
  for (const T x : row) {
    int128 value = 0;
    if (x - max >= scaling.diff_min) value = shifted(times(reciprocal, exp_of(x)), power + 23);
    result.push_back(static_cast<T>(std::numeric_limits<T>::min() + std::min<int128>(value, 255)));
  }
  return result;
}

class SoftmaxVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  std::vector<T> run(const SoftmaxSpec& spec, const std::vector<T>& x, uint64_t seed) {
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kSoftmaxFamily, *GetParam(), seed)) return {};
    const std::vector<T> y = testing::output_values<T>(step);
    const size_t depth = static_cast<size_t>(spec.shape.back());
    std::vector<T> expected;
    for (size_t at = 0; at < x.size(); at += depth) {
      const auto row = exact_row<T>(spec.scaling, std::vector<T>(x.begin() + at, x.begin() + at + depth));
      expected.insert(expected.end(), row.begin(), row.end());
    }
    EXPECT_EQ(y, expected) << "seed " << seed;
    return y;
  }

  template <typename T>
  void expect_near_the_real_function(uint64_t seed) {
    Random random(seed);
    const double scale = std::exp2(-8 + 9 * random.unit());
    SoftmaxSpec spec;
    spec.shape = spec.output = {random.integer(1, 3), random.integer(1, 200)};
    spec.scaling = scaling_of(1.0, scale);
    const std::vector<T> x = random.full_range<T>(testing::num_elements(spec.shape));
    const std::vector<T> y = run(spec, x, seed);
    const size_t depth = static_cast<size_t>(spec.shape.back());
    for (size_t at = 0; at < y.size(); ++at) {
      const size_t row = at / depth * depth;
      double sum = 0;
      for (size_t i = row; i < row + depth; ++i) sum += std::exp(scale * (x[i] - x[at]));
      EXPECT_NEAR(y[at] - std::numeric_limits<T>::min(), std::min(256 / sum, 255.0), 1.0) << "seed " << seed;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, SoftmaxVariant, ::testing::ValuesIn(testing::variants_of(kSoftmaxFamily)),
                         testing::variant_test_name);

TEST_P(SoftmaxVariant, IsExactAndNearTheRealFunction) {
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    expect_near_the_real_function<uint8_t>(seed);
    expect_near_the_real_function<int8_t>(seed);
  }
}

TEST_P(SoftmaxVariant, IsExactForAnyLegalParameters) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Random random(seed);
    SoftmaxSpec spec;
    spec.shape = spec.output = testing::random_shape(random, random.integer(1, 4), 9);
    spec.scaling.multiplier = static_cast<int32_t>(random.chance(0.1) ? 0 : random.integer(0, INT32_MAX));
    spec.scaling.left_shift = static_cast<int32_t>(random.integer(0, 31));
    const int32_t most = static_cast<int32_t>(SoftmaxArgs::kMaxShifted >> spec.scaling.left_shift);
    spec.scaling.diff_min = -static_cast<int32_t>(random.chance(0.5) ? most : random.integer(0, most));
    run<uint8_t>(spec, random.full_range<uint8_t>(testing::num_elements(spec.shape)), seed);
    run<int8_t>(spec, random.full_range<int8_t>(testing::num_elements(spec.shape)), seed);
  }
}

// One row of so many elements is computed element by element, more of them by a table.
TEST_P(SoftmaxVariant, IsExactForRowsAroundVectorsAndTables) {
  uint64_t seed = 0;
  for (const int64_t depth : {1, 2, 7, 8, 9, 15, 16, 17, 33, 63, 64, 65, 255, 256, 257, 1001}) {
    for (const int64_t rows : {1, 2, 40}) {
      Random random(++seed);
      SoftmaxSpec spec;
      spec.shape = spec.output = {rows, depth};
      spec.scaling.multiplier = static_cast<int32_t>(random.integer(1 << 30, INT32_MAX));
      spec.scaling.left_shift = static_cast<int32_t>(random.integer(15, 26));
      spec.scaling.diff_min = -static_cast<int32_t>(SoftmaxArgs::kMaxShifted >> spec.scaling.left_shift);
      run<uint8_t>(spec, random.full_range<uint8_t>(rows * depth), seed);
      run<int8_t>(spec, random.full_range<int8_t>(rows * depth), seed);
    }
  }
}

// The sum of more than 511 equal exponentials needs a shift of 32, of more than 4095 it saturates.
TEST_P(SoftmaxVariant, EqualElementsOfLongRows) {
  for (const int64_t depth : {1, 2, 255, 256, 257, 511, 512, 513, 1001, 4095, 4096, 5000}) {
    SoftmaxSpec spec;
    spec.shape = spec.output = {depth};
    run<uint8_t>(spec, std::vector<uint8_t>(depth, 7), 1);
  }
}

TEST(Softmax, ValuesByHand) {
  SoftmaxSpec spec;
  spec.shape = spec.output = {2, 2};
  const KernelVariant& reference = kSoftmaxFamilyReference.variants[0];
  TestStep step = spec.make_of<int8_t>({5, 5, 127, -128});
  ASSERT_TRUE(testing::run_step(step, kSoftmaxFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{0, 0, 127, -128}));
}

TEST(Softmax, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<SoftmaxSpec>(kSoftmaxFamily, {
    {[](SoftmaxSpec& s) { s.tweak = [](TestStep& t) { t.inputs().clear(); }; }, "expected 1"},
    {[](SoftmaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input"},
    {[](SoftmaxSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](SoftmaxSpec& s) { s.shape = s.output = {}; }, "scalar"},
    {[](SoftmaxSpec& s) { s.output = {10, 2}; }, "another shape"},
    {[](SoftmaxSpec& s) { s.contract = format::Contract_TFL1; }, "only TFL2, F32E", QPLAN_KERNEL_MISSING},
    {[](SoftmaxSpec& s) { s.scaling.multiplier = -1; }, "input_multiplier"},
    {[](SoftmaxSpec& s) { s.scaling.left_shift = 32; }, "input_left_shift 32"},
    {[](SoftmaxSpec& s) { s.scaling.left_shift = -1; }, "input_left_shift -1"},
    {[](SoftmaxSpec& s) { s.scaling.diff_min = 1; }, "diff_min 1"},
    {[](SoftmaxSpec& s) { s.scaling.diff_min -= 1; }, "diff_min"},
    {[](SoftmaxSpec& s) { s.scaling.diff_min = INT32_MIN; }, "diff_min"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::softmax_test
