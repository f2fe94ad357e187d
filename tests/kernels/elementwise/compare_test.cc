// compare and select against the formulas written out; cumulative_sum and top_k against plain loops; hostile
// steps of all four.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::compare_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

// ---- compare ----

struct CompareSpec {
  format::Comparison op = format::Comparison_LESS;
  Extents a = {2, 3}, b = {2, 3}, output = {2, 3};
  std::function<void(TestStep&)> tweak = {};

  template <typename T>
  TestStep make_of(const std::vector<T>& x, const std::vector<T>& y) const {
    TestStep step(kKernel_compare);
    step.input<T>(a, x);
    step.input<T>(b, y);
    step.output<uint8_t>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_CompareParams, format::CreateCompareParams(step.builder(), op).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<int16_t>(static_cast<size_t>(testing::num_elements(a))),
                   std::vector<int16_t>(static_cast<size_t>(testing::num_elements(b))));
  }
};

template <typename T>
bool holds(format::Comparison op, T a, T b) {
  return op == format::Comparison_LESS ? a < b : op == format::Comparison_EQUAL ? a == b : a <= b;
}

const KernelVariant& reference_of(const KernelFamily& family) {
  return family.variants[family.num_variants - 1];
}

template <typename T>
std::vector<T> few_values(Random& random, const Extents& shape) {
  std::vector<T> values(static_cast<size_t>(testing::num_elements(shape)));
  for (T& value : values) value = static_cast<T>(random.integer(0, 3));
  return values;
}

template <typename T>
void expect_comparisons() {
  for (uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const Extents shape = testing::random_shape(random, static_cast<size_t>(random.integer(0, 6)), 5);
    CompareSpec spec;
    spec.op = static_cast<format::Comparison>(random.integer(0, format::Comparison_MAX));
    spec.a = testing::random_broadcast_source(random, shape);
    spec.b = testing::random_broadcast_source(random, shape);
    spec.output = testing::broadcast_shape(spec.a, spec.b);
    const auto x = few_values<T>(random, spec.a), y = few_values<T>(random, spec.b);
    TestStep step = spec.make_of(x, y);
    if (!testing::run_step(step, kCompareFamily, reference_of(kCompareFamily), seed)) return;
    std::vector<uint8_t> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      expected.push_back(holds(spec.op, x[static_cast<size_t>(testing::broadcast_index(spec.a, at))],
                               y[static_cast<size_t>(testing::broadcast_index(spec.b, at))])
                             ? 1
                             : 0);
    });
    EXPECT_EQ(testing::output_values<uint8_t>(step), expected) << "seed " << seed;
  }
}

TEST(Compare, IsTheFormulaForEveryDtype) {
  expect_comparisons<uint8_t>();
  expect_comparisons<int8_t>();
  expect_comparisons<int16_t>();
  expect_comparisons<int32_t>();
  expect_comparisons<int64_t>();
  expect_comparisons<float>();
}

TEST(Compare, NothingHoldsOfANan) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (int op = 0; op <= format::Comparison_MAX; ++op) {
    CompareSpec spec;
    spec.op = static_cast<format::Comparison>(op);
    spec.a = spec.b = spec.output = {3};
    TestStep step = spec.make_of<float>({kNan, 1, kNan}, {1, kNan, kNan});
    ASSERT_TRUE(testing::run_step(step, kCompareFamily, reference_of(kCompareFamily), 1));
    EXPECT_EQ(testing::output_values<uint8_t>(step), (std::vector<uint8_t>{0, 0, 0})) << op;
  }
}

TEST(Compare, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<CompareSpec>> refusals = {
      // clang-format off
      {[](CompareSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 2"},
      {[](CompareSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_bits = 32; }; }, "input 2"},
      {[](CompareSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 0; }; }, "output"},
      {[](CompareSpec& s) { s.output = {3, 2}; }, "broadcast to"},
      {[](CompareSpec& s) { s.op = static_cast<format::Comparison>(9); }, "comparison 9", QPLAN_KERNEL_MISSING},
      // clang-format on
  };
  testing::expect_refusals(kCompareFamily, refusals);
}

// ---- select ----

struct SelectSpec {
  Extents condition = {2, 3}, a = {2, 3}, b = {2, 3}, output = {2, 3};
  std::function<void(TestStep&)> tweak = {};

  template <typename T>
  TestStep make_of(const std::vector<uint8_t>& c, const std::vector<T>& x, const std::vector<T>& y) const {
    TestStep step(kKernel_select);
    step.input<uint8_t>(condition, c);
    step.input<T>(a, x);
    step.input<T>(b, y);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_NoParams, format::CreateNoParams(step.builder()).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<uint8_t>(static_cast<size_t>(testing::num_elements(condition))),
                   std::vector<int16_t>(static_cast<size_t>(testing::num_elements(a))),
                   std::vector<int16_t>(static_cast<size_t>(testing::num_elements(b))));
  }
};

template <typename T>
void expect_choices() {
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const Extents shape = testing::random_shape(random, static_cast<size_t>(random.integer(0, 6)), 5);
    SelectSpec spec;
    spec.condition = testing::random_broadcast_source(random, shape);
    spec.a = testing::random_broadcast_source(random, shape);
    spec.b = testing::random_broadcast_source(random, shape);
    spec.output = testing::broadcast_shape(testing::broadcast_shape(spec.a, spec.b), spec.condition);
    const auto c = few_values<uint8_t>(random, spec.condition);
    std::vector<T> x(static_cast<size_t>(testing::num_elements(spec.a))),
        y(static_cast<size_t>(testing::num_elements(spec.b)));
    std::iota(x.begin(), x.end(), T{1});
    std::iota(y.begin(), y.end(), T{100});
    TestStep step = spec.make_of(c, x, y);
    if (!testing::run_step(step, kSelectFamily, reference_of(kSelectFamily), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      const bool first = c[static_cast<size_t>(testing::broadcast_index(spec.condition, at))] != 0;
      expected.push_back(first ? x[static_cast<size_t>(testing::broadcast_index(spec.a, at))]
                               : y[static_cast<size_t>(testing::broadcast_index(spec.b, at))]);
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
}

TEST(Select, ChoosesElementsOfEverySize) {
  expect_choices<uint8_t>();
  expect_choices<int16_t>();
  expect_choices<float>();
  expect_choices<int64_t>();
}

TEST(Select, GoesAcrossWorkItems) {
  SelectSpec spec;
  spec.condition = {1, 1700, 1};
  spec.a = {3, 1700, 2};
  spec.b = {2};
  spec.output = {3, 1700, 2};
  std::vector<uint8_t> c(1700);
  for (size_t i = 0; i < c.size(); ++i) c[i] = i % 3 == 0 ? 0 : 255;
  std::vector<int32_t> x(3 * 1700 * 2);
  std::iota(x.begin(), x.end(), 0);
  TestStep step = spec.make_of<int32_t>(c, x, {-1, -2});
  ASSERT_TRUE(testing::run_step(step, kSelectFamily, reference_of(kSelectFamily), 1));
  const std::vector<int32_t> found = testing::output_values<int32_t>(step);
  for (size_t i = 0; i < x.size(); ++i) {
    const int32_t expected = c[i / 2 % 1700] != 0 ? x[i] : -1 - static_cast<int32_t>(i % 2);
    ASSERT_EQ(found[i], expected) << i;
  }
}

TEST(Select, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<SelectSpec>> refusals = {
      // clang-format off
      {[](SelectSpec& s) { s.tweak = [](TestStep& t) { t.inputs().pop_back(); }; }, "expected 3"},
      {[](SelectSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "condition"},
      {[](SelectSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 1, t.tensor(2).type_bits = 8; }; }, "input 2"},
      {[](SelectSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).type_code = 1, t.tensor(3).type_bits = 8; }; }, "output"},
      {[](SelectSpec& s) { s.output = {3, 2}; }, "broadcast to"},
      {[](SelectSpec& s) { s.condition = s.a = s.b = {1, 1}; }, "broadcast to"},
      {[](SelectSpec& s) { s.output = {3}; }, "broadcast to"},
      // clang-format on
  };
  testing::expect_refusals(kSelectFamily, refusals);
}

// ---- cumulative_sum ----

struct SumSpec {
  Extents input = {2, 3, 4}, output = {2, 3, 4};
  uint32_t axis = 1;
  bool exclusive = false, reverse = false;
  std::function<void(TestStep&)> tweak = {};

  template <typename T>
  TestStep make_of(const std::vector<T>& x) const {
    TestStep step(kKernel_cumulative_sum);
    step.input<T>(input, x);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_CumulativeSumParams,
                format::CreateCumulativeSumParams(step.builder(), axis, exclusive, reverse).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<int32_t>(static_cast<size_t>(testing::num_elements(input))));
  }
};

TEST(CumulativeSum, AddsWhatCameBefore) {
  const std::vector<int32_t> x = {1, 2, 3, 4, 5, 6};
  const auto sums = [&](uint32_t axis, bool exclusive, bool reverse) {
    SumSpec spec;
    spec.input = spec.output = {2, 3};
    spec.axis = axis, spec.exclusive = exclusive, spec.reverse = reverse;
    TestStep step = spec.make_of(x);
    EXPECT_TRUE(testing::run_step(step, kCumulativeSumFamily, reference_of(kCumulativeSumFamily), 1));
    return testing::output_values<int32_t>(step);
  };
  using Values = std::vector<int32_t>;
  EXPECT_EQ(sums(1, false, false), (Values{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(sums(1, true, false), (Values{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(sums(1, false, true), (Values{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(sums(1, true, true), (Values{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(sums(0, false, false), (Values{1, 2, 3, 5, 7, 9}));
}

TEST(CumulativeSum, WrapsIntegersAndRoundsFloatsOneByOne) {
  SumSpec spec;
  spec.input = spec.output = {3};
  spec.axis = 0;
  TestStep integers = spec.make_of<int32_t>({INT32_MAX, 1, 1});
  ASSERT_TRUE(testing::run_step(integers, kCumulativeSumFamily, reference_of(kCumulativeSumFamily), 1));
  EXPECT_EQ(testing::output_values<int32_t>(integers),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN, INT32_MIN + 1}));
  TestStep floats = spec.make_of<float>({16777216.0f, 1.0f, 1.0f});
  ASSERT_TRUE(testing::run_step(floats, kCumulativeSumFamily, reference_of(kCumulativeSumFamily), 1));
  EXPECT_EQ(testing::output_values<float>(floats),
            (std::vector<float>{16777216.0f, 16777216.0f, 16777216.0f}));
}

TEST(CumulativeSum, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<SumSpec>> refusals = {
      // clang-format off
      {[](SumSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 1; }; }, "input"},
      {[](SumSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 2; }; }, "output"},
      {[](SumSpec& s) { s.output = {2, 4, 3}; }, "another shape"},
      {[](SumSpec& s) { s.axis = 3; }, "axis 3"},
      // clang-format on
  };
  testing::expect_refusals(kCumulativeSumFamily, refusals);
}

// ---- top_k ----

struct TopSpec {
  Extents input = {2, 5}, values = {2, 3}, indices = {2, 3};
  std::function<void(TestStep&)> tweak = {};

  template <typename T>
  TestStep make_of(const std::vector<T>& x) const {
    TestStep step(kKernel_top_k);
    step.input<T>(input, x);
    step.output<T>(values);
    step.output<int32_t>(indices);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_NoParams, format::CreateNoParams(step.builder()).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<int8_t>(static_cast<size_t>(testing::num_elements(input))));
  }
};

template <typename T>
void expect_tops() {
  for (uint64_t seed = 1; seed <= 40 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    const int64_t depth = random.integer(1, 20), k = random.integer(1, depth), rows = random.integer(1, 4);
    TopSpec spec;
    spec.input = {rows, depth};
    spec.values = spec.indices = {rows, k};
    const auto x = few_values<T>(random, spec.input);
    TestStep step = spec.make_of(x);
    if (!testing::run_step(step, kTopKFamily, reference_of(kTopKFamily), seed)) return;
    std::vector<T> values;
    std::vector<int32_t> indices;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> order(static_cast<size_t>(depth));
      std::iota(order.begin(), order.end(), 0);
      const auto at = [&](int32_t i) { return x[static_cast<size_t>(row * depth + i)]; };
      std::stable_sort(order.begin(), order.end(), [&](int32_t i, int32_t j) { return at(i) > at(j); });
      order.resize(static_cast<size_t>(k));
      for (const int32_t i : order) values.push_back(at(i)), indices.push_back(i);
    }
    EXPECT_EQ(testing::output_values<T>(step), values) << "seed " << seed;
    EXPECT_EQ(
        std::vector<int32_t>(step.output_data<int32_t>(1), step.output_data<int32_t>(1) + indices.size()),
        indices)
        << "seed " << seed;
  }
}

TEST(TopK, IsAStableSort) {
  expect_tops<uint8_t>();
  expect_tops<int8_t>();
  expect_tops<int16_t>();
  expect_tops<int32_t>();
  expect_tops<float>();
}

// The first k do not depend on k.
TEST(TopK, ANaNIsLessThanEveryNumber) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<int32_t> order = {5, 1, 3, 0, 2, 4};
  for (int64_t k = 1; k <= 6; ++k) {
    TopSpec spec;
    spec.input = {1, 6};
    spec.values = spec.indices = {1, k};
    TestStep step = spec.make_of(std::vector<float>{kNaN, 1, kNaN, -kInfinity, kNaN, 2});
    if (!testing::run_step(step, kTopKFamily, reference_of(kTopKFamily), 1)) return;
    EXPECT_EQ(std::vector<int32_t>(step.output_data<int32_t>(1), step.output_data<int32_t>(1) + k),
              std::vector<int32_t>(order.begin(), order.begin() + k));
  }
}

TEST(TopK, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<TopSpec>> refusals = {
      // clang-format off
      {[](TopSpec& s) { s.tweak = [](TestStep& t) { t.outputs().pop_back(); }; }, "expected"},
      {[](TopSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "values"},
      {[](TopSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 2; }; }, "indices"},
      {[](TopSpec& s) { s.values = s.indices = {2, 6}; }, "at most 5"},
      {[](TopSpec& s) { s.values = s.indices = {3, 3}; }, "at most 5"},
      {[](TopSpec& s) { s.indices = {2, 2}; }, "another shape"},
      // clang-format on
  };
  testing::expect_refusals(kTopKFamily, refusals);
}

}  // namespace
}  // namespace qplan::compare_test
