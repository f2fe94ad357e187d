// Accumulators that are an output, too, so that their requantisation is a step of its own: with all inputs
// that a layer can have, it gives the bytes of the layer in one step, by every instruction set.
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/support/isas.h"
#include "tests/support/random.h"

namespace qplan::testing::requantize_forms_test {
namespace {

constexpr int kChannels = 39;

template <typename T>
std::string list(const std::vector<T>& values) {
  std::ostringstream out;
  out.precision(9);
  for (size_t i = 0; i < values.size(); ++i) out << (i == 0 ? "" : ", ") << +values[i];
  return "[" + out.str() + "]";
}

// y = dense(x) of two uint8 inputs, all pairs of them; requantised with a scale for each channel or one.
struct Layer {
  std::string body, requantize;

  explicit Layer(uint64_t seed, const std::string& contract) {
    Random random(seed);
    std::vector<float> scales;
    for (int o = 0; o < (seed % 2 == 0 ? 1 : kChannels); ++o) {
      scales.push_back(static_cast<float>(0.002 + random.unit() / 20));
    }
    const std::string count = std::to_string(kChannels);
    const std::string scale = scales.size() == 1
                                  ? list(scales).substr(1, list(scales).size() - 2) + "f"
                                  : "const(Tensor[(" + count + "), float32], " + list(scales) + ")";
    body = "  %0 = qnn.dense(%x, const(Tensor[(" + count + ", 2), int8], " +
           list(random.integers<int8_t>(2 * kChannels, -127, 127)) + "), " +
           std::to_string(random.integer(0, 255)) + ", 0, 1f, " + scale + ", units=" + count +
           ");\n  %1 = nn.bias_add(%0, const(Tensor[(" + count + "), int32], " +
           list(random.integers<int32_t>(kChannels, -3000, 3000)) + "), axis=1);\n";
    requantize = "qnn.requantize(%1, " + scale + ", 0, 2.5f, " + std::to_string(random.integer(-128, 60)) +
                 ", axis=1, contract=\"" + contract + "\")";
  }

  std::vector<uint8_t> plan(bool in_two_steps) const {
    const std::string text = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(65536, 2), uint8]) {\n" + body +
                             (in_two_steps ? "  %2 = " + requantize + ";\n  (%2, %1)" : "  " + requantize) +
                             "\n}\n";
    const qplan_pack_options options = pack_options("cpu");
    qplan_error error = empty_error();
    std::vector<uint8_t> bytes;
    if (qplan_pack_bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size(), "layer.relay", &options,
                         append_bytes, &bytes, &error) < 0) {
      throw std::runtime_error(error.text);
    }
    return bytes;
  }
};

class RequantizeForms : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_ISA(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, RequantizeForms, ::testing::ValuesIn(kIsas), isa_test_name);

TEST_P(RequantizeForms, GiveTheLayersBytesForEveryInput) {
  std::vector<uint8_t> pairs;
  for (int i = 0; i < 65536; ++i) {
    pairs.push_back(static_cast<uint8_t>(i));
    pairs.push_back(static_cast<uint8_t>(i / 256));
  }
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Layer layer(seed, seed < 3 ? "tfl2" : "tfl1");
    ModelSession fused(layer.plan(false), QPLAN_ISA_REFERENCE, 2), split(layer.plan(true), GetParam(), 2);
    EXPECT_TRUE(split.run({pairs}).at(0) == fused.run({pairs}).at(0)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace qplan::testing::requantize_forms_test
