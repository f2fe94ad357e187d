// The scaling of the simulator in 64 bits against the formula in 128.
#include <gtest/gtest.h>

#include <random>

#include "src/ethosu/sim/machine.h"

namespace qplan::ethosu::sim {
namespace {

__extension__ using Wide = __int128;

int64_t half_up(int64_t acc, uint32_t multiplier, uint32_t shift) {
  const Wide half = shift == 0 ? Wide{0} : Wide{1} << (shift - 1);
  return static_cast<int64_t>((Wide{acc} * static_cast<int64_t>(multiplier) + half) >> shift);
}

TEST(EthosuArithmetic, ScalingEqualsTheFormulaIn128Bits) {
  constexpr int64_t kEdges[] = {0,
                                1,
                                -1,
                                INT32_MAX,
                                INT32_MIN,
                                int64_t{1} << 32,
                                -(int64_t{1} << 32),
                                (int64_t{1} << 62) - 1,
                                1 - (int64_t{1} << 62)};
  constexpr uint32_t kMultipliers[] = {0, 1, 2, 0x40000000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
  for (uint32_t shift = 0; shift < 96; ++shift) {
    for (const int64_t acc : kEdges) {
      for (const uint32_t multiplier : kMultipliers)
        EXPECT_EQ(scaled_half_up(acc, multiplier, shift), half_up(acc, multiplier, shift))
            << acc << " * " << multiplier << " >> " << shift;
    }
  }
  constexpr uint32_t kSeed = 19;
  std::mt19937_64 random(kSeed);
  for (uint32_t i = 0; i < 200'000; ++i) {
    const int64_t acc = static_cast<int64_t>(random()) >> (2 + random() % 61);
    const auto multiplier = static_cast<uint32_t>(random() >> (random() % 2 == 0 ? 32 : 33));
    const auto shift = static_cast<uint32_t>(random() % 96);
    ASSERT_EQ(scaled_half_up(acc, multiplier, shift), half_up(acc, multiplier, shift))
        << acc << " * " << multiplier << " >> " << shift << ", seed " << kSeed;
  }
}

}  // namespace
}  // namespace qplan::ethosu::sim
