#include "src/packer/target/target.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "src/packer/error.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/vta/isa/vta.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/support/vta_config.h"

#define KNOWN_ARM "ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256, ethos-u65-256, ethos-u65-512"

namespace qplan::target::target_test {
namespace {

template <typename Run>
std::string refusal(const Run& run) {
  try {
    run();
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

std::string list_refusal(const std::string& text) {
  return refusal([&] { pipeline::parse_targets(text); });
}
std::string file_refusal(const std::string& json) {
  return refusal([&] { pipeline::parse_target_file(json, "t.json"); });
}

// "vta(sram=default,mul=on) 500; cpu(...) 50"
std::string describe(const std::vector<Target>& targets) {
  std::string text;
  for (const Target& target : targets) {
    text += (text.empty() ? "" : "; ") + target.name + "(" + target.options + ") " +
            std::to_string(target.priority);
  }
  return text;
}

using vta::compiler::config_of;

TEST(TargetList, NamesAreFollowedByTheirOptions) {
  EXPECT_EQ(describe(pipeline::parse_targets("vta,sram=quarter, cpu,isa=avx512vnni")),
            "vta(sram=quarter,mul=on) 500; cpu(arch=x86_64,isa=avx512vnni) 50");
  EXPECT_EQ(describe(pipeline::parse_targets(" cpu , isa = avx2 ,vta, priority = 7,mul=off")),
            "cpu(arch=x86_64,isa=avx2) 50; vta(sram=default,mul=off) 7");
  EXPECT_EQ(describe(pipeline::parse_targets("cpu,arch=cortex-m")), "cpu(arch=cortex-m,isa=reference) 50");
}

TEST(TargetList, AListWithoutCpuGetsTheDefaultOne) {
  EXPECT_EQ(describe(pipeline::parse_targets("vta")),
            "vta(sram=default,mul=on) 500; cpu(arch=x86_64,isa=avx512vnni) 50");
}

TEST(TargetList, TheQuarterConfigurationHasAQuarterOfEachMemory) {
  const Target target = pipeline::parse_targets("vta,sram=quarter")[0];
  EXPECT_EQ(config_of(target).uop_elements, 2048u);
  EXPECT_EQ(config_of(target).wgt_elements, 256u);
  EXPECT_EQ(config_of(target).inp_elements, 512u);
  EXPECT_EQ(config_of(target).acc_elements, 512u);
  EXPECT_EQ(config_of(pipeline::parse_targets("vta")[0]).inp_elements, 2048u);
  EXPECT_FALSE(config_of(pipeline::parse_targets("vta,mul=off")[0]).has_multiply);
}

TEST(TargetList, UnknownThingsAreErrorsThatListTheKnown) {
  EXPECT_EQ(list_refusal("gpu, cpu"), "target: 'gpu' is not known; known: cpu, vta, " KNOWN_ARM);
  EXPECT_EQ(list_refusal(""), "target: '' is not known; known: cpu, vta, " KNOWN_ARM);
  EXPECT_EQ(list_refusal("vta,,cpu"), "target: '' is not known; known: cpu, vta, " KNOWN_ARM);
  EXPECT_EQ(list_refusal("vta,size=1"),
            "target: option 'size' of 'vta' is not known; known: clock, mul, priority, sram");
  EXPECT_EQ(list_refusal("vta,sram=half"),
            "target: sram 'half' of 'vta' is not known; known: default, quarter");
  EXPECT_EQ(list_refusal("vta,mul=maybe"), "target: mul 'maybe' of 'vta' is not known; known: on, off");
  EXPECT_EQ(
      list_refusal("vta,cpu,isa=mmx"),
      "target: isa 'mmx' of arch 'x86_64' is not known; known: reference, sse41, avx2, avxvnni, avx512vnni");
  EXPECT_EQ(
      list_refusal("sram=quarter,vta"),
      "target: option 'sram=quarter' comes before any target; expected a name first, like \"vta, cpu\"");
  EXPECT_EQ(list_refusal("vta, cpu, vta"), "target: 'vta' is there twice");
  EXPECT_EQ(list_refusal("cpu,isa=avx2,isa=sse41"), "target: option 'isa' of 'cpu' is there twice");
  EXPECT_EQ(list_refusal("vta,clock=1MHz,clock=2MHz, cpu"), "target: option 'clock' of 'vta' is there twice");
  EXPECT_EQ(list_refusal("vta,priority=high"), "target: priority 'high' is not a number from 0 to 1000000");
  EXPECT_EQ(list_refusal("vta,priority=-1"), "target: priority '-1' is not a number from 0 to 1000000");
}

TEST(TargetList, ThePreferredTargetHasTheHighestPriorityOrComesFirst) {
  const std::vector<Target> defaults = pipeline::parse_targets("cpu, vta");
  EXPECT_EQ(by_priority(defaults)[0]->name, "vta");
  const std::vector<Target> equal = pipeline::parse_targets("cpu,priority=500, vta");
  EXPECT_EQ(by_priority(equal)[0]->name, "cpu");
  const std::vector<Target> low = pipeline::parse_targets("vta,priority=10, cpu");
  EXPECT_EQ(by_priority(low)[0]->name, "cpu");
}

TEST(TargetList, CostsHaveTheDefaultsOfTheDesign) {
  const std::vector<Target> targets = pipeline::parse_targets("vta, cpu");
  EXPECT_EQ(targets[0].costs.clock_khz, 100'000u);
  EXPECT_EQ(targets[0].costs.dma_bytes_per_cycle, 8u);
  EXPECT_EQ(targets[0].costs.dma_latency_cycles, 64u);
  EXPECT_EQ(device_ns(targets[0].costs, 100), 1000u);
  EXPECT_EQ(dma_cycles(targets[0].costs, 17), 67u);
  EXPECT_EQ(device_pj(targets[0].costs, 1000, 10), 2'800u + 1'625u);
}

TEST(NodeMacs, LayersOfWeightsHaveSome) {
  const auto macs = [](const std::string& input, const std::string& body) {
    const ir::Module module = text::parse(testing::main_text(input, "  %0 = " + body + ";\n  %0"), "test");
    return node_macs(module.main(), module.main().nodes()[0]);
  };
  std::string ones = "1";
  for (int i = 1; i < 54; ++i) ones += ", 1";
  // 5 * 4 outputs of 3 channels, each of 3 * 3 * 2 products.
  const std::string weights = "const(Tensor[(3, 3, 3, 2), int8], [" + ones + "])";
  EXPECT_EQ(macs("%x: Tensor[(1, 5, 4, 2), int8]", "qnn.conv2d(%x, " + weights +
                                                       ", 0, 0, 1f, 1f, padding=[1, 1, 1, 1], "
                                                       "data_layout=\"NHWC\", kernel_layout=\"OHWI\")"),
            5u * 4 * 3 * 18);
  // Each of 5 * 4 * 2 inputs adds to 3 * 3 outputs of 3 channels, however many outputs there are.
  for (const std::string size : {"[11, 9]", "[10, 8]"}) {
    EXPECT_EQ(macs("%x: Tensor[(1, 5, 4, 2), int8]",
                   "qnn.conv2d_transpose(%x, " + weights +
                       ", 0, 0, 1f, 1f, strides=[2, 2], output_size=" + size + ")"),
              5u * 4 * 2 * 27);
  }
  EXPECT_EQ(macs("%x: Tensor[(1, 5, 4, 2), int8]", "clip(%x, a_min=0f, a_max=6f)"), 0u);
}

TEST(TargetList, AClockScalesTheDevicesCycles) {
  EXPECT_EQ(device_ns(pipeline::parse_targets("vta,clock=250MHz")[0].costs, 1000), 4000u);
  EXPECT_EQ(device_ns(pipeline::parse_targets("vta,clock=1.2GHz,sram=quarter")[0].costs, 1200), 1000u);
  EXPECT_EQ(device_ns(pipeline::parse_targets("vta,clock=500kHz")[0].costs, 1), 2000u);
  EXPECT_EQ(device_ns(pipeline::parse_targets("vta,clock=100000000Hz")[0].costs, 100), 1000u);
  // It is what the device costs, not what it is: plans and blobs are the same.
  EXPECT_EQ(pipeline::parse_targets("vta,clock=250MHz")[0].options,
            pipeline::parse_targets("vta")[0].options);
  for (const char* clock : {"250", "MHz", "-1MHz", "1.MHz", ".5MHz", "1e3MHz", "0Hz", "999Hz", "101GHz",
                            "99999999999999GHz", "1 000MHz"}) {
    EXPECT_EQ(list_refusal(std::string("vta,clock=") + clock),
              std::string("target: clock '") + clock +
                  "' of 'vta' is not a frequency from 1kHz to 100GHz with its unit; expected like 250MHz or "
                  "1.2GHz");
  }
}

TEST(TargetList, TheCpusSpeedIsAWholeNumber) {
  EXPECT_EQ(list_refusal("cpu,macs_per_us=fast"),
            "target: macs_per_us 'fast' of 'cpu' is not a whole number from 1 to 1000000000");
  EXPECT_EQ(list_refusal("cpu,bytes_per_us=0"),
            "target: bytes_per_us '0' of 'cpu' is not a whole number from 1 to 1000000000");
}

TEST(TargetFile, SaysWhatAListSaysAndMore) {
  const std::vector<Target> targets = pipeline::parse_target_file(
      R"({"targets": [
        {"target": "vta,mul=off", "priority": 400, "memories": {"inp": 512, "acc": 1024}, "costs": {"clock_mhz": 250}},
        {"name": "npu", "operators": ["nn.bias_add", "nn.relu"], "costs": {"macs_per_cycle": 1024}},
        {"target": "cpu,isa=avx2", "costs": {"macs_per_us": 1000, "bytes_per_us": 2000}}]})",
      "t.json");
  EXPECT_EQ(
      describe(targets),
      "vta(sram=uop:8192/wgt:1024/inp:512/acc:1024,mul=off) 400; npu() 500; cpu(arch=x86_64,isa=avx2) 50");
  EXPECT_EQ(targets[0].costs.clock_khz, 250'000u);
  EXPECT_EQ(targets[0].costs.dma_bytes_per_cycle, 8u);
  EXPECT_EQ(config_of(targets[0]).acc_elements, 1024u);
  EXPECT_EQ(targets[1].costs.macs_per_cycle, 1024u);
  ASSERT_EQ(targets[1].table.size(), 2u);
  EXPECT_EQ(targets[1].table[0].name, "nn.bias_add");
  EXPECT_TRUE(targets[1].table[0].is_operator());
  EXPECT_EQ(targets[2].cpu_costs.macs_per_us(), 1000u);
  EXPECT_EQ(targets[2].cpu_costs.bytes_per_us(), 2000u);
}

// A refusal prints what it found, and printing recurses: brackets alone would use up the stack.
TEST(TargetFile, RefusesWhatNestsTooDeeply) {
  const std::string brackets = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "vta", "priority": )" + brackets + "}]}"),
            "t.json: target: the file nests more than 64 deep");
  // Brackets in a text open nothing.
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": ")" + std::string(100, '[') + "\\\"\"}]}"),
            "t.json: target: '" + std::string(100, '[') + "\"' is not known; known: cpu, vta, " KNOWN_ARM);
}

TEST(TargetFile, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(file_refusal("{"), "t.json: target: the file is not JSON (byte 2)");
  EXPECT_EQ(file_refusal("[]"), "t.json: target: the file is not an object");
  EXPECT_EQ(file_refusal("{}"), "t.json: target: there is no list 'targets'");
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "gpu"}]})"),
            "t.json: target: 'gpu' is not known; known: cpu, vta, " KNOWN_ARM);
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "vta, cpu"}]})"),
            "t.json: target: 'target' names several targets, expected one");
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "vta", "speed": 1}]})"),
            "t.json: target: key 'speed' of a target is not known; known: target, name, operators, priority, "
            "memories, costs, areas, copy_constants");
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "vta", "memories": {"inp": 4096}}]})"),
            "t.json: target: 'inp' is 4096, expected a whole number from 1 to 2048");
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "vta", "costs": {"clock_mhz": 0}}]})"),
            "t.json: target: 'clock_mhz' is 0, expected a whole number from 1 to 1000000000");
  EXPECT_EQ(file_refusal(R"({"targets": [{"target": "cpu", "memories": {}}]})"),
            "t.json: target: 'cpu' has no memories to set");
  EXPECT_EQ(file_refusal(R"({"targets": [{"name": "N 1", "operators": []}]})"),
            "t.json: target: name 'N 1' is not of letters a to z, digits and _");
  EXPECT_EQ(file_refusal(R"({"targets": [{"name": "npu", "operators": ["nn.magic"]}]})"),
            "t.json: pattern: there is no operator 'nn.magic'");
}

TEST(SupportedOps, ThePageIsWhatTheTablesSay) {
  const std::string page = pipeline::supported_ops_page();
  if (std::getenv("QPLAN_UPDATE_DOCS") != nullptr) {
    std::ofstream("docs/supported_ops.md", std::ios::binary) << page;
  }
  std::ifstream file("docs/supported_ops.md", std::ios::binary);
  const std::string found((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(found, page)
      << "QPLAN_UPDATE_DOCS=1 bash tests/run.sh -R SupportedOps writes docs/supported_ops.md again";
}

}  // namespace
}  // namespace qplan::target::target_test
