#include <gtest/gtest.h>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::lut8_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct Lut8Spec {
  Extents input = {2, 3};
  Extents output = {2, 3};
  int64_t entries = 256;
  std::function<void(TestStep&)> tweak;

  template <typename In, typename Out>
  TestStep make_of(const std::vector<In>& values, const std::vector<Out>& table) const {
    TestStep step(kKernel_lut8);
    step.input<In>(input, values);
    step.constant<Out>({entries}, table);
    step.output<Out>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_Lut8Params, format::CreateLut8Params(step.builder()).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t, uint8_t>(std::vector<int8_t>(testing::num_elements(input)),
                                    std::vector<uint8_t>(entries));
  }
};

class Lut8Variant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename In, typename Out>
  void expect_looked_up(int64_t count, uint64_t seed) {
    Random random(seed);
    Lut8Spec spec;
    spec.input = spec.output = {count};
    const auto x = random.full_range<In>(count);
    const auto table = random.full_range<Out>(256);
    TestStep step = spec.make_of<In, Out>(x, table);
    if (!testing::run_step(step, kLut8Family, *GetParam(), seed)) return;
    std::vector<Out> expected;
    for (const In value : x) expected.push_back(table[value < 0 ? value + 256 : value]);
    EXPECT_EQ(testing::output_values<Out>(step), expected) << "count " << count << ", seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, Lut8Variant, ::testing::ValuesIn(testing::variants_of(kLut8Family)),
                         testing::variant_test_name);

TEST_P(Lut8Variant, LooksUpEveryByteOfBothDtypes) {
  for (int64_t count = 1; count <= 300 && !HasFailure(); ++count) {
    const uint64_t seed = static_cast<uint64_t>(count);
    expect_looked_up<uint8_t, uint8_t>(count, seed);
    expect_looked_up<int8_t, uint8_t>(count, seed);
    expect_looked_up<uint8_t, int8_t>(count, seed);
    expect_looked_up<int8_t, int8_t>(count, seed);
  }
  expect_looked_up<int8_t, int8_t>(20000, 1);
}

TEST(Lut8, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<Lut8Spec>(kLut8Family, {
    {[](Lut8Spec& s) { s.tweak = [](TestStep& t) { t.inputs().pop_back(); }; }, "expected 2"},
    {[](Lut8Spec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 2; }; }, "input"},
    {[](Lut8Spec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_bits = 16; }; }, "output"},
    {[](Lut8Spec& s) { s.output = {3, 2}; }, "another shape"},
    {[](Lut8Spec& s) { s.entries = 255; }, "table"},
    {[](Lut8Spec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "table"},
    {[](Lut8Spec& s) { s.tweak = [](TestStep& t) { t.tensor(1).bank = TestStep::kArenaBank; }; },
     "table is not a constant"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::lut8_test
