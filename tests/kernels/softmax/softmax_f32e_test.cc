// Every variant of softmax under F32E: bit for bit against the formula in double, rounded where the contract
// rounds, and near the real function.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/runtime/bind/family.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::softmax_f32e_test {
namespace {

using testing::Extents;
using testing::f32;
using testing::Random;
using testing::TestStep;

std::vector<float> exponentials(double scale) {
  std::vector<float> table;
  for (int d = 0; d < 256; ++d) table.push_back(static_cast<float>(std::exp(-scale * d)));
  return table;
}

struct SoftmaxSpec {
  // Tensors of the step, in the order they are added.
  enum : uint32_t { kInput, kTable, kOutput };

  Extents shape = {2, 10};
  std::vector<float> table = exponentials(0.1);
  float output_scale = 1.0f / 256.0f;
  int32_t output_zero_point = 0;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_softmax);
    step.input<T>(shape, values);
    step.constant<float>({static_cast<int64_t>(table.size())}, table);
    step.output<T>(shape);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_SoftmaxParams,
                format::CreateSoftmaxParams(step.builder(), format::Contract_F32E, -1, 99, 1, output_scale,
                                            output_zero_point)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(shape)));
  }
};

template <typename T>
std::vector<T> exact(const SoftmaxSpec& spec, const std::vector<T>& x) {
  const auto depth = static_cast<size_t>(spec.shape.back());
  std::vector<T> result;
  for (size_t row = 0; row < x.size(); row += depth) {
    const int32_t max = *std::max_element(x.begin() + row, x.begin() + row + depth);
    const auto e = [&](size_t i) { return static_cast<double>(spec.table[max - x[row + i]]); };
    double sum = 0;
    for (size_t i = 0; i < depth; ++i) sum = f32(sum + e(i));
    for (size_t i = 0; i < depth; ++i) {
      const double real = f32(f32(e(i) / sum) / static_cast<double>(spec.output_scale));
      result.push_back(static_cast<T>(testing::exact_quantize_f32e(
          real, spec.output_zero_point, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
    }
  }
  return result;
}

class SoftmaxF32eVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(const SoftmaxSpec& spec, uint64_t seed) {
    Random random(seed);
    const auto x = random.full_range<T>(testing::num_elements(spec.shape));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kSoftmaxFamily, *GetParam(), seed)) return;
    EXPECT_EQ(testing::output_values<T>(step), exact(spec, x)) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, SoftmaxF32eVariant, ::testing::ValuesIn(testing::variants_of(kSoftmaxFamily)),
                         testing::variant_test_name);

TEST_P(SoftmaxF32eVariant, EqualsTheExactFormula) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(seed);
    SoftmaxSpec spec;
    spec.shape = testing::random_shape(random, static_cast<size_t>(random.integer(1, 3)), 40);
    spec.table = exponentials(std::ldexp(random.unit(), static_cast<int>(random.integer(-8, 3))));
    if (random.chance(0.5)) spec.output_scale = static_cast<float>(0.001 + 0.01 * random.unit());
    spec.output_zero_point = static_cast<int32_t>(random.integer(0, 127));
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
}

TEST_P(SoftmaxF32eVariant, TakesRowsAroundVectorsAndTables) {
  uint64_t seed = 2000;
  for (const int64_t depth : {7, 8, 9, 15, 16, 17, 33, 64, 65, 255, 256, 257, 300}) {
    SoftmaxSpec spec;
    spec.shape = {5, depth};
    spec.table = exponentials(0.01);
    expect_exact<uint8_t>(spec, ++seed);
    expect_exact<int8_t>(spec, ++seed);
  }
}

TEST_P(SoftmaxF32eVariant, SumsInTheOrderOfTheElements) {
  SoftmaxSpec spec;
  spec.shape = {1, 100000};
  spec.table = exponentials(0.003);
  expect_exact<uint8_t>(spec, 1000);
  expect_exact<int8_t>(spec, 1001);
}

TEST_P(SoftmaxF32eVariant, TiesGoToTheEvenNeighbour) {
  SoftmaxSpec spec;
  spec.shape = {4, 2};
  spec.output_scale = 0.2f;  // 0.5 / 0.2f = 2.5
  TestStep step = spec.make_of<int8_t>(std::vector<int8_t>(8, 7));
  ASSERT_TRUE(testing::run_step(step, kSoftmaxFamily, *GetParam(), 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), std::vector<int8_t>(8, 2));
}

TEST(SoftmaxF32e, BindRefusesWhatIsWrong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  using Spec = SoftmaxSpec;
  const std::vector<testing::Refusal<Spec>> refusals = {
      {[](Spec& s) { s.tweak = [](TestStep& t) { t.inputs().pop_back(); }; },
       "the step has 1 inputs, expected 2"},
      {[](Spec& s) { s.table.pop_back(); }, "table has 1020 bytes, expected 256 elements of 4"},
      {[](Spec& s) { s.tweak = [](TestStep& t) { t.tensor(Spec::kTable).type_code = 0; }; },
       "table has int32, expected float32"},
      {[](Spec& s) { s.tweak = [](TestStep& t) { t.tensor(Spec::kTable).bank = TestStep::kArenaBank; }; },
       "table is not a constant"},
      {[](Spec& s) { s.table[0] = 0.5f; }, "table does not begin with 1"},
      {[=](Spec& s) { s.table[0] = nan; }, "table does not begin with 1"},
      {[=](Spec& s) { s.table[255] = nan; }, "table entry 255 is not in 0 .. 1"},
      {[=](Spec& s) { s.table[9] = infinity; }, "table entry 9 is not in 0 .. 1"},
      {[](Spec& s) { s.table[9] = -0.25f; }, "table entry 9 is not in 0 .. 1"},
      {[](Spec& s) { s.output_scale = 0.0f; }, "output_scale is not in (0, 2^100]"},
      {[=](Spec& s) { s.output_scale = nan; }, "output_scale is not in (0, 2^100]"},
      {[](Spec& s) { s.output_zero_point = 128; }, "output_zero_point 128 is outside int8"},
  };
  testing::expect_refusals(kSoftmaxFamily, refusals);
}

TEST(SoftmaxF32e, NeverOverwritesItsTable) {
  SoftmaxSpec spec;
  TestStep step(kKernel_softmax);
  spec.make(step);
  EXPECT_TRUE(kSoftmaxFamily.in_place(step.view(), 0, 0));
  EXPECT_FALSE(kSoftmaxFamily.in_place(step.view(), 0, 1));
}

}  // namespace
}  // namespace qplan::softmax_f32e_test
