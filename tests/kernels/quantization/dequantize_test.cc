// Every variant of dequantize against the product of the reals, rounded once.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "kernels/quantization/quantization.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::dequantize_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct DequantizeSpec {
  Extents input = {2, 3};
  Extents output = {2, 3};
  float scale = 0.5f;
  int32_t zero_point = 0;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_dequantize);
    step.input<T>(input, values);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_DequantizeParams,
                format::CreateDequantizeParams(step.builder(), scale, zero_point).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class DequantizeVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_exact(float scale, int32_t zero_point, int64_t count, uint64_t seed) {
    Random random(seed);
    DequantizeSpec spec;
    spec.scale = scale;
    spec.zero_point = zero_point;
    spec.input = spec.output = {count};
    const auto x = random.full_range<T>(count);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kDequantizeFamily, *GetParam(), seed)) return;
    std::vector<float> expected;
    // Exact in double: 24 + 9 bits.
    for (const T value : x)
      expected.push_back(static_cast<float>(static_cast<double>(scale) * (value - zero_point)));
    EXPECT_EQ(testing::output_values<float>(step), expected) << "scale " << scale << " seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, DequantizeVariant, ::testing::ValuesIn(testing::variants_of(kDequantizeFamily)),
                         testing::variant_test_name);

TEST_P(DequantizeVariant, IsTheRoundedProduct) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(seed);
    const float scale = static_cast<float>(std::exp2(-20 + 24 * random.unit()));
    const int32_t zero_point = static_cast<int32_t>(random.integer(-128, 127));
    const int64_t count = random.chance(0.05) ? 9000 : random.integer(1, 150);
    expect_exact<int8_t>(scale, zero_point, count, seed);
    expect_exact<uint8_t>(scale, zero_point + 128, count, seed);
  }
}

TEST_P(DequantizeVariant, TakesTheSmallestAndTheLargestScale) {
  for (const float scale : {1e-45f, FLT_MIN, FLT_MAX}) {
    expect_exact<int8_t>(scale, -128, 100, 1);
    expect_exact<uint8_t>(scale, 255, 100, 1);
  }
}

// Channels side by side become planes: numbers of pixels that do not fill a vector, several work items.
TEST_P(DequantizeVariant, MakesPlanesOfChannels) {
  uint64_t seed = 0;
  for (const int64_t channels : {1, 2, 3, 21}) {
    for (const Extents& pixels :
         std::vector<Extents>{{1}, {15}, {67}, {3, 11}, {65, 33}, {7, 2, 3}, {9000}}) {
      for (const int64_t images : {1, 3}) {
        Random random(++seed);
        DequantizeSpec spec;
        spec.scale = 0.375f;
        spec.zero_point = -3;
        spec.input = {images};
        spec.output = {images, channels};
        int64_t count = 1;
        for (const int64_t extent : pixels) {
          spec.input.push_back(extent);
          spec.output.push_back(extent);
          count *= extent;
        }
        spec.input.push_back(channels);
        if (spec.input == spec.output && channels > 1) continue;  // equal shapes: nothing moves
        const auto x = random.full_range<int16_t>(images * channels * count);
        const auto bytes = random.full_range<int8_t>(images * channels * count);
        const auto expect = [&](const auto& values, TestStep step) {
          if (!testing::run_step(step, kDequantizeFamily, *GetParam(), seed)) return;
          std::vector<float> expected;
          for (int64_t n = 0; n < images; ++n) {
            for (int64_t c = 0; c < channels; ++c) {
              for (int64_t p = 0; p < count; ++p) {
                const int value = values[static_cast<size_t>((n * count + p) * channels + c)];
                expected.push_back(0.375f * static_cast<float>(value + 3));
              }
            }
          }
          ASSERT_EQ(testing::output_values<float>(step), expected)
              << images << " images of " << channels << " channels, " << count << " pixels";
        };
        expect(x, spec.make_of<int16_t>(x));
        expect(bytes, spec.make_of<int8_t>(bytes));
      }
    }
  }
}

TEST(Dequantize, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<DequantizeSpec>(kDequantizeFamily, {
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 16; }; }, "input"},
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "output"},
    {[](DequantizeSpec& s) { s.output = {3, 2}; }, "another shape"},
    {[](DequantizeSpec& s) { s.input = {1, 2, 3, 4}; s.output = {1, 3, 4, 2}; }, "the last axis as axis 1"},
    {[](DequantizeSpec& s) { s.input = {1, 2, 3, 4}; s.output = {1, 4, 3, 2}; }, "the last axis as axis 1"},
    {[](DequantizeSpec& s) { s.scale = 0.0f; }, "scale"},
    {[](DequantizeSpec& s) { s.scale = INFINITY; }, "scale"},
    {[](DequantizeSpec& s) { s.scale = NAN; }, "scale"},
    {[](DequantizeSpec& s) { s.zero_point = -129; }, "zero_point"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::dequantize_test
