#include <gtest/gtest.h>

#include "src/packer/memory/arena.h"

namespace qplan::memory::lifetimes_test {
namespace {

using target::Program;
using target::ProgramStep;

// Activations of these sizes, steps {inputs} -> {outputs}.
Program make_program(const std::vector<int64_t>& sizes,
                     const std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>>& steps,
                     std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
  Program program;
  for (const int64_t size : sizes) program.tensors.push_back({{ir::kInt8, {size}}, "", nullptr, {}});
  for (const auto& [step_inputs, step_outputs] : steps) {
    ProgramStep step;
    step.inputs = step_inputs;
    step.outputs = step_outputs;
    program.steps.push_back(std::move(step));
  }
  program.inputs = std::move(inputs);
  program.outputs = std::move(outputs);
  return program;
}

bool never(uint32_t, uint32_t, uint32_t) { return false; }
bool always(uint32_t, uint32_t, uint32_t) { return true; }

TEST(Lifetimes, FromTheStepThatWritesToTheLastThatReads) {
  const Program program = make_program({64, 64, 64, 64}, {{{0}, {1}}, {{1}, {2}}, {{1, 2}, {3}}}, {0}, {3});
  const Lifetimes lifetimes = find_lifetimes(program, find_device_tensors(program), never);
  EXPECT_EQ(lifetimes.first, (std::vector<uint32_t>{0, 0, 1, 2}));
  EXPECT_EQ(lifetimes.last, (std::vector<uint32_t>{2, 2, 2, 2}));  // the input stays
  EXPECT_EQ(lifetimes.buffers.size(), 4u);
}

TEST(Lifetimes, InPlaceWhereTheFamilyAllowsAndNothingElseNeedsTheInput) {
  const Program program = make_program({64, 64, 64, 64}, {{{0}, {1}}, {{1}, {2}}, {{2}, {3}}}, {0}, {3});
  const Lifetimes lifetimes = find_lifetimes(program, find_device_tensors(program), always);
  EXPECT_EQ(lifetimes.replaces,
            (std::vector<uint32_t>{kNone, kNone, 1, 2}));  // never of the function's input
  EXPECT_EQ(lifetimes.buffers.size(), 2u);
  EXPECT_EQ(lifetimes.buffer[1], lifetimes.buffer[3]);
}

TEST(Lifetimes, FunctionsThatOverwriteInputsComputeInTheirPlace) {
  Program program = make_program({64, 64, 64}, {{{0}, {1}}, {{1}, {2}}}, {0}, {2});
  EXPECT_EQ(find_lifetimes(program, find_device_tensors(program), always).replaces[1], kNone);
  program.overwrites_inputs = true;
  EXPECT_EQ(find_lifetimes(program, find_device_tensors(program), always).replaces[1], 0u);
  const Arena arena = plan_arena(program, {always, nullptr}, 0);
  EXPECT_EQ(arena.size, 64u);
}

TEST(Lifetimes, NotInPlaceOfWhatIsReadLaterOrHasAnotherSizeOrIsAnOutput) {
  const Program later = make_program({64, 64, 64, 64}, {{{0}, {1}}, {{1}, {2}}, {{1, 2}, {3}}}, {0}, {3});
  EXPECT_EQ(find_lifetimes(later, find_device_tensors(later), always).replaces[2], kNone);
  const Program size = make_program({64, 64, 32}, {{{0}, {1}}, {{1}, {2}}}, {0}, {2});
  EXPECT_EQ(find_lifetimes(size, find_device_tensors(size), always).replaces[2], kNone);
  const Program output = make_program({64, 64, 64}, {{{0}, {1}}, {{1}, {2}}}, {0}, {1, 2});
  EXPECT_EQ(find_lifetimes(output, find_device_tensors(output), always).replaces[2], kNone);
}

TEST(Lifetimes, TwoOutputsDoNotTakeTheSameInput) {
  const Program program = make_program({64, 64, 64, 64}, {{{0}, {1}}, {{1}, {2, 3}}}, {0}, {2, 3});
  const Lifetimes lifetimes = find_lifetimes(program, find_device_tensors(program), always);
  EXPECT_EQ(lifetimes.replaces[2], 1u);
  EXPECT_EQ(lifetimes.replaces[3], kNone);
}

TEST(Lifetimes, AnInputThatIsReadTwiceMustBeAllowedAtBothPlaces) {
  const Program program = make_program({64, 64, 64}, {{{0}, {1}}, {{1, 1}, {2}}}, {0}, {2});
  const InPlaceQuery first_only = [](uint32_t, uint32_t, uint32_t input) { return input == 0; };
  EXPECT_EQ(find_lifetimes(program, find_device_tensors(program), first_only).replaces[2], kNone);
  EXPECT_EQ(find_lifetimes(program, find_device_tensors(program), always).replaces[2], 1u);
}

TEST(Lifetimes, WhatIsLeftOfAnOverwrittenInputIsFreeAfterTheStep) {
  // x -> a of 128, a -> b of 64 over a, b -> c of 96
  const Program program = make_program({64, 128, 64, 96}, {{{0}, {1}}, {{1}, {2}}, {{2}, {3}}}, {0}, {3});
  const Lifetimes lifetimes = find_lifetimes(program, find_device_tensors(program), never, always);
  EXPECT_EQ(lifetimes.replaces, (std::vector<uint32_t>{kNone, kNone, 1, kNone}));
  ASSERT_EQ(lifetimes.buffers.size(), 4u);
  const Buffer &a = lifetimes.buffers[lifetimes.buffer[1]], &b = lifetimes.buffers[lifetimes.buffer[2]];
  EXPECT_EQ(a.last, 1u);
  EXPECT_EQ(a.rest_of, kNone);
  EXPECT_EQ(b.rest_of, lifetimes.buffer[1]);
  EXPECT_EQ(b.first, 2u);
  EXPECT_EQ(b.last, 2u);
  EXPECT_EQ(b.size, 64u);
  const Arena arena = plan_arena(program, {never, nullptr, always}, 0);
  EXPECT_EQ(arena.offsets[1], arena.offsets[2]);
  EXPECT_EQ(arena.size, 64u + 64u + 128u);  // x stays; b and c, rounded up
}

TEST(Lifetimes, OverwritesNothingThatACallerBinds) {
  Program program = make_program({128, 64, 64}, {{{0}, {1}}, {{1}, {2}}}, {0}, {2});
  program.overwrites_inputs = true;
  EXPECT_EQ(find_lifetimes(program, find_device_tensors(program), never, always).replaces[1], kNone);
  const Program output = make_program({64, 128, 64}, {{{0}, {1}}, {{1}, {2}}}, {0}, {2});
  EXPECT_EQ(find_lifetimes(output, find_device_tensors(output), never, always).replaces[2], kNone);
}

TEST(Arena, OffsetsOfTensorsInOneBufferAreEqual) {
  const Program program = make_program({100, 100, 100}, {{{0}, {1}}, {{1}, {2}}}, {0}, {2});
  const Arena arena = plan_arena(program, {always, nullptr}, 0);
  EXPECT_EQ(arena.offsets[1], arena.offsets[2]);
  EXPECT_EQ(arena.size, 256u);
  EXPECT_EQ(arena.lower_bound, 256u);
}

TEST(Arena, AnUnusedInputAndAnUnusedResultHavePlaces) {
  const Program program = make_program({64, 64, 64, 64}, {{{0}, {2, 3}}}, {0, 1}, {2});
  EXPECT_EQ(plan_arena(program, {never, nullptr}, 0).size, 256u);
}

}  // namespace
}  // namespace qplan::memory::lifetimes_test
