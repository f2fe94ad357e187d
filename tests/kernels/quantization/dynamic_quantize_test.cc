// dynamic_quantize and dynamic_dequantize: every variant against the formulas of the page, written out with
// the standard library's rounding.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/quantization/quantization.h"
#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::dynamic_quantize_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct QuantizeSpec {
  Extents input = {2, 3, 4, 5}, output = {2, 6, 6, 5};
  int64_t scales = 2, zero_points = 2;
  uint32_t rows = 1, pad_top = 1, pad_left = 2;
  bool symmetric = false;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x) const {
    TestStep step(kKernel_dynamic_quantize);
    step.input<float>(input, x);
    step.output<int8_t>(output);
    step.output<float>({scales});
    step.output<int32_t>({zero_points});
    if (tweak) tweak(step);
    step.finish(
        format::KernelParams_DynamicQuantizeParams,
        format::CreateDynamicQuantizeParams(step.builder(), rows, symmetric, pad_top, pad_left).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(input))));
  }
};

// One row, as TFLite's SymmetricQuantizeFloats and AsymmetricQuantizeFloats define it.
struct Row {
  std::vector<int8_t> values;
  float scale = 1;
  int32_t zero_point = 0;
};
Row quantized(const std::vector<float>& x, bool symmetric) {
  Row row;
  double least = 0, most = 0;
  for (const float value : x) {
    least = std::min(least, static_cast<double>(value));
    most = std::max(most, static_cast<double>(value));
  }
  row.values.resize(x.size());
  if (least == most) return row;
  float inverse = 0;
  if (symmetric) {
    const auto range = static_cast<float>(std::max(-least, most));
    row.scale = range / 127;
    inverse = 127 / range;
  } else {
    const double step = (most - least) / 255.0;
    const double from_least = -128.0 - least / step, from_most = 127.0 - most / step;
    const double error_least = 128.0 + std::fabs(least / step), error_most = 127.0 + std::fabs(most / step);
    const double real = error_least < error_most ? from_least : from_most;
    row.zero_point = static_cast<int32_t>(std::round(std::min(std::max(real, -128.0), 127.0)));
    row.scale = static_cast<float>(step);
    inverse = 1.0f / row.scale;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const volatile float product = x[i] * inverse;
    const float real = static_cast<float>(row.zero_point) + product;
    const float whole = std::round(real);
    row.values[i] = static_cast<int8_t>(std::min(std::max(whole, symmetric ? -127.0f : -128.0f), 127.0f));
  }
  return row;
}

class DynamicQuantizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  void expect_exact(const QuantizeSpec& spec, uint64_t seed, float from, float to) {
    Random random(seed);
    std::vector<float> x(static_cast<size_t>(testing::num_elements(spec.input)));
    for (float& value : x) value = from + (to - from) * static_cast<float>(random.unit());
    TestStep step = spec.make_of(x);
    ASSERT_TRUE(testing::run_step(step, kDynamicQuantizeFamily, *GetParam(), seed));
    const auto found = testing::output_values<int8_t>(step);
    const auto scales = testing::output_values<float>(step, 1);
    const auto zero_points = testing::output_values<int32_t>(step, 2);
    const size_t rows = scales.size(), per_row = x.size() / rows;
    std::vector<Row> expected;
    for (size_t r = 0; r < rows; ++r) {
      const auto begin = x.begin() + static_cast<ptrdiff_t>(r * per_row);
      expected.push_back(quantized({begin, begin + static_cast<ptrdiff_t>(per_row)}, spec.symmetric));
      EXPECT_EQ(scales[r], expected[r].scale) << "seed " << seed;
      EXPECT_EQ(zero_points[r], expected[r].zero_point) << "seed " << seed;
    }
    if (spec.input == spec.output) {
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(found[i], expected[i / per_row].values[i % per_row])
            << "seed " << seed << ", element " << i;
      return;
    }
    size_t i = 0;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      const int64_t y = at[1] - spec.pad_top, column = at[2] - spec.pad_left;
      const bool inside = y >= 0 && column >= 0 && y < spec.input[1] && column < spec.input[2];
      const Row& row = expected[static_cast<size_t>(at[0])];
      const int64_t from_index = (y * spec.input[2] + column) * spec.input[3] + at[3];
      const int8_t value =
          inside ? row.values[static_cast<size_t>(from_index)] : static_cast<int8_t>(row.zero_point);
      EXPECT_EQ(found[i++], value) << "seed " << seed;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(All, DynamicQuantizeVariant,
                         ::testing::ValuesIn(testing::variants_of(kDynamicQuantizeFamily)),
                         testing::variant_test_name);

TEST_P(DynamicQuantizeVariant, IsTfLitesForRowsOfAllRanges) {
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    Random random(seed);
    QuantizeSpec s;
    s.input = s.output = {random.integer(1, 4), random.integer(1, 150)};
    s.scales = s.zero_points = s.input[0];
    s.pad_top = s.pad_left = 0;
    s.symmetric = random.chance(0.5);
    const auto a = static_cast<float>(random.unit() * 8 - 4), b = static_cast<float>(random.unit() * 8 - 4);
    expect_exact(s, seed, std::min(a, b), std::max(a, b));
    expect_exact(s, seed, a, a);  // one value
    expect_exact(s, seed, 0.0f, 0.0f);
  }
}

TEST_P(DynamicQuantizeVariant, PadsImagesWithTheirZeroPoints) {
  QuantizeSpec s;
  expect_exact(s, 1, -1.0f, 3.0f);
  s.symmetric = true;
  expect_exact(s, 2, -1.0f, 3.0f);
}

TEST_P(DynamicQuantizeVariant, PassesOverNanAndHoldsInfinity) {
  QuantizeSpec s;
  s.input = s.output = {1, 20};
  s.scales = s.zero_points = 1;
  s.pad_top = s.pad_left = 0;
  std::vector<float> x(20, 1.0f);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[17] = -1.0f;
  TestStep step = s.make_of(x);
  ASSERT_TRUE(testing::run_step(step, kDynamicQuantizeFamily, *GetParam(), 1));
  EXPECT_EQ(testing::output_values<int8_t>(step)[3], 0);
  EXPECT_EQ(testing::output_values<float>(step, 1)[0], static_cast<float>(2.0 / 255.0));
  x[3] = kInfinity;
  TestStep infinite = s.make_of(x);
  ASSERT_TRUE(testing::run_step(infinite, kDynamicQuantizeFamily, *GetParam(), 1));
  EXPECT_EQ(testing::output_values<float>(infinite, 1)[0], kInfinity);
}

TEST(DynamicQuantize, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<QuantizeSpec>> refusals = {
      // clang-format off
      {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
      {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
      {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 0; }; }, "scale"},
      {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).type_code = 2; }; }, "zero point"},
      {[](QuantizeSpec& s) { s.scales = 3; }, "has not 2 entries"},
      {[](QuantizeSpec& s) { s.zero_points = 1; }, "has not 2 entries"},
      {[](QuantizeSpec& s) { s.rows = 5; }, "rows"},
      {[](QuantizeSpec& s) { s.rows = 2; s.scales = s.zero_points = 6; }, "rank 4"},
      {[](QuantizeSpec& s) { s.output = {2, 6, 6, 4}; }, "another axis"},
      {[](QuantizeSpec& s) { s.pad_top = 4; }, "smaller than the input"},
      {[](QuantizeSpec& s) { s.pad_left = 0xffffffffu; }, "smaller than the input"},
      // clang-format on
  };
  testing::expect_refusals(kDynamicQuantizeFamily, refusals);
}

// ---- back to floats ----

struct DequantizeSpec {
  Extents input = {2, 3, 5}, output = {2, 3, 5};
  int64_t scales = 2, zero_points = 2, channels = 5;
  uint32_t rows = 1;
  bool in_turn = false;
  float clamp_min = -kInfinity, clamp_max = kInfinity;
  std::function<void(TestStep&)> tweak = {};

  struct Data {
    std::vector<int32_t> x, zero_point, weight_sum;
    std::vector<float> scale, weight_scale, bias;
  };
  Data data(Random& random) const {
    Data d;
    d.x = random.integers<int32_t>(static_cast<size_t>(testing::num_elements(input)), -2000000, 2000000);
    d.x[0] = INT32_MIN;
    d.zero_point = random.integers<int32_t>(static_cast<size_t>(zero_points), -128, 127);
    d.weight_sum = random.integers<int32_t>(static_cast<size_t>(channels), -40000, 40000);
    d.scale = testing::random_floats(random, static_cast<size_t>(scales));
    d.weight_scale = testing::random_floats(random, static_cast<size_t>(channels));
    d.bias = testing::random_floats(random, static_cast<size_t>(channels));
    return d;
  }
  TestStep make_of(const Data& d) const {
    TestStep step(kKernel_dynamic_dequantize);
    step.input<int32_t>(input, d.x);
    step.input<float>({scales}, d.scale);
    step.input<int32_t>({zero_points}, d.zero_point);
    step.constant<float>({channels}, d.weight_scale);
    step.constant<int32_t>({channels}, d.weight_sum);
    step.constant<float>({channels}, d.bias);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(
        format::KernelParams_DynamicDequantizeParams,
        format::CreateDynamicDequantizeParams(step.builder(), rows, in_turn, clamp_min, clamp_max).Union());
    return step;
  }
  void make(TestStep& step) const {
    Random random(1);
    step = make_of(data(random));
  }
  std::vector<float> expected(const Data& d) const {
    std::vector<float> out;
    const size_t per_row = d.x.size() / d.scale.size();
    for (size_t i = 0; i < d.x.size(); ++i) {
      const size_t r = i / per_row, o = i % d.bias.size();
      const int64_t exact = int64_t{d.x[i]} - int64_t{d.zero_point[r]} * d.weight_sum[o];
      const volatile auto real = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(exact)));
      const volatile float product = d.weight_scale[o] * d.scale[r];
      const volatile float first = real * d.weight_scale[o];
      const volatile float value = in_turn ? first * d.scale[r] : real * product;
      const float sum = value + d.bias[o];
      out.push_back(sum < clamp_min ? clamp_min : sum > clamp_max ? clamp_max : sum);
    }
    return out;
  }
};

class DynamicDequantizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, DynamicDequantizeVariant,
                         ::testing::ValuesIn(testing::variants_of(kDynamicDequantizeFamily)),
                         testing::variant_test_name);

TEST_P(DynamicDequantizeVariant, TakesOffZeroPointsAndScalesInTheStatedOrder) {
  for (uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    Random random(seed);
    DequantizeSpec s;
    s.channels = random.integer(1, 40);
    s.input = s.output = {random.integer(1, 3), random.integer(1, 4), s.channels};
    s.rows = static_cast<uint32_t>(random.integer(0, 2));
    s.scales = s.zero_points = s.rows == 0 ? 1 : s.rows == 1 ? s.input[0] : s.input[0] * s.input[1];
    s.in_turn = random.chance(0.5);
    if (random.chance(0.5)) s.clamp_min = 0.0f;
    const auto data = s.data(random);
    TestStep step = s.make_of(data);
    ASSERT_TRUE(testing::run_step(step, kDynamicDequantizeFamily, *GetParam(), seed));
    testing::expect_same_floats(testing::output_values<float>(step), s.expected(data),
                                "seed " + std::to_string(seed));
  }
}

TEST(DynamicDequantize, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<DequantizeSpec>> refusals = {
      // clang-format off
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().pop_back(); }; }, "expected 6"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "scale"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 2; }; }, "zero point"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).bank = TestStep::kArenaBank; }; }, "weight scale"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(4).size -= 4; }; }, "weight sum"},
      {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(5).type_code = 0; }; }, "bias"},
      {[](DequantizeSpec& s) { s.output = {2, 5, 3}; }, "another shape"},
      {[](DequantizeSpec& s) { s.rows = 4; }, "rows"},
      {[](DequantizeSpec& s) { s.rows = 3; }, "no axis for the channels"},
      {[](DequantizeSpec& s) { s.scales = 1; }, "has not 2 entries"},
      {[](DequantizeSpec& s) { s.zero_points = 3; }, "has not 2 entries"},
      {[](DequantizeSpec& s) { s.clamp_max = -kInfinity; s.clamp_min = 0.0f; }, "clamp_min"},
      // clang-format on
  };
  testing::expect_refusals(kDynamicDequantizeFamily, refusals);
}

}  // namespace
}  // namespace qplan::dynamic_quantize_test
