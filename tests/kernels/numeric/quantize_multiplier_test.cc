#include "kernels/numeric/requantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/random.h"

namespace qplan::quantize_multiplier_test {
namespace {

void expect_multiplier(double real, int32_t multiplier, int32_t shift) {
  const QuantizedMultiplier found = quantize_multiplier(real);
  EXPECT_EQ(found.multiplier, multiplier) << real;
  EXPECT_EQ(found.shift, shift) << real;
}

TEST(QuantizeMultiplier, PowersOfTwoAreExact) {
  expect_multiplier(0.5, 1 << 30, 0);
  expect_multiplier(1.0, 1 << 30, 1);
  expect_multiplier(0.25, 1 << 30, -1);
  expect_multiplier(0x1p29, 1 << 30, 30);
}

TEST(QuantizeMultiplier, RoundsHalfUp) {
  // 31 bits are kept of 0.5 <= fraction < 1: a unit in the last place is 2^-31.
  expect_multiplier(0.5 + 0x1p-32, (1 << 30) + 1, 0);
  expect_multiplier(0.5 + 0x1p-32 - 0x1p-53, 1 << 30, 0);
  expect_multiplier(0.5 + 3 * 0x1p-32, (1 << 30) + 2, 0);
}

TEST(QuantizeMultiplier, CarriesIntoTheShift) {
  expect_multiplier(1.0 - 0x1p-32, 1 << 30, 1);
  expect_multiplier(1.0 - 0x1p-53, 1 << 30, 1);
  expect_multiplier(1.0 - 0x1p-31, INT32_MAX, 0);
}

TEST(QuantizeMultiplier, TooSmallIsZero) {
  expect_multiplier(0.0, 0, 0);
  expect_multiplier(0x1p-32, 1 << 30, -31);
  expect_multiplier(0x1p-32 * (1 - 0x1p-20), 0, 0);
  // The carry comes before the comparison.
  expect_multiplier(0x1p-32 * (1 - 0x1p-40), 1 << 30, -31);
  expect_multiplier(std::numeric_limits<double>::min(), 0, 0);
  expect_multiplier(std::numeric_limits<double>::denorm_min(), 0, 0);
}

TEST(QuantizeMultiplier, EqualsFrexpAndRound) {
  testing::Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const double real = std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-40, 30)));
    int shift = 0;
    auto fixed = static_cast<int64_t>(std::round(std::frexp(real, &shift) * 0x1p31));
    if (fixed == int64_t{1} << 31) {
      fixed /= 2;
      ++shift;
    }
    if (shift < -31) fixed = shift = 0;
    const QuantizedMultiplier found = quantize_multiplier(real);
    ASSERT_EQ(found.multiplier, fixed) << real;
    ASSERT_EQ(found.shift, shift) << real;
  }
}

}  // namespace
}  // namespace qplan::quantize_multiplier_test
