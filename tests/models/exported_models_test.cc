// Programs that torch.export wrote, through plans: a network that PT2E quantised against its integers
// computed by their definition, and archives that PyTorch wrote against what PyTorch computes of them
// (tests/data/exported/networks.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/models/near.h"
#include "tests/packer/import/exported_builder.h"
#include "tests/support/exact_f32e.h"
#include "tests/support/random.h"

namespace qplan::testing::exported_models_test {
namespace {

using pytorch_test::QuantisedNetwork;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kExtent = 4, kChannels = 3;

// The network's integers by docs/numerics, in doubles that are rounded to float32 where an operation is one.
struct Oracle {
  QuantisedNetwork network;

  int64_t quantised(float x, float scale, int32_t zero_point) const {
    const double reciprocal = f32(1.0 / static_cast<double>(scale));
    return exact_quantize_f32e(f32(static_cast<double>(x) * reciprocal), zero_point, -128, 127);
  }

  std::vector<int8_t> run(const std::vector<float>& x) const {
    std::vector<int64_t> q;
    for (const float value : x) q.push_back(quantised(value, network.input_scale, network.input_zero_point));
    std::vector<int8_t> outputs;
    for (int64_t o = 0; o < kChannels; ++o) {
      const auto channel = static_cast<size_t>(o);
      const double in = static_cast<double>(network.input_scale),
                   w = static_cast<double>(network.weight_scales[channel]);
      const double scale = f32(f32(in * w) / static_cast<double>(network.conv_scale));
      const int64_t bias =
          exact_quantize_f32e(static_cast<double>(network.bias[channel]) / (in * w), 0, INT32_MIN, INT32_MAX);
      // Padding of 1 on each side makes 5 positions of 4.
      for (int64_t row = 0; row <= kExtent; ++row) {
        for (int64_t column = 0; column <= kExtent; ++column) {
          int64_t sum = bias;
          for (int64_t i = 0; i < 2; ++i) {
            for (int64_t ky = 0; ky < 2; ++ky) {
              for (int64_t kx = 0; kx < 2; ++kx) {
                const int64_t y = row + ky - 1, c = column + kx - 1;
                if (y < 0 || y >= kExtent || c < 0 || c >= kExtent) continue;
                sum += (q[static_cast<size_t>((i * kExtent + y) * kExtent + c)] - network.input_zero_point) *
                       network.weights[static_cast<size_t>(((o * 2 + i) * 2 + ky) * 2 + kx)];
              }
            }
          }
          const int64_t conv = exact_f32e(sum, static_cast<float>(scale), network.conv_zero_point,
                                          network.conv_zero_point, 127);
          outputs.push_back(static_cast<int8_t>(twice(conv)));
        }
      }
    }
    return outputs;
  }

  int64_t twice(int64_t value) const {
    const double part =
        f32(static_cast<double>(value - network.conv_zero_point) * static_cast<double>(network.conv_scale));
    return exact_quantize_f32e(f32(f32(part + part) / static_cast<double>(network.sum_scale)),
                               network.sum_zero_point, -128, 127);
  }
};

TEST(ExportedModels, QuantisedNetworkGivesTheIntegersOfItsDefinition) {
  const Oracle oracle;
  const Bytes plan = pack_bytes(oracle.network.builder().build(), "net.pt2");
  for (const uint32_t isa : {QPLAN_ISA_AUTO, QPLAN_ISA_REFERENCE}) {
    ModelSession session(plan, isa, 1);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      Random random(seed);
      std::vector<float> x;
      for (int64_t i = 0; i < 2 * kExtent * kExtent; ++i)
        x.push_back(static_cast<float>(12 * random.unit() - 6));
      Bytes input(x.size() * sizeof(float));
      std::memcpy(input.data(), x.data(), input.size());
      const Bytes found = session.run({input}).at(0);
      const std::vector<int8_t> expected = oracle.run(x);
      EXPECT_EQ(std::vector<int8_t>(found.begin(), found.end()), expected);
    }
  }
}

// -- archives of PyTorch 2.6

std::filesystem::path data_path(const std::string& name) {
  return std::filesystem::path("tests/data/exported") / name;
}

Bytes read_file(const std::string& name) {
  std::ifstream file(data_path(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The file has the input and then the output, float32.
constexpr size_t kInputs = 3 * 16 * 16, kOutputs = 5;
struct Case {
  Bytes input, output;
};
Case read_case(const std::string& name) {
  const Bytes bytes = read_file(name);
  EXPECT_EQ(bytes.size(), (kInputs + kOutputs) * sizeof(float));
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(kInputs * sizeof(float));
  return {{bytes.begin(), middle}, {middle, bytes.end()}};
}

TEST(ExportedModels, FloatNetworkOfPytorch) {
  const Case c = read_case("small_float.bin");
  ModelSession session(pack_bytes(read_file("small_float.pt2"), "small_float.pt2"), QPLAN_ISA_AUTO, 1);
  EXPECT_EQ(far_element(session.run({c.input}).at(0), c.output), "");
}

// Quantised with one scale per channel, exported with an open batch. PyTorch computes it in float32
// (docs/numerics.md, "Quantised programs of PyTorch"): a result may be one step away.
TEST(ExportedModels, QuantisedNetworkOfPytorch) {
  constexpr float kStep = 0.0020916808862239122f;
  const Case c = read_case("small_int8_batch.bin");
  ModelSession session(pack_bytes(read_file("small_int8_batch.pt2"), "small_int8_batch.pt2"), QPLAN_ISA_AUTO,
                       1);
  const std::vector<float> found = floats_of(session.run({c.input}).at(0)), expected = floats_of(c.output);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(std::fabs(found[i] - expected[i]), 1.01f * kStep) << i;
}

}  // namespace
}  // namespace qplan::testing::exported_models_test
