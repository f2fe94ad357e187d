#include "kernels/numeric/requantize.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/exact_requantize.h"
#include "tests/support/random.h"

namespace qplan::requantize_test {
namespace {

using testing::Random;

// gemmlowp's SaturatingRoundingDoublingHighMul by its definition: add half with the sign of the product, then
// divide towards zero. The truth for what comes from TFLite.
int64_t gemmlowp_high_mul(int64_t a, int64_t b) {
  if (a == INT32_MIN && b == INT32_MIN) return INT32_MAX;
  const int64_t product = a * b;
  const int64_t nudge = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  return (product + nudge) / (int64_t{1} << 31);
}

// gemmlowp's RoundingDivideByPOT: what is cut off decides, its threshold one higher for negative numbers.
int64_t gemmlowp_divide_by_pot(int64_t x, int exponent) {
  const int64_t mask = (int64_t{1} << exponent) - 1;
  const int64_t remainder = x & mask;
  const int64_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

// Accumulators that meet ties and ends, and random ones of all magnitudes.
std::vector<int32_t> accumulators(Random& random, size_t count) {
  std::vector<int32_t> values = {0, 1, -1, 2, -2, 3, -3, INT32_MAX, INT32_MIN, INT32_MAX - 1, INT32_MIN + 1};
  for (int bit = 1; bit < 31; ++bit) {
    for (int32_t near = -2; near <= 2; ++near) {
      values.push_back((int32_t{1} << bit) + near);
      values.push_back(-(int32_t{1} << bit) + near);
    }
  }
  while (values.size() < count) {
    const int bits = static_cast<int>(random.integer(1, 32));
    values.push_back(
        static_cast<int32_t>(random.integer(-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1)));
  }
  return values;
}

std::vector<int32_t> multipliers(Random& random, size_t count) {
  std::vector<int32_t> values = {0, 1 << 30, (1 << 30) + 1, INT32_MAX, INT32_MAX - 1, 3 << 29};
  while (values.size() < count) {
    values.push_back(static_cast<int32_t>(random.integer(1 << 30, INT32_MAX)));
  }
  return values;
}

TEST(DoublingHighMul, EqualsGemmlowpForEveryAccumulatorOfManyMultipliers) {
  Random random(1);
  for (const int32_t m : multipliers(random, 60)) {
    for (const int32_t a : accumulators(random, 20000)) {
      ASSERT_EQ(doubling_high_mul(a, m), gemmlowp_high_mul(a, m)) << a << " * " << m;
    }
  }
}

// The floor formula and gemmlowp's truncation could only part at ties of negative products: all of them for M
// = 2^30.
TEST(DoublingHighMul, TiesGoUpwardsForBothSigns) {
  EXPECT_EQ(doubling_high_mul(1, 1 << 30), 1);    // 0.5
  EXPECT_EQ(doubling_high_mul(-1, 1 << 30), 0);   // -0.5
  EXPECT_EQ(doubling_high_mul(3, 1 << 30), 2);    // 1.5
  EXPECT_EQ(doubling_high_mul(-3, 1 << 30), -1);  // -1.5
  for (int32_t a = -100001; a < 100001; a += 2) {
    ASSERT_EQ(doubling_high_mul(a, 1 << 30), gemmlowp_high_mul(a, 1 << 30)) << a;
  }
}

TEST(DoublingHighMul, KeepsTheEndsInRange) {
  EXPECT_EQ(doubling_high_mul(INT32_MIN, INT32_MAX), -INT32_MAX);
  EXPECT_EQ(doubling_high_mul(INT32_MAX, INT32_MAX), INT32_MAX - 1);
  EXPECT_EQ(doubling_high_mul(INT32_MIN, 0), 0);
}

TEST(RoundingShiftRight, RoundsTiesAwayFromZero) {
  EXPECT_EQ(rounding_shift_right(5, 1), 3);
  EXPECT_EQ(rounding_shift_right(-5, 1), -3);
  EXPECT_EQ(rounding_shift_right(6, 2), 2);
  EXPECT_EQ(rounding_shift_right(-6, 2), -2);
  EXPECT_EQ(rounding_shift_right(7, 0), 7);
  EXPECT_EQ(rounding_shift_right(INT32_MIN, 31), -1);
  EXPECT_EQ(rounding_shift_right(INT32_MAX, 31), 1);
  EXPECT_EQ(rounding_shift_right(1 << 30, 31), 1);      // 0.5
  EXPECT_EQ(rounding_shift_right(-(1 << 30), 31), -1);  // -0.5
}

TEST(RoundingShiftRight, EqualsGemmlowpForEveryShift) {
  Random random(2);
  for (int shift = 0; shift <= 31; ++shift) {
    for (const int32_t a : accumulators(random, 5000)) {
      ASSERT_EQ(rounding_shift_right(a, shift), gemmlowp_divide_by_pot(a, shift)) << a << " >> " << shift;
    }
  }
}

TEST(RequantizeTfl2, EqualsTheExactRoundingsForEveryShift) {
  Random random(3);
  for (int32_t shift = -31; shift <= 30; ++shift) {
    for (const int32_t m : multipliers(random, 12)) {
      for (const int32_t a : accumulators(random, 1000)) {
        ASSERT_EQ(requantize_tfl2(a, m, shift), testing::exact_tfl2(a, m, shift))
            << a << " " << m << " " << shift;
      }
    }
  }
}

TEST(RequantizeTfl2, RoundsTwice) {
  // 0.75 * 3 * 2^-1 = 1.125: the first rounding makes 2.25 -> 2, the second 1; and 3 * 0.5 * 2^-1 = 0.75
  // -> 1.5 -> 2 -> 1.
  EXPECT_EQ(requantize_tfl2(3, 3 << 29, -1), 1);
  EXPECT_EQ(requantize_tfl2(3, 1 << 30, -1), 1);
  // 0.5 * 5 * 2^-2 = 0.625 in one rounding is 1; twice: 2.5 -> 3 -> 0.75 -> 1; -5: -2.5 -> -2 -> -0.5 -> -1.
  EXPECT_EQ(requantize_tfl2(-5, 1 << 30, -2), -1);
  // 0.5 * 1 * 2^-1 = 0.25 in one rounding is 0; twice: 0.5 -> 1 -> 0.5 -> 1.
  EXPECT_EQ(requantize_tfl2(1, 1 << 30, -1), 1);
  EXPECT_EQ(requantize_tfl1(1, 1 << 30, -1), 0);
}

TEST(RequantizeTfl2, LeftShiftWraps) {
  EXPECT_EQ(requantize_tfl2(1 << 30, 1 << 30, 2), 0);
  EXPECT_EQ(requantize_tfl2(1 << 30, 1 << 30, 1), -(1 << 30));
}

TEST(RequantizeTfl1, EqualsTheExactRoundingForEveryShift) {
  Random random(4);
  for (int32_t shift = -31; shift <= 30; ++shift) {
    for (const int32_t m : multipliers(random, 12)) {
      for (const int32_t a : accumulators(random, 1000)) {
        ASSERT_EQ(requantize_tfl1(a, m, shift), testing::exact_tfl1(a, m, shift))
            << a << " " << m << " " << shift;
      }
    }
  }
}

TEST(RequantizeF32e, RoundsHalfToEvenAfterAFloatProduct) {
  EXPECT_EQ(requantize_f32e(5, 0.5f, 0, -128, 127), 2);
  EXPECT_EQ(requantize_f32e(7, 0.5f, 0, -128, 127), 4);
  EXPECT_EQ(requantize_f32e(-5, 0.5f, 0, -128, 127), -2);
  EXPECT_EQ(requantize_f32e(-5, 0.5f, 128, 0, 255), 126);
  // 2^24 + 1 is not a float: it rounds to 2^24 first.
  EXPECT_EQ(requantize_f32e((1 << 24) + 1, 0x1p-20f, 0, -128, 127), 16);
}

TEST(RequantizeF32e, EqualsNearbyintClampedAfterwards) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  Random random(5);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const float scale =
        static_cast<float>(std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-31, 8))));
    const int32_t zero_point = static_cast<int32_t>(random.integer(-128, 255));
    for (const int32_t a : accumulators(random, 2000)) {
      const float product = static_cast<float>(a) * scale;
      const double expected = std::nearbyint(static_cast<double>(product)) + zero_point;
      const int32_t clamped = expected < -128 ? -128 : expected > 255 ? 255 : static_cast<int32_t>(expected);
      ASSERT_EQ(requantize_f32e(a, scale, zero_point, -128, 255), clamped) << a << " * " << scale;
    }
  }
}

TEST(Saturate, ClampKeepsWhatIsInside) {
  EXPECT_EQ(clamp_s32(5, -3, 7), 5);
  EXPECT_EQ(clamp_s32(-4, -3, 7), -3);
  EXPECT_EQ(clamp_s32(8, -3, 7), 7);
  EXPECT_EQ(clamp_s32(8, 4, 4), 4);
}

TEST(Saturate, WrapsModulo32Bits) {
  EXPECT_EQ(wrap_add(INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(wrap_add(INT32_MIN, -1), INT32_MAX);
  EXPECT_EQ(wrap_sub(INT32_MIN, 1), INT32_MAX);
  EXPECT_EQ(wrap_sub(0, INT32_MIN), INT32_MIN);
  EXPECT_EQ(wrap_mul(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(wrap_mul(65536, 65536), 0);
  EXPECT_EQ(wrap_shift_left(-1, 31), INT32_MIN);
  EXPECT_EQ(wrap_shift_left(3, 30), -(1 << 30));
}

TEST(Saturate, AddClampDoesNotWrapInBetween) {
  EXPECT_EQ(add_clamp(INT32_MAX, 255, -128, 127), 127);
  EXPECT_EQ(add_clamp(INT32_MIN, -128, -128, 127), -128);
  EXPECT_EQ(add_clamp(3, 4, 0, 255), 7);
}

}  // namespace
}  // namespace qplan::requantize_test
