// float_pool2d, float_mean, float_softmax: every variant has the bits of the chains written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/float/float.h"
#include "kernels/numeric/float_functions.h"
#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::float_reduce_test {
namespace {

using testing::Extents;
using testing::Floats;
using testing::Random;
using testing::TestStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Runs the variant, where it takes the step, and compares.
template <typename Spec>
void expect_exact(const Spec& spec, const KernelFamily& family, const KernelVariant& variant, uint64_t seed,
                  Floats kind) {
  Random random(seed);
  const auto x = testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.input)), kind);
  TestStep step = spec.make_of(x);
  if (!testing::run_step(step, family, variant, seed)) return;
  testing::expect_same_floats(testing::output_values<float>(step), spec.expected(x),
                              "seed " + std::to_string(seed));
}

#define QPLAN_FLOAT_VARIANT_TESTS(Suite, family)                                          \
  class Suite : public ::testing::TestWithParam<const KernelVariant*> {                   \
   protected:                                                                             \
    void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }                    \
  };                                                                                      \
  INSTANTIATE_TEST_SUITE_P(All, Suite, ::testing::ValuesIn(testing::variants_of(family)), \
                           testing::variant_test_name)

// ---- pools ----

struct PoolSpec {
  Extents input = {1, 6, 7, 5}, output = {1, 3, 4, 5};
  uint32_t pool_h = 3, pool_w = 2, stride_h = 2, stride_w = 2, dilation = 1, pad_top = 1, pad_left = 1;
  float clamp_min = -kInfinity, clamp_max = kInfinity;
  format::FloatPool pool = format::FloatPool_AVERAGE;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x) const {
    TestStep step(kKernel_float_pool2d);
    step.input<float>(input, x);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatWindowParams,
                format::CreateFloatWindowParams(step.builder(), pool_h, pool_w, stride_h, stride_w, dilation,
                                                dilation, pad_top, pad_left, 1, clamp_min, clamp_max, pool)
                    .Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(input))));
  }
  std::vector<float> expected(const std::vector<float>& x) const {
    std::vector<float> out;
    testing::for_each_position(output, [&](const Extents& at) {
      volatile float value = pool == format::FloatPool_MAXIMUM ? -kInfinity : 0.0f;
      int64_t count = 0;
      for (int64_t ky = 0; ky < pool_h; ++ky) {
        for (int64_t kx = 0; kx < pool_w; ++kx) {
          const int64_t iy = at[1] * stride_h + ky - pad_top, ix = at[2] * stride_w + kx - pad_left;
          if (iy < 0 || ix < 0 || iy >= input[1] || ix >= input[2]) continue;
          const float e =
              x[static_cast<size_t>(((at[0] * input[1] + iy) * input[2] + ix) * input[3] + at[3])];
          if (pool == format::FloatPool_MAXIMUM) {
            if (e > value) value = e;
          } else {
            value = value + e;
          }
          ++count;
        }
      }
      if (pool == format::FloatPool_AVERAGE) value = value / static_cast<float>(count);
      if (pool == format::FloatPool_AVERAGE_WITH_PADDING)
        value = value / static_cast<float>(int64_t{pool_h} * pool_w);
      const float v = value;
      out.push_back(v < clamp_min ? clamp_min : v > clamp_max ? clamp_max : v);
    });
    return out;
  }
};

QPLAN_FLOAT_VARIANT_TESTS(FloatPool2dVariant, kFloatPool2dFamily);

TEST_P(FloatPool2dVariant, AddsAndComparesInTheStatedOrder) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    Random random(seed);
    PoolSpec s;
    s.pool_h = static_cast<uint32_t>(random.integer(1, 4));
    s.pool_w = static_cast<uint32_t>(random.integer(1, 4));
    s.stride_h = static_cast<uint32_t>(random.integer(1, 3));
    s.stride_w = static_cast<uint32_t>(random.integer(1, 3));
    s.pad_top = static_cast<uint32_t>(random.integer(0, s.pool_h - 1));
    s.pad_left = static_cast<uint32_t>(random.integer(0, s.pool_w - 1));
    s.input = {random.integer(1, 2), random.integer(2, 9), random.integer(2, 9), random.integer(1, 40)};
    s.output = s.input;
    s.output[1] = (s.input[1] - 1 + s.pad_top) / s.stride_h + 1;
    s.output[2] = (s.input[2] - 1 + s.pad_left) / s.stride_w + 1;
    if (random.chance(0.3)) s.clamp_min = 0.0f;
    for (const auto pool :
         {format::FloatPool_MAXIMUM, format::FloatPool_AVERAGE, format::FloatPool_AVERAGE_WITH_PADDING}) {
      s.pool = pool;
      for (const Floats kind : {Floats::kPlain, Floats::kWide, Floats::kSpecial})
        expect_exact(s, kFloatPool2dFamily, *GetParam(), seed, kind);
    }
  }
}

TEST(FloatPool2d, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<PoolSpec>> refusals = {
      // clang-format off
      {[](PoolSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
      {[](PoolSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](PoolSpec& s) { s.output[3] = 4; }, "channels"},
      {[](PoolSpec& s) { s.pool = format::FloatPool_NONE; }, "pool 0", QPLAN_KERNEL_MISSING},
      {[](PoolSpec& s) { s.pool = static_cast<format::FloatPool>(9); }, "pool 9", QPLAN_KERNEL_MISSING},
      {[](PoolSpec& s) { s.dilation = 2; }, "dilation"},
      {[](PoolSpec& s) { s.pool_h = 0; }, "height"},
      {[](PoolSpec& s) { s.stride_w = 0; }, "width"},
      {[](PoolSpec& s) { s.pad_left = 2; }, "width"},
      {[](PoolSpec& s) { s.output[1] = 9; }, "height"},
      {[](PoolSpec& s) { s.clamp_min = kInfinity; s.clamp_max = 0; }, "clamp_min"},
      // clang-format on
  };
  testing::expect_refusals(kFloatPool2dFamily, refusals);
}

// ---- means ----

struct ReduceSpec {
  KernelId kernel = kKernel_float_mean;
  Extents input = {2, 3, 4}, output = {2, 4};
  uint32_t axes = 2;
  float beta = 1.0f;
  format::FloatReduction reduction = format::FloatReduction_MEAN;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x) const {
    TestStep step(kernel);
    step.input<float>(input, x);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatReduceParams,
                format::CreateFloatReduceParams(step.builder(), axes, beta, false, reduction).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(input))));
  }

  std::vector<float> expected(const std::vector<float>& x) const {
    return kernel == kKernel_float_mean ? reductions(x) : softmax(x);
  }
  // All elements in the order of the input, each to its sum, or its product, or its largest or least one so
  // far.
  std::vector<float> reductions(const std::vector<float>& x) const {
    const bool multiplies = reduction == format::FloatReduction_PRODUCT;
    std::vector<float> sums(static_cast<size_t>(testing::num_elements(output)), multiplies ? 1.0f : 0.0f);
    std::vector<bool> has_some(sums.size());
    size_t i = 0;
    testing::for_each_position(input, [&](const Extents& at) {
      size_t index = 0;
      for (size_t axis = 0; axis < input.size(); ++axis) {
        if ((axes >> axis & 1) == 0)
          index = index * static_cast<size_t>(input[axis]) + static_cast<size_t>(at[axis]);
      }
      const float element = x[i++];
      volatile float sum = multiplies ? sums[index] * element : sums[index] + element;
      if (reduction == format::FloatReduction_MAXIMUM)
        sum = !has_some[index] || element > sums[index] ? element : sums[index];
      if (reduction == format::FloatReduction_MINIMUM)
        sum = !has_some[index] || element < sums[index] ? element : sums[index];
      has_some[index] = true;
      sums[index] = sum;
    });
    if (reduction != format::FloatReduction_MEAN) return sums;
    for (float& sum : sums) sum = sum / static_cast<float>(x.size() / sums.size());
    return sums;
  }
  std::vector<float> softmax(const std::vector<float>& x) const {
    size_t axis = 0, inner = 1;
    while (axes >> axis != 1) ++axis;
    for (size_t i = axis + 1; i < input.size(); ++i) inner *= static_cast<size_t>(input[i]);
    const auto depth = static_cast<size_t>(input[axis]);
    std::vector<float> out(x.size());
    for (size_t line = 0; line < x.size() / depth; ++line) {
      const size_t first = line / inner * inner * depth + line % inner;
      float most = x[first];
      for (size_t i = 1; i < depth; ++i) most = std::max(most, x[first + i * inner]);
      volatile float sum = 0.0f;
      for (size_t i = 0; i < depth; ++i) {
        const volatile float difference = x[first + i * inner] - most;
        out[first + i * inner] = exp_f32(difference * beta);
        sum = sum + out[first + i * inner];
      }
      for (size_t i = 0; i < depth; ++i) out[first + i * inner] = out[first + i * inner] / sum;
    }
    return out;
  }
};

QPLAN_FLOAT_VARIANT_TESTS(FloatMeanVariant, kFloatMeanFamily);

TEST_P(FloatMeanVariant, AddsInTheOrderOfTheInput) {
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    Random random(seed);
    ReduceSpec s;
    const auto rank = static_cast<size_t>(random.integer(1, 5));
    s.input = testing::random_shape(random, rank, rank < 3 ? 90 : 9);
    s.axes = static_cast<uint32_t>(random.integer(1, (1 << rank) - 1));
    s.output.clear();
    const bool keeps = random.chance(0.5);
    for (size_t axis = 0; axis < rank; ++axis) {
      const bool reduced = (s.axes >> axis & 1) != 0;
      if (!reduced || keeps) s.output.push_back(reduced ? 1 : s.input[axis]);
    }
    s.reduction = static_cast<format::FloatReduction>(seed % (format::FloatReduction_MAX + 1));
    for (const Floats kind : {Floats::kPlain, Floats::kWide, Floats::kSpecial})
      expect_exact(s, kFloatMeanFamily, *GetParam(), seed, kind);
  }
}

TEST(FloatMean, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<ReduceSpec>> refusals = {
      // clang-format off
      {[](ReduceSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
      {[](ReduceSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](ReduceSpec& s) { s.axes = 0; }, "axes 0"},
      {[](ReduceSpec& s) { s.axes = 8; }, "axes 8"},
      {[](ReduceSpec& s) { s.reduction = static_cast<format::FloatReduction>(9); }, "reduction 9", QPLAN_KERNEL_MISSING},
      {[](ReduceSpec& s) { s.output = {2, 3}; }, "reduced along"},
      // clang-format on
  };
  testing::expect_refusals(kFloatMeanFamily, refusals);
}

// ---- softmax ----

QPLAN_FLOAT_VARIANT_TESTS(FloatSoftmaxVariant, kFloatSoftmaxFamily);

TEST_P(FloatSoftmaxVariant, AddsInTheOrderOfTheAxis) {
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    Random random(seed);
    ReduceSpec s;
    s.kernel = kKernel_float_softmax;
    const auto rank = static_cast<size_t>(random.integer(1, 4));
    s.input = s.output = testing::random_shape(random, rank, rank < 2 ? 200 : 20);
    s.axes = uint32_t{1} << random.integer(0, static_cast<int64_t>(rank) - 1);
    s.beta = random.chance(0.5) ? 1.0f : static_cast<float>(random.unit() * 3);
    for (const Floats kind : {Floats::kPlain, Floats::kSpecial})
      expect_exact(s, kFloatSoftmaxFamily, *GetParam(), seed, kind);
  }
}

TEST(FloatSoftmax, IsNearTheFunctionInDouble) {
  Random random(1);
  ReduceSpec s;
  s.kernel = kKernel_float_softmax, s.input = s.output = {40, 300}, s.axes = 2;
  const auto x = testing::random_floats(random, 12000);
  TestStep step = s.make_of(x);
  ASSERT_TRUE(testing::run_step(step, kFloatSoftmaxFamily, kFloatSoftmaxFamilyReference.variants[0], 1));
  const auto found = testing::output_values<float>(step);
  for (size_t row = 0; row < 40; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 300; ++i) sum += std::exp(static_cast<double>(x[row * 300 + i]));
    for (size_t i = 0; i < 300; ++i) {
      const double expected = std::exp(static_cast<double>(x[row * 300 + i])) / sum;
      EXPECT_NEAR(static_cast<double>(found[row * 300 + i]), expected, 2e-6 * expected);
    }
  }
}

TEST(FloatSoftmax, BindRefusesWhatIsWrong) {
  const auto base = [](ReduceSpec& s) {
    s.kernel = kKernel_float_softmax;
    s.output = s.input;
  };
  const std::vector<testing::Refusal<ReduceSpec>> refusals = {
      // clang-format off
      {[=](ReduceSpec& s) { base(s); s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
      {[=](ReduceSpec& s) { base(s); s.output = {3, 2, 4}; }, "another shape"},
      {[=](ReduceSpec& s) { base(s); s.axes = 3; }, "expected one"},
      {[=](ReduceSpec& s) { base(s); s.axes = 0; }, "axes 0"},
      {[=](ReduceSpec& s) { base(s); s.axes = 16; }, "axes 16"},
      // clang-format on
  };
  testing::expect_refusals(kFloatSoftmaxFamily, refusals);
}

// ---- logarithm of softmax ----

TEST(FloatLogSoftmax, IsNearTheTextbookWhereSoftmaxItselfIsZero) {
  const std::vector<float> x = {0.0f, -200.0f, 3.5f, 1.0f, 1.0f, 1.0f};
  TestStep step(kKernel_float_softmax);
  step.input<float>({2, 3}, x);
  step.output<float>({2, 3});
  step.finish(format::KernelParams_FloatReduceParams,
              format::CreateFloatReduceParams(step.builder(), 1 << 1, 1.0f, true).Union());
  const KernelVariant& reference = kFloatSoftmaxFamily.variants[kFloatSoftmaxFamily.num_variants - 1];
  ASSERT_TRUE(testing::run_step(step, kFloatSoftmaxFamily, reference, 1));
  const std::vector<float> found = testing::output_values<float>(step);
  for (size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) sum += std::exp(static_cast<double>(x[row * 3 + i]));
    for (size_t i = row * 3; i < row * 3 + 3; ++i) {
      const double expected = static_cast<double>(x[i]) - std::log(sum);
      EXPECT_NEAR(static_cast<double>(found[i]), expected, 1e-6 * std::fabs(expected) + 1e-6) << i;
    }
  }
}

}  // namespace
}  // namespace qplan::float_reduce_test
