// Which BLOCKDEP is proved, on kernels whose blocks are whole rows.
#include <gtest/gtest.h>

#include "src/ethosu/isa/stream.h"

namespace qplan::ethosu {
namespace {

// NHWC, 4 bytes a row.
FeatureMap map_at(uint64_t base, uint32_t rows) {
  FeatureMap map;
  map.h = map.height0 = map.height1 = rows;
  map.base[0] = base;
  map.stride_x = map.stride_c = 1;
  map.w = map.width0 = 4;
  map.stride_y = 4;
  return map;
}

// A maximum over `window` rows: a block is one row of the output.
Kernel pool(uint64_t from, uint64_t to, uint32_t rows, uint32_t window = 1) {
  Kernel k;
  k.kind = KernelKind::kPool;
  k.ifm = map_at(from, rows + window - 1);
  k.ofm = map_at(to, rows);
  k.window_h = window;
  k.block_w = 4;
  return k;
}

TEST(EthosuBlockdep, IsAsLargeAsTheRowsThatAreRead) {
  // Job j reads rows j to j + window - 1 of 8; with BLOCKDEP d row 8 - (d - j) is the first that may be
  // missing.
  for (const auto& [window, expected] :
       {std::pair<uint32_t, uint32_t>{1, 3}, {5, 3}, {6, 2}, {7, 1}, {8, 0}}) {
    EXPECT_EQ(safe_blockdep(pool(0, 100, 8), pool(100, 200, 9 - window, window)), expected) << window;
  }
}

TEST(EthosuBlockdep, IsNotMoreThanThereAreBlocks) {
  EXPECT_EQ(safe_blockdep(pool(0, 100, 2), pool(300, 400, 8)), 2u);
  EXPECT_EQ(safe_blockdep(pool(0, 100, 1), pool(300, 400, 8)), 1u);
  EXPECT_EQ(safe_blockdep(pool(0, 100, 8), pool(300, 400, 1)), 3u);
}

TEST(EthosuBlockdep, IsZeroWhereNothingIsProved) {
  const Kernel previous = pool(0, 100, 8);
  EXPECT_EQ(safe_blockdep(previous, pool(300, 0, 8)), 0u);    // writes what the one before reads
  EXPECT_EQ(safe_blockdep(previous, pool(300, 131, 8)), 0u);  // its last byte is written again
  EXPECT_EQ(safe_blockdep(previous, pool(300, 132, 8)), 3u);
  // Weights of the one before, over which this one writes: its last blocks may still read them.
  Kernel convolution = previous;
  convolution.kind = KernelKind::kConv;
  convolution.weights[0] = {0, 400, 32}, convolution.scales[0] = {0, 432, 16};
  EXPECT_EQ(safe_blockdep(convolution, pool(300, 447, 8)), 0u);
  EXPECT_EQ(safe_blockdep(convolution, pool(300, 448, 8)), 3u);
  EXPECT_EQ(safe_blockdep(convolution, pool(300, 369, 8)), 0u);
  EXPECT_EQ(safe_blockdep(convolution, pool(300, 368, 8)), 3u);
  Kernel table = pool(300, 400, 8);
  table.activation = 16;
  EXPECT_EQ(safe_blockdep(previous, table), 0u);
  EXPECT_EQ(safe_blockdep(table, previous), 0u);
  Kernel tiles = pool(100, 400, 8);
  tiles.ifm.height0 = 4;
  EXPECT_EQ(safe_blockdep(previous, tiles), 0u);
}

TEST(EthosuBlockdep, LooksAtTheSecondInput) {
  Kernel sum = pool(300, 400, 8);
  sum.kind = KernelKind::kElementwise;
  sum.has_ifm2 = true;
  sum.ifm2 = map_at(100, 8);
  EXPECT_EQ(safe_blockdep(pool(0, 100, 8), sum), 3u);
  EXPECT_EQ(safe_blockdep(pool(0, 100, 3), sum), 2u);  // two of the three rows may be missing
  sum.ifm2 = map_at(100, 1);
  sum.broadcast_h = true;
  EXPECT_EQ(safe_blockdep(pool(0, 128, 8), sum), 3u);
  EXPECT_EQ(safe_blockdep(pool(0, 100, 1), sum), 0u);
}

}  // namespace
}  // namespace qplan::ethosu
