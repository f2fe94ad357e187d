#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::transpose_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct TransposeSpec {
  Extents input = {2, 3, 4};
  Extents output = {4, 2, 3};
  std::vector<uint32_t> permutation = {2, 0, 1};
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_transpose);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_TransposeParams,
                format::CreateTransposeParamsDirect(step.builder(), &permutation).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class TransposeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_transposed(TransposeSpec spec, uint64_t seed) {
    Random random(seed);
    spec.output.clear();
    for (const uint32_t axis : spec.permutation) spec.output.push_back(spec.input[axis]);
    const auto x = random.integers<T>(testing::num_elements(spec.input), -100, 100);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kTransposeFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      Extents from(at.size());
      for (size_t i = 0; i < at.size(); ++i) from[spec.permutation[i]] = at[i];
      expected.push_back(x[testing::broadcast_index(spec.input, from)]);
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }

  void expect_transposed_of_all_sizes(const TransposeSpec& spec, uint64_t seed) {
    expect_transposed<int8_t>(spec, seed);
    expect_transposed<int16_t>(spec, seed);
    expect_transposed<float>(spec, seed);
    expect_transposed<int64_t>(spec, seed);
  }
};

INSTANTIATE_TEST_SUITE_P(All, TransposeVariant, ::testing::ValuesIn(testing::variants_of(kTransposeFamily)),
                         testing::variant_test_name);

TEST_P(TransposeVariant, MovesEveryElementForEveryPermutation) {
  uint64_t seed = 0;
  for (uint32_t rank = 0; rank <= 6; ++rank) {
    TransposeSpec spec;
    spec.permutation.clear();
    for (uint32_t axis = 0; axis < rank; ++axis) spec.permutation.push_back(axis);
    do {
      Random random(++seed);
      if (rank == 6 && seed % 7 != 0) continue;
      spec.input = testing::random_shape(random, rank, 4);
      expect_transposed_of_all_sizes(spec, seed);
    } while (std::next_permutation(spec.permutation.begin(), spec.permutation.end()) && !HasFailure());
  }
}

TEST_P(TransposeVariant, TurnsImagesBetweenChannelsFirstAndLast) {
  uint64_t seed = 0;
  for (const int64_t channels : {1, 3, 4, 16, 17, 40}) {
    TransposeSpec spec;
    spec.input = {2, channels, 19, 33};
    spec.permutation = {0, 2, 3, 1};
    expect_transposed_of_all_sizes(spec, ++seed);
    spec.input = {2, 19, 33, channels};
    spec.permutation = {0, 3, 1, 2};
    expect_transposed_of_all_sizes(spec, ++seed);
  }
}

// Few channels of one image, pixels around the vector and the work item.
TEST_P(TransposeVariant, TurnsPlanesToPixelsAndBack) {
  uint64_t seed = 0;
  for (const int64_t channels : {2, 3, 4, 5}) {
    for (const int64_t pixels : {2, 3, 4, 15, 16, 17, 100, 1023, 1024, 1025, 3000}) {
      TransposeSpec spec;
      spec.permutation = {0, 2, 1};
      spec.input = {1, channels, pixels};
      expect_transposed_of_all_sizes(spec, ++seed);
      spec.input = {1, pixels, channels};
      expect_transposed_of_all_sizes(spec, ++seed);
    }
  }
}

TEST(Transpose, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<TransposeSpec>(kTransposeFamily, {
    {[](TransposeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](TransposeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 4; }; }, "input"},
    {[](TransposeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](TransposeSpec& s) { s.output = {4, 6}; }, "rank"},
    {[](TransposeSpec& s) { s.permutation = {2, 0}; }, "permutation has 2"},
    {[](TransposeSpec& s) { s.permutation = {2, 0, 1, 3}; }, "permutation has 4"},
    {[](TransposeSpec& s) { s.permutation = {2, 2, 1}; }, "permutation entry 1 is 2"},
    {[](TransposeSpec& s) { s.permutation = {2, 0, 3}; }, "permutation entry 2 is 3"},
    {[](TransposeSpec& s) { s.permutation = {UINT32_MAX, 0, 1}; }, "permutation entry 0"},
    {[](TransposeSpec& s) { s.output = {4, 3, 2}; }, "extent"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::transpose_test
