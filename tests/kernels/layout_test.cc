#include "kernels/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/weights.h"

namespace qplan::layout_test {
namespace {

// Every weight is where its index function says, the remaining bytes are zero, and the sizes are exact.
void expect_agreement(uint16_t layout, uint64_t num_o, const LayoutWindow& window) {
  const uint64_t num_k = window.h * window.w * window.channels;
  std::vector<int8_t> weights(num_o * num_k);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i % 127 + 1);
  std::vector<int8_t> packed = testing::pack_weights(layout, weights, num_o, window);
  ASSERT_EQ(packed.size(), layout_bytes(layout, num_o, window));
  for (uint64_t o = 0; o < num_o; ++o) {
    for (uint64_t k = 0; k < num_k; ++k) {
      int8_t& at = packed[layout_index(layout, o, k, num_o, window)];
      ASSERT_EQ(at, weights[o * num_k + k]) << layout_name(layout) << " " << o << " " << k;
      at = 0;
    }
  }
  EXPECT_EQ(packed, std::vector<int8_t>(packed.size(), 0)) << layout_name(layout);
}

constexpr uint16_t kLayouts[] = {kLayout_ohwi,  kLayout_o16k4, kLayout_hwo16, kLayout_o16r4, kLayout_o16i4,
                                 kLayout_o16z4, kLayout_o2r4,  kLayout_o4k4,  kLayout_o2h4,  kLayout_o4h4,
                                 kLayout_o4k16, kLayout_o16r8, kLayout_o16i8, kLayout_o16z8, kLayout_o16p4};

TEST(Layout, IndexFunctionsAgreeWithPackingBlockByBlock) {
  for (const uint16_t layout : kLayouts) {
    for (const uint64_t num_o : {1u, 15u, 16u, 17u, 40u}) {
      for (const uint64_t num_k : {1u, 3u, 4u, 5u, 36u}) {
        expect_agreement(layout, num_o, {1, 1, num_k});
        EXPECT_EQ(layout_bytes(layout, num_o, num_k), layout_bytes(layout, num_o, {1, 1, num_k}));
        EXPECT_EQ(layout_index(layout, num_o - 1, num_k - 1, num_o, num_k),
                  layout_index(layout, num_o - 1, num_k - 1, num_o, {1, 1, num_k}));
      }
    }
  }
}

TEST(Layout, IndexFunctionsAgreeWithPackingWindowsOfAnyShape) {
  for (const uint16_t layout : kLayouts) {
    for (const uint64_t h : {1u, 2u, 3u}) {
      for (const uint64_t w : {1u, 2u, 5u}) {
        for (const uint64_t channels : {1u, 3u, 4u, 6u}) expect_agreement(layout, 17, {h, w, channels});
      }
    }
  }
}

TEST(Layout, IndexFunctionsAgreeWithPackingPhases) {
  for (const uint64_t h : {1u, 2u, 3u, 5u}) {
    for (const uint64_t w : {1u, 4u, 5u}) {
      for (const uint64_t stride_h : {1u, 2u, 3u, 7u}) {
        for (const uint64_t stride_w : {1u, 2u, 3u}) {
          for (const uint64_t channels : {3u, 4u, 6u})
            expect_agreement(kLayout_o16p4, 17, {h, w, channels, stride_h, stride_w});
        }
      }
    }
  }
}

// Output 16, in the second block, of a window of 2 rows, 3 columns and 3 channels; weight (1, 2, 1).
TEST(Layout, PaddedTapsByHand) {
  constexpr LayoutWindow kWindow = {2, 3, 3};
  constexpr uint64_t kK = (1 * 3 + 2) * 3 + 1;
  // Rows of 9 bytes are 3 groups of four: 2 taps in the block before, 1 in this one, then byte 7 of 9.
  EXPECT_EQ(layout_index(kLayout_o16r4, 16, kK, 17, kWindow), (2 * 3 + 1 * 3 + 1) * 64 + 3u);
  EXPECT_EQ(layout_bytes(kLayout_o16r4, 17, kWindow), 32 * 2 * 12u);
  // Pixels of 3 bytes are one group each: 6 before, then pixel 5, byte 1.
  EXPECT_EQ(layout_index(kLayout_o16i4, 16, kK, 17, kWindow), (6 + 5) * 64 + 1u);
  EXPECT_EQ(layout_bytes(kLayout_o16i4, 17, kWindow), 32 * 6 * 4u);
  // 18 bytes are 5 groups; column 2, row 1, channel 1 is byte (2 * 2 + 1) * 3 + 1 = 16.
  EXPECT_EQ(layout_index(kLayout_o16z4, 16, kK, 17, kWindow), (5 + 4) * 64u);
  EXPECT_EQ(layout_bytes(kLayout_o16z4, 17, kWindow), 32 * 20u);
  // In groups of eight, rows of 9 bytes are 2 groups: 2 taps before, 1 tap, then byte 7.
  EXPECT_EQ(layout_index(kLayout_o16r8, 16, kK, 17, kWindow), (2 * 2 + 1 * 2) * 128 + 7u);
  EXPECT_EQ(layout_bytes(kLayout_o16r8, 17, kWindow), 32 * 2 * 16u);
  EXPECT_EQ(layout_index(kLayout_o16i8, 16, kK, 17, kWindow), (6 + 5) * 128 + 1u);
  EXPECT_EQ(layout_bytes(kLayout_o16i8, 17, kWindow), 32 * 6 * 8u);
  // 18 bytes are 3 groups; byte 16 of them is the first of the last.
  EXPECT_EQ(layout_index(kLayout_o16z8, 16, kK, 17, kWindow), (3 + 2) * 128u);
  EXPECT_EQ(layout_bytes(kLayout_o16z8, 17, kWindow), 32 * 24u);
  // With strides of 2, tap (1, 2) is of phase (1, 0) with (1, 0); phases (0, 0) and (0, 1) have 2 taps and 1.
  constexpr LayoutWindow kStrided = {2, 3, 3, 2, 2};
  EXPECT_EQ(layout_index(kLayout_o16p4, 16, kK, 17, kStrided), (2 * 3 + 2 + 1) * 64 + 1u);
  EXPECT_EQ(layout_bytes(kLayout_o16p4, 17, kStrided), 32 * 6 * 4u);
  // Rows of 9 bytes again, in blocks of two outputs: 8 blocks of 2 taps, 1 tap, 1 group, byte 7 of 9.
  EXPECT_EQ(layout_index(kLayout_o2r4, 16, kK, 17, kWindow), (8 * 2 * 3 + 1 * 3 + 1) * 8 + 3u);
  EXPECT_EQ(layout_bytes(kLayout_o2r4, 17, kWindow), 18 * 2 * 12u);
  // Vectors of 16 bytes in blocks of four outputs: 4 blocks of 2 vectors, 1 vector, byte 0 of 2.
  EXPECT_EQ(layout_index(kLayout_o4k16, 16, kK, 17, kWindow), (4 * 2 + 1) * 64u);
  EXPECT_EQ(layout_bytes(kLayout_o4k16, 17, kWindow), 20 * 2 * 16u);
  // The same with two outputs in int16: byte 3 of a group of four is the last, that of an even output the
  // first.
  EXPECT_EQ(layout_index(kLayout_o2h4, 16, kK, 17, kWindow), (8 * 2 * 3 + 1 * 3 + 1) * 8 + 6u);
  EXPECT_EQ(layout_bytes(kLayout_o2h4, 17, kWindow), 18 * 2 * 12u);
  // In blocks of four: 4 of them before, of 5 groups, then byte 16.
  EXPECT_EQ(layout_index(kLayout_o4k4, 16, kK, 17, kWindow), (4 * 5 + 4) * 16u);
  EXPECT_EQ(layout_bytes(kLayout_o4k4, 17, kWindow), 20 * 20u);
}

// 256 times the odd output's weight plus the even one's, in int16.
TEST(Layout, HalvesHoldTwoWeightsOfOneInput) {
  for (const int32_t even : {-128, -1, 0, 1, 127}) {
    for (const int32_t odd : {-127, -1, 0, 1, 127}) {
      const std::vector<int8_t> packed = testing::pack_weights(
          kLayout_o2h4, {static_cast<int8_t>(even), static_cast<int8_t>(odd)}, 2, LayoutWindow{1, 1, 1});
      EXPECT_EQ(static_cast<uint8_t>(packed[0]) + 256 * packed[1], 256 * odd + even);
      EXPECT_EQ(layout_weight(kLayout_o2h4, packed.data(), 0, 0), even);
      EXPECT_EQ(layout_weight(kLayout_o2h4, packed.data(), 1, 1), odd);
    }
  }
}

TEST(Layout, ChannelConstantsAreRoundedUpWithTheWeights) {
  EXPECT_EQ(layout_channels(kLayout_ohwi, 17), 17u);
  EXPECT_EQ(layout_channels(kLayout_o16k4, 17), 32u);
  EXPECT_EQ(layout_channels(kLayout_hwo16, 16), 16u);
  EXPECT_EQ(layout_channels(kLayout_o16z4, 17), 32u);
}

}  // namespace
}  // namespace qplan::layout_test
