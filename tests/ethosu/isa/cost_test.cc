// What memories add to the estimate of a kernel, worked out by hand.
#include <gtest/gtest.h>

#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

const Config& u55() { return *find_config("ethos-u55-128"); }

FeatureMap map_of(uint32_t h, uint32_t w, uint32_t d, bool is_nhcwb16 = false) {
  FeatureMap map;
  map.h = map.height0 = map.height1 = h, map.w = map.width0 = w, map.d = d;
  map.region = 1;
  map.is_nhcwb16 = is_nhcwb16;
  map.stride_x = is_nhcwb16 ? 16 : d, map.stride_c = is_nhcwb16 ? 16 * w : 1;
  map.stride_y = is_nhcwb16 ? round_up(d, 16) * w : uint64_t{w} * d;
  return map;
}

// 1 x 1 over 8 x 8 positions, from 64 to 32 channels, in blocks of 4 x 8 x 16.
Kernel convolution(bool is_nhcwb16) {
  Kernel k;
  k.kind = KernelKind::kConv;
  k.ifm = map_of(8, 8, 64, is_nhcwb16), k.ofm = map_of(8, 8, 32, is_nhcwb16);
  k.block_h = 4, k.block_w = 8, k.block_d = 16;
  k.weights[0] = {0, 0, 2048}, k.scales[0] = {0, 2048, 320};
  return k;
}

uint64_t access(const OperationCost& cost, MemoryClass memory) {
  return cost.access[static_cast<uint32_t>(memory)];
}

TEST(EthosuCost, WeightsAreReadOnceForEachBlockOfRowsAndColumns) {
  const Memories memories = default_memories(u55());
  Kernel k = convolution(false);
  // Two blocks of rows: 2 * 2048 + 320 bytes of flash, at one byte a cycle.
  const OperationCost in_place = operation_cost(u55(), memories, k);
  EXPECT_EQ(access(in_place, MemoryClass::kFlash), 4416u);
  EXPECT_EQ(in_place.cycles(), 4416u);
  EXPECT_EQ(in_place.slow_cycles(), 4416u);
  // The input for each of 4 blocks, 32 of 64 channels at a time: 4 * 32 * 64 bytes. The output goes by 16
  // channels, half of a burst: 2 * 2048 bytes. 8 bytes a cycle.
  EXPECT_EQ(access(in_place, MemoryClass::kSram), (8192u + 4096) / 8);
  k.weights[0].region = k.scales[0].region = 1;
  const OperationCost fast = operation_cost(u55(), memories, k);
  EXPECT_EQ(access(fast, MemoryClass::kFlash), 0u);
  EXPECT_EQ(access(fast, MemoryClass::kSram), (8192u + 4096 + 4416) / 8);
  EXPECT_LT(fast.cycles(), in_place.cycles());
}

TEST(EthosuCost, BricksOf16ChannelsAreWrittenInWholeBursts) {
  const Memories memories = default_memories(u55());
  const OperationCost rows = operation_cost(u55(), memories, convolution(false));
  const OperationCost bricks = operation_cost(u55(), memories, convolution(true));
  EXPECT_EQ(access(rows, MemoryClass::kSram) - access(bricks, MemoryClass::kSram), 2048u / 8);
  EXPECT_LE(bricks.compute, rows.compute);
}

TEST(EthosuCost, TransfersTakeTheTimeOfTheSlowerMemory) {
  const Memories memories = default_memories(u55());
  const Transfer transfer = {{0, 0, 4096}, false, {1, 0, 4096}};
  const OperationCost cost = operation_cost(u55(), memories, transfer);
  EXPECT_EQ(cost.cycles(), 64u + 4096);
  EXPECT_EQ(cost.slow_cycles(), 4096u);
  const Transfer table = {{0, 0, 256}, true, {0, 22528, 256}};
  EXPECT_EQ(operation_cost(u55(), memories, table).cycles(), 64u + 256);
  // On a U65 constants are in DRAM: 3.75 bytes a cycle.
  const Config& u65 = *find_config("ethos-u65-256");
  EXPECT_EQ(operation_cost(u65, default_memories(u65), transfer).cycles(), 500u + 1093);
}

TEST(EthosuTimeLine, SlowMemoryServesOneOperationAtATime) {
  // A kernel of 100 cycles, of which the flash is busy for 80, and a transfer of 50 beside it.
  TimeLine time(u55());
  time.start_kernel(100, 80);
  time.start_transfer(60, 50);
  EXPECT_EQ(time.cycles(), 130u);
  TimeLine apart(u55());
  apart.start_kernel(100, 0);
  apart.start_transfer(60, 50);
  EXPECT_EQ(apart.cycles(), 100u);
}

}  // namespace
}  // namespace qplan::ethosu
