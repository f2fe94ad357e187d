// prelu: every variant has the numbers of the formula, whose multiplications are written out here.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::prelu_test {
namespace {

using testing::ArgsStorage;
using testing::Extents;
using testing::Random;
using testing::TestStep;

// v * multiplier / 2^31, rounded with halves up, and then / 2^-shift, rounded with halves away from zero.
int64_t scaled(int64_t v, int32_t multiplier, int32_t shift) {
  const int64_t high = ((v << std::max(shift, 0)) * multiplier + (int64_t{1} << 30)) >> 31;
  if (shift >= 0) return high;
  const int64_t half = int64_t{1} << (-shift - 1);
  return high < 0 ? -((-high + half) >> -shift) : (high + half) >> -shift;
}

struct Prelu {
  Extents input, alpha;
  int32_t low = -128, input_zero = 0, alpha_zero = 0, output_zero = 0;
  int32_t above_multiplier = 0, above_shift = 0, below_multiplier = 0, below_shift = 0;
  std::vector<int32_t> x, factor;

  static Prelu random(uint64_t seed, bool is_16_bit) {
    Random random(seed);
    Prelu prelu;
    const bool is_signed = is_16_bit || random.chance(0.5);
    prelu.low = is_16_bit ? -32768 : is_signed ? -128 : 0;
    const int32_t most = is_16_bit ? 32767 : prelu.low + 255;
    const auto number = [&] { return static_cast<int32_t>(random.integer(prelu.low, most)); };
    prelu.input = testing::random_shape(random, static_cast<size_t>(random.integer(1, 4)), 12);
    prelu.input.back() = random.integer(1, 70);
    prelu.alpha = prelu.input;
    for (size_t i = 0; i + 1 < prelu.alpha.size(); ++i)
      prelu.alpha[i] = random.chance(0.7) ? 1 : prelu.alpha[i];
    if (!is_16_bit) prelu.input_zero = number(), prelu.alpha_zero = number(), prelu.output_zero = number();
    const auto multiplier = [&] { return static_cast<int32_t>(random.integer(1 << 30, INT32_MAX)); };
    prelu.above_multiplier = multiplier(), prelu.below_multiplier = multiplier();
    prelu.above_shift = static_cast<int32_t>(random.integer(-3, 2));
    prelu.below_shift = static_cast<int32_t>(random.integer(-12, -5));
    for (int64_t i = 0; i < testing::num_elements(prelu.input); ++i) prelu.x.push_back(number());
    for (int64_t i = 0; i < testing::num_elements(prelu.alpha); ++i) prelu.factor.push_back(number());
    return prelu;
  }

  template <typename T>
  void make(TestStep& step) const {
    step.input<T>(input, std::vector<T>(x.begin(), x.end()));
    step.input<T>(alpha, std::vector<T>(factor.begin(), factor.end()));
    step.output<T>(input);
    step.finish(format::KernelParams_PreluParams,
                format::CreatePreluParams(step.builder(), input_zero, alpha_zero, output_zero,
                                          above_multiplier, above_shift, below_multiplier, below_shift)
                    .Union());
  }

  template <typename T>
  std::vector<T> expected() const {
    std::vector<T> all;
    size_t i = 0;
    testing::for_each_position(input, [&](const Extents& at) {
      const int64_t v = int64_t{x[i++]} - input_zero;
      const int64_t f = factor[static_cast<size_t>(testing::broadcast_index(alpha, at))] - alpha_zero;
      const int64_t y =
          v >= 0 ? scaled(v, above_multiplier, above_shift) : scaled(v * f, below_multiplier, below_shift);
      const int64_t most = low == 0 ? 255 : -int64_t{low} - 1;
      all.push_back(static_cast<T>(std::clamp<int64_t>(y + output_zero, low, most)));
    });
    return all;
  }
};

class PreluVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  static void expect_formula(const Prelu& prelu, uint64_t seed) {
    TestStep step(kKernel_prelu);
    prelu.make<T>(step);
    const bool ran = testing::run_step(step, kPreluFamily, *GetParam(), seed);
    // Vector variants leave int16 to the reference.
    ASSERT_TRUE(ran || (sizeof(T) == 2 && GetParam()->isa != QPLAN_ISA_REFERENCE)) << "seed " << seed;
    if (!ran) return;
    ASSERT_EQ(testing::output_values<T>(step), prelu.expected<T>()) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, PreluVariant, ::testing::ValuesIn(testing::variants_of(kPreluFamily)),
                         testing::variant_test_name);

TEST_P(PreluVariant, HasTheNumbersOfTheFormula) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    const Prelu prelu = Prelu::random(seed, seed % 6 == 0);
    if (seed % 6 == 0) {
      expect_formula<int16_t>(prelu, seed);
    } else if (prelu.low == 0) {
      expect_formula<uint8_t>(prelu, seed);
    } else {
      expect_formula<int8_t>(prelu, seed);
    }
  }
}

TEST(Prelu, BindRefusesWhatIsWrong) {
  struct Spec {
    Prelu prelu = Prelu::random(1, false);
    Extents output = prelu.input;

    void make(TestStep& step) const {
      step.input<int8_t>(prelu.input, std::vector<int8_t>(prelu.x.size()));
      step.input<int8_t>(prelu.alpha, std::vector<int8_t>(prelu.factor.size()));
      step.output<int8_t>(output);
      step.finish(format::KernelParams_PreluParams,
                  format::CreatePreluParams(step.builder(), prelu.input_zero, prelu.alpha_zero,
                                            prelu.output_zero, prelu.above_multiplier, prelu.above_shift,
                                            prelu.below_multiplier, prelu.below_shift)
                      .Union());
    }
  };
  Spec sound;
  sound.prelu.input_zero = sound.prelu.alpha_zero = sound.prelu.output_zero = 0;
  std::vector<testing::Refusal<Spec>> refusals;
  const auto add = [&](void (*edit)(Spec&), const char* text) {
    refusals.push_back({[sound, edit](Spec& spec) {
                          spec = sound;
                          edit(spec);
                        },
                        text});
  };
  add([](Spec& s) { s.output.back() += 1; }, "broadcast to");
  add([](Spec& s) { s.prelu.input_zero = 128; }, "input_zero_point 128");
  add([](Spec& s) { s.prelu.alpha_zero = -129; }, "alpha_zero_point -129");
  add([](Spec& s) { s.prelu.output_zero = 128; }, "output_zero_point 128");
  add([](Spec& s) { s.prelu.above_multiplier = -1; }, "above multiplier -1");
  add([](Spec& s) { s.prelu.below_multiplier = -1; }, "below multiplier -1");
  add([](Spec& s) { s.prelu.above_shift = 31; }, "above shift 31");
  add([](Spec& s) { s.prelu.below_shift = -32; }, "below shift -32");
  testing::expect_refusals(kPreluFamily, refusals);
}

}  // namespace
}  // namespace qplan::prelu_test
