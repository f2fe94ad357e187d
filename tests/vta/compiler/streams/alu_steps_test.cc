// The ALU's sequence for TFL2, interpreted lane by lane as the instructions are defined, against the
// kernels'. QPLAN_VTA_VALUES=n in the environment takes n random accumulators for each shift instead of the
// default.
#include "src/vta/compiler/streams/alu_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <vector>

#include "kernels/numeric/requantize.h"

namespace qplan::vta::compiler::alu_steps_test {

namespace {

using vta::AluOp;

int32_t apply(AluOp op, int32_t a, int32_t b) {
  switch (op) {
    case AluOp::kMin:
      return std::min(a, b);
    case AluOp::kMax:
      return std::max(a, b);
    case AluOp::kAdd:
      return wrap_add(a, b);
    case AluOp::kMul:
      return wrap_mul(a, b);
    case AluOp::kShr:
      return b < 0 ? wrap_shift_left(a, -b) : a >> b;
  }
  return 0;
}

// The accumulator's block after the sequence, for lane `o`.
int32_t interpret(const Requantization& requantization, int32_t accumulator, size_t o) {
  std::array<int32_t, 1 + kNumTemporaries> block = {accumulator, 77, -77, 12345};
  for (const AluStep& step : requantization.steps) {
    int32_t& dst = block[static_cast<size_t>(step.dst)];
    switch (step.source) {
      case AluStep::Source::kReset:
        dst = 0;
        break;
      case AluStep::Source::kImmediate:
        dst = apply(step.op, dst, step.immediate);
        break;
      case AluStep::Source::kAccBlock:
        dst = apply(step.op, dst, block[static_cast<size_t>(step.block)]);
        break;
      case AluStep::Source::kConstant:
        dst = apply(step.op, dst, requantization.constants[static_cast<size_t>(step.constant)][o]);
        break;
    }
  }
  return block[0];
}

constexpr int32_t kBound = static_cast<int32_t>(kTfl2Bound);

// Accumulators within the bound: powers of two, halves of the split at 2^15, ties of both shifts, all give or
// take a little; then random ones of every magnitude.
std::vector<int32_t> accumulators(int32_t shift, size_t num_random, std::mt19937& random) {
  const int32_t bound = kBound >> std::max(shift, 0);
  std::vector<int32_t> values;
  const auto add = [&](int64_t value) {
    for (int64_t d = -2; d <= 2; ++d) {
      for (const int64_t v : {value + d, -value + d})
        values.push_back(static_cast<int32_t>(std::clamp<int64_t>(v, -bound, bound)));
    }
  };
  for (int32_t bit = 0; bit < 30; ++bit) {
    add(int64_t{1} << bit);
    add(int64_t{3} << bit);
  }
  for (int64_t high = 0; high < 12; ++high) add(high * 32768 + 16384);
  add(bound);
  add(bound - 16384);
  add((int64_t{bound} & ~int64_t{32767}) - 16384);
  for (size_t n = 0; n < num_random; ++n) {
    const auto value = static_cast<int32_t>(random() % (1u << (random() % 30)));
    values.push_back(std::clamp(random() % 2 == 0 ? value : -value, -bound, bound));
  }
  return values;
}

TEST(VtaRequantize, EqualsTheKernelsArithmetic) {
  const char* text = std::getenv("QPLAN_VTA_VALUES");
  const size_t num_random = text == nullptr ? 500 : std::strtoul(text, nullptr, 10);
  std::mt19937 random(1);
  const std::vector<int32_t> fixed = {1 << 30,    (1 << 30) + 1, 0x40007fff, 0x40008000, 0x5a827999,
                                      0x7fff8000, 0x7fff7fff,    0x7fffffff, 0};
  for (int32_t shift = -31; shift <= 29; ++shift) {
    // Beside channels with this shift, some without: their lanes share the sequence.
    for (const bool is_mixed : {false, true}) {
      std::vector<QuantizedMultiplier> multipliers;
      for (const int32_t multiplier : fixed) multipliers.push_back({multiplier, shift});
      while (multipliers.size() < 16)
        multipliers.push_back({static_cast<int32_t>((1u << 30) + random() % (1u << 30)), shift});
      if (is_mixed) multipliers.back().shift = 0;
      const std::vector<int32_t> bias(16, 0);
      const int32_t zero_point = static_cast<int32_t>(random() % 256) - 128;
      const Requantization r = make_tfl2(bias, multipliers, zero_point, -128, 127);
      for (const int32_t a : accumulators(shift, num_random, random)) {
        for (size_t o = 0; o < 16; ++o) {
          const QuantizedMultiplier& m = multipliers[o];
          ASSERT_EQ(interpret(r, a, o),
                    add_clamp(requantize_tfl2(a, m.multiplier, m.shift), zero_point, -128, 127))
              << "a " << a << ", multiplier " << m.multiplier << ", shift " << m.shift << ", zero point "
              << zero_point;
        }
      }
    }
  }
}

// The cost of a layer: the usual one shifts every channel to the right.
TEST(VtaRequantize, StepsThatNoChannelNeedsAreLeftOut) {
  const std::vector<int32_t> bias(16, 5);
  const auto made = [&](int32_t first_shift, int32_t other_shift, int32_t zero_point) {
    std::vector<QuantizedMultiplier> multipliers(16, {1 << 30, other_shift});
    multipliers[0].shift = first_shift;
    return make_tfl2(bias, multipliers, zero_point, -128, 127);
  };
  EXPECT_EQ(made(-7, -9, 3).num_alu_instructions(), 26);
  EXPECT_EQ(made(-7, -9, 3).num_constants(), 5);
  EXPECT_EQ(made(-7, -9, 3).cycles_per_element(), 45);
  EXPECT_EQ(made(-30, -9, 3).num_alu_instructions(), 27);  // its zero point does not fit before the shift
  EXPECT_EQ(made(0, -9, 3).num_alu_instructions(), 27);
  EXPECT_EQ(made(2, -9, 3).num_alu_instructions(), 28);
  EXPECT_EQ(made(0, 0, 0).num_alu_instructions(), 21);
}

}  // namespace
}  // namespace qplan::vta::compiler::alu_steps_test
