// div against the real quotient for all pairs of bytes, and steps that its bind refuses. The exact bytes are
// in tests/models/tflite_operator_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"
#include "tests/support/test_step.h"

namespace qplan::div_test {
namespace {

using testing::Refusal;
using testing::TestStep;

// [256, 1] / [256]: all pairs.
struct Div {
  std::vector<int64_t> a = {256, 1}, b = {256}, output = {256, 256};
  int32_t zero1 = 0, zero2 = 0, zero3 = 0, multiplier = 1 << 30, shift = 1, clamp_min = -128, clamp_max = 127;

  void make(TestStep& step) const { make_of<int8_t>(step); }

  template <typename T>
  void make_of(TestStep& step) const {
    constexpr int32_t kLowest = std::numeric_limits<T>::min();
    const auto bytes = [](const std::vector<int64_t>& shape) {
      std::vector<T> values(testing::elements_of(shape));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(kLowest + static_cast<int32_t>(i % 256));
      return values;
    };
    step.input<T>(a, bytes(a));
    step.input<T>(b, bytes(b));
    step.output<T>(output);
    step.finish(
        format::KernelParams_DivParams,
        format::CreateDivParams(step.builder(), zero1, zero2, zero3, multiplier, shift, clamp_min, clamp_max)
            .Union());
  }
};

template <typename T>
void expect_quotients(const Div& div) {
  TestStep step(kKernel_div);
  div.make_of<T>(step);
  const std::vector<T> found = testing::run_reference<T>(step, kDivFamily);
  ASSERT_EQ(found.size(), 65536u);
  constexpr int32_t kLowest = std::numeric_limits<T>::min();
  const double factor = std::ldexp(div.multiplier, div.shift - 31);
  for (int32_t i = 0; i < 65536; ++i) {
    const int32_t v = kLowest + i / 256 - div.zero1, w = kLowest + i % 256 - div.zero2;
    double real = v == 0 ? 0.0 : v > 0 ? 1e9 : -1e9;
    if (w != 0) real = v * factor / w;
    const double held = std::clamp<double>(real + div.zero3, div.clamp_min, div.clamp_max);
    // Two roundings, the first of which keeps 30 bits.
    ASSERT_NEAR(found[static_cast<size_t>(i)], held, 0.5 + 1e-4) << v << " / " << w;
  }
}

TEST(Div, IsNearTheRealQuotientOfAllPairs) {
  expect_quotients<int8_t>({});
  expect_quotients<int8_t>({.zero1 = -7, .zero2 = 100, .zero3 = 5, .multiplier = 1717986918, .shift = 6});
  expect_quotients<int8_t>(
      {.zero1 = 127, .zero2 = -128, .zero3 = -128, .multiplier = 1234567890, .shift = 3});
  expect_quotients<int8_t>(
      {.zero2 = 127, .multiplier = 2000000000, .shift = -4, .clamp_min = -50, .clamp_max = 60});
  const Div unsigned_bytes = {.zero1 = 128,
                              .zero2 = 3,
                              .zero3 = 130,
                              .multiplier = 1 << 30,
                              .shift = 8,
                              .clamp_min = 0,
                              .clamp_max = 255};
  expect_quotients<uint8_t>(unsigned_bytes);
}

TEST(Div, EndsOfEveryRangeCompute) {
  for (const int32_t multiplier : {0, INT32_MAX}) {
    for (const int32_t shift : {-31, DivArgs::kMaxShift}) {
      for (const int32_t zero : {-128, 127}) {
        TestStep step(kKernel_div);
        Div{.zero1 = zero, .zero2 = -1 - zero, .zero3 = zero, .multiplier = multiplier, .shift = shift}.make(
            step);
        EXPECT_EQ(testing::run_reference<int8_t>(step, kDivFamily).size(), 65536u);
      }
    }
  }
}

TEST(Div, StepsThatCouldOverflowAreRefused) {
  testing::expect_refusals(kDivFamily, std::vector<Refusal<Div>>{
                                           {[](Div& d) {
                                              d.output = {256, 1};
                                            },
                                            "broadcast"},
                                           {[](Div& d) { d.zero1 = 128; }, "input1_zero_point 128"},
                                           {[](Div& d) { d.zero2 = -129; }, "input2_zero_point -129"},
                                           {[](Div& d) { d.zero3 = 128; }, "output_zero_point 128"},
                                           {[](Div& d) { d.multiplier = -1; }, "output_multiplier -1"},
                                           {[](Div& d) { d.shift = 24; }, "output_shift 24"},
                                           {[](Div& d) { d.shift = -32; }, "output_shift -32"},
                                           {[](Div& d) { d.clamp_max = 128; }, "clamp"},
                                           {[](Div& d) { d.clamp_min = 127, d.clamp_max = -128; }, "clamp"},
                                       });
}

}  // namespace
}  // namespace qplan::div_test
