// What tests of every variant of conv2d against an oracle in double precision have in common.
#ifndef QPLAN_TESTS_KERNELS_CONV2D_CONV2D_VARIANT_H_
#define QPLAN_TESTS_KERNELS_CONV2D_CONV2D_VARIANT_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_test {

class Conv2dVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // True if the variant takes the problem; then its output was compared.
  bool expect_correct(const testing::Conv2dProblem& problem, bool in_pieces = false) {
    return testing::expect_outputs(*GetParam(), problem, testing::expected_of(problem, *GetParam()),
                                   problem.expected, in_pieces);
  }

  // Whether the variant must take a layer that has one of the two zero points of inputs and weights in groups
  // of four or eight bytes.
  static bool must_take(const Conv2dArgs& a) {
    const bool is_middle = a.input_zero_point == dtype_middle(a.input_dtype);
    const bool has_eights = a.weights_layout == layout_of_eights(a);
    switch (GetParam()->isa) {
      case QPLAN_ISA_REFERENCE:
        return true;
      case QPLAN_ISA_NEON:
      case QPLAN_ISA_DOTPROD:
        return !has_eights;
      case QPLAN_ISA_I8MM:
        return !is_middle || a.input_dtype == Dtype::kS8;  // groups of both sizes
      default:
        return !is_middle && !has_eights;
    }
  }

  // Whether the variant must add rests of weights too.
  static bool must_add_rests() {
    switch (GetParam()->isa) {
      case QPLAN_ISA_NEON:
      case QPLAN_ISA_DOTPROD:
      case QPLAN_ISA_I8MM:
      case QPLAN_ISA_RVV:
        return false;
      default:
        return true;
    }
  }

  // With both zero points and both sizes of groups, and with rests of weights.
  void expect_correct_in_all_forms(testing::Conv2dProblem problem) {
    Conv2dArgs& a = problem.args;
    for (const int32_t zero_point : {dtype_min(a.input_dtype), dtype_middle(a.input_dtype)}) {
      for (const uint16_t layout : {layout_in_place(a), layout_of_eights(a)}) {
        a.input_zero_point = zero_point;
        a.weights_layout = layout;
        testing::Random random(problem.seed);
        testing::fill_conv2d_problem(random, &problem);  // which expects what that zero point makes
        EXPECT_EQ(expect_correct(problem), must_take(a)) << problem.text();
        if (a.groups != 1 || layout == layout_of_eights(a)) continue;
        a.num_weight_rests = static_cast<uint8_t>(random.integer(1, kMaxWeightRests));
        testing::fill_conv2d_problem(random, &problem);
        EXPECT_EQ(expect_correct(problem), must_take(a) && must_add_rests()) << problem.text();
        a.num_weight_rests = 0;
      }
    }
  }
};

}  // namespace qplan::conv2d_test

#endif  // QPLAN_TESTS_KERNELS_CONV2D_CONV2D_VARIANT_H_
