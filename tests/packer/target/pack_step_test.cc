// Every field of a step's parameters reaches its table.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/packer/inspect/inspect.h"
#include "src/packer/target/program.h"
#include "src/runtime/bind/family.h"

namespace qplan::target::pack_step_test {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Packed {
  explicit Packed(const ProgramStep& step, size_t num_tensors = 8) {
    builder.Finish(pack_kernel_step(step, num_tensors, builder));
  }
  const format::KernelStep& step() const {
    return *flatbuffers::GetRoot<format::KernelStep>(builder.GetBufferPointer());
  }
  flatbuffers::FlatBufferBuilder builder;
};

ProgramStep step_of(uint16_t kernel, StepParams params) {
  ProgramStep step;
  step.kernel = kernel;
  step.params = std::move(params);
  return step;
}

// "name=value" of all parameters that a plan's reader shows.
std::string shown(uint16_t kernel, StepParams params) {
  const Packed packed(step_of(kernel, std::move(params)));
  std::string text;
  for (const auto& [name, value] : inspect::step_params(packed.step())) text += name + "=" + value + " ";
  return text;
}

TEST(PackStep, EveryFieldOfAConvolution) {
  const Conv2dParams params = {.contract = format::Contract_TFL1,
                               .weights_layout = kLayout_ohwi,
                               .kernel_h = 2,
                               .kernel_w = 3,
                               .stride_h = 4,
                               .stride_w = 5,
                               .dilation_h = 6,
                               .dilation_w = 7,
                               .pad_top = 8,
                               .pad_left = 9,
                               .groups = 10,
                               .input_zero_point = 11,
                               .weights_zero_point = 12,
                               .pad_value = 13,
                               .output_zero_point = 14,
                               .clamp_min = 15,
                               .clamp_max = 16,
                               .float_epilogues = {format::FloatEpilogue_SIGNED, {1.5f, 2.5f}, {3.5f, 4.5f}},
                               .int16_groups = 4};
  EXPECT_EQ(
      shown(kKernel_conv2d, params),
      "contract=TFL1 weights_layout=ohwi kernel_h=2 kernel_w=3 stride_h=4 stride_w=5 dilation_h=6 "
      "dilation_w=7 pad_top=8 pad_left=9 groups=10 input_zero_point=11 weights_zero_point=12 pad_value=13 "
      "output_zero_point=14 clamp_min=15 clamp_max=16 float_epilogue=SIGNED int16_groups=4 ");
  const Packed packed(step_of(kKernel_conv2d, params));
  const format::Conv2dParams& table = *packed.step().params_as_Conv2dParams();
  EXPECT_EQ(std::vector<float>(table.float_scale()->begin(), table.float_scale()->end()),
            params.float_epilogues.scale);
  EXPECT_EQ(std::vector<float>(table.float_offset()->begin(), table.float_offset()->end()),
            params.float_epilogues.offset);
}

TEST(PackStep, EveryFieldOfOtherFamilies) {
  EXPECT_EQ(shown(kKernel_fully_connected,
                  FullyConnectedParams{format::Contract_TFL2, kLayout_ohwi, 1, 2, 3, 4, 5, {}, 2}),
            "contract=TFL2 weights_layout=ohwi input_zero_point=1 weights_zero_point=2 output_zero_point=3 "
            "clamp_min=4 clamp_max=5 float_epilogue=NONE int16_groups=2 ");
  EXPECT_EQ(
      shown(kKernel_avg_pool2d,
            Pool2dParams{format::Contract_F32E, 1, 2, 3, 4, 5, 6, 7, 8, 0.5f, 9, 0.25f, 10, true}),
      "contract=F32E pool_h=1 pool_w=2 stride_h=3 stride_w=4 pad_top=5 pad_left=6 clamp_min=7 clamp_max=8 "
      "input_scale=0.5 input_zero_point=9 output_scale=0.25 output_zero_point=10 count_include_pad=true ");
  EXPECT_EQ(shown(kKernel_add, AddParams{format::Contract_TFL2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
            "contract=TFL2 left_shift=1 input1_zero_point=2 input1_multiplier=3 input1_shift=4 "
            "input2_zero_point=5 input2_multiplier=6 input2_shift=7 output_zero_point=8 output_multiplier=9 "
            "output_shift=10 clamp_min=11 clamp_max=12 ");
  EXPECT_EQ(shown(kKernel_mul, MulParams{format::Contract_TFL2, 1, 2, 3, 4, 5, 6, 7}),
            "contract=TFL2 input1_zero_point=1 input2_zero_point=2 output_zero_point=3 output_multiplier=4 "
            "output_shift=5 clamp_min=6 clamp_max=7 ");
  EXPECT_EQ(
      shown(kKernel_mean, MeanParams{format::Contract_TFL2, 1, 2, 3, 4, 5}),
      "contract=TFL2 axes=1 input_zero_point=2 output_zero_point=3 output_multiplier=4 output_shift=5 ");
  EXPECT_EQ(shown(kKernel_softmax, SoftmaxParams{format::Contract_TFL2, 1, 2, 3}),
            "contract=TFL2 input_multiplier=1 input_left_shift=2 diff_min=3 ");
  EXPECT_EQ(shown(kKernel_quantize, QuantizeParams{format::QuantizeRule_MUL_EVEN, 0.5f, 1}),
            "rule=MUL_EVEN scale=0.5 zero_point=1 ");
  EXPECT_EQ(shown(kKernel_dequantize, DequantizeParams{0.5f, 1}), "scale=0.5 zero_point=1 ");
  EXPECT_EQ(
      shown(kKernel_requantize, RequantizeParams{format::Contract_TFL2, 1, 2, 3, 4, 5, 6, 0.0f, 7}),
      "contract=TFL2 input_zero_point=1 output_zero_point=2 multiplier=3 shift=4 clamp_min=5 clamp_max=6 "
      "axis=7 float_epilogue=NONE ");
  EXPECT_EQ(shown(kKernel_pad, PadParams{{1, 2}, 3}), "before=[1, 2] value=3 ");
  EXPECT_EQ(shown(kKernel_transpose, TransposeParams{{1, 0}}), "permutation=[1, 0] ");
  EXPECT_EQ(shown(kKernel_concat, ConcatParams{1}), "axis=1 ");
  EXPECT_EQ(shown(kKernel_split, SplitParams{1}), "axis=1 ");
  EXPECT_EQ(shown(kKernel_resize_bilinear, ResizeBilinearParams{format::ResizeRule_TFL_INTEGER, true, true}),
            "rule=TFL_INTEGER align_corners=true half_pixel_centers=true ");
  EXPECT_EQ(shown(kKernel_arg_max, ArgMaxParams{1}), "axis=1 ");
}

TEST(PackStep, AResidualAndHowTheStepRuns) {
  ProgramStep step = step_of(kKernel_conv2d, Conv2dParams{});
  step.residual = {AddParams{.contract = format::Contract_TFL2, .left_shift = 20, .float_scale1 = 0.5f},
                   true};
  step.macs = 7;
  step.min_units_per_task = 8;
  step.schedule.bytes = 9;
  const Packed packed(step);
  EXPECT_TRUE(packed.step().residual_is_input1());
  EXPECT_EQ(packed.step().residual()->left_shift(), 20);
  EXPECT_EQ(packed.step().residual()->float_scale1(), 0.5f);
  EXPECT_EQ(packed.step().macs(), 7u);
  EXPECT_EQ(packed.step().min_units_per_task(), 8u);
  EXPECT_EQ(packed.step().schedule(), 9u);
}

TEST(PackStep, TilesAreNumberedFromTheLastTensorOn) {
  ProgramStep cascade = step_of(kKernel_chain, CascadeParams{});
  cascade.inputs = {1};
  cascade.outputs = {2};
  cascade.layers = {step_of(kKernel_add, AddParams{}), step_of(kKernel_add, AddParams{})};
  cascade.layers[0].inputs = {1, 1};
  cascade.layers[0].outputs = {kFirstTile};
  cascade.layers[1].inputs = {kFirstTile, 1};
  cascade.layers[1].outputs = {2};
  cascade.tiles = {{{ir::kInt8, {1, 4, 4, 2}}, "tile", nullptr, {}}};
  const Packed packed(cascade, 8);
  const format::CascadeParams& table = *packed.step().params_as_CascadeParams();
  ASSERT_EQ(table.layers()->size(), 2u);
  EXPECT_EQ(table.layers()->Get(0)->outputs()->Get(0), 8u);
  EXPECT_EQ(table.layers()->Get(1)->inputs()->Get(0), 8u);
  EXPECT_EQ(table.tiles()->Get(0)->size(), 32u);
}

TEST(PackStep, StepsAreEqualByValue) {
  const ProgramStep step = step_of(kKernel_pad, PadParams{{1, 2}, 3});
  ProgramStep other = step;
  EXPECT_EQ(step, other);
  other.params = PadParams{{1, 2}, 3};
  EXPECT_EQ(step, other);
  other.params = PadParams{{1, 0}, 3};
  EXPECT_NE(step, other);
  other.params = NoParams{};
  EXPECT_NE(step, other);
}

}  // namespace
}  // namespace qplan::target::pack_step_test
