// Layers that read a repeated pixel beside other channels (src/packer/target/cpu/repeated_pixels.cc): which
// become two, and what is proved and packed of them. tests/models/repeated_pixels_test.cc compares outputs.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/packer/target/lower_helpers.h"
#include "tests/support/repeated_pixel_network.h"

namespace qplan::testing::repeated_pixels_test {
namespace {

using Network = RepeatedPixelNetwork;

std::string kernels(const Network& network, const char* target = "cpu") {
  return kernels_of(lower_text(network.text(), target));
}

const target::Conv2dParams& last_layer(const target::Program& program) {
  return *program.steps.back().params.get_if<target::Conv2dParams>();
}

TEST(RepeatedPixels, OneLayerMakesTheBiasOfTheOther) {
  const target::Program program = lower_text(Network().text());
  ASSERT_EQ(kernels_of(program), "max_pool2d conv2d copy conv2d");
  const target::ProgramStep &of_pixel = program.steps[1], &of_x = program.steps[3];
  EXPECT_EQ(of_pixel.params.get_if<target::Conv2dParams>()->contract, format::Contract_ACC32);
  EXPECT_EQ(of_pixel.inputs[0], program.steps[0].outputs[0]);
  EXPECT_EQ(program.steps[2].inputs[0], of_pixel.outputs[0]);
  EXPECT_EQ(of_x.inputs[0], program.inputs[0]);
  EXPECT_EQ(of_x.inputs[2], program.steps[2].outputs[0]);
  EXPECT_EQ(ir::to_string(program.tensors[of_x.inputs[2]].type), "Tensor[(32), int32]");
  EXPECT_EQ(of_pixel.macs, 32u * 6);
  EXPECT_EQ(of_x.macs, 3u * 3 * 32 * 6);
}

TEST(RepeatedPixels, OthersMayReadWhatIsRepeated) {
  EXPECT_EQ(kernels({.tail = "(%7, %2)"}), "max_pool2d resize_bilinear conv2d copy conv2d");
}

// What the sums can be is what those of the whole layer can be, and so is what is proved for them. Float32
// does not hold all sums with the larger biases.
TEST(RepeatedPixels, TheFloatEpilogueIsThatOfTheWholeLayer) {
  size_t with_form = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Network network = {.greatest_bias = seed % 2 == 0 ? 4000 : 1 << 26, .seed = seed};
    const target::Program separated = lower_text(network.text()), whole = lower_text(network.whole_text());
    ASSERT_EQ(separated.steps.size(), whole.steps.size());
    EXPECT_EQ(last_layer(separated).float_epilogues, last_layer(whole).float_epilogues);
    with_form += last_layer(separated).float_epilogues.form != format::FloatEpilogue_NONE;
  }
  EXPECT_GE(with_form, 10u);
}

// Weights that are int8 without their zero point are stored so; a computed bias has no room for the rests of
// others.
TEST(RepeatedPixels, TheLayerHasNoRestsOfWeights) {
  const auto zero_point = [](int weights_zero_point) {
    const Network network = {
        .weights_zero_point = weights_zero_point, .least_weight = -100, .greatest_weight = 100, .seed = 3};
    const target::Program program = lower_text(network.text());
    EXPECT_EQ(program.tensors[program.steps.back().inputs[2]].type.num_elements(), 32);
    return last_layer(program).weights_zero_point;
  };
  EXPECT_EQ(zero_point(27), 0);
  // The least of 192 weights is not int8 then.
  EXPECT_EQ(zero_point(29), 29);
}

TEST(RepeatedPixels, OtherLayersStayWhole) {
  const std::string whole = "max_pool2d resize_bilinear concat conv2d";
  EXPECT_EQ(kernels({.output_c = 24}), whole);
  EXPECT_EQ(kernels({.kernel = 2}), whole);
  EXPECT_EQ(kernels({.window = "padding=[0, 1, 0, 0]"}), whole);
  EXPECT_EQ(kernels({.channels = 6, .window = "groups=2"}),
            whole.substr(0, 11) + "resize_bilinear concat conv2d");
  EXPECT_EQ(kernels({.axis = 2, .channels = 6}), whole);
  EXPECT_EQ(kernels({.pool = "pool_size=[4, 3]"}), whole);
  // With 16 rows and 16 channels, scales and biases can be along either.
  EXPECT_EQ(kernels({.height = 16,
                     .output_c = 16,
                     .window = "strides=[1, 1]",
                     .scales = Network::scales_of(16),
                     .scale_axis = 1}),
            whole + " requantize");
  EXPECT_NE(
      lower_refusal(Network{.height = 16, .output_c = 16, .window = "strides=[1, 1]", .bias_axis = 1}.text())
          .find("the bias is not along the channels"),
      std::string::npos);
  EXPECT_EQ(kernels({.tail = "(%7, %4)"}), whole);
  EXPECT_EQ(kernels({.tail = "(%7, %6)"}), whole + " requantize");
  // All that it reads is repeated.
  EXPECT_EQ(kernels({.concatenated = "(%2, %2)"}), whole);
  EXPECT_EQ(kernels({}, "cpu,arch=cortex-m"), whole);
}

// Biases that a network computes are taken where a layer has been separated, and where the same is written.
TEST(RepeatedPixels, OtherComputedBiasesAreRefused) {
  const auto refusal = [](int channels, const char* target, bool bias_is_first = true) -> std::string {
    const std::string c = std::to_string(channels);
    std::string weights = "0";
    for (int i = 1; i < channels * 6; ++i) weights += ", 1";
    const auto conv = [&](const std::string& data) {
      return "qnn.conv2d(" + data + ", const(Tensor[(" + c + ", 1, 1, 6), int8], [" + weights +
             "]), -128, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n";
    };
    const std::string bias = "%0 = " + conv("%p") + "%1 = reshape(%0, newshape=[" + c + "]);\n";
    const std::string sums = "%2 = " + conv("%x");
    const std::string text =
        main_text("%x: Tensor[(1, 5, 3, 6), int8], %p: Tensor[(1, 1, 1, 6), int8]",
                  (bias_is_first ? bias + sums : sums + bias) +
                      "%3 = nn.bias_add(%2, %1, axis=3);\nqnn.requantize(%3, 1f, 0, 10f, 0)");
    try {
      lower_text(text, target);
    } catch (const PackError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(32, "cpu"), "");
  // A step cannot read what a later one makes.
  EXPECT_NE(refusal(32, "cpu", false).find("the bias is not a constant"), std::string::npos);
  EXPECT_NE(refusal(24, "cpu").find("the bias is not a constant"), std::string::npos);
  EXPECT_NE(refusal(32, "cpu,arch=cortex-m").find("the bias is not a constant"), std::string::npos);
}

}  // namespace
}  // namespace qplan::testing::repeated_pixels_test
