// From placed regions to a plan: lowering, memory, the file, its report, and what it computes without its
// device.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/memory/arena.h"
#include "src/packer/pipeline/stages.h"
#include "src/packer/text/text.h"
#include "tests/packer/support/toy_target.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::regions_test {
namespace {

using testing::ToyOptions;

// a = x + x; b = a + a on the device; then b flat, and its sum with itself, on the device again.
ir::Module adds() {
  const auto add = [](const std::string& value, const std::string& name) {
    return "qnn.add(" + value + ", " + value + ", 1f, 0, 1f, 0, 1f, 0, name=\"" + name + "\");\n";
  };
  return text::parse(testing::main_text("%x: Tensor[(1, 4, 4, 8), int8]",
                                        "  %0 = " + add("%x", "a") + "  %1 = " + add("%0", "b") +
                                            "  %2 = reshape(%1, newshape=[1, 128], name=\"flat\");\n" +
                                            "  %3 = " + add("%2", "c") + "  %3"),
                     "test");
}

PackOptions forced() {
  PackOptions options;
  options.cost_gate = false;
  return options;
}

struct Packed {
  std::vector<target::Target> targets;
  std::unique_ptr<pipeline::Placed> placed;
  target::Program program;

  const target::Target& cpu() const { return pipeline::cpu_of(targets); }
  const target::TargetProfile& profile() const { return cpu().profile; }
};

memory::Arena arena_of(const target::Program& program) {
  return memory::plan_arena(program, {[](uint32_t, uint32_t, uint32_t) { return true; }, nullptr}, 0);
}

void report_copies(const target::Program& program, const target::Target& cpu, partition::Explain* explain) {
  pipeline::report_copies({program, arena_of(program)}, cpu, explain);
}

Packed pack_toy(const ToyOptions& toy, const PackOptions& options = forced()) {
  Packed packed;
  packed.targets = testing::toy_targets({"qnn.add"}, toy);
  const ir::Module module = adds();
  packed.placed = pipeline::place(module, packed.targets, options);
  packed.program = target::lower_function(packed.placed->main(), packed.profile(), packed.placed->codes);
  report_copies(packed.program, packed.cpu(), &packed.placed->explain());
  return packed;
}

TEST(Regions, ARegionIsAStepWithTheCpusStepsBehindIt) {
  const Packed packed = pack_toy({});
  const std::vector<target::ProgramStep>& steps = packed.program.steps;
  ASSERT_EQ(steps.size(), 6u);  // npu, a, b, flat, npu, c
  ASSERT_NE(steps[0].npu, nullptr);
  EXPECT_EQ(steps[0].name, "qplan_toy_main_0");
  EXPECT_EQ(steps[0].npu->num_alternative_steps, 2u);
  EXPECT_EQ(steps[0].npu->num_operators, 2u);
  EXPECT_EQ(steps[0].npu->estimated_cycles, 2000u);
  EXPECT_EQ(steps[1].inputs.at(0), steps[0].inputs.at(0));
  EXPECT_EQ(steps[2].outputs, steps[0].outputs);
  EXPECT_EQ(steps[3].inputs, steps[0].outputs);
  ASSERT_NE(steps[4].npu, nullptr);
  EXPECT_EQ(steps[4].npu->num_alternative_steps, 1u);
  EXPECT_EQ(packed.program.devices.size(), 1u);
}

TEST(Regions, WithoutFallbackThereIsTheRegionAlone) {
  PackOptions options = forced();
  options.fallback = false;
  const Packed packed = pack_toy({}, options);
  ASSERT_EQ(packed.program.steps.size(), 3u);
  EXPECT_EQ(packed.program.steps[0].npu->num_alternative_steps, 0u);
  // Nothing can be tried on the CPU: the file is opened, no session of it is.
  const AlignedBytes plan = evaluate::make_plan(packed.program, packed.profile(), {});
  EXPECT_EQ(inspect::PlanReader(plan.span()).view().num_steps(), 3u);
}

TEST(Regions, PackedTensorsOfOneDeviceLieInItsBank) {
  const Packed packed = pack_toy({});
  const memory::Arena arena = arena_of(packed.program);
  const target::ProgramStep& first = packed.program.steps[0];
  EXPECT_EQ(arena.device_of[first.inputs[0]], 0u);  // the function's input
  EXPECT_EQ(arena.device_of[first.outputs[0]], 0u);
  EXPECT_EQ(arena.device_of[packed.program.steps[1].outputs[0]], memory::kNone);  // an alternative's own
  EXPECT_EQ(arena.slot_offsets[0][0], arena.offsets[first.inputs[0]]);
  EXPECT_EQ(arena.slot_offsets[0][1], arena.offsets[first.outputs[0]]);
  EXPECT_EQ(packed.placed->explain().regions[0].num_copies, 0u);
}

TEST(Regions, WhatTheDeviceWantsArrangedIsCopied) {
  const Packed packed = pack_toy({.packed = false, .scratch = 100, .alignment = 1024});
  const memory::Arena arena = arena_of(packed.program);
  for (const uint32_t device : arena.device_of) EXPECT_EQ(device, memory::kNone);
  ASSERT_EQ(arena.devices.size(), 1u);
  EXPECT_EQ(arena.devices[0].alignment, 1024u);
  EXPECT_EQ(arena.devices[0].size, 3 * 1024u);  // one step's buffers; the other step has them after it
  for (const uint64_t offset : arena.slot_offsets[0]) EXPECT_EQ(offset % 1024, 0u);
  EXPECT_EQ(packed.placed->explain().regions[0].num_copies, 2u);
  EXPECT_EQ(packed.placed->explain().regions[0].copy_bytes, 256u);
}

// The bank is one allocation of the device.
TEST(Regions, TensorsLeaveABankThatExceedsTheDevice) {
  Packed packed = pack_toy({});
  const uint64_t in_place = arena_of(packed.program).devices[0].size;
  EXPECT_EQ(arena_of(packed.program).devices[0].size, in_place);
  packed.program.devices[0].max_bank_bytes = in_place;
  EXPECT_EQ(arena_of(packed.program).device_of, memory::find_device_tensors(packed.program));
  // The buffers of one step: two tensors of 128 bytes.
  packed.program.devices[0].max_bank_bytes = 256;
  const memory::Arena arena = arena_of(packed.program);
  EXPECT_LE(arena.devices[0].size, 256u);
  EXPECT_LT(arena.devices[0].size, in_place);
  EXPECT_NE(arena.device_of, memory::find_device_tensors(packed.program));
  // Tensors that left the bank are copied, and reported.
  uint32_t copies = 0;
  for (uint32_t s = 0; s < packed.program.steps.size(); ++s) {
    if (packed.program.steps[s].npu != nullptr)
      copies += memory::boundary_copies(packed.program, arena.device_of, arena.kept, s).count;
  }
  EXPECT_GT(copies, 0u);
  report_copies(packed.program, packed.cpu(), &packed.placed->explain());
  uint32_t reported = 0;
  for (const auto& region : packed.placed->explain().regions) reported += region.num_copies;
  EXPECT_EQ(reported, copies);
  packed.program.devices[0].max_bank_bytes = 255;
  try {
    (void)arena_of(packed.program);
    FAIL() << "it is taken";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("'toy' need 256 bytes, it has 255"), std::string::npos)
        << error.what();
  }
}

TEST(Regions, InputsOutliveTheAlternativeAndNothingReplacesThem) {
  const Packed packed = pack_toy({.packed = false});
  const memory::Arena arena = arena_of(packed.program);
  const target::ProgramStep& last = packed.program.steps[4];
  EXPECT_GE(arena.lifetimes.last[last.inputs[0]], 5u);
  EXPECT_EQ(arena.lifetimes.first[last.outputs[0]], 4u);
  for (const uint32_t s : {1u, 2u, 5u}) {
    for (const uint32_t output : packed.program.steps[s].outputs) {
      EXPECT_EQ(arena.lifetimes.replaces[output], memory::kNone) << s;
    }
  }
}

TEST(Regions, ThePlanOpensAndComputesTheSameWithoutItsDevice) {
  const ir::Module module = adds();
  std::vector<uint8_t> values(128);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(i % 31 - 15);
  const auto input =
      std::make_shared<const ir::Constant>(module.main().type(module.main().params()[0]), values);
  const std::vector<ir::ConstantRef> inputs = {input};
  const std::vector<ir::ConstantRef> expected = evaluate::run_function(module.main(), inputs);
  for (const bool is_packed : {true, false}) {
    const Packed packed = pack_toy({.packed = is_packed, .scratch = 32});
    const AlignedBytes plan = evaluate::make_plan(packed.program, packed.profile(), {});
    evaluate::ReferenceSession session(plan.span());
    std::memcpy(session.io(QPLAN_INPUT, 0).data(), values.data(), values.size());
    session.invoke();
    const std::span<const uint8_t> output = session.io(QPLAN_OUTPUT, 0);
    ASSERT_EQ(output.size(), expected[0]->bytes().size());
    EXPECT_EQ(std::memcmp(output.data(), expected[0]->bytes().data(), output.size()), 0) << is_packed;
  }
}

TEST(Regions, InspectAndDisassembleTellOfThem) {
  const Packed packed = pack_toy({.packed = false});
  const AlignedBytes plan = evaluate::make_plan(packed.program, packed.profile(), {});
  const inspect::PlanReader reader(plan.span());
  EXPECT_EQ(reader.view().header().required_features, format::kFeatureNpuRegions);
  const nlohmann::json json = nlohmann::json::parse(inspect::inspect_json(reader.view()));
  ASSERT_EQ(json.at("regions").size(), 2u);
  const nlohmann::json& region = json.at("regions")[0];
  EXPECT_EQ(region.at("name"), "qplan_toy_main_0");
  EXPECT_EQ(region.at("target"), "toy");
  EXPECT_EQ(region.at("blob_format"), "TOY1");
  EXPECT_EQ(region.at("operators"), 2);
  EXPECT_EQ(region.at("estimated_cycles"), 2000);
  EXPECT_EQ(region.at("program_bytes"), 96);
  EXPECT_EQ(region.at("copies"), 2);
  EXPECT_EQ(region.at("copy_bytes"), 256);
  EXPECT_EQ(region.at("alternative_steps"), 2);
  EXPECT_EQ(region.at("binds")[0].at("origin"), 16);
  EXPECT_EQ(json.at("targets").size(), 2u);
  EXPECT_EQ(json.at("banks").size(), 3u);
  EXPECT_EQ(json.at("memory").at("device_bytes"), json.at("banks")[2].at("bytes"));
  const std::string text = inspect::disassemble(reader.view());
  EXPECT_NE(text.find("npu:toy  'qplan_toy_main_0'"), std::string::npos) << text;
  EXPECT_NE(text.find("copied: strides"), std::string::npos) << text;
}

TEST(Regions, WhatTheCompilerRefusesGoesToTheCpuWithItsReason) {
  const Packed packed = pack_toy({.refuse = "b"});
  ASSERT_EQ(packed.placed->partition.placed.regions.size(), 2u);  // a, c
  const std::string text = packed.placed->explain().text();
  EXPECT_NE(text.find("not on toy: 'b' does not fit [toy.shape]; make it smaller"), std::string::npos)
      << text;
}

TEST(Regions, AllThatACompilerRefusesAtOnceIsPlacedAgainOnce) {
  std::vector<target::Target> targets = testing::toy_targets({"qnn.add"}, {.refuse = "ab"});
  size_t calls = 0;
  targets[0].compile = [&, compile = targets[0].compile](const ir::Module& module,
                                                         const ir::Function& region) {
    ++calls;
    return compile(module, region);
  };
  const auto placed = pipeline::place(adds(), targets, forced());
  EXPECT_EQ(calls, 3u);                                    // a and b, c; c again
  ASSERT_EQ(placed->partition.placed.regions.size(), 1u);  // c
  const std::string text = placed->explain().text();
  for (const char* name : {"'a'", "'b'"})
    EXPECT_NE(text.find(std::string(name) + " does not fit [toy.shape]"), std::string::npos) << text;
}

TEST(Regions, AStrictPlacementFailsWithTheCompilersReason) {
  const std::vector<target::Target> targets = testing::toy_targets({"qnn.add", "reshape"}, {.refuse = "b"});
  PackOptions options = forced();
  options.strict_placement = true;
  try {
    pipeline::place(adds(), targets, options);
    FAIL() << "placed";
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("'b' does not fit [toy.shape]"), std::string::npos)
        << error.what();
  }
}

TEST(Regions, APinFailsWithTheCompilersReason) {
  const std::vector<target::Target> targets = testing::toy_targets({"qnn.add"}, {.refuse = "b"});
  PackOptions options = forced();
  options.pins = {"b=toy"};
  try {
    pipeline::place(adds(), targets, options);
    FAIL() << "placed";
  } catch (const PackError& error) {
    EXPECT_NE(std::string(error.what()).find("[toy.shape]"), std::string::npos) << error.what();
  }
}

TEST(Regions, ATargetWithoutCompilerIsRefusedByName) {
  std::vector<target::Target> targets = testing::toy_targets({"qnn.add"});
  targets[0].compile = nullptr;
  const auto placed = pipeline::place(adds(), targets, forced());
  EXPECT_THROW(pipeline::check_all_compiled(*placed), PackError);
}

TEST(Regions, TheReportIsReadBackFromItsJson) {
  const Packed packed = pack_toy({.packed = false, .refuse = "b"});
  const partition::Explain& explain = packed.placed->explain();
  const partition::Explain again = partition::parse_explain(explain.json());
  EXPECT_EQ(again.json(), explain.json());
  EXPECT_EQ(again.text(), explain.text());
  EXPECT_THROW(partition::parse_explain("{}"), PackError);
  EXPECT_THROW(partition::parse_explain("no json"), PackError);
}

}  // namespace
}  // namespace qplan::regions_test
