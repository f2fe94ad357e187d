#include <gtest/gtest.h>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::split_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct SplitSpec {
  Extents input = {2, 7};
  std::vector<Extents> outputs = {{2, 3}, {2, 4}};
  uint32_t axis = 1;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    TestStep step(kKernel_split);
    step.input<T>(input, values);
    for (const Extents& output : outputs) step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_SplitParams, format::CreateSplitParams(step.builder(), axis).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

class SplitVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_split(uint64_t seed) {
    Random random(seed);
    SplitSpec spec;
    spec.input = testing::random_shape(random, random.integer(1, 6), 5);
    spec.axis = static_cast<uint32_t>(random.integer(0, std::ssize(spec.input) - 1));
    spec.input[spec.axis] = 0;
    spec.outputs.clear();
    const int64_t count = random.chance(0.1) ? SplitArgs::kMaxOutputs : random.integer(1, 5);
    for (int64_t i = 0; i < count; ++i) {
      Extents output = spec.input;
      output[spec.axis] = random.integer(1, 5);
      spec.outputs.push_back(output);
    }
    for (const Extents& output : spec.outputs) spec.input[spec.axis] += output[spec.axis];
    const auto x = random.integers<T>(testing::num_elements(spec.input), -100, 100);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kSplitFamily, *GetParam(), seed)) return;
    int64_t before = 0;
    for (uint32_t o = 0; o < spec.outputs.size(); ++o) {
      std::vector<T> expected;
      testing::for_each_position(spec.outputs[o], [&](Extents at) {
        at[spec.axis] += before;
        expected.push_back(x[testing::broadcast_index(spec.input, at)]);
      });
      EXPECT_EQ(testing::output_values<T>(step, o), expected) << "output " << o << " seed " << seed;
      before += spec.outputs[o][spec.axis];
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, SplitVariant, ::testing::ValuesIn(testing::variants_of(kSplitFamily)),
                         testing::variant_test_name);

TEST_P(SplitVariant, CutsAnyDtypeAlongAnyAxis) {
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    expect_split<uint8_t>(seed);
    expect_split<int16_t>(seed);
    expect_split<float>(seed);
    expect_split<int64_t>(seed);
  }
}

// Where each output begins in the input; -1: it is not one range of it.
std::vector<int64_t> places(Extents input, std::vector<Extents> outputs, uint32_t axis) {
  SplitSpec spec;
  spec.input = std::move(input);
  spec.outputs = std::move(outputs);
  spec.axis = axis;
  const TestStep step = spec.make_of<int16_t>(std::vector<int16_t>(testing::num_elements(spec.input)));
  std::vector<int64_t> result;
  for (uint32_t o = 0; o < spec.outputs.size(); ++o) {
    uint64_t offset = 0;
    const bool is_part = kSplitFamily.part(step.view(), o, 0, &offset);
    result.push_back(is_part ? static_cast<int64_t>(offset) : -1);
  }
  return result;
}

TEST(Split, OutputsArePartsWhereNoAxisBeforeHasMoreThanOnePosition) {
  EXPECT_EQ(places({7, 3}, {{2, 3}, {4, 3}, {1, 3}}, 0), (std::vector<int64_t>{0, 12, 36}));
  EXPECT_EQ(places({1, 1, 6, 2}, {{1, 1, 5, 2}, {1, 1, 1, 2}}, 2), (std::vector<int64_t>{0, 20}));
  EXPECT_EQ(places({1, 2, 6}, {{1, 2, 5}, {1, 2, 1}}, 2), (std::vector<int64_t>{-1, -1}));
}

TEST_P(SplitVariant, LeavesWhatIsInItsPlace) {
  std::vector<uint8_t> input = {1, 2, 3, 4, 5, 6, 7}, apart = {90, 91};
  SplitArgs args;
  args.input = input.data();
  args.input_row_bytes = 7;
  args.num_outputs = 3;
  args.outputs[0] = input.data();
  args.outputs[1] = apart.data();
  args.outputs[2] = input.data() + 5;
  args.row_bytes[0] = 3;
  args.row_bytes[1] = args.row_bytes[2] = 2;
  testing::run_variant(*GetParam(), &args);
  EXPECT_EQ(input, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(apart, (std::vector<uint8_t>{4, 5}));
}

TEST(Split, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<SplitSpec>(kSplitFamily, {
    {[](SplitSpec& s) { s.tweak = [](TestStep& t) { t.outputs().clear(); }; }, "number of outputs 0"},
    {[](SplitSpec& s) { s.outputs.assign(25, {2, 1}); s.input = {2, 25}; }, "number of outputs 25"},
    {[](SplitSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "inputs"},
    {[](SplitSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 4; }; }, "input"},
    {[](SplitSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](SplitSpec& s) { s.axis = 2; }, "axis 2"},
    {[](SplitSpec& s) { s.outputs[1] = {8}; }, "rank"},
    {[](SplitSpec& s) { s.outputs[1] = {1, 4}; }, "another axis"},
    {[](SplitSpec& s) { s.outputs[1] = {2, 3}; }, "the outputs together 6"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::split_test
