// Every variant of conv2d on images whose blocks, runs of pixels and tiles of rows have every rest; the cases
// of conv2d_test.cc are smaller.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "tests/kernels/conv2d/conv2d_variant.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_test {
namespace {

using testing::Conv2dProblem;
using testing::Random;

// More pixels than a work item has, windows inside the input and over each of its borders, taps of whole
// groups of four bytes and others, few channels in wide images, half a block of channels to several groups
// of them.
TEST_P(Conv2dVariant, EqualsTheOracleOnImages) {
  struct Image {
    uint32_t size, input_c, output_c, kernel_h, kernel_w, stride, dilation, pad;
  };
  const std::vector<Image> images = {
      {20, 3, 32, 3, 3, 2, 1, 1},  {17, 16, 16, 3, 3, 1, 1, 1}, {16, 8, 40, 3, 3, 1, 2, 2},
      {13, 6, 20, 3, 2, 1, 1, 1},  {19, 1, 64, 10, 4, 2, 1, 3}, {9, 64, 130, 3, 3, 1, 1, 1},
      {12, 4, 16, 5, 5, 2, 1, 2},  {15, 12, 24, 1, 1, 2, 1, 0}, {11, 20, 96, 1, 1, 1, 1, 0},
      {14, 8, 8, 1, 5, 1, 2, 4},   {7, 20, 300, 1, 1, 1, 1, 0}, {6, 4, 16, 7, 7, 1, 1, 3},
      {10, 5, 16, 3, 3, 1, 3, 3},  {9, 16, 32, 2, 2, 1, 1, 0},  {35, 3, 32, 3, 3, 2, 1, 1},
      {70, 3, 24, 3, 3, 2, 1, 0},  {36, 1, 8, 5, 3, 2, 1, 2},   {35, 6, 17, 2, 3, 2, 1, 0},
      {14, 12, 48, 3, 1, 1, 2, 1}, {20, 9, 16, 3, 3, 1, 2, 2},  {12, 8, 24, 1, 1, 1, 1, 0},
      {11, 12, 8, 1, 1, 1, 1, 0},  {9, 20, 69, 1, 1, 1, 1, 0},  {17, 4, 40, 3, 3, 1, 1, 1},
      {33, 7, 20, 2, 3, 2, 1, 1},  {48, 1, 16, 16, 5, 3, 1, 4}, {34, 3, 8, 5, 5, 2, 1, 2},
      {36, 3, 16, 4, 3, 2, 1, 1},  {31, 16, 16, 3, 3, 1, 1, 1}, {16, 16, 48, 3, 3, 1, 1, 1},
      {47, 16, 16, 5, 3, 1, 1, 1}, {32, 16, 16, 3, 4, 1, 2, 3}, {13, 8, 48, 1, 1, 1, 1, 0},
      {12, 8, 136, 1, 1, 1, 1, 0}, {9, 8, 37, 1, 1, 1, 1, 0},   {11, 16, 8, 1, 1, 1, 1, 0},
      {13, 16, 5, 1, 1, 1, 1, 0},  {12, 16, 8, 1, 1, 1, 1, 0},  {10, 16, 72, 1, 1, 1, 1, 0},
  };
  uint64_t seed = 1500;
  for (const Image& image : images) {
    for (const uint32_t batch : {1u, 2u}) {
      Random random(++seed);
      Conv2dProblem problem;
      problem.seed = seed;
      Conv2dArgs& a = problem.args;
      a.batch = batch;
      a.groups = 1;
      a.input_h = image.size + 1;
      a.input_w = image.size;
      a.input_c = image.input_c;
      a.output_c = image.output_c;
      a.kernel_h = image.kernel_h;
      a.kernel_w = image.kernel_w;
      a.stride_h = a.stride_w = image.stride;
      a.dilation_h = a.dilation_w = image.dilation;
      a.pad_top = a.pad_left = image.pad;
      ASSERT_TRUE(testing::set_output_extents(&a, a.pad_top, a.pad_left));
      testing::draw_conv2d_scalars(random, &a);
      a.input_zero_point = dtype_min(a.input_dtype);  // the vector variants take no other
      testing::fill_conv2d_problem(random, &problem);
      a.weights_layout = layout_in_place(a);
      expect_correct_in_all_forms(problem);
      if (HasFailure()) return;
    }
  }
}

// Two images of windows of 3x3, as many as their pixels.
Conv2dProblem windows_problem(uint64_t seed, uint32_t height, uint32_t width, uint32_t output_c) {
  Random random(seed);
  Conv2dProblem problem;
  problem.seed = seed;
  Conv2dArgs& a = problem.args;
  a.batch = 2;
  a.groups = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  a.input_h = height;
  a.input_w = width;
  a.input_c = 4;
  a.output_c = output_c;
  a.kernel_h = a.kernel_w = 3;
  a.pad_top = a.pad_left = 1;
  a.weights_layout = kLayout_o16k4;
  EXPECT_TRUE(testing::set_output_extents(&a, 1, 1));
  testing::draw_conv2d_scalars(random, &a);
  a.input_zero_point = dtype_min(a.input_dtype);
  testing::fill_conv2d_problem(random, &problem);
  return problem;
}

// Rows that several blocks share, in images of several of them.
TEST_P(Conv2dVariant, EqualsTheOracleOnWideImages) {
  for (const uint32_t width : {241u, 300u, 500u}) {
    expect_correct_in_all_forms(windows_problem(2100 + width, 3, width, 24));
    if (HasFailure()) return;
  }
}

// Blocks of several rows of output: tiles of their windows with every rest, of two and four blocks of
// channels.
TEST_P(Conv2dVariant, EqualsTheOracleOnBlocksOfWindowsWithEveryRest) {
  for (const uint32_t output_c : {32u, 48u, 64u, 100u}) {
    for (uint32_t height = 2; height <= 3; ++height) {
      for (uint32_t width = 3; width <= 11; ++width) {
        expect_correct_in_all_forms(
            windows_problem(2600 + output_c * 100 + height * 20 + width, height, width, output_c));
        if (HasFailure()) return;
      }
    }
  }
}

// Where windows are pixels: `width` of them in a row.
Conv2dProblem pixels_problem(uint64_t seed, uint32_t width, const std::vector<uint32_t>& input_c,
                             const std::vector<uint32_t>& output_c) {
  Random random(seed);
  Conv2dProblem problem;
  problem.seed = seed;
  Conv2dArgs& a = problem.args;
  a.batch = a.groups = a.input_h = a.kernel_h = a.kernel_w = 1;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  a.input_w = width;
  a.input_c = random.pick(input_c);
  a.output_c = random.pick(output_c);
  a.weights_layout = kLayout_o16k4;
  EXPECT_TRUE(testing::set_output_extents(&a, 0, 0));
  testing::draw_conv2d_scalars(random, &a);
  a.input_zero_point = dtype_min(a.input_dtype);
  testing::fill_conv2d_problem(random, &problem);
  return problem;
}

// As many as make runs of every kind, and tiles with every rest.
TEST_P(Conv2dVariant, EqualsTheOracleOnRunsOfPixels) {
  std::vector<uint32_t> widths = {121, 133, 181, 196, 245};
  for (uint32_t width = 31; width <= 67; ++width) widths.push_back(width);
  uint64_t seed = 1900;
  for (const uint32_t width : widths) {
    const Conv2dProblem problem = pixels_problem(++seed, width, {12, 64, 68, 160, 260}, {8, 16, 48, 80, 544});
    expect_correct_in_all_forms(problem);
    if (HasFailure()) return;
  }
}

// Layers as most networks have them: outputs from the lowest value of their dtype on, as after a ReLU, or
// around its middle, up to its ends; bands of windows whose rows are tiles of 16 or 12, the last of which
// begins among those that are done, or of neither; short products of pixels, and last blocks of few channels.
TEST_P(Conv2dVariant, EqualsTheOracleWhereOutputsFillTheDtype) {
  struct Layer {
    uint32_t height, width, input_c, output_c, kernel;
  };
  const Layer layers[] = {{12, 16, 16, 16, 3}, {7, 32, 16, 16, 3},  {8, 24, 16, 16, 3},  {9, 23, 12, 16, 3},
                          {9, 31, 8, 16, 3},   {9, 19, 8, 16, 3},   {20, 31, 16, 96, 1}, {9, 20, 32, 16, 1},
                          {11, 17, 24, 24, 1}, {11, 17, 24, 40, 1}, {5, 61, 96, 20, 1},  {9, 96, 16, 48, 1},
                          {8, 30, 64, 72, 1}};
  uint64_t seed = 2400;
  for (const Layer& layer : layers) {
    for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
      for (const FloatEpilogue epilogue : {FloatEpilogue::kPlain, FloatEpilogue::kSigned}) {
        Random random(++seed);
        Conv2dProblem problem;
        problem.seed = seed;
        Conv2dArgs& a = problem.args;
        a.batch = a.groups = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
        a.input_h = layer.height;
        a.input_w = layer.width;
        a.input_c = layer.input_c;
        a.output_c = layer.output_c;
        a.kernel_h = a.kernel_w = layer.kernel;
        a.pad_top = a.pad_left = layer.kernel / 2;
        ASSERT_TRUE(testing::set_output_extents(&a, a.pad_top, a.pad_left));
        testing::draw_conv2d_scalars(random, &a);
        a.contract = Contract::kTfl2;
        a.input_dtype = a.output_dtype = dtype;
        a.input_zero_point = a.pad_value = a.clamp_min = dtype_min(dtype);
        a.clamp_max = a.clamp_min + 255;
        a.output_zero_point = epilogue == FloatEpilogue::kPlain ? a.clamp_min : a.clamp_min + 120;
        a.weights_zero_point = seed % 3 == 0 ? 60 : 0;
        a.weights_layout = layout_in_place(a);
        a.num_weight_rests = static_cast<uint8_t>(seed % 3 == 1 && must_add_rests() ? 1 + seed % 4 : 0);
        // Until all channels have that form.
        do {
          testing::fill_conv2d_problem(random, &problem);
        } while (a.float_epilogue != epilogue || *std::ranges::min_element(problem.float_scale) < 0.0f);
        EXPECT_EQ(expect_correct(problem), must_take(a)) << problem.text();
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(Conv2dVariant, EqualsTheOracleOnPixelsOfEightChannels) {
  uint64_t seed = 2000;
  for (uint32_t width = 1; width <= 60; ++width) {
    const Conv2dProblem problem = pixels_problem(++seed, width, {8}, {16, 16, 20, 48});
    expect_correct_in_all_forms(problem);
    if (HasFailure()) return;
  }
}

TEST_P(Conv2dVariant, EveryScheduleGivesTheSameBytes) {
  for (uint64_t seed = 1800; seed < 1860 && !HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    testing::draw_conv2d_geometry(random, &a);
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 12));
    a.output_c = static_cast<uint32_t>(random.integer(1, 100));
    a.input_h = static_cast<uint32_t>(random.integer(a.kernel_h * a.dilation_h, 24));
    a.input_w = static_cast<uint32_t>(random.integer(a.kernel_w * a.dilation_w, 24));
    ASSERT_TRUE(testing::set_output_extents(&a, a.pad_top, a.pad_left));
    a.weights_layout = layout_in_place(a);
    testing::draw_conv2d_scalars(random, &a);
    a.input_zero_point = dtype_min(a.input_dtype);
    testing::fill_conv2d_problem(random, &problem);
    // Floats that are not proved reveal tiles in which only some channels have float requantisation.
    if (std::count(problem.float_scale.begin(), problem.float_scale.end(), -1.0f) > 0) {
      a.float_epilogue = FloatEpilogue::kNone;
      problem.form_expected = problem.expected;
    }
    for (const uint64_t schedule : testing::schedules_of(*GetParam())) {
      problem.args.schedule = schedule;
      EXPECT_TRUE(expect_correct(problem, true)) << schedule;
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace qplan::conv2d_test
