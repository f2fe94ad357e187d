// Each condition of Ethos-U's table, met and violated: the reasons by their ids.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "src/ethosu/compiler/target.h"
#include "src/packer/pattern/pattern.h"
#include "src/packer/text/text.h"

namespace qplan::ethosu::compiler {
namespace {

// The row that takes the function's result, or the ids of all reasons of the first one that matches it.
std::set<std::string> verdict(const std::string& params, const std::string& body) {
  const ir::Module module = text::parse("def @main(" + params + ") {\n" + body + "}\n", "test");
  const pattern::Pre pre(module.main());
  std::set<std::string> reasons;
  for (const target::PatternRow& row : pattern_table(kConfigs[2])) {
    const auto matches = pattern::match(row.pattern, pre, pattern::PreValue{module.main().outputs()[0]});
    if (!matches) continue;
    const Candidate candidate{pre, *matches};
    const std::vector<target::Reason> found = row.check(candidate);
    if (found.empty()) return {row.name};
    for (const target::Reason& reason : found) reasons.insert(reason.id);
    return reasons;
  }
  return reasons;
}

std::string repeated(const std::string& value, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + value;
  return text;
}

struct Conv {
  std::string in = "1, 8, 8, 4", dtype = "int8", weight = "4, 3, 3, 4", attrs = "padding=[1, 1, 1, 1]";
  int64_t num_weights = 4 * 3 * 3 * 4, num_o = 4;
  std::string value = "1", bias = "0", out = "int8", contract = "tfl2", accumulator_zero_point = "0";
  std::string weight_dtype = "int8", weight_zero_point = "0";
  std::string zero_point = "3", accumulator = "int32", out_scale = "1f", out_zero_point = "0";
};

std::set<std::string> verdict(const Conv& c) {
  return verdict("%x: Tensor[(" + c.in + "), " + c.dtype + "]",
                 "  %0 = qnn.conv2d(%x, const(Tensor[(" + c.weight + "), " + c.weight_dtype + "], [" +
                     repeated(c.value, c.num_weights) + "]), " + c.zero_point + ", " + c.weight_zero_point +
                     ", 0.5f, 0.5f, " + c.attrs +
                     ", data_layout=\"NHWC\", kernel_layout=\"OHWI\", out_dtype=\"" + c.accumulator +
                     "\");\n  %1 = nn.bias_add(%0, const(Tensor[(" + std::to_string(c.num_o) + "), " +
                     c.accumulator + "], [" + repeated(c.bias, c.num_o) +
                     "]), axis=3);\n  %2 = qnn.requantize(%1, 0.25f, " + c.accumulator_zero_point + ", " +
                     c.out_scale + ", " + c.out_zero_point + ", out_dtype=\"" + c.out + "\", contract=\"" +
                     c.contract + "\");\n  %2\n");
}

using Ids = std::set<std::string>;

TEST(EthosuConv2d, AnOrdinaryLayerIsTaken) {
  EXPECT_EQ(verdict(Conv()), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.dtype = "uint8", .out = "uint8"}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.dtype = "uint8", .out = "int8"}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.out = "uint8"}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.attrs = "strides=[3, 3]"}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.attrs = "dilation=[2, 2]"}), Ids{"qplan.qconv2d"});
}

TEST(EthosuConv2d, EachConditionIsAReason) {
  EXPECT_EQ(verdict({.out = "int32"}), Ids{"ethosu.conv2d.dtype"});
  EXPECT_EQ(verdict({.in = "2, 8, 8, 4"}), Ids{"ethosu.conv2d.batch"});
  EXPECT_EQ(verdict({.attrs = "strides=[1, 4]"}), Ids{"ethosu.conv2d.stride"});
  // One position of the output has no stride.
  EXPECT_EQ(verdict({.in = "1, 3, 3, 4", .attrs = "strides=[4, 4]"}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.in = "1, 9, 9, 4", .attrs = "dilation=[3, 1]"}), Ids{"ethosu.conv2d.kernel"});
  EXPECT_EQ(verdict({.in = "1, 70, 8, 4",
                     .weight = "4, 65, 1, 4",
                     .attrs = "padding=[0, 0, 0, 0]",
                     .num_weights = 4 * 65 * 4}),
            Ids{"ethosu.conv2d.kernel"});
  EXPECT_EQ(verdict({.weight = "4, 3, 3, 2", .attrs = "groups=2", .num_weights = 4 * 9 * 2}),
            Ids{"ethosu.conv2d.groups"});
  EXPECT_EQ(verdict({.contract = "f32e"}), Ids{"ethosu.requantize.contract"});
  EXPECT_EQ(verdict({.accumulator_zero_point = "1"}), Ids{"ethosu.requantize.zero_point"});
  EXPECT_EQ(verdict({.in = "1, 65537, 1, 4",
                     .weight = "4, 1, 1, 4",
                     .attrs = "padding=[0, 0, 0, 0]",
                     .num_weights = 16}),
            Ids{"ethosu.conv2d.extent"});
  EXPECT_EQ(
      verdict(
          {.in = "1, 2, 2, 4", .weight = "4, 1, 1, 4", .attrs = "padding=[128, 0, 0, 0]", .num_weights = 16}),
      Ids{"ethosu.conv2d.padding"});
  // Its one column is in the padding.
  EXPECT_EQ(verdict({.in = "1, 4, 1, 4",
                     .weight = "4, 1, 1, 4",
                     .attrs = "strides=[1, 2], padding=[0, 1, 0, 0]",
                     .num_weights = 16}),
            Ids{"ethosu.conv2d.padding"});
}

// 36 weights of 1, an input less its zero point from -131 to 124.
TEST(EthosuConv2d, TheBoundIsProvedFromWeightsAndBias) {
  EXPECT_EQ(verdict({.bias = std::to_string(INT32_MAX - 36 * 124)}), Ids{"qplan.qconv2d"});
  EXPECT_EQ(verdict({.bias = std::to_string(INT32_MAX - 36 * 124 + 1)}), Ids{"ethosu.requantize.bound"});
}

// Layers of int16 with accumulators of 64 bits.
Conv int16(const std::string& attrs = "padding=[1, 1, 1, 1]") {
  Conv c;
  c.dtype = c.out = "int16", c.accumulator = "int64", c.zero_point = "0", c.attrs = attrs;
  return c;
}

TEST(EthosuInt16, ConditionsAreReasons) {
  EXPECT_EQ(verdict(int16()), Ids{"qplan.qconv2d"});
  Conv c = int16();
  c.accumulator = "int32";
  EXPECT_EQ(verdict(c), Ids{"ethosu.conv2d.int16"});
  c = int16();
  c.zero_point = "1";
  EXPECT_EQ(verdict(c), Ids{"ethosu.conv2d.int16"});
  c = int16();
  c.out_zero_point = "1";
  EXPECT_EQ(verdict(c), Ids{"ethosu.conv2d.int16"});
  EXPECT_EQ(verdict(int16("padding=[1, 1, 1, 1], pad_value=4")), Ids{"ethosu.conv2d.int16"});
  c = int16();
  c.dtype = "int8", c.accumulator = "int32";
  EXPECT_EQ(verdict(c), Ids{"ethosu.conv2d.dtype"});
}

TEST(EthosuInt16, DepthwiseLayersHaveAtMost64Channels) {
  const auto of = [](const std::string& channels, int64_t count) {
    Conv c = int16("padding=[1, 1, 1, 1], groups=" + channels);
    c.in = "1, 8, 8, " + channels, c.weight = channels + ", 3, 3, 1";
    c.num_weights = 9 * count, c.num_o = count;
    return verdict(c);
  };
  EXPECT_EQ(of("64", 64), Ids{"qplan.qdepthwise"});
  EXPECT_EQ(of("65", 65), Ids{"ethosu.depthwise.channels"});
}

// 36 weights of 1 and inputs from -2^15: sums from -36 * 2^15, and the bias.
TEST(EthosuInt16, TheBoundIsThatOfTheAccumulatorOrOfTheResult) {
  constexpr int64_t kSums = 36 << 15;
  const auto of = [](int64_t bias, const std::string& out_scale) {
    Conv c = int16();
    c.bias = std::to_string(bias), c.out_scale = out_scale;
    return verdict(c);
  };
  // A multiplier of 2^-10: 40 bits are the limit.
  EXPECT_EQ(of(kSums + 1 - (int64_t{1} << 39), "256f"), Ids{"qplan.qconv2d"});
  EXPECT_EQ(of(kSums - (int64_t{1} << 39), "256f"), Ids{"ethosu.requantize.bound"});
  // A multiplier of 1, which is 0.5 * 2: the result may have 31 bits.
  EXPECT_EQ(of(kSums + 1 - (int64_t{1} << 30), "0.25f"), Ids{"qplan.qconv2d"});
  EXPECT_EQ(of(kSums - (int64_t{1} << 30), "0.25f"), Ids{"ethosu.requantize.bound"});
  // 2^6 and 2^7.
  EXPECT_EQ(of(0, "0.00390625f"), Ids{"qplan.qconv2d"});
  EXPECT_EQ(of(0, "0.001953125f"), Ids{"ethosu.requantize.bound"});
}

std::set<std::string> add(const std::string& rhs, const std::string& scales,
                          const std::string& contract = "tfl2") {
  return verdict("%x: Tensor[(1, 4, 4, 8), int8], %y: Tensor[" + rhs + "]",
                 "  %0 = qnn.add(%x, %y, " + scales + ", contract=\"" + contract + "\");\n  %0\n");
}

TEST(EthosuAdd, ConditionsAreReasons) {
  EXPECT_EQ(add("(1, 4, 4, 8), int8", "0.5f, 1, 0.5f, 2, 1f, 3"), Ids{"qplan.qadd"});
  EXPECT_EQ(add("(1, 1, 1, 8), int8", "0.5f, 1, 0.5f, 2, 1f, 3"), Ids{"qplan.qadd"});
  EXPECT_EQ(add("(1, 4, 4, 8), int8", "0.5f, 1, 0.5f, 2, 1f, 3", "f32e"), Ids{"ethosu.add.contract"});
  EXPECT_EQ(add("(1, 4, 4, 8), int8", "0.5f, 1, 0.5f, 2, 0.0000001f, 3"), Ids{"ethosu.add.range"});
}

// Other roundings of the scaled operand are tried for all pairs of operands.
TEST(EthosuAdd, MostScalesGiveOneResultHoweverTheOperandIsRounded) {
  AddNode sum;
  sum.lhs.is_signed = sum.rhs.is_signed = sum.out.is_signed = true;
  sum.clamp = {-128, 127};
  size_t taken = 0;
  for (int i = 1; i <= 40; ++i) {
    sum.multipliers = layer::add_multipliers(0.05f, 0.05f * static_cast<float>(i) / 41.0f, 0.07f);
    taken += is_add_exact(sum) ? 1 : 0;
  }
  EXPECT_GT(taken, 20u);
  // Equal scales have nothing to round.
  sum.multipliers = layer::add_multipliers(0.05f, 0.05f, 0.07f);
  EXPECT_TRUE(is_add_exact(sum));
}

std::set<std::string> pool(const std::string& shape, const std::string& attrs,
                           const std::string& scales = "1f, 0, 1f, 0") {
  return verdict("%x: Tensor[(" + shape + "), int8]", "  %0 = qnn.avg_pool2d(%x, " + scales + ", " + attrs +
                                                          ", layout=\"NHWC\", contract=\"tfl2\");\n  %0\n");
}

TEST(EthosuAveragePool, ConditionsAreReasons) {
  EXPECT_EQ(pool("1, 16, 16, 4", "pool_size=[16, 16]"), Ids{"qplan.qavg_pool2d"});
  EXPECT_EQ(pool("1, 17, 16, 4", "pool_size=[17, 16]"), Ids{"ethosu.avg_pool2d.window"});
  EXPECT_EQ(pool("1, 16, 16, 4", "pool_size=[2, 2], strides=[4, 1]"), Ids{"ethosu.avg_pool2d.window"});
  EXPECT_EQ(pool("1, 16, 16, 4", "pool_size=[9, 9], padding=[1, 1, 1, 1]"), Ids{"ethosu.avg_pool2d.padding"});
  EXPECT_EQ(pool("1, 8, 8, 4", "pool_size=[2, 2]", "1f, 0, 2f, 0"), Ids{"ethosu.avg_pool2d.same"});
  EXPECT_EQ(pool("1, 8, 8, 4", "pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True"),
            Ids{"ethosu.avg_pool2d.count"});
}

TEST(EthosuOthers, ConditionsAreReasons) {
  const std::string x = "%x: Tensor[(1, 4, 4, 8), int8]";
  EXPECT_EQ(verdict(x, "  %0 = qnn.sigmoid(%x, 0.3f, -2, 0.00390625f, -128);\n  %0\n"), Ids{});
  EXPECT_EQ(verdict(x, "  %0 = qnn.mul(%x, %x, 0.5f, 0, 0.5f, 0, 1f, 0, contract=\"tfl2\");\n  %0\n"),
            Ids{"qnn.mul"});
  EXPECT_EQ(verdict(x, "  %0 = qnn.mul(%x, %x, 0.5f, 0, 0.5f, 0, 0.1f, 0, contract=\"tfl2\");\n  %0\n"),
            Ids{"ethosu.mul.range"});
  EXPECT_EQ(verdict("%x: Tensor[(2, 4, 4, 8), int8]", "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %0\n"),
            Ids{"ethosu.clip.shape"});
  EXPECT_EQ(verdict("%x: Tensor[(1, 4, 4, 8), int16]", "  %0 = clip(%x, a_min=0f, a_max=6f);\n  %0\n"),
            Ids{"ethosu.clip.dtype"});
}

std::set<std::string> transposed(const std::string& strides, const std::string& crop,
                                 const std::string& size) {
  return verdict("%x: Tensor[(1, 4, 5, 2), int8]",
                 "  %0 = qnn.conv2d_transpose(%x, const(Tensor[(1, 3, 3, 2), int8], [" + repeated("1", 18) +
                     "]), 3, 0, 0.5f, 0.5f, strides=" + strides + ", crop=" + crop + ", output_size=" + size +
                     ");\n  %1 = qnn.requantize(%0, 0.25f, 0, 1f, 0, out_dtype=\"int8\", "
                     "contract=\"tfl2\");\n  %1\n");
}

TEST(EthosuConv2dTranspose, ConditionsAreReasons) {
  EXPECT_EQ(transposed("[2, 2]", "[0, 0]", "[8, 10]"), Ids{"qplan.qconv2d_transpose"});
  EXPECT_EQ(transposed("[1, 1]", "[1, 1]", "[4, 5]"), Ids{"qplan.qconv2d_transpose"});
  EXPECT_EQ(transposed("[2, 1]", "[0, 0]", "[8, 7]"), Ids{"ethosu.conv2d_transpose.stride"});
  EXPECT_EQ(transposed("[3, 3]", "[0, 0]", "[12, 15]"), Ids{"ethosu.conv2d_transpose.stride"});
  EXPECT_EQ(transposed("[2, 2]", "[3, 0]", "[6, 10]"), Ids{"ethosu.conv2d_transpose.padding"});
  // Its last rows read nothing.
  EXPECT_EQ(transposed("[2, 2]", "[0, 0]", "[12, 10]"), Ids{"ethosu.conv2d_transpose.padding"});
}

std::set<std::string> dense(const std::string& in) {
  return verdict(
      "%x: Tensor[(" + in + "), int8]",
      "  %0 = qnn.dense(%x, const(Tensor[(1, 4), int8], [1, 2, 3, 4]), 3, 0, 0.5f, 0.5f);\n"
      "  %1 = qnn.requantize(%0, 0.25f, 0, 1f, 0, out_dtype=\"int8\", contract=\"tfl2\");\n  %1\n");
}

TEST(EthosuDense, TakesRowsOfAnImage) {
  EXPECT_EQ(dense("1, 2, 3, 4"), Ids{"qplan.qdense"});
  EXPECT_EQ(dense("2, 2, 3, 4"), Ids{"ethosu.dense.shape"});
}

std::set<std::string> softmax(const std::string& shape, const std::string& rest) {
  return verdict("%x: Tensor[(" + shape + "), int8]", "  %0 = qnn.softmax(%x, " + rest + ");\n  %0\n");
}

TEST(EthosuSoftmax, ConditionsAreReasons) {
  const std::string quantized = "0.3f, -2, 0.00390625f, -128, contract=\"tfl2\"";
  EXPECT_EQ(softmax("1, 4, 4, 8", quantized), Ids{"qnn.softmax"});
  EXPECT_EQ(softmax("1, 4095", quantized), Ids{"qnn.softmax"});
  EXPECT_EQ(softmax("1, 4096", quantized), Ids{"ethosu.softmax.axis"});
  EXPECT_EQ(softmax("1, 4, 4, 8", quantized + ", axis=1"), Ids{"ethosu.softmax.axis"});
  EXPECT_EQ(softmax("1, 8", "0.3f, -2, 0.00390625f, -128, contract=\"f32e\""),
            Ids{"ethosu.softmax.contract"});
  EXPECT_EQ(softmax("1, 8", "0.3f, -2, 0.0078125f, -128, contract=\"tfl2\""), Ids{"ethosu.softmax.output"});
}

TEST(EthosuMovement, ConditionsAreReasons) {
  const std::string x = "%x: Tensor[(1, 4, 6, 70), int8]";
  const auto positions = [](const std::string& values, int64_t count) {
    return "const(Tensor[(" + std::to_string(count) + "), int32], [" + values + "])";
  };
  const auto takes = [&](const std::string& rows, const std::string& columns) {
    return "  %0 = take(%x, " + positions(rows, 8) + ", axis=1);\n  %1 = take(%0, " + positions(columns, 12) +
           ", axis=2);\n  %1\n";
  };
  const std::string columns = "0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5";
  EXPECT_EQ(verdict(x, takes("0, 0, 1, 1, 2, 2, 3, 3", columns)), Ids{"qplan.qresize_nearest2x"});
  EXPECT_EQ(verdict(x, takes("0, 0, 1, 1, 2, 2, 3, 2", columns)), Ids{"ethosu.resize_nearest2x.factor"});
  EXPECT_EQ(verdict(x, "  %0 = take(%x, " + positions("3, 1, 2", 3) + ", axis=1);\n  %0\n"), Ids{"take"});
  EXPECT_EQ(verdict(x, "  %0 = take(%x, " + positions("3, 5", 2) + ", axis=3);\n  %0\n"),
            Ids{"ethosu.take.positions"});
  EXPECT_EQ(verdict(x, "  %0 = strided_slice(%x, begin=[1], end=[4], strides=[2], axes=[1]);\n  %0\n"),
            Ids{"strided_slice"});
  EXPECT_EQ(verdict(x, "  %0 = strided_slice(%x, begin=[1], end=[4], strides=[2], axes=[3]);\n  %0\n"),
            Ids{"ethosu.strided_slice.steps"});
  EXPECT_EQ(verdict(x, "  %0 = nn.pad(%x, 9f, pad_width=[[0, 0], [1, 2], [0, 3], [1, 0]]);\n  %0\n"),
            Ids{"nn.pad"});
  EXPECT_EQ(verdict(x, "  %0 = nn.pad(%x, 9f, pad_width=[[0, 0], [0, 400], [0, 0], [0, 0]]);\n  %0\n"),
            Ids{"ethosu.pad.extent"});
  EXPECT_EQ(verdict(x, "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n  %0\n"), Ids{"transpose"});
  EXPECT_EQ(verdict("%x: Tensor[(1, 65, 66, 70), int8]", "  %0 = transpose(%x, axes=[0, 3, 1, 2]);\n  %0\n"),
            Ids{"ethosu.transpose.extent"});
}

}  // namespace
}  // namespace qplan::ethosu::compiler
