// float_gru against the textbook's formulas in double, written out here, and its variants against the
// reference; what binding refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/float/float.h"
#include "kernels/recurrent/recurrent.h"
#include "src/runtime/bind/family.h"
#include "tests/support/random.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::gru_test {
namespace {

using testing::Random;
using testing::TestStep;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// A layer in reals that float32 has. Weights [rows, k]; gates z, r, n.
struct Layer {
  int64_t batch = 2, steps = 3, channels = 5, cells = 6;
  bool time_major = false, reset_after = false;
  std::vector<double> input, weights, recurrent, input_bias, recurrent_bias, state;

  int64_t rows() const { return 3 * cells; }
  int64_t row(int64_t sample, int64_t step) const {
    return time_major ? step * batch + sample : sample * steps + step;
  }
  double of_input(int64_t r, int64_t place) const {
    double sum = input_bias[r];
    for (int64_t k = 0; k < channels; ++k) sum += weights[r * channels + k] * input[place * channels + k];
    return sum;
  }
  double of_state(int64_t r, const std::vector<double>& h) const {
    double sum = recurrent_bias[r];
    for (int64_t k = 0; k < cells; ++k) sum += recurrent[r * cells + k] * h[k];
    return sum;
  }

  // The sequence of outputs in the input's order; the state moves on.
  std::vector<double> run() {
    std::vector<double> output(static_cast<size_t>(batch * steps * cells));
    for (int64_t b = 0; b < batch; ++b) {
      std::vector<double> h(state.begin() + b * cells, state.begin() + (b + 1) * cells);
      for (int64_t t = 0; t < steps; ++t) {
        std::vector<double> update, reset, scaled, next;
        for (int64_t i = 0; i < cells; ++i) {
          update.push_back(logistic(of_input(i, row(b, t)) + of_state(i, h)));
          reset.push_back(logistic(of_input(cells + i, row(b, t)) + of_state(cells + i, h)));
          scaled.push_back(reset.back() * h[i]);
        }
        for (int64_t i = 0; i < cells; ++i) {
          const int64_t r = 2 * cells + i;
          const double part = reset_after ? reset[i] * of_state(r, h) : of_state(r, scaled);
          const double candidate = std::tanh(of_input(r, row(b, t)) + part);
          next.push_back((1 - update[i]) * candidate + update[i] * h[i]);
        }
        h = next;
        for (int64_t i = 0; i < cells; ++i) output[row(b, t) * cells + i] = h[i];
      }
      for (int64_t i = 0; i < cells; ++i) state[b * cells + i] = h[i];
    }
    return output;
  }
};

std::vector<double> random_reals(Random& random, int64_t count, double size) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = static_cast<float>((random.unit() * 2 - 1) * size);
  return values;
}

Layer random_layer(uint64_t seed) {
  Random random(seed);
  Layer layer;
  layer.time_major = seed % 2 == 0;
  layer.reset_after = seed % 4 < 2;
  layer.batch = 1 + static_cast<int64_t>(seed % 3);
  layer.channels = 1 + static_cast<int64_t>(seed * 5 % 19);
  layer.cells = 1 + static_cast<int64_t>(seed * 7 % 40);  // around the vectors, and rows in parts of blocks
  layer.input = random_reals(random, layer.batch * layer.steps * layer.channels, 1);
  layer.weights = random_reals(random, layer.rows() * layer.channels, 1);
  layer.recurrent = random_reals(random, layer.rows() * layer.cells, 0.5);
  layer.input_bias = random_reals(random, layer.rows(), 1);
  layer.recurrent_bias = random_reals(random, layer.rows(), 1);
  layer.state = random_reals(random, layer.batch * layer.cells, 0.9);
  return layer;
}

std::vector<float> rounded(const std::vector<double>& values) { return {values.begin(), values.end()}; }
int64_t padded(int64_t rows) { return (rows + kFloatBlock - 1) / kFloatBlock * kFloatBlock; }

std::vector<float> in_blocks(const std::vector<double>& weights, int64_t rows) {
  const auto num_k = static_cast<int64_t>(weights.size()) / rows;
  std::vector<float> blocks(static_cast<size_t>(padded(rows) * num_k));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < num_k; ++k)
      blocks[(r / kFloatBlock * num_k + k) * kFloatBlock + r % kFloatBlock] =
          static_cast<float>(weights[r * num_k + k]);
  }
  return blocks;
}

void make_step(TestStep& step, const Layer& layer) {
  const auto bias = [&](const std::vector<double>& values) {
    std::vector<float> floats = rounded(values);
    floats.resize(static_cast<size_t>(padded(layer.rows())));
    step.constant<float>({padded(layer.rows())}, floats);
  };
  const std::vector<int64_t> state = {layer.batch, layer.cells};
  const int64_t first = layer.time_major ? layer.steps : layer.batch;
  const int64_t second = layer.time_major ? layer.batch : layer.steps;
  step.input<float>({first, second, layer.channels}, rounded(layer.input));
  step.constant<float>({padded(layer.rows()) * layer.channels}, in_blocks(layer.weights, layer.rows()));
  step.constant<float>({padded(layer.rows()) * layer.cells}, in_blocks(layer.recurrent, layer.rows()));
  bias(layer.input_bias);
  bias(layer.recurrent_bias);
  step.input<float>(state, rounded(layer.state));
  step.output<float>({first, second, layer.cells});
  step.output<float>(state);
  step.finish(format::KernelParams_FloatGruParams,
              format::CreateFloatGruParams(step.builder(), layer.time_major, layer.reset_after).Union());
}

class FloatGruVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(All, FloatGruVariant, ::testing::ValuesIn(testing::variants_of(kFloatGruFamily)),
                         testing::variant_test_name);

TEST_P(FloatGruVariant, IsNearTheTextbook) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Layer layer = random_layer(seed);
    TestStep step(kKernel_float_gru);
    make_step(step, layer);
    ASSERT_TRUE(testing::run_step(step, kFloatGruFamily, *GetParam(), seed));
    const auto expect_near = [&](const std::vector<double>& expected, uint32_t output) {
      const std::vector<float> found = testing::output_values<float>(step, output);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(static_cast<double>(found[i]), expected[i], 4e-6)
            << "output " << output << ", seed " << seed;
    };
    expect_near(layer.run(), 0);
    expect_near(layer.state, 1);
  }
}

TEST_P(FloatGruVariant, EqualsTheReferenceToTheBit) {
  const KernelVariant& reference = kFloatGruFamily.variants[kFloatGruFamily.num_variants - 1];
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<std::vector<float>> outputs;  // the sequence and the state, of the reference and the variant
    for (const KernelVariant* variant : {&reference, GetParam()}) {
      TestStep step(kKernel_float_gru);
      make_step(step, random_layer(seed));
      ASSERT_TRUE(testing::run_step(step, kFloatGruFamily, *variant, seed));
      for (const uint32_t output : {0u, 1u}) outputs.push_back(testing::output_values<float>(step, output));
    }
    ASSERT_EQ(outputs[0], outputs[2]) << "the sequence, seed " << seed;
    ASSERT_EQ(outputs[1], outputs[3]) << "the state, seed " << seed;
  }
}

// A sequence of two steps of three channels, four cells: twelve rows.
struct Step {
  std::vector<int64_t> input = {1, 2, 3}, output = {1, 2, 4}, first = {1, 4}, last = {1, 4};
  size_t weights = 16 * 3, recurrent = 16 * 4, bias = 16;
  bool time_major = false;

  void make(TestStep& step) const {
    const auto constant = [&](size_t count) {
      step.constant<float>({static_cast<int64_t>(count)}, std::vector<float>(count, 1.0f));
    };
    const auto elements = [](const std::vector<int64_t>& shape) {
      size_t count = 1;
      for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
      return count;
    };
    step.input<float>(input, std::vector<float>(elements(input), 1.0f));
    constant(weights);
    constant(recurrent);
    constant(bias);
    constant(bias);
    step.input<float>(first, std::vector<float>(elements(first), 1.0f));
    step.output<float>(output);
    step.output<float>(last);
    step.finish(format::KernelParams_FloatGruParams,
                format::CreateFloatGruParams(step.builder(), time_major, false).Union());
  }
};

TEST(FloatGruStep, RefusesWhatDoesNotFit) {
  const auto shape = [](std::vector<int64_t> Step::*member, std::vector<int64_t> value) {
    return [=](Step& s) { s.*member = value; };
  };
  testing::expect_refusals(
      kFloatGruFamily,
      std::vector<testing::Refusal<Step>>{{shape(&Step::output, {1, 2, 3}), "is not the input's sequence"},
                                          {shape(&Step::output, {1, 3, 4}), "is not the input's sequence"},
                                          {shape(&Step::input, {1, 6}), "rank"},
                                          {shape(&Step::first, {2, 4}), "is not of 1 samples"},
                                          {shape(&Step::last, {1, 5}), "is not of 1 samples and 4 cells"},
                                          {[](Step& s) { s.time_major = true; }, "is not of 2 samples"},
                                          {[](Step& s) { s.weights = 16 * 3 - 1; }, "input weights"},
                                          {[](Step& s) { s.recurrent = 12 * 4; }, "recurrent weights"},
                                          {[](Step& s) { s.bias = 12; }, "input bias"}});
}

}  // namespace
}  // namespace qplan::gru_test
