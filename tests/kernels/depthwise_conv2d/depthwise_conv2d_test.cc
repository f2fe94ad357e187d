// Every variant of depthwise_conv2d against an oracle in double precision.
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::depthwise_conv2d_test {
namespace {

using testing::Bias;
using testing::Conv2dProblem;
using testing::Conv2dRun;
using testing::Random;
using testing::Values;

class DepthwiseConv2dVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // True if the variant takes the problem; then its output was compared.
  bool expect_correct(const Conv2dProblem& problem, bool in_pieces = false) {
    return testing::expect_outputs(*GetParam(), problem, testing::expected_of(problem, *GetParam()),
                                   in_pieces);
  }

  // The same for what networks have; what nearly all of them have is taken by a variant of every instruction
  // set.
  void expect_network_correct(const Conv2dProblem& problem, bool in_pieces = false) {
    const Conv2dArgs& a = problem.args;
    // Variants for Arm take the middle of the dtype, too.
    const bool has_origin =
        a.input_zero_point == dtype_min(a.input_dtype) || isa_within(QPLAN_ISA_NEON, GetParam()->isa);
    const bool is_common =
        has_origin && a.kernel_h == 3 && a.stride_h == 1 && a.dilation_h == 1 && a.dilation_w == 1;
    bool is_taken = expect_correct(problem, in_pieces);
    for (const KernelVariant* other : testing::variants_of(kDepthwiseConv2dFamily)) {
      is_taken |= other != GetParam() && other->isa != QPLAN_ISA_REFERENCE &&
                  isa_within(other->isa, GetParam()->isa) && other->accepts(&a);
    }
    EXPECT_TRUE(is_taken || !is_common) << problem.text();
  }
};

INSTANTIATE_TEST_SUITE_P(All, DepthwiseConv2dVariant,
                         ::testing::ValuesIn(testing::variants_of(kDepthwiseConv2dFamily)),
                         testing::variant_test_name);

const std::vector<uint16_t> kLayouts = {kLayout_ohwi, kLayout_hwo16};
const std::vector<uint32_t> kChannels = {1, 3, 4, 15, 16, 17, 31, 32, 33, 48, 64, 65, 96, 130};

void set_channels(Conv2dArgs* a, uint32_t channels, uint32_t multiplier) {
  a->input_c = a->groups = channels;
  a->output_c = channels * multiplier;
}

Conv2dProblem random_problem(uint64_t seed, Values values = Values::kWithEnds, Bias bias = Bias::kSmall,
                             bool acc32 = false) {
  Random random(seed);
  Conv2dProblem problem;
  problem.seed = seed;
  problem.values = values;
  problem.bias_kind = bias;
  const std::vector<uint32_t> multipliers = {1, 1, 1, 2, 3, 8};
  set_channels(&problem.args, static_cast<uint32_t>(random.integer(1, 40)), random.pick(multipliers));
  problem.args.weights_layout = random.pick(kLayouts);
  testing::draw_conv2d_geometry(random, &problem.args);
  testing::draw_conv2d_scalars(random, &problem.args);
  if (acc32) testing::use_acc32(&problem.args);
  testing::fill_conv2d_problem(random, &problem);
  return problem;
}

TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForRandomProblems) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) expect_correct(random_problem(seed));
}

// 3x3 as networks have it, at strides 1 and 2, on images of odd and even width.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForChannelsAroundTheVectorWidth) {
  uint64_t seed = 1000;
  for (const uint32_t channels : kChannels) {
    for (const uint32_t stride : {1u, 2u}) {
      for (const uint32_t width : {1u, 2u, 5u, 8u, 11u}) {
        Random random(++seed);
        Conv2dProblem problem;
        problem.seed = seed;
        Conv2dArgs& a = problem.args;
        a.batch = seed % 4 == 0 ? 2 : 1;
        set_channels(&a, channels, seed % 7 == 0 ? 2 : 1);
        a.weights_layout = random.pick(kLayouts);
        a.kernel_h = a.kernel_w = 3;
        a.input_h = static_cast<uint32_t>(random.integer(2, 5));
        a.input_w = width;
        a.stride_h = a.stride_w = stride;
        a.dilation_h = a.dilation_w = 1;
        a.pad_top = a.pad_left = stride == 1 ? 1 : 0;
        ASSERT_TRUE(testing::set_output_extents(&a, 1, width == 1 && stride == 2 ? 2 : 1));
        testing::draw_conv2d_scalars(random, &a);
        testing::fill_conv2d_problem(random, &problem);
        expect_correct(problem);
        if (HasFailure()) return;
      }
    }
  }
}

// 3x3 and 5x5 as the vector variants like them: the input's zero point at the end of its dtype, hwo16.
Conv2dProblem network_problem(uint64_t seed, uint32_t channels, uint32_t height, uint32_t width) {
  Random random(seed);
  Conv2dProblem problem;
  problem.seed = seed;
  if (seed % 5 == 0) problem.values = Values::kOnlyEnds;
  Conv2dArgs& a = problem.args;
  set_channels(&a, channels, 1);
  a.weights_layout = kLayout_hwo16;
  a.batch = random.chance(0.2) ? 2 : 1;
  a.kernel_h = a.kernel_w = random.chance(0.7) ? 3 : 5;
  a.stride_h = a.stride_w = static_cast<uint32_t>(random.integer(1, 2));
  a.dilation_h = a.dilation_w = 1;
  if (a.stride_h == 1 && random.chance(0.3)) {
    a.dilation_h = static_cast<uint32_t>(random.integer(1, 5));
    a.dilation_w = static_cast<uint32_t>(random.integer(1, 5));
  }
  a.input_h = height;
  a.input_w = width;
  a.pad_top = static_cast<uint32_t>(random.integer(0, a.dilation_h * (a.kernel_h / 2)));
  a.pad_left = static_cast<uint32_t>(random.integer(0, a.dilation_w * (a.kernel_w / 2)));
  const auto after = static_cast<uint32_t>(random.integer(0, a.kernel_h / 2));
  if (!testing::set_output_extents(&a, after, after)) {
    a.pad_top = a.dilation_h * (a.kernel_h - 1);
    a.pad_left = a.dilation_w * (a.kernel_w - 1);
    EXPECT_TRUE(testing::set_output_extents(&a, after, after));
  }
  testing::draw_conv2d_scalars(random, &a);
  a.input_zero_point = random.chance(0.5) ? dtype_min(a.input_dtype) : dtype_middle(a.input_dtype);
  const std::vector<int32_t> zero_points = {0, 0, a.weights_zero_point, -1, INT8_MIN, INT8_MAX};
  a.weights_zero_point = random.pick(zero_points);
  if (random.chance(0.3)) {  // nothing but packing between the sums and the outputs
    a.output_zero_point = a.clamp_min = dtype_min(a.output_dtype);
    a.clamp_max = dtype_max(a.output_dtype);
  }
  testing::fill_conv2d_problem(random, &problem);
  return problem;
}

TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForWindowsOfNetworks) {
  uint64_t seed = 1500;
  for (const uint32_t channels :
       {1u, 8u, 15u, 16u, 17u, 24u, 32u, 33u, 40u, 48u, 49u, 63u, 64u, 65u, 72u, 80u, 96u, 112u, 130u}) {
    for (uint32_t i = 0; i < 10; ++i) {
      Random random(++seed);
      const auto height = static_cast<uint32_t>(random.integer(1, 19));
      const auto width = static_cast<uint32_t>(random.integer(1, 19));
      expect_network_correct(network_problem(seed, channels, height, width));
      if (HasFailure()) return;
    }
  }
}

// The form that most layers of networks have, for which variants have most ways: pixels by the vector,
// weights of which few leave int8 when their zero point is subtracted.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleInPlainFormsOfAllWidths) {
  uint64_t seed = 1600;
  for (const uint32_t channels : {4u, 8u, 16u, 24u, 32u, 40u, 48u, 64u, 72u, 96u, 128u}) {
    for (const uint32_t stride : {1u, 2u}) {
      for (const uint32_t width : {1u, 3u, 4u, 5u, 8u, 9u, 16u, 17u, 35u}) {
        Conv2dProblem problem = network_problem(++seed, channels, 1 + width % 5, width);
        Conv2dArgs& a = problem.args;
        a.contract = Contract::kTfl2;
        a.kernel_h = a.kernel_w = 3;
        a.stride_h = a.stride_w = stride;
        a.dilation_h = 1;
        a.dilation_w = seed % 8 == 0 && stride == 1 ? 2 : 1;
        a.pad_top = seed % 4 == 0 ? 0 : 1;
        a.pad_left = seed % 3;
        a.weights_zero_point = static_cast<int32_t>(seed % 4) - 1;
        ASSERT_TRUE(testing::set_output_extents(&a, 2, 4));
        Random random(seed);
        do {
          testing::fill_conv2d_problem(random, &problem);
        } while (a.float_epilogue != FloatEpilogue::kPlain);
        expect_network_correct(problem);
        if (HasFailure()) return;
      }
    }
  }
}

// Outputs that fill their dtype from the zero point on, as after a ReLU: blocks of 64 channels have
// ways of their own, for rows of one and of several passes.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleInPlainFormsThatFillTheDtype) {
  uint64_t seed = 1650;
  for (const uint32_t channels : {32u, 64u, 96u, 144u, 512u}) {
    for (const uint32_t stride : {1u, 2u}) {
      for (const uint32_t width : {1u, 2u, 3u, 7u, 33u, 72u, 73u, 150u}) {
        if (channels * width > 20'000) continue;
        for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
          const uint32_t height = 1 + ++seed % 6;
          Conv2dProblem problem = network_problem(seed, channels, height, width);
          Conv2dArgs& a = problem.args;
          a.contract = Contract::kTfl2;
          a.kernel_h = a.kernel_w = 3;
          a.stride_h = a.stride_w = stride;
          a.dilation_h = a.dilation_w = seed % 3 == 0 && stride == 1 ? 2 : 1;
          a.pad_top = a.pad_left = 1;
          a.weights_zero_point = seed % 5 == 0 ? 60 : 0;
          a.input_dtype = a.output_dtype = dtype;
          a.input_zero_point = a.output_zero_point = a.clamp_min = dtype_min(dtype);
          a.clamp_max = a.clamp_min + 255;
          a.pad_value = a.input_zero_point + (seed % 4 == 1 ? 7 : 0);
          ASSERT_TRUE(testing::set_output_extents(&a, 3, 3));
          Random random(seed);
          do {
            testing::fill_conv2d_problem(random, &problem);
          } while (a.float_epilogue != FloatEpilogue::kPlain);
          expect_network_correct(problem, seed % 4 == 0);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Below 1 no product is beyond int32; kernels have an epilogue for blocks of such scales.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleUnderF32eAtScalesAroundOne) {
  uint64_t seed = 1670;
  for (const uint32_t channels : {8u, 16u, 24u, 40u, 56u, 64u, 112u, 130u}) {
    for (const uint32_t stride : {1u, 2u}) {
      for (const auto& scales : testing::scales_around_one()) {
        Conv2dProblem problem = network_problem(++seed, channels, 5, 9);
        Conv2dArgs& a = problem.args;
        a.contract = Contract::kF32e;
        a.kernel_h = a.kernel_w = 3;
        a.stride_h = a.stride_w = stride;
        a.dilation_h = a.dilation_w = a.pad_top = a.pad_left = 1;
        if (seed % 2 == 0) {
          a.output_dtype = a.input_dtype;
          a.output_zero_point = a.clamp_min = dtype_min(a.output_dtype);
          a.clamp_max = dtype_max(a.output_dtype);
        }
        ASSERT_TRUE(testing::set_output_extents(&a, 2, 2));
        problem.given_scales = scales;
        if (seed % 3 == 0) problem.bias_kind = Bias::kWrap;
        Random random(seed);
        testing::fill_conv2d_problem(random, &problem);
        expect_network_correct(problem);
        if (HasFailure()) return;
      }
    }
  }
}

// A session has scratch for the step that takes most, so what a small image takes counts.
TEST_P(DepthwiseConv2dVariant, TakesLittleScratchForSmallImages) {
  constexpr size_t kMostBytes = 8 << 10;  // weights of 64 channels as words are half of it
  Conv2dProblem problem = network_problem(1660, 64, 25, 5);
  Conv2dArgs& a = problem.args;
  a.contract = Contract::kTfl2;
  a.kernel_h = a.kernel_w = 3;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = a.pad_top = a.pad_left = 1;
  a.weights_zero_point = 0;
  a.input_zero_point = a.output_zero_point = a.clamp_min = dtype_min(a.input_dtype);
  a.output_dtype = a.input_dtype;
  a.clamp_max = a.clamp_min + 255;
  ASSERT_TRUE(testing::set_output_extents(&a, 1, 1));
  Random random(1660);
  do {
    testing::fill_conv2d_problem(random, &problem);
  } while (a.float_epilogue != FloatEpilogue::kPlain);
  const Conv2dRun run(problem);
  if (GetParam()->accepts(&a)) {
    EXPECT_LE(GetParam()->scratch_bytes(&run.args()), kMostBytes);
  }
  expect_network_correct(problem);
}

// Rows and columns that no output of another phase reads, phases without inputs, more phases than rows.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForDilatedWindows) {
  uint64_t seed = 1700;
  for (const uint32_t channels : {8u, 16u, 40u, 64u, 130u}) {
    for (const uint32_t dilation : {2u, 3u, 20u}) {
      for (const uint32_t size : {1u, 8u}) {
        for (const bool keeps_size : {true, false}) {
          Conv2dProblem problem = network_problem(++seed, channels, size, 2 * size);
          Conv2dArgs& a = problem.args;
          a.stride_h = a.stride_w = 1;
          a.dilation_h = dilation;
          a.dilation_w = seed % 3 == 0 ? 1 : dilation;
          a.pad_top = a.dilation_h * (keeps_size ? a.kernel_h / 2 : a.kernel_h - 1);
          a.pad_left = a.dilation_w * (keeps_size ? a.kernel_w / 2 : a.kernel_w - 1);
          ASSERT_TRUE(testing::set_output_extents(&a, a.pad_top, a.pad_left));
          Random random(seed);
          testing::fill_conv2d_problem(random, &problem);
          expect_network_correct(problem, seed % 2 == 0);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// A call for some rows of an image: the inputs end before the windows of the last row do, or begin in them.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForFewRows) {
  uint64_t seed = 1750;
  for (const uint32_t channels : {8u, 16u, 24u, 48u, 64u, 72u, 128u}) {
    for (const uint32_t stride : {1u, 2u}) {
      for (const uint32_t rows : {1u, 2u, 3u, 5u}) {
        for (const uint32_t pad_top : {0u, 1u, 2u}) {
          Conv2dProblem problem = network_problem(++seed, channels, rows, rows + 8);
          Conv2dArgs& a = problem.args;
          a.stride_h = a.stride_w = stride;
          a.dilation_h = a.dilation_w = 1;
          a.pad_top = pad_top;
          a.pad_left = a.kernel_w / 2;
          ASSERT_TRUE(testing::set_output_extents(&a, a.kernel_h - 1, a.kernel_w / 2));
          Random random(seed);
          testing::fill_conv2d_problem(random, &problem);
          expect_network_correct(problem);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Rows and images that are worked on in several pieces, by several workers.
TEST_P(DepthwiseConv2dVariant, EqualsTheOracleForImagesOfSeveralPieces) {
  uint64_t seed = 1800;
  for (const uint32_t channels : {5u, 16u, 32u, 48u, 72u}) {
    for (const uint32_t width : {33u, 64u, 70u, 131u}) {
      const Conv2dProblem problem = network_problem(++seed, channels, 27, width);
      expect_network_correct(problem);
      expect_network_correct(problem, true);
      if (HasFailure()) return;
    }
  }
}

TEST_P(DepthwiseConv2dVariant, EveryScheduleGivesTheSameBytes) {
  for (uint64_t seed = 1900; seed < 1920 && !HasFailure(); ++seed) {
    Conv2dProblem problem = network_problem(seed, 1 + 13 * (seed % 11), 70, 5);
    for (const uint64_t schedule : testing::schedules_of(*GetParam())) {
      SCOPED_TRACE(schedule);
      problem.args.schedule = schedule;
      expect_network_correct(problem, true);
      if (HasFailure()) return;
    }
  }
}

TEST_P(DepthwiseConv2dVariant, SaturatesWhereEveryProductIsExtreme) {
  for (uint64_t seed = 2000; seed < 2040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kOnlyEnds));
  }
}

// Real networks have such entries on channels whose weights are zero.
TEST_P(DepthwiseConv2dVariant, TakesBiasesNear2To30) {
  for (uint64_t seed = 3000; seed < 3040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kLarge));
  }
}

TEST_P(DepthwiseConv2dVariant, SumsWrapModulo2To32) {
  for (uint64_t seed = 4000; seed < 4040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kWrap));
  }
}

// The sums themselves, as wide as they are, wrapped ones too.
TEST_P(DepthwiseConv2dVariant, GivesTheAccumulatorsUnderAcc32) {
  uint32_t accepted = 0;
  for (uint64_t seed = 4100; seed < 4200 && !HasFailure(); ++seed) {
    const Bias bias = seed % 3 == 0 ? Bias::kWrap : seed % 3 == 1 ? Bias::kLarge : Bias::kSmall;
    accepted += expect_correct(random_problem(seed, Values::kWithEnds, bias, true));
  }
  EXPECT_TRUE(accepted == 100 || GetParam()->isa != QPLAN_ISA_REFERENCE) << accepted;
}

TEST_P(DepthwiseConv2dVariant, TakesExtremeZeroPoints) {
  uint64_t seed = 5000;
  for (uint32_t ends = 0; ends < 64 && !HasFailure(); ++ends) {
    Random random(++seed);
    Conv2dProblem problem = random_problem(seed, seed % 3 == 0 ? Values::kOnlyEnds : Values::kWithEnds);
    Conv2dArgs& a = problem.args;
    a.input_dtype = (ends & 1) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.output_dtype = (ends & 2) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.weights_layout = kLayouts[(ends >> 2) & 1];
    a.input_zero_point = a.pad_value = (ends & 8) != 0 ? dtype_max(a.input_dtype) : dtype_min(a.input_dtype);
    a.weights_zero_point = (ends & 16) != 0 ? INT8_MAX : INT8_MIN;
    a.output_zero_point = (ends & 32) != 0 ? dtype_max(a.output_dtype) : dtype_min(a.output_dtype);
    a.clamp_min = dtype_min(a.output_dtype);
    a.clamp_max = dtype_max(a.output_dtype);
    testing::fill_conv2d_problem(random, &problem);
    expect_correct(problem);
  }
}

TEST_P(DepthwiseConv2dVariant, AnyPartitionOfWorkItemsGivesTheSameBytes) {
  for (uint64_t seed = 6000; seed < 6060 && !HasFailure(); ++seed) expect_correct(random_problem(seed), true);
}

// Two input channels make four outputs: 0 and 1 read channel 0, 2 and 3 read channel 1.
TEST_P(DepthwiseConv2dVariant, OutputsOfAChannelStandTogether) {
  Conv2dProblem problem;
  Conv2dArgs& a = problem.args;
  a.batch = a.input_h = a.input_w = a.output_h = a.output_w = a.kernel_h = a.kernel_w = 1;
  a.stride_h = a.stride_w = a.dilation_h = a.dilation_w = 1;
  set_channels(&a, 2, 2);
  a.clamp_max = 255;
  a.input_dtype = a.output_dtype = Dtype::kU8;
  problem.input = {3, 10};
  problem.weights = {1, 2, 3, 4};
  problem.bias = {0, 0, 0, 1};
  problem.multiplier = {1 << 30, 1 << 30, 1 << 30, 1 << 30};  // times 1
  problem.shift = {1, 1, 1, 1};
  problem.expected = problem.form_expected = {3, 6, 30, 41};
  for (const uint16_t layout : kLayouts) {
    a.weights_layout = layout;
    expect_correct(problem);
  }
}

}  // namespace
}  // namespace qplan::depthwise_conv2d_test
