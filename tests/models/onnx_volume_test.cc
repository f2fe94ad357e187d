// Convolutions and pools over depth, height and width through a plan, on float32 and on integers between
// QuantizeLinear and DequantizeLinear, against plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/onnx_builder.h"
#include "tests/support/random.h"

namespace qplan::testing::onnx_volume_test {
namespace {

using namespace onnx_test;  // NOLINT: the words of the builder

// Powers of two, so that sums are exact and rounding is that of one division.
constexpr float kDataScale = 0x1p-4f, kWeightScale = 0x1p-6f, kOutputScale = 0x1p-2f;
constexpr int8_t kZero = 5, kOutputZero = -3;

struct Layer {
  std::string op;  // Conv, MaxPool, AveragePool
  int64_t channels = 2, outputs = 4, groups = 1;
  std::vector<int64_t> extents = {5, 6, 7}, kernel = {3, 2, 3}, strides = {1, 1, 1}, dilations = {1, 1, 1},
                       pads = {0, 0, 0, 0, 0, 0};
  bool include_padding = false, ceil_mode = false;

  int64_t out(size_t i) const {
    const int64_t rest = extents[i] + pads[i] + pads[i + 3] - (kernel[i] - 1) * dilations[i] - 1;
    const int64_t floored = rest / strides[i] + 1;
    const bool has_more = ceil_mode && rest % strides[i] != 0 && floored * strides[i] < extents[i] + pads[i];
    return floored + (has_more ? 1 : 0);
  }
  int64_t result_channels() const { return op == "Conv" ? outputs : channels; }

  // x [channels, d, h, w], weights [outputs, channels / groups, kd, kh, kw].
  std::vector<double> run(const std::vector<double>& x, const std::vector<double>& weights) const {
    std::vector<double> y;
    const int64_t per_group = channels / groups;
    for (int64_t o = 0; o < result_channels(); ++o) {
      for (int64_t place = 0; place < out(0) * out(1) * out(2); ++place) {
        const int64_t at[3] = {place / (out(1) * out(2)), place / out(2) % out(1), place % out(2)};
        double sum = 0, most = -1e30;
        int64_t count = 0;
        for (int64_t tap = 0; tap < kernel[0] * kernel[1] * kernel[2]; ++tap) {
          const int64_t k[3] = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1], tap % kernel[2]};
          int64_t p[3];
          bool inside = true, is_named = true;  // in the data; in the data or the pads that the file names
          for (size_t i = 0; i < 3; ++i) {
            p[i] = at[i] * strides[i] + k[i] * dilations[i] - pads[i];
            inside = inside && p[i] >= 0 && p[i] < extents[i];
            is_named = is_named && p[i] < extents[i] + pads[i + 3];
          }
          count += inside || (include_padding && is_named) ? 1 : 0;
          if (!inside) continue;
          const int64_t first = op == "Conv" ? o / (outputs / groups) * per_group : o;
          for (int64_t c = 0; c < (op == "Conv" ? per_group : 1); ++c) {
            const double value = x[static_cast<size_t>(
                (((first + c) * extents[0] + p[0]) * extents[1] + p[1]) * extents[2] + p[2])];
            const double weight = op == "Conv"
                                      ? weights[static_cast<size_t>(
                                            (o * per_group + c) * kernel[0] * kernel[1] * kernel[2] + tap)]
                                      : 1;
            sum += value * weight;
            most = std::max(most, value);
          }
        }
        y.push_back(op == "MaxPool" ? most : op == "Conv" ? sum : sum / static_cast<double>(count));
      }
    }
    return y;
  }
};

struct Data {
  std::vector<int8_t> x, weights;
};

std::vector<double> reals(const std::vector<int8_t>& values, double scale, int zero) {
  std::vector<double> result;
  for (const int8_t value : values) result.push_back((value - zero) * scale);
  return result;
}

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> model_of(const Layer& layer, const Data& data, bool quantized) {
  OnnxBuilder b(layer.op == "AveragePool" ? 19 : 13);
  const std::vector<int64_t> shape = {1, layer.channels, layer.extents[0], layer.extents[1],
                                      layer.extents[2]};
  const std::vector<int64_t> kernel = {layer.outputs, layer.channels / layer.groups, layer.kernel[0],
                                       layer.kernel[1], layer.kernel[2]};
  b.scale("s", kDataScale).zero_point("z", kZero).scale("ws", kWeightScale).zero_point("wz", 0);
  b.scale("ys", kOutputScale).zero_point("yz", kOutputZero);
  Names inputs{quantized ? "d" : "x"};
  if (quantized) {
    b.input("x", kInt8, shape).node("DequantizeLinear", {"x", "s", "z"}, {"d"});
  } else {
    b.input("x", kFloat, shape);
  }
  if (layer.op == "Conv") {
    if (quantized) {
      b.constant<int8_t>("w8", kInt8, kernel, data.weights)
          .node("DequantizeLinear", {"w8", "ws", "wz"}, {"w"});
    } else {
      const std::vector<double> weights = reals(data.weights, kWeightScale, 0);
      b.constant<float>("w", kFloat, kernel, {weights.begin(), weights.end()});
    }
    inputs.push_back("w");
  }
  std::vector<Message> attributes = {attr_ints("kernel_shape", layer.kernel),
                                     attr_ints("strides", layer.strides), attr_ints("pads", layer.pads),
                                     attr_ints("dilations", layer.dilations)};
  if (layer.op == "Conv") attributes.push_back(attr_int("group", layer.groups));
  if (layer.include_padding) attributes.push_back(attr_int("count_include_pad", 1));
  if (layer.ceil_mode) attributes.push_back(attr_int("ceil_mode", 1));
  b.node(layer.op, inputs, {quantized ? "r" : "y"}, attributes);
  if (quantized) b.node("QuantizeLinear", {"r", "ys", "yz"}, {"y"});
  b.output("y", quantized ? kInt8 : kFloat,
           {1, layer.result_channels(), layer.out(0), layer.out(1), layer.out(2)});
  return b.finish();
}

std::vector<uint8_t> output_of(const std::vector<uint8_t>& model, const std::vector<uint8_t>& input) {
  ModelSession session(pack_bytes(model, "net.onnx"), QPLAN_ISA_AUTO, 1);
  return session.run({input}).at(0);
}

Data random_data(const Layer& layer, uint64_t seed) {
  Random random(seed);
  Data data;
  const auto fill = [&](std::vector<int8_t>& values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int8_t>(random.unit() * 255 - 127));
  };
  fill(data.x, layer.channels * layer.extents[0] * layer.extents[1] * layer.extents[2]);
  fill(data.weights,
       layer.outputs * layer.channels / layer.groups * layer.kernel[0] * layer.kernel[1] * layer.kernel[2]);
  return data;
}

void expect_layer(const Layer& layer, uint64_t seed, int largest_step) {
  const Data data = random_data(layer, seed);
  const std::vector<double> x = reals(data.x, kDataScale, kZero);
  const std::vector<double> expected = layer.run(x, reals(data.weights, kWeightScale, 0));
  const std::vector<uint8_t> quantized = output_of(model_of(layer, data, true), bytes_of(data.x));
  const std::vector<uint8_t> floats =
      output_of(model_of(layer, data, false), bytes_of(std::vector<float>(x.begin(), x.end())));
  ASSERT_EQ(quantized.size(), expected.size());
  ASSERT_EQ(floats.size(), expected.size() * sizeof(float));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double whole = std::nearbyint(expected[i] / kOutputScale) + kOutputZero;
    EXPECT_NEAR(static_cast<int8_t>(quantized[i]), std::clamp(whole, -128.0, 127.0), largest_step)
        << "element " << i;
    float found = 0;
    std::memcpy(&found, floats.data() + i * sizeof(float), sizeof(float));
    ASSERT_NEAR(found, expected[i], 1e-5 * std::max(1.0, std::fabs(expected[i]))) << "element " << i;
  }
}

TEST(OnnxVolume, ConvolutionsAreExactOnIntegers) {
  expect_layer({.op = "Conv"}, 1, 0);
  expect_layer({.op = "Conv", .pads = {1, 0, 2, 1, 1, 0}}, 2, 0);
  expect_layer({.op = "Conv", .strides = {2, 1, 2}, .dilations = {2, 1, 1}, .pads = {2, 1, 1, 0, 0, 1}}, 3,
               0);
  expect_layer({.op = "Conv", .channels = 4, .groups = 2, .kernel = {2, 3, 1}}, 4, 0);
  expect_layer({.op = "Conv", .channels = 4, .groups = 4, .kernel = {3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}}, 5,
               0);
  expect_layer({.op = "Conv", .kernel = {1, 1, 1}}, 6, 0);
}

TEST(OnnxVolume, PoolsAreThoseOfEachAxis) {
  expect_layer({.op = "MaxPool"}, 7, 0);
  expect_layer({.op = "MaxPool", .strides = {2, 2, 1}, .pads = {1, 1, 0, 1, 0, 1}}, 8, 0);
  expect_layer({.op = "MaxPool", .dilations = {2, 1, 3}, .pads = {1, 0, 2, 2, 1, 1}}, 9, 0);
  // The average over two axes and that over the third: two averages, each rounded.
  expect_layer({.op = "AveragePool", .kernel = {2, 2, 4}}, 10, 1);
  expect_layer({.op = "AveragePool", .strides = {2, 1, 1}, .pads = {1, 0, 1, 1, 1, 0}}, 11, 1);
  expect_layer({.op = "AveragePool", .pads = {1, 0, 1, 1, 1, 0}, .include_padding = true}, 12, 1);
}

TEST(OnnxVolume, PoolsThatRoundTheirOutputsUp) {
  const Layer most = {.op = "MaxPool",
                      .extents = {5, 6, 8},
                      .kernel = {2, 3, 3},
                      .strides = {2, 2, 2},
                      .pads = {0, 1, 1, 0, 0, 1},
                      .ceil_mode = true};
  expect_layer(most, 17, 0);
  Layer average = most;
  average.op = "AveragePool";
  expect_layer(average, 18, 1);
  average.include_padding = true;
  expect_layer(average, 19, 1);
  average.dilations = {1, 2, 1};
  expect_layer(average, 20, 1);
}

TEST(OnnxVolume, AveragesWithDilationsCountTheElementsOfTheirWindows) {
  expect_layer({.op = "AveragePool", .kernel = {2, 2, 2}, .dilations = {2, 3, 2}}, 13, 1);
  // Strides of 3, 2 and 4 with dilations of 2, 4 and 2: two phases, two, and one.
  const Layer padded = {.op = "AveragePool",
                        .extents = {7, 9, 8},
                        .kernel = {3, 2, 3},
                        .strides = {3, 2, 4},
                        .dilations = {2, 4, 2},
                        .pads = {3, 2, 1, 1, 3, 4}};
  expect_layer(padded, 14, 1);
  Layer counted = padded;
  counted.include_padding = true;
  expect_layer(counted, 15, 1);
  // More phases than outputs.
  expect_layer({.op = "AveragePool", .extents = {1, 8, 2}, .kernel = {1, 2, 1}, .dilations = {1, 7, 5}}, 16,
               0);
}

}  // namespace
}  // namespace qplan::testing::onnx_volume_test
