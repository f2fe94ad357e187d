// Every variant of quantize against rounding by definition.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "kernels/quantization/quantization.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::quantize_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct QuantizeSpec {
  Extents input = {2, 3};
  Extents output = {2, 3};
  format::QuantizeRule rule = format::QuantizeRule_DIV_AWAY;
  float scale = 0.5f;
  int32_t zero_point = 0;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<float>& values) const {
    TestStep step(kKernel_quantize);
    step.input<float>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_QuantizeParams,
                format::CreateQuantizeParams(step.builder(), rule, scale, zero_point).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<float>(testing::num_elements(input)));
  }
};

const format::QuantizeRule kRules[] = {format::QuantizeRule_DIV_AWAY, format::QuantizeRule_DIV_EVEN,
                                       format::QuantizeRule_MUL_EVEN};

// std::round rounds halves away from zero, std::nearbyint to even.
template <typename T>
T exact(const QuantizeSpec& spec, float x) {
  const float inverse = 1.0f / spec.scale;
  const float real = spec.rule == format::QuantizeRule_MUL_EVEN ? x * inverse : x / spec.scale;
  if (std::isnan(real)) return static_cast<T>(spec.zero_point);
  const double rounded = spec.rule == format::QuantizeRule_DIV_AWAY
                             ? std::round(static_cast<double>(real))
                             : std::nearbyint(static_cast<double>(real));
  const double value = rounded + spec.zero_point;
  const double lo = std::numeric_limits<T>::min();
  const double hi = std::numeric_limits<T>::max();
  return static_cast<T>(value < lo ? lo : value > hi ? hi : value);
}

class QuantizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(QuantizeSpec spec, const std::vector<float>& x, uint64_t seed) {
    spec.input = spec.output = {static_cast<int64_t>(x.size())};
    for (const format::QuantizeRule rule : kRules) {
      spec.rule = rule;
      TestStep step = spec.make_of<T>(x);
      if (!testing::run_step(step, kQuantizeFamily, *GetParam(), seed)) continue;
      std::vector<T> expected;
      for (const float value : x) expected.push_back(exact<T>(spec, value));
      EXPECT_EQ(testing::output_values<T>(step), expected)
          << "rule " << rule << " scale " << spec.scale << " zero point " << spec.zero_point << " seed "
          << seed;
    }
  }

  void expect_exact_of_both_dtypes(QuantizeSpec spec, const std::vector<float>& x, uint64_t seed) {
    expect_exact<int8_t>(spec, x, seed);
    spec.zero_point += 128;
    expect_exact<uint8_t>(spec, x, seed);
  }
};

INSTANTIATE_TEST_SUITE_P(All, QuantizeVariant, ::testing::ValuesIn(testing::variants_of(kQuantizeFamily)),
                         testing::variant_test_name);

TEST_P(QuantizeVariant, RoundsRandomValues) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(seed);
    QuantizeSpec spec;
    spec.scale = static_cast<float>(std::exp2(-12 + 16 * random.unit()));
    spec.zero_point = static_cast<int32_t>(random.integer(-128, 127));
    std::vector<float> x(random.integer(1, 200));
    for (float& value : x) value = static_cast<float>((random.unit() - 0.5) * 600 * spec.scale);
    expect_exact_of_both_dtypes(spec, x, seed);
  }
}

TEST_P(QuantizeVariant, RoundsTiesAndTheirNeighbours) {
  QuantizeSpec spec;
  spec.scale = 0.25f;
  std::vector<float> x;
  for (int32_t half = -600; half <= 600; ++half) {
    const float tie = static_cast<float>(half) * 0.125f;
    for (const float value : {tie, std::nextafter(tie, -INFINITY), std::nextafter(tie, INFINITY)}) {
      x.push_back(value);
    }
  }
  for (const int32_t zero_point : {-128, -3, 0, 127}) {
    spec.zero_point = zero_point;
    expect_exact_of_both_dtypes(spec, x, 1);
  }
}

TEST_P(QuantizeVariant, IsDefinedForEveryFloat) {
  const std::vector<float> x = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN,   -NAN,       FLT_MAX, -FLT_MAX,
                                FLT_MIN, -FLT_MIN, 1e-45f,   2.2e9f,    -3e9f, 8388609.0f, 1024.5f, -1024.5f};
  for (const float scale : {1.0f, FLT_MIN, 1e-45f, FLT_MAX, 0.3f}) {
    QuantizeSpec spec;
    spec.scale = scale;
    spec.zero_point = 5;
    expect_exact_of_both_dtypes(spec, x, 1);
  }
}

// Channels in planes become channels side by side: all counts of channels that kernels treat apart, numbers
// of pixels that do not fill their last block, several work items.
TEST_P(QuantizeVariant, MovesChannelsLast) {
  uint64_t seed = 0;
  for (const int64_t channels : {1, 2, 3, 4, 5, 21}) {
    for (const Extents& pixels :
         std::vector<Extents>{{1}, {2}, {15}, {64}, {67}, {3, 11}, {33, 65}, {7, 2, 3}}) {
      for (const int64_t images : {1, 3}) {
        Random random(++seed);
        QuantizeSpec spec;
        spec.scale = 0.375f;
        spec.zero_point = -3;
        spec.input = {images, channels};
        spec.output = {images};
        int64_t count = 1;
        for (const int64_t extent : pixels) {
          spec.input.push_back(extent);
          spec.output.push_back(extent);
          count *= extent;
        }
        spec.output.push_back(channels);
        if (spec.input == spec.output && channels > 1) continue;  // equal shapes: nothing moves
        std::vector<float> x(static_cast<size_t>(images * channels * count));
        for (float& value : x) value = static_cast<float>((random.unit() - 0.5) * 120);
        for (const format::QuantizeRule rule : kRules) {
          spec.rule = rule;
          TestStep step = spec.make_of<int8_t>(x);
          if (!testing::run_step(step, kQuantizeFamily, *GetParam(), seed)) continue;
          std::vector<int8_t> expected;
          for (int64_t n = 0; n < images; ++n) {
            for (int64_t p = 0; p < count; ++p) {
              for (int64_t c = 0; c < channels; ++c) {
                expected.push_back(
                    exact<int8_t>(spec, x[static_cast<size_t>((n * channels + c) * count + p)]));
              }
            }
          }
          ASSERT_EQ(testing::output_values<int8_t>(step), expected)
              << images << " images of " << channels << " channels, " << count << " pixels, rule " << rule;
        }
      }
    }
  }
}

TEST(Quantize, ValuesByHand) {
  QuantizeSpec spec;
  spec.zero_point = 10;
  const KernelVariant& reference = kQuantizeFamilyReference.variants[0];
  TestStep away = spec.make_of<uint8_t>({0.25f, -0.25f, 0.75f, 100.0f, 1000.0f, -1000.0f});
  ASSERT_TRUE(testing::run_step(away, kQuantizeFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<uint8_t>(away), (std::vector<uint8_t>{11, 9, 12, 210, 255, 0}));
  spec.rule = format::QuantizeRule_DIV_EVEN;
  TestStep even = spec.make_of<uint8_t>({0.25f, -0.25f, 0.75f, 100.0f, 1000.0f, NAN});
  ASSERT_TRUE(testing::run_step(even, kQuantizeFamilyReference, reference, 1));
  EXPECT_EQ(testing::output_values<uint8_t>(even), (std::vector<uint8_t>{10, 10, 12, 210, 255, 10}));
}

TEST(Quantize, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<QuantizeSpec>(kQuantizeFamily, {
    {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
    {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_bits = 16; }; }, "output"},
    {[](QuantizeSpec& s) { s.output = {3, 2}; }, "another shape"},
    {[](QuantizeSpec& s) { s.input = {2, 3, 4, 5}, s.output = {2, 4, 3, 5}; }, "axis 1 as the last"},
    {[](QuantizeSpec& s) { s.input = {2, 3, 4, 5}, s.output = {2, 5, 4, 3}; }, "axis 1 as the last"},
    {[](QuantizeSpec& s) { s.input = {2, 3, 4, 5}, s.output = {4, 5, 2, 3}; }, "axis 1 as the last"},
    {[](QuantizeSpec& s) { s.input = {2, 3, 4, 5}, s.output = {2, 20, 3}; }, "output"},
    {[](QuantizeSpec& s) { s.rule = static_cast<format::QuantizeRule>(3); }, "rule 3",
     QPLAN_KERNEL_MISSING},
    {[](QuantizeSpec& s) { s.scale = 0.0f; }, "scale"},
    {[](QuantizeSpec& s) { s.scale = -1.0f; }, "scale"},
    {[](QuantizeSpec& s) { s.scale = INFINITY; }, "scale"},
    {[](QuantizeSpec& s) { s.scale = NAN; }, "scale"},
    {[](QuantizeSpec& s) { s.zero_point = 128; }, "zero_point"},
    {[](QuantizeSpec& s) { s.zero_point = INT32_MIN; }, "zero_point"},
    {[](QuantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).offset = 2; }; }, "not aligned"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::quantize_test
