#include <gtest/gtest.h>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::concat_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

struct ConcatSpec {
  std::vector<Extents> inputs = {{2, 3}, {2, 4}};
  Extents output = {2, 7};
  uint32_t axis = 1;
  std::function<void(TestStep&)> tweak;

  template <typename T>
  TestStep make_of(const std::vector<std::vector<T>>& values) const {
    TestStep step(kKernel_concat);
    for (size_t i = 0; i < inputs.size(); ++i) step.input<T>(inputs[i], values[i]);
    step.output<T>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_ConcatParams, format::CreateConcatParams(step.builder(), axis).Union());
    return step;
  }
  void make(TestStep& step) const {
    std::vector<std::vector<int8_t>> values;
    for (const Extents& input : inputs) values.emplace_back(testing::num_elements(input));
    step = make_of<int8_t>(values);
  }
};

class ConcatVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_concatenated(uint64_t seed) {
    Random random(seed);
    ConcatSpec spec;
    spec.output = testing::random_shape(random, random.integer(1, 6), 5);
    spec.axis = static_cast<uint32_t>(random.integer(0, std::ssize(spec.output) - 1));
    spec.output[spec.axis] = 0;
    spec.inputs.clear();
    const int64_t count = random.chance(0.1) ? ConcatArgs::kMaxInputs : random.integer(1, 5);
    std::vector<std::vector<T>> values;
    for (int64_t i = 0; i < count; ++i) {
      Extents input = spec.output;
      input[spec.axis] = random.integer(1, 5);
      values.push_back(random.integers<T>(testing::num_elements(input), -100, 100));
      spec.inputs.push_back(input);
    }
    for (const Extents& input : spec.inputs) spec.output[spec.axis] += input[spec.axis];
    TestStep step = spec.make_of<T>(values);
    if (!testing::run_step(step, kConcatFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output, [&](Extents at) {
      size_t i = 0;
      while (at[spec.axis] >= spec.inputs[i][spec.axis]) at[spec.axis] -= spec.inputs[i++][spec.axis];
      expected.push_back(values[i][testing::broadcast_index(spec.inputs[i], at)]);
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, ConcatVariant, ::testing::ValuesIn(testing::variants_of(kConcatFamily)),
                         testing::variant_test_name);

TEST_P(ConcatVariant, PutsInputsSideBySideOfAnyDtypeAndAxis) {
  for (uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    expect_concatenated<uint8_t>(seed);
    expect_concatenated<int16_t>(seed);
    expect_concatenated<float>(seed);
    expect_concatenated<int64_t>(seed);
  }
}

// Where each input begins in the output; -1: it is not one range of it.
std::vector<int64_t> places(std::vector<Extents> inputs, Extents output, uint32_t axis) {
  ConcatSpec spec;
  spec.inputs = std::move(inputs);
  spec.output = std::move(output);
  spec.axis = axis;
  std::vector<std::vector<int16_t>> values;
  for (const Extents& input : spec.inputs) values.emplace_back(testing::num_elements(input));
  const TestStep step = spec.make_of<int16_t>(values);
  std::vector<int64_t> result;
  for (uint32_t i = 0; i < spec.inputs.size(); ++i) {
    uint64_t offset = 0;
    const bool is_part = kConcatFamily.part(step.view(), 0, i, &offset);
    result.push_back(is_part ? static_cast<int64_t>(offset) : -1);
  }
  return result;
}

TEST(Concat, InputsArePartsWhereNoAxisBeforeHasMoreThanOnePosition) {
  EXPECT_EQ(places({{2, 3}, {4, 3}, {1, 3}}, {7, 3}, 0), (std::vector<int64_t>{0, 12, 36}));
  EXPECT_EQ(places({{1, 1, 5, 2}, {1, 1, 1, 2}}, {1, 1, 6, 2}, 2), (std::vector<int64_t>{0, 20}));
  EXPECT_EQ(places({{1, 2, 5}, {1, 2, 1}}, {1, 2, 6}, 2), (std::vector<int64_t>{-1, -1}));
}

TEST_P(ConcatVariant, LeavesWhatIsInItsPlace) {
  std::vector<uint8_t> output = {1, 2, 3, 90, 91, 6, 7}, apart = {4, 5};
  ConcatArgs args;
  args.output = output.data();
  args.output_row_bytes = 7;
  args.num_inputs = 3;
  args.inputs[0] = output.data();
  args.inputs[1] = apart.data();
  args.inputs[2] = output.data() + 5;
  args.row_bytes[0] = 3;
  args.row_bytes[1] = args.row_bytes[2] = 2;
  testing::run_variant(*GetParam(), &args);
  EXPECT_EQ(output, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7}));
}

TEST(Concat, BindRefusesWhatIsWrong) {
  // clang-format off
  testing::expect_refusals<ConcatSpec>(kConcatFamily, {
    {[](ConcatSpec& s) { s.tweak = [](TestStep& t) { t.inputs().clear(); }; }, "number of inputs 0"},
    {[](ConcatSpec& s) { s.inputs.assign(25, {2, 1}); s.output = {2, 25}; }, "number of inputs 25"},
    {[](ConcatSpec& s) { s.tweak = [](TestStep& t) { t.outputs().push_back(2); }; }, "outputs"},
    {[](ConcatSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_bits = 4; }; }, "output"},
    {[](ConcatSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "input"},
    {[](ConcatSpec& s) { s.axis = 2; }, "axis 2"},
    {[](ConcatSpec& s) { s.axis = UINT32_MAX; }, "axis 4294967295"},
    {[](ConcatSpec& s) { s.inputs = {{}}; s.output = {}; s.axis = 0; }, "axis 0"},
    {[](ConcatSpec& s) { s.inputs[0] = {6}; }, "rank"},
    {[](ConcatSpec& s) { s.inputs[0] = {3, 3}; }, "another axis"},
    {[](ConcatSpec& s) { s.output = {2, 6}; }, "the inputs together 7"},
    {[](ConcatSpec& s) {
       s.axis = 2;
       s.inputs = {{1, 1, 1}};
       s.output = {1, 1, 1};
       s.tweak = [](TestStep& t) {
         for (uint32_t i = 0; i < 2; ++i) {
           t.tensor(i).shape = {65536, 65536, 1};
           t.tensor(i).size = uint64_t{1} << 32;
         }
       };
     },
     "number of rows"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::concat_test
