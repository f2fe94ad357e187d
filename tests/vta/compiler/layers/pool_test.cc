// Pooling and mean on VTA's ALU, on the simulator, against the CPU's reference kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/reduction/reduction.h"
#include "kernels/spatial/spatial.h"
#include "src/packer/error.h"
#include "src/vta/compiler/layers/layers.h"
#include "tests/vta/compiler/unit_simulate.h"

namespace qplan::vta::compiler::pool_test {
using namespace target;  // NOLINT(google-build-using-namespace)

namespace {

// clamps: of the dtype.
Bytes8 reference(const Geometry& g, bool is_max, bool is_unsigned, int32_t clamp_min, int32_t clamp_max,
                 const Bytes8& input) {
  Bytes8 output(static_cast<size_t>(g.out_h * g.out_w * g.out_c));
  Pool2dArgs args;
  args.dtype = is_unsigned ? Dtype::kU8 : Dtype::kS8;
  args.input = input.data();
  args.output = output.data();
  const auto u32 = [](int64_t value) { return static_cast<uint32_t>(value); };
  args.input_h = u32(g.in_h), args.input_w = u32(g.in_w), args.channels = u32(g.in_c);
  args.output_h = u32(g.out_h), args.output_w = u32(g.out_w);
  args.pool_h = u32(g.window.kernel_h), args.pool_w = u32(g.window.kernel_w);
  args.stride_h = u32(g.window.stride_h), args.stride_w = u32(g.window.stride_w);
  args.pad_top = u32(g.window.pad_top), args.pad_left = u32(g.window.pad_left);
  args.clamp_min = clamp_min;
  args.clamp_max = clamp_max;
  if (is_max) {
    max_pool2d_ref::run(args, 0, max_pool2d_ref::work_items(args), nullptr);
  } else {
    avg_pool2d_ref::run(args, 0, avg_pool2d_ref::work_items(args), nullptr);
  }
  return output;
}

void check(const Config& config, const Pool& pool, bool is_unsigned, const Bytes8& input,
           const Bytes8& expected, Random& random) {
  const Geometry& g = pool.geometry;
  const ActivationLayout from = random_layout(random, g.in_h, g.in_w, g.in_c);
  const ActivationLayout to = random_layout(random, g.out_h, g.out_w, g.out_c);
  const CompiledUnit unit = compile_pool(config, pool, from, to);
  const auto planes =
      simulate_unit(config, unit, {{from, is_unsigned ? flipped(input) : input}}, to, 1, random(), 8);
  ASSERT_EQ(planes.size(), 1u);
  const Bytes8 output = is_unsigned ? flipped(planes[0]) : planes[0];
  ASSERT_EQ(output.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(int{output[i]}, int{expected[i]}) << "byte " << i;
}

Geometry random_geometry(Random& random, int64_t largest_window) {
  Geometry g;
  g.in_c = g.out_c = random_channels(random);
  op::Window2d& w = g.window;
  w.kernel_h = between(random, 1, random() % 4 == 0 ? largest_window : 3);
  w.kernel_w = between(random, 1, random() % 4 == 0 ? largest_window : 3);
  w.stride_h = between(random, 1, 3);
  w.stride_w = between(random, 1, 3);
  if (random() % 2 == 0) {
    w.pad_top = between(random, 0, w.kernel_h - 1), w.pad_left = between(random, 0, w.kernel_w - 1);
    w.pad_bottom = between(random, 0, w.kernel_h - 1), w.pad_right = between(random, 0, w.kernel_w - 1);
  }
  g.in_h = std::max(between(random, 1, 16), w.kernel_h);
  g.in_w = std::max(between(random, 1, random() % 12 == 0 ? 200 : 16), w.kernel_w);
  if (g.in_w > 16) g.in_h = w.kernel_h;
  g.out_h = w.out_h(g.in_h);
  g.out_w = w.out_w(g.in_w);
  return g;
}

struct Clamp {
  int32_t min, max;
};
Clamp random_clamp(Random& random, bool is_unsigned) {
  const int32_t first = is_unsigned ? 0 : -128;
  if (random() % 2 == 0) return {first, first + 255};
  return {first + static_cast<int32_t>(between(random, 0, 100)),
          first + static_cast<int32_t>(between(random, 150, 255))};
}

Bytes8 random_input(Random& random, const Geometry& g) {
  Bytes8 input = random_bytes(random, g.in_h * g.in_w * g.in_c);
  // The least values: the maximum of padding would be wrong, were it any other.
  if (random() % 4 == 0) {
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(0x80 + byte % 3);
  }
  return input;
}

TEST(VtaMaxPoolUnit, RandomLayersEqualTheReference) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Geometry g = random_geometry(random, 8);
    const bool is_unsigned = random() % 2 == 0;
    const Clamp clamp = random_clamp(random, is_unsigned);
    const Bytes8 input = random_input(random, g);
    const int32_t flip = is_unsigned ? 128 : 0;
    const Pool pool = make_max_pool("pool", g, clamp.min - flip, clamp.max - flip);
    const Bytes8 expected = reference(g, true, is_unsigned, clamp.min, clamp.max, input);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
      check(*config, pool, is_unsigned, input, expected, random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(VtaMaxPoolUnit, AWindowThatDoesNotFitIsRefusedWithTheNumbers) {
  Geometry g;
  g.in_h = g.in_w = g.window.kernel_h = g.window.kernel_w = 23;
  const Pool pool = make_max_pool("pool", g, -128, 127);
  try {
    (void)compile_pool(kQuarterConfig, pool, {23, 23, 1}, {1, 1, 1});
    FAIL() << "it was compiled";
  } catch (const PackError& error) {
    EXPECT_STREQ(
        error.what(),
        "vta: 'pool': a window of 23 x 23 needs 529 accumulators and 1 for the working set, limit 512");
  }
  EXPECT_NO_THROW((void)compile_pool(kDefaultConfig, pool, {23, 23, 1}, {1, 1, 1}));
}

TEST(VtaAveragePoolUnit, RandomLayersEqualTheReference) {
  int num_exact = 0;
  constexpr uint32_t kLayers = 80;
  for (uint32_t seed = 1; seed <= kLayers; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Geometry g = random_geometry(random, 7);
    const bool is_unsigned = random() % 2 == 0;
    const Clamp clamp = random_clamp(random, is_unsigned);
    const Bytes8 input = random_input(random, g);
    const int32_t flip = is_unsigned ? 128 : 0;
    const auto pool = make_average_pool("pool", g, is_unsigned, clamp.min - flip, clamp.max - flip);
    if (!pool) continue;
    ++num_exact;
    const Bytes8 expected = reference(g, false, is_unsigned, clamp.min, clamp.max, input);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
      check(*config, *pool, is_unsigned, input, expected, random);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(num_exact, kLayers);
}

// Every sum of a window of two and of four int8 values, ties on both sides of zero among them; 8 x 8 is the
// window of ResNet-8, 25 x 5 that of DS-CNN.
TEST(VtaAveragePoolUnit, EverySumIsDivided) {
  struct Window {
    int64_t h, w;
  };
  for (const Window& window : {Window{1, 2}, {2, 2}, {8, 8}, {25, 5}, {3, 3}, {7, 7}}) {
    for (const bool is_unsigned : {false, true}) {
      SCOPED_TRACE(std::to_string(window.h) + " x " + std::to_string(window.w));
      Random random(1);
      const int64_t cells = window.h * window.w;
      Geometry g;
      g.in_h = g.window.kernel_h = window.h;
      g.in_w = g.window.kernel_w = window.w;
      // Channel k has the sum k less 128 times the cells.
      g.in_c = g.out_c = 255 * cells + 1;
      Bytes8 input;
      for (int64_t cell = 0; cell < cells; ++cell) {
        for (int64_t k = 0; k < g.in_c; ++k) {
          const int64_t value = k / cells + (cell < k % cells ? 1 : 0) - (is_unsigned ? 0 : 128);
          input.push_back(static_cast<uint8_t>(value));
        }
      }
      const auto pool = make_average_pool("pool", g, is_unsigned, -128, 127);
      ASSERT_TRUE(pool.has_value());
      const Bytes8 expected =
          reference(g, false, is_unsigned, is_unsigned ? 0 : -128, is_unsigned ? 255 : 127, input);
      const ActivationLayout from = {g.in_h, g.in_w, g.in_c}, to = {1, 1, g.out_c};
      const CompiledUnit unit = compile_pool(kDefaultConfig, *pool, from, to);
      const auto planes =
          simulate_unit(kDefaultConfig, unit, {{from, is_unsigned ? flipped(input) : input}}, to, 1, 1, 1);
      ASSERT_EQ(planes.size(), 1u);
      EXPECT_EQ(is_unsigned ? flipped(planes[0]) : planes[0], expected);
    }
  }
}

Bytes8 mean_reference(const MeanOperator& mean, bool is_unsigned, const Bytes8& input) {
  Bytes8 output(static_cast<size_t>(mean.channels));
  const int32_t flip = is_unsigned ? 128 : 0;
  MeanArgs args;
  args.dtype = is_unsigned ? Dtype::kU8 : Dtype::kS8;
  args.input = input.data();
  args.output = output.data();
  args.num_outputs = static_cast<uint64_t>(mean.channels);
  args.num_reduced = static_cast<uint32_t>(mean.h * mean.w);
  args.kept_rank = args.reduced_rank = 1;
  args.kept_extents[0] = args.num_outputs;
  args.kept_strides[0] = 1;
  args.reduced_extents[0] = args.num_reduced;
  args.reduced_strides[0] = args.num_outputs;
  args.input_zero_point = mean.input_zero_point + flip;
  args.output_zero_point = mean.output_zero_point + flip;
  args.output_multiplier = mean.multiplier.multiplier;
  args.output_shift = mean.multiplier.shift;
  mean_ref::run(args, 0, mean_ref::work_items(args), nullptr);
  return output;
}

MeanOperator random_mean(Random& random) {
  MeanOperator mean;
  mean.name = "mean";
  mean.h = between(random, 1, 12), mean.w = between(random, 1, 12);
  mean.channels = random_channels(random);
  mean.input_zero_point = static_cast<int32_t>(between(random, -128, 127));
  mean.output_zero_point = static_cast<int32_t>(between(random, -128, 127));
  mean.multiplier.multiplier = static_cast<int32_t>(between(random, (1 << 29) + 1, INT32_MAX));
  mean.multiplier.shift = static_cast<int32_t>(between(random, -9, 1));
  return mean;
}

TEST(VtaMeanUnit, RandomLayersEqualTheReference) {
  for (uint32_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const MeanOperator mean = random_mean(random);
    const bool is_unsigned = random() % 2 == 0;
    const Bytes8 input = random_bytes(random, mean.h * mean.w * mean.channels);
    const Bytes8 expected = mean_reference(mean, is_unsigned, input);
    for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
      check(*config, make_mean(mean), is_unsigned, input, expected, random);
    if (testing::Test::HasFailure()) return;
  }
}

// Exact ties on many sums, which no affine form reaches: the sequence for TFL2.
TEST(VtaMeanUnit, TiesAreRoundedAsTheReferenceDoes) {
  MeanOperator mean;
  mean.name = "mean";
  mean.h = 16, mean.w = 20, mean.channels = 400;
  mean.multiplier = {1 << 30, -8};
  mean.output_zero_point = 5;
  Random random(4);
  const Bytes8 input = random_bytes(random, mean.h * mean.w * mean.channels);
  for (const Config* config : {&kDefaultConfig, &kQuarterConfig})
    check(*config, make_mean(mean), false, input, mean_reference(mean, false, input), random);
}

TEST(VtaMeanUnit, SumsBeyondTheBoundAreRefused) {
  MeanOperator mean;
  mean.name = "mean";
  mean.h = mean.w = 10;
  mean.multiplier = {1 << 30, 15};
  try {
    (void)make_mean(mean);
    FAIL() << "it was made";
  } catch (const PackError& error) {
    EXPECT_STREQ(error.what(),
                 "vta: 'mean': the sum of 100 cells may reach 25500, shifted left by 15; limit 536870912");
  }
}

}  // namespace
}  // namespace qplan::vta::compiler::pool_test
