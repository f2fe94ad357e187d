// float_binary and float_unary: every variant has the bits of the formula written out here, functions those
// of the reference, which is near the function in double.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/float/float.h"
#include "kernels/numeric/float_functions.h"
#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::float_elementwise_test {
namespace {

using testing::ArgsStorage;
using testing::Extents;
using testing::Floats;
using testing::Random;
using testing::TestStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float clamped(float v, float least, float most) { return v < least ? least : v > most ? most : v; }

// ---- two tensors ----

struct BinarySpec {
  format::FloatBinary op = format::FloatBinary_ADD;
  Extents a = {2, 3}, b = {2, 3}, output = {2, 3};
  float clamp_min = -kInfinity, clamp_max = kInfinity;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x, const std::vector<float>& y) const {
    TestStep step(kKernel_float_binary);
    step.input<float>(a, x);
    step.input<float>(b, y);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatBinaryParams,
                format::CreateFloatBinaryParams(step.builder(), op, clamp_min, clamp_max).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(a))),
                   std::vector<float>(static_cast<size_t>(testing::num_elements(b))));
  }
  float expected(float x, float y) const {
    switch (op) {
      case format::FloatBinary_ADD:
        return clamped(x + y, clamp_min, clamp_max);
      case format::FloatBinary_SUB:
        return clamped(x - y, clamp_min, clamp_max);
      case format::FloatBinary_MUL:
        return clamped(x * y, clamp_min, clamp_max);
      case format::FloatBinary_DIV:
        return clamped(x / y, clamp_min, clamp_max);
      case format::FloatBinary_MAXIMUM:
        return clamped(x > y ? x : y, clamp_min, clamp_max);
      case format::FloatBinary_MINIMUM:
        return clamped(x < y ? x : y, clamp_min, clamp_max);
      case format::FloatBinary_POWER:
        return clamped(power_f32(x, y), clamp_min, clamp_max);
    }
    return 0;
  }
};

class FloatBinaryVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  void expect_exact(BinarySpec spec, uint64_t seed) {
    for (int op = format::FloatBinary_MIN; op <= format::FloatBinary_MAX; ++op) {
      spec.op = static_cast<format::FloatBinary>(op);
      for (const Floats kind : {Floats::kPlain, Floats::kWide, Floats::kSpecial}) {
        Random random(seed);
        const auto x =
            testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.a)), kind);
        const auto y =
            testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.b)), kind);
        TestStep step = spec.make_of(x, y);
        ArgsStorage args;
        Error error;
        ASSERT_EQ(step.bind(kFloatBinaryFamily, &args, &error), QPLAN_OK) << error.text();
        if (!GetParam()->accepts(args.bytes)) continue;  // powers
        if (!testing::run_step(step, kFloatBinaryFamily, *GetParam(), seed)) return;
        std::vector<float> expected;
        testing::for_each_position(spec.output, [&](const Extents& at) {
          expected.push_back(spec.expected(x[static_cast<size_t>(testing::broadcast_index(spec.a, at))],
                                           y[static_cast<size_t>(testing::broadcast_index(spec.b, at))]));
        });
        testing::expect_same_floats(testing::output_values<float>(step), expected,
                                    "seed " + std::to_string(seed));
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, FloatBinaryVariant,
                         ::testing::ValuesIn(testing::variants_of(kFloatBinaryFamily)),
                         testing::variant_test_name);

TEST_P(FloatBinaryVariant, IsExactForEqualShapesAroundTheVectorWidth) {
  for (int64_t count = 1; count <= 36 && !HasFailure(); ++count) {
    BinarySpec spec;
    spec.a = spec.b = spec.output = {count};
    if (count % 2 == 0) spec.clamp_min = 0.0f;
    if (count % 3 == 0) spec.clamp_max = 2.5f;
    expect_exact(spec, static_cast<uint64_t>(count));
  }
}

TEST_P(FloatBinaryVariant, IsExactAcrossWorkItems) {
  BinarySpec spec;
  spec.a = spec.output = {3, 1700, 2};
  spec.b = {1700, 1};
  expect_exact(spec, 1);
}

TEST_P(FloatBinaryVariant, BroadcastsLikeNumPy) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    Random random(seed);
    BinarySpec spec;
    testing::draw_broadcast(random, &spec);
    expect_exact(spec, seed);
  }
}

TEST(FloatBinary, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<BinarySpec>> refusals = {
      // clang-format off
      {[](BinarySpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 2"},
      {[](BinarySpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input 1"},
      {[](BinarySpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "input 2"},
      {[](BinarySpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_bits = 16; }; }, "output"},
      {[](BinarySpec& s) { s.output = {3, 2}; }, "broadcast to"},
      {[](BinarySpec& s) { s.clamp_max = kNan; }, "clamp_min"},
      {[](BinarySpec& s) { s.op = static_cast<format::FloatBinary>(99); }, "operation 99", QPLAN_KERNEL_MISSING},
      // clang-format on
  };
  testing::expect_refusals(kFloatBinaryFamily, refusals);
}

// ---- one tensor ----

struct UnarySpec {
  format::FloatUnary function = format::FloatUnary_CLAMP;
  Extents shape = {2, 3}, output = {2, 3};
  float p = 0.25f, q = 0.5f;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x) const {
    TestStep step(kKernel_float_unary);
    step.input<float>(shape, x);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatUnaryParams,
                format::CreateFloatUnaryParams(step.builder(), function, p, q).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(shape))));
  }
  float expected(float x) const {
    switch (function) {
      case format::FloatUnary_CLAMP:
        return clamped(x, p, q);
      case format::FloatUnary_LEAKY_RELU:
        return x > 0 ? x : x * p;
      case format::FloatUnary_HARD_SIGMOID:
        return clamped(x * p + q, 0.0f, 1.0f);
      case format::FloatUnary_LOGISTIC:
        return logistic_f32(x);
      case format::FloatUnary_TANH:
        return tanh_f32(x);
      case format::FloatUnary_EXP:
        return exp_f32(x);
      case format::FloatUnary_NEGATIVE:
        return -x;
      case format::FloatUnary_ABS:
        return std::fabs(x);
      case format::FloatUnary_SQRT:
        return std::sqrt(x);
      case format::FloatUnary_RSQRT:
        return 1.0f / std::sqrt(x);
      case format::FloatUnary_LOG:
        return log_f32(x);
      case format::FloatUnary_FLOOR:
        return std::floor(x);
      case format::FloatUnary_CEIL:
        return std::ceil(x);
      case format::FloatUnary_ROUND:
        return std::nearbyint(x);
      case format::FloatUnary_ERF:
        return erf_f32(x);
      case format::FloatUnary_SIN:
        return sin_f32(x);
      case format::FloatUnary_COS:
        return cos_f32(x);
      case format::FloatUnary_ELU:
        return x > 0 ? x : p * exp_less_one_f32(x);
    }
    return 0;
  }
};

class FloatUnaryVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  void expect_exact(UnarySpec spec, uint64_t seed) {
    for (int function = format::FloatUnary_MIN; function <= format::FloatUnary_MAX; ++function) {
      spec.function = static_cast<format::FloatUnary>(function);
      for (const Floats kind : {Floats::kPlain, Floats::kWide, Floats::kSpecial}) {
        Random random(seed);
        auto x = testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.shape)), kind);
        if (kind == Floats::kPlain) {
          for (float& value : x) value *= 30.0f;  // as far as exp goes
        }
        TestStep step = spec.make_of(x);
        if (!testing::run_step(step, kFloatUnaryFamily, *GetParam(), seed)) return;
        std::vector<float> expected;
        for (const float value : x) expected.push_back(spec.expected(value));
        testing::expect_same_floats(
            testing::output_values<float>(step), expected,
            std::string(format::EnumNameFloatUnary(spec.function)) + ", seed " + std::to_string(seed));
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, FloatUnaryVariant, ::testing::ValuesIn(testing::variants_of(kFloatUnaryFamily)),
                         testing::variant_test_name);

TEST_P(FloatUnaryVariant, IsExactAroundTheVectorWidthAndAcrossWorkItems) {
  for (int64_t count = 1; count <= 36 && !HasFailure(); ++count) {
    UnarySpec spec;
    spec.shape = spec.output = {count};
    expect_exact(spec, static_cast<uint64_t>(count));
  }
  UnarySpec spec;
  spec.shape = spec.output = {3, 3001};
  expect_exact(spec, 99);
}

TEST(FloatUnary, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<UnarySpec>> refusals = {
      // clang-format off
      {[](UnarySpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
      {[](UnarySpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](UnarySpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "output"},
      {[](UnarySpec& s) { s.output = {3, 2}; }, "another shape"},
      {[](UnarySpec& s) { s.q = 0.0f; }, "clamp_min"},
      {[](UnarySpec& s) { s.function = static_cast<format::FloatUnary>(200); }, "function 200", QPLAN_KERNEL_MISSING},
      // clang-format on
  };
  testing::expect_refusals(kFloatUnaryFamily, refusals);
}

// ---- functions ----

// The largest error in units in the last place of the double function's result, rounded to float32.
double largest_ulps(float (*found)(float), double (*real)(double), float from, float to) {
  double worst = 0;
  constexpr int kSteps = 2'000'000;
  for (int i = 0; i <= kSteps; ++i) {
    const float x = from + (to - from) * (static_cast<float>(i) / kSteps);
    const double expected = real(static_cast<double>(x));
    const auto rounded = static_cast<float>(expected);
    const double ulp = static_cast<double>(std::nextafter(std::fabs(rounded), kInfinity)) -
                       std::fabs(static_cast<double>(rounded));
    worst = std::max(worst, std::fabs(static_cast<double>(found(x)) - expected) / ulp);
  }
  return worst;
}

TEST(FloatFunctions, ErrorsAreThoseThatThePageStates) {
  const auto exp_real = [](double x) { return std::exp(x); };
  const auto logistic_real = [](double x) { return 1 / (1 + std::exp(-x)); };
  const auto tanh_real = [](double x) { return std::tanh(x); };
  EXPECT_LE(largest_ulps(exp_f32, exp_real, -87.0f, 88.7f), 2.0);
  EXPECT_LE(largest_ulps(exp_f32, exp_real, -104.0f, -87.0f), 2.0);
  EXPECT_LE(largest_ulps(exp_f32, exp_real, -1.0f, 1.0f), 2.0);
  EXPECT_LE(largest_ulps(logistic_f32, logistic_real, -87.0f, 20.0f), 4.0);
  EXPECT_LE(largest_ulps(tanh_f32, tanh_real, -10.0f, 10.0f), 4.0);
  EXPECT_LE(largest_ulps(tanh_f32, tanh_real, -0.7f, 0.7f), 4.0);
}

TEST(FloatFunctions, EndsAndWhatIsNoNumber) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(kInfinity), kInfinity);
  EXPECT_EQ(exp_f32(89.0f), kInfinity);
  EXPECT_EQ(exp_f32(-kInfinity), 0.0f);
  EXPECT_EQ(exp_f32(-104.0f), 0.0f);
  EXPECT_TRUE(std::isnan(exp_f32(kNan)));
  EXPECT_EQ(logistic_f32(0.0f), 0.5f);
  EXPECT_EQ(logistic_f32(kInfinity), 1.0f);
  EXPECT_EQ(logistic_f32(-kInfinity), 0.0f);
  EXPECT_TRUE(std::isnan(logistic_f32(kNan)));
  EXPECT_EQ(tanh_f32(0.0f), 0.0f);
  EXPECT_EQ(tanh_f32(kInfinity), 1.0f);
  EXPECT_EQ(tanh_f32(-kInfinity), -1.0f);
  EXPECT_EQ(tanh_f32(50.0f), 1.0f);
  EXPECT_TRUE(std::isnan(tanh_f32(kNan)));
}

}  // namespace
}  // namespace qplan::float_elementwise_test
