// lstm and float_lstm against the textbook's formulas in double, written out here; networks' exact bytes are
// in tests/models/.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/float/float.h"
#include "kernels/layout.h"
#include "kernels/numeric/fixed_point.h"
#include "kernels/recurrent/recurrent.h"
#include "src/runtime/bind/family.h"
#include "tests/support/random.h"
#include "tests/support/step_runner.h"

namespace qplan::lstm_test {
namespace {

using testing::Random;
using testing::TestStep;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// ---- functions on 16 bits ----

TEST(FixedPoint16, LogisticIsWithinSevenUnits) {
  for (int32_t v = -32768; v <= 32767; ++v) {
    ASSERT_NEAR(logistic_q15(v, 3), logistic(v / 4096.0) * 32768, 7) << v;
  }
}

TEST(FixedPoint16, TanhIsWithinTwentyUnitsForAllIntegerBits) {
  for (int32_t bits = 0; bits <= 6; ++bits) {
    for (int32_t v = -32768; v <= 32767; v += bits == 3 ? 1 : 7) {
      ASSERT_NEAR(tanh_q15(v, bits), std::tanh(v / std::ldexp(1.0, 15 - bits)) * 32768, 20)
          << v << ", " << bits;
    }
  }
}

// ---- layers ----

// A layer in reals. Weights [rows, k]; gates i, f, g, o, or f, g, o.
struct Layer {
  int64_t batch = 2, steps = 3, channels = 5, cells = 6;
  bool coupled = false, time_major = false;
  double clip = 0;
  std::vector<double> input, weights, recurrent, bias, output_state, cell_state;

  int64_t gates() const { return coupled ? 3 : 4; }
  int64_t rows() const { return gates() * cells; }

  // The sequence of outputs in the input's order; the states move on.
  std::vector<double> run() {
    std::vector<double> output(static_cast<size_t>(batch * steps * cells));
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t row = time_major ? t * batch + b : b * steps + t;
        std::vector<double> gate(static_cast<size_t>(rows()));
        for (int64_t r = 0; r < rows(); ++r) {
          double sum = bias[r];
          for (int64_t k = 0; k < channels; ++k) sum += weights[r * channels + k] * input[row * channels + k];
          for (int64_t k = 0; k < cells; ++k) sum += recurrent[r * cells + k] * output_state[b * cells + k];
          gate[r] = sum;
        }
        for (int64_t i = 0; i < cells; ++i) {
          const double* forget = gate.data() + (coupled ? 0 : cells);
          const double f = logistic(forget[i]);
          const double in = coupled ? 1 - f : logistic(gate[i]);
          double& c = cell_state[b * cells + i];
          c = f * c + in * std::tanh(forget[cells + i]);
          if (clip > 0) c = std::max(-clip, std::min(clip, c));
          output[row * cells + i] = output_state[b * cells + i] =
              logistic(forget[2 * cells + i]) * std::tanh(c);
        }
      }
    }
    return output;
  }
};

std::vector<double> random_reals(Random& random, int64_t count, double size) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = (random.unit() * 2 - 1) * size;
  return values;
}

// Each form of a layer, of random extents.
std::vector<Layer> layers() {
  std::vector<Layer> all;
  for (const bool coupled : {false, true}) {
    for (const bool time_major : {false, true}) {
      for (const double clip : {0.0, 0.3}) {
        Layer layer;
        layer.coupled = coupled, layer.time_major = time_major, layer.clip = clip;
        layer.cells = 3 + static_cast<int64_t>(all.size());
        all.push_back(layer);
      }
    }
  }
  return all;
}

// ---- float32 ----

std::vector<float> in_blocks(const std::vector<double>& weights, int64_t rows) {
  const auto num_k = static_cast<int64_t>(weights.size()) / rows;
  std::vector<float> blocks(static_cast<size_t>((rows + 15) / 16 * 16 * num_k));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < num_k; ++k)
      blocks[(r / kFloatBlock * num_k + k) * kFloatBlock + r % kFloatBlock] =
          static_cast<float>(weights[r * num_k + k]);
  }
  return blocks;
}

std::vector<float> rounded(const std::vector<double>& values) { return {values.begin(), values.end()}; }
void round(std::vector<double>& values) {
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
}

class FloatLstmVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // Weights of float32, or of int8 in the layout. AVX512-VNNI's product makes no sums.
  static bool takes_floats() { return !std::string_view(GetParam()->name).starts_with("hybrid"); }
  static bool takes_int8(uint16_t layout) {
    if (GetParam()->isa == QPLAN_ISA_REFERENCE) return true;
    return !takes_floats() && GetParam()->isa != QPLAN_ISA_AVX512VNNI && layout == kLayout_o16k4;
  }
};
INSTANTIATE_TEST_SUITE_P(All, FloatLstmVariant, ::testing::ValuesIn(testing::variants_of(kFloatLstmFamily)),
                         testing::variant_test_name);

// Fills the layer with numbers that float32 has.
void fill(Layer& layer, uint64_t seed) {
  Random random(seed);
  layer.input = random_reals(random, layer.batch * layer.steps * layer.channels, 1);
  layer.weights = random_reals(random, layer.rows() * layer.channels, 1);
  layer.recurrent = random_reals(random, layer.rows() * layer.cells, 0.5);
  layer.bias = random_reals(random, layer.rows(), 1);
  layer.output_state = random_reals(random, layer.batch * layer.cells, 0.9);
  layer.cell_state = random_reals(random, layer.batch * layer.cells, 0.9);
  for (auto* values : {&layer.input, &layer.weights, &layer.recurrent, &layer.bias, &layer.output_state,
                       &layer.cell_state}) {
    round(*values);
  }
  layer.clip = static_cast<double>(static_cast<float>(layer.clip));
}

void make_step(TestStep& step, const Layer& layer) {
  const std::vector<int64_t> state = {layer.batch, layer.cells};
  const int64_t first = layer.time_major ? layer.steps : layer.batch;
  const int64_t second = layer.time_major ? layer.batch : layer.steps;
  const int64_t padded = (layer.rows() + 15) / 16 * 16;
  step.input<float>({first, second, layer.channels}, rounded(layer.input));
  step.constant<float>({padded * layer.channels}, in_blocks(layer.weights, layer.rows()));
  step.constant<float>({padded * layer.cells}, in_blocks(layer.recurrent, layer.rows()));
  std::vector<float> bias = rounded(layer.bias);
  bias.resize(static_cast<size_t>(padded));
  step.constant<float>({padded}, bias);
  step.constant<float>({2 * layer.gates()}, std::vector<float>(static_cast<size_t>(2 * layer.gates()), 1.0f));
  step.input<float>(state, rounded(layer.output_state));
  step.input<float>(state, rounded(layer.cell_state));
  step.output<float>({first, second, layer.cells});
  step.output<float>(state);
  step.output<float>(state);
  step.finish(format::KernelParams_FloatLstmParams,
              format::CreateFloatLstmParams(step.builder(), layer.coupled, layer.time_major, false, true,
                                            static_cast<float>(layer.clip))
                  .Union());
}

TEST_P(FloatLstmVariant, IsNearTheTextbook) {
  uint64_t seed = 1;
  for (Layer layer : layers()) {
    fill(layer, seed++);
    TestStep step(kKernel_float_lstm);
    make_step(step, layer);
    ASSERT_EQ(testing::run_step(step, kFloatLstmFamily, *GetParam(), seed), takes_floats());
    if (!takes_floats()) return;
    const auto expect_near = [&](const std::vector<double>& expected, uint32_t output) {
      const std::vector<float> found = testing::output_values<float>(step, output);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(static_cast<double>(found[i]), expected[i], 2e-6)
            << "output " << output << ", seed " << seed;
    };
    expect_near(layer.run(), 0);
    expect_near(layer.output_state, 1);
    expect_near(layer.cell_state, 2);
  }
}

TEST_P(FloatLstmVariant, EqualsTheReferenceToTheBit) {
  if (!takes_floats()) return;
  const KernelVariant& reference = kFloatLstmFamily.variants[kFloatLstmFamily.num_variants - 1];
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::vector<Layer> forms = layers();
    Layer layer = forms[seed % forms.size()];
    layer.batch = 1 + static_cast<int64_t>(seed % 3);
    layer.channels = 1 + static_cast<int64_t>(seed * 5 % 19);
    layer.cells = 1 + static_cast<int64_t>(seed * 7 % 40);  // around the vectors, and rows in parts of blocks
    fill(layer, seed);
    std::vector<std::vector<float>> outputs;
    for (const KernelVariant* variant : {&reference, GetParam()}) {
      TestStep step(kKernel_float_lstm);
      make_step(step, layer);
      ASSERT_TRUE(testing::run_step(step, kFloatLstmFamily, *variant, seed));
      for (const uint32_t output : {0u, 1u, 2u})
        outputs.push_back(testing::output_values<float>(step, output));
    }
    for (size_t i = 0; i < 3; ++i)
      ASSERT_EQ(outputs[i], outputs[i + 3]) << "output " << i << ", seed " << seed;
  }
}

// ---- float32 with weights of int8 ----

std::vector<int8_t> packed(const std::vector<int8_t>& weights, int64_t rows, uint16_t layout) {
  const uint64_t num_o = static_cast<uint64_t>(rows), num_k = weights.size() / num_o;
  // Nothing reads what stands after a row.
  std::vector<int8_t> bytes(layout_bytes(layout, num_o, num_k), layout_needs_zeros(layout) ? 0 : 77);
  for (uint64_t o = 0; o < num_o; ++o) {
    for (uint64_t k = 0; k < num_k; ++k)
      bytes[layout_index(layout, o, k, num_o, num_k)] = weights[o * num_k + k];
  }
  return bytes;
}

// Rows whose elements are whole numbers up to 127 are their own quantised form, with a scale of 1 and of 1 /
// 127 for the state, so that the layer computes as if its weights were floats.
TEST_P(FloatLstmVariant, OfInt8WeightsQuantisesInputAndState) {
  Layer layer;
  layer.batch = 1, layer.steps = 1, layer.channels = 4, layer.cells = 2;
  layer.input = {127, -4, 50, 0};
  layer.output_state = {1, -64 / 127.0};
  layer.cell_state = {0.25, -0.5};
  Random random(7);
  std::vector<int8_t> weights(8 * 4), recurrent(8 * 2);
  for (int8_t& w : weights) w = static_cast<int8_t>(random.unit() * 200 - 100);
  for (int8_t& w : recurrent) w = static_cast<int8_t>(random.unit() * 200 - 100);
  const std::vector<float> scales = {0x1p-14f, 0x1p-13f, 0x1p-14f, 0x1p-15f,
                                     0x1p-6f,  0x1p-7f,  0x1p-6f,  0x1p-7f};
  for (size_t i = 0; i < weights.size(); ++i)
    layer.weights.push_back(weights[i] * static_cast<double>(scales[i / 8]));
  for (size_t i = 0; i < recurrent.size(); ++i)
    layer.recurrent.push_back(recurrent[i] * static_cast<double>(scales[4 + i / 4]));
  layer.bias = random_reals(random, 8, 0.5);
  round(layer.bias);
  std::vector<float> bias = rounded(layer.bias);
  bias.resize(16);
  for (const uint16_t layout : {kLayout_ohwi, kLayout_o16k4}) {
    TestStep step(kKernel_float_lstm);
    step.input<float>({1, 1, 4}, rounded(layer.input));
    for (const std::vector<int8_t>& bytes : {packed(weights, 8, layout), packed(recurrent, 8, layout)})
      step.constant<int8_t>({static_cast<int64_t>(bytes.size())}, bytes);
    step.constant<float>({16}, bias);
    step.constant<float>({8}, scales);
    step.input<float>({1, 2}, rounded(layer.output_state));
    step.input<float>({1, 2}, rounded(layer.cell_state));
    step.output<float>({1, 1, 2});
    step.output<float>({1, 2});
    step.output<float>({1, 2});
    step.finish(
        format::KernelParams_FloatLstmParams,
        format::CreateFloatLstmParams(step.builder(), false, false, true, true, 0.0f, layout).Union());
    ASSERT_EQ(testing::run_step(step, kFloatLstmFamily, *GetParam(), 7), takes_int8(layout));
    if (!takes_int8(layout)) continue;
    Layer textbook = layer;
    const std::vector<double> expected = textbook.run();
    const std::vector<float> found = testing::output_values<float>(step);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(static_cast<double>(found[i]), expected[i], 1e-5);
  }
}

struct HybridLayer {
  Layer real;
  bool symmetric = false;
  std::vector<int8_t> weights, recurrent;
  std::vector<float> scales;
};

void make_step(TestStep& step, const HybridLayer& layer, uint16_t layout) {
  const Layer& real = layer.real;
  const std::vector<int64_t> state = {real.batch, real.cells};
  const int64_t first = real.time_major ? real.steps : real.batch,
                second = real.time_major ? real.batch : real.steps;
  step.input<float>({first, second, real.channels}, rounded(real.input));
  for (const std::vector<int8_t>& bytes :
       {packed(layer.weights, real.rows(), layout), packed(layer.recurrent, real.rows(), layout)})
    step.constant<int8_t>({static_cast<int64_t>(bytes.size())}, bytes);
  std::vector<float> bias = rounded(real.bias);
  bias.resize(static_cast<size_t>((real.rows() + 15) / 16 * 16));
  step.constant<float>({static_cast<int64_t>(bias.size())}, bias);
  step.constant<float>({2 * real.gates()}, layer.scales);
  step.input<float>(state, rounded(real.output_state));
  step.input<float>(state, rounded(real.cell_state));
  step.output<float>({first, second, real.cells});
  step.output<float>(state);
  step.output<float>(state);
  step.finish(format::KernelParams_FloatLstmParams,
              format::CreateFloatLstmParams(step.builder(), real.coupled, real.time_major, true,
                                            layer.symmetric, static_cast<float>(real.clip), layout)
                  .Union());
}

TEST_P(FloatLstmVariant, OfInt8WeightsEqualsTheReferenceToTheBit) {
  if (!takes_int8(kLayout_o16k4)) return;
  const KernelVariant& reference = kFloatLstmFamily.variants[kFloatLstmFamily.num_variants - 1];
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const std::vector<Layer> forms = layers();
    HybridLayer layer;
    layer.real = forms[seed % forms.size()];
    layer.real.batch = 1 + static_cast<int64_t>(seed % 3);
    layer.real.channels = 1 + static_cast<int64_t>(seed * 5 % 67);
    layer.real.cells = 1 + static_cast<int64_t>(seed * 7 % 40);
    layer.symmetric = seed % 2 == 0;
    fill(layer.real, seed);
    if (seed % 5 == 0) std::fill_n(layer.real.input.begin(), layer.real.channels, 0.0);  // a row of zeros
    if (seed % 7 == 0) {
      for (double& x : layer.real.input) x = std::abs(x);
    }
    const auto bytes = [&](int64_t count) {
      std::vector<int8_t> values(static_cast<size_t>(count));
      for (int8_t& value : values) value = static_cast<int8_t>(random.unit() * 256 - 128);
      return values;
    };
    layer.weights = bytes(layer.real.rows() * layer.real.channels);
    layer.recurrent = bytes(layer.real.rows() * layer.real.cells);
    layer.scales = rounded(random_reals(random, 2 * layer.real.gates(), 0.01));
    for (float& scale : layer.scales) scale = std::abs(scale) + 0.001f;
    std::vector<std::vector<uint8_t>> expected;
    for (const uint16_t layout : {kLayout_ohwi, kLayout_o16k4}) {
      TestStep step(kKernel_float_lstm);
      make_step(step, layer, layout);
      const KernelVariant& variant = layout == kLayout_ohwi ? reference : *GetParam();
      ASSERT_TRUE(testing::run_step(step, kFloatLstmFamily, variant, seed));
      if (expected.empty()) expected = testing::output_bytes(step.view());
      ASSERT_EQ(testing::output_bytes(step.view()), expected) << "seed " << seed;
    }
  }
}

// ---- integers ----

class LstmVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }

  // AVX512-VNNI's product makes no sums.
  static bool must_take(uint16_t layout) {
    if (GetParam()->isa == QPLAN_ISA_REFERENCE) return true;
    return GetParam()->isa != QPLAN_ISA_AVX512VNNI && layout == kLayout_o16k4;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LstmVariant, ::testing::ValuesIn(testing::variants_of(kLstmFamily)),
                         testing::variant_test_name);

constexpr double kInputScale = 1 / 64.0, kWeightScale = 1 / 64.0, kOutputScale = 1 / 128.0;
constexpr int32_t kCellBits = 12;

struct IntegerLayer {
  Layer real;
  std::vector<int8_t> input, weights, recurrent, output_state;
  std::vector<int32_t> bias;
  std::vector<int16_t> cell_state;
  int32_t zero_point = 0;  // of the input and the output
};

template <typename T>
std::vector<T> random_integers(Random& random, int64_t count, int32_t most, double scale, int32_t zero_point,
                               std::vector<double>* reals) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>(random.unit() * (2 * most + 1) - most));
    reals->push_back((values.back() - zero_point) * scale);
  }
  return values;
}

IntegerLayer integer_layer(Layer real, uint64_t seed, int32_t zero_point) {
  Random random(seed);
  IntegerLayer layer;
  layer.zero_point = zero_point;
  layer.input = random_integers<int8_t>(random, real.batch * real.steps * real.channels, 100, kInputScale,
                                        zero_point, &real.input);
  layer.weights =
      random_integers<int8_t>(random, real.rows() * real.channels, 60, kWeightScale, 0, &real.weights);
  layer.recurrent =
      random_integers<int8_t>(random, real.rows() * real.cells, 60, kWeightScale, 0, &real.recurrent);
  layer.bias = random_integers<int32_t>(random, real.rows(), 4000, kInputScale * kWeightScale, 0, &real.bias);
  layer.output_state = random_integers<int8_t>(random, real.batch * real.cells, 100, kOutputScale, zero_point,
                                               &real.output_state);
  layer.cell_state = random_integers<int16_t>(random, real.batch * real.cells, 4000,
                                              std::ldexp(1.0, -kCellBits), 0, &real.cell_state);
  layer.real = std::move(real);
  return layer;
}

// What the kernel's formula expects: less (128 + zero_point) times the sum of the row's weights.
std::vector<int32_t> folded(std::vector<int32_t> bias, const std::vector<int8_t>& weights, int32_t zero_point,
                            uint16_t layout) {
  const size_t rows = bias.size(), num_k = weights.size() / rows;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < num_k; ++k) bias[r] -= (128 + zero_point) * weights[r * num_k + k];
  }
  bias.resize(layout_channels(layout, rows));
  return bias;
}

void make_step(TestStep& step, const IntegerLayer& layer, uint16_t layout) {
  const Layer& real = layer.real;
  const std::vector<int64_t> state = {real.batch, real.cells};
  const int64_t first = real.time_major ? real.steps : real.batch,
                second = real.time_major ? real.batch : real.steps;
  const auto constant = [&](const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    step.constant<T>({static_cast<int64_t>(values.size())}, values);
  };
  step.input<int8_t>({first, second, real.channels}, layer.input);
  constant(packed(layer.weights, real.rows(), layout));
  constant(packed(layer.recurrent, real.rows(), layout));
  constant(folded(layer.bias, layer.weights, layer.zero_point, layout));
  constant(folded(std::vector<int32_t>(layer.bias.size()), layer.recurrent, layer.zero_point, layout));
  step.input<int8_t>(state, layer.output_state);
  step.input<int16_t>(state, layer.cell_state);
  step.output<int8_t>({first, second, real.cells});
  step.output<int8_t>(state);
  step.output<int16_t>(state);
  // 2^-12 is the unit of gates, so that both factors are 1 and 1/2; 2^-30 / 2^-7 is 2^-23.
  const auto gates = static_cast<size_t>(real.gates());
  const std::vector<int32_t> multipliers(gates, 1 << 30), input_shifts(gates, 1), recurrent_shifts(gates, 0);
  step.finish(format::KernelParams_LstmParams,
              format::CreateLstmParamsDirect(step.builder(), real.coupled, real.time_major, layout,
                                             &multipliers, &input_shifts, &multipliers, &recurrent_shifts,
                                             1 << 30, -22, layer.zero_point, kCellBits,
                                             static_cast<int32_t>(real.clip * (1 << kCellBits)))
                  .Union());
}

TEST_P(LstmVariant, IsNearTheTextbookInEachLayout) {
  uint64_t seed = 1;
  for (const Layer& real : layers()) {
    ++seed;
    IntegerLayer layer = integer_layer(real, seed, static_cast<int32_t>(seed * 7 % 20) - 10);
    layer.real.clip = std::floor(real.clip * (1 << kCellBits)) / (1 << kCellBits);
    std::vector<std::vector<uint8_t>> first;
    for (const uint16_t layout : {kLayout_ohwi, kLayout_o16k4}) {
      TestStep step(kKernel_lstm);
      make_step(step, layer, layout);
      const bool ran = testing::run_step(step, kLstmFamily, *GetParam(), seed);
      ASSERT_EQ(ran, must_take(layout)) << "layout " << layout << ", seed " << seed;
      if (!ran) continue;
      if (first.empty()) first = testing::output_bytes(step.view());
      EXPECT_EQ(testing::output_bytes(step.view()), first) << "layout " << layout << ", seed " << seed;
      Layer textbook = layer.real;
      const std::vector<double> expected = textbook.run();
      const std::vector<int8_t> found = testing::output_values<int8_t>(step);
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR((found[i] - layer.zero_point) * kOutputScale, expected[i], 2.5 * kOutputScale)
            << "seed " << seed;
      }
      const std::vector<int16_t> cells = testing::output_values<int16_t>(step, 2);
      for (size_t i = 0; i < cells.size(); ++i)
        ASSERT_NEAR(cells[i] * std::ldexp(1.0, -kCellBits), textbook.cell_state[i], 0.03) << "seed " << seed;
    }
  }
}

// The state after a sequence's first half is all that its second half needs.
TEST_P(LstmVariant, ContinuesFromItsState) {
  Layer real;
  real.batch = 1, real.steps = 4;
  const IntegerLayer layer = integer_layer(real, 5, 3);
  TestStep whole(kKernel_lstm);
  make_step(whole, layer, kLayout_o16k4);
  ASSERT_EQ(testing::run_step(whole, kLstmFamily, *GetParam(), 5), must_take(kLayout_o16k4));
  if (!must_take(kLayout_o16k4)) return;
  std::vector<int8_t> outputs;
  IntegerLayer half = layer;
  half.real.steps = 2;
  for (int part = 0; part < 2; ++part) {
    const int64_t count = 2 * real.channels;
    half.input.assign(layer.input.begin() + part * count, layer.input.begin() + (part + 1) * count);
    TestStep step(kKernel_lstm);
    make_step(step, half, kLayout_o16k4);
    ASSERT_TRUE(testing::run_step(step, kLstmFamily, *GetParam(), 5));
    const std::vector<int8_t> found = testing::output_values<int8_t>(step);
    outputs.insert(outputs.end(), found.begin(), found.end());
    half.output_state = testing::output_values<int8_t>(step, 1);
    half.cell_state = testing::output_values<int16_t>(step, 2);
  }
  EXPECT_EQ(outputs, testing::output_values<int8_t>(whole));
}

}  // namespace
}  // namespace qplan::lstm_test
