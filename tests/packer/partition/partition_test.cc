#include "src/packer/partition/partition.h"

#include "tests/packer/partition/partition_test_support.h"

namespace qplan::partition {
namespace {

using partition_test::operators;
using partition_test::parse_main;
using partition_test::plain_text;
using partition_test::refusal;

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
  EXPECT_EQ(result.explain.summary(),
            "placement: npu 2 of 6 operators, 0.0 % of 14450688 MACs, 6422784 bytes; cpu 4 of 6 operators, "
            "100.0 % of "
            "14450688 MACs, 11846144 bytes; 2 regions, 6 boundary copies (6422784 bytes)");
}

TEST(Partition, TheCostGateKeepsMobileNetsBiasAddsOnTheCpuAndSaysWhy) {
  const ir::Module head = float_head();
  const PartitionResult result = partition(head, operators({"nn.bias_add"}));
  EXPECT_EQ(text::print(result.module), text::print(head));
  EXPECT_TRUE(result.regions.empty());
  EXPECT_EQ(reason_lines(result.explain, result.explain.units[1]),
            (std::vector<std::string>{"npu: 'bias0' stays on 'cpu': an island of 1 operator is not worth it: "
                                      "'npu' takes 4016 us and 3 boundary "
                                      "copies (3211392 bytes) 8028 us, the CPU takes 8028 us [npu.cost]; pin "
                                      "it with --pin NODE=npu, or give "
                                      "other costs in a target file"}));
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

}  // namespace
}  // namespace qplan::partition
