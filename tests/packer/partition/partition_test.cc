#include "src/packer/partition/partition.h"

#include <ctime>
#include <random>

#include "src/packer/evaluate/evaluate.h"
#include "src/packer/pipeline/pipeline.h"
#include "tests/packer/partition/partition_test_support.h"
#include "tests/support/ir_builder.h"
#include "tests/support/sanitizers.h"

namespace qplan::partition::partition_test {
namespace {

using qplan::partition_test::operators;
using qplan::partition_test::parse_main;
using qplan::partition_test::plain_text;
using qplan::partition_test::refusal;

// "vta: 'softmax_1' stays on 'cpu': ... [vta.op.softmax]; nothing to change in the model" for each reason.
std::vector<std::string> reason_lines(const Explain& explain, const UnitReport& unit) {
  const NodeReport& node = explain.nodes[unit.nodes.front()];
  std::vector<std::string> lines;
  for (const TargetVerdict& verdict : unit.verdicts) {
    for (const target::Reason& reason : verdict.reasons) {
      lines.push_back(verdict.target + ": '" + node.name + "' stays on '" + unit.target + "': " +
                      reason.text + " [" + reason.id + "]" + (reason.hint.empty() ? "" : "; " + reason.hint));
    }
  }
  return lines;
}

// MobileNet's float head: conv2d, bias_add, clip, depthwise conv2d, bias_add, clip.
ir::Module float_head() {
  return parse_main(
      "%x: Tensor[(1, 3, 224, 224), float32], %w0: Tensor[(32, 3, 3, 3), float32], %b0: Tensor[(32), "
      "float32], "
      "%w1: Tensor[(32, 1, 3, 3), float32], %b1: Tensor[(32), float32]",
      "  %0 = nn.conv2d(%x, %w0, strides=[2, 2], padding=[0, 0, 1, 1], name=\"conv0\");\n"
      "  %1 = nn.bias_add(%0, %b0, name=\"bias0\");\n"
      "  %2 = clip(%1, a_min=0f, a_max=6f, name=\"relu0\");\n"
      "  %3 = nn.conv2d(%2, %w1, padding=[1, 1, 1, 1], groups=32, name=\"conv1\");\n"
      "  %4 = nn.bias_add(%3, %b1, name=\"bias1\");\n"
      "  clip(%4, a_min=0f, a_max=6f, name=\"relu1\")\n");
}

TEST(Partition, MobileNetsFloatHeadWithBiasAddAloneGivesTwoFunctionsWhenForced) {
  const PartitionResult result = partition(float_head(), operators({"nn.bias_add"}), {.cost_gate = false});
  EXPECT_EQ(plain_text(result.module),
            R"(def @main(%x: Tensor[(1, 3, 224, 224), float32], %w0: Tensor[(32, 3, 3, 3), float32], )"
            R"(%b0: Tensor[(32), float32], %w1: Tensor[(32, 1, 3, 3), float32], %b1: Tensor[(32), float32]) )"
            R"(-> Tensor[(1, 32, 112, 112), float32] {
  %0 = nn.conv2d(%x, %w0, strides=[2, 2], padding=[0, 0, 1, 1]);
  %1 = @qplan_npu_main_0(%0, %b0);
  %2 = clip(%1, a_min=0f, a_max=6f);
  %3 = nn.conv2d(%2, %w1, padding=[1, 1, 1, 1], groups=32);
  %4 = @qplan_npu_main_1(%3, %b1);
  %5 = clip(%4, a_min=0f, a_max=6f);
  %5
}

def @qplan_npu_main_0(%i0: Tensor[(1, 32, 112, 112), float32], %i1: Tensor[(32), float32], Compiler="npu", )"
            R"(Primitive=1, global_symbol="qplan_npu_main_0") -> Tensor[(1, 32, 112, 112), float32] {
  %0 = nn.bias_add(%i0, %i1);
  %0
}

def @qplan_npu_main_1(%i0: Tensor[(1, 32, 112, 112), float32], %i1: Tensor[(32), float32], Compiler="npu", )"
            R"(Primitive=1, global_symbol="qplan_npu_main_1") -> Tensor[(1, 32, 112, 112), float32] {
  %0 = nn.bias_add(%i0, %i1);
  %0
}
)");
  EXPECT_EQ(
      result.explain.summary(),
      "placement: npu 2 of 6 operators, 0.0 % of 14450688 MACs, 6422784 bytes; cpu 4 of 6 operators, 100.0 % "
      "of "
      "14450688 MACs, 11846144 bytes; 2 regions, 6 boundary copies (6422784 bytes); 'npu' is estimated 32.5 "
      "times "
      "slower than the CPU for 2 operators (8.4 ms against 260 us); --prefer latency keeps them on the CPU");
}

TEST(Partition, TheCostGateKeepsMobileNetsBiasAddsOnTheCpuAndSaysWhy) {
  const ir::Module head = float_head();
  const PartitionResult result = partition(head, operators({"nn.bias_add"}), {.prefer = Prefer::kLatency});
  EXPECT_EQ(text::print(result.module), text::print(head));
  EXPECT_TRUE(result.regions.empty());
  EXPECT_EQ(
      reason_lines(result.explain, result.explain.units[1]),
      (std::vector<std::string>{
          "npu: 'bias0' stays on 'cpu': an island of 1 operator is not worth it: 'npu' takes 4.0 ms and 3 "
          "boundary "
          "copies (3211392 bytes) 219 us, the CPU takes 130 us [npu.cost]; pin it with --pin NODE=npu, keep "
          "all with "
          "--no-cost-gate, prefer the device with --prefer npu, or give other costs in a target file"}));
}

TEST(Partition, CyclesThatNoNumberHoldsTogetherAreTooMany) {
  const ir::Module main =
      parse_main("%x: Tensor[(1, 16), float32]", "  %0 = nn.relu(%x);\n  %1 = nn.relu(%0);\n  %1\n");
  std::vector<target::Target> targets = operators({"nn.relu"});
  for (target::PatternRow& row : targets[0].table) {
    row.cycles = [](const target::Candidate&, const target::DeviceCosts&) { return uint64_t{1} << 63; };
  }
  const PartitionResult gated = partition(main, targets, {.prefer = Prefer::kLatency});
  EXPECT_TRUE(gated.regions.empty());
  const PartitionResult kept = partition(main, targets);
  ASSERT_EQ(kept.explain.regions.size(), 1u);
  EXPECT_EQ(kept.explain.regions[0].cycles, UINT64_MAX);
}

TEST(Partition, TheMnistNetworkWithTheMiddlePinnedGivesOneFunctionBetweenTheFirstAndTheLast) {
  const ir::Module mnist = parse_main(
      "%x: Tensor[(1, 784), float32], %w0: Tensor[(128, 784), float32], %b0: Tensor[(128), float32], "
      "%w1: Tensor[(10, 128), float32], %b1: Tensor[(10), float32]",
      "  %0 = nn.dense(%x, %w0, name=\"matmul0\");\n"
      "  %1 = nn.bias_add(%0, %b0, name=\"add0\");\n"
      "  %2 = nn.relu(%1, name=\"relu0\");\n"
      "  %3 = nn.dense(%2, %w1, name=\"matmul1\");\n"
      "  nn.bias_add(%3, %b1, name=\"add1\")\n");
  // Below the CPU: only what is pinned goes to the device.
  const std::vector<target::Target> targets = operators({"nn.bias_add", "nn.relu", "nn.dense"}, 10);
  EXPECT_TRUE(partition(mnist, targets).regions.empty());
  const PartitionResult result =
      partition(mnist, targets, {.pins = {{"add0", "npu"}, {"relu0", "npu"}, {"%3", "npu"}}});
  EXPECT_EQ(
      plain_text(result.module),
      R"(def @main(%x: Tensor[(1, 784), float32], %w0: Tensor[(128, 784), float32], %b0: Tensor[(128), float32], )"
      R"(%w1: Tensor[(10, 128), float32], %b1: Tensor[(10), float32]) -> Tensor[(1, 10), float32] {
  %0 = nn.dense(%x, %w0);
  %1 = @qplan_npu_main_0(%0, %b0, %w1);
  %2 = nn.bias_add(%1, %b1);
  %2
}

def @qplan_npu_main_0(%i0: Tensor[(1, 128), float32], %i1: Tensor[(128), float32], %i2: Tensor[(10, 128), float32], )"
      R"(Compiler="npu", Primitive=1, global_symbol="qplan_npu_main_0") -> Tensor[(1, 10), float32] {
  %0 = nn.bias_add(%i0, %i1);
  %1 = nn.relu(%0);
  %2 = nn.dense(%1, %i2);
  %2
}
)");
}

// ---- quantised networks on VTA

const char kIntegerLayer[] =
    "qnn.conv2d(%s, const(Tensor[(16, 1, 1, 16), int8], [%w]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
    "kernel_layout=\"OHWI\", name=\"%n\")";

// A 1x1 convolution with requantisation, as three nodes from %<first> on.
std::string layer(int first, const std::string& input, const std::string& name,
                  const std::string& tail = "") {
  std::string weights;
  for (int i = 0; i < 256; ++i) weights += (i == 0 ? "" : ", ") + std::to_string((i * 7 + first) % 23 - 11);
  std::string text = kIntegerLayer;
  const auto put = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  put("%s", input);
  put("%w", weights);
  put("%n", name);
  const auto value = [](int n) { return "%" + std::to_string(n); };
  return "  " + value(first) + " = " + text + ";\n  " + value(first + 1) + " = qnn.requantize(" +
         value(first) + ", 1f, 0, 100f, 0, name=\"" + name + "\"" + tail + ");\n";
}
const char kInput[] = "%x: Tensor[(1, 40, 40, 16), int8]";

std::vector<target::Target> vta() { return pipeline::parse_targets("vta, cpu"); }

// "vta: a b; cpu: c": names of each unit's first node in the order of the units.
std::string placed(const PartitionResult& result) {
  std::string text;
  for (const UnitReport& unit : result.explain.units) {
    text += (text.empty() ? "" : " ") + result.explain.nodes[unit.nodes[0]].name + ":" +
            (unit.region.empty() ? unit.target : unit.region.substr(6));
  }
  return text;
}

TEST(PartitionVta, CompositesBecomeFunctionsOfARegionsFunction) {
  const ir::Module main = parse_main(
      "%x: Tensor[(1, 2, 2, 1), int8]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 1), int8], [3]), -128, 0, 1f, 1f, data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\");\n"
      "  %1 = nn.bias_add(%0, const(Tensor[(1), int32], [7]), axis=3);\n"
      "  %2 = qnn.requantize(%1, 1f, 0, 2f, 0);\n"
      "  %3 = clip(%2, a_min=0f, a_max=6f);\n"
      "  %4 = qnn.add(%3, %x, 1f, 0, 1f, 0, 2f, 0);\n"
      "  qnn.dequantize(%4, 2f, 0)\n");
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  EXPECT_EQ(plain_text(result.module),
            R"(def @main(%x: Tensor[(1, 2, 2, 1), int8]) -> Tensor[(1, 2, 2, 1), float32] {
  %0 = @qplan_vta_main_0(%x);
  %1 = qnn.dequantize(%0, 2f, 0);
  %1
}

def @qplan_vta_main_0(%i0: Tensor[(1, 2, 2, 1), int8], Compiler="vta", Primitive=1, global_symbol="qplan_vta_main_0")"
            R"() -> Tensor[(1, 2, 2, 1), int8] {
  %0 = @qplan_vta_main_0_qconv2d_0(%i0);
  %1 = @qplan_vta_main_0_qadd_1(%0, %i0);
  %1
}

def @qplan_vta_main_0_qconv2d_0(%i0: Tensor[(1, 2, 2, 1), int8], Composite="qplan.qconv2d", Primitive=1) )"
            R"(-> Tensor[(1, 2, 2, 1), int8] {
  %0 = qnn.conv2d(%i0, const(Tensor[(1, 1, 1, 1), int8], [3]), -128, 0, 1f, 1f, data_layout="NHWC", kernel_layout="OHWI");
  %1 = nn.bias_add(%0, const(Tensor[(1), int32], [7]), axis=3);
  %2 = qnn.requantize(%1, 1f, 0, 2f, 0);
  %3 = clip(%2, a_min=0f, a_max=6f);
  %3
}

def @qplan_vta_main_0_qadd_1(%i0: Tensor[(1, 2, 2, 1), int8], %i1: Tensor[(1, 2, 2, 1), int8], Composite="qplan.qadd", )"
            R"(Primitive=1) -> Tensor[(1, 2, 2, 1), int8] {
  %0 = qnn.add(%i0, %i1, 1f, 0, 1f, 0, 2f, 0);
  %0
}
)");
  EXPECT_EQ(result.regions[0].nodes, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(PartitionVta, TheTextOfAPartitionedModuleParsesBack) {
  const ir::Module main = parse_main(
      kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + "  nn.relu(qnn.dequantize(%3, 1f, 0))\n");
  const std::string text = text::print(partition(main, vta(), {.cost_gate = false}).module);
  EXPECT_NE(text.find("Composite=\"qplan.qconv2d\""), std::string::npos);
  EXPECT_EQ(text::print(text::parse(text, "again")), text);
}

// a -> b -> d, a -> (softmax on the CPU) c -> d.
TEST(PartitionVta, ADiamondWithACpuNodeInOneArmDoesNotMerge) {
  const std::string body = layer(0, "%x", "a") + layer(2, "%1", "b");
  const ir::Module on_device =
      parse_main(kInput, body + layer(4, "%1", "c") + "  qnn.add(%3, %5, 1f, 0, 1f, 0, 2f, 0, name=\"d\")\n");
  EXPECT_EQ(placed(partition(on_device, vta(), {.cost_gate = false})),
            "a:vta_main_0 b:vta_main_0 c:vta_main_0 d:vta_main_0");
  const ir::Module mixed =
      parse_main(kInput, body +
                             "  %4 = qnn.softmax(%1, 1f, 0, 0.00390625f, -128, name=\"c\");\n"
                             "  qnn.add(%3, %4, 1f, 0, 1f, 0, 2f, 0, name=\"d\")\n");
  EXPECT_EQ(placed(partition(mixed, vta(), {.cost_gate = false})),
            "a:vta_main_0 b:vta_main_0 c:cpu d:vta_main_1");
}

TEST(PartitionVta, AccumulatorsThatAreReadElsewhereLeaveAsInt32) {
  const ir::Module main = parse_main(kInput, layer(0, "%x", "a") + "  (%0, %1)\n");
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  EXPECT_EQ(placed(result), "a:vta_main_0 a:cpu");
  EXPECT_EQ(result.explain.units[0].composite, "qplan.qconv2d_acc32");
}

TEST(PartitionVta, AnInnerResultThatIsReadElsewhereIsNoComposite) {
  const ir::Module main = parse_main(
      kInput, layer(0, "%x", "a") + "  %2 = clip(%0, a_min=0f, a_max=6f, name=\"c\");\n  (%1, %2)\n");
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  EXPECT_TRUE(result.explain.units[0].region.empty());
  const TargetVerdict& verdict = result.explain.units[0].verdicts[0];
  ASSERT_EQ(verdict.reasons.size(), 1u);
  EXPECT_EQ(verdict.reasons[0].id, "vta.acc32.readers");
}

TEST(PartitionVta, NearMissesAndUnknownOperatorsAreReasons) {
  const ir::Module main = parse_main(
      "%x: Tensor[(1, 4, 4, 1), int8], %w: Tensor[(1, 1, 1, 1), int8]",
      "  %0 = qnn.conv2d(%x, %w, 0, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\", name=\"a\");\n"
      "  %1 = qnn.requantize(%0, 1f, 0, 1f, 0, name=\"a\");\n"
      "  qnn.softmax(%1, 1f, 0, 0.00390625f, -128, name=\"s\")\n");
  const PartitionResult result = partition(main, vta());
  std::vector<std::string> lines;
  for (const UnitReport& unit : result.explain.units) {
    for (const std::string& line : reason_lines(result.explain, unit)) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "vta: 'a' stays on 'cpu': no pattern matches; 'qplan.qconv2d' is the nearest: at qnn.requantize "
            "'a': operand 0 "
            "(data) -> qnn.conv2d 'a': operand 1 (weight) it expects constant, found parameter '%w' "
            "(Tensor[(1, 1, 1, 1), "
            "int8]) [vta.pattern]");
  EXPECT_EQ(lines[2],
            "vta: 's' stays on 'cpu': operator qnn.softmax has no exact sequence on this target "
            "[vta.op.softmax]; nothing "
            "to change in the model");
}

TEST(PartitionVta, UnprovedBoundsAndOtherContractsLeaveAsInt32) {
  const ir::Module main =
      parse_main(kInput, layer(0, "%x", "a", ", contract=\"f32e\"") + layer(2, "%1", "b") + "  %3\n");
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  EXPECT_EQ(placed(result), "a:vta_main_0 a:cpu b:vta_main_1");
  EXPECT_EQ(result.explain.units[0].composite, "qplan.qconv2d_acc32");
  EXPECT_EQ(result.module.find("qplan_vta_main_0")
                ->type(result.module.find("qplan_vta_main_0")->outputs()[0])
                .dtype,
            ir::kInt32);
}

TEST(PartitionVta, StrictPlacementListsEverythingThatIsOffTheTarget) {
  const ir::Module main = parse_main(kInput, layer(0, "%x", "a") +
                                                 "  %2 = reshape(%1, newshape=[1024, 25], name=\"flat\");\n"
                                                 "  qnn.softmax(%2, 1f, 0, 0.00390625f, -128, name=\"s\")\n");
  const auto strict = [&](std::vector<Pin> pins) {
    return refusal([&] { partition(main, vta(), {.placement = Placement::kStrict, .pins = pins}); },
                   QPLAN_MODEL_UNSUPPORTED);
  };
  EXPECT_EQ(
      strict({}),
      "placement strict: 2 of 4 operators are not on 'vta'; --placement=soft runs them on the next target:\n"
      "  reshape 'flat': from 16 to 25 channels, which are stored in blocks of 16 on the device "
      "[vta.reshape.channels]\n"
      "  qnn.softmax 's': operator qnn.softmax has no exact sequence on this target [vta.op.softmax]");
  EXPECT_EQ(strict({{"flat", "cpu"}, {"s", "cpu"}}), "");
}

TEST(PartitionVta, PinsThatCannotBeKeptAreErrors) {
  const ir::Module main = parse_main(kInput, layer(0, "%x", "a", ", contract=\"tfl1\"") +
                                                 "  qnn.softmax(%1, 1f, 0, 0.00390625f, -128, name=\"s\")\n");
  const auto pinned = [&](const std::string& node, const std::string& target, qplan_status status) {
    return refusal([&] { partition(main, vta(), {.pins = {{node, target}}}); }, status);
  };
  EXPECT_EQ(pinned("s", "vta", QPLAN_MODEL_UNSUPPORTED),
            "pins that cannot be kept: qnn.softmax 's' is pinned to 'vta', operator qnn.softmax has no exact "
            "sequence on "
            "this target [vta.op.softmax]");
  EXPECT_EQ(pinned("%1", "vta", QPLAN_MODEL_UNSUPPORTED),
            "pins that cannot be kept: qnn.requantize 'a' is pinned to 'vta', contract 'tfl1' has no exact "
            "sequence on the "
            "ALU, expected 'tfl2' [vta.requantize.contract]");
  EXPECT_EQ(
      pinned("t", "vta", QPLAN_INVALID_ARGUMENT),
      "pin 't=vta': no operator has this name; 'qplan explain' lists them, %NUMBER names one by its number");
  EXPECT_EQ(pinned("s", "npu", QPLAN_INVALID_ARGUMENT),
            "pin 's=npu': there is no target 'npu'; there are: vta, cpu");
  EXPECT_EQ(refusal(
                [&] {
                  partition(main, vta(), {.pins = {{"s", "cpu"}, {"%2", "vta"}}});
                },
                QPLAN_INVALID_ARGUMENT),
            "pin '%2=vta': it is pinned to 'cpu' too");
}

TEST(Partition, APinIsWrittenAsNodeAndTarget) {
  EXPECT_EQ(parse_pin("a/b=c=vta").node, "a/b=c");
  EXPECT_EQ(parse_pin("a/b=c=vta").target, "vta");
  for (const char* text : {"a", "=vta", "a=", ""}) {
    EXPECT_EQ(refusal([&] { (void)parse_pin(text); }, QPLAN_INVALID_ARGUMENT),
              std::string("pin '") + text + "' is not of the form NODE=TARGET");
  }
}

TEST(PartitionVta, APinToTheCpuSplitsARegion) {
  const ir::Module main =
      parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + layer(4, "%3", "c") + "  %5\n");
  EXPECT_EQ(placed(partition(main, vta(), {.cost_gate = false})), "a:vta_main_0 b:vta_main_0 c:vta_main_0");
  EXPECT_EQ(placed(partition(main, vta(), {.pins = {{"b", "cpu"}}, .cost_gate = false})),
            "a:vta_main_0 b:cpu c:vta_main_1");
}

std::vector<target::Target> vta_and(const std::string& cpu) { return pipeline::parse_targets("vta, " + cpu); }

// Named first, it is preferred: however slow it is, where its copies take the CPU less time than its
// operators would.
TEST(PartitionVta, ADeviceThatIsNamedFirstIsPreferredEvenWhereItIsSlower) {
  const ir::Module main =
      parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + layer(4, "%3", "c") + "  %5\n");
  const Explain first = partition(main, pipeline::parse_targets("vta, cpu,isa=reference")).explain;
  EXPECT_EQ(first.prefer, "npu");
  ASSERT_EQ(first.decisions.size(), 1u);
  EXPECT_EQ(first.decisions[0].by, "npu");
  EXPECT_EQ(first.decisions[0].region, "qplan_vta_main_0");
  EXPECT_LT(first.decisions[0].copy_ns, first.decisions[0].cpu_ns);
  EXPECT_EQ(partition(main, pipeline::parse_targets("cpu, vta")).explain.prefer, "latency");
  EXPECT_EQ(partition(main, pipeline::parse_targets("cpu")).explain.prefer, "");
}

TEST(PartitionVta, LatencyComparesTimesCopiesIncluded) {
  const ir::Module main =
      parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + layer(4, "%3", "c") + "  %5\n");
  const PartitionOptions latency = {.prefer = Prefer::kLatency};
  EXPECT_EQ(placed(partition(main, vta_and("cpu,macs_per_us=1,bytes_per_us=1"), latency)),
            "a:vta_main_0 b:vta_main_0 c:vta_main_0");
  EXPECT_EQ(placed(partition(main, vta_and("cpu"), latency)), "a:cpu b:cpu c:cpu");
  // The same CPU, a faster device.
  EXPECT_EQ(placed(partition(main, pipeline::parse_targets("vta,clock=100GHz, cpu,isa=reference"), latency)),
            "a:vta_main_0 b:vta_main_0 c:vta_main_0");
}

TEST(PartitionVta, EnergyComparesEnergies) {
  const ir::Module main =
      parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + layer(4, "%3", "c") + "  %5\n");
  const auto with_costs = [](const std::string& device, const std::string& cpu) {
    return pipeline::parse_target_file("{\"targets\": [{\"target\": \"vta\", \"costs\": {" + device +
                                           "}}, {\"target\": \"cpu,isa=reference\", \"costs\": {" + cpu +
                                           "}}]}",
                                       "t.json");
  };
  const PartitionOptions energy = {.prefer = Prefer::kEnergy};
  // A device that takes nothing, however slow it is, and a CPU that does.
  const std::string nothing = "\"clock_mhz\": 1, \"fj_per_mac\": 1, \"fj_per_byte\": 1";
  const PartitionResult on_device = partition(main, with_costs(nothing, "\"pj_per_cycle\": 1000"), energy);
  EXPECT_EQ(placed(on_device), "a:vta_main_0 b:vta_main_0 c:vta_main_0");
  EXPECT_LT(on_device.explain.decisions[0].device_pj, on_device.explain.decisions[0].cpu_pj);
  const PartitionResult on_cpu =
      partition(main, with_costs("\"fj_per_mac\": 1000000", "\"pj_per_cycle\": 1"), energy);
  EXPECT_EQ(placed(on_cpu), "a:cpu b:cpu c:cpu");
  EXPECT_NE(reason_lines(on_cpu.explain, on_cpu.explain.units[0])[0].find("takes more energy there"),
            std::string::npos);
}

TEST(PartitionVta, TheSummarySaysWhatAPreferenceCosts) {
  const ir::Module main = parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + "  %3\n");
  const std::string npu = partition(main, vta_and("cpu"), {.prefer = Prefer::kNpu}).explain.summary();
  EXPECT_NE(partition(main, vta_and("cpu"), {.cost_gate = false})
                .explain.summary()
                .find(" times slower than the CPU"),
            std::string::npos);
  const std::string latency = partition(main, vta_and("cpu"), {.prefer = Prefer::kLatency}).explain.summary();
  EXPECT_NE(latency.find("; --prefer latency keeps 4 operators of the device on the CPU ("),
            std::string::npos)
      << latency;
  EXPECT_EQ(npu.find("--prefer npu keeps"), std::string::npos) << npu;
}

TEST(PartitionExplain, TimesAndEnergiesHaveTheirUnits) {
  EXPECT_EQ(time_text(0), "0 ns");
  EXPECT_EQ(time_text(999), "999 ns");
  EXPECT_EQ(time_text(1'540), "1.5 us");
  EXPECT_EQ(time_text(123'456), "123 us");
  EXPECT_EQ(time_text(12'345'678), "12.3 ms");
  EXPECT_EQ(time_text(7'000'000'000'000), "7000 s");
  EXPECT_EQ(energy_text(1'234'567), "1.2 uJ");
}

// The explanation that a plan stores reads back to the same text.
TEST(PartitionExplain, DecisionsAreInTheJsonAndReadBack) {
  const ir::Module main = parse_main(kInput, layer(0, "%x", "a") + layer(2, "%1", "b") + "  %3\n");
  for (const Prefer prefer : {Prefer::kNpu, Prefer::kLatency, Prefer::kEnergy}) {
    const Explain explain = partition(main, vta_and("cpu"), {.prefer = prefer}).explain;
    EXPECT_EQ(parse_explain(explain.json()).json(), explain.json());
    EXPECT_EQ(parse_explain(explain.json()).text(), explain.text());
  }
}

// An addition alone costs more than it saves.
TEST(PartitionVta, TheCostGateSendsALonelyAdditionBack) {
  const ir::Module alone = parse_main(kInput,
                                      "  %0 = qnn.softmax(%x, 1f, 0, 0.00390625f, -128, name=\"s\");\n"
                                      "  qnn.add(%0, %x, 1f, 0, 1f, 0, 2f, 0, name=\"d\")\n");
  EXPECT_EQ(placed(partition(alone, vta())), "s:cpu d:cpu");
  EXPECT_EQ(placed(partition(alone, vta(), {.cost_gate = false})), "s:cpu d:vta_main_0");
  const PartitionResult gated = partition(alone, vta());
  ASSERT_EQ(gated.explain.units[1].verdicts.size(), 1u);
  EXPECT_EQ(gated.explain.units[1].verdicts[0].reasons[0].id, "vta.cost");
  // (2 + 1) * 25600 bytes by the CPU, four a cycle of 3.65 GHz.
  EXPECT_EQ(gated.explain.units[1].verdicts[0].reasons[0].text,
            "an island of 1 operator does not relieve the CPU: its 3 boundary copies (76800 bytes) take 5.2 "
            "us of the "
            "CPU's time, the operators themselves 3.1 us");
  // The compiler's own count of cycles, which is between what the ALU alone takes for 1600 elements of 10
  // cycles and that with all transfers (76800 bytes) in a row.
  const uint64_t cycles = gated.explain.units[1].verdicts[0].cycles.value_or(0);
  EXPECT_GT(cycles, 1600u * 10);
  EXPECT_LT(cycles, 1600u * 11 + 76800 / 8 + 500);
}

TEST(PartitionVta, APinnedRegionIsNotAskedWhatItCosts) {
  const ir::Module main =
      parse_main("%x: Tensor[(1, 16), int8]", "  clip(%x, a_min=0f, a_max=6f, name=\"a\")\n");
  EXPECT_EQ(placed(partition(main, vta(), {.prefer = Prefer::kLatency})), "a:cpu");
  const PartitionResult pinned = partition(main, vta(), {.pins = {{"a", "vta"}}, .prefer = Prefer::kLatency});
  EXPECT_EQ(placed(pinned), "a:vta_main_0");
  EXPECT_EQ(pinned.explain.decisions[0].by, "pin");
}

// The same bytes, whoever runs the parts.
TEST(PartitionVta, TheInlinedModuleComputesWhatTheOriginalDoes) {
  const ir::Module main = parse_main(
      kInput, layer(0, "%x", "a") + layer(2, "%1", "b") +
                  "  %4 = qnn.sigmoid(%1, 1f, 0, 0.00390625f, -128, name=\"c\");\n" + layer(5, "%4", "e") +
                  "  %7 = qnn.add(%3, %6, 1f, 0, 1f, 0, 2f, 0, name=\"d\");\n  (%7, %1)\n");
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  ASSERT_EQ(result.regions.size(), 2u);
  const std::unique_ptr<ir::Function> inlined = inline_calls(result.module, result.module.main());
  std::vector<int8_t> values(40 * 40 * 16);
  std::mt19937 random(3);
  for (int8_t& value : values) value = static_cast<int8_t>(random());
  const std::vector<ir::ConstantRef> input = {ir::make_constant(ir::kInt8, {1, 40, 40, 16}, values)};
  const std::vector<ir::ConstantRef> expected = evaluate::run_function(main.main(), input);
  const std::vector<ir::ConstantRef> found = evaluate::run_function(*inlined, input);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(found[i]->bytes(), expected[i]->bytes())) << i;
}

TEST(PartitionExplain, IsTheSameTextAndJsonEachTime) {
  const ir::Module main =
      parse_main("%x: Tensor[(1, 2, 2, 16), int8]",
                 layer(0, "%x", "a") + "  qnn.softmax(%1, 1f, 0, 0.00390625f, -128, name=\"s\")\n");
  const Explain explain = partition(main, vta(), {.cost_gate = false}).explain;
  EXPECT_EQ(explain.text(),
            "placement: vta 2 of 3 operators, 100.0 % of 1024 MACs, 396 bytes; cpu 1 of 3 operators, 0.0 % "
            "of 1024 MACs, "
            "144 bytes; 1 region, 2 boundary copies (128 bytes); 'vta' is estimated 101 times slower than "
            "the CPU for 2 "
            "operators (5.0 us against 50 ns); --prefer latency keeps them on the CPU\n"
            "regions:\n"
            "  @qplan_vta_main_0 on vta: 2 operators in 1 unit, 1024 MACs, 509 cycles, 5.0 us (cpu 50 ns), 2 "
            "boundary "
            "copies (128 bytes, 8 ns)\n"
            "decisions (prefer none):\n"
            "  2 operators from %0 qnn.conv2d, %1 qnn.requantize 'a': on vta; vta 5.0 us and 2 copies 8 ns, "
            "cpu 50 ns\n"
            "operators:\n"
            "  vta: %0 qnn.conv2d, %1 qnn.requantize 'a'\n"
            "      qplan.qconv2d in @qplan_vta_main_0, 1024 MACs, 128 bytes, weights 268 bytes; vta 509 "
            "cycles, 5.0 us; cpu "
            "50 ns\n"
            "  cpu: %2 qnn.softmax 's'\n"
            "      no composite, 0 MACs, 128 bytes, weights 16 bytes; cpu 168 ns\n"
            "      not on vta: operator qnn.softmax has no exact sequence on this target [vta.op.softmax]; "
            "nothing to change "
            "in the model\n");
  const std::string json = explain.json();
  EXPECT_EQ(json, partition(main, vta(), {.cost_gate = false}).explain.json());
  EXPECT_NE(json.find(R"(    {
      "nodes": [
        2
      ],
      "reads": [
        {
          "unit": 0,
          "type": "Tensor[(1, 2, 2, 16), int8]",
          "bytes": 64
        }
      ],
      "makes_output": true,
      "composite": "",
      "target": "cpu",
      "region": "",
      "pinned": false,
      "macs": 0,
      "bytes": 128,
      "weight_bytes": 16,
      "cpu_ns": 168,
      "estimated_cycles": null,
      "estimated_ns": null,
      "verdicts": [
        {
          "target": "vta",
          "reasons": [
            {
              "id": "vta.op.softmax",
              "text": "operator qnn.softmax has no exact sequence on this target",
              "hint": "nothing to change in the model"
            }
          ],
          "near_miss": null,
          "estimated_cycles": null,
          "estimated_ns": null
        }
      ]
    })"),
            std::string::npos)
      << json;
}

TEST(Partition, TenThousandOperatorsTakeAFewSeconds) {
  ir::Module main;
  ir::Function& function = main.add_function("main");
  ir::Builder builder(&function);
  ir::ValueId value = function.add_param("x", {ir::kInt8, {1, 16}});
  std::vector<ir::ValueId> values = {value};
  for (int i = 0; i < 10'000; ++i) {
    const auto scale = [&](float s) { return builder.scalar(s); };
    const ir::ValueId zero = builder.scalar(int32_t{0});
    value = i % 3 == 0 ? builder.call("qnn.sigmoid", {value, scale(1), zero, scale(2), zero})
                       : builder.call("qnn.add", {value, values[values.size() / 2], scale(1), zero, scale(1),
                                                  zero, scale(2), zero});
    values.push_back(value);
  }
  function.set_outputs({value});
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  const PartitionResult result = partition(main, vta(), {.cost_gate = false});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GT(result.regions.size(), 1000u);
  RecordProperty("seconds", std::to_string(seconds));
#if defined(NDEBUG) && !QPLAN_ASAN
  EXPECT_LT(seconds, 5.0);
#endif
}

}  // namespace
}  // namespace qplan::partition::partition_test
