// Which tensors stay in a device's bank between two of its regions.
#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "tests/packer/memory/device_program.h"

namespace qplan::memory::kept_slots_test {
namespace {

using target::Arrangement;
using target::Program;
using target::ProgramStep;
using testing::add_step;
using testing::plan_memory;

// x -> region -> m -> region -> y, without fallback. Tensors of 64 bytes, flipped in buffers of `size` bytes:
// x m y z are 0 to 3.
Program two_regions(uint64_t size) {
  Program program = testing::device_program({"x", "m", "y", "z"});
  Arrangement arrangement = target::packed_arrangement(program.tensors[0].type);
  arrangement.flip = 0x80;
  arrangement.size = size;
  for (uint32_t from = 0; from < 2; ++from)
    add_step(&program, from, from + 1, testing::device_region(arrangement));
  program.inputs = {0};
  program.outputs = {2};
  return program;
}

// The arrangement of m where it is written or read.
Arrangement& arrangement_of_m(Program* program, uint32_t step) {
  auto region = std::make_shared<target::NpuRegion>(*program->steps[step].npu);
  Arrangement& arrangement = region->slots[1 - step].arrangement;
  program->steps[step].npu = std::move(region);
  return arrangement;
}

void read_on_the_cpu(Program* program) {
  add_step(program, 1, 3);
  program->outputs.push_back(3);
}

const KeptSlots kNothing = {{0, 0}, {0, 0}}, kAlone = {{0, 2}, {1, 0}};

TEST(KeptSlots, OneArrangementTakesNoCopies) {
  const Program program = two_regions(64);
  const Arena arena = plan_memory(program);
  EXPECT_EQ(arena.kept, kAlone);
  EXPECT_EQ(arena.slot_offsets[0][1], arena.slot_offsets[1][0]);
  for (const uint32_t s : {0, 1})
    EXPECT_EQ(boundary_copies(program, arena.device_of, arena.kept, s).count, 1u);
  // The buffer of the first input takes none of the bytes that are kept, nor does that of the last output.
  EXPECT_EQ(arena.devices[0].size, 128u);
}

TEST(KeptSlots, OtherArrangementsAreCopied) {
  const auto is_kept = [](void (*change)(Arrangement&)) {
    Program program = two_regions(64);
    change(arrangement_of_m(&program, 1));
    const bool kept = plan_memory(program).kept == kAlone;
    EXPECT_TRUE(kept || plan_memory(program).kept == kNothing);
    return kept;
  };
  EXPECT_TRUE(is_kept([](Arrangement&) {}));
  EXPECT_FALSE(is_kept([](Arrangement& a) { a.flip = 0; }));
  EXPECT_FALSE(is_kept([](Arrangement& a) { a.size = 65; }));
  EXPECT_FALSE(is_kept([](Arrangement& a) { a.origin = 1, a.size = 65; }));
  EXPECT_FALSE(is_kept([](Arrangement& a) { a.block = 32, a.block_stride = 33, a.size = 65; }));
}

TEST(KeptSlots, OtherBytesOfTheBufferMatter) {
  Program program = two_regions(80);
  EXPECT_EQ(plan_memory(program).kept, kNothing);
  arrangement_of_m(&program, 1).takes_any_fill = true;
  EXPECT_EQ(plan_memory(program).kept, kAlone);
  arrangement_of_m(&program, 1).takes_any_fill = false;
  arrangement_of_m(&program, 0).leaves_fill = true;
  EXPECT_EQ(plan_memory(program).kept, kAlone);
  arrangement_of_m(&program, 1).fill = 7;
  EXPECT_EQ(plan_memory(program).kept, kNothing);
}

TEST(KeptSlots, WhatTheCpuReadsTooIsCopiedOut) {
  Program program = two_regions(64);
  read_on_the_cpu(&program);
  const Arena arena = plan_memory(program);
  EXPECT_EQ(arena.kept, (KeptSlots{{0, 1}, {1, 0}, {}}));
  EXPECT_EQ(boundary_copies(program, arena.device_of, arena.kept, 0).count, 2u);
  EXPECT_EQ(boundary_copies(program, arena.device_of, arena.kept, 1).count, 1u);
  program = two_regions(64);
  program.outputs.push_back(1);
  EXPECT_EQ(plan_memory(program).kept, (KeptSlots{{0, 1}, {1, 0}}));
}

TEST(KeptSlots, ABankWithoutRoomKeepsNothing) {
  Program program = two_regions(64);
  // A region between the two, from p to q, whose buffers are all that the bank has room for.
  ProgramStep between = program.steps[0];
  for (const char* name : {"p", "q"}) {
    program.tensors.push_back(program.tensors[0]);
    program.tensors.back().name = name;
  }
  between.inputs = {4};
  between.outputs = {5};
  program.steps.insert(program.steps.begin() + 1, between);
  program.inputs.push_back(4);
  program.outputs.push_back(5);
  EXPECT_EQ(plan_memory(program).kept, (KeptSlots{{0, 2}, {0, 0}, {2, 0}}));
  program.devices[0].max_bank_bytes = 128;
  EXPECT_EQ(plan_memory(program).kept, (KeptSlots{{0, 0}, {0, 0}, {0, 0}}));
}

TEST(KeptSlots, TheCheckerWantsItWhereItWasLeft) {
  const Program program = two_regions(64);
  Arena arena = plan_memory(program);
  check_regions(program, arena);
  arena.slot_offsets[1][0] = arena.slot_offsets[0][1] == 0 ? 64 : 0;
  arena.slot_offsets[1][1] = arena.slot_offsets[0][1];
  EXPECT_THROW(check_regions(program, arena), PackError);
}

}  // namespace
}  // namespace qplan::memory::kept_slots_test
