#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "src/packer/error.h"
#include "src/packer/memory/arena.h"
#include "tests/support/random.h"

namespace qplan::memory::areas_test {
namespace {

using target::MemoryArea;
using target::Program;
using target::ProgramStep;

// Tensor 0 is the input; step s reads the tensors of reads[s] and writes tensor s + 1.
Program program_of(const std::vector<int64_t>& sizes, const std::vector<std::vector<uint32_t>>& reads) {
  Program program;
  for (size_t t = 0; t < sizes.size(); ++t)
    program.tensors.push_back({{ir::kInt8, {sizes[t]}}, "t" + std::to_string(t), nullptr, {}});
  for (uint32_t s = 0; s < reads.size(); ++s) {
    ProgramStep step;
    step.name = "step" + std::to_string(s);
    step.inputs = reads[s];
    step.outputs = {s + 1};
    program.steps.push_back(std::move(step));
  }
  program.inputs = {0};
  program.outputs = {static_cast<uint32_t>(sizes.size() - 1)};
  return program;
}

SharingQueries apart() {
  return {[](uint32_t, uint32_t, uint32_t) { return false; }, nullptr};
}

std::string refusal(const Program& program, const std::vector<MemoryArea>& areas) {
  try {
    plan_arena(program, apart(), 0, areas);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MEMORY_TOO_SMALL);
    return error.what();
  }
  return "";
}

TEST(Areas, TheBytesThatAreUsedMostAreWhereTheyCostLeast) {
  // Tensor 1 is written once and read four times, the others are written and read once.
  const Program program = program_of({64, 128, 128, 128, 128, 64}, {{0}, {1}, {1, 2}, {1, 3}, {1, 4}});
  const Arena arena =
      plan_arena(program, apart(), 0, std::vector<MemoryArea>{{"slow", 4096, 5}, {"fast", 128, 1}});
  EXPECT_EQ(arena.area_of, (std::vector<uint32_t>{0, 1, 0, 0, 0, 0}));
  ASSERT_EQ(arena.areas.size(), 1u);
  EXPECT_EQ(arena.areas[0].name, "fast");
  EXPECT_EQ(arena.areas[0].size, 128u);
  EXPECT_EQ(arena.size, 64u + 128 + 128);  // the input, and two of the others at a time
}

TEST(Areas, OneThatHasRoomForAllTakesAll) {
  const Program program = program_of({64, 128, 64}, {{0}, {1}});
  const Arena alone = plan_arena(program, apart(), 0);
  const Arena arena =
      plan_arena(program, apart(), 0, std::vector<MemoryArea>{{"fast", alone.size, 1}, {"slow", 4096, 2}});
  EXPECT_EQ(arena.size, alone.size);
  EXPECT_EQ(arena.areas[0].size, 0u);
  EXPECT_EQ(total_bytes(arena), alone.size);
}

TEST(Areas, ScratchIsInTheFirstArea) {
  Program program = program_of({64, 64, 64}, {{0}, {1}});
  program.is_small = true;
  program.steps[0].scratch_bytes = program.steps[0].in_place_scratch_bytes = 256;
  const Arena arena =
      plan_arena(program, apart(), 0, std::vector<MemoryArea>{{"slow", 256, 9}, {"fast", 256, 1}});
  EXPECT_EQ(arena.size, 256u);
  EXPECT_EQ(arena.scratch_offsets[0], 0u);
  EXPECT_EQ(arena.area_of, (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(
      refusal(program, {{"slow", 255, 9}, {"fast", 4096, 1}}),
      "memory areas: the scratch of step 0 'step0', 256 bytes, does not fit into 'slow', which has 255 for "
      "activations and scratch; list a larger area first; --fuse memory takes the least memory");
}

TEST(Areas, AStepThatDoesNotFitIsNamed) {
  const Program program = program_of({64, 64, 512, 64}, {{0}, {1}, {2}});
  EXPECT_EQ(refusal(program, {{"fast", 256, 1}, {"slow", 256, 2}}),
            "memory areas: step 1 'step1' does not fit: it has 640 bytes of activations and scratch in use, "
            "of which "
            "512 find no room; there are 256 in 'fast', 256 in 'slow'; state larger areas; --fuse memory "
            "takes the least memory");
}

// Tensor 1 finds no room. It is in use from step 0 on, but step 2 is the first that has more than there is.
TEST(Areas, OfTheStepsThatABufferIsInUseAtTheFullestIsNamed) {
  Program program = program_of({64, 256, 64, 256, 64}, {{0}, {0}, {2, 2}, {1, 3, 3}});
  program.is_small = true;
  EXPECT_EQ(
      refusal(program, {{"ram", 400, 1}}),
      "memory areas: step 2 'step2' does not fit: it has 640 bytes of activations and scratch in use, of "
      "which 256 find no room; there are 400 in 'ram'; state larger areas; --fuse memory takes the least "
      "memory");
  program.overwrites_inputs = true;  // which --fuse memory alone does
  const std::string error = refusal(program, {{"ram", 400, 1}});
  EXPECT_NE(error.find("state larger areas"), std::string::npos) << error;
  EXPECT_EQ(error.find("--fuse memory"), std::string::npos) << error;
}

// Step 1 writes tensor 2 over the beginning of tensor 1, which is larger.
SharingQueries over_the_larger() {
  return {[](uint32_t, uint32_t, uint32_t) { return false; }, nullptr,
          [](uint32_t step, uint32_t, uint32_t) { return step == 1; }};
}

TEST(Areas, OutputsOverLargerInputsStayThere) {
  Program program = program_of({64, 1024, 512, 64}, {{0}, {1}, {2}});
  program.is_small = true;
  const Arena alone = plan_arena(program, over_the_larger(), 0);
  ASSERT_EQ(alone.size, 64u + 1024);  // the input, and the two
  const Arena one =
      plan_arena(program, over_the_larger(), 0, std::vector<MemoryArea>{{"ram", alone.size, 1}});
  EXPECT_EQ(one.size, alone.size);
  EXPECT_EQ(one.offsets, alone.offsets);
  // The input is used least, and is where it costs more.
  const Arena two =
      plan_arena(program, over_the_larger(), 0, std::vector<MemoryArea>{{"slow", 128, 5}, {"fast", 1024, 1}});
  EXPECT_EQ(two.area_of, (std::vector<uint32_t>{0, 1, 1, 1}));
  EXPECT_EQ(two.offsets[1], two.offsets[2]);
  EXPECT_EQ(two.areas[0].size, 1024u);
}

// What is left of tensor 1 would be in the way of tensor 3, which is as large and has room nowhere else.
TEST(Areas, OutputsLeaveLargerInputsWhereThatAloneFindsRoom) {
  Program program = program_of({64, 1024, 512, 1024, 64}, {{0}, {1, 1}, {0}, {2, 3, 3}});
  program.is_small = true;
  const Arena arena =
      plan_arena(program, over_the_larger(), 0, std::vector<MemoryArea>{{"slow", 640, 5}, {"fast", 1024, 1}});
  EXPECT_EQ(arena.area_of, (std::vector<uint32_t>{0, 1, 0, 1, 0}));
}

// A chain in which every tensor is in use for two steps, and a buffer that all steps need: as many buffers
// leave the first area as there are steps. Without a bound on the work this took minutes.
TEST(Areas, TenThousandStepsAreDistributedInSeconds) {
  constexpr uint32_t kSteps = 10'000;
  std::vector<int64_t> sizes = {256};
  std::vector<std::vector<uint32_t>> reads;
  for (uint32_t s = 0; s < kSteps; ++s) {
    sizes.push_back(64 + 64 * (s * 7 % 5));
    reads.push_back(s % 3 == 0 ? std::vector<uint32_t>{0, s} : std::vector<uint32_t>{s});
  }
  const Program program = program_of(sizes, reads);
  const auto begin = std::chrono::steady_clock::now();
  const Arena arena =
      plan_arena(program, apart(), 0, std::vector<MemoryArea>{{"slow", 4096, 5}, {"fast", 448, 1}});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_GT(arena.areas[0].size, 0u);
  EXPECT_LE(arena.areas[0].size, 448u);
}

// The checkers of plan_arena look at every plan; here, that areas hold what they have.
TEST(Areas, RandomProgramsStayWithinTheirAreas) {
  qplan::testing::Random random(20261126);
  const auto below = [&](int64_t limit) { return static_cast<uint32_t>(random.integer(0, limit - 1)); };
  for (int i = 0; i < 300; ++i) {
    std::vector<int64_t> sizes = {1 + below(500)};
    std::vector<std::vector<uint32_t>> reads;
    const uint32_t steps = 1 + below(20);
    for (uint32_t s = 0; s < steps; ++s) {
      sizes.push_back(1 + below(500));
      reads.push_back({below(s + 1)});
      if (below(2) == 0) reads.back().push_back(s);
    }
    const Program program = program_of(sizes, reads);
    std::vector<MemoryArea> areas;
    for (const char* name : {"a", "b", "c"})
      areas.push_back({name, 64 * (1 + uint64_t{below(30)}), 1 + uint64_t{below(3)}});
    SharingQueries sharing = apart();
    if (i % 2 != 0) sharing.may_overwrite = [](uint32_t, uint32_t, uint32_t) { return true; };
    const Arena alone = plan_arena(program, sharing, 0);
    const uint64_t room = areas[0].bytes + areas[1].bytes + areas[2].bytes;
    try {
      const Arena arena = plan_arena(program, sharing, 0, areas);
      EXPECT_LE(arena.size, areas[0].bytes);
      EXPECT_LE(arena.areas[0].size, areas[1].bytes);
      EXPECT_LE(arena.areas[1].size, areas[2].bytes);
    } catch (const PackError& error) {
      EXPECT_EQ(error.status(), QPLAN_MEMORY_TOO_SMALL) << error.what();
      EXPECT_GT(alone.size + 3 * 512, room / 2) << error.what();  // there was not much more than it needs
    }
  }
}

}  // namespace
}  // namespace qplan::memory::areas_test
