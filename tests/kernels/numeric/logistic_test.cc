
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "kernels/numeric/fixed_point.h"
#include "kernels/numeric/float_functions.h"
#include "tests/support/random.h"

namespace qplan::logistic_test {
namespace {

// 256 / (1 + exp(-v)), rounded, at most 255; v in float32 as the kernels compute it.
int32_t real_logistic(int32_t x, float scale, int32_t zero_point) {
  const float v = scale * static_cast<float>(x - zero_point);
  return static_cast<int32_t>(std::min(std::round(256.0 / (1.0 + std::exp(-static_cast<double>(v)))), 255.0));
}

TEST(ExpDouble, AgreesWithLongDouble) {
  testing::Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const double x = (random.unit() - 0.5) * (i % 2 == 0 ? 4 : 1400);
    const long double exact = std::exp(static_cast<long double>(x));
    ASSERT_LE(std::fabs(static_cast<long double>(exp_double(x)) - exact), 4e-16L * exact) << "x " << x;
  }
}

TEST(ExpDouble, IsDefinedEverywhere) {
  EXPECT_EQ(exp_double(0.0), 1.0);
  EXPECT_EQ(exp_double(-701.0), 0.0);
  EXPECT_EQ(exp_double(-INFINITY), 0.0);
  EXPECT_EQ(exp_double(INFINITY), exp_double(700.0));
  EXPECT_EQ(exp_double(NAN), 1.0);
}

TEST(Logistic, IsTheRealFunctionRounded) {
  testing::Random random(2);
  int64_t differing = 0;
  int64_t count = 0;
  for (int i = 0; i < 500; ++i) {
    const float scale = static_cast<float>(std::exp2(-12 + 14 * random.unit()));
    const int32_t zero_point = static_cast<int32_t>(random.integer(-128, 127));
    for (int32_t x = -128; x < 128; ++x) {
      const int32_t s8 = logistic_s8(static_cast<int8_t>(x), scale, zero_point) + 128;
      const int32_t u8 = logistic_u8(static_cast<uint8_t>(x + 128), scale, zero_point + 128);
      ASSERT_EQ(s8, u8);
      const int32_t real = real_logistic(x, scale, zero_point);
      ASSERT_NEAR(s8, real, 1) << "x " << x << " scale " << scale << " zero point " << zero_point;
      differing += s8 != real;
      ++count;
    }
  }
  // float32 moves a result only next to a tie.
  EXPECT_LT(differing, count / 2000);
}

TEST(Logistic, ValuesByHand) {
  EXPECT_EQ(logistic_u8(100, 0.05f, 100), 128);
  EXPECT_EQ(logistic_s8(-7, 0.05f, -7), 0);
  EXPECT_EQ(logistic_u8(255, 1.0f, 0), 255);
  EXPECT_EQ(logistic_u8(0, 1.0f, 255), 0);
  EXPECT_EQ(logistic_u8(255, FLT_MAX, 0), 255);
  EXPECT_EQ(logistic_u8(0, FLT_MAX, 255), 0);
  EXPECT_EQ(logistic_u8(0, FLT_MIN, 255), 128);
  // 256 / (1 + exp(-1)) = 187.15
  EXPECT_EQ(logistic_u8(110, 0.1f, 100), 187);
  EXPECT_EQ(logistic_s8(10, 0.1f, 0), 187 - 128);
}

TEST(FixedPoint, ExpOfNegativeNumbers) {
  testing::Random random(4);
  for (int i = 0; i < 100000; ++i) {
    const int32_t a = static_cast<int32_t>(random.integer(-(int64_t{31} << 26), 0));
    const double exact = std::exp(a / 67108864.0) * 2147483648.0;
    ASSERT_NEAR(fixed_exp_negative<5>(a), exact, 700.0) << "a " << a;
  }
  EXPECT_EQ(fixed_exp_negative<5>(0), INT32_MAX);
}

TEST(FixedPoint, ReciprocalOfOnePlus) {
  testing::Random random(5);
  for (int i = 0; i < 100000; ++i) {
    const int32_t a = static_cast<int32_t>(random.integer(0, INT32_MAX));
    const double exact = 2147483648.0 / (1.0 + a / 2147483648.0);
    ASSERT_NEAR(fixed_reciprocal_one_plus(a), exact, 16.0) << "a " << a;
  }
  EXPECT_GE(fixed_reciprocal_one_plus(0), INT32_MAX - 16);
  EXPECT_NEAR(fixed_reciprocal_one_plus(INT32_MAX), 1 << 30, 16);
}

}  // namespace
}  // namespace qplan::logistic_test
