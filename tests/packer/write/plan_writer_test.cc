#include "src/packer/write/plan_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "format/memory_layout.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/inspect/inspect.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::write::plan_writer_test {
namespace {

using qplan::testing::lower_text;
using qplan::testing::main_text;

// A residual block: conv -> conv -> add, two equal weights, a reshape.
std::string block_text(const std::string& conv_name = "conv") {
  const auto conv = [&](int first, const std::string& input) {
    const std::string a = "%" + std::to_string(first), b = "%" + std::to_string(first + 1);
    return "  " + a + " = qnn.conv2d(" + input +
           ", const(Tensor[(2, 1, 1, 2), int8], [1, 2, 3, 4]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
           "kernel_layout=\"OHWI\", name=\"" +
           conv_name + std::to_string(first) + "\");\n  " + b + " = qnn.requantize(" + a +
           ", 1f, 0, 4f, 0);\n";
  };
  return main_text("%x: Tensor[(1, 4, 4, 2), int8], input_scale_0=0.5f, input_zero_point_0=3",
                   conv(0, "%x") + conv(2, "%1") +
                       "  %4 = qnn.add(%1, %3, 1f, 0, 1f, 0, 2f, 0, name=\"sum\");\n"
                       "  %5 = reshape(%4, newshape=[1, 32], name=\"flat\");\n  %5");
}

PlanNames named() { return {.source = "block.relay", .source_digest = std::string(64, '0')}; }

AlignedBytes write(const std::string& text, const PlanNames& names = named(),
                   const std::string& target = "cpu") {
  return evaluate::make_plan(lower_text(text, target), target::parse_target(target), {}, names);
}

std::vector<uint8_t> bytes_of(const AlignedBytes& plan) { return {plan.data(), plan.data() + plan.size()}; }

TEST(PlanWriter, TheSameProgramGivesTheSameBytes) {
  EXPECT_EQ(bytes_of(write(block_text())), bytes_of(write(block_text())));
}

TEST(PlanWriter, NamesAreOutsideOfTheContentDigest) {
  const AlignedBytes plan = write(block_text()), renamed = write(block_text("other"));
  const AlignedBytes stripped = write(block_text(), {.strip = true});
  EXPECT_NE(bytes_of(plan), bytes_of(renamed));
  const std::string digest = inspect::content_digest(inspect::PlanReader(plan.span()).view());
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(digest, inspect::content_digest(inspect::PlanReader(renamed.span()).view()));
  const inspect::PlanReader stripped_reader(stripped.span());
  EXPECT_EQ(digest, inspect::content_digest(stripped_reader.view()));
  EXPECT_EQ(stripped_reader.view().names(), nullptr);
  EXPECT_EQ(stripped_reader.view().header().file_size, stripped_reader.view().header().content_size);
  // Another target is another content.
  EXPECT_NE(digest,
            inspect::content_digest(
                inspect::PlanReader(write(block_text(), named(), "cpu,isa=reference").span()).view()));
}

TEST(PlanWriter, ScratchCountsEveryVariantOfTheProfile) {
  const auto scratch = [](const std::string& target) {
    const AlignedBytes plan = write(block_text(), named(), target);
    return inspect::PlanReader(plan.span()).view().find_function(nullptr)->scratch_per_worker();
  };
  EXPECT_GE(scratch("cpu"), scratch("cpu,isa=avx2"));
  EXPECT_EQ(scratch("cpu,arch=cortex-m") % 64, 0u);
}

TEST(PlanWriter, SmallStepsAreNeverSplit) {
  const AlignedBytes plan = write(block_text());
  const inspect::PlanReader reader(plan.span());
  for (uint32_t i = 0; i < reader.view().num_steps(); ++i)
    EXPECT_EQ(reader.view().step(i).min_units_per_task(), 0u);
}

TEST(PlanWriter, LargeStepsAreSplitWhereTheTargetHasThreads) {
  const std::string text =
      main_text("%x: Tensor[(1, 256, 256, 2), int8]",
                "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 2), int8], [1, 2, 3, 4]), 0, 0, 1f, 1f, "
                "padding=[0, 0, 0, 0], "
                "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  %1 = qnn.requantize(%0, 1f, 0, 4f, 0);\n"
                "  %2 = qnn.add(%1, %1, 1f, 0, 1f, 0, 4f, 0);\n  %3 = reshape(%2, newshape=[131072]);\n"
                "  %4 = qnn.dequantize(%3, 1f, 0);\n  %4");
  const AlignedBytes plan = write(text);
  EXPECT_GT(inspect::PlanReader(plan.span()).view().step(3).min_units_per_task(), 0u);
  const AlignedBytes firmware = write(text, named(), "cpu,arch=cortex-m");
  EXPECT_EQ(inspect::PlanReader(firmware.span()).view().step(3).min_units_per_task(), 0u);
}

TEST(ConstantSegment, EqualContentsLieThereOnceAndAligned) {
  const target::Program program = lower_text(block_text());
  const ConstantSegment segment = lay_out_constants(program);
  const auto& first = program.steps.at(0).inputs;
  const auto& second = program.steps.at(1).inputs;
  EXPECT_NE(first.at(1), second.at(1));
  EXPECT_EQ(segment.offsets[first.at(1)], segment.offsets[second.at(1)]);
  EXPECT_NE(segment.offsets[first.at(1)], segment.offsets[first.at(2)]);
  for (const uint64_t offset : segment.offsets) EXPECT_EQ(offset % 64, 0u);
}

TEST(InspectJson, TellsInputsMemoryAndSteps) {
  const AlignedBytes plan = write(block_text());
  const inspect::PlanReader reader(plan.span());
  const nlohmann::json json = nlohmann::json::parse(inspect::inspect_json(reader.view()));
  EXPECT_EQ(json.at("content_digest"), inspect::content_digest(reader.view()));
  EXPECT_EQ(json.at("file_bytes"), plan.size());
  EXPECT_EQ(json.at("version"), "1.5");
  EXPECT_EQ(json.at("provenance").at("source"), "block.relay");
  EXPECT_EQ(json.at("targets").at(0).at("options"), "arch=x86_64,isa=avx512vnni");
  const nlohmann::json& input = json.at("inputs").at(0);
  EXPECT_EQ(input.at("name"), "x");
  EXPECT_EQ(input.at("dtype"), "int8");
  EXPECT_EQ(input.at("shape"), (std::vector<int>{1, 4, 4, 2}));
  EXPECT_EQ(input.at("bytes"), 32);
  EXPECT_EQ(input.at("scale"), 0.5);
  EXPECT_EQ(input.at("zero_point"), 3);
  EXPECT_EQ(json.at("outputs").at(0).at("scale"), 2.0);  // of the sum, which keeps it when it is reshaped
  EXPECT_EQ(json.at("steps").size(), 4u);
  EXPECT_EQ(json.at("steps").at(0).at("op"), "conv2d");
  EXPECT_EQ(json.at("steps").at(0).at("name"), "conv0");
  EXPECT_EQ(json.at("steps").at(0).at("macs"), 4 * 4 * 2 * 2);
  EXPECT_EQ(json.at("steps").at(3).at("op"), "copy");
  const nlohmann::json& memory = json.at("memory");
  EXPECT_GE(memory.at("arena_bytes"), memory.at("arena_lower_bound_bytes"));
  // input 64, the first convolution's result 64, the second's 64; add and reshape work in place.
  EXPECT_EQ(memory.at("arena_bytes"), 192);
  EXPECT_GT(memory.at("session_bytes").at("64_bit").at("4"), memory.at("session_bytes").at("32_bit").at("4"));
}

TEST(InspectJson, TotalsAreThoseOfMemoryNeeds) {
  const AlignedBytes bytes = write(block_text());
  qplan_plan plan{};
  ASSERT_EQ(qplan_plan_open(&plan, bytes.data(), bytes.size(), 0, nullptr), QPLAN_OK);
  qplan_session_config config{};
  config.struct_size = sizeof(config);
  config.kernels = qplan_kernels_all();
  qplan_memory_need need{};
  uint32_t count = 1;
  ASSERT_EQ(qplan_session_memory_needs(&plan, &config, &need, &count, nullptr), QPLAN_OK);
  const nlohmann::json json =
      nlohmann::json::parse(inspect::inspect_json(inspect::PlanReader(bytes.span()).view()));
  const char* key = sizeof(void*) == 8 ? "64_bit" : "32_bit";
  EXPECT_EQ(json.at("memory").at("session_bytes").at(key).at("1"), need.size);
}

TEST(Disassemble, OneLinePerStep) {
  const AlignedBytes plan = write(block_text("con\\nv"));
  const std::string text = inspect::disassemble(inspect::PlanReader(plan.span()).view());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 1 + 4);  // plan, function, steps
  EXPECT_NE(text.find("add  'sum'"), std::string::npos) << text;
  EXPECT_NE(text.find("constants+"), std::string::npos) << text;
}

TEST(PlanReader, ReadsMisalignedBytesAndRefusesDamage) {
  const AlignedBytes plan = write(block_text());
  std::vector<uint8_t> shifted(plan.size() + 1);
  std::copy(plan.data(), plan.data() + plan.size(), shifted.begin() + 1);
  EXPECT_EQ(inspect::PlanReader(std::span(shifted).subspan(1)).view().num_steps(), 4u);
  shifted.back() ^= 1;
  EXPECT_THROW(inspect::PlanReader(std::span(shifted).subspan(1)), PackError);
  EXPECT_THROW(inspect::PlanReader({}), PackError);
}

TEST(Evaluate, ANodeOfConstants) {
  const ir::Module module = text::parse(
      main_text("",
                "  %0 = qnn.quantize(const(Tensor[(4), float32], [0, 0.6, -0.5, 1000]), 0.5f, 10);\n  %0"),
      "test");
  const ir::Node& node = module.main().nodes()[0];
  std::vector<ir::ConstantRef> operands;
  for (const ir::ValueId operand : node.operands) operands.push_back(module.main().value(operand).constant);
  const auto results = evaluate::evaluate_node(node, operands);
  ASSERT_TRUE(results.has_value());
  const auto values = results->at(0)->as<int8_t>();
  EXPECT_EQ(std::vector<int8_t>(values.begin(), values.end()), (std::vector<int8_t>{10, 11, 9, 127}));
}

TEST(Evaluate, ANodeWithoutKernelIsLeftAlone) {
  const ir::Module module = text::parse(
      main_text("", "  %0 = cast(const(Tensor[(2), int8], [1, 2]), dtype=\"float64\");\n  %0"), "test");
  const ir::Node& node = module.main().nodes()[0];
  EXPECT_FALSE(evaluate::evaluate_node(node, {{module.main().value(node.operands[0]).constant}}).has_value());
}

TEST(Evaluate, InputsMustFitTheParameters) {
  const ir::Module module = text::parse(main_text("%x: Tensor[(2), int8]", "  %x"), "test");
  EXPECT_THROW(evaluate::run_function(module.main(), {}), PackError);
  const std::vector<ir::ConstantRef> wrong{ir::make_constant<int8_t>(ir::kInt8, {3}, {1, 2, 3})};
  EXPECT_THROW(evaluate::run_function(module.main(), wrong), PackError);
}

}  // namespace
}  // namespace qplan::write::plan_writer_test
