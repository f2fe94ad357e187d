// Layers compiled for VTA, run on the simulator in several interleavings, against a plain convolution.
// QPLAN_VTA_LAYERS=n in the environment runs n random layers for each configuration instead of the default.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/numeric/requantize.h"
#include "src/packer/error.h"
#include "src/vta/compiler/layers/layers.h"
#include "tests/vta/compiler/simulate.h"

namespace qplan::vta::compiler::gemm_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

using Random = std::mt19937;

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
}

struct Case {
  GemmLayer layer;
  std::vector<int8_t> input;  // [h][w][c]
};

// The definition, position by position; what pads is the zero point, and so contributes nothing.
std::vector<int8_t> reference(const Case& c) {
  const GemmLayer& layer = c.layer;
  const Geometry& g = layer.geometry;
  const op::Window2d& w = g.window;
  std::vector<int8_t> output;
  for (int64_t y = 0; y < g.out_h; ++y) {
    for (int64_t x = 0; x < g.out_w; ++x) {
      for (int64_t o = 0; o < g.out_c; ++o) {
        int32_t sum = layer.bias[static_cast<size_t>(o)];
        for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
          for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
            const int64_t in_y = y * w.stride_h - w.pad_top + ky * w.dilation_h;
            const int64_t in_x = x * w.stride_w - w.pad_left + kx * w.dilation_w;
            if (in_y < 0 || in_y >= g.in_h || in_x < 0 || in_x >= g.in_w) continue;
            // A depthwise layer's channel o reads channel o only.
            const int64_t num_i = g.is_depthwise() ? 1 : g.in_c;
            const int8_t* in = &c.input[static_cast<size_t>((in_y * g.in_w + in_x) * g.in_c)];
            if (g.is_depthwise()) in += o;
            const int16_t* weight =
                &layer.weights[static_cast<size_t>(((o * w.kernel_h + ky) * w.kernel_w + kx) * num_i)];
            for (int64_t i = 0; i < num_i; ++i) sum += (in[i] - layer.input_zero_point) * weight[i];
          }
        }
        const QuantizedMultiplier& m = layer.multipliers[static_cast<size_t>(o)];
        output.push_back(
            static_cast<int8_t>(add_clamp(requantize_tfl2(sum, m.multiplier, m.shift),
                                          layer.output_zero_point, layer.clamp_min, layer.clamp_max)));
      }
    }
  }
  return output;
}

void set_extents(Geometry* g) {
  g->out_h = g->window.out_h(g->in_h);
  g->out_w = g->window.out_w(g->in_w);
}

// Weights, bias and scales such that outputs spread over the whole range.
Case fill(Random& random, const Geometry& geometry, int64_t weight_limit, int32_t min_shift,
          int32_t max_shift) {
  Case c;
  GemmLayer& layer = c.layer;
  layer.name = "layer";
  layer.geometry = geometry;
  const auto num_o = static_cast<size_t>(geometry.out_c);
  layer.weights.resize(num_o *
                       static_cast<size_t>(geometry.taps() * (geometry.is_depthwise() ? 1 : geometry.in_c)));
  for (int16_t& weight : layer.weights) {
    weight = static_cast<int16_t>(
        std::clamp(between(random, -weight_limit - 1, weight_limit), kMinWeight, kMaxWeight));
  }
  for (size_t o = 0; o < num_o; ++o) {
    layer.bias.push_back(static_cast<int32_t>(between(random, -20000, 20000)));
    const auto multiplier = static_cast<int32_t>(between(random, int64_t{1} << 30, INT32_MAX));
    layer.multipliers.push_back(
        {random() % 50 == 0 ? 0 : multiplier, static_cast<int32_t>(between(random, min_shift, max_shift))});
  }
  layer.input_zero_point = static_cast<int32_t>(between(random, -128, 127));
  layer.output_zero_point = static_cast<int32_t>(between(random, -128, 127));
  if (random() % 2 == 0) {
    layer.clamp_min = static_cast<int32_t>(between(random, -128, 0));
    layer.clamp_max = static_cast<int32_t>(between(random, 1, 127));
  }
  c.input.resize(static_cast<size_t>(geometry.in_h * geometry.in_w * geometry.in_c));
  for (int8_t& value : c.input) value = static_cast<int8_t>(random());
  return c;
}

Geometry random_geometry(Random& random) {
  Geometry g;
  const auto channels = [&] { return random() % 8 == 0 ? between(random, 1, 200) : between(random, 1, 48); };
  g.in_c = channels();
  g.out_c = channels();
  op::Window2d& w = g.window;
  w.kernel_h = between(random, 1, random() % 4 == 0 ? 7 : 3);
  w.kernel_w = between(random, 1, random() % 4 == 0 ? 7 : 3);
  w.stride_h = between(random, 1, 3);
  w.stride_w = between(random, 1, 3);
  if (random() % 6 == 0) {
    w.dilation_h = between(random, 1, 3);
    w.dilation_w = between(random, 1, 3);
  }
  if (random() % 3 != 0) {
    w.pad_top = between(random, 0, w.kernel_h - 1);
    w.pad_left = between(random, 0, w.kernel_w - 1);
    w.pad_bottom = between(random, 0, w.kernel_h - 1);
    w.pad_right = between(random, 0, w.kernel_w - 1);
  }
  const int64_t extent = random() % 4 == 0 ? 18 : 9;
  g.in_h = between(random, 1, extent);
  g.in_w = between(random, 1, random() % 10 == 0 ? 300 : extent);
  if (g.in_w > 18) g.in_h = between(random, 1, 3);
  g.in_h = std::max(g.in_h, g.window_h());
  g.in_w = std::max(g.in_w, g.window_w());
  set_extents(&g);
  return g;
}

Case random_case(Random& random) {
  Geometry g = random_geometry(random);
  if (random() % 4 == 0) {
    g.in_c = g.out_c = std::max<int64_t>(g.in_c, 2);
    g.groups = g.in_c;
  }
  const int64_t weight_limit = random() % 5 == 0 ? 255 : between(random, 1, 127);
  switch (random() % 6) {
    case 0:  // small weights, multipliers above 1
      return fill(random, g, 2, -4, 4);
    case 1:
      return fill(random, g, weight_limit, -31, -1);
    case 2:
      return fill(random, g, weight_limit, 0, 0);
    default:
      return fill(random, g, weight_limit, -14, -6);
  }
}

void check(const Config& config, const Case& c, uint64_t seed, uint32_t interleavings) {
  const CompiledLayer compiled = compile_layer(config, c.layer);
  const SimResult result = simulate(config, compiled, c.input, seed, interleavings);
  const std::vector<int8_t> expected = reference(c);
  ASSERT_EQ(result.output.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n)
    ASSERT_EQ(int{result.output[n]}, int{expected[n]}) << "byte " << n;
  const auto estimated = static_cast<double>(compiled.estimate.total_cycles);
  const auto counted = static_cast<double>(result.cycles);
  EXPECT_LE(std::abs(estimated - counted), 0.1 * counted);
}

uint32_t num_layers(uint32_t otherwise) {
  const char* text = std::getenv("QPLAN_VTA_LAYERS");
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

void check_random_layers(const Config& config) {
  const uint32_t layers = num_layers(1000);
  for (uint32_t seed = 1; seed <= layers; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Case c = random_case(random);
    check(config, c, seed, 8);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(VtaCompile, RandomLayersOnTheDefaultMemories) { check_random_layers(kDefaultConfig); }

TEST(VtaCompile, RandomLayersOnAQuarterOfTheMemories) { check_random_layers(kQuarterConfig); }

// qnn.dense: positions are rows.
TEST(VtaCompile, FullyConnectedLayers) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Geometry g;
    g.in_c = between(random, 1, 1300);
    g.out_c = between(random, 1, 300);
    g.in_w = random() % 2 == 0 ? 1 : between(random, 1, 40);
    set_extents(&g);
    const Case c = fill(random, g, 127, -14, -8);
    check(kDefaultConfig, c, seed, 8);
    check(kQuarterConfig, c, seed, 8);
  }
}

// Accumulators up to the bound on both sides, so large that one more bit would leave the proof.
TEST(VtaCompile, AccumulatorsUpToTheBound) {
  const int32_t multipliers[] = {1 << 30,    (1 << 30) + 1, 0x40007fff, 0x40008000,
                                 0x5a827999, 0x7fff8000,    0x7fffffff};
  for (int32_t shift = -31; shift <= 13; ++shift) {
    SCOPED_TRACE("shift " + std::to_string(shift));
    Random random(static_cast<uint32_t>(shift + 100));
    Geometry g;
    g.in_c = 16;
    g.out_c = 64;
    g.in_w = 40;
    set_extents(&g);
    Case c = fill(random, g, 127, shift, shift);
    GemmLayer& layer = c.layer;
    layer.clamp_min = -128;
    layer.clamp_max = 127;
    const int64_t bound = kTfl2Bound >> std::max(shift, 0);
    for (size_t o = 0; o < 64; ++o) {
      layer.multipliers[o].multiplier = multipliers[o % std::size(multipliers)];
      int64_t positive = 0, negative = 0;
      for (size_t i = 0; i < 16; ++i) {
        int16_t& weight = layer.weights[o * 16 + i];
        if (shift > 6) weight = static_cast<int16_t>(weight % 3);
        (weight > 0 ? positive : negative) += weight;
      }
      const int64_t x_min = -128 - layer.input_zero_point, x_max = 127 - layer.input_zero_point;
      const int64_t least = positive * x_min + negative * x_max, most = positive * x_max + negative * x_min;
      // The largest and the smallest bias that the proof allows, small ones, and what makes ties.
      const int64_t allowed[] = {bound - most, -bound - least, 0,
                                 shift < 0 && shift > -16 ? int64_t{1} << (-shift + 1) : 5};
      layer.bias[o] = static_cast<int32_t>(allowed[o / 16]);
    }
    check(kDefaultConfig, c, 1, 1);
  }
}

TEST(VtaCompile, BordersOfOtherReadersStayUntouched) {
  Random random(7);
  Geometry g;
  g.in_h = 9, g.in_w = 11, g.in_c = 40, g.out_c = 72;
  g.window.kernel_h = g.window.kernel_w = 3;
  g.window.pad_top = g.window.pad_left = 1;
  set_extents(&g);
  const Case c = fill(random, g, 127, -14, -8);
  for (const Config* config : {&kDefaultConfig, &kQuarterConfig}) {
    const CompiledLayer compiled = compile_layer(*config, c.layer, {2, 3, 1, 4}, {1, 2, 3, 4});
    EXPECT_EQ(compiled.input.row_elements(), (3 + 11 + 4) * 3);
    EXPECT_EQ(compiled.output.elements(), (1 + g.out_h + 3) * (2 + g.out_w + 4) * 5);
    EXPECT_EQ(simulate(*config, compiled, c.input, 1, 8).output, reference(c));
  }
}

TEST(VtaCompile, WeightsBeyondInt8AreSumsOfTwo) {
  Random random(3);
  Geometry g;
  g.in_h = g.in_w = 6, g.in_c = 24, g.out_c = 40;
  g.window.kernel_h = g.window.kernel_w = 3;
  set_extents(&g);
  Case c = fill(random, g, 255, -14, -8);
  c.layer.weights.front() = kMinWeight;
  c.layer.weights.back() = kMaxWeight;
  check(kDefaultConfig, c, 3, 8);
  check(kQuarterConfig, c, 3, 8);
}

void expect_overlap(const Geometry& g) {
  Random random(1);
  const CompiledLayer compiled = compile_layer(kDefaultConfig, fill(random, g, 127, -14, -8).layer);
  const uint64_t busy = *std::ranges::max_element(compiled.estimate.busy_cycles);
  EXPECT_LE(compiled.estimate.total_cycles * 100, busy * 115)
      << g.in_h << " x " << g.in_w << ", " << g.in_c << " to " << g.out_c << " channels in " << g.groups
      << " groups";
  std::printf(
      "%3lld x %3lld, %4lld to %4lld channels: %8llu cycles, %.3f of the busiest module's; %lld ALU "
      "instructions per requantised tile\n",
      static_cast<long long>(g.in_h), static_cast<long long>(g.in_w), static_cast<long long>(g.in_c),
      static_cast<long long>(g.out_c), static_cast<unsigned long long>(compiled.estimate.total_cycles),
      static_cast<double>(compiled.estimate.total_cycles) / static_cast<double>(busy),
      static_cast<long long>(compiled.alu_instructions_per_tile));
  EXPECT_EQ(compiled.alu_instructions_per_tile, 26);
}

// Layers of MobileNet V2 at 224 x 224: the busiest module has little to wait for.
TEST(VtaCompile, ModulesOverlap) {
  struct Layer {
    int64_t extent, in_c, out_c;
  };
  const Layer one_by_one[] = {{112, 32, 16}, {112, 16, 96}, {56, 96, 24},  {56, 24, 144}, {28, 144, 32},
                              {28, 32, 192}, {14, 192, 64}, {14, 64, 384}, {14, 384, 96}, {14, 96, 576},
                              {7, 576, 160}, {7, 160, 960}, {7, 960, 320}, {7, 320, 1280}};
  for (const Layer& layer : one_by_one) {
    Geometry g;
    g.in_h = g.in_w = layer.extent, g.in_c = layer.in_c, g.out_c = layer.out_c;
    set_extents(&g);
    expect_overlap(g);
  }
  for (const Layer& layer :
       {Layer{112, 32, 32}, Layer{56, 144, 144}, Layer{14, 576, 576}, Layer{7, 960, 960}}) {
    Geometry g;
    g.in_h = g.in_w = layer.extent, g.in_c = g.out_c = g.groups = layer.in_c;
    g.window.kernel_h = g.window.kernel_w = 3;
    g.window.pad_top = g.window.pad_left = g.window.pad_bottom = g.window.pad_right = 1;
    set_extents(&g);
    expect_overlap(g);
  }
}

std::string refusal(const Config& config, const GemmLayer& layer) {
  try {
    compile_layer(config, layer);
  } catch (const PackError& error) {
    EXPECT_EQ(error.status(), QPLAN_MODEL_UNSUPPORTED);
    return error.what();
  }
  return "";
}

TEST(VtaCompile, RefusesWithNumbers) {
  Random random(1);
  Geometry g;
  g.in_h = g.in_w = 40, g.in_c = g.out_c = 16;
  g.window.kernel_h = g.window.kernel_w = 17;
  set_extents(&g);
  EXPECT_EQ(refusal(kDefaultConfig, fill(random, g, 1, -9, -9).layer), "");
  EXPECT_EQ(
      refusal(kQuarterConfig, fill(random, g, 1, -9, -9).layer),
      "vta: layer 'layer': the smallest tile needs 289 of 512 input elements, 289 of 256 weight elements "
      "and 2048 micro-ops, 9 of 512 accumulators (17 x 17 window, 1 planes of weights); use a "
      "configuration with larger memories");
  g = Geometry();
  g.in_c = g.out_c = 16;
  set_extents(&g);
  GemmLayer layer = fill(random, g, 100, -9, -9).layer;
  layer.bias[3] = INT32_MAX - 1000;
  layer.multipliers[3] = {1 << 30, -9};
  EXPECT_NE(refusal(kDefaultConfig, layer).find("the accumulator of channel 3 may reach 2147"),
            std::string::npos);
  layer = fill(random, g, 100, -9, -9).layer;
  layer.weights[5] = 300;
  EXPECT_NE(refusal(kDefaultConfig, layer).find("reach from"), std::string::npos);
  layer = fill(random, g, 100, -9, -9).layer;
  layer.geometry.groups = 2;
  EXPECT_NE(refusal(kDefaultConfig, layer).find("2 groups of 16 to 16 channels"), std::string::npos);
  Config without = kDefaultConfig;
  without.has_multiply = false;
  EXPECT_NE(refusal(without, fill(random, g, 100, -9, -9).layer).find("lacks"), std::string::npos);
}

}  // namespace
}  // namespace qplan::vta::compiler::gemm_test
