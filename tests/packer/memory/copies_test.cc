// The choice of constants to copy, compared with every set that could be chosen.
#include <gtest/gtest.h>

#include <numeric>

#include "src/packer/memory/arena.h"
#include "tests/support/random.h"

namespace qplan::memory::copies_test {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;

// The most bytes read of a set of those candidates that `may` allows, whose sizes, rounded up to 16, fit.
uint64_t most_read(const std::vector<CopyCandidate>& candidates, const std::vector<bool>& may,
                   uint64_t room) {
  uint64_t most = 0;
  for (uint32_t set = 0; set < uint32_t{1} << candidates.size(); ++set) {
    uint64_t bytes = 0, read = 0;
    bool is_allowed = true;
    for (uint32_t c = 0; c < candidates.size(); ++c) {
      if ((set >> c & 1) == 0) continue;
      is_allowed = is_allowed && may[c];
      bytes += (candidates[c].size + 15) / 16 * 16;
      read += candidates[c].bytes_read;
    }
    if (is_allowed && bytes <= room) most = std::max(most, read);
  }
  return most;
}

TEST(CopiesOfConstants, TheMostReadForItsRoomIsNotAlwaysTaken) {
  // By bytes read for each byte copied the first would come first, and leave 48 bytes unused.
  const std::vector<CopyCandidate> candidates = {{64, 640}, {112, 1008}};
  EXPECT_EQ(choose_copies(candidates, std::vector<CopyRoom>{{112, 1}}, 5, kNoLimit, 16),
            (std::vector<uint32_t>{kNone, 0}));
  EXPECT_EQ(choose_copies(candidates, std::vector<CopyRoom>{{176, 1}}, 5, kNoLimit, 16),
            (std::vector<uint32_t>{0, 0}));
}

TEST(CopiesOfConstants, AreasThatCostAsMuchAsTheConstantsTakeNone) {
  const std::vector<CopyCandidate> candidates = {{64, 640}, {16, 1600}};
  EXPECT_EQ(choose_copies(candidates, std::vector<CopyRoom>{{4096, 5}, {20, 4}, {4096, 6}}, 5, kNoLimit, 16),
            (std::vector<uint32_t>{kNone, 1}));
}

TEST(CopiesOfConstants, WhatIsNeverReadStays) {
  EXPECT_EQ(
      choose_copies(std::vector<CopyCandidate>{{16, 0}}, std::vector<CopyRoom>{{4096, 1}}, 5, kNoLimit, 16),
      (std::vector<uint32_t>{kNone}));
}

TEST(CopiesOfConstants, AllTogetherStayBelowTheLimit) {
  const std::vector<CopyCandidate> candidates = {{64, 640}, {64, 641}, {64, 642}};
  EXPECT_EQ(choose_copies(candidates, std::vector<CopyRoom>{{64, 1}, {4096, 2}}, 5, 128, 16),
            (std::vector<uint32_t>{kNone, 1, 0}));
}

TEST(CopiesOfConstants, NoOtherSetReadsMore) {
  qplan::testing::Random random(20261127);
  const auto below = [&](int64_t limit) { return static_cast<uint64_t>(random.integer(0, limit - 1)); };
  for (int i = 0; i < 300; ++i) {
    std::vector<CopyCandidate> candidates;
    for (uint64_t n = 1 + below(9); n > 0; --n)
      candidates.push_back({1 + below(300), below(3) * (1 + below(5000))});
    std::vector<CopyRoom> rooms;
    for (uint64_t n = 1 + below(3); n > 0; --n) rooms.push_back({below(800), 1 + below(6)});
    const uint64_t from_cost = 1 + below(7);
    const std::vector<uint32_t> chosen = choose_copies(candidates, rooms, from_cost, kNoLimit, 16);
    ASSERT_EQ(chosen.size(), candidates.size());
    // Area by area, in the order of their costs: each has the most of what those before it have left.
    std::vector<bool> is_left(candidates.size(), true);
    std::vector<uint32_t> order(rooms.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t r) { return rooms[r].cost; });
    for (const uint32_t r : order) {
      uint64_t bytes = 0, read = 0;
      for (size_t c = 0; c < candidates.size(); ++c) {
        if (chosen[c] != r) continue;
        bytes += (candidates[c].size + 15) / 16 * 16;
        read += candidates[c].bytes_read;
      }
      EXPECT_LE(bytes, rooms[r].bytes);
      EXPECT_EQ(read, rooms[r].cost < from_cost ? most_read(candidates, is_left, rooms[r].bytes) : 0);
      for (size_t c = 0; c < candidates.size(); ++c) is_left[c] = is_left[c] && chosen[c] != r;
    }
  }
}

// 2,000 constants and 32 MB: the table of an exact choice would have four billion entries.
TEST(CopiesOfConstants, LargeChoicesTakeABoundedTable) {
  std::vector<CopyCandidate> candidates;
  for (uint64_t c = 0; c < 2000; ++c) candidates.push_back({20'000 + c % 7 * 1000, 1'000'000 + c});
  const std::vector<uint32_t> chosen =
      choose_copies(candidates, std::vector<CopyRoom>{{32'000'000, 1}}, 5, kNoLimit, 16);
  uint64_t bytes = 0;
  for (size_t c = 0; c < candidates.size(); ++c) bytes += chosen[c] == 0 ? candidates[c].size : 0;
  EXPECT_LE(bytes, 32'000'000u);
  EXPECT_GT(bytes, 24'000'000u);
}

}  // namespace
}  // namespace qplan::memory::copies_test
