#include <gtest/gtest.h>

#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::gather_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

// The positions of each axis in full; `affine` are written as begin and step, the others as a list.
struct GatherSpec {
  Extents input = {2, 7};
  std::vector<std::vector<int32_t>> positions = {{0, 1}, {6, 4, 2}};
  std::vector<bool> affine = {true, true};
  std::function<void(TestStep&)> tweak;
  std::function<void(std::vector<uint32_t>& begin, std::vector<int32_t>& step, uint32_t& tables)>
      tweak_params;
  std::function<void(std::vector<int32_t>& lists)> tweak_lists;

  Extents output() const {
    Extents shape;
    for (const auto& axis : positions) shape.push_back(std::ssize(axis));
    return shape;
  }
  template <typename T>
  TestStep make_of(const std::vector<T>& values) const {
    std::vector<uint32_t> begin;
    std::vector<int32_t> step, lists;
    uint32_t tables = 0;
    for (size_t axis = 0; axis < positions.size(); ++axis) {
      const std::vector<int32_t>& p = positions[axis];
      begin.push_back(affine[axis] ? static_cast<uint32_t>(p[0]) : 0);
      step.push_back(affine[axis] && p.size() > 1 ? p[1] - p[0] : 1);
      if (affine[axis]) continue;
      tables |= 1u << axis;
      lists.insert(lists.end(), p.begin(), p.end());
    }
    if (tweak_params) tweak_params(begin, step, tables);
    if (tweak_lists) tweak_lists(lists);
    TestStep made(kKernel_gather);
    made.input<T>(input, values);
    if (!lists.empty()) made.constant<int32_t>({std::ssize(lists)}, lists);
    made.output<T>(output());
    if (tweak) tweak(made);
    const auto params = format::CreateGatherParamsDirect(made.builder(), &begin, &step, tables);
    made.finish(format::KernelParams_GatherParams, params.Union());
    return made;
  }
  void make(TestStep& step) const {
    step = make_of<int8_t>(std::vector<int8_t>(testing::num_elements(input)));
  }
};

// Any positions of each axis: a slice with a step of either sign, or a list.
GatherSpec random_spec(Random& random) {
  GatherSpec spec;
  spec.input = testing::random_shape(random, random.integer(0, 6), 5);
  spec.positions.clear();
  spec.affine.clear();
  for (const int64_t extent : spec.input) {
    std::vector<int32_t>& axis = spec.positions.emplace_back();
    const bool is_list = random.chance(0.3);
    spec.affine.push_back(!is_list);
    if (is_list) {
      const int64_t count = random.integer(1, 6);
      for (int64_t i = 0; i < count; ++i) axis.push_back(static_cast<int32_t>(random.integer(0, extent - 1)));
      continue;
    }
    if (random.chance(0.4)) {  // the whole axis
      for (int64_t i = 0; i < extent; ++i) axis.push_back(static_cast<int32_t>(i));
      continue;
    }
    const int64_t step = random.integer(-2, 3);
    int64_t at = random.integer(0, extent - 1);
    do {
      axis.push_back(static_cast<int32_t>(at));
      at += step;
    } while (at >= 0 && at < extent && axis.size() < 5);
  }
  return spec;
}

class GatherVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  template <typename T>
  void expect_gathered(uint64_t seed) {
    Random random(seed);
    const GatherSpec spec = random_spec(random);
    const auto x = random.integers<T>(testing::num_elements(spec.input), -100, 100);
    TestStep step = spec.make_of<T>(x);
    if (!testing::run_step(step, kGatherFamily, *GetParam(), seed)) return;
    std::vector<T> expected;
    testing::for_each_position(spec.output(), [&](Extents at) {
      for (size_t axis = 0; axis < at.size(); ++axis) {
        at[axis] = spec.positions[axis][static_cast<size_t>(at[axis])];
      }
      int64_t index = 0;
      for (size_t axis = 0; axis < at.size(); ++axis) index = index * spec.input[axis] + at[axis];
      expected.push_back(x[static_cast<size_t>(index)]);
    });
    EXPECT_EQ(testing::output_values<T>(step), expected) << "seed " << seed;
  }
};

INSTANTIATE_TEST_SUITE_P(All, GatherVariant, ::testing::ValuesIn(testing::variants_of(kGatherFamily)),
                         testing::variant_test_name);

TEST_P(GatherVariant, ReadsAnyPositionsOfAnyDtype) {
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    expect_gathered<uint8_t>(seed);
    expect_gathered<int16_t>(seed);
    expect_gathered<float>(seed);
    expect_gathered<int64_t>(seed);
  }
}

TEST_P(GatherVariant, LeavesWhatIsInItsPlace) {
  std::vector<uint8_t> input = {1, 2, 3, 4, 5};
  GatherArgs args;
  args.input = args.output = input.data() + 1;
  args.block_bytes = 3;
  testing::run_variant(*GetParam(), &args);
  EXPECT_EQ(input, (std::vector<uint8_t>{1, 2, 3, 4, 5}));
}

// Where the output begins in the input; -1: it is not one range of it.
int64_t place(Extents input, std::vector<std::vector<int32_t>> positions, std::vector<bool> affine) {
  GatherSpec spec;
  spec.input = std::move(input);
  spec.positions = std::move(positions);
  spec.affine = std::move(affine);
  const TestStep step = spec.make_of<int16_t>(std::vector<int16_t>(testing::num_elements(spec.input)));
  uint64_t offset = 0;
  return kGatherFamily.part(step.view(), 0, 0, &offset) ? static_cast<int64_t>(offset) : -1;
}

TEST(Gather, ASliceThatIsOneRangeIsAPartOfTheInput) {
  EXPECT_EQ(place({7, 3}, {{2, 3, 4}, {0, 1, 2}}, {true, true}), 12);
  EXPECT_EQ(place({2, 5, 2}, {{1}, {1, 2, 3}, {0, 1}}, {true, true, true}), 24);
  EXPECT_EQ(place({4}, {{3}}, {true}), 6);
  EXPECT_EQ(place({7, 3}, {{2, 3, 4}, {0, 1}}, {true, true}), -1);
  EXPECT_EQ(place({7, 3}, {{2, 4}, {0, 1, 2}}, {true, true}), -1);
  EXPECT_EQ(place({4}, {{3, 2}}, {true}), -1);
  EXPECT_EQ(place({4}, {{1, 2}}, {false}), -1);
}

TEST(Gather, BindRefusesWhatIsWrong) {
  using Begin = std::vector<uint32_t>;
  using Step = std::vector<int32_t>;
  const auto with_list = [](GatherSpec& s) { s.affine[1] = false; };
  // clang-format off
  testing::expect_refusals<GatherSpec>(kGatherFamily, {
    {[](GatherSpec& s) { s.tweak = [](TestStep& t) { t.outputs().clear(); }; }, "outputs"},
    {[](GatherSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "inputs"},
    {[](GatherSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_bits = 4; }; }, "input"},
    {[](GatherSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 1; }; }, "output"},
    {[](GatherSpec& s) { s.positions.push_back({0}); s.affine.push_back(true); }, "rank"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin& b, Step&, uint32_t&) { b.pop_back(); }; }, "1 and 2 entries"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step& v, uint32_t&) { v.push_back(1); }; }, "2 and 3 entries"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step&, uint32_t& t) { t = 4; };
                         s.tweak_lists = [](Step& l) { l = {0}; }; }, "tables is 4"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin& b, Step&, uint32_t&) { b[0] = 2; }; }, "position 2 of axis 0"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin& b, Step&, uint32_t&) { b[0] = UINT32_MAX; }; }, "position 4294967295 of axis 0"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step& v, uint32_t&) { v[0] = 2; }; }, "position 2 of axis 0"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step& v, uint32_t&) { v[1] = -4; }; }, "position -2 of axis 1"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step& v, uint32_t&) { v[1] = INT32_MIN; }; }, "position -4294967290 of axis 1"},
    {[](GatherSpec& s) { s.tweak_params = [](Begin&, Step&, uint32_t& t) { t = 2; }; }, "inputs"},
    {[&](GatherSpec& s) { with_list(s); s.tweak_lists = [](Step& l) { l[2] = 7; }; }, "position 7 of axis 1"},
    {[&](GatherSpec& s) { with_list(s); s.tweak_lists = [](Step& l) { l[0] = -1; }; }, "position -1 of axis 1"},
    {[&](GatherSpec& s) { with_list(s); s.tweak_lists = [](Step& l) { l.pop_back(); }; }, "positions"},
    {[&](GatherSpec& s) { with_list(s); s.tweak = [](TestStep& t) { t.tensor(1).bank = TestStep::kArenaBank; }; }, "is not a constant"},
  });
  // clang-format on
}

}  // namespace
}  // namespace qplan::gather_test
