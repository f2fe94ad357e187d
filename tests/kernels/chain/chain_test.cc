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

// Tiles are ordinary entries of an array of tensors.
TEST(ChainOfATable, GivesTheSameBytesAsThatOfAPlan) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomChain chain(seed);
    const std::vector<uint8_t> expected = chain.expected();
    const StepView of_plan = chain.chain(0);
    const uint32_t num_tensors = of_plan.plan->tensors()->size();
    const StepView stage = chain_stage(of_plan, 0);
    std::vector<StepTensor> tensors;
    for (uint32_t t = 0; t < num_tensors + chain.num_stages() - 1; ++t) tensors.push_back(stage.tensor(t));
    ASSERT_TRUE(tensors.back().is_tile);
    const StepView step = StepView::of_tensors(*of_plan.step, tensors.data());
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    ASSERT_EQ(kChainFamily.bind(step, true, args, &error), QPLAN_OK) << error.text() << ", seed " << seed;
    chain.forget_output();
    testing::run_variant(kChainFamily.variants[kChainFamily.num_variants - 1], args);
    ASSERT_EQ(chain.output(), expected) << "seed " << seed;
  }
}

// The chain asks for the scratch of its largest block alone.
TEST(ChainMemory, StagesTakeNoLessForMoreRows) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomChain chain(seed);
    const StepView whole = chain.chain(0);
    for (uint32_t i = 0; i < chain.num_stages(); ++i) {
      const StepView stage = chain_stage(whole, i);
      const KernelFamily& family = *kChainStages.find(stage.step->kernel());
      alignas(kArgsAlignment) uint8_t bound[kMaxArgsBytes], args[kMaxArgsBytes];
      Error error;
      ASSERT_EQ(family.bind(stage, true, bound, &error), QPLAN_OK) << error.text();
      const auto output_h = static_cast<uint32_t>(stage.output(0).extents[1]);
      for (uint32_t v = 0; v < family.num_variants; ++v) {
        size_t fewer = 0;
        for (uint32_t rows = 1; rows <= output_h; ++rows) {
          std::memcpy(args, bound, sizeof(args));
          family.row_cut->cut(stage, chain_moving_input(stage, family), 0, {0, rows}, nullptr, nullptr, args);
          if (!family.variants[v].accepts(args)) continue;
          const size_t scratch = family.variants[v].scratch_bytes(args);
          EXPECT_GE(scratch, fewer) << family.variants[v].name << ", " << rows << " rows, seed " << seed;
          fewer = scratch;
        }
      }
    }
  }
}

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
