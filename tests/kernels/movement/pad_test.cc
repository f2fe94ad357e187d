#include <gtest/gtest.h>

#include <bit>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::pad_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct PadSpec {
  Extents input = {2, 3};
  Extents output = {4, 3};
  std::vector<uint32_t> before = {1, 0};
  int32_t value = 7;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_pad);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_PadParams,
                format::CreatePadParamsDirect(step.builder(), &before, value).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class PadVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_padded(const PadSpec& spec, T value, uint64_t seed) {
    Random random(seed);
    const auto x = random.integers<T>(testing::num_elements(spec.input), -100, 100);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kPadFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](Extents at) {
      bool inside = true;
      for (size_t axis = 0; axis < at.size(); ++axis) {
        at[axis] -= spec.before[axis];
        inside = inside && at[axis] >= 0 && at[axis] < spec.input[axis];
      }
      expected.push_back(inside ? x[testing::broadcast_index(spec.input, at)] : value);
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, PadVariant, ::testing::ValuesIn(testing::variants_of(kPadFamily)),
                         testing::variant_test_name);

TEST_P(PadVariant, PadsAnyAxesOfAnyDtype) {
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    Random random(seed);
    PadSpec spec;
    spec.input = testing::random_shape(random, random.integer(0, 6), 4);
    spec.output = spec.input;
    spec.before.clear();
    for (int64_t& extent : spec.output) {
      const bool padded = random.chance(0.5);
      spec.before.push_back(padded ? static_cast<uint32_t>(random.integer(0, 2)) : 0);
      if (padded) extent += spec.before.back() + random.integer(0, 2);
    }
    spec.value = static_cast<int32_t>(random.integer(0, 127));
    expect_padded<uint8_t>(spec, static_cast<uint8_t>(spec.value), seed);
    spec.value = -spec.value;
    expect_padded<int8_t>(spec, static_cast<int8_t>(spec.value), seed);
    expect_padded<int16_t>(spec, static_cast<int16_t>(spec.value), seed);
    spec.value *= 10000000;
    expect_padded<int32_t>(spec, spec.value, seed);
    expect_padded<int64_t>(spec, spec.value, seed);
    const float real = static_cast<float>(random.unit());
    spec.value = std::bit_cast<int32_t>(real);
    expect_padded<float>(spec, real, seed);
  }
}

TEST(Pad, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<PadSpec>(kPadFamily, {
    {[](PadSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](PadSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 4; }; }, "input"},
    {[](PadSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](PadSpec& s) { s.output = {4, 3, 1}; }, "rank"},
    {[](PadSpec& s) { s.before = {1}; }, "before has 1"},
    {[](PadSpec& s) { s.before = {1, 0, 0}; }, "before has 3"},
    {[](PadSpec& s) { s.before = {3, 0}; }, "less than before + input"},
    {[](PadSpec& s) { s.before = {UINT32_MAX, 0}; }, "less than before + input"},
    {[](PadSpec& s) { s.output = {4, 2}; }, "less than before + input"},
    {[](PadSpec& s) { s.value = 128; }, "value 128"},
    {[](PadSpec& s) { s.value = -129; }, "value -129"},
    {[](PadSpec& s) {
       s.before = {0, 1, 0};
       s.input = {1, 1, 1};
       s.output = {1, 2, 2};
       s.tweak = [](TestStep& t) {
         t.tensor(0).shape = {1 << 30, 1, 1};
         t.tensor(0).size = uint64_t{1} << 30;
         t.tensor(1).shape = {1 << 30, 2, 2};
         t.tensor(1).size = uint64_t{1} << 32;
       };
     },
     "number of rows"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::pad_test
