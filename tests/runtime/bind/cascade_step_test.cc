// What bind refuses of cascades that open() would let through.
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/cascade/random_cascade.h"

namespace qplan::cascade_step_test {
namespace {

using testing::CascadeAxis;
using testing::CascadeBuilder;

constexpr CascadeAxis kOne = {1, 1, 1, 0, 8};  // of 8 rows or columns
constexpr CascadeAxis kThree = {3, 1, 1, 1, 8};

std::string refusal(CascadeBuilder& cascade, const KernelFamily& family = kCascadeFamily) {
  const StepView step = cascade.cascade(0);
  alignas(kArgsAlignment) uint8_t args[kMaxArgsBytes];
  Error error;
  return family.bind(step, true, args, &error) < 0 ? error.text() : "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(CascadeStep, TakesConvolutionsAndSums) {
  CascadeBuilder cascade(1, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 12, false);
  cascade.add_convolution(kThree, kThree, 12, true);
  cascade.add_convolution(kOne, kOne, 4, false);
  cascade.add_sum();
  EXPECT_EQ(refusal(cascade), "");
  EXPECT_EQ(refusal(cascade, kCascadeFamilyReference), "");
}

TEST(CascadeStep, NamesTheLayerThatItsFamilyRefuses) {
  CascadeBuilder cascade(2, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 12, false);
  cascade.add_convolution(kThree, {3, 0, 1, 1, 8}, 12, true);
  EXPECT_TRUE(contains(refusal(cascade), "chain: layer 1: depthwise_conv2d: width")) << refusal(cascade);
}

TEST(CascadeStep, RefusesKernelsThatAreNoLayers) {
  CascadeBuilder cascade(3, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 12, false);
  cascade.add_copy();
  EXPECT_EQ(refusal(cascade), "chain: layer 1: kernel 21 cannot be a layer here");
}

TEST(CascadeStep, TakesPools) {
  CascadeBuilder cascade(12, {2, 8, 8, 4});
  cascade.add_convolution(kThree, kThree, 8, false);
  cascade.add_pool({3, 2, 1, 1, 4}, {2, 2, 1, 0, 4}, /*is_average=*/false);
  cascade.add_pool({2, 2, 1, 0, 2}, {2, 2, 1, 0, 2}, /*is_average=*/true);
  EXPECT_EQ(refusal(cascade), "");
  EXPECT_EQ(refusal(cascade, kCascadeFamilyReference), "");
  EXPECT_TRUE(contains(refusal(cascade, kCascadeFamilyPlain), "layer 1: kernel")) << "firmware has not all";
}

// Rows of the output whose windows are only padding would be made of no rows.
TEST(CascadeStep, RefusesWindowsOutsideOfTheInput) {
  const CascadeAxis all_above = {3, 1, 1, 3, 8}, all_below = {3, 1, 1, 1, 10}, just_inside = {3, 1, 1, 2, 10};
  for (const CascadeAxis& rows : {all_above, all_below}) {
    CascadeBuilder cascade(4, {1, 8, 8, 4});
    cascade.add_convolution(rows, kThree, 4, true);
    cascade.add_convolution({1, 1, 1, 0, rows.output}, kOne, 4, false);
    EXPECT_TRUE(contains(refusal(cascade), "layer 0: depthwise_conv2d cannot be cut into rows"))
        << refusal(cascade);
  }
  CascadeBuilder cascade(4, {1, 8, 8, 4});
  cascade.add_convolution(just_inside, kThree, 4, true);
  cascade.add_convolution({1, 1, 1, 0, 10}, kOne, 4, false);
  EXPECT_EQ(refusal(cascade), "");
}

TEST(CascadeStep, TakesImagesInPlanesAsItsInput) {
  CascadeBuilder bytes(6, {1, 8, 8, 4});
  bytes.add_transpose();
  bytes.add_convolution(kThree, kThree, 4, true);
  EXPECT_EQ(refusal(bytes), "");
  CascadeBuilder reals(7, {2, 8, 8, 4});
  reals.add_quantize(/*of_planes=*/true);
  reals.add_convolution(kThree, kThree, 4, true);
  EXPECT_EQ(refusal(reals), "");
  EXPECT_EQ(refusal(reals, kCascadeFamilyReference), "");
}

TEST(CascadeStep, RefusesPlanesBetweenLayers) {
  CascadeBuilder cascade(8, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 4, false);
  cascade.add_transpose_of_rows();
  EXPECT_TRUE(contains(refusal(cascade), "layer 1: transpose cannot be cut into rows")) << refusal(cascade);
}

// As networks end that label pixels.
TEST(CascadeStep, BeginsWithAResizeAndEndsWithIndices) {
  for (const uint8_t bits : {32, 64}) {
    CascadeBuilder cascade(9, {2, 3, 4, 5});
    cascade.add_resize(17, 25, true, false);
    cascade.add_arg_max(bits);
    EXPECT_EQ(refusal(cascade), "");
    EXPECT_EQ(refusal(cascade, kCascadeFamilyReference), "");
    // Firmware without such cascades has not the kernels.
    EXPECT_TRUE(contains(refusal(cascade, kCascadeFamilyPlain), "chain: output")) << refusal(cascade);
  }
}

// A tile has only some of the rows.
TEST(CascadeStep, RefusesToResizeATile) {
  CascadeBuilder cascade(10, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 4, false);
  cascade.add_resize(16, 16, false, false);
  EXPECT_TRUE(contains(refusal(cascade), "layer 1: resize_bilinear cannot be cut into rows"))
      << refusal(cascade);
}

TEST(CascadeStep, RefusesIndicesBetweenLayers) {
  CascadeBuilder cascade(11, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 4, false);
  cascade.add_arg_max(32, /*keeps_axis=*/true);
  cascade.add_table();
  EXPECT_TRUE(contains(refusal(cascade), "layer 2: lut8: input has int32")) << refusal(cascade);
}

TEST(CascadeStep, RefusesSumsThatBroadcast) {
  CascadeBuilder cascade(5, {1, 8, 8, 4});
  cascade.add_convolution(kOne, kOne, 4, false);
  cascade.add_sum({1, 1, 1, 4});
  EXPECT_TRUE(contains(refusal(cascade), "cannot be cut into rows")) << refusal(cascade);
}

}  // namespace
}  // namespace qplan::cascade_step_test
