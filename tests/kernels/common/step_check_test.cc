// The parts of StepCheck that the families' own tests do not reach.
#include "src/runtime/bind/step_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/test_step.h"

namespace qplan::step_check_test {
namespace {

using testing::TestStep;

// A check looks at the step where it is made.
struct FinishedStep : TestStep {
  FinishedStep() : TestStep(1) {
    input<uint8_t>({1}, {0});
    output<uint8_t>({1});
    finish(format::KernelParams_NONE, 0);
  }
};

class StepCheckTest : public ::testing::Test {
 protected:
  std::string text() const { return error_.text(); }

  FinishedStep step_;
  Error error_;
  StepCheck check_{step_.view(), "family", &error_};
};

TEST_F(StepCheckTest, WindowsMayLieBesideTheInput) {
  EXPECT_TRUE(check_.window({"height", 4, 2, 3, 1000, 1, 500}));
  EXPECT_TRUE(check_.window({"height", 1, 1, 1, UINT32_MAX, 1, INT32_MAX}));
  EXPECT_TRUE(check_.window({"height", 1, 2, 1, INT32_MAX, 1, 0}));
}

TEST_F(StepCheckTest, WindowPositionsFitInt32) {
  EXPECT_FALSE(check_.window({"height", 1, 2, 2, INT32_MAX, 1, 0}));
  EXPECT_EQ(text(),
            "family: height: output 2, kernel 2, stride 2147483647, dilation 1, pad 0 exceed 2147483647");
  EXPECT_FALSE(check_.window({"height", 1, 1, 2, 1, 1u << 31, 0}));
  EXPECT_FALSE(check_.window({"height", 1, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0}));
  EXPECT_FALSE(check_.window({"height", 1, 1, 1, 1, 1, 1u << 31}));
}

TEST_F(StepCheckTest, PoolWindowsTouchTheInput) {
  EXPECT_TRUE(check_.window_touches_input({"width", 4, 4, 3, 1, 1, 2}));
  EXPECT_TRUE(check_.window_touches_input({"width", 4, 6, 3, 1, 1, 2}));  // the last begins at 3
  EXPECT_FALSE(check_.window_touches_input({"width", 4, 4, 3, 1, 1, 3}));
  EXPECT_EQ(text(), "family: width: pad 3 is not below the window's 3");
  EXPECT_FALSE(check_.window_touches_input({"width", 4, 7, 3, 1, 1, 2}));
  EXPECT_EQ(text(), "family: width: the last of 7 windows begins at 4, after the input's 4");
  EXPECT_FALSE(check_.window_touches_input({"width", 4, 4, 0, 1, 1, 0}));
}

TEST_F(StepCheckTest, MultiplierPairs) {
  EXPECT_TRUE(check_.multiplier("output", 0, 0));
  EXPECT_TRUE(check_.multiplier("output", INT32_MAX, -31));
  EXPECT_TRUE(check_.multiplier("output", 1 << 30, 30));
  EXPECT_FALSE(check_.multiplier("output", -1, 0));
  EXPECT_EQ(text(), "family: output multiplier -1 is negative");
  EXPECT_FALSE(check_.multiplier("input1", 1 << 30, 31));
  EXPECT_EQ(text(), "family: input1 shift 31 is not in -31 .. 30");
}

TEST_F(StepCheckTest, RefusalsKeepTheirStatusAndTensor) {
  EXPECT_FALSE(check_.layout(7, 0, 1));
  EXPECT_EQ(check_.status(), QPLAN_KERNEL_MISSING);
  Shape shape;
  EXPECT_FALSE(check_.output(0, "output", dtype_bit(Dtype::kF32), 1, &shape));
  EXPECT_EQ(check_.status(), QPLAN_PLAN_CORRUPT);
  qplan_error record = {sizeof(qplan_error), 0, 0, 0, {}};
  error_.copy_to(&record);
  EXPECT_EQ(record.tensor, 1);
  EXPECT_EQ(text(), "family: output has uint8, which this kernel does not take");
}

TEST_F(StepCheckTest, ShapesCompareByTheirExtents) {
  Shape a, b;
  a.rank = b.rank = 2;
  a.extents[0] = b.extents[0] = 3;
  a.extents[1] = b.extents[1] = 1;
  b.extents[5] = 9;
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.elements(), 3u);
  b.rank = 1;
  EXPECT_TRUE(a != b);
}

}  // namespace
}  // namespace qplan::step_check_test
