// What a function keeps between runs: its values run after run, resets, and plans whose states are wrong.
#include <gtest/gtest.h>

#include "tests/runtime/counter_spec.h"
#include "tests/runtime/session_fixture.h"

namespace qplan::testing::states_test {
namespace {

using counter::counter_spec;
using enum counter::Tensor;

std::vector<uint8_t> run(qplan_session* session, std::vector<uint8_t> x) {
  HostTensor in({4}, std::move(x)), out({4}, std::vector<uint8_t>(4));
  EXPECT_EQ(qplan_session_write(session, 0, &in.tensor), QPLAN_OK);
  EXPECT_EQ(qplan_session_invoke(session), QPLAN_OK);
  EXPECT_EQ(qplan_session_read(session, 0, &out.tensor), QPLAN_OK);
  return out.bytes;
}

using Bytes = std::vector<uint8_t>;

TEST(States, ARunFindsWhatTheRunBeforeWrote) {
  for (const bool in_place : {false, true}) {
    const TestPlan plan(counter_spec(in_place, {1, 2, 3, 4}));
    const TestSession session(plan, config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    EXPECT_EQ(run(session.get(), {1, 1, 1, 1}), (Bytes{12, 13, 14, 15}));
    EXPECT_EQ(run(session.get(), {1, 2, 3, 4}), (Bytes{13, 15, 17, 19}));
    EXPECT_EQ(run(session.get(), {0, 0, 0, 0}), (Bytes{13, 15, 17, 19}));
  }
}

TEST(States, AResetBeginsAgain) {
  for (const bool in_place : {false, true}) {
    const TestPlan plan(counter_spec(in_place, {1, 2, 3, 4}));
    const TestSession session(plan, config_of());
    ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
    EXPECT_EQ(run(session.get(), {5, 5, 5, 5}), (Bytes{16, 17, 18, 19}));
    EXPECT_EQ(qplan_session_reset_state(session.get()), QPLAN_OK);
    EXPECT_EQ(run(session.get(), {5, 5, 5, 5}), (Bytes{16, 17, 18, 19}));
  }
}

TEST(States, WithoutAConstantEveryByteIsTheFill) {
  const TestPlan plan(counter_spec(false, {}, 0x80));
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  EXPECT_EQ(run(session.get(), {0, 1, 2, 3}), (Bytes{0x8a, 0x8b, 0x8c, 0x8d}));
}

TEST(States, TwoSessionsKeepTheirOwn) {
  const TestPlan plan(counter_spec(true, {}, 0));
  const TestSession a(plan, config_of()), b(plan, config_of());
  EXPECT_EQ(run(a.get(), {1, 1, 1, 1}), (Bytes{11, 11, 11, 11}));
  EXPECT_EQ(run(a.get(), {1, 1, 1, 1}), (Bytes{12, 12, 12, 12}));
  EXPECT_EQ(run(b.get(), {1, 1, 1, 1}), (Bytes{11, 11, 11, 11}));
}

TEST(States, TheNextValueMayBeAnOutputThatIsBoundElsewhere) {
  PlanSpec spec = counter_spec(false, {1, 2, 3, 4});
  spec.functions[0].outputs = {kOut, kNext};
  const TestPlan plan(spec);
  const TestSession session(plan, config_of());
  ASSERT_EQ(session.status(), QPLAN_OK) << session.text();
  HostTensor next({4}, Bytes(4));
  ASSERT_EQ(qplan_session_bind(session.get(), QPLAN_OUTPUT, 1, &next.tensor), QPLAN_OK)
      << session.last_error();
  EXPECT_EQ(run(session.get(), {1, 1, 1, 1}), (Bytes{12, 13, 14, 15}));
  EXPECT_EQ(next.bytes, (Bytes{2, 3, 4, 5}));
  EXPECT_EQ(run(session.get(), {1, 1, 1, 1}), (Bytes{13, 14, 15, 16}));
}

// ---- wrong plans ----

struct Wrong {
  const char* name;
  void (*change)(PlanSpec&);
  const char* text;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }
std::string name_of(const ::testing::TestParamInfo<Wrong>& wrong) { return wrong.param.name; }

class WrongStates : public ::testing::TestWithParam<Wrong> {};

// By open() or by init.
TEST_P(WrongStates, AreRefusedWithTheReason) {
  PlanSpec spec = counter_spec(false, {1, 2, 3, 4});
  GetParam().change(spec);
  const AlignedBytes bytes = build_plan(spec);
  qplan_plan plan = {};
  qplan_error error = empty_error();
  if (qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, &error) != QPLAN_OK) {
    EXPECT_EQ(std::string(error.text), GetParam().text);
    EXPECT_EQ(error.status, QPLAN_PLAN_CORRUPT);
    return;
  }
  const TestPlan opened(spec);
  const TestSession session(opened, config_of());
  EXPECT_EQ(session.status(), QPLAN_PLAN_CORRUPT);
  EXPECT_EQ(session.text(), GetParam().text);
}

StateSpec& state_of(PlanSpec& s) { return s.functions[0].states[0]; }

const Wrong kWrong[] = {
    {"NoFeatureBit", [](PlanSpec& s) { s.required_features = 0; },
     "plan: function 'main': has states, but the header lacks feature bit 1"},
    {"InputOutOfRange", [](PlanSpec& s) { state_of(s).input = 99; },
     "plan: function 'main': state 0: tensors 99, 2 and 4 of 5"},
    {"OutputOutOfRange", [](PlanSpec& s) { state_of(s).output = 5; },
     "plan: function 'main': state 0: tensors 1, 5 and 4 of 5"},
    {"InitialOutOfRange", [](PlanSpec& s) { state_of(s).initial = 5; },
     "plan: function 'main': state 0: tensors 1, 2 and 5 of 5"},
    {"SameTensorTwice", [](PlanSpec& s) { state_of(s).output = kState; },
     "plan: function 'main': state 0: tensors 1 and 1, expected two of the same dtype and shape"},
    {"OtherShape",
     [](PlanSpec& s) {
       s.tensors[kState].shape = {2, 2};
     },
     "plan: function 'main': state 0: tensors 1 and 2, expected two of the same dtype and shape"},
    {"OtherDtype", [](PlanSpec& s) { s.tensors[kState].code = 1; },
     "plan: function 'main': state 0: tensors 1 and 2, expected two of the same dtype and shape"},
    {"InitialOfOtherShape",
     [](PlanSpec& s) {
       s.tensors[4].shape = {4, 1};
     },
     "plan: function 'main': state 0: its initial value, tensor 4, is no constant of the dtype and shape of "
     "tensor 1"},
    {"InitialIsNoConstant", [](PlanSpec& s) { state_of(s).initial = kOut; },
     "plan: function 'main': state 0: its initial value, tensor 3, is no constant of the dtype and shape of "
     "tensor 1"},
    {"ConstantAsState", [](PlanSpec& s) { state_of(s).input = 4; },
     "plan: function 'main': state 0: tensors 4 and 2 are not both in an arena"},
    {"TooMany", [](PlanSpec& s) { s.functions[0].states.resize(257, state_of(s)); },
     "plan: function 'main': 257 states, expected at most 256"},
    {"StateIsAnInput", [](PlanSpec& s) { state_of(s).input = kX; },
     "session: state 0 (tensor 0) is an input or another state of the function, too"},
    {"StateTwice",
     [](PlanSpec& s) {
       s.functions[0].states.push_back({kState, kOut});
     },
     "session: state 1 (tensor 1) is an input or another state of the function, too"},
    {"NextIsAnInput", [](PlanSpec& s) { state_of(s).output = kX; },
     "session: tensor 0 of state 0 shares bytes with tensor 0, which the function reads or returns, too"},
    {"StateIsAnOutput", [](PlanSpec& s) { s.functions[0].outputs = {kState}; },
     "session: tensor 1 of state 0 shares bytes with tensor 1, which the function reads or returns, too"},
    {"OverAnInput", [](PlanSpec& s) { s.tensors[kState].offset = s.tensors[kX].offset; },
     "session: tensor 1 of state 0 shares bytes with tensor 0, which the function reads or returns, too"},
    {"NextOverAnInput", [](PlanSpec& s) { s.tensors[kNext].offset = s.tensors[kX].offset; },
     "session: tensor 2 of state 0 shares bytes with tensor 0, which the function reads or returns, too"},
    {"OverAnOutput", [](PlanSpec& s) { s.tensors[kNext].offset = s.tensors[kOut].offset; },
     "session: tensor 2 of state 0 shares bytes with tensor 3, which the function reads or returns, too"},
    {"HalfOverItsNextValue", [](PlanSpec& s) { s.tensors[kNext].offset = s.tensors[kState].offset + 2; },
     "session: the two tensors of state 0 overlap without being the same bytes"},
    {"NextIsNotWritten",
     [](PlanSpec& s) {
       state_of(s).output = s.add_tensor({4}, "nothing");
       s.functions[0].num_steps = 2;
     },
     "session: the next value of state 0 (tensor 5) is written by no step"},
    {"OverwrittenByAnotherTensor",
     [](PlanSpec& s) {
       const uint32_t other = s.add_tensor({4}, "other");
       s.tensors[other].offset = s.tensors[kState].offset;
       s.add_step(kAddByte, {kX}, {other}, copy_params(1), "over");
       s.functions[0].num_steps = 3;
     },
     "add_byte 'over' (step 2): output 0 overlaps state 0 of the function in memory"},
    {"NextIsOverwritten",
     [](PlanSpec& s) {
       const uint32_t other = s.add_tensor({4}, "other");
       s.tensors[other].offset = s.tensors[kNext].offset;
       s.add_step(kAddByte, {kX}, {other}, copy_params(1), "over");
       s.functions[0].num_steps = 3;
     },
     "add_byte 'over' (step 2): output 0 overlaps next state 0 of the function in memory"},
    {"ReadAfterItWasWrittenOver",
     [](PlanSpec& s) {
       s = counter_spec(true, {1, 2, 3, 4});
       s.steps[2].inputs = {kState};
     },
     "add_byte 'out' (step 2): input 0 (tensor 1) has been written over by an earlier step"},
};
INSTANTIATE_TEST_SUITE_P(States, WrongStates, ::testing::ValuesIn(kWrong), name_of);

}  // namespace
}  // namespace qplan::testing::states_test
