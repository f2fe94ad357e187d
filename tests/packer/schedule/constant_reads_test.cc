// How many bytes of its constants a step reads in a run: figures worked out by hand from what the kernels do.
#include <gtest/gtest.h>

#include "kernels/layout.h"
#include "src/packer/schedule/schedule.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule::constant_reads_test {
namespace {

using target::Program;
using target::ProgramStep;

target::Bytes zeros(int64_t bytes) {
  return std::make_shared<const std::vector<uint8_t>>(static_cast<size_t>(bytes), uint8_t{0});
}

// x [1,4,5,8] -> y [1,4,5,6]: 20 pixels. Weights of `weights` bytes, sums, multipliers and shifts of 32
// bytes.
Program layer_of(uint16_t kernel, int64_t weights, target::StepParams params) {
  Program program;
  program.is_small = true;
  program.tensors.push_back({{ir::kInt8, {1, 4, 5, 8}}, "x", nullptr, {}});
  program.tensors.push_back({{ir::kInt8, {1, 4, 5, 6}}, "y", nullptr, {}});
  program.tensors.push_back({{ir::kInt8, {weights}}, "weights", zeros(weights), {}});
  for (const char* name : {"sums", "multipliers", "shifts"})
    program.tensors.push_back({{ir::kInt32, {8}}, name, zeros(32), {}});
  ProgramStep step;
  step.kernel = kernel;
  step.inputs = {0, 2, 3, 4, 5};
  step.outputs = {1};
  step.params = std::move(params);
  program.steps.push_back(std::move(step));
  return program;
}

std::vector<uint64_t> reads_of(const Program& program, const char* target) {
  std::vector<uint64_t> reads = constant_reads(program, target::parse_target(target));
  EXPECT_EQ(reads[0], 0u);
  EXPECT_EQ(reads[1], 0u);
  reads.erase(reads.begin(), reads.begin() + 2);
  return reads;
}

using Reads = std::vector<uint64_t>;

TEST(ConstantReads, AConvolutionReadsItsWeightsForEachTileOfPixels) {
  target::Conv2dParams params;
  params.kernel_h = params.kernel_w = params.dilation_h = params.dilation_w = 1;
  params.weights_layout = kLayout_ohwi;
  EXPECT_EQ(reads_of(layer_of(kKernel_conv2d, 48, params), "cpu,arch=cortex-m3"),
            (Reads{20 * 48, 20 * 32, 20 * 32, 20 * 32}));
  params.weights_layout = kLayout_o2h4;  // three pixels: 7 tiles
  EXPECT_EQ(reads_of(layer_of(kKernel_conv2d, 48, params), "cpu,arch=cortex-m4"),
            (Reads{7 * 48, 7 * 32, 20 * 32, 20 * 32}));
  params.weights_layout = kLayout_o4k16;  // two
  EXPECT_EQ(reads_of(layer_of(kKernel_conv2d, 48, params), "cpu,arch=cortex-m55"),
            (Reads{10 * 48, 10 * 32, 20 * 32, 20 * 32}));
}

TEST(ConstantReads, MultipliersAreNotReadWhereFloatsTakeTheirPlace) {
  target::Conv2dParams params;
  params.weights_layout = kLayout_o2h4;
  params.float_epilogues.form = format::FloatEpilogue_PLAIN;
  EXPECT_EQ(reads_of(layer_of(kKernel_conv2d, 48, params), "cpu,arch=cortex-m4"),
            (Reads{7 * 48, 7 * 32, 0, 0}));
}

TEST(ConstantReads, ADepthwiseConvolutionReadsAWindowOf3x3Once) {
  target::Conv2dParams params;
  params.kernel_h = params.kernel_w = 3;
  params.dilation_h = params.dilation_w = 1;
  params.weights_layout = kLayout_hwo16;
  EXPECT_EQ(reads_of(layer_of(kKernel_depthwise_conv2d, 144, params), "cpu,arch=cortex-m4"),
            (Reads{144, 32, 20 * 32, 20 * 32}));
  params.kernel_h = 5;
  EXPECT_EQ(reads_of(layer_of(kKernel_depthwise_conv2d, 240, params), "cpu,arch=cortex-m4"),
            (Reads{20 * 240, 20 * 32, 20 * 32, 20 * 32}));
}

TEST(ConstantReads, ALayerOfACascadeIsCalledForEachBlockOfRows) {
  target::Conv2dParams params;
  params.kernel_h = params.kernel_w = 3;
  params.dilation_h = params.dilation_w = 1;
  params.weights_layout = kLayout_hwo16;
  Program program = layer_of(kKernel_depthwise_conv2d, 144, params);
  ProgramStep cascade;
  cascade.kernel = kKernel_chain;
  cascade.inputs = program.steps[0].inputs;
  cascade.outputs = {1};
  cascade.layers = {program.steps[0], program.steps[0]};
  cascade.layers[0].outputs = {target::kFirstTile};
  cascade.layers[1].inputs = {target::kFirstTile};
  cascade.tiles = {program.tensors[1]};
  program.steps = {cascade};
  EXPECT_EQ(reads_of(program, "cpu,arch=cortex-m4")[0], 4u * 144) << "one row at a time";
}

TEST(ConstantReads, AFullyConnectedLayerReadsItsWeightsForEachRow) {
  target::FullyConnectedParams params;
  EXPECT_EQ(reads_of(layer_of(kKernel_fully_connected, 48, params), "cpu,arch=cortex-m4"),
            (Reads{20 * 48, 20 * 32, 20 * 32, 20 * 32}));
}

TEST(ConstantReads, ATableIsReadForEachElement) {
  Program program = layer_of(kKernel_lut8, 256, target::StepParams());
  program.steps[0].inputs = {0, 2};
  EXPECT_EQ(reads_of(program, "cpu,arch=cortex-m4")[0], 256u) << "120 elements: all of it may be needed";
  program.tensors[1].type.shape = {1, 40, 5, 6};
  EXPECT_EQ(reads_of(program, "cpu,arch=cortex-m4")[0], 1200u);
}

}  // namespace
}  // namespace qplan::schedule::constant_reads_test
