// Every variant of add, sub and mul under F32E against the formula in double, rounded where the contract
// rounds.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "src/runtime/bind/family.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/nd.h"
#include "tests/support/operands.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::binary_f32e_test {
namespace {

using testing::Extents;
using testing::f32;
using testing::Random;
using testing::TestStep;

struct Operand {
  float scale = 1.0f;
  int32_t zero_point = 0;
};

struct BinarySpec {
  const KernelFamily* family = &kAddFamily;
  Extents a = {2, 3};
  Extents b = {2, 3};
  Extents output = {2, 3};
  Operand input1, input2, result;
  int32_t clamp_min = -128;
  int32_t clamp_max = 127;

  template <typename T>
  TestStep make_of(const std::vector<T>& a_values, const std::vector<T>& b_values) const {
    TestStep step(family->id);
    step.input<T>(a, a_values);
    step.input<T>(b, b_values);
    step.output<T>(output);
    if (family->id == kKernel_mul) {
      step.finish(format::KernelParams_MulParams,
                  format::CreateMulParams(step.builder(), format::Contract_F32E, input1.zero_point,
                                          input2.zero_point, result.zero_point, -1, 99, clamp_min, clamp_max,
                                          input1.scale, input2.scale, result.scale)
                      .Union());
    } else {
      step.finish(format::KernelParams_AddParams,
                  format::CreateAddParams(step.builder(), format::Contract_F32E, -1, input1.zero_point, -1,
                                          99, input2.zero_point, -1, 99, result.zero_point, -1, 99, clamp_min,
                                          clamp_max, input1.scale, input2.scale, result.scale)
                      .Union());
    }
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(a)),
                           std::vector<int8_t>(testing::num_elements(b)));
  }
};

int64_t exact(const BinarySpec& spec, int64_t a, int64_t b) {
  const auto real = [](int64_t x, const Operand& operand) {
    return f32(static_cast<double>(x - operand.zero_point) * static_cast<double>(operand.scale));
  };
  const double x = real(a, spec.input1), y = real(b, spec.input2);
  const double value = spec.family->id == kKernel_add   ? x + y
                       : spec.family->id == kKernel_sub ? x - y
                                                        : x * y;
  return testing::exact_quantize_f32e(f32(f32(value) / static_cast<double>(spec.result.scale)),
                                      spec.result.zero_point, spec.clamp_min, spec.clamp_max);
}

// Half of the scales are powers of two, with which ties are frequent; one in sixteen is an end of the range.
float drawn_scale(Random& random, double about) {
  if (random.integer(0, 15) == 0) {
    return random.pick(std::vector<float>{0x1p100f, std::numeric_limits<float>::min(),
                                          std::numeric_limits<float>::denorm_min()});
  }
  const double significand = random.chance(0.5) ? 1.0 : 1.0 + random.unit();
  return static_cast<float>(about * significand * std::ldexp(1.0, static_cast<int>(random.integer(-3, 3))));
}

class BinaryF32eVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  const KernelFamily& family() const {
    const std::string name = std::string(GetParam()->name).substr(0, 3);
    return name == "sub" ? kSubFamily : name == "mul" ? kMulFamily : kAddFamily;
  }

  template <typename T>
  void expect_exact(BinarySpec spec, uint64_t seed) {
    Random random(seed);
    const Dtype dtype = std::is_signed_v<T> ? Dtype::kS8 : Dtype::kU8;
    spec.family = &family();
    for (Operand* operand : {&spec.input1, &spec.input2, &spec.result}) {
      operand->zero_point = testing::random_zero_point(random, dtype);
      operand->scale = drawn_scale(random, 0.015625);
    }
    if (random.chance(0.3)) spec.input2.scale = spec.input1.scale;
    testing::random_clamp(random, dtype, &spec.clamp_min, &spec.clamp_max);
    const auto a = random.full_range<T>(testing::num_elements(spec.a));
    const auto b = random.full_range<T>(testing::num_elements(spec.b));
    TestStep step = spec.make_of<T>(a, b);
    ASSERT_TRUE(testing::run_step(step, family(), *GetParam(), seed));
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](const Extents& at) {
      expected.push_back(static_cast<T>(
          exact(spec, a[testing::broadcast_index(spec.a, at)], b[testing::broadcast_index(spec.b, at)])));
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }

  void expect_exact_of_both_dtypes(const BinarySpec& spec, uint64_t seed) {
    expect_exact<uint8_t>(spec, seed);
    expect_exact<int8_t>(spec, seed);
  }
};

std::vector<const KernelVariant*> all_variants() {
  std::vector<const KernelVariant*> all;
  for (const KernelFamily* family : {&kAddFamily, &kSubFamily, &kMulFamily}) {
    for (const KernelVariant* variant : testing::variants_of(*family)) all.push_back(variant);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, BinaryF32eVariant, ::testing::ValuesIn(all_variants()),
                         testing::variant_test_name);

TEST_P(BinaryF32eVariant, EqualsTheExactFormulaForEqualShapesAroundTheVectorWidth) {
  for (int64_t count = 1; count <= 140 && !HasFailure(); ++count) {
    BinarySpec spec;
    spec.a = spec.b = spec.output = {count};
    expect_exact_of_both_dtypes(spec, static_cast<uint64_t>(count));
  }
}

TEST_P(BinaryF32eVariant, EqualsTheExactFormulaAcrossWorkItems) {
  for (uint64_t seed = 500; seed < 520 && !HasFailure(); ++seed) {
    BinarySpec spec;
    spec.a = spec.b = spec.output = {3, 5000, 2};
    if (seed % 2 != 0) spec.b = {5000, 1};
    expect_exact_of_both_dtypes(spec, seed);
  }
}

TEST_P(BinaryF32eVariant, BroadcastsLikeNumPy) {
  for (uint64_t seed = 1000; seed <= 1200 && !HasFailure(); ++seed) {
    Random random(seed);
    BinarySpec spec;
    testing::draw_broadcast(random, &spec);
    expect_exact_of_both_dtypes(spec, seed);
  }
}

TEST_P(BinaryF32eVariant, TiesGoToTheEvenNeighbour) {
  BinarySpec spec;
  spec.family = &family();
  spec.a = spec.b = spec.output = {6};
  spec.result = {2.0f, 10};
  const bool is_mul = family().id == kKernel_mul;
  // Sums, differences and products 1 3 5 -1 -3 254, halved.
  const std::vector<int8_t> a = {1, 3, 5, -1, -3, 127};
  const std::vector<int8_t> b(6, is_mul ? int8_t{1} : int8_t{0});
  TestStep step = spec.make_of<int8_t>(a, b);
  ASSERT_TRUE(testing::run_step(step, family(), *GetParam(), 1));
  EXPECT_EQ(testing::output_values<int8_t>(step), (std::vector<int8_t>{10, 12, 12, 10, 8, 74}));
}

TEST(BinaryF32e, BindRefusesWhatIsWrong) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const KernelFamily* family : {&kAddFamily, &kSubFamily, &kMulFamily}) {
    const auto change = [family](std::function<void(BinarySpec&)> apply) {
      return [family, apply](BinarySpec& spec) {
        spec.family = family;
        apply(spec);
      };
    };
    const std::vector<testing::Refusal<BinarySpec>> refusals = {
        {change([](BinarySpec& s) { s.input1.scale = 0.0f; }), "input1_scale is not in (0, 2^100]"},
        {change([](BinarySpec& s) { s.input1.scale = 0x1.000002p100f; }), "input1_scale is not in"},
        {change([&](BinarySpec& s) { s.input1.scale = nan; }), "input1_scale is not in"},
        {change([](BinarySpec& s) { s.input2.scale = -1.0f; }), "input2_scale is not in"},
        {change([&](BinarySpec& s) { s.input2.scale = infinity; }), "input2_scale is not in"},
        {change([&](BinarySpec& s) { s.result.scale = nan; }), "output_scale is not in"},
        {change([](BinarySpec& s) { s.result.scale = 0.0f; }), "output_scale is not in"},
        {change([](BinarySpec& s) { s.input1.zero_point = 128; }), "input1_zero_point"},
        {change([](BinarySpec& s) { s.input2.zero_point = -129; }), "input2_zero_point"},
        {change([](BinarySpec& s) { s.result.zero_point = INT32_MIN; }), "output_zero_point"},
        {change([](BinarySpec& s) { s.clamp_min = -129; }), "clamp_min"},
    };
    testing::expect_refusals(*family, refusals);
  }
}

}  // namespace
}  // namespace qplan::binary_f32e_test
