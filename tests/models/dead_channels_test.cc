// Networks whose training left channels unused: weights near 0 with scales that are as small, and a bias near
// +-2^30, where converters stop. Sums wrap around 2^32 there (the bias, the input's zero point folded into
// it, the products), in every kernel alike; the output is what TFLite's reference computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"
#include "tests/support/isas.h"

namespace qplan::testing::dead_channels_test {
namespace {

using tflite_test::bytes_of;
using tflite_test::TfliteBuilder;

constexpr int32_t kSide = 5, kChannels = 16;
constexpr int64_t kInputZeroPoint = 127, kOutputZeroPoint = -3;
constexpr float kInputScale = 0.5f, kOutputScale = 0.25f;

struct Channel {
  int32_t bias;
  float weight_scale;  // powers of two: the multiplier of the channel is 2 * weight_scale, exactly
  int8_t weight;
};

// Bias and scales of dead channels (1, 2: the bias is worth about +-64 outputs) between live ones; 3 to 6 are
// at the ends of int32, where sums wrap; 7 and 8 have a multiplier that is 0.
std::vector<Channel> channels() {
  const float tiny = std::ldexp(1.0f, -25);
  std::vector<Channel> all = {{100, 0.0625f, 3},
                              {1 << 30, tiny, 127},
                              {-(1 << 30), tiny, -127},
                              {INT32_MAX, tiny, 127},
                              {INT32_MAX, tiny, -127},
                              {INT32_MIN, tiny, 127},
                              {INT32_MIN, tiny, -127},
                              {1 << 30, std::ldexp(1.0f, -40), 1},
                              {-(1 << 30), std::ldexp(1.0f, -140), 1}};
  while (all.size() < static_cast<size_t>(kChannels)) all.push_back({-50, 0.125f, -1});
  return all;
}

int64_t wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }

// For a multiplier of 2^exponent, exponent <= 0: the doubling high product with 2^30 is floor((a + 1) / 2),
// the rest a shift that rounds half away from zero. Of 2^-32 and less TFLite makes 0.
int64_t requantized(int64_t sum, int exponent) {
  const int shift = exponent + 1;  // multiplier 2^30 / 2^31
  if (shift < -31) return 0;
  const int64_t left = shift > 0 ? int64_t{1} << shift : 1;
  const int right = shift > 0 ? 0 : -shift;
  const int64_t high = (sum * left + 1) >> 1;
  const double rounded = std::round(std::ldexp(static_cast<double>(high), -right));
  return static_cast<int64_t>(rounded);
}

int8_t expected_output(const Channel& channel, int64_t sum_of_inputs) {
  const int64_t sum = wrap(sum_of_inputs * channel.weight + channel.bias);
  const int exponent = std::ilogb(channel.weight_scale) + 1;
  return static_cast<int8_t>(
      std::clamp<int64_t>(requantized(sum, exponent) + kOutputZeroPoint, INT8_MIN, INT8_MAX));
}

// All weights of a channel are equal, so that an output follows from the sum of its window.
struct Network {
  std::vector<uint8_t> model;
  std::vector<uint8_t> input;
  std::vector<uint8_t> expected;
};

int8_t input_value(int32_t y, int32_t x, int32_t c) {
  return static_cast<int8_t>((y * 37 + x * 101 + c * 53) % 256 - 128);
}

// 3 x 3, SAME: the value outside is the zero point, and adds nothing.
Network conv_network(bool depthwise) {
  const std::vector<Channel> all = channels();
  const int32_t window = depthwise ? 9 : 9 * kChannels;
  std::vector<float> scales;
  std::vector<int32_t> bias;
  std::vector<uint8_t> weights(static_cast<size_t>(kChannels * window));
  for (int32_t o = 0; o < kChannels; ++o) {
    const Channel& channel = all[static_cast<size_t>(o)];
    scales.push_back(channel.weight_scale);
    bias.push_back(channel.bias);
    for (int32_t k = 0; k < window; ++k) {
      weights[static_cast<size_t>(depthwise ? k * kChannels + o : o * window + k)] =
          static_cast<uint8_t>(channel.weight);
    }
  }
  TfliteBuilder b;
  const std::vector<int32_t> shape = {1, kSide, kSide, kChannels};
  const int32_t x = b.activation("x", shape, kInputScale, kInputZeroPoint);
  const int32_t w = b.tensor({.name = "w",
                              .shape = {depthwise ? 1 : kChannels, 3, 3, kChannels},
                              .scales = scales,
                              .zero_points = std::vector<int64_t>(static_cast<size_t>(kChannels), 0),
                              .quantized_dimension = depthwise ? 3 : 0,
                              .data = weights});
  const int32_t bias_tensor =
      b.tensor({.name = "b", .type = tflite::TensorType_INT32, .shape = {kChannels}, .data = bytes_of(bias)});
  const int32_t y = b.activation("y", shape, kOutputScale, kOutputZeroPoint);
  if (depthwise) {
    b.op(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, {x, w, bias_tensor}, {y},
         tflite::BuiltinOptions_DepthwiseConv2DOptions,
         tflite::CreateDepthwiseConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1, 1).Union());
  } else {
    b.op(tflite::BuiltinOperator_CONV_2D, {x, w, bias_tensor}, {y}, tflite::BuiltinOptions_Conv2DOptions,
         tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1).Union());
  }
  Network network{b.finish({x}, {y}), {}, {}};
  for (int32_t row = 0; row < kSide; ++row) {
    for (int32_t column = 0; column < kSide; ++column) {
      for (int32_t c = 0; c < kChannels; ++c) {
        network.input.push_back(static_cast<uint8_t>(input_value(row, column, c)));
        int64_t sum = 0;
        for (int32_t i = std::max(row - 1, 0); i <= std::min(row + 1, kSide - 1); ++i) {
          for (int32_t j = std::max(column - 1, 0); j <= std::min(column + 1, kSide - 1); ++j) {
            for (int32_t k = depthwise ? c : 0; k < (depthwise ? c + 1 : kChannels); ++k) {
              sum += input_value(i, j, k) - kInputZeroPoint;
            }
          }
        }
        network.expected.push_back(static_cast<uint8_t>(expected_output(all[static_cast<size_t>(c)], sum)));
      }
    }
  }
  return network;
}

// Floats between quantise nodes, as PyTorch writes them, of two channels: a live one, and one with PyTorch's
// least weight scale, where a bias of 5 is 4.2e9 steps of the accumulator and int32 does not hold the sums.
// Its products are far below a step of the output.
Network float_network(const std::string& dead, const std::string& bias) {
  const std::string text =
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 1, 1, 8), int8]) {\n"
      "  %0 = qnn.dequantize(%x, 0.01f, -3);\n"
      "  %1 = qnn.dequantize(const(Tensor[(2, 1, 1, 1), int8], [3, " +
      dead +
      "]), const(Tensor[(2), float32], [0.25, 1.1920929e-07]), 0, axis=0);\n"
      "  %2 = nn.conv2d(%0, %1);\n"
      "  %3 = nn.bias_add(%2, const(Tensor[(2), float32], [0.31, " +
      bias +
      "]));\n"
      "  qnn.quantize(%3, 0.05f, -20, contract=\"f32e\", rule=\"mul_even\")\n}\n";
  Network network{{text.begin(), text.end()}, {}, {}};
  for (const int value : {-128, -127, -4, -3, 0, 1, 126, 127}) {
    network.input.push_back(static_cast<uint8_t>(value));
    const double real = 0.01 * (value + 3) * 3 * 0.25 + 0.31;
    network.expected.push_back(static_cast<uint8_t>(std::lrint(real / 0.05) - 20));
  }
  const long constant = std::clamp(std::lrint(std::stod(bias) / 0.05) - 20, -128L, 127L);
  network.expected.insert(network.expected.end(), network.input.size(), static_cast<uint8_t>(constant));
  return network;
}

std::vector<uint8_t> pack_bytes(const std::vector<uint8_t>& model, const char* target) {
  const qplan_pack_options options = pack_options(target);
  qplan_error error = empty_error();
  std::vector<uint8_t> plan;
  if (qplan_pack_bytes(model.data(), model.size(), "net", &options, append_bytes, &plan, &error) < 0)
    throw std::runtime_error(error.text);
  return plan;
}

class DeadChannels : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_ISA(GetParam()); }

  void expect_exact(const Network& network) {
    for (const char* target : {"cpu", "cpu,isa=avx2", "cpu,isa=reference", "cpu,arch=cortex-m"}) {
      ModelSession session(pack_bytes(network.model, target), GetParam(), 2);
      EXPECT_EQ(session.run({network.input}).at(0), network.expected) << target;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(All, DeadChannels, ::testing::ValuesIn(kIsas), isa_test_name);

TEST_P(DeadChannels, ConvolutionsWrapAsTheReferenceDoes) { expect_exact(conv_network(false)); }

TEST_P(DeadChannels, DepthwiseConvolutionsWrapAsTheReferenceDoes) { expect_exact(conv_network(true)); }

TEST_P(DeadChannels, BiasesOfFloatsThatInt32DoesNotHoldAreNotCutOff) {
  for (const char* weight : {"0", "127"}) {
    for (const char* bias : {"5", "-5", "2.5599", "1e6", "-1e6"}) expect_exact(float_network(weight, bias));
  }
}

}  // namespace
}  // namespace qplan::testing::dead_channels_test
