#include <gtest/gtest.h>

#include <string>

#include "src/packer/schedule/fuse.h"
#include "src/packer/target/profile.h"
#include "tests/packer/target/lower_helpers.h"

namespace qplan::schedule::fold_residuals_test {
namespace {

using qplan::testing::kernels_of;
using qplan::testing::lower_text;
using qplan::testing::main_text;
using target::Program;

constexpr const char* kX = "%x: Tensor[(1, 4, 4, 2), int8], %y: Tensor[(1, 4, 4, 2), int8]";

// "%<value + 1> = requantize(conv2d(input))", 1x1 with two channels.
std::string layer(int value, const std::string& input) {
  const std::string sum = "%" + std::to_string(value), out = "%" + std::to_string(value + 1);
  return "  " + sum + " = qnn.conv2d(" + input +
         ", const(Tensor[(2, 1, 1, 2), int8], [1, 2, 3, -1]), 0, 0, 1f, 1f, data_layout=\"NHWC\", "
         "kernel_layout=\"OHWI\");\n  " +
         out + " = qnn.requantize(" + sum + ", 1f, 0, 4f, 0);\n";
}
std::string sum(int value, const std::string& a, const std::string& b) {
  return "  %" + std::to_string(value) + " = qnn.add(" + a + ", " + b + ", 1f, 0, 0.5f, 0, 2f, 0);\n";
}

Program folded(const std::string& body) { return fold_residuals(lower_text(main_text(kX, body), "cpu")); }

TEST(FoldResiduals, TheSumOfALayerAndAnActivationIsOneStep) {
  const Program program = folded(layer(0, "%x") + sum(2, "%1", "%y") + "  %2");
  ASSERT_EQ(kernels_of(program), "conv2d");
  ASSERT_TRUE(program.steps[0].residual);
  EXPECT_FALSE(program.steps[0].residual->is_input1);
  EXPECT_EQ(program.steps[0].inputs.back(), program.inputs[1]);
  EXPECT_EQ(program.steps[0].outputs, program.outputs);
}

TEST(FoldResiduals, EitherOperandMayBeTheLayers) {
  const Program program = folded(layer(0, "%x") + sum(2, "%y", "%1") + "  %2");
  ASSERT_EQ(kernels_of(program), "conv2d");
  ASSERT_TRUE(program.steps[0].residual);
  EXPECT_TRUE(program.steps[0].residual->is_input1);
}

TEST(FoldResiduals, OfTwoLayersTheLaterOneAdds) {
  const Program program = folded(layer(0, "%x") + layer(2, "%y") + sum(4, "%1", "%3") + "  %4");
  ASSERT_EQ(kernels_of(program), "conv2d conv2d");
  EXPECT_FALSE(program.steps[0].residual);
  ASSERT_TRUE(program.steps[1].residual);
  EXPECT_TRUE(program.steps[1].residual->is_input1);
  EXPECT_EQ(program.steps[1].inputs.back(), program.steps[0].outputs[0]);
}

TEST(FoldResiduals, ASumMayBeTheNextOnesResidual) {
  EXPECT_EQ(
      kernels_of(folded(layer(0, "%x") + sum(2, "%1", "%y") + layer(3, "%2") + sum(5, "%4", "%2") + "  %5")),
      "conv2d conv2d");
}

TEST(FoldResiduals, LeavesSumsOfWhatOthersRead) {
  EXPECT_EQ(kernels_of(folded(layer(0, "%x") + sum(2, "%1", "%y") + "  (%2, %1)")), "conv2d add");
  EXPECT_EQ(kernels_of(folded(layer(0, "%x") + sum(2, "%1", "%1") + "  %2")), "conv2d add");
}

TEST(FoldResiduals, LeavesSumsThatBroadcastOrHaveConstants) {
  EXPECT_EQ(kernels_of(folded(layer(0, "%x") + sum(2, "%1", "const(Tensor[(2), int8], [1, 2])") + "  %2")),
            "conv2d add");
}

// The residual is made after the layer that would add it.
TEST(FoldResiduals, LeavesSumsWhoseOtherOperandComesLater) {
  EXPECT_EQ(
      kernels_of(folded(layer(0, "%x") + "  %2 = nn.max_pool2d(%y, pool_size=[1, 1], layout=\"NHWC\");\n" +
                        sum(3, "%1", "%2") + "  %3")),
      "conv2d max_pool2d add");
}

TEST(FoldResiduals, ApartIsAsBefore) {
  const Program before = lower_text(main_text(kX, layer(0, "%x") + sum(2, "%y", "%1") + "  %2"), "cpu");
  const Program apart = residual_apart(fold_residuals(before), 0);
  ASSERT_EQ(kernels_of(apart), "conv2d add");
  EXPECT_EQ(apart.steps[0].inputs.size(), before.steps[0].inputs.size());
  EXPECT_EQ(apart.steps[1].inputs[1], apart.steps[0].outputs[0]);
}

}  // namespace
}  // namespace qplan::schedule::fold_residuals_test
