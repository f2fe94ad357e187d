// What bind refuses of chains that open() would let through.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/chain/random_chain.h"

namespace qplan {
namespace {

using testing::ChainAxis;
using testing::ChainBuilder;

constexpr ChainAxis kOne = {1, 1, 1, 0, 8};  // of 8 rows or columns
constexpr ChainAxis kThree = {3, 1, 1, 1, 8};

std::string refusal(ChainBuilder& chain, const KernelFamily& family = kChainFamily) {
  const StepView step = chain.chain(0);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  return family.bind(step, true, args, &error) < 0 ? error.text() : "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(ChainStep, TakesConvolutionsAndSums) {
  ChainBuilder chain(1, {1, 8, 8, 4});
  chain.add_convolution(kOne, kOne, 12, false);
  chain.add_convolution(kThree, kThree, 12, true);
  chain.add_convolution(kOne, kOne, 4, false);
  chain.add_sum();
  EXPECT_EQ(refusal(chain), "");
  EXPECT_EQ(refusal(chain, kChainFamilyReference), "");
}

TEST(ChainStep, NamesTheStageThatItsFamilyRefuses) {
  ChainBuilder chain(2, {1, 8, 8, 4});
  chain.add_convolution(kOne, kOne, 12, false);
  chain.add_convolution(kThree, {3, 0, 1, 1, 8}, 12, true);
  EXPECT_TRUE(contains(refusal(chain), "chain: stage 1: depthwise_conv2d: width")) << refusal(chain);
}

TEST(ChainStep, RefusesKernelsThatAreNoStages) {
  ChainBuilder chain(3, {1, 8, 8, 4});
  chain.add_convolution(kOne, kOne, 12, false);
  chain.add_copy();
  EXPECT_EQ(refusal(chain), "chain: stage 1: kernel 21 cannot be a stage here");
}

// Rows of the output whose windows lie in the padding alone would be made of no rows.
TEST(ChainStep, RefusesWindowsOutsideOfTheInput) {
  const ChainAxis all_above = {3, 1, 1, 3, 8}, all_below = {3, 1, 1, 1, 10}, just_inside = {3, 1, 1, 2, 10};
  for (const ChainAxis& rows : {all_above, all_below}) {
    ChainBuilder chain(4, {1, 8, 8, 4});
    chain.add_convolution(rows, kThree, 4, true);
    chain.add_convolution({1, 1, 1, 0, rows.output}, kOne, 4, false);
    EXPECT_TRUE(contains(refusal(chain), "stage 0: depthwise_conv2d cannot be cut into rows"))
        << refusal(chain);
  }
  ChainBuilder chain(4, {1, 8, 8, 4});
  chain.add_convolution(just_inside, kThree, 4, true);
  chain.add_convolution({1, 1, 1, 0, 10}, kOne, 4, false);
  EXPECT_EQ(refusal(chain), "");
}

TEST(ChainStep, RefusesSumsThatBroadcast) {
  ChainBuilder chain(5, {1, 8, 8, 4});
  chain.add_convolution(kOne, kOne, 4, false);
  chain.add_sum({1, 1, 1, 4});
  EXPECT_TRUE(contains(refusal(chain), "cannot be cut into rows")) << refusal(chain);
}

}  // namespace
}  // namespace qplan
