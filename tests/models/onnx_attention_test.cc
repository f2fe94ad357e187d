// Attention and embeddings as ONNX Runtime's optimiser fuses them, each as a model of its own, through a
// plan, against the formula written out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/models/onnx_numbers.h"
#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_attention_test {
namespace {

using namespace onnx_run;      // NOLINT: the words of these models
using namespace onnx_numbers;  // NOLINT

// [rows, depth] times [depth, columns], with a bias.
Reals product(const Reals& a, const Reals& b, size_t depth, const Reals& bias) {
  const size_t columns = b.size() / depth, rows = a.size() / depth;
  Reals sums(rows * columns);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = bias[i % columns];
    for (size_t k = 0; k < depth; ++k) sums[i] += a[i / columns * depth + k] * b[k * columns + i % columns];
  }
  return sums;
}

// Queries [batch, queries, features], keys and values [batch, keys, features].
struct Attended {
  size_t batch, queries, keys, features, heads;
  Reals q, k, v;
  double scale = 0;
  // What is added to the product of query i with key j in a batch.
  std::function<double(size_t batch, size_t i, size_t j)> addend = [](size_t, size_t, size_t) { return 0; };
};
Reals attended(const Attended& a) {
  const size_t of_head = a.features / a.heads;
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(of_head));
  Reals outputs(a.batch * a.queries * a.features);
  for (size_t n = 0; n < a.batch; ++n) {
    for (size_t h = 0; h < a.heads; ++h) {
      for (size_t i = 0; i < a.queries; ++i) {
        Reals weights;
        double total = 0;
        for (size_t j = 0; j < a.keys; ++j) {
          double dot = 0;
          for (size_t d = h * of_head; d < (h + 1) * of_head; ++d)
            dot += a.q[(n * a.queries + i) * a.features + d] * a.k[(n * a.keys + j) * a.features + d];
          weights.push_back(std::exp(dot * scale + a.addend(n, i, j)));
          total += weights.back();
        }
        for (size_t d = h * of_head; d < (h + 1) * of_head; ++d) {
          for (size_t j = 0; j < a.keys; ++j)
            outputs[(n * a.queries + i) * a.features + d] +=
                weights[j] / total * a.v[(n * a.keys + j) * a.features + d];
        }
      }
    }
  }
  return outputs;
}

// Two sequences of three words with four features, two heads.
constexpr size_t kBatch = 2, kWords = 3, kFeatures = 4, kHeads = 2;
const std::vector<int64_t> kWordsShape = {2, 3, 4};

// Queries, keys and values side by side in rows of 3 * kFeatures.
Attended apart(const Reals& packed) {
  Attended a{.batch = kBatch,
             .queries = kWords,
             .keys = kWords,
             .features = kFeatures,
             .heads = kHeads,
             .q = {},
             .k = {},
             .v = {}};
  for (size_t i = 0; i < packed.size(); ++i) {
    Reals* to[] = {&a.q, &a.k, &a.v};
    to[i % (3 * kFeatures) / kFeatures]->push_back(packed[i]);
  }
  return a;
}

struct Mask {
  std::vector<int64_t> shape;
  std::vector<int32_t> values;
};
const Floats kData = numbers(kBatch * kWords * kFeatures, 1), kWeights = numbers(kFeatures * 12, 2),
             kBias = numbers(12, 3);

Floats run_attention(const Mask& mask, std::vector<Message> attributes) {
  attributes.push_back(attr_int("num_heads", kHeads));
  return run<float>(
      {.op = "Attention", .attributes = attributes, .domain = "com.microsoft"}, kFloat, kWordsShape, kData,
      [&](OnnxBuilder& b, Names& inputs) {
        b.constant<float>("w", kFloat, {4, 12}, kWeights).constant<float>("b", kFloat, {12}, kBias);
        inputs.insert(inputs.end(), {"w", "b"});
        if (mask.shape.empty()) return;
        b.constant<int32_t>("mask", kInt32, mask.shape, mask.values);
        inputs.push_back("mask");
      });
}

TEST(OnnxAttention, HeadsAttendToWordsThatTheMaskHas) {
  Attended a = apart(product(reals(kData), reals(kWeights), kFeatures, reals(kBias)));
  expect_near(run_attention({}, {}), attended(a), "no mask");

  const std::vector<int32_t> of_keys = {1, 1, 0, 0, 1, 1};
  a.addend = [&](size_t n, size_t, size_t j) { return of_keys[n * kWords + j] > 0 ? 0 : -10000; };
  expect_near(run_attention({{2, 3}, of_keys}, {}), attended(a), "a mask of keys");
  a.addend = [&](size_t n, size_t, size_t j) { return of_keys[n * kWords + j] > 0 ? 0 : -2; };
  expect_near(run_attention({{2, 3}, of_keys}, {attr_float("mask_filter_value", -2)}), attended(a),
              "a mask that leaves something");

  const std::vector<int32_t> of_pairs = {1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1};
  a.addend = [&](size_t n, size_t i, size_t j) {
    return of_pairs[(n * kWords + i) * kWords + j] > 0 ? 0 : -10000;
  };
  expect_near(run_attention({{2, 3, 3}, of_pairs}, {}), attended(a), "a mask of pairs");

  const std::vector<int32_t> lengths = {2, 3};
  a.addend = [&](size_t n, size_t, size_t j) { return static_cast<int32_t>(j) < lengths[n] ? 0 : -10000; };
  expect_near(run_attention({{2}, lengths}, {}), attended(a), "lengths");

  a.addend = [](size_t, size_t i, size_t j) { return j <= i ? 0 : -INFINITY; };
  a.scale = 0.75;
  expect_near(run_attention({}, {attr_int("unidirectional", 1), attr_float("scale", 0.75f)}), attended(a),
              "words before");
}

TEST(OnnxAttention, QueriesOfOneSequenceAttendToAnother) {
  constexpr size_t kKeys = 5;
  const Floats keys = numbers(kBatch * kKeys * kFeatures, 4), values = numbers(kBatch * kKeys * kFeatures, 5);
  const Floats bias = numbers(3 * kFeatures, 6), of_products = numbers(kWords * kKeys, 7);
  const Floats found = run<float>(
      {.op = "MultiHeadAttention", .attributes = {attr_int("num_heads", kHeads)}, .domain = "com.microsoft"},
      kFloat, kWordsShape, kData, [&](OnnxBuilder& b, Names& inputs) {
        b.constant<float>("k", kFloat, {2, 5, 4}, keys).constant<float>("v", kFloat, {2, 5, 4}, values);
        b.constant<float>("b", kFloat, {12}, bias).constant<float>("p", kFloat, {1, 1, 3, 5}, of_products);
        inputs.insert(inputs.end(), {"k", "v", "b", "", "p"});
      });
  const auto with_bias = [&](const Floats& x, size_t first) {
    Reals sums;
    for (size_t i = 0; i < x.size(); ++i)
      sums.push_back(static_cast<double>(x[i]) + static_cast<double>(bias[first + i % kFeatures]));
    return sums;
  };
  Attended a{.batch = kBatch,
             .queries = kWords,
             .keys = kKeys,
             .features = kFeatures,
             .heads = kHeads,
             .q = with_bias(kData, 0),
             .k = with_bias(keys, kFeatures),
             .v = with_bias(values, 2 * kFeatures)};
  a.addend = [&](size_t, size_t i, size_t j) { return of_products[i * kKeys + j]; };
  expect_near(found, attended(a), "MultiHeadAttention");
}

// The product of the integers is exact.
TEST(OnnxAttention, QuantizedAttentionMultipliesIntegers) {
  std::vector<uint8_t> data;
  std::vector<int8_t> weights;
  Reals real_data, real_weights;
  const Floats scales = {0.01f, 0.02f, 0.03f, 0.01f, 0.02f, 0.03f, 0.01f, 0.02f, 0.03f, 0.01f, 0.02f, 0.03f};
  for (const float x : kData) {
    data.push_back(static_cast<uint8_t>(128 + static_cast<int>(x * 127)));
    real_data.push_back((data.back() - 130) * static_cast<double>(0.01f));
  }
  for (const float w : kWeights) {
    weights.push_back(static_cast<int8_t>(w * 127));
    real_weights.push_back(weights.back() * static_cast<double>(scales[(weights.size() - 1) % 12]));
  }
  const Floats found = run<float>(
      {.op = "QAttention", .attributes = {attr_int("num_heads", kHeads)}, .domain = "com.microsoft"}, kUint8,
      kWordsShape, data, [&](OnnxBuilder& b, Names& inputs) {
        b.constant<int8_t>("w", kInt8, {4, 12}, weights).constant<float>("b", kFloat, {12}, kBias);
        b.scale("s", 0.01f).constant<float>("ws", kFloat, {12}, scales);
        b.constant<uint8_t>("z", kUint8, {}, {130});
        b.constant<int8_t>("wz", kInt8, {12}, std::vector<int8_t>(12));
        inputs.insert(inputs.end(), {"w", "b", "s", "ws", "", "z", "wz"});
      });
  expect_near(found, attended(apart(product(real_data, real_weights, kFeatures, reals(kBias)))),
              "QAttention");
}

TEST(OnnxAttention, EmbeddingsAreSumsOfRowsNormalised) {
  const Floats words = numbers(5 * 4, 8), positions = numbers(6 * 4, 9), segments = numbers(2 * 4, 10);
  const Floats gamma = {1, 2, 3, 4}, beta = {0, -1, 0.5f, 2};
  const std::vector<int32_t> ids = {4, 0, 2, 1, 1, 3}, of_segments = {0, 0, 1, 0, 1, 1},
                             mask = {1, 1, 0, 1, 1, 1};
  OnnxBuilder b(17);
  b.import_opset("com.microsoft", 1);
  for (const char* name : {"ids", "segments", "mask"}) b.input(name, kInt32, {2, 3});
  b.constant<float>("w", kFloat, {5, 4}, words).constant<float>("p", kFloat, {6, 4}, positions);
  b.constant<float>("s", kFloat, {2, 4}, segments).constant<float>("gamma", kFloat, {4}, gamma);
  b.constant<float>("beta", kFloat, {4}, beta);
  b.node("EmbedLayerNormalization", {"ids", "segments", "w", "p", "s", "gamma", "beta", "mask"},
         {"y", "count", "sum"}, {attr_float("epsilon", 1e-3f)}, "com.microsoft");
  for (const char* output : {"y", "count", "sum"}) b.graph().message(12, Message().bytes(1, output));
  ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
  const auto outputs = session.run({bytes_of(ids), bytes_of(of_segments), bytes_of(mask)});
  Reals sums, expected;
  for (size_t i = 0; i < ids.size(); ++i) {
    double mean = 0, variance = 0;
    for (size_t d = 0; d < 4; ++d) {
      sums.push_back(static_cast<double>(words[static_cast<size_t>(ids[i]) * 4 + d]) +
                     static_cast<double>(positions[i % 3 * 4 + d]) +
                     static_cast<double>(segments[static_cast<size_t>(of_segments[i]) * 4 + d]));
      mean += sums.back() / 4;
    }
    for (size_t d = 0; d < 4; ++d) variance += (sums[i * 4 + d] - mean) * (sums[i * 4 + d] - mean) / 4;
    for (size_t d = 0; d < 4; ++d)
      expected.push_back((sums[i * 4 + d] - mean) / std::sqrt(variance + 1e-3) *
                             static_cast<double>(gamma[d]) +
                         static_cast<double>(beta[d]));
  }
  expect_near(values_of<float>(outputs.at(0)), expected, "embeddings");
  EXPECT_EQ(values_of<int32_t>(outputs.at(1)), (std::vector<int32_t>{2, 3}));
  expect_near(values_of<float>(outputs.at(2)), sums, "sums");
}

TEST(OnnxAttention, WhatItCannotSayIsRefused) {
  const auto refused = [](const Names& inputs, const std::vector<int64_t>& mask) {
    OnnxBuilder b(17);
    b.import_opset("com.microsoft", 1).input("x", kFloat, kWordsShape);
    b.constant<float>("w", kFloat, {4, 12}, kWeights).constant<float>("b", kFloat, {12}, kBias);
    b.constant<int32_t>("mask", kInt32, mask, std::vector<int32_t>(5)).input("length", kInt32, {1});
    b.node("Attention", inputs, {"y"}, {attr_int("num_heads", 2)}, "com.microsoft");
    return onnx_test::refusal(b.output("y", kFloat, kWordsShape));
  };
  EXPECT_EQ(
      refused({"x", "w", "b", "", "", "", "length"}, {4}),
      onnx_test::kList +
          "com.microsoft.Attention with input 'past_sequence_length'; export without a buffer that past "
          "and present share ('y')");
  EXPECT_EQ(
      refused({"x", "w", "b", "mask"}, {5}),
      onnx_test::kList +
          "com.microsoft.Attention with a mask that is Tensor[(5), int32]; expected one value for each of 3 "
          "keys, for each pair of a query and a key, or the end of each sequence ('y')");
}

}  // namespace
}  // namespace qplan::testing::onnx_attention_test
