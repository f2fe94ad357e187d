// Every variant of conv2d on first layers: images of one or three channels, windows of 3x3, eight or sixteen
// channels of outputs. Some variants have code for these alone (kernels/conv2d/
// conv2d_first_layers_avx512vnni.h, conv2d_interleaved_avx512vnni.h), and for layers that differ in one thing
// the code of all others.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "tests/kernels/conv2d/conv2d_variant.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/random.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_test {
namespace {

using testing::Conv2dProblem;
using testing::Random;

// One in four has a float epilogue of kind kPlain, which that code asks for.
Conv2dProblem first_layer(uint64_t seed, uint32_t output_c, Random& random) {
  const auto draw = [&](int64_t lo, int64_t hi) { return static_cast<uint32_t>(random.integer(lo, hi)); };
  Conv2dProblem problem;
  problem.seed = seed;
  Conv2dArgs& a = problem.args;
  testing::draw_conv2d_scalars(random, &a);
  a.contract = random.chance(0.5) ? Contract::kTfl1 : Contract::kTfl2;
  a.input_zero_point = dtype_min(a.input_dtype);
  a.weights_zero_point = 0;
  a.groups = a.dilation_h = a.dilation_w = 1;
  a.kernel_h = a.kernel_w = 3;
  a.batch = draw(1, 2);
  a.input_c = random.chance(0.3) ? 1 : 3;
  a.output_c = output_c;
  do {
    a.stride_h = draw(1, 2);
    a.stride_w = random.chance(0.8) ? a.stride_h : draw(1, 2);
    a.input_h = draw(1, 9);
    a.input_w = random.chance(0.95) ? draw(1, 90) : draw(240, 600);  // blocks side by side, too
    a.pad_top = draw(0, 3);
    a.pad_left = random.chance(0.9) ? draw(0, 3) : draw(30, 70);  // whole tiles of padding, too
  } while (!testing::set_output_extents(&a, draw(0, 3), random.chance(0.9) ? draw(0, 3) : draw(30, 70)) ||
           a.output_w < 128 / output_c);
  a.weights_layout = layout_in_place(a);
  a.num_weight_rests = static_cast<uint8_t>(random.chance(0.5) ? 0 : draw(1, kMaxWeightRests));
  return problem;
}

TEST_P(Conv2dVariant, EqualsTheOracleOnFirstLayers) {
  uint32_t num_plain = 0;
  for (uint64_t seed = 1; seed <= 800 && !HasFailure(); ++seed) {
    Random random(40000 + seed);
    Conv2dProblem problem = first_layer(seed, seed % 4 < 2 ? 8 : 16, random);
    testing::fill_conv2d_problem(random, &problem);
    const bool must_be_taken =
        must_take(problem.args) && (problem.args.num_weight_rests == 0 || must_add_rests());
    EXPECT_EQ(expect_correct(problem, seed % 2 == 0), must_be_taken) << problem.text();
    num_plain += problem.args.float_epilogue == FloatEpilogue::kPlain;
  }
  EXPECT_GT(num_plain, 100u);
}

TEST_P(Conv2dVariant, EqualsTheOracleOnLayersThatAreNearlyFirstLayers) {
  const std::vector<void (*)(Conv2dArgs*)> changes = {
      [](Conv2dArgs* a) { a->input_c = 2; },
      [](Conv2dArgs* a) { a->input_c = 4; },
      [](Conv2dArgs* a) { a->output_c -= 1; },
      [](Conv2dArgs* a) { a->output_c += 8; },
      [](Conv2dArgs* a) { a->kernel_w = 2; },
      [](Conv2dArgs* a) { a->kernel_h = 5; },
      [](Conv2dArgs* a) { a->stride_w = 3; },
      [](Conv2dArgs* a) { a->stride_h = 3; },
      [](Conv2dArgs* a) { a->dilation_h = 2; },
      [](Conv2dArgs* a) { a->dilation_w = 2; },
      [](Conv2dArgs* a) { a->input_w = 16; },
      [](Conv2dArgs* a) { a->weights_zero_point = 1; },
      [](Conv2dArgs* a) { a->contract = Contract::kF32e; },
  };
  for (const auto change : changes) {
    for (uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
      Random random(50000 + seed);
      Conv2dProblem problem = first_layer(seed, seed % 2 == 0 ? 8 : 16, random);
      Conv2dArgs& a = problem.args;
      a.num_weight_rests = 0;
      a.input_h = 6;
      a.input_w = 60;
      a.pad_top = a.pad_left = 1;
      change(&a);
      ASSERT_TRUE(testing::set_output_extents(&a, 1, 0));
      a.weights_layout = layout_in_place(a);
      testing::fill_conv2d_problem(random, &problem);
      EXPECT_EQ(expect_correct(problem), must_take(a)) << problem.text();
    }
  }
}

}  // namespace
}  // namespace qplan::conv2d_test
