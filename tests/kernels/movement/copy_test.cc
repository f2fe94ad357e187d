#include <gtest/gtest.h>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::copy_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct CopySpec {
  Extents input = {2, 3};
  Extents output = {3, 1, 2};
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_copy);
    step.input<T>(input, values);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_NoParams, format::CreateNoParams(step.builder()).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class CopyVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_copied(const CopySpec& spec, uint64_t seed) {
    Random random(seed);
    const auto x = random.integers<T>(testing::num_elements(spec.input), -100, 100);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kCopyFamily, *GetParam(), seed)) return;
    EXPECT_EQ(testing::output_values<T>(step), x);
  }
};

INSTANTIATE_TEST_SUITE_P(All, CopyVariant, ::testing::ValuesIn(testing::variants_of(kCopyFamily)),
                         testing::variant_test_name);

TEST_P(CopyVariant, MovesAllDtypes) {
  for (const CopySpec& spec : {CopySpec(), CopySpec{{10000, 3}, {3, 10000}, {}}, CopySpec{{}, {1, 1}, {}}}) {
    expect_copied<uint8_t>(spec, 1);
    expect_copied<int8_t>(spec, 2);
    expect_copied<int16_t>(spec, 3);
    expect_copied<int32_t>(spec, 4);
    expect_copied<int64_t>(spec, 5);
    expect_copied<float>(spec, 6);
  }
}

TEST(Copy, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<CopySpec>(kCopyFamily, {
    {[](CopySpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 1"},
    {[](CopySpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 4; }; }, "input"},
    {[](CopySpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](CopySpec& s) { s.output = {7}; }, "bytes"},
    {[](CopySpec& s) { s.output = {0}; }, "extent 0"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::copy_test
