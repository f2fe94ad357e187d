#include <gtest/gtest.h>

#include "src/packer/error.h"
#include "tests/packer/memory/device_program.h"

namespace qplan::memory::region_checker_test {
namespace {

using target::NpuRegion;
using target::Program;
using testing::add_step;
using testing::plan_memory;

// x -> region -> y, with the fallback x -> t -> y after it, then y -> z. Tensors of 64 bytes: x y t z are 0
// to 3.
Program region_program(bool in_place) {
  Program program = testing::device_program({"x", "y", "t", "z"});
  target::Arrangement arrangement = target::packed_arrangement(program.tensors[0].type);
  if (!in_place) arrangement.flip = 0x80;
  const std::shared_ptr<NpuRegion> region = testing::device_region(arrangement);
  region->num_alternative_steps = 2;
  add_step(&program, 0, 1, region);
  program.steps[0].name = "region";
  add_step(&program, 0, 2);
  add_step(&program, 2, 1);
  add_step(&program, 1, 3);
  program.inputs = {0};
  program.outputs = {3};
  return program;
}

std::string refusal(const Program& program, const Arena& arena) {
  try {
    check_regions(program, arena);
  } catch (const PackError& error) {
    return error.what();
  }
  return "";
}

TEST(RegionChecker, AcceptsWhatThePlannerMakes) {
  for (const bool in_place : {true, false}) {
    const Program program = region_program(in_place);
    EXPECT_EQ(refusal(program, plan_memory(program)), "") << in_place;
  }
}

// With 100 bytes of scratch in fast memory.
Program with_fast_scratch() {
  Program program = region_program(true);
  auto region = std::make_shared<NpuRegion>(*program.steps[0].npu);
  target::RegionSlot scratch = {2, format::NpuUse_SCRATCH, 0, {}, 64, format::MemoryClass_SRAM};
  scratch.arrangement.size = 100;
  region->slots.push_back(scratch);
  program.steps[0].npu = std::move(region);
  return program;
}

TEST(RegionChecker, EachClassOfMemoryIsABankOfItsOwn) {
  const Program program = with_fast_scratch();
  const Arena arena = plan_memory(program);
  ASSERT_EQ(arena.devices.size(), 2u);
  EXPECT_EQ(arena.devices[0].key, (BankKey{0, format::MemoryClass_ANY}));
  EXPECT_EQ(arena.devices[0].size, 128u);  // x and y, in place
  EXPECT_EQ(arena.devices[1].key, (BankKey{0, format::MemoryClass_SRAM}));
  EXPECT_EQ(arena.devices[1].size, 128u);  // a multiple of the alignment
  EXPECT_EQ(arena.slot_offsets[0][2], 0u);
  EXPECT_EQ(arena.device_of[0], 0u);
}

TEST(RegionChecker, ATensorOfTwoClassesIsCopied) {
  Program program = with_fast_scratch();
  auto region = std::make_shared<NpuRegion>(*program.steps[0].npu);
  region->num_alternative_steps = 0;
  region->slots.pop_back();
  for (target::RegionSlot& slot : region->slots) slot.memory_class = format::MemoryClass_SRAM;
  program.steps[3].npu = std::move(region);  // y -> z: y is in any memory for one, in SRAM for the other
  const Arena arena = plan_memory(program);
  EXPECT_EQ(arena.device_of[0], 0u);
  EXPECT_EQ(arena.device_of[1], kNone);
  EXPECT_EQ(arena.device_of[3], 1u);
}

TEST(RegionChecker, FindsScratchBeyondTheBankOfItsClass) {
  const Program program = with_fast_scratch();
  Arena arena = plan_memory(program);
  arena.devices[1].size = 99;
  EXPECT_NE(refusal(program, arena).find("slot 2 reaches beyond"), std::string::npos);
}

TEST(RegionChecker, FindsAnIntermediateResultInThePlaceOfAnInput) {
  const Program program = region_program(false);
  Arena arena = plan_memory(program);
  arena.offsets[2] = arena.offsets[0];
  EXPECT_NE(refusal(program, arena).find("'t' shares bytes with 'x'"), std::string::npos);
}

TEST(RegionChecker, FindsAnIntermediateResultInThePlaceOfAnOutput) {
  const Program program = region_program(false);
  Arena arena = plan_memory(program);
  arena.offsets[2] = arena.offsets[1];
  EXPECT_NE(refusal(program, arena).find("'t' shares bytes with 'y'"), std::string::npos);
}

TEST(RegionChecker, FindsAnOutputInThePlaceOfAnInput) {
  const Program program = region_program(false);
  Arena arena = plan_memory(program);
  arena.offsets[1] = arena.offsets[0];
  EXPECT_NE(refusal(program, arena).find("'y' shares bytes with 'x'"), std::string::npos);
}

TEST(RegionChecker, FindsSlotsThatShareBytesOrLeaveTheBank) {
  const Program program = region_program(false);
  Arena arena = plan_memory(program);
  Arena same = arena;
  same.slot_offsets[0][1] = same.slot_offsets[0][0];
  EXPECT_NE(refusal(program, same).find("slots 0 and 1 share bytes"), std::string::npos);
  arena.slot_offsets[0][1] = arena.devices[0].size;
  EXPECT_NE(refusal(program, arena).find("beyond the device's bank"), std::string::npos);
}

TEST(RegionChecker, FindsASlotThatIsNotWhereItsTensorLies) {
  const Program program = region_program(true);
  Arena arena = plan_memory(program);
  arena.devices[0].size += 64;
  arena.slot_offsets[0][0] = arena.devices[0].size - 64;
  EXPECT_NE(refusal(program, arena).find("slot 0 is not at its tensor's place"), std::string::npos);
}

TEST(Lifetimes, ARegionsTensorsOutliveTheStepsInItsPlaceAndNothingReplacesThem) {
  const Program program = region_program(false);
  const Arena arena = plan_memory(program);
  EXPECT_EQ(arena.lifetimes.first[1], 0u);
  EXPECT_EQ(arena.lifetimes.replaces[1], kNone);
  EXPECT_EQ(arena.lifetimes.replaces[2], kNone);
  EXPECT_EQ(arena.lifetimes.replaces[3], 1u);  // after the region the usual rules hold
  EXPECT_EQ(arena.lifetimes.buffers.size(), 3u);
}

TEST(Lifetimes, TensorsOfDifferentBanksDoNotReplaceEachOther) {
  const Program program = region_program(true);
  const Arena arena = plan_memory(program);
  EXPECT_EQ(arena.device_of[1], 0u);
  EXPECT_EQ(arena.lifetimes.replaces[3], kNone);
}

}  // namespace
}  // namespace qplan::memory::region_checker_test
