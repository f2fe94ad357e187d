// Functions of a float32 that networks have seldom, against those of the C++ library in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/numeric/float_functions.h"
#include "tests/support/random.h"

namespace qplan::rare_functions_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Numbers of all exponents, and the ends.
template <typename Check>
void for_numbers(const Check& check) {
  testing::Random random(11);
  for (const float x : {0.0f, -0.0f, 1.0f, 2.0f, 0.5f, 1e-45f, 1.17549435e-38f, 3.4028235e38f, kInfinity})
    check(x);
  for (int i = 0; i < 200000; ++i) check(float_of_bits(static_cast<uint32_t>(random.unit() * 0x7f800000)));
}

TEST(RareFunctions, SqrtIsCorrectlyRounded) {
  for_numbers([](float x) { ASSERT_EQ(float_bits(sqrt_f32(x)), float_bits(std::sqrt(x))) << x; });
  EXPECT_TRUE(std::isnan(sqrt_f32(-1.0f)));
  EXPECT_TRUE(std::isnan(sqrt_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(RareFunctions, LogIsWithinFourUnitsInTheLastPlace) {
  for_numbers([](float x) {
    if (x == 0.0f || x == kInfinity || x == 1.0f) return;
    const double exact = std::log(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    ASSERT_LE(std::fabs(static_cast<double>(log_f32(x)) - exact), 4 * ulp) << x;
  });
  EXPECT_EQ(log_f32(1.0f), 0.0f);
  EXPECT_EQ(log_f32(0.0f), -kInfinity);
  EXPECT_EQ(log_f32(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log_f32(-2.0f)));
}

TEST(RareFunctions, ErfIsWithinHalfAMillionth) {
  for_numbers([](float x) {
    for (const float of : {x, -x}) {
      const double exact = std::erf(static_cast<double>(of));
      ASSERT_LE(std::fabs(static_cast<double>(erf_f32(of)) - exact), 5e-7 * std::fabs(exact) + 1e-44) << of;
    }
  });
}

TEST(RareFunctions, WholeNumbersAreThoseOfTheLibrary) {
  for_numbers([](float x) {
    for (const float of : {x, -x}) {
      ASSERT_EQ(float_bits(floor_f32(of)), float_bits(std::floor(of))) << of;
      ASSERT_EQ(float_bits(ceil_f32(of)), float_bits(std::ceil(of))) << of;
      ASSERT_EQ(float_bits(round_f32(of)), float_bits(std::nearbyint(of))) << of;
    }
  });
  for (int i = -40; i <= 40; ++i) {
    const float x = static_cast<float>(i) * 0.25f;
    EXPECT_EQ(float_bits(round_f32(x)), float_bits(std::nearbyint(x))) << x;
  }
  EXPECT_EQ(round_f32(4194305.5f), std::nearbyint(4194305.5f));
}

}  // namespace
}  // namespace qplan::rare_functions_test
