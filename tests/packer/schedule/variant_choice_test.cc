#include "src/packer/schedule/variant_choice.h"

#include <gtest/gtest.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "src/runtime/bind/family.h"

namespace qplan::schedule::variant_choice_test {
namespace {

// A layer of 4 channels, in the layout that the vector variants read.
Conv2dArgs layer() {
  Conv2dArgs args;
  args.batch = args.kernel_h = args.kernel_w = args.stride_h = args.stride_w = 1;
  args.dilation_h = args.dilation_w = args.groups = 1;
  args.input_h = args.input_w = args.output_h = args.output_w = 8;
  args.input_c = 4;
  args.output_c = 16;
  args.input_dtype = args.output_dtype = Dtype::kU8;
  args.weights_layout = kLayout_o16k4;
  return args;
}

std::vector<uint32_t> all_isas() {
  std::vector<uint32_t> isas;
  for (uint32_t v = 0; v < kConv2dFamily.num_variants; ++v) isas.push_back(kConv2dFamily.variants[v].isa);
  return isas;
}

TEST(VariantChoice, IsEmptyWhereTheBestVariantComputesTheStep) {
  const Conv2dArgs args = layer();
  EXPECT_TRUE(better_variants(kConv2dFamily, &args, all_isas(), 0).empty());
}

TEST(VariantChoice, HasTheReasonOfEachVariantThatRefuses) {
  Conv2dArgs args = layer();
  args.weights_layout = kLayout_ohwi;
  const auto by_layout = better_variants(kConv2dFamily, &args, all_isas(), 0);
  EXPECT_EQ(by_layout.size(), kConv2dFamily.num_variants - 1);
  for (const RefusingVariant& refused : by_layout) {
    EXPECT_EQ(refused.reason, "it does not read weights in this layout") << refused.variant->name;
  }
  args = layer();
  args.input_zero_point = 3;
  for (const RefusingVariant& refused : better_variants(kConv2dFamily, &args, all_isas(), 0)) {
    EXPECT_EQ(refused.reason, "the input zero point is not the least value of the dtype");
  }
}

TEST(VariantChoice, NamesTheScheduleWhereItWantsLess) {
  const Conv2dArgs args = layer();
  const uint64_t reference_only = uint64_t{QPLAN_ISA_REFERENCE} << 56;
  const auto better = better_variants(kConv2dFamily, &args, all_isas(), reference_only);
  EXPECT_EQ(better.size(), kConv2dFamily.num_variants - 1);
  for (const RefusingVariant& refused : better) {
    EXPECT_EQ(refused.reason, "the schedule wants a lower instruction set");
  }
}

}  // namespace
}  // namespace qplan::schedule::variant_choice_test
