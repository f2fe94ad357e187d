#include <gtest/gtest.h>

#include "kernels/numbers/numbers.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::int_reduce_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct IntReduceSpec {
  Extents input = {2, 3, 4};
  Extents output = {2, 4};
  uint32_t axes = 0b010;
  format::FloatReduction reduction = format::FloatReduction_SUM;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_int_reduce);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatReduceParams,
                format::CreateFloatReduceParams(step.builder(), axes, 0, false, reduction).Union());
    return step;
  }
  void make(TestStep& step) const { step = make_of(std::vector<int32_t>(testing::num_elements(input))); }
};

template <typename T>
std::vector<T> run(const IntReduceSpec& spec, const std::vector<T>& values, uint64_t seed = 1) {
  TestStep step = spec.make_of(values);
  if (!testing::run_step(step, kIntReduceFamily, *kIntReduceFamily.variants, seed)) return {};
  return testing::output_values<T>(step);
}

// What becomes of elements, in integers that nothing overflows.
template <typename T>
T exact(format::FloatReduction reduction, const std::vector<T>& elements) {
  using Wide = testing::int128;
  const auto wrapped = [](Wide value) { return static_cast<T>(value); };
  Wide result = reduction == format::FloatReduction_PRODUCT ? 1
                : reduction == format::FloatReduction_MAXIMUM || reduction == format::FloatReduction_MINIMUM
                    ? elements[0]
                    : 0;
  for (const Wide element : elements) {
    if (reduction == format::FloatReduction_PRODUCT) result = wrapped(result * element);
    if (reduction == format::FloatReduction_MAXIMUM) result = std::max(result, element);
    if (reduction == format::FloatReduction_MINIMUM) result = std::min(result, element);
    if (reduction == format::FloatReduction_SUM || reduction == format::FloatReduction_MEAN)
      result += element;
  }
  if (reduction == format::FloatReduction_MEAN) return wrapped(result / static_cast<Wide>(elements.size()));
  return wrapped(result);
}

// The sum of a mean of int64 must not wrap here; `large`: bounds of the elements of the others.
template <typename T>
void expect_plain_loops(uint64_t seed, int64_t large) {
  Random random(seed);
  IntReduceSpec spec;
  spec.input = testing::random_shape(random, random.integer(1, 6), 5);
  spec.axes = static_cast<uint32_t>(random.integer(1, (int64_t{1} << spec.input.size()) - 1));
  spec.reduction = static_cast<format::FloatReduction>(random.integer(0, format::FloatReduction_MAX));
  const bool keeps = random.chance(0.5);
  spec.output.clear();
  Extents kept = spec.input;
  for (size_t axis = 0; axis < kept.size(); ++axis) {
    const bool reduced = (spec.axes >> axis & 1) != 0;
    if (reduced) kept[axis] = 1;
    if (!reduced || keeps) spec.output.push_back(kept[axis]);
  }
  const bool is_mean = spec.reduction == format::FloatReduction_MEAN;
  const int64_t bound = is_mean && sizeof(T) == 8 ? int64_t{1} << 40 : large;
  const auto x = random.integers<T>(testing::num_elements(spec.input), -bound, bound);
  std::vector<std::vector<T>> lines(testing::num_elements(kept));
  size_t i = 0;
  testing::for_each_position(
      spec.input, [&](const Extents& at) { lines[testing::broadcast_index(kept, at)].push_back(x[i++]); });
  std::vector<T> expected;
  for (const std::vector<T>& line : lines) expected.push_back(exact(spec.reduction, line));
  EXPECT_EQ(run(spec, x, seed), expected)
      << "seed " << seed << ": " << format::EnumNameFloatReduction(spec.reduction);
}

TEST(IntReduce, HasTheNumbersOfPlainLoops) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    expect_plain_loops<int32_t>(seed, seed % 2 == 0 ? 20 : INT32_MAX);
    expect_plain_loops<int64_t>(seed, seed % 2 == 0 ? 20 : int64_t{1} << 62);
  }
}

TEST(IntReduce, SumsAndProductsWrapAndMeansOfInt32DoNot) {
  IntReduceSpec spec;
  spec.input = {2, 3}, spec.output = {2}, spec.axes = 0b10;
  const std::vector<int32_t> x = {INT32_MAX, INT32_MAX, 5, INT32_MIN, -1, -1};
  const auto reduced = [&](format::FloatReduction reduction) {
    spec.reduction = reduction;
    return run(spec, x);
  };
  EXPECT_EQ(reduced(format::FloatReduction_SUM), (std::vector<int32_t>{3, INT32_MAX - 1}));
  EXPECT_EQ(reduced(format::FloatReduction_PRODUCT), (std::vector<int32_t>{5, INT32_MIN}));
  EXPECT_EQ(reduced(format::FloatReduction_MAXIMUM), (std::vector<int32_t>{INT32_MAX, -1}));
  EXPECT_EQ(reduced(format::FloatReduction_MINIMUM), (std::vector<int32_t>{5, INT32_MIN}));
  // (2^32 + 3) / 3 and (-2^31 - 2) / 3, towards zero.
  EXPECT_EQ(reduced(format::FloatReduction_MEAN), (std::vector<int32_t>{1431655766, -715827883}));
}

TEST(IntReduce, MeansOfInt64Wrap) {
  IntReduceSpec spec;
  spec.input = {1, 2}, spec.output = {1}, spec.axes = 0b10, spec.reduction = format::FloatReduction_MEAN;
  EXPECT_EQ(run<int64_t>(spec, {INT64_MAX, INT64_MAX}), std::vector<int64_t>{-1});
  EXPECT_EQ(run<int64_t>(spec, {-8, 3}), std::vector<int64_t>{-2});
}

TEST(IntReduce, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<IntReduceSpec>> refusals = {
      // clang-format off
      {[](IntReduceSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 1; }; }, "input"},
      {[](IntReduceSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_bits = 64; }; }, "output"},
      {[](IntReduceSpec& s) { s.output = {2, 3}; }, "reduced along axes 2"},
      {[](IntReduceSpec& s) { s.axes = 0; }, "axes 0 names no axis"},
      {[](IntReduceSpec& s) { s.axes = 8; }, "axes 8 names no axis or one beyond the input's rank 3"},
      {[](IntReduceSpec& s) { s.reduction = static_cast<format::FloatReduction>(99); }, "reduction 99 is unknown", QPLAN_KERNEL_MISSING},
      // clang-format on
  };
  testing::expect_refusals(kIntReduceFamily, refusals);
}

}  // namespace
}  // namespace qplan::int_reduce_test
