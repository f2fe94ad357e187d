#include "kernels/chain/chain.h"

#include <gtest/gtest.h>

#include "tests/kernels/chain/random_chain.h"
#include "tests/support/variants.h"

namespace qplan {
namespace {

using testing::RandomChain;

class Chain : public ::testing::TestWithParam<const KernelVariant*> {};

// Whole and in pieces in any order, with each schedule.
TEST_P(Chain, GivesWhatItsStagesGiveOneAfterAnother) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  const std::vector<uint64_t> schedules = testing::schedules_of(variant);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomChain chain(seed);
    const std::vector<uint8_t> expected = chain.expected();
    for (const uint64_t schedule : schedules) {
      const StepView step = chain.chain(schedule);
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      ASSERT_EQ(kChainFamily.bind(step, true, args, &error), QPLAN_OK) << error.text() << ", seed " << seed;
      ASSERT_TRUE(variant.accepts(args));
      chain.forget_output();
      testing::run_variant(variant, args);
      ASSERT_EQ(chain.output(), expected) << "seed " << seed << ", schedule " << schedule;
      chain.forget_output();
      testing::run_variant_in_pieces(variant, args, seed);
      ASSERT_EQ(chain.output(), expected) << "in pieces, seed " << seed << ", schedule " << schedule;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, Chain, ::testing::ValuesIn(testing::variants_of(kChainFamily)),
                         testing::variant_test_name);

// Between one row and what would lie there without a chain.
TEST(ChainMemory, TilesHoldTheRowsOfOneBlock) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomChain chain(seed);
    const StepView step = chain.chain(1);  // one row at a time
    ChainArgs args;
    Error error;
    ASSERT_EQ(kChainFamily.bind(step, true, &args, &error), QPLAN_OK) << error.text();
    uint64_t whole = 0, row = 0;
    for (const format::Tensor* tile : *step.step->params_as_ChainParams()->tiles()) {
      whole += (tile->size() / args.batch + 63) / 64 * 64;
      row += tile->size() / args.batch / static_cast<uint64_t>(tile->shape()->Get(1));
    }
    EXPECT_LE(chain_tile_bytes(args, QPLAN_ISA_REFERENCE), whole) << "seed " << seed;
    EXPECT_GE(chain_tile_bytes(args, QPLAN_ISA_REFERENCE), row) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qplan
