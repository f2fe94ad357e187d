// The share of real networks that runs on VTA; outlining changes nothing.
#include "src/packer/partition/partition.h"

#include <gtest/gtest.h>

#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/models/golden_data.h"

namespace qplan::partition_test {
namespace {

struct Expected {
  const char* model;
  size_t num_regions;
};

class PartitionModels : public ::testing::TestWithParam<Expected> {};

// Bounds of all accumulators are proved, uint8 weights are sums of two, averages divide exactly,
// reshapes move no byte: only softmax stays.
TEST_P(PartitionModels, AllMultiplicationsRunOnVtaInBothConfigurations) {
  const std::filesystem::path path = testing::model_path(GetParam().model);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << testing::kNoDataDirectory;
  const std::vector<uint8_t> model = testing::read_bytes(path);
  const ir::Module canonical = canonical_module(model, GetParam().model, {});
  for (const char* list : {"vta, cpu", "vta,sram=quarter, cpu"}) {
    const std::vector<target::Target> targets = pipeline::parse_targets(list);
    const partition::PartitionResult result = partition::partition(canonical, targets);
    EXPECT_EQ(result.regions.size(), GetParam().num_regions) << result.explain.summary();
    const uint64_t vta = result.explain.devices[0].macs, cpu = result.explain.devices[1].macs;
    EXPECT_GE(vta, (vta + cpu) / 1000 * 999) << result.explain.text();
    const auto inlined = partition::inline_calls(result.module, result.module.main());
    EXPECT_EQ(inlined->nodes().size(), canonical.main().nodes().size());
    if (result.regions.size() > 1) continue;  // texts of the small networks are enough
    const std::string text = text::print(result.module);
    EXPECT_EQ(text::print(text::parse(text, "partitioned")), text);
  }
}

// By one thread of a 3.65 GHz Zen 4: 1.89 ms with avx512vnni (benchmarks/results/2026-11-22-1684c11); a VTA
// of 100 MHz takes about a quarter of a second.
TEST(PrefersOfMobileNetV2, LatencyKeepsAllOperatorsOnAFastCpuAndNpuSaysWhatItCosts) {
  const std::string name = "mobilenet_v2_1.0_224_quant.tflite";
  if (!std::filesystem::exists(testing::model_path(name))) GTEST_SKIP() << testing::kNoDataDirectory;
  const ir::Module canonical = canonical_module(testing::read_bytes(testing::model_path(name)), name, {});
  const std::vector<target::Target> targets = pipeline::parse_targets("vta, cpu");
  using partition::Prefer;

  const partition::Explain latency =
      partition::partition(canonical, targets, {.prefer = Prefer::kLatency}).explain;
  EXPECT_TRUE(latency.regions.empty());
  EXPECT_EQ(latency.devices[1].num_ops, 172u);
  ASSERT_EQ(latency.decisions.size(), 1u);
  EXPECT_EQ(latency.decisions[0].by, "latency");
  EXPECT_GT(latency.decisions[0].device_ns, 50 * latency.decisions[0].cpu_ns);
  EXPECT_GT(latency.decisions[0].cpu_ns, 1'890'000u / 2);
  EXPECT_LT(latency.decisions[0].cpu_ns, 1'890'000u * 2);
  EXPECT_NE(latency.summary().find("--prefer latency keeps "), std::string::npos) << latency.summary();

  const partition::Explain npu = partition::partition(canonical, targets).explain;
  EXPECT_EQ(npu.prefer, "npu");
  EXPECT_EQ(npu.regions.size(), 1u);
  EXPECT_EQ(npu.num_ops_by_latency, 0u);
  EXPECT_NE(npu.summary().find(" times slower than the CPU"), std::string::npos) << npu.summary();
  EXPECT_NE(npu.summary().find("--prefer latency keeps them on the CPU"), std::string::npos) << npu.summary();

  // A Cortex-M is slower than that device.
  const partition::PartitionOptions by_latency = {.prefer = Prefer::kLatency};
  EXPECT_EQ(partition::partition(canonical, pipeline::parse_targets("vta, cpu,arch=cortex-m"), by_latency)
                .regions.size(),
            1u);
}

struct Measured {
  const char* model;
  uint64_t avx512vnni_us, avx2_us;
};

// avx512vnni: fastest runs of benchmarks/results/2026-11-22-1684c11, Zen 4. avx2: fastest runs of `qplan
// bench` on a busy virtual machine of a Zen 3, 2026-11-23.
TEST(CpuEstimates, OfWholeModelsAreWithinAFactorOfTwoOfTheirMeasurements) {
  const Measured kMeasured[] = {
      {"mobilenet_v1_1.0_224_quant_embedding_extractor.tflite", 2823, 18885},
      {"mobilenet_v1_0.75_192_quant.tflite", 1280, 6641},
      {"mobilenet_v1_0.25_128_quant.tflite", 109, 620},
      {"mobilenet_v2_1.0_224_quant.tflite", 1890, 10227},
      {"tf2_mobilenet_v2_1.0_224_ptq.tflite", 1840, 9595},
      {"deeplabv3_mnv2_dm05_pascal_quant.tflite", 6910, 42090},
      {"pretrainedResnet_quant.tflite", 71, 306},
      {"kws_ref_model.tflite", 17, 88},
      {"person_detect.tflite", 54, 342},
      {"ad01_int8.tflite", 3, 9},
  };
  for (const Measured& measured : kMeasured) {
    if (!std::filesystem::exists(testing::model_path(measured.model)))
      GTEST_SKIP() << testing::kNoDataDirectory;
    const ir::Module canonical =
        canonical_module(testing::read_bytes(testing::model_path(measured.model)), measured.model, {});
    const auto check = [&](const char* target, uint64_t us) {
      if (us == 0) return;
      const uint64_t ns =
          partition::partition(canonical, pipeline::parse_targets(target)).explain.devices[0].ns;
      EXPECT_LT(ns, us * 2000) << measured.model << ", " << target;
      EXPECT_GT(ns, us * 500) << measured.model << ", " << target;
      RecordProperty(std::string(target) + " " + measured.model, std::to_string(ns));
    };
    check("cpu,isa=avx512vnni", measured.avx512vnni_us);
    check("cpu,isa=avx2", measured.avx2_us);
  }
}

// Instructions counted for the portable kernels on a Cortex-M3 (Release build), at one a cycle of 100 MHz.
TEST(CpuEstimates, OfACortexMAreThoseOfItsInstructions) {
  const Measured kCounted[] = {{"person_detect.tflite", 543'000, 0}, {"kws_ref_model.tflite", 206'000, 0}};
  for (const Measured& counted : kCounted) {
    if (!std::filesystem::exists(testing::model_path(counted.model)))
      GTEST_SKIP() << testing::kNoDataDirectory;
    const ir::Module canonical =
        canonical_module(testing::read_bytes(testing::model_path(counted.model)), counted.model, {});
    const uint64_t ns =
        partition::partition(canonical, pipeline::parse_targets("cpu,arch=cortex-m")).explain.devices[0].ns;
    EXPECT_LT(ns, counted.avx512vnni_us * 1250) << counted.model;
    EXPECT_GT(ns, counted.avx512vnni_us * 800) << counted.model;
  }
}

// The purpose of --fuse memory; it never needs more than auto.
TEST(FuseForMemory, TakesTheLeastOfMobileNetV2) {
  const std::string name = "mobilenet_v2_1.0_224_quant.tflite";
  if (!std::filesystem::exists(testing::model_path(name))) GTEST_SKIP() << testing::kNoDataDirectory;
  const std::vector<uint8_t> model = testing::read_bytes(testing::model_path(name));
  for (const char* target : {"cpu", "cpu,arch=cortex-m", "cpu,arch=cortex-m4"}) {
    const auto memory = [&](schedule::Fuse fuse) {
      PackOptions options;
      options.target = target;
      options.fuse = fuse;
      const AlignedBytes plan = pack(model, name, options);
      const inspect::PlanReader reader(plan.span());
      const uint64_t arena = reader.view().bank(0).size();
      // On small devices one worker's scratch is in the arena.
      const bool is_small = std::string_view(target).starts_with("cpu,arch=cortex-m");
      return is_small ? arena : arena + reader.view().function(0).scratch_per_worker();
    };
    const uint64_t least = memory(schedule::Fuse::kMemory), automatic = memory(schedule::Fuse::kAuto);
    EXPECT_LE(least, automatic) << target;
    EXPECT_LT(least, memory(schedule::Fuse::kOff)) << target;
    EXPECT_LE(least, memory(schedule::Fuse::kAll)) << target;
    RecordProperty(std::string(target) + " memory", std::to_string(least));
    RecordProperty(std::string(target) + " auto", std::to_string(automatic));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PartitionModels,
                         ::testing::Values(Expected{"pretrainedResnet_quant.tflite", 1},
                                           Expected{"kws_ref_model.tflite", 1},
                                           Expected{"person_detect.tflite", 1},
                                           Expected{"tf2_mobilenet_v2_1.0_224_ptq.tflite", 1},
                                           Expected{"mobilenet_v1_0.25_128_quant.tflite", 1},
                                           Expected{"mobilenet_v1_0.75_192_quant.tflite", 1},
                                           Expected{"mobilenet_v2_1.0_224_quant.tflite", 1}),
                         [](const auto& parameter) { return testing::as_test_name(parameter.param.model); });

}  // namespace
}  // namespace qplan::partition_test
