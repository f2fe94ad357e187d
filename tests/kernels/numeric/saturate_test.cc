#include "kernels/numeric/saturate.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace qplan::saturate_test {
namespace {

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
}  // namespace qplan::saturate_test
