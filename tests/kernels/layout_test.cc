#include "kernels/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/weights.h"

namespace qplan {
namespace {

// Every weight stands where its index function says, what is left over is zero, and the sizes are exact.
TEST(Layout, IndexFunctionsAgreeWithPackingBlockByBlock) {
  for (const uint16_t layout : {kLayout_ohwi, kLayout_o16k4, kLayout_hwo16}) {
    for (const uint64_t num_o : {1u, 15u, 16u, 17u, 40u}) {
      for (const uint64_t num_k : {1u, 3u, 4u, 5u, 36u}) {
        std::vector<int8_t> weights(num_o * num_k);
        for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i % 127 + 1);
        std::vector<int8_t> packed = testing::pack_weights(layout, weights, num_o, num_k);
        ASSERT_EQ(packed.size(), layout_bytes(layout, num_o, num_k));
        for (uint64_t o = 0; o < num_o; ++o) {
          for (uint64_t k = 0; k < num_k; ++k) {
            int8_t& at = packed[layout_index(layout, o, k, num_o, num_k)];
            ASSERT_EQ(at, weights[o * num_k + k]) << layout_name(layout) << " " << o << " " << k;
            at = 0;
          }
        }
        EXPECT_EQ(packed, std::vector<int8_t>(packed.size(), 0)) << layout_name(layout);
      }
    }
  }
}

TEST(Layout, ChannelConstantsAreRoundedUpWithTheWeights) {
  EXPECT_EQ(layout_channels(kLayout_ohwi, 17), 17u);
  EXPECT_EQ(layout_channels(kLayout_o16k4, 17), 32u);
  EXPECT_EQ(layout_channels(kLayout_hwo16, 16), 16u);
}

}  // namespace
}  // namespace qplan
