// Every variant of resize_bilinear: the integer rule exactly in rationals, the float rule against its own
// statement in float32, both near the real interpolation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::resize_bilinear_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct ResizeSpec {
  Extents input = {1, 2, 2, 1};
  Extents output = {1, 3, 3, 1};
  format::ResizeRule rule = format::ResizeRule_TFL_INTEGER;
  bool align_corners = false;
  bool half_pixel_centers = false;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_resize_bilinear);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(
        format::KernelParams_ResizeBilinearParams,
        format::CreateResizeBilinearParams(step.builder(), rule, align_corners, half_pixel_centers).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

// The position of output o, in elements of the input.
double real_position(const ResizeSpec& spec, int axis, int64_t o) {
  const double in = static_cast<double>(spec.input[axis]);
  const double out = static_cast<double>(spec.output[axis]);
  const double scale = spec.align_corners && out > 1 ? (in - 1) / (out - 1) : in / out;
  return spec.half_pixel_centers ? (static_cast<double>(o) + 0.5) * scale - 0.5
                                 : static_cast<double>(o) * scale;
}

// Weights of the input's elements at that position; the border goes on outside.
std::vector<std::pair<int64_t, double>> taps(const ResizeSpec& spec, int axis, double position) {
  const int64_t last = spec.input[axis] - 1;
  const double floor = std::floor(position);
  const double fraction = position - floor;
  const auto inside = [&](double at) { return std::clamp(static_cast<int64_t>(at), int64_t{0}, last); };
  return {{inside(floor), 1 - fraction}, {inside(floor + 1), fraction}};
}

template <typename T>
double interpolated(const ResizeSpec& spec, const std::vector<T>& x, const Extents& at, double y, double w) {
  double sum = 0;
  for (const auto& [row, row_weight] : taps(spec, 1, y)) {
    for (const auto& [column, column_weight] : taps(spec, 2, w)) {
      sum +=
          row_weight * column_weight * x[testing::broadcast_index(spec.input, {at[0], row, column, at[3]})];
    }
  }
  return sum;
}

// The position of the integer rule, in 1/1024.
int64_t integer_position(const ResizeSpec& spec, int axis, int64_t o) {
  const int64_t in = spec.input[axis];
  const int64_t out = spec.output[axis];
  const bool corners = spec.align_corners && out > 1;
  const int64_t scale = corners ? (1024 * (in - 1) + (out - 1) / 2) / (out - 1) : (1024 * in + out / 2) / out;
  return spec.half_pixel_centers ? o * scale + scale / 2 - 512 : o * scale;
}

// Positions are multiples of 1/1024, so that doubles hold everything exactly.
template <typename T>
T exact_integer(const ResizeSpec& spec, const std::vector<T>& x, const Extents& at) {
  const double y = static_cast<double>(integer_position(spec, 1, at[1])) / 1024;
  const double w = static_cast<double>(integer_position(spec, 2, at[2])) / 1024;
  return static_cast<T>(std::round(interpolated(spec, x, at, y, w)));
}

// The float rule with the operations in the order that the header gives.
uint8_t exact_float(const ResizeSpec& spec, const std::vector<uint8_t>& x, const Extents& at) {
  float distance[3];
  int64_t lower[3];
  int64_t upper[3];
  for (int axis = 1; axis <= 2; ++axis) {
    const float in = static_cast<float>(spec.input[axis]);
    const float out = static_cast<float>(spec.output[axis]);
    const float o = static_cast<float>(at[axis]);
    const float scale = spec.align_corners && out > 1 ? (in - 1) / (out - 1) : in / out;
    volatile float position = o * scale;
    if (spec.half_pixel_centers) {
      position = (o + 0.5f) * scale;
      position = position - 0.5f;
    }
    lower[axis] = std::max<int64_t>(static_cast<int64_t>(std::floor(position)), 0);
    upper[axis] = std::min<int64_t>(static_cast<int64_t>(std::ceil(position)), spec.input[axis] - 1);
    distance[axis] = position - static_cast<float>(lower[axis]);
  }
  const auto value = [&](int64_t row, int64_t column) {
    return static_cast<float>(x[testing::broadcast_index(spec.input, {at[0], row, column, at[3]})]);
  };
  const float dy = distance[1];
  const float dx = distance[2];
  float sum = value(lower[1], lower[2]) * (1 - dy) * (1 - dx);
  sum += value(upper[1], lower[2]) * dy * (1 - dx);
  sum += value(lower[1], upper[2]) * (1 - dy) * dx;
  sum += value(upper[1], upper[2]) * dy * dx;
  return static_cast<uint8_t>(sum + 0.5f);
}

class ResizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(ResizeSpec spec, format::ResizeRule rule, uint64_t seed) {
    Random random(seed);
    spec.rule = rule;
    const auto x = random.full_range<T>(testing::num_elements(spec.input));
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kResizeBilinearFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      if constexpr (std::is_same_v<T, uint8_t>) {
        if (rule == format::ResizeRule_TFL_FLOAT) {
          expected.push_back(exact_float(spec, x, at));
          const double real =
              interpolated(spec, x, at, real_position(spec, 1, at[1]), real_position(spec, 2, at[2]));
          EXPECT_NEAR(expected.back(), real, 0.51) << "seed " << seed;
          return;
        }
      }
      expected.push_back(exact_integer(spec, x, at));
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }

  void expect_exact_of_all_rules(ResizeSpec spec, uint64_t seed) {
    for (int mode = 0; mode < 3; ++mode) {
      spec.align_corners = mode == 1;
      spec.half_pixel_centers = mode == 2;
      expect_exact<uint8_t>(spec, format::ResizeRule_TFL_FLOAT, seed);
      expect_exact<uint8_t>(spec, format::ResizeRule_TFL_INTEGER, seed);
      expect_exact<int8_t>(spec, format::ResizeRule_TFL_INTEGER, seed);
      expect_exact<int16_t>(spec, format::ResizeRule_TFL_INTEGER, seed);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, ResizeVariant, ::testing::ValuesIn(testing::variants_of(kResizeBilinearFamily)),
                         testing::variant_test_name);

TEST_P(ResizeVariant, FollowsBothRulesForRandomExtents) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(seed);
    ResizeSpec spec;
    spec.input = {random.integer(1, 2), random.integer(1, 12), random.integer(1, 12), random.integer(1, 20)};
    spec.output = {spec.input[0], random.integer(1, 20), random.integer(1, 20), spec.input[3]};
    expect_exact_of_all_rules(spec, seed);
  }
}

TEST_P(ResizeVariant, EnlargesAndShrinksALot) {
  ResizeSpec spec;
  spec.input = {1, 1, 33, 2};
  spec.output = {1, 1, 513, 2};
  expect_exact_of_all_rules(spec, 1);
  std::swap(spec.input, spec.output);
  expect_exact_of_all_rules(spec, 2);
  spec.input = {1, 1, 1, 5};
  spec.output = {1, 33, 33, 5};
  expect_exact_of_all_rules(spec, 3);
}

// Factors at which outputs are between sixteenths, channels around vector widths.
TEST_P(ResizeVariant, EnlargesByPowersOfTwo) {
  uint64_t seed = 0;
  for (const int64_t channels : {1, 15, 17, 21, 33}) {
    for (const int64_t factor : {1, 2, 8, 16}) {
      ResizeSpec spec;
      spec.input = {1, 2, 3, channels};
      spec.output = {1, 2 * factor, 3 * factor, channels};
      expect_exact_of_all_rules(spec, ++seed);
      spec.output = {1, factor + 1, 2 * factor + 1, channels};
      expect_exact_of_all_rules(spec, ++seed);
    }
  }
}

// The rounded scale of the integer rule can lead to positions after the last element: 512 * 4 / 1024 = 2.
TEST_P(ResizeVariant, StaysInsideTheInputWhereTheRoundedScaleLeadsBeyond) {
  for (const int64_t out : {513, 2000, 4097}) {
    ResizeSpec spec;
    spec.input = {1, 1, 2, 1};
    spec.output = {1, 1, out, 1};
    expect_exact<int8_t>(spec, format::ResizeRule_TFL_INTEGER, static_cast<uint64_t>(out));
    std::swap(spec.input[1], spec.input[2]);
    std::swap(spec.output[1], spec.output[2]);
    expect_exact<int8_t>(spec, format::ResizeRule_TFL_INTEGER, static_cast<uint64_t>(out));
  }
}

TEST(ResizeBilinear, ValuesByHand) {
  ResizeSpec spec;
  spec.input = {1, 1, 2, 1};
  spec.output = {1, 1, 4, 1};
  const KernelVariant& reference = kResizeBilinearFamilyReference.variants[0];
  TestStep plain = spec.make_of<int8_t>({-100, 100});
  ASSERT_TRUE(testing::run_step(plain, kResizeBilinearFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<int8_t>(plain), (std::vector<int8_t>{-100, 0, 100, 100}));
  spec.half_pixel_centers = true;
  TestStep half_pixel = spec.make_of<int8_t>({-100, 100});
  ASSERT_TRUE(testing::run_step(half_pixel, kResizeBilinearFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<int8_t>(half_pixel), (std::vector<int8_t>{-100, -50, 50, 100}));
  spec.half_pixel_centers = false;
  spec.align_corners = true;
  spec.rule = format::ResizeRule_TFL_FLOAT;
  TestStep corners = spec.make_of<uint8_t>({0, 255});
  ASSERT_TRUE(testing::run_step(corners, kResizeBilinearFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<uint8_t>(corners), (std::vector<uint8_t>{0, 85, 170, 255}));
}

TEST(ResizeBilinear, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<ResizeSpec>(kResizeBilinearFamily, {
    {[](ResizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](ResizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input"},
    {[](ResizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](ResizeSpec& s) { s.rule = format::ResizeRule_TFL_FLOAT; }, "input has int8"},
    {[](ResizeSpec& s) { s.rule = static_cast<format::ResizeRule>(2); }, "rule 2", QPLAN_KERNEL_MISSING},
    {[](ResizeSpec& s) { s.align_corners = s.half_pixel_centers = true; }, "exclude"},
    {[](ResizeSpec& s) { s.input = {2, 2, 1}; }, "rank"},
    {[](ResizeSpec& s) { s.output = {2, 3, 3, 1}; }, "batch"},
    {[](ResizeSpec& s) { s.output = {1, 3, 3, 2}; }, "channels"},
    {[](ResizeSpec& s) { s.output = {1, 1, (1 << 20) + 1, 1}; }, "output width"},
    {[](ResizeSpec& s) { s.output = {1, (1 << 20) + 1, 1, 1}; }, "output height"},
    {[](ResizeSpec& s) { s.input = {1, 1, (1 << 20) + 1, 1}; }, "input width"},
    {[](ResizeSpec& s) { s.input = {1, (1 << 20) + 1, 1, 1}; }, "input height"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::resize_bilinear_test
