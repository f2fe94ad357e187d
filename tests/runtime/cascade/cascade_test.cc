#include "src/runtime/cascade.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "src/runtime/cascade_layers.h"
#include "tests/runtime/cascade/random_cascade.h"
#include "tests/support/buffer.h"
#include "tests/support/variants.h"

namespace qplan::cascade_test {
namespace {

using testing::RandomCascade;

class Cascade : public ::testing::TestWithParam<const KernelVariant*> {};

// Whole and in pieces in any order, with each schedule.
TEST_P(Cascade, GivesWhatItsLayersGiveOneAfterAnother) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  const std::vector<uint64_t> schedules = testing::schedules_of(variant);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomCascade cascade(seed);
    const std::vector<uint8_t> expected = cascade.expected();
    for (const uint64_t schedule : schedules) {
      const StepView step = cascade.cascade(schedule);
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text() << ", seed " << seed;
      ASSERT_TRUE(variant.accepts(args));
      cascade.forget_output();
      testing::run_variant(variant, args);
      ASSERT_EQ(cascade.output(), expected) << "seed " << seed << ", schedule " << schedule;
      cascade.forget_output();
      testing::run_variant_in_pieces(variant, args, seed);
      ASSERT_EQ(cascade.output(), expected) << "in pieces, seed " << seed << ", schedule " << schedule;
    }
  }
}

// Those that run the layers, which is all but those that compute some cascades by one kernel.
std::vector<const KernelVariant*> variants_of_layers() {
  std::vector<const KernelVariant*> variants = testing::variants_of(kCascadeFamily);
  std::erase_if(variants, [](const KernelVariant* variant) {
    return std::string_view(variant->name).substr(0, 6) != "chain_";
  });
  return variants;
}
INSTANTIATE_TEST_SUITE_P(Variants, Cascade, ::testing::ValuesIn(variants_of_layers()),
                         testing::variant_test_name);

// How often a cascade said that its output may lie over an input, and over the beginning of a larger one.
struct Claims {
  uint32_t same = 0, smaller = 0;
};

// Runs a cascade over each input of which it says so.
void run_over_inputs(const KernelVariant& variant, testing::CascadeBuilder* cascade, uint64_t schedule,
                     Claims* claims) {
  const std::vector<uint8_t> expected = cascade->expected();
  const uint32_t num_inputs = cascade->cascade(schedule).num_inputs();
  for (uint32_t k = 0; k < num_inputs; ++k) {
    for (const Extent extent : {Extent::kSame, Extent::kSmaller}) {
      const StepView step = cascade->cascade_over(schedule, k);
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
      Error error;
      ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text();
      const auto& bound = *reinterpret_cast<const CascadeArgs*>(args);
      if (!cascade_may_be_in_place(bound, k, extent)) continue;
      ++(extent == Extent::kSame ? claims->same : claims->smaller);
      EXPECT_EQ(variant.work_items(args), 1u) << "rows are made in order";
      testing::Buffer<uint8_t>& bytes = cascade->input(step, k);
      const std::vector<uint8_t> input(bytes.data(), bytes.data() + bytes.size());
      testing::run_variant(variant, args);
      ASSERT_GE(bytes.size(), expected.size());
      EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), expected.size()), 0) << "input " << k;
      std::memcpy(bytes.data(), input.data(), input.size());
    }
  }
}

TEST_P(Cascade, GivesTheSameOverAnInputOfWhichItSaysThatItMay) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  Claims claims;
  for (uint64_t seed = 0; seed < 260; ++seed) {
    SCOPED_TRACE(seed);
    RandomCascade cascade(seed);
    run_over_inputs(variant, &cascade, seed % 6, &claims);
  }
  EXPECT_GE(claims.smaller, 20u);
  // What networks on small devices have: 1x1, 3x3 of each channel, 1x1.
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const int64_t channels = 1 + static_cast<int64_t>(seed % 9);
    const uint32_t height = 3 + seed % 8, width = 1 + seed % 5, stride = 1 + seed % 2;
    const auto point = [](uint32_t extent) { return testing::CascadeAxis{1, 1, 1, 0, extent}; };
    const auto three = [stride](uint32_t extent) {
      return testing::CascadeAxis{3, stride, 1, 1, (extent - 1) / stride + 1};
    };
    testing::CascadeBuilder cascade(seed, {1 + static_cast<int64_t>(seed % 3), height, width, channels});
    cascade.add_convolution(point(height), point(width), 2 * channels, false);
    cascade.add_convolution(three(height), three(width), 2 * channels, true);
    const uint32_t output_h = (height - 1) / stride + 1, output_w = (width - 1) / stride + 1;
    const int64_t outputs = seed % 4 < 2 ? channels : 2 * channels;
    cascade.add_convolution(point(output_h), point(output_w), outputs, false);
    const Claims before = claims;
    run_over_inputs(variant, &cascade, seed % 6, &claims);
    const int64_t read = height * width * channels, written = output_h * output_w * outputs;
    EXPECT_EQ(claims.same - before.same, written == read ? 1u : 0u);
    EXPECT_EQ(claims.smaller - before.smaller, written < read ? 1u : 0u);
  }
}

// On devices whose stack is short; nothing beyond the room is touched.
TEST_P(Cascade, HasTheArgumentsOfItsLayersInTheRoomOfItsView) {
  const KernelVariant& variant = *GetParam();
  QPLAN_SKIP_UNLESS_RUNNABLE(variant);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomCascade cascade(seed);
    const std::vector<uint8_t> expected = cascade.expected();
    StepView step = cascade.cascade(0);
    // Init asks: what is kept of each layer follows the arguments.
    constexpr size_t kRoomBytes = kLayerArgsBytes + kMaxCascadeLayers * sizeof(CascadeLayer);
    alignas(kArgsAlignment) uint8_t room[kRoomBytes + 64];
    std::memset(room, 0x5a, sizeof(room));
    step.room = room;
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text() << ", seed " << seed;
    cascade.forget_output();
    testing::run_variant(variant, args);
    ASSERT_EQ(cascade.output(), expected) << "seed " << seed;
    const auto is_written = [](uint8_t byte) { return byte != 0x5a; };
    EXPECT_TRUE(std::any_of(room, room + kLayerArgsBytes, is_written));
    EXPECT_FALSE(std::any_of(room + kRoomBytes, room + sizeof(room), is_written));
    // A run has the arguments of a layer there, and nothing else.
    std::memset(room, 0x5a, sizeof(room));
    ASSERT_EQ(kCascadeFamily.bind(step, false, args, nullptr), QPLAN_OK);
    cascade.forget_output();
    testing::run_variant(variant, args);
    ASSERT_EQ(cascade.output(), expected) << "seed " << seed;
    EXPECT_FALSE(std::any_of(room + kLayerArgsBytes, room + sizeof(room), is_written));
  }
}

// Tiles are ordinary entries of an array of tensors.
TEST(CascadeOfATable, GivesTheSameBytesAsThatOfAPlan) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomCascade cascade(seed);
    const std::vector<uint8_t> expected = cascade.expected();
    const StepView of_plan = cascade.cascade(0);
    const uint32_t num_tensors = of_plan.plan->tensors()->size();
    const StepView layer = cascade_layer(of_plan, 0);
    std::vector<StepTensor> tensors;
    for (uint32_t t = 0; t < num_tensors + cascade.num_layers() - 1; ++t) tensors.push_back(layer.tensor(t));
    ASSERT_TRUE(tensors.back().is_tile);
    const StepView step = StepView::of_tensors(*of_plan.step, tensors.data());
    alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
    Error error;
    ASSERT_EQ(kCascadeFamily.bind(step, true, args, &error), QPLAN_OK) << error.text() << ", seed " << seed;
    cascade.forget_output();
    testing::run_variant(kCascadeFamily.variants[kCascadeFamily.num_variants - 1], args);
    ASSERT_EQ(cascade.output(), expected) << "seed " << seed;
  }
}

// The cascade asks for the scratch of its largest block alone.
TEST(CascadeMemory, LayersTakeNoLessForMoreRows) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomCascade cascade(seed);
    const StepView whole = cascade.cascade(0);
    for (uint32_t i = 0; i < cascade.num_layers(); ++i) {
      const StepView layer = cascade_layer(whole, i);
      const KernelFamily& family = *kCascadeLayerFamilies.find(layer.step->kernel());
      alignas(kArgsAlignment) uint8_t bound[kMaxArgsBytes], args[kMaxArgsBytes];
      Error error;
      ASSERT_EQ(family.bind(layer, true, bound, &error), QPLAN_OK) << error.text();
      const auto output_h = static_cast<uint32_t>(layer.output(0).extents[1]);
      for (uint32_t v = 0; v < family.num_variants; ++v) {
        size_t fewer = 0;
        for (uint32_t rows = 1; rows <= output_h; ++rows) {
          std::memcpy(args, bound, sizeof(args));
          const RowWindow window = family.row_cut->window(args);
          family.row_cut->cut(
              layer, {cascade_moving_input(layer, family), window, 0, {0, rows}, nullptr, nullptr}, args);
          if (!family.variants[v].accepts(args)) continue;
          const size_t scratch = family.variants[v].scratch_bytes(args);
          EXPECT_GE(scratch, fewer) << family.variants[v].name << ", " << rows << " rows, seed " << seed;
          fewer = scratch;
        }
      }
    }
  }
}

// A cascade that keeps the arguments of its layers cuts the same ones for each block of rows.
TEST(CascadeArguments, MayBeCutAgain) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomCascade cascade(seed);
    const StepView whole = cascade.cascade(0);
    for (uint32_t i = 0; i < cascade.num_layers(); ++i) {
      const StepView layer = cascade_layer(whole, i);
      const KernelFamily& family = *kCascadeLayerFamilies.find(layer.step->kernel());
      alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes] = {}, again[kMaxArgsBytes] = {};
      Error error;
      ASSERT_EQ(family.bind(layer, true, args, &error), QPLAN_OK) << error.text();
      ASSERT_EQ(family.bind(layer, true, again, &error), QPLAN_OK) << error.text();
      const int64_t* output = layer.output(0).extents;
      const auto batch = static_cast<uint32_t>(output[0]), output_h = static_cast<uint32_t>(output[1]);
      uint8_t row = 0;
      CutRows rows = {
          cascade_moving_input(layer, family), family.row_cut->window(args), 0, {0, 1}, &row, &row};
      family.row_cut->cut(layer, rows, again);
      rows.image = batch - 1;
      rows.output = {output_h - 1, output_h};
      family.row_cut->cut(layer, rows, args);
      family.row_cut->cut(layer, rows, again);
      EXPECT_EQ(std::memcmp(args, again, sizeof(args)), 0) << "layer " << i << ", seed " << seed;
    }
  }
}

// Between one row and what would lie there without a cascade.
TEST(CascadeMemory, TilesHoldTheRowsOfOneBlock) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomCascade cascade(seed);
    const StepView step = cascade.cascade(1);  // one row at a time
    CascadeArgs args;
    Error error;
    ASSERT_EQ(kCascadeFamily.bind(step, true, &args, &error), QPLAN_OK) << error.text();
    uint64_t whole = 0, row = 0;
    const auto& tiles = *step.step->params_as_CascadeParams()->tiles();
    for (uint32_t i = 0; i < tiles.size(); ++i) {
      const format::Tensor& tile = *tiles.Get(i);
      whole += (tile.size() / args.batch + 63) / 64 * 64;
      // Layers between others that compute element by element do so in the tile before them.
      const uint16_t reader = cascade_layer(step, i + 1).step->kernel();
      const bool is_shared =
          i + 1 < tiles.size() && (reader == kKernel_add || reader == kKernel_sub || reader == kKernel_lut8);
      if (!is_shared) row += tile.size() / args.batch / static_cast<uint64_t>(tile.shape()->Get(1));
    }
    EXPECT_LE(cascade_tile_bytes(args, QPLAN_ISA_REFERENCE), whole) << "seed " << seed;
    EXPECT_GE(cascade_tile_bytes(args, QPLAN_ISA_REFERENCE), row) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qplan::cascade_test
