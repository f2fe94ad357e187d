// Weight streams: what is encoded is what the device's decoder gives back.
#include "src/ethosu/isa/weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/ethosu/compiler/weight_encoder.h"
#include "tests/support/random.h"

namespace qplan::ethosu {
namespace {

std::vector<int16_t> decoded(const std::vector<uint8_t>& stream, size_t capacity) {
  std::vector<int16_t> weights(capacity);
  uint64_t count = 0;
  const Problem problem = decode_weights(stream.data(), stream.size(), weights.data(), capacity, &count);
  EXPECT_FALSE(problem) << problem.text;
  weights.resize(count);
  return weights;
}

void expect_round_trip(const std::vector<int16_t>& weights) {
  const std::vector<uint8_t> stream = compiler::encode_weights(weights);
  EXPECT_EQ(stream.size() % 16, 0u);
  EXPECT_EQ(decoded(stream, weights.size()), weights);
}

TEST(EthosuWeights, OfAllRangesComeBack) {
  qplan::testing::Random random(1);
  for (const int64_t range : {0, 1, 2, 7, 15, 16, 127, 128, 255}) {
    for (const size_t count : {1, 2, 11, 12, 13, 1000}) {
      expect_round_trip(random.integers<int16_t>(count, -range, range));
      expect_round_trip(random.integers<int16_t>(count, 0, range));
    }
  }
}

TEST(EthosuWeights, OfMoreThanASliceComeBack) {
  qplan::testing::Random random(2);
  expect_round_trip(random.integers<int16_t>(32768, -127, 127));
  expect_round_trip(random.integers<int16_t>(32769, -127, 127));
  expect_round_trip(random.integers<int16_t>(70000, -3, 3));
}

TEST(EthosuWeights, OfFewValuesTakeFewBits) {
  std::vector<int16_t> weights(16000);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<int16_t>(i % 3 == 0 ? -127 : i % 3 * 50);
  EXPECT_LT(compiler::encode_weights(weights).size(), weights.size() / 4 + 64);
  expect_round_trip(weights);
}

// Zeros at random, alone, and as many as the device's order has beside a few inputs.
TEST(EthosuWeights, WithManyZerosComeBack) {
  qplan::testing::Random random(5);
  for (const size_t count : {1, 13, 1000, 40000}) {
    expect_round_trip(std::vector<int16_t>(count));
    for (const double share : {0.02, 0.3, 0.8, 0.999}) {
      std::vector<int16_t> weights = random.integers<int16_t>(count, -127, 127);
      for (int16_t& weight : weights) weight = random.chance(share) ? int16_t{0} : weight;
      expect_round_trip(weights);
    }
  }
  expect_round_trip({});
}

TEST(EthosuWeights, ThatAreZerosBesideOneInputTakeFewBits) {
  qplan::testing::Random random(6);
  std::vector<int16_t> weights(8 * 640);
  for (size_t i = 0; i < weights.size(); i += 8) weights[i] = static_cast<int16_t>(random.integer(-127, 127));
  EXPECT_LT(compiler::encode_weights(weights).size(), 640u * 3 / 2 + 64);
  expect_round_trip(weights);
}

// 72 weights and 24 zeros in turns, as a depthwise layer of 3 x 3 has them: slices for each.
TEST(EthosuWeights, ThatAreZerosInStretchesTakeFewBits) {
  qplan::testing::Random random(7);
  std::vector<int16_t> weights;
  for (int i = 0; i < 8; ++i) {
    const std::vector<int16_t> part = random.integers<int16_t>(72, -127, 127);
    weights.insert(weights.end(), part.begin(), part.end());
    weights.resize(weights.size() + 24);
  }
  EXPECT_LT(compiler::encode_weights(weights).size(), 8u * 72 + 8 * 12 + 16);
  expect_round_trip(weights);
}

// 8 inputs of 8, then 2 inputs of 8, as a layer of 10 inputs has them: runs of zeros in the second half
// alone.
TEST(EthosuWeights, ThatAreZerosInOneHalfTakeFewBits) {
  qplan::testing::Random random(8);
  std::vector<int16_t> weights = random.integers<int16_t>(8000, -127, 127);
  for (size_t i = 4000; i < weights.size(); ++i) weights[i] = i % 8 < 2 ? weights[i] : int16_t{0};
  EXPECT_LT(compiler::encode_weights(weights).size(), 4000u + 1000 * 3 / 2 + 64);
  expect_round_trip(weights);
}

// No damaged stream is read beyond its end (under sanitizers), and none fills more than there is room for.
TEST(EthosuWeights, ThatAreDamagedAreReadSafely) {
  qplan::testing::Random random(3);
  const std::vector<int16_t> weights = random.integers<int16_t>(500, -127, 127);
  const std::vector<uint8_t> stream = compiler::encode_weights(weights);
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> damaged = stream;
    damaged[static_cast<size_t>(random.integer(0, 40))] ^= static_cast<uint8_t>(1 << random.integer(0, 7));
    damaged.resize(static_cast<size_t>(random.integer(1, static_cast<int64_t>(stream.size()))));
    std::vector<int16_t> to(weights.size());
    uint64_t count = 0;
    (void)decode_weights(damaged.data(), damaged.size(), to.data(), to.size(), &count);
    EXPECT_LE(count, to.size());
  }
}

TEST(EthosuWeights, AreOrderedByBlocksOfTheOutput) {
  WeightOrder order;
  order.outputs = 10, order.inputs = 3, order.taps_h = 1, order.taps_w = 2;
  order.block_d = 8, order.unit_d = 8;
  // Depth first: whole steps of 32 inputs for each tap.
  EXPECT_EQ(num_ordered_weights(order), 2u * 2 * 32 * 8);
  order.is_part_kernel_first = true;  // 8 inputs, taps rounded up to 4
  EXPECT_EQ(num_ordered_weights(order), 2u * 4 * 8 * 8);
  order.is_part_kernel_first = false, order.is_depthwise = true;
  EXPECT_EQ(num_ordered_weights(order), 2u * 4 * 8);
}

TEST(EthosuWeights, AreCountedAsTheyAreOrdered) {
  qplan::testing::Random random(4);
  for (int i = 0; i < 500; ++i) {
    WeightOrder order;
    order.outputs = static_cast<uint32_t>(random.integer(1, 60)),
    order.inputs = static_cast<uint32_t>(random.integer(1, 70));
    order.taps_h = static_cast<uint32_t>(random.integer(1, 11)),
    order.taps_w = static_cast<uint32_t>(random.integer(1, 11));
    order.dilation_y = static_cast<uint32_t>(random.integer(1, 2)),
    order.dilation_x = static_cast<uint32_t>(random.integer(1, 2));
    order.block_d = static_cast<uint32_t>(random.integer(1, 5)) * 8;
    order.is_depthwise = random.chance(0.3);
    order.is_part_kernel_first = !order.is_depthwise && random.chance(0.5);
    order.is_ifm16 = random.chance(0.3);
    uint64_t visited = 0;
    visit_weights(order, [&](uint32_t, uint32_t, uint32_t, uint32_t) { ++visited; });
    EXPECT_EQ(num_ordered_weights(order), visited);
  }
}

TEST(EthosuScales, HaveBiasesOf40Bits) {
  uint8_t bytes[kScaleEntryBytes];
  for (const int64_t bias : {int64_t{0}, int64_t{-1}, (int64_t{1} << 39) - 1, -(int64_t{1} << 39)}) {
    write_scale_entry({bias, 0x7fffffff, 62}, bytes);
    const ScaleEntry entry = read_scale_entry(bytes);
    EXPECT_EQ(entry.bias, bias);
    EXPECT_EQ(entry.multiplier, 0x7fffffffu);
    EXPECT_EQ(entry.shift, 62u);
  }
}

}  // namespace
}  // namespace qplan::ethosu
