// From a plan's step to DepthwiseConv2dArgs.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "src/runtime/bind/family.h"
#include "tests/support/conv2d_step_spec.h"
#include "tests/support/variants.h"

namespace qplan::depthwise_conv2d_step_test {
namespace {

using testing::ArgsStorage;
using testing::Conv2dStepSpec;
using testing::TestStep;

// Four channels, two outputs of each.
struct Spec : Conv2dStepSpec {
  Spec() {
    output_shape[3] = 8;
    groups = 4;
    set_constants(kLayout_ohwi, 8, 1);
  }
};

TEST(DepthwiseConv2dStep, FillsArgsFromAValidStep) {
  for (const uint16_t layout : {kLayout_ohwi, kLayout_hwo16}) {
    Spec spec;
    spec.set_constants(layout, 8, 1);
    TestStep step(kKernel_depthwise_conv2d);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kDepthwiseConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
    const auto& args = storage.as<DepthwiseConv2dArgs>();
    EXPECT_EQ(args.input_c, 4u);
    EXPECT_EQ(args.output_c, 8u);
    EXPECT_EQ(args.groups, 4u);
    EXPECT_EQ(args.weights_layout, layout);
    for (uint32_t i = 0; i < kDepthwiseConv2dFamily.num_variants; ++i) {
      const KernelVariant& variant = kDepthwiseConv2dFamily.variants[i];
      if (cpu_has_isa(variant.isa) && variant.accepts(storage.bytes))
        testing::run_variant(variant, storage.bytes);
    }
  }
}

TEST(DepthwiseConv2dStep, UnderF32eOneScaleIsMeant) {
  Spec spec;
  spec.contract = format::Contract_F32E;
  spec.scale = std::vector<float>(8, 0.5f);
  TestStep step(kKernel_depthwise_conv2d);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kDepthwiseConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<DepthwiseConv2dArgs>().contract, Contract::kF32e);
  EXPECT_EQ(storage.as<DepthwiseConv2dArgs>().scale[7], 0.5f);
}

TEST(DepthwiseConv2dStep, UnderAcc32TheSumsAreTheOutput) {
  Spec spec;
  spec.contract = format::Contract_ACC32;
  spec.multiplier.clear();
  spec.output_zero_point = spec.clamp_min = spec.clamp_max = 0;
  spec.input_zero_point = spec.pad_value = spec.weights_zero_point = 0;
  TestStep step(kKernel_depthwise_conv2d);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kDepthwiseConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<DepthwiseConv2dArgs>().output_dtype, Dtype::kS32);
  testing::run_variant(kDepthwiseConv2dFamilyReference.variants[0], storage.bytes);
  // Channel 0 of the first window, which begins above and left of the input: bytes i * 37, weights 1, bias 7.
  int32_t sum = 7;
  for (const int i : {0, 4, 16, 20}) sum += i * 37 % 256;
  EXPECT_EQ(step.output_data<int32_t>()[0], sum);
}

TEST(DepthwiseConv2dStep, RefusesWhatItCannotProve) {
  std::vector<testing::Refusal<Spec>> refusals = {
      {[](Spec& s) { s.groups = 2; }, "groups 2 are not the input channels 4"},
      {[](Spec& s) { s.output_shape[3] = 6; },
       "output channels 6 are not a multiple of the input channels 4"},
      {[](Spec& s) { s.output_shape[3] = 2; },
       "output channels 2 are not a multiple of the input channels 4"},
      {[](Spec& s) { s.output_shape[3] = 4; }, "weights has 72 bytes, expected 36"},
      {[](Spec& s) { s.layout = kLayout_o16k4; },
       "no variant reads weight layout 1 (o16k4), only ohwi and hwo16", QPLAN_KERNEL_MISSING},
      {[](Spec& s) { s.layout = kLayout_hwo16; }, "weights has 72 bytes, expected 144"},
      // hwo16 rounds the constants up.
      {[](Spec& s) { s.set_constants(kLayout_hwo16, 8, 1), s.bias.resize(8); },
       "bias has 32 bytes, expected 16"},
      {[](Spec& s) { s.set_constants(kLayout_hwo16, 8, 1), s.shift[15] = 31; }, "shift 31 of channel 15"},
      // Another step computes the bias of conv2d alone.
      {[](Spec& s) {
         s.edit = [](TestStep& step) { step.tensor(Spec::kBias).bank = TestStep::kArenaBank; };
       },
       "bias is not a constant"},
  };
  for (const auto& refusal : testing::common_conv2d_refusals()) {
    refusals.push_back(
        {[change = refusal.change](Spec& spec) { change(spec); }, refusal.text, refusal.status});
  }
  testing::expect_refusals(kDepthwiseConv2dFamily, refusals);
}

TEST(DepthwiseConv2dStep, ReferenceFamilyHasTheReferenceOnly) {
  EXPECT_EQ(kDepthwiseConv2dFamilyReference.num_variants, 1u);
  EXPECT_EQ(std::string(kDepthwiseConv2dFamilyReference.variants[0].name), "depthwise_conv2d_ref");
}

}  // namespace
}  // namespace qplan::depthwise_conv2d_step_test
