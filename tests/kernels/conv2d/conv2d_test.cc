// Every variant of conv2d against an oracle in double precision.
#include "kernels/conv2d/conv2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/kernels/conv2d/conv2d_variant.h"
#include "tests/kernels/evex/evexvnni.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_test {
namespace {

using testing::Bias;
using testing::Conv2dProblem;
using testing::Conv2dRun;
using testing::Random;
using testing::Values;
INSTANTIATE_TEST_SUITE_P(All, Conv2dVariant, ::testing::ValuesIn(testing::variants_of(kConv2dFamily)),
                         testing::variant_test_name);
#if defined(QPLAN_TEST_EVEX)
INSTANTIATE_TEST_SUITE_P(Evex, Conv2dVariant, ::testing::Values(&testing::kConv2dEvexVnni),
                         testing::variant_test_name);
#endif

const std::vector<uint16_t> kLayouts = {kLayout_ohwi,  kLayout_o16k4, kLayout_o16r4, kLayout_o16i4,
                                        kLayout_o16z4, kLayout_o16r8, kLayout_o16i8, kLayout_o16z8};
const std::vector<uint32_t> kChannels = {1, 3, 4, 15, 16, 17, 31, 32, 33, 48, 64, 65};

// Mostly the one that the vector variants read. Geometry and contract are known.
void draw_layout(Random& random, Conv2dArgs* a) {
  a->weights_layout = random.pick(kLayouts);
  if (random.chance(0.7)) {
    a->weights_layout = random.chance(0.5) ? layout_in_place(*a) : layout_of_eights(*a);
  }
}

// Channels and groups of a random problem.
void draw_channels(Random& random, Conv2dArgs* a) {
  const std::vector<uint32_t> groups = {1, 1, 1, 2, 3, 5};
  a->groups = random.pick(groups);
  a->input_c = a->groups * static_cast<uint32_t>(random.integer(1, 20));
  a->output_c = a->groups * static_cast<uint32_t>(random.integer(1, 20));
}

Conv2dProblem random_problem(uint64_t seed, Values values = Values::kWithEnds, Bias bias = Bias::kSmall,
                             bool acc32 = false) {
  Random random(seed);
  Conv2dProblem problem;
  problem.seed = seed;
  problem.values = values;
  problem.bias_kind = bias;
  draw_channels(random, &problem.args);
  testing::draw_conv2d_geometry(random, &problem.args);
  testing::draw_conv2d_scalars(random, &problem.args);
  if (random.chance(0.3)) problem.args.input_zero_point = dtype_middle(problem.args.input_dtype);
  if (acc32) testing::use_acc32(&problem.args);
  draw_layout(random, &problem.args);
  testing::fill_conv2d_problem(random, &problem);
  return problem;
}

TEST_P(Conv2dVariant, EqualsTheOracleForRandomProblems) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed)
    accepted += expect_correct(random_problem(seed));
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

// The reference reads all of them, at every geometry; random problems mostly have the one of their taps.
TEST_P(Conv2dVariant, EqualsTheOracleInEveryLayout) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 80 && !HasFailure(); ++seed) {
    for (const uint16_t layout : kLayouts) {
      Conv2dProblem problem = random_problem(8000 + seed);
      problem.args.weights_layout = layout;
      accepted += expect_correct(problem);
    }
  }
  EXPECT_TRUE(accepted == 80 * kLayouts.size() || GetParam()->isa != QPLAN_ISA_REFERENCE) << accepted;
}

// Groups of whole blocks of channels.
TEST_P(Conv2dVariant, EqualsTheOracleForGroups) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    Random random(7000 + seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.groups = static_cast<uint32_t>(random.integer(2, 5));
    a.input_c = a.groups * random.pick<uint32_t>({1, 2, 3, 4, 7, 8, 16, 17, 32});
    a.output_c = a.groups * random.pick<uint32_t>({16, 32, 48, 80});
    testing::draw_conv2d_geometry(random, &a);
    draw_layout(random, &a);
    testing::draw_conv2d_scalars(random, &a);
    testing::fill_conv2d_problem(random, &problem);
    accepted += expect_correct(problem);
  }
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

TEST_P(Conv2dVariant, EqualsTheOracleForChannelsAroundTheVectorWidth) {
  uint64_t seed = 1000;
  for (const uint32_t input_c : kChannels) {
    for (const uint32_t output_c : kChannels) {
      Random random(++seed);
      Conv2dProblem problem;
      problem.seed = seed;
      Conv2dArgs& a = problem.args;
      a.batch = 1;
      a.groups = a.dilation_h = a.dilation_w = 1;
      a.input_c = input_c;
      a.output_c = output_c;
      // Alternately 1x1 on a row of 1 to 20 pixels and 3x3 with padding.
      const bool pointwise = seed % 2 == 0;
      a.kernel_h = a.kernel_w = pointwise ? 1 : 3;
      a.pad_top = a.pad_left = pointwise ? 0 : 1;
      a.input_h = pointwise ? 1 : 4;
      a.input_w = static_cast<uint32_t>(random.integer(pointwise ? 1 : 3, pointwise ? 20 : 6));
      a.stride_h = a.stride_w = pointwise || random.chance(0.5) ? 1 : 2;
      ASSERT_TRUE(testing::set_output_extents(&a, a.pad_top, a.pad_left));
      draw_layout(random, &a);
      testing::draw_conv2d_scalars(random, &a);
      testing::fill_conv2d_problem(random, &problem);
      expect_correct(problem);
      if (HasFailure()) return;
    }
  }
}

// Windows of all kinds of taps: rows of whole groups of four and others, pixels, columns.
TEST_P(Conv2dVariant, ReadsTheLayoutsOfItsTapsAlone) {
  struct Layer {
    uint32_t size, input_c, output_c, kernel, stride, dilation, groups;
    uint16_t layout;
  };
  const std::vector<Layer> layers = {
      {20, 4, 16, 3, 1, 1, 1, kLayout_o16k4}, {20, 3, 17, 3, 1, 1, 1, kLayout_o16r4},
      {20, 3, 16, 1, 1, 1, 1, kLayout_o16r4}, {20, 6, 16, 3, 1, 2, 1, kLayout_o16i4},
      {20, 6, 32, 3, 1, 1, 2, kLayout_o16i4}, {40, 3, 8, 3, 2, 1, 1, kLayout_o16z4},
  };
  for (const Layer& layer : layers) {
    Conv2dArgs a;
    a.batch = 1;
    a.input_h = a.input_w = layer.size;
    a.input_c = layer.input_c;
    a.output_c = layer.output_c;
    a.kernel_h = a.kernel_w = layer.kernel;
    a.stride_h = a.stride_w = layer.stride;
    a.dilation_h = a.dilation_w = layer.dilation;
    a.groups = layer.groups;
    a.input_dtype = a.output_dtype = Dtype::kU8;
    ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
    EXPECT_EQ(layout_in_place(a), layer.layout);
    const bool reads_all = GetParam()->isa == QPLAN_ISA_REFERENCE;
    const bool reads_eights = GetParam()->isa == QPLAN_ISA_I8MM;
    for (const uint16_t layout : kLayouts) {
      a.weights_layout = layout;
      const bool is_read =
          reads_all || layout == layer.layout || (reads_eights && layout == layout_of_eights(a));
      EXPECT_EQ(GetParam()->refusal(&a), is_read ? Refusal::kNone : Refusal::kLayout) << layout_name(layout);
    }
  }
}

// The rest of o16k4 is zero, but a plan may say anything there: nothing of it reaches an output.
TEST_P(Conv2dVariant, WhatStandsInTheRestOfTheLayoutDoesNotMatter) {
  const uint32_t kernel_widths[] = {1, 3};
  uint64_t seed = 1700;
  for (const uint32_t kernel_w : kernel_widths) {
    for (const uint32_t input_c : {1u, 3u, 6u}) {
      Random random(++seed);
      Conv2dProblem problem;
      problem.seed = seed;
      Conv2dArgs& a = problem.args;
      a.batch = a.groups = a.kernel_h = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
      a.kernel_w = kernel_w;
      a.input_h = 5;
      a.input_w = 11;
      a.input_c = input_c;
      a.output_c = 16;
      a.weights_layout = kLayout_o16k4;
      ASSERT_TRUE(testing::set_output_extents(&a, 0, 0));
      testing::draw_conv2d_scalars(random, &a);
      a.input_zero_point = dtype_min(a.input_dtype);
      testing::fill_conv2d_problem(random, &problem);
      Conv2dRun run(problem);
      const uint64_t num_k = uint64_t{kernel_w} * input_c, bytes = layout_bytes(kLayout_o16k4, 16, num_k);
      std::vector<int8_t> weights(bytes, 127);
      for (uint64_t o = 0; o < 16; ++o) {
        for (uint64_t k = 0; k < num_k; ++k) {
          const uint64_t at = layout_index(kLayout_o16k4, o, k, 16, num_k);
          weights[at] = run.args().weights[at];
        }
      }
      Conv2dArgs args = run.args();
      args.weights = weights.data();
      const KernelVariant& variant = *GetParam();
      if (!variant.accepts(&args)) continue;
      testing::run_variant(variant, &args);
      const std::vector<int32_t> output = run.output();
      EXPECT_EQ(output, testing::either_expected(testing::expected_of(problem, variant), problem.expected,
                                                 output, variant))
          << problem.text();
    }
  }
}

TEST_P(Conv2dVariant, SaturatesWhereEveryProductIsExtreme) {
  for (uint64_t seed = 2000; seed < 2040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kOnlyEnds));
  }
}

// Two or four products of the largest size fit int16, and not one more.
TEST_P(Conv2dVariant, EqualsTheOracleWhereProductsMeetIn16Bits) {
  for (uint64_t seed = 2100; seed < 2180 && !HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    problem.values = Values::kOnlyEnds;
    problem.largest_weight = seed % 2 == 0 ? 63 : 127;
    Conv2dArgs& a = problem.args;
    testing::draw_conv2d_geometry(random, &a);
    a.groups = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 40));
    a.output_c = static_cast<uint32_t>(random.integer(1, 40));
    testing::draw_conv2d_scalars(random, &a);
    a.input_dtype = Dtype::kS8;
    a.input_zero_point = 0;
    a.pad_value = testing::random_value(random, a.input_dtype, problem.values);
    a.weights_layout = layout_in_place(a);
    testing::fill_conv2d_problem(random, &problem);
    EXPECT_EQ(expect_correct(problem), must_take(a)) << problem.text();
  }
}

// Real networks have such entries on channels whose weights are zero.
// Below 1 no product is beyond int32; kernels have an epilogue for blocks of such scales.
TEST_P(Conv2dVariant, EqualsTheOracleUnderF32eAtScalesAroundOne) {
  uint64_t seed = 2500;
  for (const uint32_t channels : {8u, 16u, 24u, 40u, 64u, 100u}) {
    for (const uint32_t kernel : {1u, 3u}) {
      for (const uint32_t width : {1u, 7u, 40u}) {
        for (const auto& scales : testing::scales_around_one()) {
          Random random(++seed);
          Conv2dProblem problem;
          problem.seed = seed;
          Conv2dArgs& a = problem.args;
          a.input_c = 16;
          a.output_c = channels;
          a.weights_layout = kLayout_o16k4;
          a.kernel_h = a.kernel_w = kernel;
          a.batch = a.groups = a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
          a.input_h = 3;
          a.input_w = width;
          a.pad_top = a.pad_left = kernel / 2;
          ASSERT_TRUE(testing::set_output_extents(&a, kernel / 2, kernel / 2));
          testing::draw_conv2d_scalars(random, &a);
          a.contract = Contract::kF32e;
          a.input_zero_point = dtype_min(a.input_dtype);
          problem.given_scales = scales;
          if (seed % 3 == 0) problem.bias_kind = Bias::kWrap;
          testing::fill_conv2d_problem(random, &problem);
          expect_correct(problem);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(Conv2dVariant, TakesBiasesNear2To30) {
  for (uint64_t seed = 3000; seed < 3040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kLarge));
  }
}

TEST_P(Conv2dVariant, SumsWrapModulo2To32) {
  for (uint64_t seed = 4000; seed < 4040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kWrap));
  }
}

// The sums themselves, as wide as they are, wrapped ones too.
TEST_P(Conv2dVariant, GivesTheAccumulatorsUnderAcc32) {
  uint32_t accepted = 0;
  for (uint64_t seed = 4100; seed < 4200 && !HasFailure(); ++seed) {
    const Bias bias = seed % 3 == 0 ? Bias::kWrap : seed % 3 == 1 ? Bias::kLarge : Bias::kSmall;
    accepted += expect_correct(random_problem(seed, Values::kWithEnds, bias, true));
  }
  EXPECT_TRUE(accepted == 100 || GetParam()->isa != QPLAN_ISA_REFERENCE) << accepted;
}

// Blocks of channels with every shift, dead channels among them, where roundings meet ties and sums leave
// int32 on the way to an output; and blocks with shifts to the left.
TEST_P(Conv2dVariant, RoundsAsTheContractAtEveryShift) {
  for (uint64_t seed = 4300; seed < 4400 && !HasFailure(); ++seed) {
    Random random(seed);
    Conv2dProblem problem;
    problem.seed = seed;
    const std::vector<Bias> biases = {Bias::kSmall, Bias::kLarge, Bias::kWrap};
    problem.bias_kind = random.pick(biases);
    Conv2dArgs& a = problem.args;
    a.groups = 1;
    a.input_c = random.pick<uint32_t>({1, 3, 4, 16});
    a.output_c = random.pick<uint32_t>({16, 32, 40});
    testing::draw_conv2d_geometry(random, &a);
    testing::draw_conv2d_scalars(random, &a);
    a.contract = Contract::kTfl2;
    a.weights_zero_point = 0;
    a.input_zero_point = random.chance(0.5) ? dtype_min(a.input_dtype) : dtype_middle(a.input_dtype);
    a.weights_layout = layout_in_place(a);
    if (random.chance(0.5)) {
      a.clamp_min = random.chance(0.5) ? a.output_zero_point : dtype_min(a.output_dtype);
      a.clamp_max = dtype_max(a.output_dtype);
    }
    testing::fill_conv2d_problem(random, &problem);
    a.float_epilogue = FloatEpilogue::kNone;
    const int64_t least = random.chance(0.8) ? -23 : -31, most = random.chance(0.8) ? -1 : 2;
    for (size_t o = 0; o < a.output_c; ++o) {
      problem.multiplier[o] = random.pick<int32_t>({0, 1, 1 << 30, INT32_MAX, 0x5a827999});
      problem.shift[o] = static_cast<int32_t>(random.chance(0.5) ? random.integer(least, most) : -3);
      if (problem.multiplier[o] == 0 && random.chance(0.5)) problem.shift[o] = random.chance(0.5) ? 0 : -31;
    }
    size_t at = 0;
    for (const double sum : testing::conv2d_sums(problem)) {
      const auto wrapped = static_cast<int64_t>(testing::wrap32(static_cast<int64_t>(sum)));
      problem.expected[at] = testing::exact_output(a, problem, wrapped, at % a.output_c);
      ++at;
    }
    problem.form_expected = problem.expected;
    expect_correct(problem);
  }
}

// All combinations of zero points at the ends of their dtypes, in both signednesses and layouts.
TEST_P(Conv2dVariant, TakesExtremeZeroPoints) {
  uint64_t seed = 5000;
  for (uint32_t ends = 0; ends < 64 && !HasFailure(); ++ends) {
    Random random(++seed);
    Conv2dProblem problem;
    problem.seed = seed;
    problem.values = seed % 3 == 0 ? Values::kOnlyEnds : Values::kWithEnds;
    Conv2dArgs& a = problem.args;
    draw_channels(random, &a);
    testing::draw_conv2d_geometry(random, &a);
    testing::draw_conv2d_scalars(random, &a);
    a.input_dtype = (ends & 1) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.output_dtype = (ends & 2) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.weights_layout = kLayouts[(ends >> 2) & 1];
    a.input_zero_point = a.pad_value = (ends & 8) != 0 ? dtype_max(a.input_dtype) : dtype_min(a.input_dtype);
    a.weights_zero_point = (ends & 16) != 0 ? INT8_MAX : INT8_MIN;
    a.output_zero_point = (ends & 32) != 0 ? dtype_max(a.output_dtype) : dtype_min(a.output_dtype);
    a.clamp_min = dtype_min(a.output_dtype);
    a.clamp_max = dtype_max(a.output_dtype);
    if (a.weights_layout == kLayout_o16k4 && random.chance(0.5)) a.weights_layout = layout_in_place(a);
    testing::fill_conv2d_problem(random, &problem);
    expect_correct(problem);
  }
}

TEST_P(Conv2dVariant, AnyPartitionOfWorkItemsGivesTheSameBytes) {
  for (uint64_t seed = 6000; seed < 6060 && !HasFailure(); ++seed) expect_correct(random_problem(seed), true);
}

// A case small enough to be followed by hand: 1x2x2x1, kernel 2x2, SAME padding below and right.
TEST_P(Conv2dVariant, PaddingUsesThePadValue) {
  Conv2dProblem problem;
  Conv2dArgs& a = problem.args;
  a.batch = a.input_c = a.output_c = a.groups = 1;
  a.input_h = a.input_w = a.output_h = a.output_w = a.kernel_h = a.kernel_w = 2;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  a.input_zero_point = 1;
  a.pad_value = 1;
  a.output_zero_point = -1;
  a.clamp_min = -128;
  a.clamp_max = 10;
  a.input_dtype = a.output_dtype = Dtype::kS8;
  problem.input = {1, 2, 3, 4};  // less 1: 0 1 2 3
  problem.weights = {1, 2, 3, -4};
  problem.bias = {5};
  problem.multiplier = {1 << 30};  // 0.5 * 2^1: the accumulator itself
  problem.shift = {1};
  // 5 + (2 + 6 - 12), 5 + (1 + 9), 5 + (2 + 6), 5 + 3; less 1; clamped to 10
  problem.expected = problem.form_expected = {0, 10, 10, 7};
  for (const uint16_t layout : kLayouts) {
    a.weights_layout = layout;
    expect_correct(problem);
  }
}

}  // namespace
}  // namespace qplan::conv2d_test
