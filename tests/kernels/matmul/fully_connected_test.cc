// Every variant of fully_connected against an oracle in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "kernels/layout.h"
#include "kernels/matmul/matmul.h"
#include "src/runtime/bind/family.h"
#include "tests/kernels/evex/evexvnni.h"
#include "tests/support/buffer.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/exact_requantize.h"
#include "tests/support/float_epilogue.h"
#include "tests/support/operands.h"
#include "tests/support/random.h"
#include "tests/support/variants.h"
#include "tests/support/weights.h"

namespace qplan::fully_connected_test {
namespace {

using testing::Bias;
using testing::Buffer;
using testing::OutputBuffer;
using testing::Random;
using testing::Values;

const std::vector<uint16_t> kLayouts = {kLayout_ohwi, kLayout_o16k4, kLayout_o16r8};

struct Problem {
  uint64_t seed = 0;
  FullyConnectedArgs args;  // the pointers stay null
  std::vector<int32_t> input;
  std::vector<int8_t> weights;
  std::vector<int32_t> bias, multiplier, shift;
  std::vector<float> scale;
  std::vector<float> float_scale, float_offset;
  int32_t largest_weight = 128;                  // either way
  int8_t padding = 0;                            // bytes of packed weights that are no weight's
  std::vector<int32_t> expected, form_expected;  // by the contract; by the float epilogue where there is one

  std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ": " << args.rows << "x" << args.input_c << " -> " << args.output_c
        << ", zero points " << args.input_zero_point << " " << args.weights_zero_point << " "
        << args.output_zero_point << ", clamp " << args.clamp_min << ".." << args.clamp_max << ", "
        << dtype_name(args.input_dtype) << " -> " << dtype_name(args.output_dtype) << ", layout "
        << layout_name(args.weights_layout) << ", contract " << static_cast<int>(args.contract)
        << ", float epilogue " << static_cast<int>(args.float_epilogue);
    return out.str();
  }
};

// For args whose extents and scalars are set.
void fill(Random& random, Values values, Bias bias, Problem* problem) {
  FullyConnectedArgs& a = problem->args;
  const size_t rows = a.rows, input_c = a.input_c, output_c = a.output_c;
  problem->input.clear();
  problem->weights.clear();
  problem->bias.clear();
  for (size_t i = 0; i < rows * input_c; ++i) {
    problem->input.push_back(testing::random_value(random, a.input_dtype, values));
  }
  for (size_t i = 0; i < output_c * input_c; ++i) {
    const int32_t weight = testing::random_value(random, Dtype::kS8, values), most = problem->largest_weight;
    problem->weights.push_back(static_cast<int8_t>(std::clamp(weight, -most, most)));
  }
  for (size_t o = 0; o < output_c; ++o) problem->bias.push_back(testing::random_bias(random, bias));

  // Outer products, one input channel after the other.
  xt::xtensor<double, 2> x = xt::adapt(problem->input, std::vector<size_t>{rows, input_c});
  xt::xtensor<double, 2> w = xt::adapt(problem->weights, std::vector<size_t>{output_c, input_c});
  x -= a.input_zero_point;
  w -= a.weights_zero_point;
  xt::xtensor<double, 2> sums({rows, output_c}, 0.0);
  sums += xt::adapt(problem->bias, std::vector<size_t>{output_c});
  for (size_t k = 0; k < input_c; ++k) {
    sums += xt::view(x, xt::all(), xt::range(k, k + 1)) * xt::view(w, xt::all(), k);
  }

  problem->multiplier.clear();
  problem->shift.clear();
  problem->scale.clear();
  for (size_t o = 0; o < output_c; ++o) {
    const testing::ChannelScale scale =
        testing::random_scale(random, xt::amax(xt::abs(xt::view(sums, xt::all(), o)))());
    problem->multiplier.push_back(scale.multiplier);
    problem->shift.push_back(scale.shift);
    problem->scale.push_back(scale.scale);
  }
  testing::draw_float_epilogue(random, &a, problem);
  problem->expected.clear();
  problem->form_expected.clear();
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < output_c; ++o) {
      const auto wrapped = static_cast<int64_t>(testing::wrap32(static_cast<int64_t>(sums(r, o))));
      problem->expected.push_back(testing::exact_output(a, *problem, wrapped, o));
      problem->form_expected.push_back(testing::exact_form_output(a, *problem, wrapped, o));
    }
  }
}

void draw_scalars(Random& random, FullyConnectedArgs* a) {
  const std::vector<Dtype> dtypes = {Dtype::kU8, Dtype::kS8};
  a->weights_layout = random.pick(kLayouts);
  a->input_dtype = random.pick(dtypes);
  a->output_dtype = random.pick(dtypes);
  a->input_zero_point = testing::random_zero_point(random, a->input_dtype);
  if (random.chance(0.3)) a->input_zero_point = dtype_middle(a->input_dtype);
  a->weights_zero_point = random.chance(0.5) ? 0 : testing::random_zero_point(random, Dtype::kS8);
  a->output_zero_point = testing::random_zero_point(random, a->output_dtype);
  testing::random_clamp(random, a->output_dtype, &a->clamp_min, &a->clamp_max);
  a->contract = testing::random_contract(random);
}

Problem random_problem(uint64_t seed, Values values = Values::kWithEnds, Bias bias = Bias::kSmall,
                       bool acc32 = false) {
  Random random(seed);
  Problem problem;
  problem.seed = seed;
  problem.args.rows = static_cast<uint32_t>(random.integer(1, 6));
  problem.args.input_c = static_cast<uint32_t>(random.integer(1, 150));
  problem.args.output_c = static_cast<uint32_t>(random.integer(1, 80));
  draw_scalars(random, &problem.args);
  if (acc32) testing::use_acc32(&problem.args);
  fill(random, values, bias, &problem);
  return problem;
}

std::vector<int8_t> padded_weights(const Problem& problem) {
  const FullyConnectedArgs& a = problem.args;
  std::vector<int8_t> packed =
      testing::pack_weights(a.weights_layout, problem.weights, a.output_c, a.input_c);
  const std::vector<int8_t> ones(problem.weights.size(), 1);
  const std::vector<int8_t> is_weight = testing::pack_weights(a.weights_layout, ones, a.output_c, a.input_c);
  for (size_t i = 0; i < packed.size(); ++i) {
    if (is_weight[i] == 0) packed[i] = problem.padding;
  }
  return packed;
}

class FullyConnectedVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // True if the variant takes the problem; then its output was compared, after all work items at once or in
  // pieces.
  bool expect_correct(const Problem& problem, bool in_pieces = false) {
    const KernelVariant& variant = *GetParam();
    FullyConnectedArgs args = problem.args;
    const Buffer<uint8_t> input(testing::to_bytes(problem.input), problem.seed % 5);
    const Buffer<int8_t> weights(padded_weights(problem));
    const Buffer<int32_t> bias(testing::pack_channels(args.weights_layout, problem.bias, 12345));
    const Buffer<int32_t> multiplier(
        testing::pack_channels(args.weights_layout, problem.multiplier, INT32_MAX));
    const Buffer<float> scale(testing::pack_channels(args.weights_layout, problem.scale, FLT_MAX));
    const Buffer<int32_t> shift(testing::pack_channels(args.weights_layout, problem.shift, -31));
    const Buffer<float> float_scale(
        testing::pack_channels(args.weights_layout, problem.float_scale, FLT_MAX));
    const Buffer<float> float_offset(
        testing::pack_channels(args.weights_layout, problem.float_offset, -FLT_MAX));
    const size_t element = dtype_bytes(args.output_dtype);
    OutputBuffer<uint8_t> output(problem.expected.size() * element, problem.seed % 3 * element);
    args.input = input.data();
    args.weights = weights.data();
    args.int16_groups = testing::int16_groups(padded_weights(problem));
    args.bias = bias.data();
    if (args.contract == Contract::kF32e) {
      args.scale = scale.data();
    } else if (args.contract != Contract::kAcc32) {
      args.multiplier = multiplier.data();
      args.shift = shift.data();
    }
    if (args.float_epilogue != FloatEpilogue::kNone) {
      args.float_scale = float_scale.data();
      args.float_offset = float_offset.data();
    }
    args.output = output.data();
    if (!variant.accepts(&args)) return false;
    if (in_pieces) {
      testing::run_variant_in_pieces(variant, &args, problem.seed);
    } else {
      testing::run_variant(variant, &args);
    }
    const std::vector<int32_t> outputs = testing::from_bytes(output.values(), args.output_dtype);
    EXPECT_EQ(outputs, testing::either_expected(testing::expected_of(problem, variant), problem.expected,
                                                outputs, variant))
        << problem.text();
    EXPECT_TRUE(output.guards_intact()) << problem.text();
    return true;
  }
};

INSTANTIATE_TEST_SUITE_P(All, FullyConnectedVariant,
                         ::testing::ValuesIn(testing::variants_of(kFullyConnectedFamily)),
                         testing::variant_test_name);
#if defined(QPLAN_TEST_EVEX)
INSTANTIATE_TEST_SUITE_P(Evex, FullyConnectedVariant, ::testing::Values(&testing::kFullyConnectedEvexVnni),
                         testing::variant_test_name);
#endif

TEST_P(FullyConnectedVariant, EqualsTheOracleForRandomProblems) {
  uint32_t accepted = 0;
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed)
    accepted += expect_correct(random_problem(seed));
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

TEST_P(FullyConnectedVariant, EqualsTheOracleForChannelsAroundTheVectorWidth) {
  const std::vector<uint32_t> channels = {1, 3, 4, 15, 16, 17, 31, 32, 33, 48, 64, 65};
  uint64_t seed = 1000;
  for (const uint32_t input_c : channels) {
    for (const uint32_t output_c : channels) {
      Random random(++seed);
      Problem problem;
      problem.seed = seed;
      problem.args.rows = static_cast<uint32_t>(1 + seed % 3);
      problem.args.input_c = input_c;
      problem.args.output_c = output_c;
      draw_scalars(random, &problem.args);
      fill(random, Values::kWithEnds, Bias::kSmall, &problem);
      expect_correct(problem);
      if (HasFailure()) return;
    }
  }
}

// As many as make tiles of every size, with every rest.
TEST_P(FullyConnectedVariant, EqualsTheOracleForOneRowOfManyOutputs) {
  uint64_t seed = 1600;
  uint32_t accepted = 0;
  for (uint32_t output_c = 100; output_c <= 400; output_c += 11) {
    Random random(++seed);
    Problem problem;
    problem.seed = seed;
    FullyConnectedArgs& a = problem.args;
    a.rows = 1;
    a.input_c = static_cast<uint32_t>(random.integer(1, 40));
    a.output_c = output_c;
    draw_scalars(random, &a);
    a.weights_layout = random.chance(0.5) ? kLayout_o16k4 : kLayout_o16r8;
    a.input_zero_point = random.chance(0.5) ? dtype_min(a.input_dtype) : dtype_middle(a.input_dtype);
    fill(random, Values::kWithEnds, Bias::kSmall, &problem);
    accepted += expect_correct(problem);
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

// The layouts are those whose weights after a row no check requires to be zero.
TEST_P(FullyConnectedVariant, WeightsAfterTheInputsReachNoOutput) {
  constexpr uint16_t kUnchecked[] = {kLayout_o16k4, kLayout_o4k4, kLayout_o4k16};
  uint64_t seed = 1700;
  uint32_t accepted = 0;
  for (uint32_t which = 0; which < 144 && !HasFailure(); ++which) {
    Random random(++seed);
    Problem problem;
    problem.seed = seed;
    FullyConnectedArgs& a = problem.args;
    a.rows = which % 2 == 0 ? 1 : 5;
    a.input_c = 4 * (which % 48 / 12) * 5 + 1 + which / 2 % 3;  // 1 to 3 after whole groups of four
    a.output_c = static_cast<uint32_t>(random.integer(1, 40));
    draw_scalars(random, &a);
    a.weights_layout = kUnchecked[which / 48];
    a.input_zero_point = which / 6 % 2 == 0 ? dtype_min(a.input_dtype) : dtype_middle(a.input_dtype);
    problem.padding = which % 4 < 2 ? INT8_MIN : 77;
    fill(random, Values::kWithEnds, Bias::kSmall, &problem);
    accepted += expect_correct(problem);
  }
  EXPECT_GE(accepted, 12u) << "the variant accepts too few";
}

TEST_P(FullyConnectedVariant, TakesLongRows) {
  Random random(1500);
  for (const uint16_t layout : kLayouts) {
    Problem problem;
    problem.seed = 1500;
    problem.args.rows = 2;
    problem.args.input_c = 4099;
    problem.args.output_c = 21;
    draw_scalars(random, &problem.args);
    problem.args.weights_layout = layout;
    fill(random, Values::kOnlyEnds, Bias::kSmall, &problem);
    expect_correct(problem);
  }
}

TEST_P(FullyConnectedVariant, SaturatesWhereEveryProductIsExtreme) {
  for (uint64_t seed = 2000; seed < 2040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kOnlyEnds));
  }
}

// Two or four products of the largest size fit int16, and not one more.
TEST_P(FullyConnectedVariant, EqualsTheOracleWhereProductsMeetIn16Bits) {
  uint64_t seed = 2100;
  uint32_t accepted = 0;
  for (uint32_t which = 0; which < 80 && !HasFailure(); ++which) {
    Random random(++seed);
    Problem problem;
    problem.seed = seed;
    problem.largest_weight = which % 2 == 0 ? 63 : 127;
    FullyConnectedArgs& a = problem.args;
    a.rows = which % 4 < 2 ? 1 : static_cast<uint32_t>(random.integer(2, 9));
    a.input_c = static_cast<uint32_t>(random.integer(13, 150));  // at least four groups
    a.output_c = static_cast<uint32_t>(random.integer(1, 80));
    draw_scalars(random, &a);
    a.weights_layout = kLayout_o16k4;
    a.input_dtype = Dtype::kS8;
    a.input_zero_point = random.chance(0.8) ? 0 : INT8_MIN;
    fill(random, Values::kOnlyEnds, Bias::kSmall, &problem);
    ASSERT_EQ(testing::int16_groups(padded_weights(problem)), which % 2 == 0 ? 4 : 2);
    accepted += expect_correct(problem);
  }
  EXPECT_GT(accepted, 0u) << "the variant accepts nothing";
}

TEST_P(FullyConnectedVariant, TakesBiasesNear2To30) {
  for (uint64_t seed = 3000; seed < 3040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kLarge));
  }
}

TEST_P(FullyConnectedVariant, SumsWrapModulo2To32) {
  for (uint64_t seed = 4000; seed < 4040 && !HasFailure(); ++seed) {
    expect_correct(random_problem(seed, Values::kWithEnds, Bias::kWrap));
  }
}

// The sums themselves, as wide as they are, wrapped ones too.
TEST_P(FullyConnectedVariant, GivesTheAccumulatorsUnderAcc32) {
  uint32_t accepted = 0;
  for (uint64_t seed = 4100; seed < 4200 && !HasFailure(); ++seed) {
    const Bias bias = seed % 3 == 0 ? Bias::kWrap : seed % 3 == 1 ? Bias::kLarge : Bias::kSmall;
    accepted += expect_correct(random_problem(seed, Values::kWithEnds, bias, true), seed % 2 == 0);
  }
  EXPECT_TRUE(accepted == 100 || GetParam()->isa != QPLAN_ISA_REFERENCE) << accepted;
}

TEST_P(FullyConnectedVariant, TakesExtremeZeroPoints) {
  uint64_t seed = 5000;
  for (uint32_t ends = 0; ends < 64 && !HasFailure(); ++ends) {
    Random random(++seed);
    Problem problem = random_problem(seed);
    FullyConnectedArgs& a = problem.args;
    a.input_dtype = (ends & 1) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.output_dtype = (ends & 2) != 0 ? Dtype::kU8 : Dtype::kS8;
    a.weights_layout = kLayouts[(ends >> 2) & 1];
    a.input_zero_point = (ends & 8) != 0 ? dtype_max(a.input_dtype) : dtype_min(a.input_dtype);
    a.weights_zero_point = (ends & 16) != 0 ? INT8_MAX : INT8_MIN;
    a.output_zero_point = (ends & 32) != 0 ? dtype_max(a.output_dtype) : dtype_min(a.output_dtype);
    a.clamp_min = dtype_min(a.output_dtype);
    a.clamp_max = dtype_max(a.output_dtype);
    fill(random, seed % 3 == 0 ? Values::kOnlyEnds : Values::kWithEnds, Bias::kSmall, &problem);
    expect_correct(problem);
  }
}

TEST_P(FullyConnectedVariant, AnyPartitionOfWorkItemsGivesTheSameBytes) {
  for (uint64_t seed = 6000; seed < 6060 && !HasFailure(); ++seed) expect_correct(random_problem(seed), true);
}

TEST_P(FullyConnectedVariant, EveryScheduleGivesTheSameBytes) {
  for (uint64_t seed = 7000; seed < 7060 && !HasFailure(); ++seed) {
    Random random(seed);
    Problem problem = random_problem(seed);
    problem.args.rows = static_cast<uint32_t>(random.integer(1, 120));
    problem.args.output_c = static_cast<uint32_t>(random.integer(1, 200));
    problem.args.weights_layout = kLayout_o16k4;
    problem.args.input_zero_point = dtype_min(problem.args.input_dtype);
    fill(random, Values::kWithEnds, Bias::kSmall, &problem);
    for (const uint64_t schedule : testing::schedules_of(*GetParam())) {
      problem.args.schedule = schedule;
      EXPECT_TRUE(expect_correct(problem, true)) << schedule;
      if (HasFailure()) return;
    }
  }
}

TEST_P(FullyConnectedVariant, SubtractsBothZeroPoints) {
  Problem problem;
  FullyConnectedArgs& a = problem.args;
  a.rows = 2;
  a.input_c = 2;
  a.output_c = 1;
  a.input_zero_point = 10;
  a.weights_zero_point = -1;
  a.output_zero_point = 100;
  a.clamp_max = 255;
  a.input_dtype = a.output_dtype = Dtype::kU8;
  problem.input = {11, 12, 10, 0};  // less 10: 1 2, 0 -10
  problem.weights = {2, 4};         // plus 1: 3 5
  problem.bias = {7};
  problem.multiplier = {1 << 30};  // times 1
  problem.shift = {1};
  problem.expected = problem.form_expected = {100 + 7 + 13, 100 + 7 - 50};
  for (const uint16_t layout : kLayouts) {
    a.weights_layout = layout;
    expect_correct(problem);
  }
}

}  // namespace
}  // namespace qplan::fully_connected_test
