// Proofs of float epilogues, held against the contracts' own functions accumulator by accumulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/target/cpu/prove.h"
#include "tests/support/random.h"

namespace qplan::testing::prove_requantization_test {
namespace {

using target::cpu::ChannelRequantization;
using target::cpu::evaluate_float_epilogue;
using target::cpu::float_epilogue_is_exact;
using target::cpu::float_epilogue_of;
using target::cpu::FloatConstants;
using target::cpu::prove_float_epilogue;

std::string text(const ChannelRequantization& c) {
  return "contract " + std::to_string(c.contract) + ", multiplier " + std::to_string(c.multiplier) +
         ", shift " + std::to_string(c.shift) + ", zero point " + std::to_string(c.zero_point) + ", clamp " +
         std::to_string(c.clamp_min) + ".." + std::to_string(c.clamp_max) + ", accumulators " +
         std::to_string(c.accumulator_min) + ".." + std::to_string(c.accumulator_max);
}

int64_t contract_output(const ChannelRequantization& c, int64_t a) {
  const auto accumulator = static_cast<int32_t>(a);
  const int64_t q = c.contract == format::Contract_TFL1 ? requantize_tfl1(accumulator, c.multiplier, c.shift)
                                                        : requantize_tfl2(accumulator, c.multiplier, c.shift);
  return std::clamp<int64_t>(q + c.zero_point, c.clamp_min, c.clamp_max);
}

// Rounding towards zero, as kernels set it for float epilogues.
class TowardsZero {
 public:
  TowardsZero() { std::fesetround(FE_TOWARDZERO); }
  ~TowardsZero() { std::fesetround(FE_TONEAREST); }
};

// The float epilogue by the host's own arithmetic; opaque to the compiler, which knows no rounding modes.
__attribute__((noinline)) int64_t hardware_form(format::FloatEpilogue form, const FloatConstants& f,
                                                int64_t a) {
  const volatile auto accumulator = static_cast<int32_t>(a);
  const volatile float x = static_cast<float>(accumulator);
  const float offset = form == format::FloatEpilogue_SIGNED && a < 0 ? -f.offset : f.offset;
  const volatile float sum = std::fmaf(x, f.scale, offset);
  return static_cast<int64_t>(sum);
}

int64_t form_output(const ChannelRequantization& c, format::FloatEpilogue form, const FloatConstants& f,
                    int64_t a) {
  return std::clamp<int64_t>(hardware_form(form, f, a) + c.zero_point, c.clamp_min, c.clamp_max);
}

// The first accumulator where they part, or accumulator_max + 1.
int64_t first_difference(const ChannelRequantization& c, format::FloatEpilogue form, const FloatConstants& f,
                         int64_t stride) {
  const TowardsZero rounding;
  for (int64_t a = c.accumulator_min; a <= c.accumulator_max; a += stride) {
    if (contract_output(c, a) != form_output(c, form, f, a)) return a;
  }
  return c.accumulator_max + 1;
}

// As layers have them: the clamp's ends, often the zero point itself, and accumulators of some thousand times
// the output's steps or as few as some.
ChannelRequantization random_channel(Random& random, int32_t min_shift, int32_t max_shift, int64_t reach) {
  ChannelRequantization c;
  c.contract = random.chance(0.75) ? format::Contract_TFL2 : format::Contract_TFL1;
  c.multiplier =
      random.chance(0.1) ? (1 << 30) : static_cast<int32_t>(random.integer(int64_t{1} << 30, INT32_MAX));
  c.shift = static_cast<int32_t>(random.integer(min_shift, max_shift));
  const bool is_signed = random.chance(0.5);
  const int32_t lo = is_signed ? -128 : 0, hi = is_signed ? 127 : 255;
  c.zero_point = random.chance(0.4) ? lo : static_cast<int32_t>(random.integer(lo, hi));
  c.clamp_min = random.chance(0.3) ? c.zero_point : lo;
  c.clamp_max = random.chance(0.7) ? hi : static_cast<int32_t>(random.integer(c.clamp_min, hi));
  const int64_t centre = random.integer(-reach / 2, reach / 2);
  c.accumulator_min = centre - random.integer(0, reach);
  c.accumulator_max = centre + random.integer(0, reach);
  return c;
}

TEST(ProveRequantization, ProvedConstantsAreExactForEveryAccumulator) {
  Random random(1);
  uint32_t proved = 0, channels = 0;
  for (; channels < 400; ++channels) {
    const ChannelRequantization c = random_channel(random, -11, -2, 1 << 17);
    const format::FloatEpilogue form = float_epilogue_of(c.zero_point, c.clamp_min);
    const auto f = prove_float_epilogue(c, form);
    if (!f) continue;
    ++proved;
    ASSERT_EQ(first_difference(c, form, *f, 1), c.accumulator_max + 1) << text(c);
  }
  EXPECT_GT(proved, channels * 95 / 100) << "of " << channels;
}

TEST(ProveRequantization, ProvedConstantsAreExactOnStridesThroughLongRanges) {
  Random random(2);
  uint32_t proved = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    ChannelRequantization c = random_channel(random, -22, 8, int64_t{1} << random.integer(4, 30));
    const format::FloatEpilogue form = float_epilogue_of(c.zero_point, c.clamp_min);
    const auto f = prove_float_epilogue(c, form);
    if (!f) continue;
    ++proved;
    const int64_t span = c.accumulator_max - c.accumulator_min;
    ASSERT_GT(first_difference(c, form, *f, 1 + span / 20011), c.accumulator_max) << text(c);
    // Everything around the steps of the output, where differences would be.
    const double scale = std::ldexp(static_cast<double>(c.multiplier), c.shift - 31);
    const TowardsZero rounding;
    for (int32_t k = -256; k <= 256; ++k) {
      const auto near = static_cast<int64_t>(std::floor((k - 0.5) / scale));
      for (int64_t a = std::max(near - 4, c.accumulator_min); a <= std::min(near + 4, c.accumulator_max);
           ++a) {
        ASSERT_EQ(contract_output(c, a), form_output(c, form, *f, a)) << a << ", " << text(c);
      }
    }
  }
  EXPECT_GT(proved, 150u);
}

// The check itself against exhaustion: it must never say yes where an accumulator differs, and where it says
// no to constants close to proved ones there is one that differs.
TEST(ProveRequantization, SlightlyWrongConstantsAreRefused) {
  Random random(3);
  uint32_t refused = 0, accepted = 0;
  for (uint32_t i = 0; i < 150; ++i) {
    const ChannelRequantization c = random_channel(random, -10, -4, 1 << 16);
    const format::FloatEpilogue form = float_epilogue_of(c.zero_point, c.clamp_min);
    const auto f = prove_float_epilogue(c, form);
    if (!f) continue;
    for (uint32_t j = 0; j < 12; ++j) {
      FloatConstants near = *f;
      const auto ulps = static_cast<int32_t>(random.integer(-40, 40));
      near.scale = std::bit_cast<float>(std::bit_cast<int32_t>(near.scale) + ulps);
      near.offset += static_cast<float>(random.integer(-3, 3)) * near.scale / 4;
      if (near.offset < 0.25f) continue;
      const bool exact = first_difference(c, form, near, 1) > c.accumulator_max;
      ASSERT_EQ(float_epilogue_is_exact(c, form, near), exact)
          << text(c) << ", scale " << near.scale << ", offset " << near.offset;
      (exact ? accepted : refused) += 1;
    }
  }
  EXPECT_GT(refused, 500u);
  EXPECT_GT(accepted, 50u);
}

TEST(ProveRequantization, OutputsBelowTheZeroPointNeedASignedOffset) {
  // About 0.086 of every accumulator, rounded twice: the steps above zero come early, those below late.
  ChannelRequantization c;
  c.multiplier = 1476395013;
  c.shift = -3;
  c.clamp_min = -128;
  c.clamp_max = 127;
  c.accumulator_min = -600;
  c.accumulator_max = 600;
  EXPECT_EQ(float_epilogue_of(0, -128), format::FloatEpilogue_SIGNED);
  EXPECT_EQ(float_epilogue_of(3, 3), format::FloatEpilogue_PLAIN);
  EXPECT_FALSE(prove_float_epilogue(c, format::FloatEpilogue_PLAIN).has_value());
  EXPECT_TRUE(prove_float_epilogue(c, format::FloatEpilogue_SIGNED).has_value());
  c.clamp_min = 0;
  EXPECT_TRUE(prove_float_epilogue(c, format::FloatEpilogue_PLAIN).has_value());
}

TEST(ProveRequantization, WhatWrapsIsRefused) {
  ChannelRequantization c;
  c.multiplier = 1 << 30;
  c.shift = 2;
  c.clamp_max = 255;
  c.accumulator_min = 0;
  c.accumulator_max = (1 << 29) - 1;  // times 4: below 2^31
  EXPECT_TRUE(prove_float_epilogue(c, format::FloatEpilogue_PLAIN).has_value());
  c.accumulator_max = 1 << 29;  // wraps to -2^31, and the output to 0
  EXPECT_EQ(contract_output(c, c.accumulator_max), 0);
  EXPECT_FALSE(prove_float_epilogue(c, format::FloatEpilogue_PLAIN).has_value());
  c.shift = -8;
  c.accumulator_max = int64_t{INT32_MAX} + 1;  // the sum itself wraps
  EXPECT_FALSE(prove_float_epilogue(c, format::FloatEpilogue_PLAIN).has_value());
}

TEST(ProveRequantization, DeadChannelsHaveConstants) {
  ChannelRequantization c;
  c.multiplier = 0;
  c.zero_point = 7;
  c.clamp_max = 255;
  c.accumulator_min = -1000;
  c.accumulator_max = 1000;
  for (const int64_t bias : {int64_t{0}, int64_t{1} << 30, -(int64_t{1} << 30)}) {
    c.accumulator_min = bias - 5;
    c.accumulator_max = bias + 5;
    for (const int32_t multiplier : {0, INT32_MAX}) {
      c.multiplier = multiplier;
      c.shift = -7;
      const auto f = prove_float_epilogue(c, format::FloatEpilogue_SIGNED);
      ASSERT_TRUE(f.has_value()) << text(c);
      EXPECT_EQ(first_difference(c, format::FloatEpilogue_SIGNED, *f, 1), c.accumulator_max + 1) << text(c);
    }
  }
}

// The proofs' own arithmetic against the machine's.
TEST(ProveRequantization, EvaluatesAsTheHardwareDoes) {
  Random random(4);
  for (uint32_t i = 0; i < 1000000; ++i) {
    FloatConstants f;
    f.scale =
        static_cast<float>(std::ldexp(0.5 + random.unit() / 2, static_cast<int>(random.integer(-24, -8))));
    if (random.chance(0.2)) {
      f.scale = static_cast<float>(std::ldexp(1.0, static_cast<int>(random.integer(-16, -8))));
    }
    f.offset = static_cast<float>(0.25 + random.unit() * 0.74);
    if (random.chance(0.2)) f.offset = 0.5f;
    const auto magnitude = random.integer(0, (int64_t{1} << random.integer(1, 31)) - 1);
    const auto a = static_cast<int32_t>(random.chance(0.5) ? magnitude : -magnitude);
    const auto form = random.chance(0.5) ? format::FloatEpilogue_PLAIN : format::FloatEpilogue_SIGNED;
    const int32_t evaluated = evaluate_float_epilogue(form, f, a);
    const TowardsZero rounding;
    ASSERT_EQ(evaluated, hardware_form(form, f, a)) << a << " * " << f.scale << " + " << f.offset;
  }
}

}  // namespace
}  // namespace qplan::testing::prove_requantization_test
