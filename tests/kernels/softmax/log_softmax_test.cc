// log_softmax against the logarithm in double, and steps that its bind refuses. The exact bytes are in
// tests/models/tflite_operator_test.cc.
#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/numeric/fixed_point.h"
#include "src/runtime/bind/family.h"
#include "tests/support/random.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"
#include "tests/support/test_step.h"

namespace qplan::log_softmax_test {
namespace {

using testing::Refusal;
using testing::TestStep;

// 2^-26 is the unit of the result.
TEST(FixedLog, IsNearTheRealLogarithmOverItsWholeRange) {
  double worst = 0;
  for (int64_t a = 1 << 19; a <= INT32_MAX; a += a / 4096 + 1) {
    const int32_t log = fixed_log(static_cast<int32_t>(a));
    ASSERT_GE(log, 0) << a;
    worst = std::max(worst, std::fabs(log * 0x1p-26 - std::log(static_cast<double>(a) * 0x1p-19)));
  }
  EXPECT_LT(worst, 0x1p-24);
  EXPECT_EQ(fixed_log(1 << 19), 0);
}

// A scale of 1/16: in units of 2^-26 that is 2^22 = 2^-1 * 2^23, whose inverse is 2^-22 = 2^-1 * 2^-21.
struct LogSoftmax {
  std::vector<int64_t> input = {2, 3}, output = {2, 3};
  int32_t multiplier = 1 << 30, shift = 23, diff_min = -248, reverse_multiplier = 1 << 30,
          reverse_shift = -21;
  int8_t fill = -128;

  void make(TestStep& step) const { make_of(step, std::vector<int8_t>(testing::elements_of(input), fill)); }
  template <typename T>
  void make_of(TestStep& step, const std::vector<T>& x) const {
    step.input<T>(input, x);
    step.output<T>(output);
    step.finish(format::KernelParams_LogSoftmaxParams,
                format::CreateLogSoftmaxParams(step.builder(), multiplier, shift, diff_min,
                                               reverse_multiplier, reverse_shift)
                    .Union());
  }
};

template <typename T>
void expect_textbook(int64_t depth, uint64_t seed) {
  testing::Random random(seed);
  constexpr int32_t kLowest = std::numeric_limits<T>::min(), kHighest = std::numeric_limits<T>::max();
  std::vector<T> x(static_cast<size_t>(depth));
  for (T& value : x) value = static_cast<T>(random.integer(kLowest, kHighest));
  LogSoftmax spec;
  spec.input = spec.output = {1, depth};
  TestStep step(kKernel_log_softmax);
  spec.make_of(step, x);
  const std::vector<T> found = testing::run_reference<T>(step, kLogSoftmaxFamily);

  const int32_t most = *std::ranges::max_element(x);
  double sum = 0;
  for (const T value : x) sum += std::exp((value - most) / 16.0);
  for (size_t i = 0; i < x.size(); ++i) {
    const double real = std::max((x[i] - most) / 16.0 - std::log(sum), -255 / 16.0);
    ASSERT_NEAR((found[i] - kHighest) / 16.0, real, 0.5 / 16 + 1e-6)
        << "depth " << depth << ", seed " << seed << ", element " << i;
  }
}

TEST(LogSoftmax, IsNearTheTextbook) {
  for (const int64_t depth : {1, 2, 10, 300}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      expect_textbook<int8_t>(depth, seed);
      expect_textbook<uint8_t>(depth, seed);
    }
  }
}

TEST(LogSoftmax, SumsOfManyEqualElementsAreHeldWithinTheirRange) {
  LogSoftmax spec;
  spec.input = spec.output = {5000};
  TestStep step(kKernel_log_softmax);
  spec.make(step);
  // log(4096) = 8.318 is 133 sixteenths; 5000 elements would be 136.
  EXPECT_EQ(testing::run_reference<int8_t>(step, kLogSoftmaxFamily),
            std::vector<int8_t>(5000, static_cast<int8_t>(127 - 133)));
}

TEST(LogSoftmax, StepsThatCouldOverflowAreRefused) {
  testing::expect_refusals(kLogSoftmaxFamily,
                           std::vector<Refusal<LogSoftmax>>{
                               {[](LogSoftmax& s) {
                                  s.output = {3, 2};
                                },
                                "another shape"},
                               {[](LogSoftmax& s) { s.input = s.output = {}; }, "scalar"},
                               {[](LogSoftmax& s) { s.multiplier = -1; }, "input_multiplier -1"},
                               {[](LogSoftmax& s) { s.shift = 32; }, "input_left_shift 32"},
                               {[](LogSoftmax& s) { s.shift = -1; }, "input_left_shift -1"},
                               {[](LogSoftmax& s) { s.diff_min = 1; }, "diff_min 1"},
                               {[](LogSoftmax& s) { s.diff_min = -249; }, "diff_min -249"},
                               {[](LogSoftmax& s) { s.reverse_multiplier = -1; }, "reverse_multiplier -1"},
                               {[](LogSoftmax& s) { s.reverse_shift = 1; }, "reverse_shift 1"},
                               {[](LogSoftmax& s) { s.reverse_shift = -32; }, "reverse_shift -32"},
                           });
}

TEST(LogSoftmax, EndsOfEveryRangeCompute) {
  for (const int32_t multiplier : {0, INT32_MAX}) {
    for (const int32_t shift : {0, 8, 23, 31}) {
      for (const int32_t reverse_shift : {0, -31}) {
        LogSoftmax spec;
        spec.multiplier = spec.reverse_multiplier = multiplier;
        spec.shift = shift, spec.reverse_shift = reverse_shift;
        spec.diff_min = static_cast<int32_t>(-((int64_t{31} << 26) >> shift));
        TestStep step(kKernel_log_softmax);
        spec.make_of(step, std::vector<int8_t>{-128, 127, 0, 127, -128, -1});
        const std::vector<int8_t> found = testing::run_reference<int8_t>(step, kLogSoftmaxFamily);
        ASSERT_EQ(found.size(), 6u);
      }
    }
  }
}

}  // namespace
}  // namespace qplan::log_softmax_test
