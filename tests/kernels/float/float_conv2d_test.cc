// float_conv2d: every variant gives the bits of the chain that the page on numerics states, written out here
// over weights in their own order; that chain is near the sum in double.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/float/float.h"
#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::float_conv2d_test {
namespace {

using testing::Extents;
using testing::Floats;
using testing::Random;
using testing::TestStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A layer of four-dimensional tensors, or, with `rows`, a fully connected one of [rows..., c].
struct LayerSpec {
  int64_t batch = 1, input_h = 5, input_w = 6, input_c = 3, output_h = 5, output_w = 6, output_c = 4;
  uint32_t kernel_h = 3, kernel_w = 3, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  uint32_t pad_top = 1, pad_left = 1, groups = 1;
  float clamp_min = -kInfinity, clamp_max = kInfinity;
  Extents rows = {};
  std::function<void(TestStep&)> tweak = {};

  int64_t group_c() const { return input_c / std::max<uint32_t>(groups, 1); }
  int64_t num_k() const { return kernel_h * int64_t{kernel_w} * group_c(); }
  Extents shape(int64_t h, int64_t w, int64_t c) const {
    if (rows.empty()) return {batch, h, w, c};
    Extents result = rows;
    result.push_back(c);
    return result;
  }
  Extents input_shape() const { return shape(input_h, input_w, input_c); }
  Extents output_shape() const { return shape(output_h, output_w, output_c); }

  TestStep make_of(const std::vector<float>& input, const std::vector<float>& ohwi,
                   const std::vector<float>& bias) const {
    const int64_t blocks = (output_c + 15) / 16;
    // The values after those of the last output are arbitrary.
    std::vector<float> weights(static_cast<size_t>(blocks * num_k() * 16), 1e30f);
    std::vector<float> padded_bias(static_cast<size_t>(blocks * 16), -1e30f);
    for (int64_t o = 0; o < output_c; ++o) {
      padded_bias[static_cast<size_t>(o)] = bias[static_cast<size_t>(o)];
      for (int64_t k = 0; k < num_k(); ++k) {
        weights[static_cast<size_t>((o / 16 * num_k() + k) * 16 + o % 16)] =
            ohwi[static_cast<size_t>(o * num_k() + k)];
      }
    }
    TestStep step(kKernel_float_conv2d);
    step.input<float>(input_shape(), input);
    step.constant<float>({static_cast<int64_t>(weights.size())}, weights);
    step.constant<float>({blocks * 16}, padded_bias);
    step.output<float>(output_shape());
    if (tweak) tweak(step);
    step.finish(
        format::KernelParams_FloatWindowParams,
        format::CreateFloatWindowParams(step.builder(), kernel_h, kernel_w, stride_h, stride_w, dilation_h,
                                        dilation_w, pad_top, pad_left, groups, clamp_min, clamp_max)
            .Union());
    return step;
  }
  void make(TestStep& step) const {
    const auto zeros = [](int64_t count) { return std::vector<float>(static_cast<size_t>(count)); };
    step = make_of(zeros(testing::num_elements(input_shape())),
                   zeros(std::max<int64_t>(output_c * num_k(), 1)), zeros(output_c));
  }

  // The chain of docs/numerics/float32.md in T: volatile keeps the compiler from contracting or reordering.
  template <typename T>
  std::vector<T> expected(const std::vector<float>& input, const std::vector<float>& ohwi,
                          const std::vector<float>& bias) const {
    std::vector<T> out;
    const int64_t images = rows.empty() ? batch : testing::num_elements(rows);
    const int64_t in_h = rows.empty() ? input_h : 1, in_w = rows.empty() ? input_w : 1;
    const Extents shape = {images, rows.empty() ? output_h : 1, rows.empty() ? output_w : 1, output_c};
    testing::for_each_position(shape, [&](const Extents& at) {
      volatile T sum = 0;
      const int64_t first_c = at[3] / (output_c / groups) * group_c();
      for (int64_t ky = 0; ky < kernel_h; ++ky) {
        for (int64_t kx = 0; kx < kernel_w; ++kx) {
          const int64_t y = at[1] * stride_h + ky * dilation_h - pad_top;
          const int64_t x = at[2] * stride_w + kx * dilation_w - pad_left;
          if (y < 0 || x < 0 || y >= in_h || x >= in_w) continue;
          for (int64_t i = 0; i < group_c(); ++i) {
            const volatile T product =
                static_cast<T>(
                    input[static_cast<size_t>(((at[0] * in_h + y) * in_w + x) * input_c + first_c + i)]) *
                static_cast<T>(
                    ohwi[static_cast<size_t>(at[3] * num_k() + (ky * kernel_w + kx) * group_c() + i)]);
            sum = sum + product;
          }
        }
      }
      const T value = sum + static_cast<T>(bias[static_cast<size_t>(at[3])]);
      out.push_back(value < static_cast<T>(clamp_min)   ? static_cast<T>(clamp_min)
                    : value > static_cast<T>(clamp_max) ? static_cast<T>(clamp_max)
                                                        : value);
    });
    return out;
  }
};

class FloatConv2dVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  void expect_exact(const LayerSpec& spec, uint64_t seed, Floats kind = Floats::kPlain) {
    Random random(seed);
    const auto input =
        testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.input_shape())), kind);
    const auto weights =
        testing::random_floats(random, static_cast<size_t>(spec.output_c * spec.num_k()), kind);
    const auto bias = testing::random_floats(random, static_cast<size_t>(spec.output_c), kind);
    TestStep step = spec.make_of(input, weights, bias);
    if (!testing::run_step(step, kFloatConv2dFamily, *GetParam(), seed)) return;
    ++num_run_;
    const std::vector<float> found = testing::output_values<float>(step);
    testing::expect_same_floats(found, spec.expected<float>(input, weights, bias),
                                "seed " + std::to_string(seed));
    if (kind != Floats::kPlain) return;
    const std::vector<double> real = spec.expected<double>(input, weights, bias);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(found[i]), real[i], 1e-6 * 16 * (2 + static_cast<double>(spec.num_k())))
          << "seed " << seed;
    }
  }
  int num_run_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All, FloatConv2dVariant,
                         ::testing::ValuesIn(testing::variants_of(kFloatConv2dFamily)),
                         testing::variant_test_name);

// A layer whose output has the extents that its window gives.
LayerSpec random_layer(Random& random) {
  LayerSpec s;
  s.batch = random.integer(1, 3);
  s.input_h = random.integer(1, 9);
  s.input_w = random.integer(1, 24);
  s.kernel_h = static_cast<uint32_t>(random.integer(1, 4));
  s.kernel_w = static_cast<uint32_t>(random.integer(1, 4));
  s.stride_h = static_cast<uint32_t>(random.integer(1, 3));
  s.stride_w = static_cast<uint32_t>(random.integer(1, 3));
  s.dilation_h = static_cast<uint32_t>(random.integer(1, 3));
  s.dilation_w = static_cast<uint32_t>(random.integer(1, 3));
  s.pad_top = static_cast<uint32_t>(random.integer(0, 4));
  s.pad_left = static_cast<uint32_t>(random.integer(0, 5));
  s.output_h = random.integer(1, 7);
  s.output_w = random.integer(1, 26);
  switch (random.integer(0, 3)) {
    case 0:  // depthwise
      s.input_c = s.output_c = random.integer(1, 70);
      s.groups = static_cast<uint32_t>(s.input_c);
      break;
    case 1:  // groups
      s.groups = static_cast<uint32_t>(random.integer(1, 4));
      s.input_c = s.groups * random.integer(1, 5);
      s.output_c = s.groups * random.integer(1, 20);
      break;
    default:
      s.input_c = random.integer(1, 9);
      s.output_c = random.integer(1, 140);
  }
  if (random.chance(0.3)) s.clamp_min = static_cast<float>(random.unit() * 2 - 2);
  if (random.chance(0.3)) s.clamp_max = static_cast<float>(random.unit() * 6);
  return s;
}

TEST_P(FloatConv2dVariant, AddsInTheStatedOrder) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(seed);
    expect_exact(random_layer(random), seed);
  }
  EXPECT_GT(num_run_, 75);
}

TEST_P(FloatConv2dVariant, KeepsSubnormalNumbersInfinitiesAndNans) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    Random random(seed);
    const LayerSpec spec = random_layer(random);
    expect_exact(spec, seed, Floats::kWide);
    expect_exact(spec, seed, Floats::kSpecial);
  }
}

TEST_P(FloatConv2dVariant, PixelsThatStandAloneFillTilesAcrossRows) {
  for (int64_t channels = 1; channels <= 70 && !HasFailure(); channels += 3) {
    LayerSpec s;
    s.batch = 2, s.input_h = s.output_h = 7, s.input_w = s.output_w = 5;
    s.input_c = channels, s.output_c = 71 - channels;
    s.kernel_h = s.kernel_w = 1, s.pad_top = s.pad_left = 0;
    expect_exact(s, static_cast<uint64_t>(channels));
  }
}

TEST_P(FloatConv2dVariant, RowsOfAnyRankAreFullyConnected) {
  uint64_t seed = 0;
  for (const Extents& rows : std::vector<Extents>{{1}, {7}, {2, 3}, {1, 1, 2, 25}}) {
    for (const int64_t channels : {1, 15, 16, 17, 64, 65, 130}) {
      LayerSpec s;
      s.rows = rows;
      s.input_c = 33, s.output_c = channels;
      s.kernel_h = s.kernel_w = 1, s.pad_top = s.pad_left = 0;
      s.clamp_min = 0.0f;
      expect_exact(s, ++seed);
    }
  }
}

TEST(FloatConv2d, TapsOutsideTheInputAreLeftOutEvenWhereWeightsAreInfinite) {
  LayerSpec s;
  s.input_h = s.input_w = s.output_h = s.output_w = 1, s.input_c = s.output_c = 1;
  std::vector<float> weights(9, kInfinity);
  weights[4] = 2.0f;
  TestStep step = s.make_of({3.0f}, weights, {0.5f});
  for (uint32_t v = 0; v < kFloatConv2dFamily.num_variants; ++v) {
    const KernelVariant& variant = kFloatConv2dFamily.variants[v];
    if (!testing::can_run(variant)) continue;
    ASSERT_TRUE(testing::run_step(step, kFloatConv2dFamily, variant, 1)) << variant.name;
    EXPECT_EQ(testing::output_values<float>(step), std::vector<float>{6.5f}) << variant.name;
  }
}

// 2^24 + 1 - 2^24 is 0 from left to right and 1 in another order.
TEST(FloatConv2d, TheOrderShowsInTheResult) {
  LayerSpec s;
  s.rows = {1};
  s.kernel_h = s.kernel_w = 1, s.pad_top = s.pad_left = 0, s.input_c = 3, s.output_c = 1;
  for (uint32_t v = 0; v < kFloatConv2dFamily.num_variants; ++v) {
    const KernelVariant& variant = kFloatConv2dFamily.variants[v];
    if (!testing::can_run(variant)) continue;
    TestStep left = s.make_of({16777216.0f, 1.0f, -16777216.0f}, {1, 1, 1}, {0});
    ASSERT_TRUE(testing::run_step(left, kFloatConv2dFamily, variant, 1));
    EXPECT_EQ(testing::output_values<float>(left), std::vector<float>{0.0f}) << variant.name;
    TestStep right = s.make_of({16777216.0f, -16777216.0f, 1.0f}, {1, 1, 1}, {0});
    ASSERT_TRUE(testing::run_step(right, kFloatConv2dFamily, variant, 1));
    EXPECT_EQ(testing::output_values<float>(right), std::vector<float>{1.0f}) << variant.name;
  }
}

TEST(FloatConv2d, BindRefusesWhatIsWrong) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<testing::Refusal<LayerSpec>> refusals = {
      // clang-format off
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 3"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "weights"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).size -= 4; }; }, "weights"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).bank = TestStep::kArenaBank; }; }, "weights"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).size += 4; }; }, "bias"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).type_bits = 64; }; }, "output"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).shape[0] = 2; }; }, "output"},
      {[](LayerSpec& s) { s.groups = 0; s.tweak = [](TestStep&) {}; }, "groups 0"},
      {[](LayerSpec& s) { s.groups = 2; }, "not divisible by groups 2"},
      {[](LayerSpec& s) { s.kernel_h = 0; }, "height"},
      {[](LayerSpec& s) { s.stride_w = 0; }, "width"},
      {[](LayerSpec& s) { s.dilation_w = 0x80000000u; }, "width"},
      {[](LayerSpec& s) { s.pad_top = 0x80000000u; }, "height"},
      {[](LayerSpec& s) { s.rows = {2}; }, "rank 4"},
      {[](LayerSpec& s) { s.clamp_min = 1.0f; s.clamp_max = 0.0f; }, "clamp_min"},
      {[=](LayerSpec& s) { s.clamp_min = kNan; }, "clamp_min"},
      // clang-format on
  };
  testing::expect_refusals(kFloatConv2dFamily, refusals);
}

}  // namespace
}  // namespace qplan::float_conv2d_test
