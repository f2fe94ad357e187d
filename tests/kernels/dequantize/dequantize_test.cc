// Every variant of dequantize against the product of the reals, rounded once.
#include "kernels/dequantize/dequantize.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

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

TEST(Dequantize, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<DequantizeSpec>(kDequantizeFamily, {
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 16; }; }, "input"},
    {[](DequantizeSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "output"},
    {[](DequantizeSpec& s) { s.output = {3, 2}; }, "another shape"},
    {[](DequantizeSpec& s) { s.scale = 0.0f; }, "scale"},
    {[](DequantizeSpec& s) { s.scale = INFINITY; }, "scale"},
    {[](DequantizeSpec& s) { s.scale = NAN; }, "scale"},
    {[](DequantizeSpec& s) { s.zero_point = -129; }, "zero_point"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::dequantize_test
