// weight_only_dense: every variant gives the bits of the chain that its header states, written out here over
// integers, zero points and scales in their own order.
#include "kernels/float/weight_only_dense.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::weight_only_dense_test {
namespace {

using testing::Extents;
using testing::Random;
using testing::TestStep;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct LayerSpec {
  Extents rows = {3};
  int64_t input_c = 40, output_c = 20;
  uint32_t bits = 4, block = 16;
  float clamp_min = -kInfinity, clamp_max = kInfinity;
  std::optional<uint32_t> stated_bits = {}, stated_block = {};  // what the step says in place of the truth
  std::function<void(TestStep&)> tweak = {};

  void make(TestStep& step) const;
  int64_t num_rows() const { return testing::num_elements(rows); }
  int64_t num_scales() const { return (input_c - 1) / block + 1; }
  Extents with_last(int64_t extent) const {
    Extents shape = rows;
    shape.push_back(extent);
    return shape;
  }
};

// In rows: [o, k] and [o, scale].
struct Values {
  std::vector<float> input, scales, bias;
  std::vector<uint8_t> q, zeros;
};

Values random_values(const LayerSpec& s, Random& random, testing::Floats kind) {
  Values v;
  const auto bytes = [&](int64_t count, int64_t most) {
    std::vector<uint8_t> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<uint8_t>(random.integer(0, most)));
    return result;
  };
  v.input = testing::random_floats(random, static_cast<size_t>(s.num_rows() * s.input_c), kind);
  v.scales = testing::random_floats(random, static_cast<size_t>(s.output_c * s.num_scales()), kind);
  v.bias = testing::random_floats(random, static_cast<size_t>(s.output_c), kind);
  v.q = bytes(s.output_c * s.input_c, s.bits == 4 ? 15 : 255);
  v.zeros = bytes(s.output_c * s.num_scales(), 255);
  return v;
}

TestStep make_step(const LayerSpec& s, const Values& v) {
  const int64_t blocks = (s.output_c + 15) / 16, steps = s.bits == 4 ? (s.input_c + 1) / 2 : s.input_c;
  // The values after those of the last output are arbitrary.
  std::vector<uint8_t> weights(static_cast<size_t>(blocks * steps * 16), 0xa5);
  std::vector<uint8_t> zeros(static_cast<size_t>(blocks * s.num_scales() * 16), 0x5a);
  std::vector<float> scales(zeros.size(), 1e30f), bias(static_cast<size_t>(blocks * 16), -1e30f);
  for (int64_t o = 0; o < s.output_c; ++o) {
    bias[static_cast<size_t>(o)] = v.bias[static_cast<size_t>(o)];
    for (int64_t b = 0; b < s.num_scales(); ++b) {
      const auto to = static_cast<size_t>((o / 16 * s.num_scales() + b) * 16 + o % 16);
      const auto from = static_cast<size_t>(o * s.num_scales() + b);
      scales[to] = v.scales[from];
      zeros[to] = v.zeros[from];
    }
    for (int64_t k = 0; k < s.input_c; ++k) {
      const uint8_t q = v.q[static_cast<size_t>(o * s.input_c + k)];
      const int64_t step = s.bits == 4 ? k / 2 : k;
      uint8_t& to = weights[static_cast<size_t>((o / 16 * steps + step) * 16 + o % 16)];
      if (s.bits == 8) to = q;
      if (s.bits == 4) to = static_cast<uint8_t>(k % 2 == 0 ? q | (to & 0xf0) : q << 4 | (to & 15));
    }
  }
  TestStep step(kKernel_weight_only_dense);
  step.input<float>(s.with_last(s.input_c), v.input);
  step.constant<uint8_t>({static_cast<int64_t>(weights.size())}, weights);
  step.constant<float>({static_cast<int64_t>(scales.size())}, scales);
  step.constant<uint8_t>({static_cast<int64_t>(zeros.size())}, zeros);
  step.constant<float>({static_cast<int64_t>(bias.size())}, bias);
  step.output<float>(s.with_last(s.output_c));
  if (s.tweak) s.tweak(step);
  step.finish(format::KernelParams_WeightOnlyDenseParams,
              format::CreateWeightOnlyDenseParams(step.builder(),
                                                  static_cast<uint8_t>(s.stated_bits.value_or(s.bits)),
                                                  s.stated_block.value_or(s.block), s.clamp_min, s.clamp_max)
                  .Union());
  return step;
}

void LayerSpec::make(TestStep& step) const {
  Random random(1);
  step = make_step(*this, random_values(*this, random, testing::Floats::kPlain));
}

// volatile keeps the compiler from contracting or reordering.
std::vector<float> expected(const LayerSpec& s, const Values& v) {
  std::vector<float> out;
  for (int64_t row = 0; row < s.num_rows(); ++row) {
    for (int64_t o = 0; o < s.output_c; ++o) {
      volatile float sum = 0;
      for (int64_t k = 0; k < s.input_c; ++k) {
        const auto of = static_cast<size_t>(o * s.num_scales() + k / s.block);
        const int32_t integer = int32_t{v.q[static_cast<size_t>(o * s.input_c + k)]} - v.zeros[of];
        const volatile float weight = static_cast<float>(integer) * v.scales[of];
        const volatile float product = v.input[static_cast<size_t>(row * s.input_c + k)] * weight;
        sum = sum + product;
      }
      const float value = sum + v.bias[static_cast<size_t>(o)];
      out.push_back(value < s.clamp_min ? s.clamp_min : value > s.clamp_max ? s.clamp_max : value);
    }
  }
  return out;
}

class WeightOnlyDenseVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  void expect_exact(const LayerSpec& s, uint64_t seed, testing::Floats kind = testing::Floats::kPlain) {
    Random random(seed);
    const Values values = random_values(s, random, kind);
    TestStep step = make_step(s, values);
    ASSERT_TRUE(testing::run_step(step, kWeightOnlyDenseFamily, *GetParam(), seed)) << "seed " << seed;
    testing::expect_same_floats(testing::output_values<float>(step), expected(s, values),
                                "seed " + std::to_string(seed));
  }
};

INSTANTIATE_TEST_SUITE_P(All, WeightOnlyDenseVariant,
                         ::testing::ValuesIn(testing::variants_of(kWeightOnlyDenseFamily)),
                         testing::variant_test_name);

LayerSpec random_layer(Random& random) {
  LayerSpec s;
  s.rows = random.chance(0.5) ? Extents{random.integer(1, 30)}
                              : Extents{random.integer(1, 3), random.integer(1, 9)};
  s.input_c = random.integer(1, 90);
  s.output_c = random.integer(1, 140);
  s.bits = random.chance(0.5) ? 4 : 8;
  s.block = static_cast<uint32_t>(s.bits == 4 ? 2 * random.integer(1, 50) : random.integer(1, 100));
  if (random.chance(0.3)) s.clamp_min = static_cast<float>(random.unit() * 2 - 2);
  if (random.chance(0.3)) s.clamp_max = static_cast<float>(random.unit() * 6);
  return s;
}

TEST_P(WeightOnlyDenseVariant, AddsInTheStatedOrder) {
  for (uint64_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    Random random(seed);
    expect_exact(random_layer(random), seed);
  }
}

TEST_P(WeightOnlyDenseVariant, KeepsSubnormalNumbersInfinitiesAndNans) {
  for (uint64_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
    Random random(seed);
    const LayerSpec s = random_layer(random);
    expect_exact(s, seed, testing::Floats::kWide);
    expect_exact(s, seed, testing::Floats::kSpecial);
  }
}

TEST_P(WeightOnlyDenseVariant, TakesRowsAroundTilesAndWorkItems) {
  for (const int64_t rows : {1, 2, 3, 5, 6, 7, 11, 12, 13, 19, 95, 96, 97, 200}) {
    LayerSpec s;
    s.rows = {rows};
    s.input_c = 33, s.output_c = 81;
    for (const uint32_t bits : {4u, 8u}) {
      s.bits = bits;
      expect_exact(s, static_cast<uint64_t>(rows));
    }
  }
}

TEST(WeightOnlyDense, BindRefusesWhatIsWrong) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<testing::Refusal<LayerSpec>> refusals = {
      // clang-format off
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 5"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).size -= 1; }; }, "weights"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).bank = TestStep::kArenaBank; }; }, "weights"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).size -= 4; }; }, "scales"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).size -= 1; }; }, "zero points"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(3).type_code = 0; }; }, "zero points"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(4).size += 4; }; }, "bias"},
      {[](LayerSpec& s) { s.tweak = [](TestStep& t) { t.tensor(5).shape[0] = 2; }; }, "output"},
      {[](LayerSpec& s) { s.stated_bits = 5; }, "5 bits, expected 4 or 8"},
      {[](LayerSpec& s) { s.stated_bits = 8; }, "weights"},
      {[](LayerSpec& s) { s.stated_block = 0; }, "blocks of 0"},
      {[](LayerSpec& s) { s.stated_block = 15; }, "even"},
      {[](LayerSpec& s) { s.stated_block = 8; }, "scales"},
      {[](LayerSpec& s) { s.clamp_min = 1.0f; s.clamp_max = 0.0f; }, "clamp_min"},
      {[=](LayerSpec& s) { s.clamp_min = kNan; }, "clamp_min"},
      // clang-format on
  };
  testing::expect_refusals(kWeightOnlyDenseFamily, refusals);
}

}  // namespace
}  // namespace qplan::weight_only_dense_test
