// Layers of weights whose int32 accumulators leave the device as byte planes, on the simulator, against the
// definition modulo 2^32.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/vta/compiler/layers/layers.h"
#include "tests/vta/compiler/unit_simulate.h"

namespace qplan::vta::compiler::acc32_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// Outside the input is its zero point, which contributes nothing.
std::vector<int32_t> reference(const GemmLayer& layer, const Bytes8& input) {
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  std::vector<int32_t> output;
  for (int64_t y = 0; y < g.out_h; ++y) {
    for (int64_t x = 0; x < g.out_w; ++x) {
      for (int64_t o = 0; o < g.out_c; ++o) {
        auto sum = static_cast<uint32_t>(layer.bias[static_cast<size_t>(o)]);
        for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
            const int64_t in_y = y * w.stride_h - w.pad_top + ky, in_x = x * w.stride_w - w.pad_left + kx;
            if (in_y < 0 || in_y >= g.in_h || in_x < 0 || in_x >= g.in_w) continue;
            for (int64_t i = 0; i < g.in_c; ++i) {
              const auto value =
                  static_cast<int8_t>(input[static_cast<size_t>((in_y * g.in_w + in_x) * g.in_c + i)]);
              const int16_t weight =
                  layer.weights[static_cast<size_t>(((o * w.kernel_h + ky) * w.kernel_w + kx) * g.in_c + i)];
              sum += static_cast<uint32_t>((value - layer.input_zero_point) * weight);
            }
          }
        }
        output.push_back(static_cast<int32_t>(sum));
      }
    }
  }
  return output;
}

void check(const Config& config, const GemmLayer& layer, const Bytes8& input, Random& random) {
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  const ActivationLayout from = {g.in_h, g.in_w, g.in_c, w.pad_top, w.pad_left, w.pad_bottom, w.pad_right};
  const ActivationLayout to = random_layout(random, g.out_h, g.out_w, g.out_c);
  const CompiledUnit unit = compile_gemm(config, layer, from, to).unit;
  const auto planes = simulate_unit(
      config, unit, {{from, input, static_cast<int8_t>(layer.input_zero_point)}}, to, 4, random(), 8);
  ASSERT_EQ(planes.size(), 4u);
  const std::vector<int32_t> expected = reference(layer, input);
  ASSERT_EQ(planes[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    uint32_t value = 0;
    for (size_t p = 0; p < 4; ++p) value |= uint32_t{planes[p][i]} << (8 * p);
    ASSERT_EQ(static_cast<int32_t>(value), expected[i]) << "accumulator " << i;
  }
}

GemmLayer random_layer(Random& random, const Geometry& g) {
  GemmLayer layer;
  layer.name = "layer";
  layer.geometry = g;
  layer.leaves_int32 = true;
  layer.input_zero_point = static_cast<int32_t>(between(random, -128, 127));
  layer.weights.resize(static_cast<size_t>(g.out_c * g.taps() * g.in_c));
  for (int16_t& weight : layer.weights) weight = static_cast<int16_t>(between(random, -128, 127));
  for (int64_t o = 0; o < g.out_c; ++o) layer.bias.push_back(static_cast<int32_t>(random()));
  return layer;
}

TEST(VtaAcc32Unit, RandomConvolutionsGiveEveryBit) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Geometry g;
    g.in_c = between(random, 1, 40), g.out_c = random_channels(random) % 100 + 1;
    op::Window2d& w = g.window;
    w.kernel_h = between(random, 1, 3), w.kernel_w = between(random, 1, 3);
    w.stride_h = between(random, 1, 2), w.stride_w = between(random, 1, 2);
    w.pad_top = between(random, 0, w.kernel_h - 1), w.pad_right = between(random, 0, w.kernel_w - 1);
    g.in_h = between(random, 3, 14), g.in_w = between(random, 3, 14);
    g.out_h = w.out_h(g.in_h), g.out_w = w.out_w(g.in_w);
    const GemmLayer layer = random_layer(random, g);
    const Bytes8 input = random_bytes(random, g.in_h * g.in_w * g.in_c);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig}) check(*config, layer, input, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(VtaAcc32Unit, RandomFullyConnectedLayersGiveEveryBit) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Geometry g;
    g.in_c = between(random, 1, 700), g.out_c = between(random, 1, 200);
    g.in_w = g.out_w = between(random, 1, 30);
    const GemmLayer layer = random_layer(random, g);
    const Bytes8 input = random_bytes(random, g.in_w * g.in_c);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig}) check(*config, layer, input, random);
    if (testing::Test::HasFailure()) return;
  }
}

// Biases at both ends of int32, with sums that go beyond them: they wrap as the CPU's do.
TEST(VtaAcc32Unit, ExtremeAccumulatorsWrap) {
  Random random(1);
  Geometry g;
  g.in_c = 64, g.out_c = 20;
  g.in_h = g.out_h = 5, g.in_w = g.out_w = 7;
  GemmLayer layer = random_layer(random, g);
  layer.input_zero_point = -128;
  const int32_t biases[] = {INT32_MAX, INT32_MIN, INT32_MAX - 40000, INT32_MIN + 40000, 0, -1, 255, -256};
  for (size_t o = 0; o < layer.bias.size(); ++o) {
    layer.bias[o] = biases[o % std::size(biases)];
    for (size_t i = 0; i < 64; ++i) layer.weights[o * 64 + i] = o % 2 == 0 ? 127 : -128;
  }
  const Bytes8 input(static_cast<size_t>(g.in_h * g.in_w * g.in_c), 127);
  for (const Config* config : {&kDefaultConfig, &kQuarterConfig}) check(*config, layer, input, random);
}

// It needs no MUL.
TEST(VtaAcc32Unit, DesignsWithoutMultiplyTakeIt) {
  Config config = kDefaultConfig;
  config.has_multiply = false;
  Random random(1);
  Geometry g;
  g.in_c = 10, g.out_c = 20;
  g.in_h = g.out_h = 5, g.in_w = g.out_w = 7;
  check(config, random_layer(random, g), random_bytes(random, 5 * 7 * 10), random);
}

}  // namespace
}  // namespace qplan::vta::compiler::acc32_test
