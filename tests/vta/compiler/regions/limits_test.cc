// An operator that VTA's compiler cannot take is refused and stays on the CPU: constants read as activations,
// memories that are too small, regions whose buffers are too large.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"
#include "src/vta/compiler/target.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/support/random.h"
#include "tests/support/vta_config.h"
#include "tests/vta/compiler/simulate_region.h"

namespace qplan::vta::compiler::limits_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

using partition::CompiledPartition;

std::string repeat(const std::string& value, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + value;
  return text;
}

ir::Module parse(const std::string& params, const std::string& body) {
  return text::parse("def @main(" + params + ") {\n" + body + "}\n", "test");
}

CompiledPartition compile(const ir::Module& module, const std::vector<Target>& targets) {
  return partition::compile_partition(module, targets, {.cost_gate = false});
}

// Ids of the reasons of all nodes.
std::set<std::string> reasons(const CompiledPartition& partition) {
  const std::string json = partition.placed.explain.json();
  std::set<std::string> ids;
  for (const char* id : {"vta.add.constant", "vta.region.constant", "vta.region.bank", "vta.region.unit"}) {
    if (json.find(id) != std::string::npos) ids.insert(id);
  }
  return ids;
}

// ---- constants

ir::Module addition_of_a_constant() {
  return parse("%x: Tensor[(1, 2, 2, 16), int8]", "  qnn.add(%x, const(Tensor[(1, 2, 2, 16), int8], [" +
                                                      repeat("3", 64) + "]), 1f, 0, 2f, 0, 4f, 0)\n");
}

TEST(VtaLimits, AnAdditionOfAConstantStaysOnTheCpu) {
  const std::vector<Target> targets = pipeline::parse_targets("vta, cpu");
  const CompiledPartition partition = compile(addition_of_a_constant(), targets);
  EXPECT_TRUE(partition.placed.regions.empty());
  EXPECT_EQ(reasons(partition), std::set<std::string>{"vta.add.constant"});
}

// The compiler's own check, after a table that does not check.
TEST(VtaLimits, TheCompilerRefusesConstantsAsActivations) {
  std::vector<Target> targets = pipeline::parse_targets("vta, cpu");
  for (PatternRow& row : targets[0].table) {
    std::erase_if(row.constraints, [](const Constraint& c) { return c.id == "vta.add.constant"; });
  }
  const CompiledPartition partition = compile(addition_of_a_constant(), targets);
  EXPECT_TRUE(partition.placed.regions.empty());
  EXPECT_EQ(reasons(partition), std::set<std::string>{"vta.region.constant"});
}

// ---- small memories

// A unit of each kind, one after the other.
ir::Module all_units(testing::Random& random) {
  const std::string weights = [&] {
    std::string text;
    for (int i = 0; i < 40 * 3 * 3 * 20; ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(random.integer(-9, 9));
    return text;
  }();
  const std::string requantize = ", 0.25f, 0, 50f, 5, out_dtype=\"int8\", contract=\"tfl2\", axis=-1);\n";
  return parse(
      "%x: Tensor[(1, 6, 7, 20), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(40, 3, 3, 20), int8], [" + weights +
          "]), 3, 0, 0.5f, 0.5f, padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n" +
          "  %1 = qnn.requantize(%0" + requantize +
          "  %2 = qnn.conv2d(%1, const(Tensor[(40, 3, 3, 1), int8], [" + repeat("2, -1, 1", 120) +
          "]), 5, 0, 0.5f, 0.5f, groups=40, padding=[1, 1, 1, 1], data_layout=\"NHWC\", "
          "kernel_layout=\"OHWI\");\n" +
          "  %3 = qnn.requantize(%2, 0.25f, 0, 1f, 5, out_dtype=\"int8\", contract=\"tfl2\", axis=-1);\n" +
          "  %4 = qnn.add(%1, %3, 0.0235f, 4, 0.0612f, -9, 0.0673f, -3);\n" +
          "  %5 = qnn.add(%4, %3, 1.8f, 55, 0.5f, -67, 0.0324f, -72);\n" +
          "  %6 = nn.max_pool2d(%5, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], "
          "layout=\"NHWC\");\n" +
          "  %7 = qnn.avg_pool2d(%5, 1f, 3, 1f, 3, pool_size=[2, 2], strides=[1, 1], padding=[0, 0, 0, 0], "
          "layout=\"NHWC\");\n" +
          "  %8 = clip(%7, a_min=-100f, a_max=90f);\n" +
          "  %9 = qnn.mean(%8, 0.5f, 3, 0.25f, 7, axis=[1, 2], keepdims=True);\n" +
          "  %10 = reshape(%9, newshape=[1, 40]);\n" +
          "  %11 = qnn.dense(%10, const(Tensor[(10, 40), int8], [" + repeat("3, -2, 1, 5", 100) +
          "]), 7, 0, 0.5f, 0.5f);\n" +
          "  %12 = qnn.requantize(%11, 0.25f, 0, 1f, 5, out_dtype=\"int8\", contract=\"tfl2\", axis=-1);\n" +
          "  (%6, %12)\n");
}

// Returns how many units ran on the simulator.
size_t check(const ir::Module& module, const std::vector<Target>& targets, testing::Random& random) {
  const Config config = config_of(targets[0]);
  const CompiledPartition partition = compile(module, targets);
  size_t units = 0;
  for (size_t r = 0; r < partition.code.size(); ++r) {
    const ir::Function& region = *partition.placed.module.find(partition.placed.regions[r].function);
    std::vector<ir::ConstantRef> inputs;
    for (const ir::ValueId param : region.params()) {
      const ir::TensorType& type = region.type(param);
      inputs.push_back(ir::make_constant(type.dtype, type.shape,
                                         random.full_range<uint8_t>(static_cast<size_t>(type.size_bytes()))));
    }
    const RegionResult result = simulate_region(config, region, *partition.code[r], inputs, 1, 2);
    const auto expected = run_on_cpu(partition.placed.module, region, inputs);
    EXPECT_EQ(result.outputs.size(), expected.size());
    for (size_t i = 0; i < std::min(expected.size(), result.outputs.size()); ++i) {
      const auto bytes = expected[i]->bytes();
      EXPECT_TRUE(std::ranges::equal(result.outputs[i], bytes)) << region.name() << ", output " << i;
    }
    units += region.nodes().size();
  }
  return units;
}

TEST(VtaLimits, SmallMemoriesRefuseOrAreExact) {
  testing::Random random(1);
  const ir::Module module = all_units(random);
  size_t least = SIZE_MAX, most = 0;
  const auto run = [&](int uop, int wgt, int inp, int acc) {
    const std::string file =
        "{\"targets\": [{\"target\": \"vta\", \"memories\": {\"uop\": " + std::to_string(uop) +
        ", \"wgt\": " + std::to_string(wgt) + ", \"inp\": " + std::to_string(inp) +
        ", \"acc\": " + std::to_string(acc) + "}}]}";
    SCOPED_TRACE(file);
    const size_t units = check(module, pipeline::parse_target_file(file, "small"), random);
    least = std::min(least, units);
    most = std::max(most, units);
  };
  for (int acc = 1; acc <= 24 && !HasFailure(); ++acc) run(8192, 1024, 2048, acc);
  for (const int acc : {32, 40, 64, 100, 200}) run(8192, 1024, 2048, acc);
  for (const int uop : {1, 2, 3, 5, 9, 18, 40}) run(uop, 1024, 2048, 2048);
  for (const int wgt : {1, 2, 5, 9, 18}) run(8192, wgt, 2048, 2048);
  for (const int inp : {1, 2, 5, 9, 18}) run(8192, 1024, inp, 2048);
  for (const int all : {1, 2, 4, 8, 16, 32}) run(all, all, all, all);
  EXPECT_LE(least, 1u);  // a clamp works on one element at a time
  EXPECT_GE(most, 8u);
}

// ---- large buffers

TEST(VtaLimits, ARegionWhoseBuffersExceedTheDevicesMemoryStaysOnTheCpu) {
  const auto sum = [](int rows) {
    const std::string type = "Tensor[(1, " + std::to_string(rows) + ", 1024, 16), int8]";
    return parse("%x: " + type + ", %y: " + type, "  qnn.add(%x, %y, 1f, 0, 1f, 0, 2f, 0)\n");
  };
  const std::vector<Target> targets = pipeline::parse_targets("vta, cpu");
  // Three tensors: 10 MiB each, 12 MiB each.
  const CompiledPartition fits = compile(sum(640), targets), large = compile(sum(768), targets);
  EXPECT_EQ(fits.placed.regions.size(), 1u);
  EXPECT_TRUE(large.placed.regions.empty());
  EXPECT_EQ(reasons(large), std::set<std::string>{"vta.region.bank"});
}

}  // namespace
}  // namespace qplan::vta::compiler::limits_test
