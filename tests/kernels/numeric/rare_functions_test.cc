// Functions of a float32 that networks have seldom, against those of the C++ library in double.
#include <gtest/gtest.h>

#include <algorithm>
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

// At most one unit in the last place, of subnormal results one of the least ones. The logarithm of 0 is
// the least int, so it is limited before anything is subtracted from it.
void expect_one_ulp(float found, double exact, const char* what, float x, float y = 0) {
  if (std::isinf(found) && std::fabs(exact) > 3.4028e38) return;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  ASSERT_LE(std::fabs(static_cast<double>(found) - exact), ulp) << what << " " << x << " " << y;
}

TEST(RareFunctions, SineAndCosineAreWithinOneUnitInTheLastPlace) {
  for_numbers([](float x) {
    for (const float of : {x, -x}) {
      if (x >= 1073741824.0f) continue;  // 2^30
      expect_one_ulp(sin_f32(of), std::sin(static_cast<double>(of)), "sin", of);
      expect_one_ulp(cos_f32(of), std::cos(static_cast<double>(of)), "cos", of);
    }
  });
  EXPECT_EQ(float_bits(sin_f32(-0.0f)), float_bits(-0.0f));
  EXPECT_TRUE(std::isnan(sin_f32(kInfinity)));
  EXPECT_TRUE(std::isnan(cos_f32(1073741824.0f)));
}

TEST(RareFunctions, ExpLessOneIsWithinOneUnitInTheLastPlace) {
  for_numbers([](float x) {
    for (const float of : {x, -x}) {
      if (of > 80.0f) continue;
      expect_one_ulp(exp_less_one_f32(of), std::expm1(static_cast<double>(of)), "expm1", of);
    }
  });
}

TEST(RareFunctions, PowersAreThoseOfTheLibrary) {
  testing::Random random(5);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float ends[] = {0.0f,  -0.0f, 1.0f,  -1.0f,     2.0f,       -2.0f, 3.0f,
                        -3.0f, 0.5f,  -0.5f, kInfinity, -kInfinity, kNan};
  for (const float a : ends) {
    for (const float b : ends) {
      const float found = power_f32(a, b);
      const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(found)) << a << " " << b;
      } else {
        EXPECT_EQ(float_bits(found), float_bits(static_cast<float>(exact))) << a << " " << b;
      }
    }
  }
  for (int i = 0; i < 100000; ++i) {
    const float a = float_of_bits(static_cast<uint32_t>(random.unit() * 0x7f800000));
    const float b = static_cast<float>((random.unit() - 0.5) * 20.0);
    expect_one_ulp(power_f32(a, b), std::pow(static_cast<double>(a), static_cast<double>(b)), "pow", a, b);
    const auto whole = static_cast<float>(random.integer(-9, 9));
    expect_one_ulp(power_f32(-a, whole), std::pow(static_cast<double>(-a), static_cast<double>(whole)), "pow",
                   -a, whole);
  }
}

}  // namespace
}  // namespace qplan::rare_functions_test
