// The kernels in general registers (kernels/scalar), which no session of this machine chooses: on it they are
// compiled from plain C; compiled for an Arm processor this file tests the DSP instructions.
#include <gtest/gtest.h>

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

namespace qplan::scalar_test {
namespace {

using testing::Bias;
using testing::Buffer;
using testing::Conv2dProblem;
using testing::OutputBuffer;
using testing::Random;
using testing::Values;

#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FP)
constexpr bool kHasFloatEpilogue = true;
#else
constexpr bool kHasFloatEpilogue = false;
#endif

constexpr KernelVariant kConv2d = QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_dsp, QPLAN_ISA_DSP);
constexpr KernelVariant kDepthwise =
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_dsp, QPLAN_ISA_DSP);
constexpr KernelVariant kFullyConnected =
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_dsp, QPLAN_ISA_DSP);
// Each problem that the smaller variant of a kernel accepts is one of its, too.
constexpr KernelVariant kConv2dForm = QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_dsp_form, QPLAN_ISA_DSP);
constexpr KernelVariant kDepthwiseForm =
    QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_dsp_form, QPLAN_ISA_DSP);
constexpr KernelVariant kFullyConnectedForm =
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_dsp_form, QPLAN_ISA_DSP);

const KernelVariant& form_of(const KernelVariant& variant) {
  return &variant == &kConv2d ? kConv2dForm : &variant == &kDepthwise ? kDepthwiseForm : kFullyConnectedForm;
}
bool has_form_alone(const KernelVariant& variant, const Conv2dArgs& args) {
  return (&variant == &kConv2d || &variant == &kDepthwise) && form_of(variant).accepts(&args);
}

// Returns whether the smaller variant has computed it, too.
bool expect_correct(const KernelVariant& variant, const Conv2dProblem& problem, bool in_pieces) {
  const std::vector<int32_t>& expected = kHasFloatEpilogue ? problem.form_expected : problem.expected;
  EXPECT_TRUE(testing::expect_outputs(variant, problem, expected, in_pieces)) << problem.text();
  const testing::Conv2dRun run(problem);
  if (!has_form_alone(variant, run.args())) return false;
  EXPECT_TRUE(testing::expect_outputs(form_of(variant), problem, expected, in_pieces)) << problem.text();
  return true;
}

// Draws what is not set yet. Half of the problems are what packers make: zero points that are zero, outputs
// from the least value of their dtype on.
void draw(Random& random, bool is_usual, Conv2dProblem* problem) {
  Conv2dArgs& a = problem->args;
  testing::draw_conv2d_scalars(random, &a);
  if (is_usual) {
    a.input_zero_point = a.weights_zero_point = 0;
    a.clamp_min = a.output_zero_point = dtype_min(a.output_dtype);
    a.clamp_max = dtype_max(a.output_dtype);
  }
  testing::fill_conv2d_problem(random, problem);
}

// Halves hold no -128 beside a negative weight: weights without it, as most trainers make them, in that
// layout.
void use_halves(uint16_t halves, Conv2dProblem* problem) {
  Conv2dArgs& a = problem->args;
  a.weights_layout = halves;
  for (int8_t& w : problem->weights) w = w == INT8_MIN ? int8_t{-127} : w;
  problem->expected.clear();
  problem->form_expected.clear();
  for (const double sum : testing::conv2d_sums(*problem)) {
    const size_t o = problem->expected.size() % a.output_c;
    const auto wrapped = static_cast<int64_t>(testing::wrap32(static_cast<int64_t>(sum)));
    problem->expected.push_back(testing::exact_output(a, *problem, wrapped, o));
    problem->form_expected.push_back(testing::exact_form_output(a, *problem, wrapped, o));
  }
}

// As often as cores with a floating point unit meet it: the float epilogue that most layers of networks
// have.
void draw_with_plain_form(Random& random, Conv2dProblem* problem) {
  do {
    draw(random, true, problem);
  } while (problem->args.float_epilogue != FloatEpilogue::kPlain);
}

// What <family>_dsp_form computes, but for the layout and the number of channels.
void draw_with_form_alone(Random& random, bool may_be_signed, Conv2dProblem* problem) {
  Conv2dArgs& a = problem->args;
  for (;;) {
    testing::draw_conv2d_scalars(random, &a);
    a.input_dtype = a.output_dtype = Dtype::kS8;
    a.input_zero_point = a.weights_zero_point = 0;
    a.pad_value = static_cast<int8_t>(a.pad_value);
    a.output_zero_point = a.clamp_min = -128;
    a.clamp_max = 127;
    if (may_be_signed && random.chance(0.5))
      a.output_zero_point = static_cast<int32_t>(random.integer(-20, 20));
    testing::fill_conv2d_problem(random, problem);
    bool has_all = problem->args.float_epilogue == FloatEpilogue::kPlain ||
                   (may_be_signed && problem->args.float_epilogue == FloatEpilogue::kSigned);
    has_all = has_all && (a.float_epilogue == FloatEpilogue::kSigned || a.output_zero_point == -128);
    for (const float scale : problem->float_scale) has_all = has_all && scale >= 0.0f;
    if (has_all) return;
  }
}

TEST(ScalarConv2d, FormEqualsTheOracle) {
  for (uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 20));
    a.output_c = 4 * static_cast<uint32_t>(random.integer(1, 10));
    testing::draw_conv2d_geometry(random, &a);
    if (a.kernel_w != 1 && a.dilation_w != 1) {
      a.dilation_w = 1;
      if (!testing::set_output_extents(&a, 0, 0)) continue;
    }
    a.weights_layout = kLayout_o2r4;
    draw_with_form_alone(random, false, &problem);
    use_halves(kLayout_o2h4, &problem);
    EXPECT_TRUE(expect_correct(kConv2d, problem, seed % 3 == 0)) << problem.text();
  }
}

TEST(ScalarDepthwiseConv2d, FormEqualsTheOracle) {
  for (uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = static_cast<uint32_t>(random.integer(1, 2));
    a.input_c = a.output_c = a.groups = 4 * static_cast<uint32_t>(random.integer(1, 5));
    a.input_h = static_cast<uint32_t>(random.integer(1, 12));
    a.input_w = static_cast<uint32_t>(random.integer(1, 17));
    a.kernel_h = a.kernel_w = 3;
    a.dilation_h = a.dilation_w = 1;
    a.stride_h = static_cast<uint32_t>(random.integer(1, 3));
    a.stride_w = static_cast<uint32_t>(random.integer(1, 2));
    a.pad_top = a.pad_left = static_cast<uint32_t>(random.integer(0, 3));
    if (!testing::set_output_extents(&a, a.pad_top, a.pad_left)) continue;
    a.weights_layout = kLayout_hwo16;
    draw_with_form_alone(random, false, &problem);
    EXPECT_TRUE(expect_correct(kDepthwise, problem, seed % 3 == 0)) << problem.text();
  }
}

TEST(ScalarConv2d, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    if (seed % 7 == 0) problem.values = Values::kOnlyEnds;
    if (seed % 11 == 0) problem.bias_kind = Bias::kWrap;
    Conv2dArgs& a = problem.args;
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 20));
    a.output_c = static_cast<uint32_t>(random.integer(1, 40));
    testing::draw_conv2d_geometry(random, &a);
    if (a.kernel_w != 1 && a.dilation_w != 1) {
      a.dilation_w = 1;
      if (!testing::set_output_extents(&a, 0, 0)) continue;
    }
    a.weights_layout = kLayout_o2r4;
    draw(random, seed % 2 == 0, &problem);
    if (random.chance(0.7)) use_halves(kLayout_o2h4, &problem);
    expect_correct(kConv2d, problem, seed % 3 == 0);
  }
}

TEST(ScalarConv2d, EqualsTheOracleOnLayersOfNetworks) {
  struct Layer {
    uint32_t height, width, input_c, output_c, kernel_h, kernel_w, stride, pad_top, pad_left;
  };
  const std::vector<Layer> layers = {
      {25, 5, 64, 64, 1, 1, 1, 0, 0}, {49, 10, 1, 64, 10, 4, 2, 4, 1}, {16, 16, 16, 16, 3, 3, 1, 1, 1},
      {9, 9, 32, 64, 3, 3, 2, 0, 0},  {8, 8, 16, 32, 1, 1, 2, 0, 0},   {24, 24, 1, 8, 3, 3, 2, 0, 0},
      {12, 12, 3, 16, 3, 3, 1, 1, 1}, {3, 3, 256, 256, 1, 1, 1, 0, 0}, {1, 1, 256, 2, 1, 1, 1, 0, 0},
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
    a.weights_layout = kLayout_o2r4;
    draw_with_plain_form(random, &problem);
    expect_correct(kConv2d, problem, false);
    use_halves(kLayout_o2h4, &problem);
    expect_correct(kConv2d, problem, false);
    // What precedes an addition has outputs of both signs.
    do {
      draw(random, false, &problem);
      a.input_zero_point = a.weights_zero_point = 0;
    } while (problem.args.float_epilogue != FloatEpilogue::kSigned);
    use_halves(kLayout_o2h4, &problem);
    expect_correct(kConv2d, problem, false);
  }
}

// Four channels at a time, whose outputs have all values of their dtype: every number of quads, pixels of the
// last tile and channels after the last four.
TEST(ScalarConv2d, EqualsTheOracleForOutputsOfTheWholeRange) {
  uint64_t seed = 7000;
  uint32_t num_forms = 0;
  for (const FloatEpilogue form : {FloatEpilogue::kPlain, FloatEpilogue::kSigned}) {
    for (uint32_t input_c = 1; input_c <= 37; input_c += 3) {
      for (uint32_t output_c = 2; output_c <= 20; output_c += 3) {
        Random random(++seed);
        Conv2dProblem problem;
        problem.seed = seed;
        Conv2dArgs& a = problem.args;
        a.batch = a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w =
            1;
        a.input_h = 2;
        a.input_w = 1 + input_c % 3;
        a.input_c = input_c;
        a.output_c = output_c;
        ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
        do {
          a.weights_layout = kLayout_o2r4;
          testing::draw_conv2d_scalars(random, &a);
          a.input_zero_point = a.weights_zero_point = 0;
          a.clamp_min = dtype_min(a.output_dtype);
          a.clamp_max = dtype_max(a.output_dtype);
          if (form == FloatEpilogue::kPlain) a.output_zero_point = a.clamp_min;
          testing::fill_conv2d_problem(random, &problem);
        } while (a.float_epilogue != form);
        use_halves(kLayout_o2h4, &problem);
        num_forms += expect_correct(kConv2d, problem, seed % 2 == 0) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_forms, 3u) << "problems of conv2d_dsp_form";
}

// What follows a tap in the input is read with it, but nothing beyond the input.
TEST(ScalarConv2d, ReadsNothingBeyondItsInput) {
  for (uint32_t input_c = 1; input_c <= 7; ++input_c) {
    Random random(input_c);
    Conv2dProblem problem;
    problem.seed = input_c;
    Conv2dArgs& a = problem.args;
    a.batch = a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w = 1;
    a.input_h = 2;
    a.input_w = 5;
    a.input_c = input_c;
    a.output_c = 5;
    ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
    a.weights_layout = kLayout_o2r4;
    draw(random, true, &problem);
    expect_correct(kConv2d, problem, false);
  }
}

// The output takes the place of the input.
void expect_correct_in_place(const KernelVariant& variant, const Conv2dProblem& problem, bool has_form) {
  testing::Conv2dRun run(problem);
  Conv2dArgs args = run.args();
  ASSERT_EQ(problem.input.size(), problem.num_outputs());
  std::memcpy(args.output, args.input, problem.input.size());
  args.input = args.output;
  testing::run_variant(variant, &args);
  EXPECT_EQ(run.output(), has_form ? problem.form_expected : problem.expected) << problem.text();
  EXPECT_TRUE(run.guards_intact()) << problem.text();
  if (has_form_alone(variant, args)) expect_correct_in_place(form_of(variant), problem, has_form);
}

TEST(ScalarConv2d, PixelsTakeThePlaceOfTheirInputs) {
  constexpr KernelVariant kReference = QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_ref, QPLAN_ISA_REFERENCE);
  for (uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = static_cast<uint32_t>(random.integer(1, 2));
    a.groups = a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = a.kernel_h = a.kernel_w = 1;
    a.input_h = static_cast<uint32_t>(random.integer(1, 5));
    a.input_w = static_cast<uint32_t>(random.integer(1, 7));
    a.input_c = a.output_c = static_cast<uint32_t>(random.integer(1, 40));
    ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
    a.weights_layout = kLayout_o2r4;
    draw(random, seed % 2 == 0, &problem);
    if (random.chance(0.7)) use_halves(kLayout_o2h4, &problem);
    expect_correct_in_place(kConv2d, problem, kHasFloatEpilogue);
    expect_correct_in_place(kReference, problem, false);
  }
}

// The output is written over the beginning of a larger input.
void expect_correct_over_input(const KernelVariant& variant, const Conv2dProblem& problem, bool has_form) {
  testing::Conv2dRun run(problem);
  Conv2dArgs args = run.args();
  testing::OutputBuffer<uint8_t> memory(problem.input.size(), problem.seed % 5);
  std::memcpy(memory.data(), args.input, problem.input.size());
  args.input = args.output = memory.data();
  ASSERT_TRUE(variant.accepts(&args)) << problem.text();
  testing::run_variant_in_pieces(variant, &args, problem.seed, true);
  std::memcpy(run.args().output, memory.data(), problem.num_outputs());
  EXPECT_EQ(run.output(), has_form ? problem.form_expected : problem.expected) << problem.text();
  EXPECT_TRUE(memory.guards_intact()) << problem.text();
}

TEST(ScalarConv2d, RowsAreWrittenOverTheirLargerInput) {
  constexpr KernelVariant kReference = QPLAN_VARIANT_ROW(Conv2dArgs, conv2d_ref, QPLAN_ISA_REFERENCE);
  for (uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    testing::draw_overwriting_geometry(random, &a);
    a.weights_layout = kLayout_o2r4;
    draw(random, seed % 2 == 0, &problem);
    if (random.chance(0.7)) use_halves(kLayout_o2h4, &problem);
    expect_correct_over_input(kConv2d, problem, kHasFloatEpilogue);
    expect_correct_over_input(kReference, problem, false);
  }
}

TEST(ScalarDepthwiseConv2d, ImagesTakeThePlaceOfTheirInputs) {
  constexpr KernelVariant kReference =
      QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_ref, QPLAN_ISA_REFERENCE);
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
    a.input_c = a.output_c = a.groups = static_cast<uint32_t>(random.integer(1, 13));
    a.pad_top = a.pad_left = 1;
    ASSERT_TRUE(testing::set_output_extents(&a, 1, 1));
    a.weights_layout = kLayout_hwo16;
    draw(random, seed % 2 == 0, &problem);
    expect_correct_in_place(kDepthwise, problem, kHasFloatEpilogue);
    expect_correct_in_place(kReference, problem, false);
  }
}

// A sum of inputs beyond int32, which the zero point of weights meets: sum 255 * (1 - 1) + 5, modulo 2^32.
// Under -fsanitize=undefined, a sum that is not modulo 2^32 ends the test.
TEST(ScalarConv2d, SumsOfLargeWindowsWrap) {
  Conv2dArgs a;
  a.batch = a.input_w = a.output_h = a.output_w = a.kernel_w = 1;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = a.groups = 1;
  a.input_h = a.kernel_h = 129;
  a.input_c = 1 << 16;
  a.output_c = 2;
  a.weights_zero_point = 1;
  a.clamp_max = 255;
  a.input_dtype = a.output_dtype = Dtype::kU8;
  a.weights_layout = kLayout_o2r4;
  const size_t num_inputs = size_t{a.kernel_h} * a.input_c;
  const Buffer<uint8_t> input(std::vector<uint8_t>(num_inputs, 255));
  const Buffer<int8_t> weights(std::vector<int8_t>(2 * num_inputs, 1));
  const std::vector<int32_t> bias = {5, 6}, multiplier = {1 << 30, 1 << 30}, shift = {1, 1};
  OutputBuffer<uint8_t> output(2);
  a.input = input.data();
  a.weights = weights.data();
  a.bias = bias.data();
  a.multiplier = multiplier.data();
  a.shift = shift.data();
  a.output = output.data();
  ASSERT_TRUE(kConv2d.accepts(&a));
  testing::run_variant(kConv2d, &a);
  EXPECT_EQ(output.values(), (std::vector<uint8_t>{5, 6}));
}

// Outputs below as much padding as a window has rows are written over rows that are yet to be read.
TEST(ScalarDepthwiseConv2d, ImagesBelowMuchPaddingInPlaceAreLeftToTheReference) {
  constexpr KernelVariant kReference =
      QPLAN_VARIANT_ROW(DepthwiseConv2dArgs, depthwise_conv2d_ref, QPLAN_ISA_REFERENCE);
  for (uint64_t seed = 1; seed <= 120 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = static_cast<uint32_t>(random.integer(1, 2));
    a.dilation_h = a.dilation_w = a.stride_h = a.stride_w = 1;
    a.kernel_h = a.kernel_w = 3;
    a.input_h = a.output_h = static_cast<uint32_t>(random.integer(1, 30));
    a.input_w = a.output_w = static_cast<uint32_t>(random.integer(1, 40));
    a.input_c = a.output_c = a.groups = static_cast<uint32_t>(random.integer(1, 13));
    a.pad_top = static_cast<uint32_t>(random.integer(0, 5));
    a.pad_left = 1;
    a.weights_layout = kLayout_hwo16;
    draw(random, seed % 2 == 0, &problem);
    expect_correct_in_place(kReference, problem, false);
    const testing::Conv2dRun run(problem);
    Conv2dArgs args = run.args();
    EXPECT_TRUE(kDepthwise.accepts(&args)) << problem.text();
    args.input = args.output;
    if (kDepthwise.accepts(&args)) expect_correct_in_place(kDepthwise, problem, kHasFloatEpilogue);
    const Refusal expected = a.pad_top < 3 ? Refusal::kNone : Refusal::kWindow;
    EXPECT_EQ(kDepthwise.refusal(&args), expected) << problem.text();
  }
}

TEST(ScalarDepthwiseConv2d, LeavesOtherWindowsInPlaceToTheReference) {
  uint8_t bytes[64] = {};
  DepthwiseConv2dArgs a;
  a.batch = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  a.input_h = a.input_w = a.output_h = a.output_w = 4;
  a.input_c = a.output_c = a.groups = 4;
  a.kernel_h = a.kernel_w = 5;
  a.pad_top = a.pad_left = 2;
  a.weights_layout = kLayout_hwo16;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kNone);
  a.input = a.output = bytes;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kWindow);
  a.kernel_h = a.kernel_w = 3;
  a.pad_top = a.pad_left = 1;
  EXPECT_EQ(kDepthwise.refusal(&a), Refusal::kNone);
}

TEST(ScalarConv2d, RefusesWhatItDoesNotCompute) {
  Conv2dArgs a;
  a.batch = a.input_h = a.input_w = a.output_h = a.output_w = a.kernel_h = a.kernel_w = 1;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = a.groups = 1;
  a.input_c = a.output_c = 4;
  a.weights_layout = kLayout_o2r4;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kNone);
  a.weights_layout = kLayout_ohwi;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kLayout);
  a.weights_layout = kLayout_o2r4;
  a.groups = 2;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kGroups);
  a.groups = 1;
  a.kernel_w = a.dilation_w = 2;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kWindow);
  a.kernel_w = 1;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kNone);
  a.contract = Contract::kAcc32;
  EXPECT_EQ(kConv2d.refusal(&a), Refusal::kContract);
}

TEST(ScalarDepthwiseConv2d, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    if (seed % 7 == 0) problem.values = Values::kOnlyEnds;
    Conv2dArgs& a = problem.args;
    a.input_c = a.output_c = a.groups = static_cast<uint32_t>(random.integer(1, 20));
    testing::draw_conv2d_geometry(random, &a);
    if (random.chance(0.7)) {
      a.kernel_h = a.kernel_w = 3;
      a.dilation_h = a.dilation_w = 1;
      a.stride_h = static_cast<uint32_t>(random.integer(1, 4));
      a.stride_w = static_cast<uint32_t>(random.integer(1, 2));
      a.input_w = static_cast<uint32_t>(random.integer(1, 17));
      const auto pad = static_cast<uint32_t>(random.integer(0, 3));
      if (!testing::set_output_extents(&a, pad, pad)) continue;
    }
    a.weights_layout = kLayout_hwo16;
    draw(random, seed % 2 == 0, &problem);
    expect_correct(kDepthwise, problem, seed % 3 == 0);
  }
}

// The outputs that most layers of networks have, in rows of every width.
TEST(ScalarDepthwiseConv2d, EqualsTheOracleForRowsOfEveryWidth) {
  for (uint32_t width = 1; width <= 13 && !::testing::Test::HasFailure(); ++width) {
    for (const uint32_t stride : {1u, 2u}) {
      Random random(width);
      Conv2dProblem problem;
      problem.seed = width;
      Conv2dArgs& a = problem.args;
      a.batch = a.dilation_h = a.dilation_w = 1;
      a.input_c = a.output_c = a.groups = width % 2 == 0 ? 8 : 7;
      a.input_h = 5;
      a.input_w = width;
      a.kernel_h = a.kernel_w = 3;
      a.stride_h = a.stride_w = stride;
      a.pad_top = a.pad_left = width % 3 == 0 ? 0 : 1;
      if (!testing::set_output_extents(&a, 1, 1)) continue;
      a.weights_layout = kLayout_hwo16;
      draw_with_plain_form(random, &problem);
      expect_correct(kDepthwise, problem, false);
    }
  }
}

TEST(ScalarFullyConnected, EqualsTheOracleForRandomProblems) {
  uint32_t num_forms = 0;
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
    c.input_c = static_cast<uint32_t>(random.integer(1, 70));
    c.output_c = static_cast<uint32_t>(random.integer(1, 40));
    ASSERT_TRUE(testing::set_output_extents(&c, 0, 0));
    const bool has_form = seed % 5 == 0;
    if (has_form) {
      c.input_c = c.input_c / 4 * 4 + 4;
      c.output_c = c.output_c / 4 * 4 + 4;
      ASSERT_TRUE(testing::set_output_extents(&c, 0, 0));
    }
    c.weights_layout = kLayout_o4k4;
    if (has_form) {
      draw_with_form_alone(random, true, &problem);
    } else {
      seed % 4 == 0 ? draw_with_plain_form(random, &problem) : draw(random, seed % 2 == 0, &problem);
    }
    if (has_form || random.chance(0.7)) use_halves(kLayout_o4h4, &problem);
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
    EXPECT_EQ(testing::from_bytes(output.values(), a.output_dtype),
              kHasFloatEpilogue ? problem.form_expected : problem.expected)
        << problem.text();
    if (kFullyConnectedForm.accepts(&a)) {
      ++num_forms;
      OutputBuffer<uint8_t> again(problem.num_outputs(), seed % 3);
      a.output = again.data();
      testing::run_variant_in_pieces(kFullyConnectedForm, &a, seed);
      EXPECT_EQ(again.values(), output.values()) << problem.text();
      EXPECT_TRUE(again.guards_intact());
    }
    EXPECT_TRUE(output.guards_intact());
  }
  EXPECT_GE(num_forms, 20u) << "problems of fully_connected_dsp_form";
}

TEST(ScalarFullyConnected, SumsOfLongRowsWrap) {
  testing::expect_sums_of_long_rows_wrap(kFullyConnected, kLayout_o4k4);
}

}  // namespace
}  // namespace qplan::scalar_test
