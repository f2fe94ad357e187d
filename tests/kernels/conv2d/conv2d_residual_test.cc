// Convolutions with a residual: every variant against the exact sum of the convolution's oracle and a tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/kernels/evex/evexvnni.h"
#include "tests/support/conv2d_problem.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_residual_test {
namespace {

using testing::Conv2dProblem;
using testing::Random;

int64_t exact_sum(const AddFormula& f, int64_t a, int64_t b) {
  a -= f.input1_zero_point;
  b -= f.input2_zero_point;
  if (f.contract == Contract::kF32e) {
    const double sum =
        testing::f32(testing::f32(static_cast<double>(a) * static_cast<double>(f.input1_scale)) +
                     testing::f32(static_cast<double>(b) * static_cast<double>(f.input2_scale)));
    return testing::exact_quantize_f32e(testing::f32(sum / static_cast<double>(f.output_scale)),
                                        f.output_zero_point, f.clamp_min, f.clamp_max);
  }
  const int64_t one = int64_t{1} << f.left_shift;
  const int64_t sum = testing::exact_tfl2(a * one, f.input1_multiplier, f.input1_shift) +
                      testing::exact_tfl2(b * one, f.input2_multiplier, f.input2_shift);
  return testing::exact_clamp(
      testing::exact_tfl2(sum, f.output_multiplier, f.output_shift) + f.output_zero_point, f.clamp_min,
      f.clamp_max);
}

int64_t form_sum(const AddFormula& f, int64_t a, int64_t b) {
  const float inner = std::fma(static_cast<float>(b), f.float_scale2, f.float_offset);
  const float sum = std::fma(static_cast<float>(a), f.float_scale1, inner);
  return std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(sum)), f.clamp_min, f.clamp_max);
}

class Conv2dResidual : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // True if the variant takes the problem; then its output was compared.
  bool expect_correct(Conv2dProblem& problem, Random& random, bool in_pieces) {
    const KernelVariant& variant = *GetParam();
    testing::fill_conv2d_problem(random, &problem);
    testing::draw_residual_sum(random, &problem.args);
    const AddFormula& sum = problem.args.residual_sum;
    const bool has_form = sum.float_scale1 > 0.0f && variant.isa >= QPLAN_ISA_AVX2;
    const std::vector<int32_t> outputs = testing::expected_of(problem, variant);
    std::vector<int32_t> residual, expected, contract;
    for (size_t i = 0; i < outputs.size(); ++i) {
      residual.push_back(testing::random_value(random, sum.dtype, testing::Values::kWithEnds));
      const auto sum_with = [&](int32_t output) {
        const int32_t a = problem.args.residual_is_a ? residual.back() : output;
        const int32_t b = problem.args.residual_is_a ? output : residual.back();
        return static_cast<int32_t>(has_form ? form_sum(sum, a, b) : exact_sum(sum, a, b));
      };
      expected.push_back(sum_with(outputs[i]));
      contract.push_back(sum_with(problem.expected[i]));
    }
    const testing::Buffer<uint8_t> residual_bytes(testing::to_bytes(residual), problem.seed % 7);
    problem.args.residual = residual_bytes.data();
    return testing::expect_outputs(variant, problem, expected, contract, in_pieces);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Conv2dResidual, ::testing::ValuesIn(testing::variants_of(kConv2dFamily)),
                         testing::variant_test_name);
#if defined(QPLAN_TEST_EVEX)
INSTANTIATE_TEST_SUITE_P(Evex, Conv2dResidual, ::testing::Values(&testing::kConv2dEvexVnni),
                         testing::variant_test_name);
#endif

TEST_P(Conv2dResidual, EqualsTheOracleForRandomProblems) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    Random random(20000 + seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.groups = random.chance(0.8) ? 1 : 2;
    a.input_c = a.groups * static_cast<uint32_t>(random.integer(1, 20));
    a.output_c = a.groups * random.pick<uint32_t>({1, 7, 8, 16, 24, 31, 48, 64, 65, 130});
    if (a.groups == 2) a.output_c = 64;
    testing::draw_conv2d_geometry(random, &a);
    a.weights_layout = random.chance(0.9) ? layout_in_place(a) : uint16_t{kLayout_ohwi};
    testing::draw_conv2d_scalars(random, &a);
    if (random.chance(0.9)) a.input_zero_point = dtype_min(a.input_dtype);
    accepted += expect_correct(problem, random, seed % 2 == 0);
  }
  EXPECT_GT(accepted, 100u);
}

// Blocks of every kind: runs of pixels, line buffers of several rows and of parts of one, groups of channels.
TEST_P(Conv2dResidual, EqualsTheOracleOnImages) {
  struct Image {
    uint32_t height, width, input_c, output_c, kernel, stride, pad;
  };
  const std::vector<Image> images = {
      {7, 7, 68, 544, 1, 1, 0},  {7, 7, 96, 160, 1, 1, 0},  {14, 14, 144, 24, 1, 1, 0},
      {13, 11, 20, 17, 1, 1, 0}, {32, 32, 16, 16, 3, 1, 1}, {9, 9, 64, 64, 3, 1, 1},
      {2, 500, 4, 24, 3, 1, 1},  {35, 35, 3, 32, 3, 2, 1},  {9, 31, 16, 16, 3, 1, 1},
      {5, 48, 16, 16, 3, 1, 1},  {7, 16, 16, 16, 3, 1, 1},  {6, 30, 16, 16, 3, 1, 1},
      {11, 32, 16, 16, 3, 1, 1}, {10, 47, 16, 16, 3, 1, 1}};
  uint64_t seed = 0;
  for (const Image& image : images) {
    Random random(30000 + ++seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = image.height < 10 ? 2 : 1;
    a.groups = a.dilation_h = a.dilation_w = 1;
    a.input_h = image.height;
    a.input_w = image.width;
    a.input_c = image.input_c;
    a.output_c = image.output_c;
    a.kernel_h = a.kernel_w = image.kernel;
    a.stride_h = a.stride_w = image.stride;
    a.pad_top = a.pad_left = image.pad;
    ASSERT_TRUE(testing::set_output_extents(&a, image.pad, image.pad));
    a.weights_layout = layout_in_place(a);
    testing::draw_conv2d_scalars(random, &a);
    a.input_zero_point = dtype_min(a.input_dtype);
    EXPECT_TRUE(expect_correct(problem, random, false));
    if (HasFailure()) return;
  }
}

// Layers that would be first ones (conv2d_first_layers_test.cc).
TEST_P(Conv2dResidual, EqualsTheOracleOnLayersFromOneOrThreeChannelsToEight) {
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    Random random(60000 + seed);
    Conv2dProblem problem;
    problem.seed = seed;
    Conv2dArgs& a = problem.args;
    a.batch = a.groups = a.dilation_h = a.dilation_w = a.pad_top = a.pad_left = 1;
    a.input_h = 5;
    a.input_w = static_cast<uint32_t>(random.integer(34, 50));
    a.input_c = random.chance(0.5) ? 1 : 3;
    a.output_c = 8;
    a.kernel_h = a.kernel_w = 3;
    a.stride_h = a.stride_w = static_cast<uint32_t>(random.integer(1, 2));
    ASSERT_TRUE(testing::set_output_extents(&a, 1, 1));
    a.weights_layout = layout_in_place(a);
    testing::draw_conv2d_scalars(random, &a);
    a.contract = Contract::kTfl2;
    a.input_zero_point = dtype_min(a.input_dtype);
    a.weights_zero_point = 0;
    EXPECT_TRUE(expect_correct(problem, random, false));
  }
}

}  // namespace
}  // namespace qplan::conv2d_residual_test
