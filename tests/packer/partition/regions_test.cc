#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "src/packer/partition/stages.h"
#include "tests/support/random.h"
#include "tests/support/sanitizers.h"

namespace qplan::partition::regions_test {
namespace {

using Regions = std::vector<uint32_t>;
constexpr uint32_t kNone = kNoRegion;

TEST(MergeRegions, AChainOfOneDeviceIsOneRegion) {
  EXPECT_EQ(merge_regions({{{}, {0}, {1}}, {0, 0, 0}}), (Regions{0, 0, 0}));
  EXPECT_EQ(merge_regions({{{}, {0}, {1}}, {0, kNoDevice, 0}}), (Regions{0, kNone, 1}));
  EXPECT_EQ(merge_regions({{{}, {0}, {1}}, {0, 1, 1}}), (Regions{0, 1, 1}));
  EXPECT_EQ(merge_regions({}), Regions{});
}

TEST(MergeRegions, UnitsWithoutAWayBetweenThemStayApart) {
  EXPECT_EQ(merge_regions({{{}, {}}, {0, 0}}), (Regions{0, 1}));
}

// 0 -> 1 -> 3, 0 -> 2 -> 3.
TEST(MergeRegions, ADiamondWithAnotherDeviceInOneArmDoesNotMerge) {
  const std::vector<std::vector<uint32_t>> diamond = {{}, {0}, {0}, {1, 2}};
  EXPECT_EQ(merge_regions({diamond, {0, 0, 0, 0}}), (Regions{0, 0, 0, 0}));
  EXPECT_EQ(merge_regions({diamond, {0, 0, kNoDevice, 0}}), (Regions{0, 0, kNone, 1}));
  EXPECT_EQ(merge_regions({diamond, {0, kNoDevice, kNoDevice, 0}}), (Regions{0, kNone, kNone, 1}));
}

// An input that comes late from elsewhere keeps nothing apart.
TEST(MergeRegions, ABranchThatDoesNotComeFromTheRegionMayJoinIt) {
  // 0: device; 1 (CPU) -> 2 (other device) -> 3 (CPU) -> 4 (device) <- 0
  EXPECT_EQ(merge_regions({{{}, {}, {1}, {2}, {0, 3}}, {0, kNoDevice, 1, kNoDevice, 0}}),
            (Regions{0, kNone, 1, kNone, 0}));
}

struct Oracle {
  explicit Oracle(const UnitGraph& graph, const Regions& regions) : size(regions.size()), item(size) {
    // Items: regions first, then each unit outside of them.
    uint32_t count = 0;
    for (const uint32_t region : regions) count = region == kNone ? count : std::max(count, region + 1);
    for (size_t u = 0; u < size; ++u) item[u] = regions[u] == kNone ? count++ : regions[u];
    reach.assign(count, std::vector<bool>(count, false));
    for (size_t u = 0; u < size; ++u) {
      for (const uint32_t p : graph.reads[u]) {
        if (item[p] != item[u]) reach[item[p]][item[u]] = true;
      }
    }
    direct = reach;
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; reach[i][k] && j < count; ++j) reach[i][j] = reach[i][j] || reach[k][j];
      }
    }
  }
  bool has_circle() const {
    for (size_t i = 0; i < reach.size(); ++i) {
      if (reach[i][i]) return true;
    }
    return false;
  }
  // Another way than the edge itself.
  bool detour(uint32_t from, uint32_t to) const {
    for (size_t k = 0; k < reach.size(); ++k) {
      if (k != from && k != to && reach[from][k] && reach[k][to]) return true;
    }
    return false;
  }

  size_t size;
  std::vector<uint32_t> item;
  std::vector<std::vector<bool>> reach, direct;
};

UnitGraph random_graph(testing::Random& random, size_t size, int64_t num_devices, int64_t max_reads) {
  UnitGraph graph;
  for (size_t u = 0; u < size; ++u) {
    std::vector<uint32_t> reads;
    for (int64_t i = random.integer(0, max_reads); u > 0 && i > 0; --i) {
      const auto last = static_cast<int64_t>(u) - 1;
      const int64_t first = random.chance(0.7) ? std::max<int64_t>(0, last - 4) : 0;
      const auto p = static_cast<uint32_t>(random.integer(first, last));
      if (std::ranges::find(reads, p) == reads.end()) reads.push_back(p);
    }
    graph.reads.push_back(reads);
    graph.device.push_back(static_cast<int32_t>(random.integer(-1, num_devices - 1)));
  }
  return graph;
}

TEST(MergeRegions, RandomGraphsHaveConvexRegionsThatCannotBeMergedFurther) {
  const char* text = std::getenv("QPLAN_TEST_SEED");
  const uint64_t first = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  for (uint64_t seed = first; seed < first + 3000; ++seed) {
    SCOPED_TRACE("QPLAN_TEST_SEED=" + std::to_string(seed));
    testing::Random random(seed);
    const UnitGraph graph =
        random_graph(random, static_cast<size_t>(random.integer(1, 28)), random.integer(1, 3), 3);
    const Regions regions = merge_regions(graph);
    ASSERT_EQ(regions.size(), graph.reads.size());
    const Oracle oracle(graph, regions);
    ASSERT_FALSE(oracle.has_circle());
    for (size_t u = 0; u < regions.size(); ++u) {
      ASSERT_EQ(regions[u] == kNone, graph.device[u] == kNoDevice);
      for (size_t v = 0; v < u; ++v) {
        if (regions[u] != kNone && regions[u] == regions[v]) {
          ASSERT_EQ(graph.device[u], graph.device[v]);
        }
      }
      for (const uint32_t p : graph.reads[u]) {
        if (regions[u] == kNone || graph.device[p] != graph.device[u] || regions[p] == regions[u]) continue;
        EXPECT_TRUE(oracle.detour(oracle.item[p], oracle.item[u]))
            << p << " and " << u << " could be one region";
      }
    }
    if (HasFailure()) return;
  }
}

// Regions are connected: nothing is thrown together that has nothing to do with each other.
TEST(MergeRegions, RegionsAreConnected) {
  testing::Random random(7);
  for (int i = 0; i < 300; ++i) {
    const UnitGraph graph = random_graph(random, 20, 2, 2);
    const Regions regions = merge_regions(graph);
    std::vector<uint32_t> root(regions.size());
    const auto find = [&](uint32_t u) {
      while (root[u] != u) u = root[u];
      return u;
    };
    for (uint32_t u = 0; u < regions.size(); ++u) {
      root[u] = u;
      for (const uint32_t p : graph.reads[u]) {
        if (regions[u] != kNone && regions[p] == regions[u]) root[find(u)] = find(p);
      }
    }
    for (uint32_t u = 0; u < regions.size(); ++u) {
      for (uint32_t v = 0; v < u; ++v) {
        if (regions[u] != kNone && regions[u] == regions[v]) {
          EXPECT_EQ(find(u), find(v));
        }
      }
    }
  }
}

TEST(MergeRegions, TenThousandUnitsTakeLessThanASecond) {
  for (const int64_t max_reads : {1, 2, 4}) {
    testing::Random random(static_cast<uint64_t>(max_reads));
    const UnitGraph graph = random_graph(random, 10'000, 2, max_reads);
    const std::clock_t begin = std::clock();  // of this process: the machine may be busy
    const Regions regions = merge_regions(graph);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_EQ(regions.size(), 10'000u);
    RecordProperty("seconds_" + std::to_string(max_reads), std::to_string(seconds));
#if defined(NDEBUG) && !QPLAN_ASAN
    EXPECT_LT(seconds, 1.0) << max_reads;
#endif
  }
}

}  // namespace
}  // namespace qplan::partition::regions_test
