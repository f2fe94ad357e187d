// qnn.add and clip on VTA's ALU, on the simulator, against the CPU's reference kernel.
#include "kernels/elementwise/add.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/vta/compiler/layers/layers.h"
#include "tests/vta/compiler/unit_simulate.h"

namespace qplan::vta::compiler::add_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// int8 in and out, all elements in one row.
Bytes8 reference(const AddOperator& add, const Bytes8& a, const Bytes8& b) {
  Bytes8 output(a.size());
  AddArgs args;
  args.dtype = Dtype::kS8;
  args.a = a.data();
  args.b = b.data();
  args.output = output.data();
  args.broadcast.elements = args.broadcast.extents[0] = a.size();
  args.broadcast.a_strides[0] = args.broadcast.b_strides[0] = 1;
  const double scale1 = static_cast<double>(add.scale1), scale2 = static_cast<double>(add.scale2);
  const double twice_max = 2.0 * std::max(scale1, scale2);
  args.left_shift = 20;
  const auto first = quantize_multiplier(scale1 / twice_max),
             second = quantize_multiplier(scale2 / twice_max);
  const auto last = quantize_multiplier(twice_max / (1048576.0 * static_cast<double>(add.output_scale)));
  args.input1_zero_point = add.zero_point1;
  args.input1_multiplier = first.multiplier;
  args.input1_shift = first.shift;
  args.input2_zero_point = add.zero_point2;
  args.input2_multiplier = second.multiplier;
  args.input2_shift = second.shift;
  args.output_zero_point = add.output_zero_point;
  args.output_multiplier = last.multiplier;
  args.output_shift = last.shift;
  args.clamp_min = add.clamp_min;
  args.clamp_max = add.clamp_max;
  add_ref::run(args, 0, add_ref::work_items(args), nullptr);
  return output;
}

void check(const Config& config, const Elementwise& elementwise, const ActivationLayout& shape,
           const std::vector<Bytes8>& inputs, const Bytes8& expected, Random& random,
           uint32_t interleavings) {
  std::vector<UnitTensor> tensors;
  std::vector<ActivationLayout> layouts;
  for (const Bytes8& input : inputs) {
    layouts.push_back(random_layout(random, shape.h, shape.w, shape.channels));
    tensors.push_back({layouts.back(), input});
  }
  const ActivationLayout output = random_layout(random, shape.h, shape.w, shape.channels);
  const CompiledUnit unit = compile_elementwise(config, elementwise, layouts, output);
  const auto planes = simulate_unit(config, unit, tensors, output, 1, random(), interleavings);
  ASSERT_EQ(planes.size(), 1u);
  ASSERT_EQ(planes[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(int{static_cast<int8_t>(planes[0][i])}, int{static_cast<int8_t>(expected[i])}) << "byte " << i;
}

// Every pair of bytes.
void check_all_pairs(const Elementwise& elementwise, const AddOperator& add, Random& random) {
  Bytes8 a, b;
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < 256; ++j) {
      a.push_back(static_cast<uint8_t>(i));
      b.push_back(static_cast<uint8_t>(j));
    }
  }
  check(kDefaultConfig, elementwise, {16, 16, 256}, {a, b}, reference(add, a, b), random, 1);
}

AddOperator operator_of(float scale1, float scale2, float output_scale, int32_t zero_point1,
                        int32_t zero_point2, int32_t output_zero_point) {
  AddOperator add;
  add.name = "add";
  add.scale1 = scale1, add.scale2 = scale2, add.output_scale = output_scale;
  add.zero_point1 = zero_point1, add.zero_point2 = zero_point2, add.output_zero_point = output_zero_point;
  return add;
}

AddOperator random_operator(Random& random) {
  const auto scale = [&] {
    return static_cast<float>(std::exp(static_cast<double>(between(random, -3000, 500)) / 1000.0));
  };
  const auto zero_point = [&] { return static_cast<int32_t>(between(random, -128, 127)); };
  AddOperator add = operator_of(scale(), scale(), scale(), zero_point(), zero_point(), zero_point());
  if (random() % 3 == 0) {
    add.clamp_min = static_cast<int32_t>(between(random, -128, 0));
    add.clamp_max = static_cast<int32_t>(between(random, 1, 127));
  }
  return add;
}

// Equal scales, ties on all sums, one input much larger than the other, either of them the larger.
const AddOperator kOperators[] = {
    operator_of(0.5f, 0.5f, 0.5f, 0, 0, 0),          operator_of(0.25f, 0.25f, 0.5f, 3, -7, 11),
    operator_of(1.0f, 1.0f, 2.0f, -128, -128, -128), operator_of(0.0235f, 0.0612f, 0.0673f, 4, -9, -3),
    operator_of(2.0f, 0.0001f, 2.5f, 10, 20, 30),    operator_of(0.375f, 0.625f, 1.75f, -27, 18, 84),
    operator_of(0.1f, 0.7f, 0.84f, 127, -128, 127),  operator_of(1.8f, 0.5f, 0.0324f, 55, -67, -72),
    operator_of(1e-30f, 1.0f, 1.0f, 55, -67, -72)};

TEST(VtaAddUnit, StepByStepEveryPairIsExact) {
  Random random(1);
  for (const AddOperator& add : kOperators) {
    SCOPED_TRACE(add.output_scale);
    check_all_pairs(make_stepwise_add(add), add, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(VtaAddUnit, AsAnAffineFormEveryPairIsExact) {
  Random random(2);
  int num_forms = 0;
  for (const AddOperator& add : kOperators) {
    SCOPED_TRACE(add.output_scale);
    const auto affine = make_affine_add(add);
    if (!affine) continue;
    ++num_forms;
    check_all_pairs(*affine, add, random);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(num_forms, 5);
}

TEST(VtaAddUnit, MostScalesHaveAnAffineForm) {
  int num_forms = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    if (make_affine_add(random_operator(random))) ++num_forms;
  }
  EXPECT_GE(num_forms, 36);
}

TEST(VtaAddUnit, RandomLayersEqualTheReference) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const AddOperator add = random_operator(random);
    const ActivationLayout shape = {between(random, 1, 20), between(random, 1, 20), random_channels(random)};
    const int64_t count = shape.h * shape.w * shape.channels;
    const Bytes8 a = random_bytes(random, count), b = random_bytes(random, count);
    const Elementwise elementwise = seed % 3 == 0 ? make_stepwise_add(add) : make_add(add);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
      check(*config, elementwise, shape, {a, b}, reference(add, a, b), random, 8);
    if (testing::Test::HasFailure()) return;
  }
}

// Rows and positions larger than a tile.
TEST(VtaAddUnit, WideRowsAndManyChannelsAreCut) {
  Random random(1);
  const AddOperator add = kOperators[3];
  for (const ActivationLayout& shape : {ActivationLayout{2, 700, 16}, ActivationLayout{1, 3, 9000}}) {
    const int64_t count = shape.h * shape.w * shape.channels;
    const Bytes8 a = random_bytes(random, count), b = random_bytes(random, count);
    check(kQuarterConfig, make_stepwise_add(add), shape, {a, b}, reference(add, a, b), random, 8);
  }
}

TEST(VtaClipUnit, RandomLayersAreClamped) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const ActivationLayout shape = {between(random, 1, 20), between(random, 1, 20), random_channels(random)};
    const auto min = static_cast<int32_t>(between(random, -128, 0)),
               max = static_cast<int32_t>(between(random, 1, 127));
    const Bytes8 input = random_bytes(random, shape.h * shape.w * shape.channels);
    Bytes8 expected;
    for (const uint8_t byte : input)
      expected.push_back(static_cast<uint8_t>(std::clamp(int{static_cast<int8_t>(byte)}, min, max)));
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
      check(*config, make_clip("clip", min, max), shape, {input}, expected, random, 8);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(VtaClipUnit, WithoutLimitsItIsACopy) {
  Random random(1);
  const Bytes8 input = random_bytes(random, 7 * 9 * 20);
  check(kDefaultConfig, make_clip("clip", -128, 127), {7, 9, 20}, {input}, input, random, 8);
}

}  // namespace
}  // namespace qplan::vta::compiler::add_test
