// Regions of real networks compiled for VTA: the smaller ones run on the simulator, against the CPU's
// reference kernels; of all of them the packer's estimate is the simulator's count.
#include <gtest/gtest.h>

#include <cstdio>

#include "src/packer/partition/partition.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/target.h"
#include "src/vta/compiler/target.h"
#include "tests/models/golden_data.h"
#include "tests/support/random.h"
#include "tests/support/vta_config.h"
#include "tests/vta/compiler/simulate_region.h"

namespace qplan::vta_region_test {
namespace {

using vta::Config;

struct Model {
  const char* name;
  bool runs;  // on the simulator, in a few seconds
};

class VtaRegionModels : public ::testing::TestWithParam<Model> {};

void run(const Config& config, const ir::Module& module, const ir::Function& region,
         const target::CompiledRegion& compiled) {
  testing::Random random(1);
  std::vector<ir::ConstantRef> inputs;
  for (const ir::ValueId param : region.params()) {
    const ir::TensorType& type = region.type(param);
    inputs.push_back(ir::make_constant(
        type.dtype, type.shape, random.integers<uint8_t>(static_cast<size_t>(type.size_bytes()), 0, 255)));
  }
  const auto result = vta::compiler::simulate_region(config, region, compiled, inputs, 1, 2);
  const std::vector<ir::ConstantRef> expected = vta::compiler::run_on_cpu(module, region, inputs);
  ASSERT_EQ(result.outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto bytes = expected[i]->bytes();
    EXPECT_TRUE(std::ranges::equal(result.outputs[i], bytes)) << "output " << i;
  }
}

TEST_P(VtaRegionModels, CompileToProgramsWithTheCpusBytes) {
  const std::filesystem::path path = testing::model_path(GetParam().name);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << testing::kNoDataDirectory;
  const std::vector<uint8_t> model = testing::read_bytes(path);
  const ir::Module canonical = canonical_module(model, GetParam().name, {});
  for (const char* list : {"vta, cpu", "vta,sram=quarter, cpu"}) {
    const std::vector<target::Target> targets = pipeline::parse_targets(list);
    const Config config = vta::compiler::config_of(targets[0]);
    const partition::PartitionResult result = partition::partition(canonical, targets);
    for (const partition::Region& placed : result.regions) {
      const ir::Function& region = *result.module.find(placed.function);
      const target::CompiledRegion compiled = targets[0].compile(result.module, region);
      sim::Program program;
      qplan_npu_reason why = {};
      ASSERT_EQ(load_program(config, compiled.blob.data(), compiled.blob.size(), &program, &why),
                QPLAN_NPU_OK)
          << why.text;
      EXPECT_EQ(program.schedule.total_cycles, compiled.cycles);
      std::printf("%s %s: %zu units, %zu instructions, %llu cycles (busy %llu, %llu, %llu)\n", list,
                  placed.function.c_str(), compiled.units.size(), program.stream.size(),
                  static_cast<unsigned long long>(compiled.cycles),
                  static_cast<unsigned long long>(program.schedule.busy_cycles[0]),
                  static_cast<unsigned long long>(program.schedule.busy_cycles[1]),
                  static_cast<unsigned long long>(program.schedule.busy_cycles[2]));
      if (GetParam().runs) run(config, result.module, region, compiled);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VtaRegionModels,
                         ::testing::Values(Model{"pretrainedResnet_quant.tflite", true},
                                           Model{"kws_ref_model.tflite", true},
                                           Model{"person_detect.tflite", true},
                                           Model{"mobilenet_v1_0.25_128_quant.tflite", true},
                                           Model{"tf2_mobilenet_v2_1.0_224_ptq.tflite", false}),
                         [](const auto& parameter) { return testing::as_test_name(parameter.param.name); });

}  // namespace
}  // namespace qplan::vta_region_test
