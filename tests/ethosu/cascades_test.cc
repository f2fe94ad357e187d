// Networks whose layers are computed a few rows at a time: the same bytes, in less memory.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/ethosu/sim_device.h"
#include "tests/models/golden_data.h"
#include "tests/models/model_session.h"

namespace qplan::ethosu::testing::cascades_test {
namespace {

using qplan::testing::append_bytes;
using qplan::testing::empty_error;
using qplan::testing::golden_cases;
using qplan::testing::GoldenCase;
using qplan::testing::model_path;
using qplan::testing::ModelSession;
using qplan::testing::read_bytes;
using Bytes = std::vector<uint8_t>;

Bytes packed(const std::string& model, const std::string& target) {
  return qplan::testing::pack_model(model_path(model).string(), (target + ", cpu").c_str());
}

// What the device works on: inputs, outputs and scratch.
uint64_t device_bytes(const Bytes& plan) {
  const qplan::testing::Buffer<uint8_t> aligned(plan);
  Bytes text;
  qplan_error error = empty_error();
  EXPECT_EQ(qplan_inspect_json(aligned.data(), aligned.size(), append_bytes, &text, &error), QPLAN_OK)
      << error.text;
  return nlohmann::json::parse(text).at("memory").at("device_bytes").get<uint64_t>();
}

// Runs the first case; returns the device's memory.
uint64_t run(const std::string& model, const std::string& config, const std::string& sram) {
  SCOPED_TRACE(model + " on " + config + sram);
  const Bytes plan = packed(model, config + sram);
  const SimDevice device(config);
  ModelSession session(plan, QPLAN_ISA_AUTO, 1, device.config());
  const GoldenCase golden = golden_cases("A").at(model).at(0);
  std::vector<Bytes> inputs;
  for (const auto& path : golden.inputs) inputs.push_back(read_bytes(path));
  const std::vector<Bytes> outputs = session.run(inputs);
  for (size_t o = 0; o < outputs.size(); ++o)
    EXPECT_TRUE(outputs[o] == read_bytes(golden.outputs[o])) << "output " << o;
  uint64_t cycles = 0;
  for (uint32_t r = 0; r < qplan_session_num_regions(session.get()); ++r) {
    qplan_region_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(qplan_session_region_info(session.get(), r, &info), QPLAN_OK);
    EXPECT_EQ(info.device_runs, 1u) << info.text;
    cycles += info.last_cycles;
  }
  const uint64_t bytes = device_bytes(plan);
  std::cout << model << " on " << config << sram << ": " << bytes << " bytes, " << cycles << " cycles\n";
  return bytes;
}

TEST(EthosuCascades, GiveTheGoldenBytesInLessMemory) {
  if (golden_cases("A").empty()) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
  for (const std::string model : {"kws_ref_model.tflite", "person_detect.tflite",
                                  "pretrainedResnet_quant.tflite", "mobilenet_v1_0.25_128_quant.tflite"}) {
    for (const std::string config : {"ethos-u55-128", "ethos-u55-256", "ethos-u65-512"}) {
      const uint64_t whole = device_bytes(packed(model, config));
      // As little as possible, and a limit that can be met.
      const uint64_t least = run(model, config, ",sram=1"), some = (whole + least) / 2;
      // All inputs and outputs of layers of kws are equally large.
      EXPECT_LE(least, model.starts_with("kws") ? whole : whole * 3 / 4);
      EXPECT_LE(run(model, config, ",sram=" + std::to_string(some)), some);
      // With room for all values there are no cascades; copies of weights may take the rest.
      EXPECT_LE(run(model, config, ",sram=" + std::to_string(2 * whole)), 2 * whole);
    }
  }
}

// The second one has two regions.
TEST(EthosuCascades, MobileNetV2FitsTheMemoryThatArmsCompilerNeeds) {
  const auto goldens = golden_cases("A");
  for (const std::string model :
       {"mobilenet_v2_1.0_224_quant.tflite", "tf2_mobilenet_v2_1.0_224_ptq.tflite"}) {
    if (goldens.find(model) == goldens.end()) GTEST_SKIP() << qplan::testing::kNoDataDirectory;
    EXPECT_LE(run(model, "ethos-u55-128", ",sram=384K"), 384u * 1024);
  }
}

}  // namespace
}  // namespace qplan::ethosu::testing::cascades_test
