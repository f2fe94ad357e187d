// The kernels for Armv8.1-M's vectors, which no session of this machine chooses: on it they are compiled from
// plain C; compiled for a Cortex-M55 (tests/firmware/mve_test.py) this file tests the instructions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/kernel.h"
#include "kernels/layout.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/scalar/long_rows.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::mve_test {
namespace {

using testing::Bias;
using testing::Buffer;
using testing::Conv2dProblem;
using testing::OutputBuffer;
using testing::Random;
using testing::Values;

#if defined(__ARM_FEATURE_MVE)
constexpr bool kHasFloatSums = true;
#else
constexpr bool kHasFloatSums = false;
#endif

constexpr KernelVariant kConv2d = QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_mve, QPLAN_ISA_MVE);
constexpr KernelVariant kDepthwise =
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_mve, QPLAN_ISA_MVE);
constexpr KernelVariant kFullyConnected =
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_mve, QPLAN_ISA_MVE);

// Draws what is not set yet. Most problems are what packers make for tiles: int8, no zero points of weights,
// TFL2 with shifts to the right.
void draw(Random& random, bool is_usual, Conv2dProblem* problem) {
  Conv2dArgs& a = problem->args;
  testing::draw_conv2d_scalars(random, &a);
  if (is_usual) {
    a.input_dtype = Dtype::kS8;
    a.weights_zero_point = 0;
    a.contract = Contract::kTfl2;
    if (a.output_dtype != Dtype::kS8 && random.chance(0.5)) {
      a.output_dtype = Dtype::kS8;
      a.output_zero_point = a.clamp_min = -128;
      a.clamp_max = 127;
    }
    if (a.pad_value < -128 || a.pad_value > 127) a.pad_value = 0;
  }
  a.input_zero_point = 0;
  testing::fill_conv2d_problem(random, problem);
}

void expect_correct(const KernelVariant& variant, const Conv2dProblem& problem, bool in_pieces) {
  EXPECT_TRUE(testing::expect_outputs(variant, problem, problem.expected, in_pieces)) << problem.text();
}

TEST(MveConv2d, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    if (seed % 7 == 0) problem.values = Values::kOnlyEnds;
    if (seed % 11 == 0) problem.bias_kind = Bias::kWrap;
    if (seed % 5 == 0) problem.bias_kind = Bias::kLarge;
    Conv2dArgs& a = problem.args;
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 20));
    a.output_c = static_cast<uint32_t>(random.integer(1, 40));
    testing::draw_conv2d_geometry(random, &a);
    if (a.kernel_w != 1 && a.dilation_w != 1) {
      a.dilation_w = 1;
      if (!testing::set_output_extents(&a, 0, 0)) continue;
    }
    a.weights_layout = kLayout_o4k16;
    draw(random, seed % 3 != 0, &problem);
    expect_correct(kConv2d, problem, seed % 3 == 0);
  }
}

TEST(MveConv2d, EqualsTheOracleOnLayersOfNetworks) {
  struct Layer {
    uint32_t height, width, input_c, output_c, kernel_h, kernel_w, stride, pad_top, pad_left;
  };
  const std::vector<Layer> layers = {
      {25, 5, 64, 64, 1, 1, 1, 0, 0}, {49, 10, 1, 64, 10, 4, 2, 4, 1}, {16, 16, 16, 16, 3, 3, 1, 1, 1},
      {9, 9, 32, 64, 3, 3, 2, 0, 0},  {8, 8, 16, 32, 1, 1, 2, 0, 0},   {24, 24, 1, 8, 3, 3, 2, 0, 0},
      {12, 12, 3, 16, 3, 3, 1, 1, 1}, {3, 3, 256, 256, 1, 1, 1, 0, 0}, {1, 1, 256, 2, 1, 1, 1, 0, 0},
      {7, 7, 8, 16, 1, 1, 1, 0, 0},
  };
  uint64_t seed = 5000;
  for (const Layer& layer : layers) {
    Random random(++seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = a.groups = a.dilation_h = a.dilation_w = 1;
    a.input_h = layer.height;
    a.input_w = layer.width;
    a.input_c = layer.input_c;
    a.output_c = layer.output_c;
    a.kernel_h = layer.kernel_h;
    a.kernel_w = layer.kernel_w;
    a.stride_h = a.stride_w = layer.stride;
    a.pad_top = layer.pad_top;
    a.pad_left = layer.pad_left;
    ASSERT_TRUE(testing::set_output_extents(&a, layer.kernel_h / 2, layer.kernel_w / 2));
    a.weights_layout = kLayout_o4k16;
    draw(random, true, &problem);
    expect_correct(kConv2d, problem, false);
  }
}

// Every number of vectors of a window, pixels of the last pair and channels after the last four.
TEST(MveConv2d, EqualsTheOracleForEveryRemainder) {
  uint64_t seed = 7000;
  for (uint32_t input_c = 1; input_c <= 65; input_c += 4) {
    for (uint32_t output_c = 1; output_c <= 13; output_c += 3) {
      Random random(++seed);
      Conv2dProblem problem;
      problem.seed = seed;
      Conv2dArgs& a = problem.args;
      a.batch = a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w =
          1;
      a.input_h = 2;
      a.input_w = 1 + input_c % 3;
      a.input_c = input_c % 3 == 0 ? (input_c + 15) / 16 * 16 : input_c;
      a.output_c = output_c;
      ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
      a.weights_layout = kLayout_o4k16;
      draw(random, true, &problem);
      expect_correct(kConv2d, problem, seed % 2 == 0);
    }
  }
}

// Outputs at both ends of int32 before the zero point is added.
TEST(MveConv2d, SaturatesWhatTheZeroPointMoves) {
  constexpr int32_t kBiases[] = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX};
  for (const int32_t bias : kBiases) {
    for (const int32_t zero_point : {-128, -1, 0, 127}) {
      Conv2dProblem problem;
      Conv2dArgs& a = problem.args;
      a.batch = a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w =
          1;
      a.input_h = a.input_w = a.output_h = a.output_w = a.input_c = 1;
      a.output_c = 4;
      a.input_dtype = a.output_dtype = Dtype::kS8;
      a.output_zero_point = zero_point;
      a.clamp_min = -128;
      a.clamp_max = 127;
      a.contract = Contract::kTfl2;
      a.weights_layout = kLayout_o4k16;
      problem.input = {0};
      problem.weights = {1, 2, 3, 4};
      problem.bias = {bias, bias, bias, bias};
      problem.multiplier = {INT32_MAX, 1 << 30, INT32_MAX, 1 << 30};
      problem.shift = {0, 0, -1, -31};
      for (size_t o = 0; o < 4; ++o) {
        problem.expected.push_back(testing::exact_output(a, problem, bias, o));
      }
      expect_correct(kConv2d, problem, false);
    }
  }
}

// The output takes the place of the input.
void expect_correct_in_place(const KernelVariant& variant, const Conv2dProblem& problem) {
  testing::Conv2dRun run(problem);
  Conv2dArgs args = run.args();
  ASSERT_EQ(problem.input.size(), problem.num_outputs());
  std::memcpy(args.output, args.input, problem.input.size());
  args.input = args.output;
  ASSERT_TRUE(variant.accepts(&args)) << problem.text();
  testing::run_variant(variant, &args);
  EXPECT_EQ(run.output(), problem.expected) << problem.text();
  EXPECT_TRUE(run.guards_intact()) << problem.text();
}

TEST(MveConv2d, PixelsTakeThePlaceOfTheirInputs) {
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = static_cast<uint32_t>(random.integer(1, 2));
    a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w = 1;
    a.input_h = static_cast<uint32_t>(random.integer(1, 5));
    a.input_w = static_cast<uint32_t>(random.integer(1, 7));
    a.input_c = a.output_c = random.chance(0.4) ? static_cast<uint32_t>(16 * random.integer(1, 3))
                                                : static_cast<uint32_t>(random.integer(1, 40));
    ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
    a.weights_layout = kLayout_o4k16;
    draw(random, seed % 4 != 0, &problem);
    expect_correct_in_place(kConv2d, problem);
  }
}

// The output is written over the beginning of a larger input.
void expect_correct_over_input(const KernelVariant& variant, const Conv2dProblem& problem) {
  testing::Conv2dRun run(problem);
  Conv2dArgs args = run.args();
  testing::OutputBuffer<uint8_t> memory(problem.input.size(), problem.seed % 5);
  std::memcpy(memory.data(), args.input, problem.input.size());
  args.input = args.output = memory.data();
  ASSERT_TRUE(variant.accepts(&args)) << problem.text();
  testing::run_variant_in_pieces(variant, &args, problem.seed, true);
  std::memcpy(run.args().output, memory.data(), problem.num_outputs());
  EXPECT_EQ(run.output(), problem.expected) << problem.text();
  EXPECT_TRUE(memory.guards_intact()) << problem.text();
}

TEST(MveConv2d, RowsAreWrittenOverTheirLargerInput) {
  for (uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    testing::draw_overwriting_geometry(random, &a);
    a.weights_layout = kLayout_o4k16;
    draw(random, seed % 4 != 0, &problem);
    expect_correct_over_input(kConv2d, problem);
  }
}

int32_t expected_sum(const AddFormula& f, int32_t a, int32_t b) {
  if (!kHasFloatSums || f.contract != Contract::kTfl2 || f.float_scale1 == 0.0f)
    return sum_of(f, a, b, false);
  const float second = std::fma(static_cast<float>(b), f.float_scale2, f.float_offset);
  const float real = std::fma(static_cast<float>(a), f.float_scale1, second);
  return clamp_s32(static_cast<int32_t>(std::nearbyint(real)), f.clamp_min, f.clamp_max);
}

TEST(MveConv2d, AddsResiduals) {
  for (uint64_t seed = 1; seed <= 80 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 20));
    a.output_c = static_cast<uint32_t>(random.integer(1, 24));
    testing::draw_conv2d_geometry(random, &a);
    a.dilation_w = 1;
    if (!testing::set_output_extents(&a, 0, 0)) continue;
    a.weights_layout = kLayout_o4k16;
    draw(random, seed % 3 != 0, &problem);
    testing::draw_residual_sum(random, &a);
    std::vector<int32_t> residual, expected;
    for (const int32_t output : problem.expected) {
      residual.push_back(testing::random_value(random, a.output_dtype, Values::kWithEnds));
      const bool is_a = a.residual_is_a;
      expected.push_back(
          expected_sum(a.residual_sum, is_a ? residual.back() : output, is_a ? output : residual.back()));
    }
    const Buffer<uint8_t> bytes(testing::to_bytes(residual), seed % 7);
    a.residual = bytes.data();
    EXPECT_TRUE(testing::expect_outputs(kConv2d, problem, expected, seed % 2 == 0)) << problem.text();
    // The output takes the place of the residual.
    testing::Conv2dRun run(problem);
    Conv2dArgs args = run.args();
    std::memcpy(args.output, bytes.data(), residual.size());
    args.residual = args.output;
    testing::run_variant(kConv2d, &args);
    EXPECT_EQ(run.output(), expected) << problem.text();
  }
}

TEST(MveConv2d, RefusesWhatItDoesNotCompute) {
  Conv2dArgs a;
  a.batch = a.input_h = a.input_w = a.output_h = a.output_w = a.kernel_h = a.kernel_w = 1;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = a.groups = 1;
  a.input_c = a.output_c = 4;
  a.weights_layout = kLayout_o4k16;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kNone);
  a.weights_layout = kLayout_ohwi;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kLayout);
  a.weights_layout = kLayout_o4k16;
  a.groups = 2;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kGroups);
  a.groups = 1;
  a.input_zero_point = 1;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kInputZeroPoint);
  a.input_zero_point = 0;
  a.kernel_w = a.dilation_w = 2;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kWindow);
  a.kernel_w = 1;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kNone);
  a.contract = Contract::kAcc32;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kContract);
}

TEST(MveDepthwiseConv2d, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    if (seed % 7 == 0) problem.values = Values::kOnlyEnds;
    if (seed % 11 == 0) problem.bias_kind = Bias::kWrap;
    Conv2dArgs& a = problem.args;
    a.input_c = a.output_c = a.groups = static_cast<uint32_t>(random.integer(1, 20));
    testing::draw_conv2d_geometry(random, &a);
    if (random.chance(0.7)) {
      a.kernel_h = a.kernel_w = 3;
      a.dilation_h = a.dilation_w = 1;
      a.stride_h = static_cast<uint32_t>(random.integer(1, 4));
      a.stride_w = static_cast<uint32_t>(random.integer(1, 2));
      a.input_w = static_cast<uint32_t>(random.integer(1, 40));
      const auto pad = static_cast<uint32_t>(random.integer(0, 3));
      if (!testing::set_output_extents(&a, pad, pad)) continue;
    }
    a.weights_layout = kLayout_hwo16;
    draw(random, seed % 3 != 0, &problem);
    if (seed % 5 == 0) {
      a.input_zero_point = testing::random_zero_point(random, a.input_dtype);
      testing::fill_conv2d_problem(random, &problem);
    }
    expect_correct(kDepthwise, problem, seed % 3 == 0);
  }
}

// Rows of every width, and columns that take more scratch memory than blocks of eight channels may.
TEST(MveDepthwiseConv2d, EqualsTheOracleForRowsOfEveryWidth) {
  for (const uint32_t width : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 17u, 40u, 100u}) {
    for (const uint32_t stride : {1u, 2u}) {
      Random random(width);
      Conv2dProblem problem;
      problem.seed = width;
      Conv2dArgs& a = problem.args;
      a.batch = a.dilation_h = a.dilation_w = 1;
      a.input_c = a.output_c = a.groups = width % 2 == 0 ? 8 : 7;
      a.input_h = 7;
      a.input_w = width;
      a.kernel_h = a.kernel_w = 3;
      a.stride_h = a.stride_w = stride;
      a.pad_top = a.pad_left = width % 3 == 0 ? 0 : 1;
      if (!testing::set_output_extents(&a, 1, 1)) continue;
      a.weights_layout = kLayout_hwo16;
      draw(random, true, &problem);
      expect_correct(kDepthwise, problem, false);
    }
  }
}

TEST(MveDepthwiseConv2d, ImagesTakeThePlaceOfTheirInputs) {
  for (uint64_t seed = 1; seed <= 120 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = static_cast<uint32_t>(random.integer(1, 2));
    a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = 1;
    a.kernel_h = a.kernel_w = 3;
    a.input_h = static_cast<uint32_t>(random.integer(1, 30));
    a.input_w = static_cast<uint32_t>(random.integer(1, 40));
    a.input_c = a.output_c = a.groups = static_cast<uint32_t>(random.integer(1, 20));
    a.pad_top = a.pad_left = 1;
    ASSERT_TRUE(testing::set_output_extents(&a, 1, 1));
    a.weights_layout = kLayout_hwo16;
    draw(random, seed % 3 != 0, &problem);
    if (a.weights_zero_point != 0) continue;  // left to the reference
    expect_correct_in_place(kDepthwise, problem);
  }
}

TEST(MveDepthwiseConv2d, LeavesOtherLayersInPlaceToTheReference) {
  uint8_t bytes[64] = {};
  DepthwiseConv2dArgs a;
  a.batch = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  a.input_h = a.input_w = a.output_h = a.output_w = 4;
  a.input_c = a.output_c = a.groups = 4;
  a.kernel_h = a.kernel_w = 3;
  a.pad_top = a.pad_left = 1;
  a.weights_layout = kLayout_hwo16;
  a.input = a.output = bytes;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kNone);
  EXPECT_EQ(kDepthwise.work_items(&a), 1u);
  a.pad_top = 3;  // the first rows of output would overwrite what later ones read
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kWindow);
  a.pad_top = 1;
  a.weights_zero_point = 1;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kWindow);
  a.input = nullptr;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kNone);
  EXPECT_EQ(kDepthwise.work_items(&a), 4u);
}

TEST(MveFullyConnected, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    // A convolution of 1x1 is a fully connected layer of its pixels, and has an oracle.
    Conv2dProblem problem;
    problem.seed = seed;
    if (seed % 7 == 0) problem.values = Values::kOnlyEnds;
    if (seed % 11 == 0) problem.bias_kind = Bias::kWrap;
    Conv2dArgs& c = problem.args;
    c.batch = c.groups = c.input_h = c.kernel_h = c.kernel_w = 1;
    c.stride_h = c.stride_w = c.dilation_h = c.dilation_w = 1;
    c.input_w = static_cast<uint32_t>(random.integer(1, 4));
    c.input_c = static_cast<uint32_t>(random.chance(0.5) ? random.integer(1, 70) : 16 * random.integer(1, 5));
    c.output_c = static_cast<uint32_t>(random.integer(1, 40));
    ASSERT_TRUE(testing::set_output_extents(&c, 0, 0));
    c.weights_layout = kLayout_o4k16;
    draw(random, seed % 3 != 0, &problem);
    const testing::Conv2dRun run(problem);
    OutputBuffer<uint8_t> output(problem.num_outputs(), seed % 3);
    FullyConnectedArgs a;
    a.input = run.args().input;
    a.weights = run.args().weights;
    a.bias = run.args().bias;
    a.multiplier = run.args().multiplier;
    a.shift = run.args().shift;
    a.scale = run.args().scale;
    a.float_scale = run.args().float_scale;
    a.float_offset = run.args().float_offset;
    a.output = output.data();
    a.rows = c.input_w;
    a.input_c = c.input_c;
    a.output_c = c.output_c;
    a.input_zero_point = c.input_zero_point;
    a.weights_zero_point = c.weights_zero_point;
    a.output_zero_point = c.output_zero_point;
    a.clamp_min = c.clamp_min;
    a.clamp_max = c.clamp_max;
    a.contract = c.contract;
    a.float_epilogue = c.float_epilogue;
    a.input_dtype = c.input_dtype;
    a.output_dtype = c.output_dtype;
    a.weights_layout = c.weights_layout;
    ASSERT_TRUE(kFullyConnected.accepts(&a)) << problem.text();
    testing::run_variant_in_pieces(kFullyConnected, &a, seed);
    EXPECT_EQ(testing::from_bytes(output.values(), a.output_dtype), problem.expected) << problem.text();
    EXPECT_TRUE(output.guards_intact());
  }
}

#if !defined(__ARM_FEATURE_MVE)  // the board lacks the memory
TEST(MveFullyConnected, SumsOfLongRowsWrap) {
  testing::expect_sums_of_long_rows_wrap(kFullyConnected, kLayout_o4k16);
}
#endif

}  // namespace
}  // namespace qplan::mve_test
