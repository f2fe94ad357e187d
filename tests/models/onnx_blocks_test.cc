// Weights that are quantised in blocks, through a plan: DequantizeLinear with block_size, ONNX Runtime's
// GatherBlockQuantized, and its MatMulNBits, whose product with the identity shows the weights.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_blocks_test {
namespace {

using namespace onnx_run;  // NOLINT: the words of these models

constexpr int kUint4 = 21, kInt4 = 22;

// 0 + the weights, as the network has them.
std::vector<float> dequantized(const Message& weights, const std::vector<int64_t>& scales_shape,
                               const std::vector<float>& scales, const Message& zero_points,
                               const std::vector<Message>& attributes) {
  OnnxBuilder b(21);
  b.input("x", kFloat, {1}).initializer(weights).initializer(zero_points);
  b.constant("s", kFloat, scales_shape, scales);
  b.node("DequantizeLinear", {"w", "s", "z"}, {"d"}, attributes).node("Add", {"x", "d"}, {"y"});
  b.graph().message(12, Message().bytes(1, "y"));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  return values_of<float>(session.run({bytes_of(std::vector<float>{0})}).at(0));
}

TEST(OnnxBlocks, EachBlockOfAnAxisHasItsScaleAndZeroPoint) {
  // Rows of 2 and of 1; the numbers are (data - zero point) * scale, by hand.
  const Message weights = tensor<int8_t>("w", kInt8, {3, 2}, {10, -128, 0, 127, -1, 5});
  const Message zero_points = tensor<int8_t>("z", kInt8, {2, 2}, {2, -1, 0, 5});
  EXPECT_EQ(dequantized(weights, {2, 2}, {0.5f, 0.25f, 2, 4}, zero_points,
                        {attr_int("axis", 0), attr_int("block_size", 2)}),
            (std::vector<float>{4, -31.75f, -1, 32, -2, 0}));
}

TEST(OnnxBlocks, IntegersOf4Bits) {
  // -8, 7, 3, 1, -1, 0 and 8, 15, 3, 1, 15, 0: two in a byte, the first in the low half. Blocks of 2 along
  // axis 1, the last of 1.
  const std::string packed_bytes = "\x78\x13\x0f";
  const std::vector<Message> attributes = {attr_int("axis", 1), attr_int("block_size", 2)};
  const std::vector<float> scales = {0.5f, 1, 2, 4};
  EXPECT_EQ(dequantized(tensor_header("w", kInt4, {2, 3}).bytes(9, packed_bytes), {2, 2}, scales,
                        tensor_header("z", kInt4, {2, 2}).bytes(9, "\xf1\x02"), attributes),
            (std::vector<float>{-4.5f, 3, 4, -2, -6, 0}));
  EXPECT_EQ(dequantized(tensor_header("w", kUint4, {2, 3}).bytes(9, packed_bytes), {2, 2}, scales,
                        tensor_header("z", kUint4, {2, 2}).bytes(9, "\xf1\x02"), attributes),
            (std::vector<float>{3.5f, 3, -12, -2, 26, 0}));
}

TEST(OnnxBlocks, ShapesThatDoNotFitAndDataThatIsComputedAreRefused) {
  const auto refused = [](bool is_constant, const std::vector<int64_t>& scales, int64_t block) {
    OnnxBuilder b(21);
    if (is_constant) b.constant<int8_t>("w", kInt8, {4, 2}, std::vector<int8_t>(8));
    if (!is_constant) b.input("w", kInt8, {4, 2});
    b.constant("s", kFloat, scales, std::vector<float>(static_cast<size_t>(scales[0] * scales[1]), 1));
    b.node("DequantizeLinear", {"w", "s"}, {"y"}, {attr_int("axis", 0), attr_int("block_size", block)});
    return refusal(b.output("y", kFloat, {4, 2}));
  };
  EXPECT_EQ(refused(true, {3, 2}, 2),
            kInvalid +
                "node 0 DequantizeLinear 'y': the scales are Tensor[(3, 2), float32], expected shape "
                "[2, 2] for data [4, 2] in blocks of 2 along axis 0");
  EXPECT_EQ(refused(true, {2, 2}, -1),
            kInvalid + "node 0 DequantizeLinear 'y': attribute 'block_size' is -1, expected at least 1");
  EXPECT_EQ(refused(false, {2, 2}, 2),
            kList + "DequantizeLinear with quantisation in blocks of data that is not constant ('y')");
}

// MatMulNBits of two outputs and 16 + 4 inputs.
struct NBitsCase {
  int64_t bits = 4;
  std::vector<uint8_t> zero_points = {};
  std::vector<float> real_zero_points = {};
  std::vector<int32_t> groups = {};
  std::vector<float> bias = {};
};

// Integer i of row `row`: below 16, and all of them in both blocks.
int32_t integer_of(int64_t row, int64_t i) { return static_cast<int32_t>((i * 7 + row * 3) % 16); }
const std::vector<float> kScales = {0.5f, 0.25f, 1, 2};

OnnxBuilder nbits_model(const NBitsCase& c) {
  std::vector<uint8_t> weights;
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < 32; i += 8 / c.bits) {
      const int32_t first = integer_of(row, i), second = c.bits == 4 ? integer_of(row, i + 1) : 0;
      weights.push_back(static_cast<uint8_t>(first | second << 4));
    }
  }
  OnnxBuilder b(21);
  b.import_opset("com.microsoft", 1).input("x", kFloat, {20, 20});
  b.constant("w", kUint8, {2, 2, 2 * c.bits}, weights).constant("s", kFloat, {4}, kScales);
  const auto count = [](const auto& values) { return static_cast<int64_t>(values.size()); };
  Names inputs = {"x", "w", "s", "", "", ""};
  if (!c.zero_points.empty()) b.constant(inputs[3] = "z", kUint8, {count(c.zero_points)}, c.zero_points);
  if (!c.real_zero_points.empty())
    b.constant(inputs[3] = "z", kFloat, {count(c.real_zero_points)}, c.real_zero_points);
  if (!c.groups.empty()) b.constant(inputs[4] = "g", kInt32, {count(c.groups)}, c.groups);
  if (!c.bias.empty()) b.constant(inputs[5] = "b", kFloat, {count(c.bias)}, c.bias);
  while (inputs.back().empty()) inputs.pop_back();
  b.node("MatMulNBits", inputs, {"y"},
         {attr_int("K", 20), attr_int("N", 2), attr_int("bits", c.bits), attr_int("block_size", 16)},
         "com.microsoft");
  return b.output("y", kFloat, {20, 2});
}

// The weights [20, 2] that the plan has, and the bias.
std::vector<float> weights_of(const NBitsCase& c) {
  ModelSession session(packed(nbits_model(c)), QPLAN_ISA_AUTO, 1);
  std::vector<float> identity(20 * 20);
  for (size_t i = 0; i < 20; ++i) identity[i * 21] = 1;
  return values_of<float>(session.run({bytes_of(identity)}).at(0));
}

template <typename Expect>
std::vector<float> expected_of(const Expect& expect) {
  std::vector<float> all;
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t row = 0; row < 2; ++row) {
      const auto block = static_cast<size_t>(row * 2 + i / 16);
      all.push_back(expect(static_cast<float>(integer_of(row, i)), kScales[block], block));
    }
  }
  return all;
}

TEST(OnnxBlocks, MatMulNBitsWithoutZeroPointsHasTheMiddle) {
  EXPECT_EQ(weights_of({.groups = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                        .bias = {100, -100}}),
            expected_of(
                [](float q, float s, size_t block) { return (q - 8) * s + (block < 2 ? 100.0f : -100.0f); }));
  EXPECT_EQ(weights_of({.bits = 8}), expected_of([](float q, float s, size_t) { return (q - 128) * s; }));
}

TEST(OnnxBlocks, MatMulNBitsWithZeroPoints) {
  const float four[] = {3, 12, 0, 15}, eight[] = {3, 200, 0, 255}, real[] = {3.5f, 7.25f, 0, -1.75f};
  EXPECT_EQ(weights_of({.zero_points = {0xc3, 0xf0}}),
            expected_of([&](float q, float s, size_t block) { return (q - four[block]) * s; }));
  EXPECT_EQ(weights_of({.bits = 8, .zero_points = {3, 200, 0, 255}}),
            expected_of([&](float q, float s, size_t block) { return (q - eight[block]) * s; }));
  EXPECT_EQ(weights_of({.real_zero_points = {3.5f, 7.25f, 0, -1.75f}}),
            expected_of([&](float q, float s, size_t block) { return (q - real[block]) * s; }));
}

TEST(OnnxBlocks, LayersAreSaidOnceToComputeInFloats) {
  std::vector<std::string> log;
  OnnxBuilder b = nbits_model({});
  b.node("MatMulNBits", {"x", "w", "s"}, {"again"},
         {attr_int("K", 20), attr_int("N", 2), attr_int("block_size", 16)}, "com.microsoft");
  import_builder(b.output("again", kFloat, {20, 2}), {}, &log);
  EXPECT_EQ(log, (std::vector<std::string>{
                     "onnx: weights are quantised in blocks: layers with them compute in float32"}));
}

TEST(OnnxBlocks, OtherOrdersAndSizesAreRefused) {
  std::vector<int32_t> groups(20, 0);
  groups[3] = 1;
  EXPECT_EQ(refusal(nbits_model({.groups = groups})),
            std::to_string(QPLAN_MODEL_UNSUPPORTED) +
                ": onnx: 'net.onnx': only the weights of the model are quantised, in blocks (first "
                "com.microsoft.MatMulNBits 'y'); quantise it statically "
                "(onnxruntime.quantization.quantize_static with calibration data)\n"
                "1 operator that qplan does not import: com.microsoft.MatMulNBits with columns of weights in "
                "another order (input 'g_idx'); quantise without desc_act ('y')");
  EXPECT_EQ(refusal(nbits_model({.zero_points = {1, 2, 3}})),
            kInvalid +
                "node 0 com.microsoft.MatMulNBits 'y': the zero points are Tensor[(3), uint8], "
                "expected 2 of uint8");
}

// Rows 2 and 0 of a table of three rows of 18 in blocks of 16.
std::vector<float> gathered(const Message& table, int64_t bits, const std::optional<Message>& zero_points) {
  OnnxBuilder b(21);
  b.import_opset("com.microsoft", 1).input("i", kInt64, {2}).initializer(table);
  b.constant<float>("s", kFloat, {3, 2}, {0.5f, 0.25f, 1, 2, 4, 8});
  Names inputs = {"w", "i", "s"};
  if (zero_points) {
    b.initializer(*zero_points);
    inputs.push_back("z");
  }
  b.node("GatherBlockQuantized", inputs, {"y"},
         {attr_int("gather_axis", 0), attr_int("quantize_axis", 1), attr_int("block_size", 16),
          attr_int("bits", bits)},
         "com.microsoft");
  b.graph().message(12, Message().bytes(1, "y"));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  return values_of<float>(session.run({bytes_of(std::vector<int64_t>{2, -3})}).at(0));
}

// integer(row, i) less zero(row, block), times the scale.
template <typename Integer, typename Zero>
std::vector<float> rows_2_and_0(int64_t columns, const Integer& integer, const Zero& zero) {
  const float scales[3][2] = {{0.5f, 0.25f}, {1, 2}, {4, 8}};
  std::vector<float> rows;
  for (const int64_t row : {2, 0}) {
    for (int64_t i = 0; i < columns; ++i)
      rows.push_back(static_cast<float>(integer(row, i) - zero(row, i / 16)) * scales[row][i / 16]);
  }
  return rows;
}

TEST(OnnxBlocks, RowsOfATableInBlocks) {
  // Integers of 4 bits are packed two in a byte, 18 in a row.
  std::string nibbles, bytes;
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t i = 0; i < 18; i += 2)
      nibbles += static_cast<char>(integer_of(row, i) | integer_of(row, i + 1) << 4);
    for (int64_t i = 0; i < 18; ++i) bytes += static_cast<char>(integer_of(row, i) * 9);
  }
  const auto eight = [](int64_t, int64_t) { return 8; };
  const auto signed_integer = [](int64_t row, int64_t i) {
    return integer_of(row, i) < 8 ? integer_of(row, i) : integer_of(row, i) - 16;
  };
  EXPECT_EQ(gathered(tensor_header("w", kUint8, {3, 9}).bytes(9, nibbles), 4, {}),
            rows_2_and_0(18, integer_of, eight));
  EXPECT_EQ(gathered(tensor_header("w", kUint4, {3, 18}).bytes(9, nibbles), 4, {}),
            rows_2_and_0(18, integer_of, [](int64_t, int64_t) { return 0; }));
  EXPECT_EQ(gathered(tensor_header("w", kInt4, {3, 18}).bytes(9, nibbles), 4, {}),
            rows_2_and_0(18, signed_integer, [](int64_t, int64_t) { return 0; }));
  // Zero points 1, 2; 3, 4; 5, 6.
  const auto counted = [](int64_t row, int64_t block) { return static_cast<int32_t>(2 * row + block + 1); };
  EXPECT_EQ(gathered(tensor_header("w", kUint8, {3, 9}).bytes(9, nibbles), 4,
                     tensor<uint8_t>("z", kUint8, {3, 1}, {0x21, 0x43, 0x65})),
            rows_2_and_0(18, integer_of, counted));
  EXPECT_EQ(gathered(tensor_header("w", kUint8, {3, 18}).bytes(9, bytes), 8, {}),
            rows_2_and_0(
                18, [](int64_t row, int64_t i) { return integer_of(row, i) * 9; },
                [](int64_t, int64_t) { return 128; }));
  EXPECT_EQ(gathered(tensor_header("w", kUint8, {3, 18}).bytes(9, bytes), 8,
                     tensor<uint8_t>("z", kUint8, {3, 2}, {1, 2, 3, 4, 5, 6})),
            rows_2_and_0(
                18, [](int64_t row, int64_t i) { return integer_of(row, i) * 9; }, counted));
}

}  // namespace
}  // namespace qplan::testing::onnx_blocks_test
