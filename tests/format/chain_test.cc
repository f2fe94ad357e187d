// Checks of open() on cascades.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "tests/support/plan_builder.h"

namespace qplan::format::chain_test {
namespace {

using testing::AlignedBytes;
using testing::PlanSpec;

constexpr uint16_t kCopy = 21, kChain = 22;

struct StageSpec {
  uint16_t kernel = kCopy;
  std::vector<uint32_t> inputs, outputs;
  KernelParams type = KernelParams_NoParams;
};

// x -> tile 0 -> tile 1 -> y, of three tensors: x 0, y 1, other 2.
struct ChainSpec {
  std::vector<uint32_t> inputs = {0}, outputs = {1};
  std::vector<StageSpec> stages = {
      {.inputs = {0}, .outputs = {3}}, {.inputs = {3}, .outputs = {4}}, {.inputs = {4}, .outputs = {1}}};
  std::vector<std::vector<int64_t>> tiles = {{1, 4, 4, 2}, {1, 4, 4, 2}};
  uint64_t tile_bytes = 32;
  uint8_t tile_bits = 8;
};

std::string refusal(const ChainSpec& chain) {
  PlanSpec spec;
  for (int i = 0; i < 3; ++i) spec.add_tensor({1, 4, 4, 2});
  spec.add_step(kChain, chain.inputs, chain.outputs, [&](flatbuffers::FlatBufferBuilder& b) {
    std::vector<flatbuffers::Offset<KernelStep>> stages;
    for (const StageSpec& stage : chain.stages) {
      const auto params = stage.type == KernelParams_NoParams      ? CreateNoParams(b).Union()
                          : stage.type == KernelParams_ChainParams ? CreateChainParams(b).Union()
                                                                   : CreateArgMaxParams(b).Union();
      stages.push_back(
          CreateKernelStepDirect(b, stage.kernel, &stage.inputs, &stage.outputs, stage.type, params));
    }
    std::vector<flatbuffers::Offset<Tensor>> tiles;
    for (const auto& shape : chain.tiles)
      tiles.push_back(CreateTensorDirect(b, 0, chain.tile_bits, &shape, 0, 0, chain.tile_bytes));
    return std::pair(KernelParams_ChainParams, CreateChainParamsDirect(b, &stages, &tiles).Union());
  });
  spec.add_main({0}, {1});
  const AlignedBytes plan = build_plan(spec);
  PlanView view;
  Error error;
  return view.open(plan.data(), plan.size(), false, &error) < 0 ? error.text() : "";
}

void expect_refused(const std::function<void(ChainSpec&)>& edit, const std::string& why) {
  ChainSpec chain;
  edit(chain);
  const std::string text = refusal(chain);
  EXPECT_NE(text.find(why), text.npos) << "found '" << text << "', expected '" << why << "'";
}

TEST(ChainPlan, OpensWhereEachStageFollowsTheOneBefore) {
  EXPECT_EQ(refusal({}), "");
  ChainSpec two_operands;
  two_operands.inputs = {0, 2};
  two_operands.stages[2].inputs = {2, 4};
  EXPECT_EQ(refusal(two_operands), "");
}

TEST(ChainPlan, HasTwoToFourStagesAndTilesBetweenThem) {
  expect_refused([](ChainSpec& c) { c.stages = {{.inputs = {0}, .outputs = {1}}}, c.tiles.clear(); },
                 "1 stages with 0 tiles");
  expect_refused([](ChainSpec& c) { c.tiles.pop_back(); }, "3 stages with 1 tiles");
  expect_refused([](ChainSpec& c) { c.stages.resize(5), c.tiles.resize(4); }, "5 stages");
}

TEST(ChainPlan, StagesReadTheTileBeforeThemOnce) {
  expect_refused([](ChainSpec& c) { c.stages[2].inputs = {3}; },
                 "input 0 (tensor 3) is neither the tile before");
  expect_refused([](ChainSpec& c) { c.stages[1].inputs = {3, 3}; }, "reads the tile before it 2 times");
  expect_refused([](ChainSpec& c) { c.stages[1].inputs = {0}; }, "reads the tile before it 0 times");
  expect_refused([](ChainSpec& c) { c.stages[0].inputs = {3}; }, "neither the tile before");
  expect_refused([](ChainSpec& c) { c.stages[2].inputs = {4, 2}; }, "input 1 (tensor 2) is neither");
  expect_refused([](ChainSpec& c) { c.stages[2].inputs = {4, 5}; }, "tensor 5");
  expect_refused([](ChainSpec& c) { c.stages[1].inputs = {UINT32_MAX}; }, "neither");
}

TEST(ChainPlan, StagesWriteTheTileAfterThemAlone) {
  expect_refused([](ChainSpec& c) { c.stages[0].outputs = {4}; }, "stage 0 does not write tensor 3 alone");
  expect_refused([](ChainSpec& c) { c.stages[2].outputs = {4}; }, "stage 2 does not write tensor 1 alone");
  expect_refused([](ChainSpec& c) { c.stages[1].outputs = {}; }, "stage 1 does not write tensor 4 alone");
  expect_refused([](ChainSpec& c) { c.stages[2].outputs = {1, 2}; }, "does not write tensor 1 alone");
  expect_refused([](ChainSpec& c) { c.outputs = {1, 2}; }, "and 2 outputs");
}

TEST(ChainPlan, StagesAreKernelsWithTheirParameters) {
  expect_refused([](ChainSpec& c) { c.stages[1].type = KernelParams_ArgMaxParams; },
                 "with parameters of type");
  expect_refused([](ChainSpec& c) { c.stages[1].kernel = 0; }, "names no kernel");
  expect_refused(
      [](ChainSpec& c) { c.stages[1].kernel = kChain, c.stages[1].type = KernelParams_ChainParams; },
      "stage 1 is a chain itself");
}

TEST(ChainPlan, TilesAreTensorsButForTheirPlace) {
  expect_refused([](ChainSpec& c) { c.tile_bytes = 31; }, "31 bytes, its shape and dtype make 32");
  expect_refused([](ChainSpec& c) { c.tile_bits = 7; }, "tile 0 has an unknown dtype");
  expect_refused([](ChainSpec& c) { c.tiles[1] = {1, 0, 4, 2}; }, "extent 0");
  expect_refused([](ChainSpec& c) { c.tiles[1] = {1, 1, 1, 1, 1, 1, 1}; }, "rank 7");
}

}  // namespace
}  // namespace qplan::format::chain_test
