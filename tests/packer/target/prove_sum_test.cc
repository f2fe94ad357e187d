// Float epilogues of add and sub, held against the reference kernel pair by pair.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/elementwise/add.h"
#include "src/packer/target/cpu/prove.h"
#include "tests/support/random.h"

namespace qplan::testing::prove_sum_test {
namespace {

using target::cpu::evaluate_float_sum;
using target::cpu::prove_float_sum;
using target::cpu::SumConstants;
using target::cpu::SumRequantization;

// The parameters that TFLite's Prepare computes from the scales.
SumRequantization sum_of_scales(double scale1, double scale2, double output_scale) {
  const double twice_max = 2.0 * std::max(scale1, scale2);
  SumRequantization sum;
  sum.left_shift = 20;
  sum.multiplier1 = quantize_multiplier(scale1 / twice_max);
  sum.multiplier2 = quantize_multiplier(scale2 / twice_max);
  sum.output_multiplier = quantize_multiplier(twice_max / ((1 << 20) * output_scale));
  sum.clamp_max = 255;
  return sum;
}

SumRequantization random_sum(uint64_t seed) {
  Random random(seed);
  const double scale1 = 0.01 + 0.2 * random.unit(), scale2 = 0.01 + 0.2 * random.unit();
  SumRequantization sum = sum_of_scales(scale1, scale2, 0.02 + 0.3 * random.unit());
  sum.subtract = random.chance(0.3);
  sum.dtype_min = random.chance(0.5) ? -128 : 0;
  const auto value = [&] { return sum.dtype_min + static_cast<int32_t>(random.integer(0, 255)); };
  sum.zero_point1 = value();
  sum.zero_point2 = value();
  sum.output_zero_point = value();
  const int32_t a = value(), b = value();
  const bool clamped = random.chance(0.3);
  sum.clamp_min = clamped ? std::min(a, b) : sum.dtype_min;
  sum.clamp_max = clamped ? std::max(a, b) : sum.dtype_min + 255;
  return sum;
}

// Every pair through the reference: a varies along one axis, b along the other.
std::vector<int32_t> reference_outputs(const SumRequantization& sum) {
  std::vector<uint8_t> values(256), outputs(65536);
  for (uint32_t i = 0; i < 256; ++i)
    values[i] = static_cast<uint8_t>(sum.dtype_min + static_cast<int32_t>(i));
  AddArgs args;
  args.dtype = sum.dtype_min < 0 ? Dtype::kS8 : Dtype::kU8;
  args.a = args.b = values.data();
  args.output = outputs.data();
  args.broadcast.elements = 65536;
  args.broadcast.rank = 2;
  args.broadcast.extents[0] = args.broadcast.extents[1] = 256;
  args.broadcast.a_strides[0] = args.broadcast.b_strides[1] = 1;
  args.left_shift = sum.left_shift;
  args.input1_zero_point = sum.zero_point1;
  args.input1_multiplier = sum.multiplier1.multiplier;
  args.input1_shift = sum.multiplier1.shift;
  args.input2_zero_point = sum.zero_point2;
  args.input2_multiplier = sum.multiplier2.multiplier;
  args.input2_shift = sum.multiplier2.shift;
  args.output_zero_point = sum.output_zero_point;
  args.output_multiplier = sum.output_multiplier.multiplier;
  args.output_shift = sum.output_multiplier.shift;
  args.clamp_min = sum.clamp_min;
  args.clamp_max = sum.clamp_max;
  if (sum.subtract) {
    sub_ref::run(args, 0, sub_ref::work_items(args), nullptr);
  } else {
    add_ref::run(args, 0, add_ref::work_items(args), nullptr);
  }
  std::vector<int32_t> result;
  for (const uint8_t byte : outputs) {
    result.push_back(sum.dtype_min < 0 ? static_cast<int8_t>(byte) : static_cast<int32_t>(byte));
  }
  return result;
}

std::vector<int32_t> float_outputs(const SumRequantization& sum, const SumConstants& constants) {
  std::vector<int32_t> result;
  for (int32_t a = sum.dtype_min; a < sum.dtype_min + 256; ++a) {
    for (int32_t b = sum.dtype_min; b < sum.dtype_min + 256; ++b) {
      result.push_back(std::clamp(evaluate_float_sum(constants, a, b), sum.clamp_min, sum.clamp_max));
    }
  }
  return result;
}

TEST(ProveSum, WhatIsProvedEqualsTheReferenceForEveryPair) {
  uint32_t proved = 0;
  for (uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    const SumRequantization sum = random_sum(seed);
    const auto constants = prove_float_sum(sum);
    if (!constants) continue;
    ++proved;
    EXPECT_EQ(float_outputs(sum, *constants), reference_outputs(sum)) << "seed " << seed;
  }
  // Generic scales have no ties; a few have thresholds too near to a pair.
  EXPECT_GE(proved, 180u);
}

// Scales on both sides of the nearest are tried for a subtrahend, whose scale is negative, as for an addend.
TEST(ProveSum, DifferencesHaveFormsAsOftenAsSums) {
  uint32_t proved[2] = {0, 0};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SumRequantization sum = random_sum(seed);
    for (const bool subtract : {false, true}) {
      sum.subtract = subtract;
      proved[subtract ? 1 : 0] += prove_float_sum(sum).has_value() ? 1 : 0;
    }
  }
  EXPECT_GE(proved[0], 180u);
  EXPECT_GE(proved[1], 180u);
}

// Where every pair is beyond one clamp, nothing else bounds the offset: the sum must fit int32 all the same.
TEST(ProveSum, OffsetsStayWithinInt32WhereAllOutputsAreOneClamp) {
  for (const int32_t only : {0, 255}) {
    SumRequantization sum = sum_of_scales(0.1, 0.1, 0.1);
    sum.clamp_min = sum.clamp_max = only;
    const auto constants = prove_float_sum(sum);
    ASSERT_TRUE(constants.has_value());
    EXPECT_LT(std::abs(constants->offset), 1e9f);
    EXPECT_EQ(float_outputs(sum, *constants), reference_outputs(sum));
  }
  for (const bool high : {false, true}) {
    SumRequantization sum = sum_of_scales(0.1, 0.1, 0.1);
    sum.zero_point1 = sum.zero_point2 = high ? 0 : 255;
    sum.output_zero_point = high ? 255 : 0;
    const auto constants = prove_float_sum(sum);
    ASSERT_TRUE(constants.has_value());
    EXPECT_LT(std::abs(constants->offset), 1e9f);
    EXPECT_EQ(float_outputs(sum, *constants), reference_outputs(sum));
  }
}

// (a + b) / 2 with halves away from zero, on both sides of zero: rounding to nearest even is something else.
TEST(ProveSum, TiesOnBothSidesOfTheZeroPointHaveNoForm) {
  SumRequantization sum = sum_of_scales(1.0, 1.0, 2.0);
  sum.zero_point1 = sum.zero_point2 = sum.output_zero_point = 128;
  EXPECT_FALSE(prove_float_sum(sum).has_value());
}

TEST(ProveSum, ScalesOfZeroHaveNoForm) {
  SumRequantization sum = sum_of_scales(1.0, 1.0, 2.0);
  sum.multiplier1 = {0, 0};
  EXPECT_FALSE(prove_float_sum(sum).has_value());
}

TEST(SumProofs, AreSharedAndBounded) {
  target::cpu::SumProofs proofs;
  const SumRequantization first = random_sum(1);
  const auto constants = proofs.prove(first);
  ASSERT_TRUE(constants.has_value());
  // 100,000 proofs would take minutes.
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(proofs.prove(first)->offset, constants->offset);
  SumRequantization sum = first;
  size_t proved = 1;
  for (sum.zero_point1 = 0; proved <= target::cpu::SumProofs::kMaxProofs && sum.zero_point1 < 16;
       ++sum.zero_point1) {
    for (sum.zero_point2 = 0; sum.zero_point2 < 100; ++sum.zero_point2)
      proved += proofs.prove(sum).has_value() ? 1 : 0;
  }
  EXPECT_LE(proved, target::cpu::SumProofs::kMaxProofs + 1);
  EXPECT_TRUE(proofs.prove(first).has_value());
}

}  // namespace
}  // namespace qplan::testing::prove_sum_test
