// Layers that read a repeated pixel beside other channels (src/packer/target/cpu/repeated_pixels.cc): which
// become two, and that the outputs are those of the layer as it was.
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/packer/target/lower_helpers.h"
#include "tests/support/random.h"

namespace qplan::testing::repeated_pixels_test {
namespace {

// A convolution of x, [1, 5, 3, 6], and of its largest elements, repeated. What is written here is the case that becomes
// two layers.
struct Network {
  std::string dtype = "uint8";
  std::string concatenated = "(%2, %x)";
  int channels = 12;  // of them
  int output_c = 32;
  int kernel = 1;
  std::string window = "strides=[2, 1]";
  std::string pool = "pool_size=[5, 3]";
  int weights_zero_point = 3;
  bool has_bias = true;
  std::string outputs = "%6";
  uint64_t seed = 1;  // of weights and bias
};

template <typename T>
std::string list(const std::vector<T>& values) {
  std::ostringstream out;
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "[" : ", ") << +values[i];
  return out.str() + "]";
}

std::string text_of(const Network& n) {
  Random random(n.seed);
  const auto count = static_cast<size_t>(n.output_c * n.kernel * n.kernel * n.channels);
  std::ostringstream s;
  s << "  %0 = nn.max_pool2d(%x, " << n.pool << ", layout=\"NHWC\");\n"
    << "  %1 = clip(%0, a_min=0f, a_max=200f);\n"
    << "  %2 = image.resize2d(%1, size=[5, 3], layout=\"NHWC\");\n"
    << "  %3 = concatenate(" << n.concatenated << ", axis=3);\n"
    << "  %4 = qnn.conv2d(%3, const(Tensor[(" << n.output_c << ", " << n.kernel << ", " << n.kernel << ", "
    << n.channels << "), int8], " << list(random.integers<int8_t>(count, -128, 127)) << "), "
    << (n.dtype == "uint8" ? 0 : -128) << ", " << n.weights_zero_point << ", 1f, 1f, " << n.window
    << ", data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n";
  if (n.has_bias) {
    s << "  %5 = nn.bias_add(%4, const(Tensor[(" << n.output_c << "), int32], "
      << list(random.integers<int32_t>(static_cast<size_t>(n.output_c), -4000, 4000)) << "), axis=3);\n";
  }
  s << "  %6 = qnn.requantize(" << (n.has_bias ? "%5" : "%4") << ", 1f, 0, 700f, 5, out_dtype=\"" << n.dtype
    << "\");\n  " << n.outputs;
  return main_text("%x: Tensor[(1, 5, 3, 6), " + n.dtype + "]", s.str());
}

template <typename T>
void expect_same_outputs(Network network) {
  const std::string separated = text_of(network);
  network.outputs = "(%6, %3)";  // who reads the concatenation wants it whole
  const std::string whole = text_of(network);
  ASSERT_NE(kernels_of(lower_text(separated)), kernels_of(lower_text(whole)));
  const std::vector<T> x = Random(network.seed).full_range<T>(5 * 3 * 6);
  EXPECT_EQ(run_text<T>(separated, x), run_text<T>(whole, x)) << separated;
}

TEST(RepeatedPixels, OneLayerMakesTheBiasOfTheOther) {
  const target::Program program = lower_text(text_of({}));
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
  Network network;
  network.outputs = "(%6, %2)";
  EXPECT_EQ(kernels_of(lower_text(text_of(network))), "max_pool2d resize_bilinear conv2d copy conv2d");
}

TEST(RepeatedPixels, OutputsAreThoseOfTheWholeLayer) {
  for (uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    Network network;
    network.seed = seed;
    network.weights_zero_point = static_cast<int>(seed % 3) * 60 - 60;
    network.has_bias = seed % 4 != 0;
    if (seed % 5 == 0) network.concatenated = "(%x, %2)";
    if (seed % 5 == 1) network.concatenated = "(%2, %x, %2, %x)", network.channels = 24;
    if (seed % 2 == 0) {
      expect_same_outputs<uint8_t>(network);
    } else {
      network.dtype = "int8";
      expect_same_outputs<int8_t>(network);
    }
  }
}

// Weights that are int8 without their zero point are stored so; a computed bias has no room for the rests of
// others.
TEST(RepeatedPixels, TheLayerHasNoRestsOfWeights) {
  Network network;
  network.weights_zero_point = 0;
  const target::Program without = lower_text(text_of(network));
  EXPECT_EQ(without.steps[3].params.get_if<target::Conv2dParams>()->weights_zero_point, 0);
  network.weights_zero_point = 100;
  const target::Program with = lower_text(text_of(network));
  EXPECT_EQ(with.steps[3].params.get_if<target::Conv2dParams>()->weights_zero_point, 100);
}

TEST(RepeatedPixels, OtherLayersStayWhole) {
  const auto kernels = [](const Network& network, const char* target = "cpu") {
    return kernels_of(lower_text(text_of(network), target));
  };
  const std::string whole = "max_pool2d resize_bilinear concat conv2d";
  EXPECT_EQ(kernels({.output_c = 24}), whole);
  EXPECT_EQ(kernels({.kernel = 2}), whole);
  EXPECT_EQ(kernels({.window = "padding=[0, 1, 0, 0]"}), whole);
  EXPECT_EQ(kernels({.pool = "pool_size=[4, 3]"}), whole);
  EXPECT_EQ(kernels({.outputs = "(%6, %3)"}), whole);
  EXPECT_EQ(kernels({.outputs = "(%6, %5)"}), whole + " requantize");
  // All that it reads is repeated.
  EXPECT_EQ(kernels({.concatenated = "(%2, %2)"}), whole);
  EXPECT_EQ(kernels({}, "cpu,arch=cortex-m"), whole);
}

}  // namespace
}  // namespace qplan::testing::repeated_pixels_test
