// What share of real networks runs on VTA, and that outlining changes nothing.
#include "src/packer/partition/partition.h"

#include <gtest/gtest.h>

#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/models/golden_data.h"

namespace qplan {
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
    const std::vector<target::Target> targets = target::parse_targets(list);
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
}  // namespace qplan
