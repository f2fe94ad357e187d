// Layers in Relay text, compiled for VTA and run on the simulator, against the same text on the CPU's
// runtime.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "src/packer/pattern/pattern.h"
#include "src/vta/compiler/layers/layers.h"
#include "src/vta/compiler/target.h"
#include "tests/packer/target/lower_helpers.h"
#include "tests/vta/compiler/simulate.h"

namespace qplan::vta::compiler::read_gemm_layer_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// The first row of the table that takes the function's result.
std::optional<ReadLayer> read_text(const std::string& text, std::string* row_name) {
  const ir::Module module = text::parse(text, "test");
  const pattern::Pre pre(module.main());
  for (const PatternRow& row : pattern_table(kDefaultConfig)) {
    const auto matches = pattern::match(row.pattern, pre, pattern::PreValue{module.main().outputs()[0]});
    if (!matches) continue;
    const Candidate candidate{pre, *matches};
    if (!row.check(candidate).empty()) continue;
    *row_name = row.name;
    return read_gemm_layer(candidate);
  }
  return std::nullopt;
}

// "3, -7, ...": values from low to high.
std::string numbers(std::mt19937& random, int64_t count, int64_t low, int64_t high) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += i == 0 ? "" : ", ";
    text += std::to_string(low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1)));
  }
  return text;
}

// One for each channel, none of them the product of the layer's scales.
std::string scales(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += (i == 0 ? "0.00" : ", 0.00") + std::to_string(11 + i * 7 % 80);
  return text;
}

// T: int8_t or uint8_t, of input and output.
template <typename T>
void expect_like_the_cpu(const std::string& text, int64_t input_elements, const std::string& row) {
  std::string row_name;
  const std::optional<ReadLayer> read = read_text(text, &row_name);
  ASSERT_TRUE(read) << text;
  EXPECT_EQ(row_name, row);
  EXPECT_EQ(read->flips_input, sizeof(T) == 1 && T(-1) > T(0));
  std::mt19937 random(5);
  std::vector<T> input(static_cast<size_t>(input_elements));
  for (T& value : input) value = static_cast<T>(random());
  const std::vector<T> expected = qplan::testing::run_text<T>(text, input);
  const uint8_t flip_in = read->flips_input ? 0x80 : 0, flip_out = read->flips_output ? 0x80 : 0;
  std::vector<int8_t> device_input;
  for (const T value : input)
    device_input.push_back(static_cast<int8_t>(static_cast<uint8_t>(value) ^ flip_in));
  for (const Config* config : {&kDefaultConfig, &kQuarterConfig}) {
    const SimResult result = simulate(*config, compile_layer(*config, read->layer), device_input, 1, 8);
    ASSERT_EQ(result.output.size(), expected.size());
    for (size_t n = 0; n < expected.size(); ++n)
      ASSERT_EQ(static_cast<T>(static_cast<uint8_t>(result.output[n]) ^ flip_out), expected[n]) << n;
  }
}

TEST(VtaReadLayer, ConvolutionWithAScalePerChannel) {
  std::mt19937 random(1);
  expect_like_the_cpu<int8_t>(
      qplan::testing::main_text(
          "%x: Tensor[(1, 9, 7, 20), int8]",
          "  %0 = qnn.conv2d(%x, const(Tensor[(24, 3, 3, 20), int8], [" +
              numbers(random, int64_t{24} * 9 * 20, -127, 127) +
              "]), -3, 0, 0.5f, 0.5f, strides=[2, 1], padding=[1, 1, 1, 1], pad_value=40, "
              "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
              "  %1 = nn.bias_add(%0, const(Tensor[(24), int32], [" +
              numbers(random, 24, -9000, 9000) +
              "]), axis=3);\n  %2 = qnn.requantize(%1, const(Tensor[(24), float32], [" + scales(24) +
              "]), 0, 6f, 5, axis=3, out_dtype=\"int8\");\n  %3 = clip(%2, a_min=-100f, a_max=90f);\n  %3"),
      9 * 7 * 20, "qplan.qconv2d");
}

// uint8 weights with a zero point are sums of two; what nn.pad pads with is not the input's zero point.
TEST(VtaReadLayer, UnsignedConvolutionBehindAPad) {
  std::mt19937 random(2);
  expect_like_the_cpu<uint8_t>(
      qplan::testing::main_text(
          "%x: Tensor[(1, 6, 6, 17), uint8]",
          "  %0 = nn.pad(%x, 90f, pad_width=[[0, 0], [1, 2], [0, 1], [0, 0]]);\n"
          "  %1 = qnn.conv2d(%0, const(Tensor[(18, 3, 2, 17), uint8], [" +
              numbers(random, int64_t{18} * 6 * 17, 0, 255) +
              "]), 120, 117, 0.5f, 0.5f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
              "  %2 = qnn.requantize(%1, 0.25f, 0, 64f, 100, out_dtype=\"uint8\");\n  %2"),
      6 * 6 * 17, "qplan.qconv2d");
}

TEST(VtaReadLayer, DepthwiseConvolution) {
  std::mt19937 random(4);
  expect_like_the_cpu<int8_t>(
      qplan::testing::main_text("%x: Tensor[(1, 8, 9, 37), int8]",
                                "  %0 = qnn.conv2d(%x, const(Tensor[(37, 3, 3, 1), int8], [" +
                                    numbers(random, 37 * 9, -127, 127) +
                                    "]), 11, 0, 0.5f, 0.5f, groups=37, strides=[2, 2], padding=[0, 0, 1, 1], "
                                    "data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
                                    "  %1 = qnn.requantize(%0, 0.25f, 0, 16f, -20);\n  %1"),
      8 * 9 * 37, "qplan.qdepthwise");
}

TEST(VtaReadLayer, FullyConnectedLayer) {
  std::mt19937 random(3);
  expect_like_the_cpu<int8_t>(
      qplan::testing::main_text(
          "%x: Tensor[(3, 70), int8]",
          "  %0 = qnn.dense(%x, const(Tensor[(10, 70), int8], [" + numbers(random, 700, -127, 127) +
              "]), 4, 0, 0.5f, 0.5f);\n"
              "  %1 = nn.bias_add(%0, const(Tensor[(10), int32], [" +
              numbers(random, 10, -9000, 9000) +
              "]), axis=1);\n  %2 = qnn.requantize(%1, 0.25f, 0, 64f, -7, axis=1);\n  %2"),
      3 * 70, "qplan.qdense");
}

}  // namespace
}  // namespace qplan::vta::compiler::read_gemm_layer_test
