// Floats between DEQUANTIZE and QUANTIZE in TFLite models, for all 256 inputs. Where they only move, the
// bytes are those that TFLite computes in float32, although the plan computes with integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"
#include "tests/support/random.h"

namespace qplan::testing::tflite_float_island_test {
namespace {

using tflite_test::bytes_of;
using tflite_test::TfliteBuilder;

constexpr uint64_t kSeed = 11;
constexpr int kPairs = 24;  // of quantisations, for each island
constexpr size_t kExtent = 16;

struct Quantisation {
  bool is_signed;
  float scale;
  int32_t zero_point;

  int32_t least() const { return is_signed ? -128 : 0; }
  tflite::TensorType type() const { return is_signed ? tflite::TensorType_INT8 : tflite::TensorType_UINT8; }

  // TFLite's Dequantize and AffineQuantize.
  float real(uint8_t byte) const {
    const int32_t q = is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
    return static_cast<float>(q - zero_point) * scale;
  }
  uint8_t byte(float real) const {
    const float rounded = std::round(real / scale);
    const double q = std::clamp(static_cast<double>(rounded) + zero_point, double(least()), least() + 255.0);
    return static_cast<uint8_t>(static_cast<int32_t>(q));
  }
};

Quantisation any_quantisation(Random& random) {
  const bool is_signed = random.chance(0.5);
  const auto scale = static_cast<float>(0.05 * std::exp2(random.unit() * 4 - 2));
  return {is_signed, scale, static_cast<int32_t>(random.integer(0, 255)) - (is_signed ? 128 : 0)};
}

// Two inputs, 16 x 16, and the output of one island.
struct Case {
  std::array<Quantisation, 2> in;
  Quantisation out;
};

std::vector<Case> cases() {
  // Halves of both signs; and a scale that is no power of two.
  std::vector<Case> all = {{{{{true, 0.5f, 0}, {true, 0.5f, 0}}}, {true, 1.0f, 0}},
                           {{{{false, 0.5f, 128}, {true, 0.5f, 3}}}, {true, 1.0f, -5}},
                           {{{{false, 0.3f, 77}, {false, 0.1f, 0}}}, {false, 0.2f, 131}}};
  Random random(kSeed);
  for (int i = 0; i < kPairs; ++i)
    all.push_back({{any_quantisation(random), any_quantisation(random)}, any_quantisation(random)});
  return all;
}

int32_t real_tensor(TfliteBuilder& b, const std::string& name, std::vector<int32_t> shape) {
  return b.tensor({.name = name, .type = tflite::TensorType_FLOAT32, .shape = std::move(shape)});
}

using Reals = std::vector<float>;
// One float operator: appends it to the model, and what it computes.
struct Island {
  std::string name;
  std::vector<int32_t> shape;  // of the result
  std::function<void(TfliteBuilder& b, int32_t x, int32_t y, int32_t result)> append;
  std::function<Reals(const Reals& x, const Reals& y)> compute;
};

Reals mapped(const Reals& x, const std::function<float(float)>& function) {
  Reals result;
  for (const float value : x) result.push_back(function(value));
  return result;
}

std::vector<Island> moving_islands() {
  const std::vector<int32_t> image = {1, kExtent, kExtent, 1};
  std::vector<Island> all;
  all.push_back({"reshape",
                 {1, 256},
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   b.op(tflite::BuiltinOperator_RESHAPE, {x, b.ints("shape", {1, 256})}, {result});
                 },
                 [](const Reals& x, const Reals&) { return x; }});
  all.push_back({"transpose", image,
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   b.op(tflite::BuiltinOperator_TRANSPOSE, {x, b.ints("axes", {0, 2, 1, 3})}, {result});
                 },
                 [](const Reals& x, const Reals&) {
                   Reals result;
                   for (size_t i = 0; i < x.size(); ++i)
                     result.push_back(x[i % kExtent * kExtent + i / kExtent]);
                   return result;
                 }});
  all.push_back({"pad",
                 {1, kExtent + 1, kExtent, 1},
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   const int32_t widths = b.tensor({.name = "widths",
                                                    .type = tflite::TensorType_INT32,
                                                    .shape = {4, 2},
                                                    .data = bytes_of<int32_t>({0, 0, 1, 0, 0, 0, 0, 0})});
                   b.op(tflite::BuiltinOperator_PAD, {x, widths}, {result});
                 },
                 [](const Reals& x, const Reals&) {
                   Reals result(kExtent, 0.0f);
                   result.insert(result.end(), x.begin(), x.end());
                   return result;
                 }});
  all.push_back({"relu", image,
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   b.op(tflite::BuiltinOperator_RELU, {x}, {result});
                 },
                 [](const Reals& x, const Reals&) {
                   return mapped(x, [](float value) { return std::max(value, 0.0f); });
                 }});
  // 1 is no whole number of steps: the clamp stays one of quantised values.
  all.push_back({"relu_n1_to_1", image,
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   b.op(tflite::BuiltinOperator_RELU_N1_TO_1, {x}, {result});
                 },
                 [](const Reals& x, const Reals&) {
                   return mapped(x, [](float value) { return std::clamp(value, -1.0f, 1.0f); });
                 }});
  all.push_back({"max_pool",
                 {1, kExtent - 1, kExtent, 1},
                 [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
                   b.op(tflite::BuiltinOperator_MAX_POOL_2D, {x}, {result},
                        tflite::BuiltinOptions_Pool2DOptions,
                        tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 1, 2).Union());
                 },
                 [](const Reals& x, const Reals&) {
                   Reals result;
                   for (size_t i = kExtent; i < x.size(); ++i)
                     result.push_back(std::max(x[i - kExtent], x[i]));
                   return result;
                 }});
  all.push_back({"concatenation",
                 {1, 2 * kExtent, kExtent, 1},
                 [](TfliteBuilder& b, int32_t x, int32_t y, int32_t result) {
                   b.op(tflite::BuiltinOperator_CONCATENATION, {x, y}, {result},
                        tflite::BuiltinOptions_ConcatenationOptions,
                        tflite::CreateConcatenationOptions(b.fbb(), 1).Union());
                 },
                 [](const Reals& x, const Reals& y) {
                   Reals result = x;
                   result.insert(result.end(), y.begin(), y.end());
                   return result;
                 }});
  all.push_back({"maximum", image,
                 [](TfliteBuilder& b, int32_t x, int32_t y, int32_t result) {
                   b.op(tflite::BuiltinOperator_MAXIMUM, {x, y}, {result});
                 },
                 [](const Reals& x, const Reals& y) {
                   Reals result;
                   for (size_t i = 0; i < x.size(); ++i) result.push_back(std::max(x[i], y[i]));
                   return result;
                 }});
  return all;
}

Island binary_island(const std::string& name, tflite::BuiltinOperator op,
                     const std::function<float(float, float)>& function) {
  return {name,
          {1, kExtent, kExtent, 1},
          [op](TfliteBuilder& b, int32_t x, int32_t y, int32_t result) {
            b.op(op, {x, y}, {result});
          },
          [function](const Reals& x, const Reals& y) {
            Reals result;
            for (size_t i = 0; i < x.size(); ++i) result.push_back(function(x[i], y[i]));
            return result;
          }};
}

// Those whose operators TFLite has for integers, too, by another rule.
std::vector<Island> computing_islands() {
  return {binary_island("multiplication", tflite::BuiltinOperator_MUL, std::multiplies<>()),
          binary_island("addition", tflite::BuiltinOperator_ADD, std::plus<>()),
          binary_island("subtraction", tflite::BuiltinOperator_SUB, std::minus<>()),
          {"average_pool",
           {1, kExtent - 1, kExtent, 1},
           [](TfliteBuilder& b, int32_t x, int32_t, int32_t result) {
             b.op(tflite::BuiltinOperator_AVERAGE_POOL_2D, {x}, {result},
                  tflite::BuiltinOptions_Pool2DOptions,
                  tflite::CreatePool2DOptions(b.fbb(), tflite::Padding_VALID, 1, 1, 1, 2).Union());
           },
           [](const Reals& x, const Reals&) {
             Reals result;
             for (size_t i = kExtent; i < x.size(); ++i) result.push_back((x[i - kExtent] + x[i]) / 2.0f);
             return result;
           }}};
}

std::vector<uint8_t> model_of(const Case& c, const Island& island) {
  TfliteBuilder b;
  const std::vector<int32_t> image = {1, kExtent, kExtent, 1};
  std::vector<int32_t> inputs, reals;
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "x" : "y";
    inputs.push_back(b.activation(name, image, c.in[i].scale, c.in[i].zero_point, c.in[i].type()));
    reals.push_back(real_tensor(b, name + "_real", image));
    b.op(tflite::BuiltinOperator_DEQUANTIZE, {inputs[i]}, {reals[i]});
  }
  const int32_t result = real_tensor(b, "real", island.shape);
  island.append(b, reals[0], reals[1], result);
  const int32_t output = b.activation("out", island.shape, c.out.scale, c.out.zero_point, c.out.type());
  b.op(tflite::BuiltinOperator_QUANTIZE, {result}, {output});
  return b.finish(inputs, {output});
}

// All bytes, in two orders, in which odd and even ones are neighbours in rows and columns.
std::vector<std::vector<uint8_t>> all_bytes() {
  std::vector<std::vector<uint8_t>> inputs(2);
  Random random(kSeed);
  for (std::vector<uint8_t>& input : inputs) {
    for (int i = 0; i < 256; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(random.integer(0, i));
      input.insert(input.begin() + at, static_cast<uint8_t>(i));
    }
  }
  return inputs;
}

std::vector<uint8_t> expected_bytes(const Case& c, const Island& island,
                                    const std::vector<std::vector<uint8_t>>& inputs) {
  std::array<Reals, 2> reals;
  for (size_t i = 0; i < 2; ++i) {
    for (const uint8_t byte : inputs[i]) reals[i].push_back(c.in[i].real(byte));
  }
  std::vector<uint8_t> bytes;
  for (const float real : island.compute(reals[0], reals[1])) bytes.push_back(c.out.byte(real));
  return bytes;
}

// How far apart two outputs are at most; of different sizes: 256.
int largest_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b, bool is_signed) {
  if (a.size() != b.size()) return 256;
  const auto integer = [&](uint8_t byte) {
    return is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
  };
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(integer(a[i]) - integer(b[i])));
  return largest;
}

// Steps of the output.
using Tolerance = std::function<double(const Case& c, const Island& island)>;
double none(const Case&, const Island&) { return 0; }

void expect_tflites_bytes(const std::vector<Island>& islands, const qplan_pack_options& options,
                          const Tolerance& tolerance = none) {
  const std::vector<std::vector<uint8_t>> inputs = all_bytes();
  const std::vector<Case> quantisations = cases();
  for (const Island& island : islands) {
    for (size_t i = 0; i < quantisations.size(); ++i) {
      const Case& c = quantisations[i];
      ModelSession session(pack_bytes(model_of(c, island), "island.tflite", options), QPLAN_ISA_AUTO, 1);
      EXPECT_LE(
          largest_difference(session.run(inputs).at(0), expected_bytes(c, island, inputs), c.out.is_signed),
          tolerance(c, island))
          << island.name << ", case " << i << ", seed " << kSeed;
    }
  }
}

TEST(TfliteFloatIsland, MovedFloatsHaveTflitesBytes) {
  qplan_pack_options options = pack_options("cpu");
  expect_tflites_bytes(moving_islands(), options);
  options.contract = "tfl2";
  expect_tflites_bytes(moving_islands(), options);
}

// An average is rounded to a step of the input first.
TEST(TfliteFloatIsland, ComputedFloatsAreNearTflites) {
  expect_tflites_bytes(computing_islands(), pack_options("cpu"), [](const Case& c, const Island& island) {
    const double ratio = static_cast<double>(c.in[0].scale) / static_cast<double>(c.out.scale);
    return island.name == "average_pool" ? 1 + ratio / 2 : 1;
  });
}

TEST(TfliteFloatIsland, ComputedFloatsThatStayFloatsHaveTflitesBytes) {
  qplan_pack_options options = pack_options("cpu");
  options.keep_float = 1;
  expect_tflites_bytes(computing_islands(), options);
}

}  // namespace
}  // namespace qplan::testing::tflite_float_island_test
