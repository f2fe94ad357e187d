// Each condition of VTA's table, met and violated: a layer's reasons by their ids and texts.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "src/packer/pattern/pattern.h"
#include "src/packer/text/text.h"
#include "src/vta/compiler/target.h"

namespace qplan::vta::compiler::constraints_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// What the table says of the function's result: "qplan.qconv2d" for the row that takes it, else all reasons
// of the rows that match. cycles: what the row takes them to be.
std::string verdict(const std::string& params, const std::string& body, const Config& config = kDefaultConfig,
                    uint64_t* cycles = nullptr) {
  const ir::Module module = text::parse("def @main(" + params + ") {\n" + body + "}\n", "test");
  const pattern::Pre pre(module.main());
  std::string reasons;
  for (const PatternRow& row : pattern_table(config)) {
    const auto matches = pattern::match(row.pattern, pre, pattern::PreValue{module.main().outputs()[0]});
    if (!matches) continue;
    const Candidate candidate{pre, *matches};
    const std::vector<Reason> found = row.check(candidate);
    if (found.empty()) {
      const uint64_t count = row.cycles(candidate, DeviceCosts());
      if (cycles != nullptr) *cycles = count;
      return row.name;
    }
    for (const Reason& reason : found) reasons += reason.id + ": " + reason.text + "\n";
  }
  return reasons;
}

struct Conv {
  std::string in = "1, 8, 8, 16", dtype = "int8", weight = "16, 3, 3, 16", out = "int8",
              attrs = "padding=[1, 1, 1, 1]";
  std::string zero_point = "0", weight_zero_point = "0", weight_value = "1", bias = "0",
              weight_dtype = "int8";
  std::string contract = "tfl2", accumulator_zero_point = "0", out_scale = "1f";
  int64_t num_weights = 16 * 3 * 3 * 16, num_o = 16;
};

std::string repeat(const std::string& value, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + value;
  return text;
}

std::string verdict(const Conv& c, const Config& config = kDefaultConfig, const std::string& tail = "%2",
                    uint64_t* cycles = nullptr) {
  return verdict(
      "%x: Tensor[(" + c.in + "), " + c.dtype + "]",
      "  %0 = qnn.conv2d(%x, const(Tensor[(" + c.weight + "), " + c.weight_dtype + "], [" +
          repeat(c.weight_value, c.num_weights) + "]), " + c.zero_point + ", " + c.weight_zero_point +
          ", 0.5f, 0.5f, " + c.attrs +
          ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  %1 = nn.bias_add(%0, const(Tensor[(" +
          std::to_string(c.num_o) + "), int32], [" + repeat(c.bias, c.num_o) +
          "]), axis=3);\n  %2 = qnn.requantize(%1, 0.25f, " + c.accumulator_zero_point + ", " + c.out_scale +
          ", 0, out_dtype=\"" + c.out + "\", contract=\"" + c.contract + "\");\n  " + tail + "\n",
      config, cycles);
}

TEST(VtaConv2d, AnOrdinaryLayerIsTaken) {
  EXPECT_EQ(verdict(Conv()), "qplan.qconv2d");
  EXPECT_EQ(verdict(Conv(), kQuarterConfig), "qplan.qconv2d");
  EXPECT_EQ(verdict(Conv(), kDefaultConfig, "clip(%2, a_min=0f, a_max=6f)"), "qplan.qconv2d");
  EXPECT_EQ(verdict({.dtype = "uint8", .out = "uint8", .zero_point = "128"}), "qplan.qconv2d");
}

TEST(VtaConv2d, AllReasonsAreThereAtOnce) {
  EXPECT_EQ(verdict({.in = "2, 8, 8, 16",
                     .weight = "16, 3, 3, 8",
                     .out = "int32",
                     .attrs = "groups=2",
                     .contract = "f32e",
                     .accumulator_zero_point = "3",
                     .num_weights = 16 * 3 * 3 * 8}),
            "vta.conv2d.dtype: input int8, weights int8, output int32; expected int8 or uint8\n"
            "vta.conv2d.batch: a batch of 2, limit 1\n"
            "vta.conv2d.groups: 2 groups of 16 channels, limit 1\n"
            "vta.requantize.contract: contract 'f32e' has no exact sequence on the ALU, expected 'tfl2'\n"
            "vta.requantize.zero_point: the accumulator's zero point is 3, expected 0\n");
}

TEST(VtaConv2d, TheAccumulatorsBoundIsProvedFromWeightsAndBias) {
  // 9 * 16 weights of 1: sums from -18432 to 18288.
  EXPECT_EQ(verdict({.bias = std::to_string((1 << 29) - 18288)}), "qplan.qconv2d");
  EXPECT_EQ(verdict({.bias = std::to_string((1 << 29) - 18287)}),
            "vta.requantize.bound: the accumulator of channel 0 may reach 536870913, shifted left by 0; "
            "limit 536870912\n");
  EXPECT_EQ(verdict({.bias = std::to_string(-(1 << 29) + 18432)}), "qplan.qconv2d");
  EXPECT_EQ(verdict({.bias = std::to_string(-(1 << 29) + 18431)}),
            "vta.requantize.bound: the accumulator of channel 0 may reach 536870913, shifted left by 0; "
            "limit 536870912\n");
  // Input less a zero point of -128: from 0 to 255 times 144.
  EXPECT_EQ(verdict({.zero_point = "-128", .bias = std::to_string((1 << 29) - 255 * 144)}), "qplan.qconv2d");
  EXPECT_NE(verdict({.zero_point = "-128", .bias = std::to_string((1 << 29) - 255 * 144 + 1)}),
            "qplan.qconv2d");
}

TEST(VtaConv2d, ALeftShiftTightensTheBound) {
  // 0.25 / 2^-10 = 2^8 = 2^30 * 2^(9 - 31): a shift of 9.
  EXPECT_EQ(verdict({.bias = std::to_string((1 << 20) - 18288), .out_scale = "0.0009765625f"}),
            "qplan.qconv2d");
  EXPECT_EQ(verdict({.bias = std::to_string((1 << 20) - 18287), .out_scale = "0.0009765625f"}),
            "vta.requantize.bound: the accumulator of channel 0 may reach 1048577, shifted left by 9; limit "
            "536870912\n");
}

TEST(VtaConv2d, WeightsBeyondInt8AreTheSumOfTwo) {
  // 127 - (-1) = 128: nine taps twice.
  EXPECT_EQ(verdict({.weight_zero_point = "-1", .weight_value = "126"}), "qplan.qconv2d");
  EXPECT_EQ(verdict({.weight_zero_point = "-1", .weight_value = "127"}), "qplan.qconv2d");
  EXPECT_EQ(verdict({.weight_zero_point = "255", .weight_value = "0", .weight_dtype = "uint8"}),
            "qplan.qconv2d");
  EXPECT_EQ(verdict({.weight_zero_point = "0", .weight_value = "255", .weight_dtype = "uint8"}),
            "vta.conv2d.weights: weights less their zero point reach from 0 to 255, limit -256 to 254\n");
}

TEST(VtaConv2d, LayersThatCannotBeTiledAreRefusedWithTheNumbers) {
  const Conv wide = {.in = "1, 40, 40, 1",
                     .weight = "1, 33, 33, 1",
                     .attrs = "padding=[0, 0, 0, 0]",
                     .num_weights = 33 * 33,
                     .num_o = 1};
  EXPECT_EQ(verdict(wide),
            "vta.conv2d.kernel: a kernel of 33 x 33 needs 1089 times 1 weight elements, limit 1024\n");
  EXPECT_EQ(
      verdict(wide, kQuarterConfig),
      "vta.conv2d.tile: a window of 33 x 33 needs 1089 of 512 input elements and 11 of 512 accumulators\n"
      "vta.conv2d.kernel: a kernel of 33 x 33 needs 1089 times 1 weight elements, limit 256\n");
  const Conv dilated = {.in = "1, 60, 60, 1",
                        .weight = "1, 3, 3, 1",
                        .attrs = "dilation=[23, 23]",
                        .num_weights = 9,
                        .num_o = 1};
  EXPECT_EQ(
      verdict(dilated),
      "vta.conv2d.tile: a window of 47 x 47 needs 2209 of 2048 input elements and 11 of 2048 accumulators\n");
  const Conv strided = {.in = "1, 2048, 1, 1",
                        .weight = "1, 1, 1, 1",
                        .attrs = "strides=[2048, 1]",
                        .num_weights = 1,
                        .num_o = 1};
  EXPECT_EQ(verdict(strided), "vta.conv2d.stride: strides 2048 and 1, limit 2047\n");
  const Conv row = {.in = "1, 1, 65536, 1",
                    .weight = "1, 1, 1, 1",
                    .attrs = "strides=[1, 2]",
                    .num_weights = 1,
                    .num_o = 1};
  EXPECT_EQ(verdict(row),
            "vta.conv2d.row: a row of 65536 elements in the input and 32768 in the output, limit 65535\n");
  const Conv large = {.in = "1, 2048, 1025, 1",
                      .weight = "1, 1, 1, 1",
                      .attrs = "strides=[2, 2]",
                      .num_weights = 1,
                      .num_o = 1};
  EXPECT_EQ(verdict(large),
            "vta.conv2d.buffer: input 33587200, output 8404992, weights 256 bytes in the device's layout, "
            "limit 33554432\n");
}

TEST(VtaConv2d, OtherLayoutsAreRefused) {
  EXPECT_EQ(verdict("%x: Tensor[(1, 1, 4, 4), int8]",
                    "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 1), int8], [1]), 0, 0, 1f, 1f);\n"
                    "  qnn.requantize(%0, 1f, 0, 1f, 0)\n"),
            "vta.conv2d.layout: layouts other than NHWC and OHWI\n");
}

TEST(VtaConv2d, WithoutMulOnlyInt32Leaves) {
  Config config = kDefaultConfig;
  config.has_multiply = false;
  EXPECT_EQ(verdict(Conv(), config),
            "vta.requantize.mul: this design of VTA has no MUL (mul=off), which tfl2 needs\n");
}

TEST(VtaAcc32, AccumulatorsLeaveForARequantisationWithOneScale) {
  const std::string conv =
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, 2]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
      "kernel_layout=\"OHWI\");\n";
  // The row cannot be asked through verdict() here, because it is directly before the function's result and
  // the accumulators have no reader.
  const auto acc32 = [&](const std::string& tail) {
    const ir::Module module =
        text::parse("def @main(%x: Tensor[(1, 4, 4, 1), int8]) {\n" + conv + tail + "}\n", "test");
    const pattern::Pre pre(module.main());
    for (const PatternRow& row : pattern_table(kDefaultConfig)) {
      if (row.name != "qplan.qconv2d_acc32") continue;
      const auto matches =
          pattern::match(row.pattern, pre, pattern::PreValue{module.main().nodes()[0].results[0]});
      const std::vector<Reason> reasons = row.check({pre, *matches});
      return reasons.empty() ? std::string() : reasons[0].id + ": " + reasons[0].text;
    }
    return std::string("no row");
  };
  EXPECT_EQ(acc32("  qnn.requantize(%0, 1f, 0, 1f, 0, contract=\"f32e\")\n"), "");
  EXPECT_EQ(acc32("  qnn.requantize(%0, const(Tensor[(2), float32], [1, 2]), 0, 1f, 0, axis=3)\n"), "");
  EXPECT_EQ(acc32("  %1 = qnn.requantize(%0, 1f, 0, 1f, 0);\n  (%0, %1)\n"), "");
  EXPECT_EQ(acc32("  clip(%0, a_min=0f, a_max=6f)\n"),
            "vta.acc32.readers: the accumulators are read by clip");
}

TEST(VtaDepthwise, HasARowOfItsOwn) {
  Conv c = {.weight = "16, 3, 3, 1", .attrs = "groups=16, padding=[1, 1, 1, 1]", .num_weights = 144};
  EXPECT_EQ(verdict(c), "qplan.qdepthwise");
  c.weight_zero_point = "-100";
  c.weight_value = "127";
  EXPECT_EQ(verdict(c), "qplan.qdepthwise");
  c.weight_zero_point = "-128";
  EXPECT_EQ(verdict(c),
            "vta.depthwise.weights: weights less their zero point reach from 0 to 255, limit -256 to 254\n");
  c = {.weight = "32, 3, 3, 1", .attrs = "groups=16", .num_weights = 288, .num_o = 32};
  EXPECT_EQ(verdict(c), "vta.depthwise.multiplier: 32 output channels of 16, limit 16\n");
  c = {.in = "1, 40, 40, 2", .weight = "2, 33, 32, 1", .attrs = "groups=2", .num_weights = 2112, .num_o = 2};
  EXPECT_EQ(verdict(c),
            "vta.depthwise.kernel: a kernel of 33 x 32 needs 1056 times 1 weight elements, limit 1024\n");
}

// The count of the stream that the compiler writes: nothing takes less than its busiest module.
TEST(VtaCycles, AreTheCompilers) {
  uint64_t cycles = 0;
  // 64 positions of one block: 9 taps and 46 cycles of requantisation each, and a reset.
  EXPECT_EQ(verdict(Conv(), kDefaultConfig, "%2", &cycles), "qplan.qconv2d");
  EXPECT_GE(cycles, 64u * (9 + 46 + 1));
  EXPECT_LE(cycles, 64u * (9 + 46 + 1) * 5 / 4);
  const uint64_t once = cycles;
  // Weights that are sums of two: nine taps twice.
  EXPECT_EQ(verdict({.weight_zero_point = "-1", .weight_value = "127"}, kDefaultConfig, "%2", &cycles),
            "qplan.qconv2d");
  EXPECT_GE(cycles, once + 64 * 9);
  // Depthwise: a cycle a tap as well.
  const Conv depthwise = {
      .weight = "16, 3, 3, 1", .attrs = "groups=16, padding=[1, 1, 1, 1]", .num_weights = 144};
  EXPECT_EQ(verdict(depthwise, kDefaultConfig, "%2", &cycles), "qplan.qdepthwise");
  EXPECT_EQ(cycles, once);
}

TEST(VtaDense, IsAConvolutionOverARow) {
  const auto dense = [](const std::string& rows, const std::string& tail) {
    return verdict("%x: Tensor[(" + rows + ", 4), int8]",
                   "  %0 = qnn.dense(%x, const(Tensor[(2, 4), int8], [1, 2, 3, 4, 5, 6, 7, 8]), 0, 0, 1f, "
                   "1f, units=2);\n" +
                       tail);
  };
  EXPECT_EQ(dense("1", "  qnn.requantize(%0, 1f, 0, 1f, 0)\n"), "qplan.qdense");
  EXPECT_EQ(dense("100", "  qnn.requantize(%0, 1f, 0, 1f, 0)\n"), "qplan.qdense");
  EXPECT_EQ(dense("1", "  qnn.requantize(%0, 1f, 0, 1f, 0, contract=\"tfl1\")\n"),
            "vta.requantize.contract: contract 'tfl1' has no exact sequence on the ALU, expected 'tfl2'\n");
}

TEST(VtaAdd, TakesTwoActivationsOfOneShape) {
  const std::string params =
      "%x: Tensor[(1, 2, 2, 16), int8], %y: Tensor[(1, 2, 2, 16), int8], %z: Tensor[(16), int8]";
  EXPECT_EQ(verdict(params, "  qnn.add(%x, %y, 1f, 0, 2f, 0, 4f, 0)\n"), "qplan.qadd");
  EXPECT_EQ(verdict(params, "  qnn.add(%x, %z, 1f, 0, 2f, 0, 4f, 0)\n"),
            "vta.add.shape: Tensor[(1, 2, 2, 16), int8] and Tensor[(16), int8]\n");
  EXPECT_EQ(verdict(params, "  qnn.add(%x, %y, 1f, 0, 2f, 0, 4f, 0, contract=\"f32e\")\n"),
            "vta.requantize.contract: contract 'f32e' has no exact sequence on the ALU, expected 'tfl2'\n");
  EXPECT_EQ(verdict(params, "  qnn.add(%x, %y, 1f, 0, 2f, 0, 0.000001f, 0)\n"),
            "vta.add.scales: the output's scale is too small for the inputs'\n");
  // 16-bit strides of LOAD and STORE count elements of 16 channels.
  const auto wide = [](const std::string& width) {
    return verdict("%x: Tensor[(1, 1, " + width + ", 20), int8]", "  qnn.add(%x, %x, 1f, 0, 2f, 0, 4f, 0)\n");
  };
  EXPECT_EQ(wide("32767"), "qplan.qadd");
  EXPECT_EQ(wide("32768"), "vta.add.row: a row of 65536 elements, limit 65535\n");
}

TEST(VtaMaxPool, TakesWindowsThatFit) {
  const auto pool = [](const std::string& dtype, const std::string& attrs) {
    return verdict("%x: Tensor[(1, 64, 64, 16), " + dtype + "]", "  nn.max_pool2d(%x, " + attrs + ")\n");
  };
  EXPECT_EQ(pool("int8", "pool_size=[2, 2], strides=[2, 2], layout=\"NHWC\""), "qplan.qmax_pool2d");
  EXPECT_EQ(pool("uint8", "pool_size=[2, 2], strides=[2, 2], layout=\"NHWC\""), "qplan.qmax_pool2d");
  EXPECT_EQ(pool("float32", "pool_size=[64, 64], layout=\"NHWC\""),
            "vta.max_pool2d.dtype: float32, expected int8 or uint8\n"
            "vta.max_pool2d.tile: a window of 64 x 64 needs 4096 accumulators and 1 for the working set, "
            "limit 2048\n");
}

TEST(VtaAveragePool, TakesWindowsWhoseSumsItDividesExactly) {
  const auto pool = [](const std::string& scales, const std::string& attrs) {
    return verdict("%x: Tensor[(1, 64, 64, 16), int8]",
                   "  qnn.avg_pool2d(%x, " + scales + ", " + attrs + ", layout=\"NHWC\")\n");
  };
  EXPECT_EQ(pool("1f, 3, 1f, 3", "pool_size=[8, 8], strides=[8, 8]"), "qplan.qavg_pool2d");
  EXPECT_EQ(pool("1f, 3, 2f, 4", "pool_size=[2, 2], count_include_pad=True"),
            "vta.avg_pool2d.scales: input and output have different scales or zero points\n"
            "vta.avg_pool2d.count: padding is counted too\n");
  EXPECT_EQ(pool("1f, 3, 1f, 3", "pool_size=[2, 2], contract=\"f32e\""),
            "vta.requantize.contract: contract 'f32e' has no exact sequence on the ALU, expected 'tfl2'\n");
  EXPECT_EQ(pool("1f, 3, 1f, 3", "pool_size=[43, 43]"),
            "vta.avg_pool2d.exact: no multiplier gives the average of every sum of up to 43 x 43 cells\n");
}

TEST(VtaMean, TakesHeightAndWidth) {
  const auto mean = [](const std::string& scales, const std::string& axes) {
    return verdict("%x: Tensor[(1, 7, 7, 16), int8]", "  qnn.mean(%x, " + scales + ", axis=" + axes + ")\n");
  };
  EXPECT_EQ(mean("1f, 3, 2f, 4", "[1, 2]"), "qplan.qmean");
  EXPECT_EQ(mean("1f, 3, 2f, 4", "[1]"), "vta.mean.axes: over the axes [1] of 4\n");
  // 10^8 = M 2^27, 49 cells take 2^5 of it.
  EXPECT_EQ(mean("1f, 3, 0.00000001f, 4", "[1, 2]"),
            "vta.mean.bound: the sum may reach 12495, shifted left by 22; limit 536870912\n");
}

TEST(VtaClip, TakesEightBits) {
  EXPECT_EQ(verdict("%x: Tensor[(1, 16), uint8]", "  clip(%x, a_min=0f, a_max=6f)\n"), "qplan.qclip");
  EXPECT_EQ(verdict("%x: Tensor[(1, 16), float32]", "  clip(%x, a_min=0f, a_max=6f)\n"),
            "vta.clip.dtype: float32, expected int8 or uint8\n");
}

TEST(VtaPad, IsTakenWhereTheBorderHasOneValue) {
  const auto padded = [](const std::string& widths, const std::string& attrs) {
    return verdict("%x: Tensor[(1, 4, 4, 1), int8]",
                   "  %0 = nn.pad(%x, 3, pad_width=" + widths +
                       ");\n  %1 = qnn.conv2d(%0, const(Tensor[(1, 1, 1, 1), int8], [1]), 0, 0, 1f, 1f, "
                       "data_layout=\"NHWC\", kernel_layout=\"OHWI\"" +
                       attrs + ");\n  qnn.requantize(%1, 1f, 0, 1f, 0)\n");
  };
  EXPECT_EQ(padded("[[0, 0], [1, 1], [1, 1], [0, 0]]", "").substr(0, 13), "qplan.qconv2d");
  EXPECT_EQ(padded("[[0, 0], [1, 1], [1, 1], [0, 0]]", ", padding=[1, 1, 1, 1]"),
            "vta.conv2d.padding: nn.pad and the layer itself pad\n");
  EXPECT_EQ(padded("[[0, 1], [1, 1], [1, 1], [0, 0]]", ""),
            "vta.conv2d.batch: a batch of 2, limit 1\nvta.conv2d.padding: nn.pad pads axis 0 too\n");
}

// ---- each row has a case

struct Violation {
  std::string id;
  std::string verdict;  // all that stands against the case
};

// A convolution with `channels` channels and groups for each of them; of any kind: groups=1.
Conv depthwise(const std::string& in, int64_t channels, const std::string& attrs, int64_t taps = 1,
               const std::string& kernel = "1, 1") {
  Conv c;
  c.in = in;
  c.weight = std::to_string(channels) + ", " + kernel + ", 1";
  c.attrs = "groups=" + std::to_string(channels) + attrs;
  c.num_weights = channels * taps;
  c.num_o = channels;
  return c;
}

std::string dense_verdict(const std::string& rows, const std::string& zero_point, const std::string& tail,
                          const Config& config = kDefaultConfig) {
  return verdict("%x: Tensor[(" + rows + ", 4), int8]",
                 "  %0 = qnn.dense(%x, const(Tensor[(2, 4), int8], [127, 2, 3, 4, 5, 6, 7, 8]), 0, " +
                     zero_point + ", 1f, 1f, units=2);\n" + tail,
                 config);
}

std::string pool_verdict(const std::string& op, const std::string& type, const std::string& attrs) {
  const bool is_max = op == "nn.max_pool2d";
  return verdict("%x: Tensor[" + type + "]",
                 "  " + op + "(%x, " + (is_max ? "" : "1f, 3, 1f, 3, ") + attrs + ")\n");
}

std::string mean_verdict(const std::string& type) {
  return verdict("%x: Tensor[" + type + "]", "  qnn.mean(%x, 1f, 3, 2f, 4, axis=[1, 2])\n");
}

std::string padded_verdict(const std::string& groups) {
  return verdict(
      "%x: Tensor[(1, 4, 4, 2), int8]",
      "  %0 = nn.pad(%x, 3, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]]);\n"
      "  %1 = qnn.conv2d(%0, const(Tensor[(2, 1, 1, " +
          std::string(groups == "1" ? "2" : "1") + "), int8], [" + (groups == "1" ? "1, 1, 1, 1" : "1, 1") +
          "]), 0, 0, 1f, 1f, padding=[1, 1, 1, 1], groups=" + groups +
          ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n  qnn.requantize(%1, 1f, 0, 1f, 0)\n");
}

std::string add_verdict(const std::string& lhs, const std::string& rhs, const std::string& body) {
  return verdict("%x: Tensor[" + lhs + "], %y: Tensor[" + rhs + "]", "  qnn.add(" + body + ")\n");
}

std::vector<Violation> violations() {
  const std::string requantize = "  qnn.requantize(%0, 1f, 0, 1f, 0)\n";
  const std::string nhwc = ", layout=\"NHWC\"", one = "pool_size=[1, 1]";
  const std::string nchw_conv =
      "  %0 = qnn.conv2d(%x, const(Tensor[(2, 1, 1, 1), int8], [1, 1]), 0, 0, 1f, 1f, groups=";
  Config tiny = kDefaultConfig, without_mul = kDefaultConfig;
  tiny.acc_elements = 8;
  without_mul.has_multiply = false;
  const Conv conv = {
      .in = "1, 4, 4, 1", .weight = "1, 1, 1, 1", .attrs = "groups=1", .num_weights = 1, .num_o = 1};
  const auto with = [&](const char* in, const char* attrs) {
    Conv c = conv;
    c.in = in;
    c.attrs = attrs;
    return c;
  };
  const Conv wide_kernel = {.in = "1, 40, 40, 1",
                            .weight = "1, 33, 33, 1",
                            .attrs = "groups=1",
                            .num_weights = 33 * 33,
                            .num_o = 1};
  std::vector<Violation> cases = {
      {"vta.conv2d.dtype", verdict({.out = "int32"})},
      {"vta.conv2d.layout", verdict("%x: Tensor[(1, 1, 4, 4), int8]", nchw_conv + "1);\n" + requantize)},
      {"vta.conv2d.weights", verdict({.weight_value = "255", .weight_dtype = "uint8"})},
      {"vta.conv2d.tile", verdict(conv, tiny)},
      {"vta.conv2d.row", verdict(with("1, 1, 65536, 1", "groups=1"))},
      {"vta.conv2d.buffer", verdict(with("1, 2048, 1025, 1", "groups=1"))},
      {"vta.conv2d.batch", verdict(with("2, 4, 4, 1", "groups=1"))},
      {"vta.conv2d.stride", verdict(with("1, 2048, 1, 1", "strides=[2048, 1]"))},
      {"vta.conv2d.padding", padded_verdict("1")},
      {"vta.conv2d.kernel", verdict(wide_kernel)},
      {"vta.conv2d.groups", verdict({.weight = "16, 3, 3, 8", .attrs = "groups=2", .num_weights = 16 * 72})},
      {"vta.requantize.contract", verdict({.contract = "f32e"})},
      {"vta.requantize.mul", verdict(Conv(), without_mul)},
      {"vta.requantize.zero_point", verdict({.accumulator_zero_point = "3"})},
      {"vta.requantize.bound", verdict({.bias = std::to_string(1 << 29)})},
      {"vta.acc32.readers", verdict("%x: Tensor[(1, 4, 4, 1), int8]",
                                    "  %0 = qnn.conv2d(%x, const(Tensor[(1, 1, 1, 1), int8], [1]), 0, 0, 1f, "
                                    "1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                                    "  %1 = clip(%0, a_min=0f, a_max=6f);\n  (%0, %1)\n")},
      {"vta.dense.dtype",
       dense_verdict("1", "0", "  qnn.requantize(%0, 1f, 0, 1f, 0, out_dtype=\"int32\")\n")},
      {"vta.dense.layout",
       dense_verdict("2", "0",
                     "  %1 = nn.bias_add(%0, const(Tensor[(2), int32], [1, 2]), axis=0);\n"
                     "  qnn.requantize(%1, 1f, 0, 1f, 0)\n")},
      {"vta.dense.weights", dense_verdict("1", "-128", requantize)},
      {"vta.dense.tile", dense_verdict("1", "0", requantize, tiny)},
      {"vta.dense.row", dense_verdict("65536", "0", requantize)},
      {"vta.dense.buffer", dense_verdict("2097153", "0", requantize)},
      {"vta.depthwise.layout", verdict("%x: Tensor[(1, 2, 4, 4), int8]", nchw_conv + "2);\n" + requantize)},
      {"vta.depthwise.tile", verdict(depthwise("1, 4, 4, 2", 2, ""), tiny)},
      {"vta.depthwise.row", verdict(depthwise("1, 1, 65536, 2", 2, ""))},
      {"vta.depthwise.buffer", verdict(depthwise("1, 2048, 1025, 2", 2, ""))},
      {"vta.depthwise.batch", verdict(depthwise("2, 4, 4, 2", 2, ""))},
      {"vta.depthwise.stride", verdict(depthwise("1, 2048, 1, 2", 2, ", strides=[2048, 1]"))},
      {"vta.depthwise.padding", padded_verdict("2")},
      {"vta.depthwise.kernel", verdict(depthwise("1, 40, 40, 2", 2, "", 33 * 32, "33, 32"))},
      {"vta.depthwise.multiplier",
       verdict(
           {.in = "1, 4, 4, 2", .weight = "4, 1, 1, 1", .attrs = "groups=2", .num_weights = 4, .num_o = 4})},
      {"vta.add.shape", add_verdict("(2, 16), int8", "(16), int8", "%x, %y, 1f, 0, 2f, 0, 4f, 0")},
      {"vta.add.constant",
       add_verdict("(1), int8", "(1), int8", "%x, const(Tensor[(1), int8], [1]), 1f, 0, 2f, 0, 4f, 0")},
      {"vta.add.buffer",
       add_verdict("(2097153, 16), int8", "(2097153, 16), int8", "%x, %y, 1f, 0, 2f, 0, 4f, 0")},
      {"vta.add.row",
       add_verdict("(1, 65536, 1), int8", "(1, 65536, 1), int8", "%x, %y, 1f, 0, 2f, 0, 4f, 0")},
      {"vta.add.scales", add_verdict("(16), int8", "(16), int8", "%x, %y, 1f, 0, 2f, 0, 0.000001f, 0")},
      {"vta.avg_pool2d.scales",
       verdict("%x: Tensor[(1, 4, 4, 1), int8]",
               "  qnn.avg_pool2d(%x, 1f, 3, 2f, 3, pool_size=[2, 2]" + nhwc + ")\n")},
      {"vta.avg_pool2d.count", pool_verdict("qnn.avg_pool2d", "(1, 4, 4, 1), int8",
                                            "pool_size=[2, 2], count_include_pad=True" + nhwc)},
      {"vta.avg_pool2d.exact",
       pool_verdict("qnn.avg_pool2d", "(1, 64, 64, 1), int8", "pool_size=[43, 43]" + nhwc)},
      {"vta.mean.axes",
       verdict("%x: Tensor[(1, 7, 7, 16), int8]", "  qnn.mean(%x, 1f, 3, 2f, 4, axis=[1])\n")},
      {"vta.mean.batch", mean_verdict("(2, 2, 2, 1), int8")},
      {"vta.mean.row", mean_verdict("(1, 1, 65536, 1), int8")},
      {"vta.mean.buffer", mean_verdict("(1, 2048, 1025, 1), int8")},
      {"vta.mean.tile", mean_verdict("(1, 64, 64, 1), int8")},
      {"vta.mean.bound",
       verdict("%x: Tensor[(1, 7, 7, 16), int8]", "  qnn.mean(%x, 1f, 3, 0.00000001f, 4, axis=[1, 2])\n")},
      {"vta.clip.dtype", verdict("%x: Tensor[(16), float32]", "  clip(%x, a_min=0f, a_max=6f)\n")},
      {"vta.reshape.dtype", verdict("%x: Tensor[(16), float32]", "  reshape(%x, newshape=[4, 4])\n")},
      {"vta.reshape.channels", verdict("%x: Tensor[(4, 10), int8]", "  reshape(%x, newshape=[40])\n")},
  };
  Conv c = depthwise("1, 4, 4, 2", 2, "");
  c.out = "int32";
  cases.push_back({"vta.depthwise.dtype", verdict(c)});
  c = depthwise("1, 4, 4, 2", 2, "");
  c.weight_zero_point = "-128";
  c.weight_value = "127";
  cases.push_back({"vta.depthwise.weights", verdict(c)});
  // Both pools have them.
  struct PoolCase {
    const char *id, *type;
    std::string attrs;
  };
  const PoolCase pools[] = {{"dtype", "(1, 4, 4, 1), float32", one + nhwc},
                            {"layout", "(1, 1, 4, 4), int8", one},
                            {"batch", "(2, 4, 4, 1), int8", one + nhwc},
                            {"stride", "(1, 2048, 1, 1), int8", one + ", strides=[2048, 1]" + nhwc},
                            {"row", "(1, 1, 65536, 1), int8", one + nhwc},
                            {"buffer", "(1, 2048, 1025, 1), int8", one + nhwc},
                            {"tile", "(1, 64, 64, 1), int8", "pool_size=[64, 64]" + nhwc}};
  for (const std::string name : {"max_pool2d", "avg_pool2d"}) {
    for (const PoolCase& pool : pools) {
      if (name == "avg_pool2d" && pool.id == std::string("dtype")) continue;
      cases.push_back({"vta." + name + "." + pool.id,
                       pool_verdict((name == "max_pool2d" ? "nn." : "qnn.") + name, pool.type, pool.attrs)});
    }
  }
  return cases;
}

// A new row needs a case here.
TEST(VtaConstraints, EachHasACaseThatViolatesIt) {
  // The IR's own types let nothing but int8 and uint8 get there.
  std::set<std::string> violated = {"vta.add.dtype", "vta.avg_pool2d.dtype", "vta.mean.dtype"};
  for (const Violation& violation : violations()) {
    const std::string id = violation.id + ": ";
    EXPECT_NE(violation.verdict.find(id), std::string::npos) << violation.id << "\n" << violation.verdict;
    violated.insert(violation.id);
  }
  for (const PatternRow& row : pattern_table(kDefaultConfig)) {
    for (const Constraint& constraint : row.constraints)
      EXPECT_TRUE(violated.contains(constraint.id)) << constraint.id << " has no case";
  }
}

}  // namespace
}  // namespace qplan::vta::compiler::constraints_test
