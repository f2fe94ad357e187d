#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "src/packer/memory/arena.h"
#include "tests/support/sanitizers.h"

namespace qplan::memory::planner_test {
namespace {

bool alive_together(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

void expect_valid(const std::vector<Buffer>& buffers, const Placement& placement, uint64_t alignment) {
  ASSERT_EQ(placement.offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(placement.offsets[i] % alignment, 0u);
    EXPECT_LE(placement.offsets[i] + buffers[i].size, placement.peak);
    for (size_t k = 0; k < i; ++k) {
      if (!alive_together(buffers[i], buffers[k])) continue;
      EXPECT_TRUE(placement.offsets[i] + buffers[i].size <= placement.offsets[k] ||
                  placement.offsets[k] + buffers[k].size <= placement.offsets[i])
          << "buffers " << k << " and " << i;
    }
  }
}

// The least peak of all: every placement can be pushed down into one that first-gap finds in some order.
uint64_t best_peak(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  uint64_t best = UINT64_MAX;
  do {
    std::vector<uint64_t> offsets(buffers.size(), 0);
    uint64_t peak = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      const Buffer& buffer = buffers[order[n]];
      // Candidates: the bottom, and the end of each buffer that is already placed.
      std::vector<uint64_t> candidates{0};
      for (size_t k = 0; k < n; ++k) candidates.push_back(offsets[order[k]] + buffers[order[k]].size);
      std::sort(candidates.begin(), candidates.end());
      for (const uint64_t at : candidates) {
        const bool fits =
            std::all_of(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), [&](size_t other) {
              return !alive_together(buffers[other], buffer) || at + buffer.size <= offsets[other] ||
                     offsets[other] + buffers[other].size <= at;
            });
        if (!fits) continue;
        offsets[order[n]] = at;
        break;
      }
      peak = std::max(peak, offsets[order[n]] + buffer.size);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

PlannerOptions unaligned() {
  PlannerOptions options;
  options.alignment = 1;
  return options;
}

TEST(Planner, NothingNeedsNothing) {
  const Placement placement = place_buffers({}, {});
  EXPECT_EQ(placement.peak, 0u);
  EXPECT_EQ(placement.lower_bound, 0u);
}

TEST(Planner, SizesAreRoundedUpToTheAlignment) {
  const std::vector<Buffer> buffers = {{1, 0, 1}, {65, 1, 2}};
  const Placement placement = place_buffers(buffers, {});
  expect_valid(buffers, placement, 64);
  EXPECT_EQ(placement.lower_bound, 64u + 128u);
  EXPECT_EQ(placement.peak, 64u + 128u);
}

TEST(Planner, ChainNeedsItsLargestPair) {
  const std::vector<Buffer> buffers = {{100, 0, 1}, {300, 1, 2}, {200, 2, 3}, {50, 3, 4}, {400, 4, 5}};
  const Placement placement = place_buffers(buffers, unaligned());
  expect_valid(buffers, placement, 1);
  EXPECT_EQ(placement.peak, 500u);
}

TEST(Planner, ResidualKeepsItsShortcut) {
  // x lives over the two convolutions of its branch.
  const std::vector<Buffer> buffers = {{100, 0, 3}, {600, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const Placement placement = place_buffers(buffers, unaligned());
  expect_valid(buffers, placement, 1);
  EXPECT_EQ(placement.peak, 800u);
}

TEST(Planner, InceptionMeetsTheLowerBound) {
  // Four branches of one input end in one concatenation.
  const std::vector<Buffer> buffers = {{256, 0, 6}, {64, 1, 7},  {96, 2, 3}, {128, 3, 7}, {16, 4, 5},
                                       {32, 5, 7},  {256, 6, 6}, {32, 6, 7}, {256, 7, 8}};
  const Placement placement = place_buffers(buffers, unaligned());
  expect_valid(buffers, placement, 1);
  EXPECT_EQ(placement.peak, placement.lower_bound);
}

TEST(Planner, SmallRandomGraphsArePlacedAsWellAsCanBe) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Buffer> buffers(2 + random() % 6);
    for (Buffer& buffer : buffers) {
      buffer.size = 1 + random() % 20;
      buffer.first = random() % 8;
      buffer.last = buffer.first + random() % 4;
    }
    const Placement placement = place_buffers(buffers, unaligned());
    expect_valid(buffers, placement, 1);
    EXPECT_GE(placement.peak, placement.lower_bound);
    EXPECT_EQ(placement.peak, best_peak(buffers));
  }
}

TEST(Planner, RestsOfBuffersBeginWithThem) {
  // 16 of the first buffer's 32 bytes live on; the third one fits only above them.
  const std::vector<Buffer> buffers = {{32, 0, 2}, {16, 3, 5, 0}, {16, 2, 3}, {16, 4, 5}};
  const Placement placement = place_buffers(buffers, unaligned());
  expect_valid(buffers, placement, 1);
  EXPECT_EQ(placement.offsets[0], placement.offsets[1]);
  EXPECT_EQ(placement.peak, 48u);
  EXPECT_EQ(placement.lower_bound, 48u);
}

TEST(Planner, RandomGraphsWithRestsAreValid) {
  uint32_t num_at_bound = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Buffer> buffers(4 + random() % 40);
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      Buffer& buffer = buffers[i];
      buffer = {1 + random() % 200, i, i + 1 + static_cast<uint32_t>(random() % 4)};
      const uint32_t before = i == 0 ? 0 : static_cast<uint32_t>(random() % i);
      const bool has_rest = std::any_of(buffers.begin(), buffers.begin() + i,
                                        [&](const Buffer& other) { return other.rest_of == before; });
      if (i == 0 || has_rest) continue;
      buffer.rest_of = before;
      buffer.size = 1 + random() % buffers[before].size;
      buffer.first = buffers[before].last + 1;
      buffer.last = buffer.first + static_cast<uint32_t>(random() % 4);
    }
    const Placement placement = place_buffers(buffers, {});
    expect_valid(buffers, placement, 64);
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].rest_of == kNone) continue;
      EXPECT_EQ(placement.offsets[i], placement.offsets[buffers[i].rest_of]);
    }
    EXPECT_GE(placement.peak, placement.lower_bound);
    num_at_bound += placement.peak == placement.lower_bound ? 1 : 0;
  }
  EXPECT_GT(num_at_bound, 50u);
}

TEST(Planner, LargerRandomGraphsAreValidAndNearTheBound) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Buffer> buffers(200);
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      buffers[i] = {64 * (1 + random() % 1000), i, i + 1 + static_cast<uint32_t>(random() % 6)};
    }
    const Placement placement = place_buffers(buffers, {});
    expect_valid(buffers, placement, 64);
    EXPECT_LE(placement.peak, placement.lower_bound + placement.lower_bound / 5);
  }
}

TEST(Planner, TheSameBuffersGiveTheSameOffsets) {
  std::mt19937 random(7);
  std::vector<Buffer> buffers(100);
  for (uint32_t i = 0; i < buffers.size(); ++i)
    buffers[i] = {1 + random() % 5000, i / 2, i / 2 + 1 + static_cast<uint32_t>(random() % 9)};
  EXPECT_EQ(place_buffers(buffers, {}).offsets, place_buffers(buffers, {}).offsets);
}

void expect_quick(const std::vector<Buffer>& buffers) {
  const std::clock_t begin = std::clock();  // of this process: the machine may be busy
  const Placement placement = place_buffers(buffers, {});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GE(placement.peak, placement.lower_bound);
  ::testing::Test::RecordProperty("seconds", std::to_string(seconds));
#if defined(NDEBUG) && !QPLAN_ASAN
  EXPECT_LT(seconds, 20.0);
#endif
}

TEST(Planner, HundredThousandBuffersInAChainAreQuick) {
  std::mt19937 random(1);
  std::vector<Buffer> buffers(100'000);
  for (uint32_t i = 0; i < buffers.size(); ++i) buffers[i] = {1 + random() % 100'000, i, i + 1};
  expect_quick(buffers);
}

TEST(Planner, HundredThousandBuffersAliveAtOnceAreQuick) {
  std::mt19937 random(1);
  std::vector<Buffer> buffers(100'000);
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = {1 + random() % 100'000, i, 100'000 + static_cast<uint32_t>(random() % 100'000)};
  }
  expect_quick(buffers);
}

}  // namespace
}  // namespace qplan::memory::planner_test
