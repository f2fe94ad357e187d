// Checks of open() on cascades.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "format/plan_view.h"
#include "tests/support/plan_builder.h"

namespace qplan::format::cascade_test {
namespace {

using testing::AlignedBytes;
using testing::PlanSpec;

constexpr uint16_t kCopy = 21, kCascade = 22;

struct LayerSpec {
  uint16_t kernel = kCopy;
  std::vector<uint32_t> inputs, outputs;
  KernelParams type = KernelParams_NoParams;
};

// x -> tile 0 -> tile 1 -> y, of three tensors: x 0, y 1, other 2.
struct CascadeSpec {
  std::vector<uint32_t> inputs = {0}, outputs = {1};
  std::vector<LayerSpec> layers = {
      {.inputs = {0}, .outputs = {3}}, {.inputs = {3}, .outputs = {4}}, {.inputs = {4}, .outputs = {1}}};
  std::vector<std::vector<int64_t>> tiles = {{1, 4, 4, 2}, {1, 4, 4, 2}};
  uint64_t tile_bytes = 32;
  uint8_t tile_bits = 8;
};

std::string refusal(const CascadeSpec& cascade) {
  PlanSpec spec;
  for (int i = 0; i < 3; ++i) spec.add_tensor({1, 4, 4, 2});
  spec.add_step(kCascade, cascade.inputs, cascade.outputs, [&](flatbuffers::FlatBufferBuilder& b) {
    std::vector<flatbuffers::Offset<KernelStep>> layers;
    for (const LayerSpec& layer : cascade.layers) {
      const auto params = layer.type == KernelParams_NoParams        ? CreateNoParams(b).Union()
                          : layer.type == KernelParams_CascadeParams ? CreateCascadeParams(b).Union()
                                                                     : CreateArgMaxParams(b).Union();
      layers.push_back(
          CreateKernelStepDirect(b, layer.kernel, &layer.inputs, &layer.outputs, layer.type, params));
    }
    std::vector<flatbuffers::Offset<Tensor>> tiles;
    for (const auto& shape : cascade.tiles)
      tiles.push_back(CreateTensorDirect(b, 0, cascade.tile_bits, &shape, 0, 0, cascade.tile_bytes));
    return std::pair(KernelParams_CascadeParams, CreateCascadeParamsDirect(b, &layers, &tiles).Union());
  });
  spec.add_main({0}, {1});
  const AlignedBytes plan = build_plan(spec);
  PlanView view;
  Error error;
  return view.open(plan.data(), plan.size(), false, &error) < 0 ? error.text() : "";
}

void expect_refused(const std::function<void(CascadeSpec&)>& edit, const std::string& why) {
  CascadeSpec cascade;
  edit(cascade);
  const std::string text = refusal(cascade);
  EXPECT_NE(text.find(why), text.npos) << "found '" << text << "', expected '" << why << "'";
}

TEST(CascadePlan, OpensWhereEachLayerFollowsTheOneBefore) {
  EXPECT_EQ(refusal({}), "");
  CascadeSpec two_operands;
  two_operands.inputs = {0, 2};
  two_operands.layers[2].inputs = {2, 4};
  EXPECT_EQ(refusal(two_operands), "");
}

TEST(CascadePlan, HasTwoToFourLayersAndTilesBetweenThem) {
  expect_refused([](CascadeSpec& c) { c.layers = {{.inputs = {0}, .outputs = {1}}}, c.tiles.clear(); },
                 "1 layers with 0 tiles");
  expect_refused([](CascadeSpec& c) { c.tiles.pop_back(); }, "3 layers with 1 tiles");
  expect_refused([](CascadeSpec& c) { c.layers.resize(5), c.tiles.resize(4); }, "5 layers");
}

TEST(CascadePlan, LayersReadTheTileBeforeThemOnce) {
  expect_refused([](CascadeSpec& c) { c.layers[2].inputs = {3}; },
                 "input 0 (tensor 3) is neither the tile before");
  expect_refused([](CascadeSpec& c) { c.layers[1].inputs = {3, 3}; }, "reads the tile before it 2 times");
  expect_refused([](CascadeSpec& c) { c.layers[1].inputs = {0}; }, "reads the tile before it 0 times");
  expect_refused([](CascadeSpec& c) { c.layers[0].inputs = {3}; }, "neither the tile before");
  expect_refused([](CascadeSpec& c) { c.layers[2].inputs = {4, 2}; }, "input 1 (tensor 2) is neither");
  expect_refused([](CascadeSpec& c) { c.layers[2].inputs = {4, 5}; }, "tensor 5");
  expect_refused([](CascadeSpec& c) { c.layers[1].inputs = {UINT32_MAX}; }, "neither");
}

TEST(CascadePlan, LayersWriteTheTileAfterThemAlone) {
  expect_refused([](CascadeSpec& c) { c.layers[0].outputs = {4}; }, "layer 0 does not write tensor 3 alone");
  expect_refused([](CascadeSpec& c) { c.layers[2].outputs = {4}; }, "layer 2 does not write tensor 1 alone");
  expect_refused([](CascadeSpec& c) { c.layers[1].outputs = {}; }, "layer 1 does not write tensor 4 alone");
  expect_refused([](CascadeSpec& c) { c.layers[2].outputs = {1, 2}; }, "does not write tensor 1 alone");
  expect_refused([](CascadeSpec& c) { c.outputs = {1, 2}; }, "and 2 outputs");
}

TEST(CascadePlan, LayersAreKernelsWithTheirParameters) {
  expect_refused([](CascadeSpec& c) { c.layers[1].type = KernelParams_ArgMaxParams; },
                 "with parameters of type");
  expect_refused([](CascadeSpec& c) { c.layers[1].kernel = 0; }, "names no kernel");
  expect_refused(
      [](CascadeSpec& c) { c.layers[1].kernel = kCascade, c.layers[1].type = KernelParams_CascadeParams; },
      "layer 1 is a cascade itself");
}

TEST(CascadePlan, TilesAreTensorsButForTheirPlace) {
  expect_refused([](CascadeSpec& c) { c.tile_bytes = 31; }, "31 bytes, its shape and dtype make 32");
  expect_refused([](CascadeSpec& c) { c.tile_bits = 7; }, "tile 0 has an unknown dtype");
  expect_refused([](CascadeSpec& c) { c.tiles[1] = {1, 0, 4, 2}; }, "extent 0");
  expect_refused([](CascadeSpec& c) { c.tiles[1] = {1, 1, 1, 1, 1, 1, 1}; }, "rank 7");
}

}  // namespace
}  // namespace qplan::format::cascade_test
