// Ranges of sums of products, by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "src/packer/passes/rewrite_pass.h"

namespace qplan::passes {
namespace accumulator_range_test {
namespace {

constexpr double kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();

// What makes product_sums read the weights.
constexpr double kHuge = 1e30;

TEST(AccumulatorRange, BothEndsMustFit) {
  const ProductSums sums{-700, 1085};
  EXPECT_TRUE(sums.fits_with(kMost - 1085));
  EXPECT_FALSE(sums.fits_with(kMost - 1084));
  EXPECT_TRUE(sums.fits_with(kLeast + 700));
  EXPECT_FALSE(sums.fits_with(kLeast + 699));
  EXPECT_FALSE(ProductSums{}.fits_with(kMost + 1));
  EXPECT_TRUE(ProductSums{}.fits_with(kLeast));
}

TEST(AccumulatorRange, WhatIsNoNumberFitsNothing) {
  for (const double bias : std::vector<double>{INFINITY, -INFINITY, NAN, 1e300})
    EXPECT_FALSE(ProductSums{}.fits_with(bias));
}

// Weights [outer 2][channels 2][inner 1] less 8: channel 0 has 1 and -3, channel 1 nothing. The input is from
// -100 to 155.
TEST(AccumulatorRange, SumsOfWeightsOfEachSign) {
  const ir::ConstantRef weights = ir::make_constant(ir::kUint8, {2, 2, 1}, std::vector<uint8_t>{9, 8, 5, 8});
  const std::vector<ProductSums> sums =
      product_sums(*weights, *ir::make_scalar(int32_t{8}), 1, {ir::kUint8, 100}, kHuge);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].least, 1 * -100 + -3 * 155);
  EXPECT_EQ(sums[0].most, 1 * 155 + -3 * -100);
  EXPECT_FALSE(sums[0].is_dead());
  EXPECT_TRUE(sums[1].is_dead());
}

// 70,000 products of 127 and 255 are more than int32 holds, without a bias; of ones they are not.
TEST(AccumulatorRange, ManyProductsDoNotFitAlone) {
  constexpr int64_t kCount = 70'000;
  for (const int8_t weight : {int8_t{127}, int8_t{1}}) {
    const ir::ConstantRef weights =
        ir::make_constant(ir::kInt8, {1, kCount}, std::vector<int8_t>(kCount, weight));
    const std::vector<ProductSums> sums =
        product_sums(*weights, *ir::make_scalar(int32_t{0}), 0, {ir::kUint8, 0}, 0);
    EXPECT_EQ(sums.at(0).most, kCount * 255 * weight);
    EXPECT_EQ(sums.at(0).fits_with(0), weight == 1);
  }
}

}  // namespace
}  // namespace accumulator_range_test
}  // namespace qplan::passes
