// What decoders of transformers have beside plain attention: the past, rotated positions, groups of heads,
// caches with room. Each is a model of its own, through a plan, against the formula written out in double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/models/onnx_numbers.h"
#include "tests/models/onnx_run.h"
#include "tests/packer/import/onnx_helpers.h"

namespace qplan::testing::onnx_decoder_test {
namespace {

using namespace onnx_run;      // NOLINT: the words of these models
using namespace onnx_numbers;  // NOLINT

using Shape = std::vector<int64_t>;
const std::string kMicrosoft = "com.microsoft";

// ---- models of one operator

// An input of the operator; without a shape, none. Its values are an input of the network, or a constant.
struct Given {
  Shape shape = {};
  Floats reals = {};
  std::vector<int32_t> integers = {};
  std::vector<uint8_t> booleans = {};
  bool is_constant = false;

  int type() const { return !reals.empty() ? kFloat : !integers.empty() ? kInt32 : kBool; }
  std::vector<uint8_t> bytes() const {
    return !reals.empty() ? bytes_of(reals) : !integers.empty() ? bytes_of(integers) : booleans;
  }
};
Given constant(Given given) {
  given.is_constant = true;
  return given;
}

OnnxBuilder model_of(const Case& c, const std::vector<Given>& inputs, const Names& outputs) {
  OnnxBuilder b(c.opset);
  if (!c.domain.empty()) b.import_opset(c.domain, 1);
  Names names;
  for (const Given& given : inputs) {
    names.push_back(given.shape.empty() && given.bytes().empty() ? "" : "in" + std::to_string(names.size()));
    if (names.back().empty()) continue;
    if (given.is_constant) b.constant(names.back(), given.type(), given.shape, given.bytes());
    if (!given.is_constant) b.input(names.back(), given.type(), given.shape);
  }
  b.node(c.op, names, outputs, c.attributes, c.domain);
  for (const std::string& name : outputs) {
    if (!name.empty()) b.graph().message(12, Message().bytes(1, name));
  }
  return b;
}

std::vector<Floats> outputs_of(const Case& c, const std::vector<Given>& inputs, const Names& outputs) {
  std::vector<std::vector<uint8_t>> given;
  for (const Given& input : inputs) {
    if (!input.is_constant && !input.bytes().empty()) given.push_back(input.bytes());
  }
  ModelSession session(packed(model_of(c, inputs, outputs)), QPLAN_ISA_AUTO, 1);
  std::vector<Floats> found;
  for (const std::vector<uint8_t>& bytes : session.run(given)) found.push_back(values_of<float>(bytes));
  return found;
}

// ---- the formula

// [batch, heads, positions, features]
struct Heads {
  size_t batch, heads, positions, features;
  Reals values;

  size_t index(size_t n, size_t h, size_t i, size_t d) const {
    return ((n * heads + h) * positions + i) * features + d;
  }
  double at(size_t n, size_t h, size_t i, size_t d) const { return values[index(n, h, i, d)]; }
  Shape shape() const {
    return {static_cast<int64_t>(batch), static_cast<int64_t>(heads), static_cast<int64_t>(positions),
            static_cast<int64_t>(features)};
  }
  Given given() const { return {.shape = shape(), .reals = Floats(values.begin(), values.end())}; }
  // As [batch, positions, heads * features].
  Given flat() const {
    Given all = {.shape = {static_cast<int64_t>(batch), static_cast<int64_t>(positions),
                           static_cast<int64_t>(heads * features)}};
    for (const double value : flat_values()) all.reals.push_back(static_cast<float>(value));
    return all;
  }
  Reals flat_values() const {
    Reals all;
    for (size_t n = 0; n < batch; ++n) {
      for (size_t i = 0; i < positions; ++i) {
        for (size_t h = 0; h < heads; ++h) {
          for (size_t d = 0; d < features; ++d) all.push_back(at(n, h, i, d));
        }
      }
    }
    return all;
  }
};
Heads heads_of(size_t batch, size_t heads, size_t positions, size_t features, uint32_t seed) {
  return {batch, heads, positions, features, reals(numbers(batch * heads * positions * features, seed))};
}
// f(n, h, i, d) for each element.
Heads made(Heads heads, const std::function<double(size_t, size_t, size_t, size_t)>& f) {
  heads.values.resize(heads.batch * heads.heads * heads.positions * heads.features);
  for (size_t n = 0; n < heads.batch; ++n) {
    for (size_t h = 0; h < heads.heads; ++h) {
      for (size_t i = 0; i < heads.positions; ++i) {
        for (size_t d = 0; d < heads.features; ++d) heads.values[heads.index(n, h, i, d)] = f(n, h, i, d);
      }
    }
  }
  return heads;
}
Heads joined(const Heads& past, const Heads& now) {
  return made({now.batch, now.heads, past.positions + now.positions, now.features, {}},
              [&](size_t n, size_t h, size_t i, size_t d) {
                return i < past.positions ? past.at(n, h, i, d) : now.at(n, h, i - past.positions, d);
              });
}

// What becomes of the scaled product of query i and key j of head h: -INFINITY hides the key.
using Score = std::function<double(size_t n, size_t h, size_t i, size_t j, double product)>;
double as_it_is(size_t, size_t, size_t, size_t, double product) { return product; }

// sink: what the weights' sum has beside the keys'.
Heads attended(const Heads& q, const Heads& k, const Heads& v, const Score& score, double sink = 0) {
  const auto exponential = [&](size_t n, size_t h, size_t i, size_t j) {
    double product = 0;
    for (size_t d = 0; d < q.features; ++d)
      product += q.at(n, h, i, d) * k.at(n, h * k.heads / q.heads, j, d);
    return std::exp(score(n, h, i, j, product / std::sqrt(static_cast<double>(q.features))));
  };
  return made({q.batch, q.heads, q.positions, v.features, {}}, [&](size_t n, size_t h, size_t i, size_t d) {
    double sum = 0, total = sink;
    for (size_t j = 0; j < k.positions; ++j) {
      sum += exponential(n, h, i, j) * v.at(n, h * k.heads / q.heads, j, d);
      total += exponential(n, h, i, j);
    }
    return total == 0 ? 0 : sum / total;
  });
}

// ---- the past of com.microsoft's operators

TEST(OnnxDecoder, AttentionContinuesItsPast) {
  // Weights that take the first 4 of the data's 12 features for queries, the next for keys, the last for
  // values.
  const Heads q = heads_of(2, 2, 3, 2, 1), k = heads_of(2, 2, 3, 2, 2), v = heads_of(2, 2, 3, 2, 3);
  const Heads old_k = heads_of(2, 2, 2, 2, 4), old_v = heads_of(2, 2, 2, 2, 5);
  Given data = {.shape = {2, 3, 12}}, identity = {.shape = {12, 12}, .reals = Floats(144)};
  for (size_t row = 0; row < 6; ++row) {
    for (const Heads* part : {&q, &k, &v}) {
      const Floats values = part->flat().reals;
      data.reals.insert(data.reals.end(), values.begin() + static_cast<int64_t>(row) * 4,
                        values.begin() + static_cast<int64_t>(row + 1) * 4);
    }
  }
  for (size_t i = 0; i < 12; ++i) identity.reals[i * 13] = 1;
  Given past = {.shape = {2, 2, 2, 2, 2}, .reals = old_k.given().reals};
  const Floats past_values = old_v.given().reals;
  past.reals.insert(past.reals.end(), past_values.begin(), past_values.end());
  const Heads all_k = joined(old_k, k), all_v = joined(old_v, v);
  Reals present = all_k.values;
  present.insert(present.end(), all_v.values.begin(), all_v.values.end());

  const auto expect = [&](const Given& mask, const Score& score, const char* what) {
    const auto found = outputs_of({"Attention",
                                   {attr_int("num_heads", 2), attr_int("unidirectional", 1),
                                    attr_float("mask_filter_value", std::numeric_limits<float>::lowest())},
                                   kMicrosoft},
                                  {data, constant(identity), {}, mask, past}, {"y", "present"});
    expect_near(found.at(0), attended(q, all_k, all_v, score).flat_values(), what);
    expect_near(found.at(1), present, what);
  };
  expect(
      {}, [](size_t, size_t, size_t i, size_t j, double product) { return j <= i + 2 ? product : -INFINITY; },
      "earlier keys");
  // The first sequence begins at its second key, the other one ends before its last.
  expect(
      {.shape = {4}, .integers = {5, 4, 1, 0}},
      [](size_t n, size_t, size_t i, size_t j, double product) {
        return j <= i + 2 && (n == 0 ? j >= 1 : j < 4) ? product : -INFINITY;
      },
      "starts and ends");
  // Where no earlier key is left, a lowest addend levels all of them, later ones too.
  expect(
      {.shape = {2, 5}, .integers = {0, 0, 0, 1, 1, 1, 1, 1, 1, 1}},
      [](size_t n, size_t, size_t i, size_t j, double product) {
        if (n == 0 && i == 0) return 0.0;
        return j <= i + 2 && (n == 1 || j >= 3) ? product : -INFINITY;
      },
      "a query that sees no key");
}

TEST(OnnxDecoder, QuantizedAttentionContinuesItsPast) {
  const auto found = [](int64_t past) {
    OnnxBuilder b(17);
    b.import_opset(kMicrosoft, 1).input("x", kUint8, {1, 1, 2}).input("past", kFloat, {2, 1, 1, past, 2});
    b.constant<int8_t>("w", kInt8, {2, 6}, {1, 0, 0, 1, 2, 0, 0, 1, 1, 0, 0, 2}).scale("s", 0.5f);
    b.constant<float>("b", kFloat, {6}, Floats(6)).constant<uint8_t>("z", kUint8, {}, {4});
    b.node("QAttention", {"x", "w", "b", "s", "s", "", "z", "", "past"}, {"y", "present"},
           {attr_int("num_heads", 1)}, kMicrosoft);
    for (const char* output : {"y", "present"}) b.graph().message(12, Message().bytes(1, output));
    ModelSession session(packed(b), QPLAN_ISA_AUTO, 1);
    const auto outputs = session.run({std::vector<uint8_t>{8, 0}, bytes_of(Floats{1, 2, 3, 4})});
    return std::vector<Floats>{values_of<float>(outputs[0]), values_of<float>(outputs[1])};
  }(1);
  // (x - 4) / 2 is 2, -2; the weights are halves. Query 1, -1; key -1, 1; value 2, -2.
  const double old_score = std::exp((1 - 2) / std::sqrt(2.0)), score = std::exp((-1 - 1) / std::sqrt(2.0));
  const double total = old_score + score;
  expect_near(found[0], {(3 * old_score + 2 * score) / total, (4 * old_score - 2 * score) / total}, "y");
  EXPECT_EQ(found[1], (Floats{1, 2, -1, 1, 3, 4, 2, -2}));
}

// Queries, keys and values in the forms that MultiHeadAttention has for them.
TEST(OnnxDecoder, MultiHeadAttentionReadsKeysInAllForms) {
  const Heads q = heads_of(2, 2, 3, 4, 1), k = heads_of(2, 2, 3, 4, 2), v = heads_of(2, 2, 3, 4, 3);
  const Case c = {"MultiHeadAttention", {attr_int("num_heads", 2)}, kMicrosoft};
  const Reals plain = attended(q, k, v, as_it_is).flat_values();
  // [batch, positions, heads, parts, features]
  const auto side_by_side = [](const std::vector<const Heads*>& parts) {
    Given all = {.shape = {2, 3, 2, static_cast<int64_t>(parts.size()), 4}};
    for (size_t row = 0; row < 12; ++row) {
      for (const Heads* part : parts) {
        for (size_t d = 0; d < 4; ++d) all.reals.push_back(part->flat().reals[row * 4 + d]);
      }
    }
    return all;
  };
  expect_near(outputs_of(c, {side_by_side({&q, &k, &v})}, {"y"})[0], plain, "one tensor");
  expect_near(outputs_of(c, {q.flat(), side_by_side({&k, &v})}, {"y"})[0], plain, "keys and values in one");
  // Keys and values that are heads already get no bias.
  const Floats bias = numbers(24, 4);
  const Heads biased = made(q, [&](size_t n, size_t h, size_t i, size_t d) {
    return q.at(n, h, i, d) + static_cast<double>(bias[h * 4 + d]);
  });
  expect_near(
      outputs_of(c, {q.flat(), k.given(), v.given(), constant({.shape = {24}, .reals = bias})}, {"y"})[0],
      attended(biased, k, v, as_it_is).flat_values(), "heads");

  const Heads old_k = heads_of(2, 2, 2, 4, 5), old_v = heads_of(2, 2, 2, 4, 6);
  const Heads all_k = joined(old_k, k), all_v = joined(old_v, v);
  const auto found = outputs_of({c.op, {attr_int("num_heads", 2), attr_int("unidirectional", 1)}, kMicrosoft},
                                {q.flat(), k.flat(), v.flat(), {}, {}, {}, old_k.given(), old_v.given()},
                                {"y", "keys", "values"});
  const Score earlier = [](size_t, size_t, size_t i, size_t j, double product) {
    return j <= i + 2 ? product : -INFINITY;
  };
  expect_near(found.at(0), attended(q, all_k, all_v, earlier).flat_values(), "past");
  expect_near(found.at(1), all_k.values, "present keys");
  expect_near(found.at(2), all_v.values, "present values");
}

// ---- positions

// The angles of two pairs of features at positions 0 to 7.
const Floats kCosines = numbers(16, 20), kSines = numbers(16, 21);

// The first 4 features of each head rotated, as at these positions.
Heads rotated(const Heads& x, bool interleaved, const std::vector<int32_t>& positions) {
  return made(x, [&](size_t n, size_t h, size_t i, size_t d) {
    if (d >= 4) return x.at(n, h, i, d);
    const size_t pair = interleaved ? d / 2 : d % 2;
    const bool is_first = interleaved ? d % 2 == 0 : d < 2;
    const size_t other = interleaved ? (is_first ? d + 1 : d - 1) : (is_first ? d + 2 : d - 2);
    const auto row = static_cast<size_t>(positions[n * x.positions + i]);
    return x.at(n, h, i, d) * static_cast<double>(kCosines[row * 2 + pair]) +
           (is_first ? -1 : 1) * x.at(n, h, i, other) * static_cast<double>(kSines[row * 2 + pair]);
  });
}

TEST(OnnxDecoder, RotaryEmbeddingTurnsPairsOfFeatures) {
  const std::vector<int32_t> at = {3, 0, 7, 1, 2, 2}, from_5 = {5, 6, 7, 5, 6, 7};
  const Given cosines = constant({.shape = {8, 2}, .reals = kCosines});
  const Given sines = constant({.shape = {8, 2}, .reals = kSines});
  const Given positions = {.shape = {2, 3}, .integers = at}, first = {.shape = {1}, .integers = {5}};
  for (const bool interleaved : {false, true}) {
    const Heads x = heads_of(2, 2, 3, 6, 9), whole = heads_of(2, 2, 3, 4, 10);
    const std::vector<Message> attributes = {attr_int("interleaved", interleaved), attr_int("num_heads", 2),
                                             attr_int("rotary_embedding_dim", 4)};
    const Case c = {"RotaryEmbedding", attributes, kMicrosoft},
               onnx = {"RotaryEmbedding", attributes, {}, 23};
    for (const Given& given : {positions, constant(positions)}) {
      expect_near(outputs_of(c, {x.flat(), given, cosines, sines}, {"y"})[0],
                  rotated(x, interleaved, at).flat_values(), "rank 3");
      expect_near(outputs_of(c, {x.given(), given, cosines, sines}, {"y"})[0],
                  rotated(x, interleaved, at).values, "rank 4");
      expect_near(outputs_of(onnx, {x.flat(), cosines, sines, given}, {"y"})[0],
                  rotated(x, interleaved, at).flat_values(), "ONNX");
    }
    for (const Given& given : {first, constant(first)}) {
      // The tables say how many features a head has.
      expect_near(
          outputs_of({c.op, {attributes[0]}, kMicrosoft}, {whole.flat(), given, cosines, sines}, {"y"})[0],
          rotated(whole, interleaved, from_5).flat_values(), "a first position");
    }
    // Without positions, a row for each word.
    Given row_cosines = {.shape = {2, 3, 2}}, row_sines = {.shape = {2, 3, 2}};
    for (const int32_t row : at) {
      for (size_t pair = 0; pair < 2; ++pair) {
        row_cosines.reals.push_back(kCosines[static_cast<size_t>(row) * 2 + pair]);
        row_sines.reals.push_back(kSines[static_cast<size_t>(row) * 2 + pair]);
      }
    }
    expect_near(outputs_of(onnx, {x.given(), row_cosines, row_sines}, {"y"})[0],
                rotated(x, interleaved, at).values, "ONNX, rows");
  }
}

// ---- ONNX's own attention

TEST(OnnxDecoder, OnnxAttentionOfGroupedHeadsContinuesItsPast) {
  const Heads q = heads_of(2, 4, 3, 4, 1), k = heads_of(2, 2, 3, 4, 2), v = heads_of(2, 2, 3, 6, 3);
  const Heads old_k = heads_of(2, 2, 2, 4, 4), old_v = heads_of(2, 2, 2, 6, 5);
  const Heads all_k = joined(old_k, k), all_v = joined(old_v, v);
  const Score capped = [](size_t, size_t, size_t i, size_t j, double product) {
    return j <= i + 2 ? 0.5 * std::tanh(product / 0.5) : -INFINITY;
  };
  const Heads expected = attended(q, all_k, all_v, capped);
  const std::vector<Message> attributes = {attr_int("is_causal", 1), attr_float("softcap", 0.5f)};
  const Names outputs = {"y", "keys", "values"};
  const auto found = outputs_of({"Attention", attributes, {}, 23},
                                {q.given(), k.given(), v.given(), {}, old_k.given(), old_v.given()}, outputs);
  expect_near(found.at(0), expected.values, "rank 4");
  expect_near(found.at(1), all_k.values, "keys");
  expect_near(found.at(2), all_v.values, "values");
  std::vector<Message> with_heads = attributes;
  with_heads.insert(with_heads.end(), {attr_int("q_num_heads", 4), attr_int("kv_num_heads", 2)});
  expect_near(outputs_of({"Attention", with_heads, {}, 23},
                         {q.flat(), k.flat(), v.flat(), {}, old_k.given(), old_v.given()}, outputs)[0],
              expected.flat_values(), "rank 3");
}

TEST(OnnxDecoder, QueriesThatSeeNoKeyOfOnnxAttentionAreZero) {
  const Heads q = heads_of(1, 2, 3, 4, 1), k = heads_of(1, 2, 3, 4, 2), v = heads_of(1, 2, 3, 4, 3);
  const std::vector<uint8_t> seen = {1, 0, 1, 0, 0, 0, 0, 1, 1};
  const Score score = [&](size_t, size_t, size_t i, size_t j, double product) {
    return seen[i * 3 + j] != 0 ? product : -INFINITY;
  };
  const Reals expected = attended(q, k, v, score).values;
  const Given booleans = {.shape = {3, 3}, .booleans = seen};
  Given addends = {.shape = {1, 1, 3, 3}};
  for (const uint8_t one : seen) addends.reals.push_back(one != 0 ? 0 : -INFINITY);
  for (const Given& mask : {booleans, constant(booleans), addends, constant(addends)}) {
    expect_near(outputs_of({"Attention", {}, {}, 23}, {q.given(), k.given(), v.given(), mask}, {"y"})[0],
                expected, "mask");
  }
  // Two keys of three.
  expect_near(
      outputs_of({"Attention", {attr_int("is_causal", 1)}, {}, 24},
                 {q.given(), k.given(), v.given(), {}, {}, {}, {.shape = {1}, .integers = {2}}}, {"y"})[0],
      attended(q, k, v,
               [](size_t, size_t, size_t i, size_t j, double product) {
                 return j < 2 && j + 1 <= i ? product : -INFINITY;
               })
          .values,
      "numbers of keys");
}

TEST(OnnxDecoder, OnnxAttentionShowsWhatItsWeightsAreMadeOf) {
  const Heads q = heads_of(1, 1, 2, 4, 1), k = heads_of(1, 1, 2, 4, 2), v = heads_of(1, 1, 2, 4, 3);
  const Floats mask = {0.5f, -1, 2, 0.25f};
  Reals steps[4];
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      double product = 0;
      for (size_t d = 0; d < 4; ++d) product += q.at(0, 0, i, d) * k.at(0, 0, j, d) / 2;
      steps[0].push_back(product);
      steps[1].push_back(2 * std::tanh(product / 2));
      steps[2].push_back(steps[1].back() + static_cast<double>(mask[i * 2 + j]));
    }
    const double first = std::exp(steps[2][i * 2]), second = std::exp(steps[2][i * 2 + 1]);
    steps[3].insert(steps[3].end(), {first / (first + second), second / (first + second)});
  }
  for (int64_t mode = 0; mode < 4; ++mode) {
    const auto found = outputs_of(
        {"Attention", {attr_int("qk_matmul_output_mode", mode), attr_float("softcap", 2)}, {}, 23},
        {q.given(), k.given(), v.given(), {.shape = {2, 2}, .reals = mask}}, {"y", "", "", "products"});
    expect_near(found.at(1), steps[mode], "mode " + std::to_string(mode));
  }
}

// ---- GroupQueryAttention

// Keys or values of each sequence: those of the past that it has, those of now, zeros.
Heads cached(const Heads& past, const Heads& now, const std::vector<int32_t>& old, size_t positions) {
  return made({now.batch, now.heads, positions, now.features, {}},
              [&](size_t n, size_t h, size_t i, size_t d) {
                const auto count = static_cast<size_t>(old[n]);
                if (i < count) return past.at(n, h, i, d);
                return i < count + now.positions ? now.at(n, h, i - count, d) : 0.0;
              });
}

TEST(OnnxDecoder, GroupQueryAttentionWritesAfterThePastOfEachSequence) {
  const Heads k = heads_of(2, 2, 1, 4, 2), v = heads_of(2, 2, 1, 4, 3), q = heads_of(2, 4, 1, 4, 1);
  const Heads old_k = heads_of(2, 2, 6, 4, 4), old_v = heads_of(2, 2, 6, 4, 5);
  const Given cosines = constant({.shape = {8, 2}, .reals = kCosines});
  const Given sines = constant({.shape = {8, 2}, .reals = kSines});
  const std::vector<Message> attributes = {attr_int("num_heads", 4), attr_int("kv_num_heads", 2),
                                           attr_int("do_rotary", 1), attr_int("local_window_size", 3)};
  // Positions of the past, and the longest sequence with what is new. The past has room for 6.
  struct Lengths {
    std::vector<int32_t> old;
    int32_t total;
  };
  for (const Lengths& lengths :
       {Lengths{{6, 2}, 7}, Lengths{{4, 1}, 5}, Lengths{{3, 3}, 4}, Lengths{{2, 2}, 4}}) {
    const auto positions = static_cast<size_t>(std::max(6, lengths.total));
    const Heads all_k = cached(old_k, rotated(k, false, lengths.old), lengths.old, positions);
    const Heads all_v = cached(old_v, v, lengths.old, positions);
    const Score in_window = [&](size_t n, size_t, size_t, size_t j, double product) {
      const auto key = static_cast<int32_t>(j);
      return key <= lengths.old[n] && key > lengths.old[n] - 3 ? product : -INFINITY;
    };
    const Reals expected = attended(rotated(q, false, lengths.old), all_k, all_v, in_window).flat_values();
    const Given last = {.shape = {2}, .integers = lengths.old};
    for (const Given& given : {last, constant(last)}) {
      const auto found = outputs_of({"GroupQueryAttention", attributes, kMicrosoft},
                                    {q.flat(), k.flat(), v.flat(), old_k.given(), old_v.given(), given,
                                     constant({.shape = {1}, .integers = {lengths.total}}), cosines, sines},
                                    {"y", "keys", "values"});
      const std::string what = "total " + std::to_string(lengths.total);
      expect_near(found.at(0), expected, what);
      expect_near(found.at(1), all_k.values, what);
      expect_near(found.at(2), all_v.values, what);
    }
  }
}

// One plan for a text of 4 words: each run adds a word to what the run before gave.
TEST(OnnxDecoder, PresentOfGroupQueryAttentionIsTheNextPast) {
  const Heads q = heads_of(1, 2, 4, 4, 1), k = heads_of(1, 1, 4, 4, 2), v = heads_of(1, 1, 4, 4, 3);
  const std::vector<int32_t> all = {0, 1, 2, 3};
  const Score earlier = [](size_t, size_t, size_t i, size_t j, double product) {
    return j <= i ? product : -INFINITY;
  };
  const Reals expected = attended(rotated(q, true, all), rotated(k, true, all), v, earlier).flat_values();
  const auto word = [](const Heads& of, size_t i) {
    return made({1, of.heads, 1, 4, {}},
                [&](size_t n, size_t h, size_t, size_t d) { return of.at(n, h, i, d); });
  };
  const Given room = heads_of(1, 1, 4, 4, 4).given();
  const auto inputs_of = [&](size_t i, const Given& keys, const Given& values) {
    return std::vector<Given>{word(q, i).flat(),
                              word(k, i).flat(),
                              word(v, i).flat(),
                              keys,
                              values,
                              {.shape = {1}, .integers = {static_cast<int32_t>(i)}},
                              constant({.shape = {1}, .integers = {4}}),
                              constant({.shape = {8, 2}, .reals = kCosines}),
                              constant({.shape = {8, 2}, .reals = kSines})};
  };
  const Case c = {"GroupQueryAttention",
                  {attr_int("num_heads", 2), attr_int("kv_num_heads", 1), attr_int("do_rotary", 1),
                   attr_int("rotary_interleaved", 1)},
                  kMicrosoft};
  ModelSession session(packed(model_of(c, inputs_of(0, room, room), {"y", "keys", "values"})), QPLAN_ISA_AUTO,
                       1);
  Given keys = room, values = room;
  Floats found;
  for (size_t i = 0; i < 4; ++i) {
    std::vector<std::vector<uint8_t>> bytes;
    for (const Given& input : inputs_of(i, keys, values)) {
      if (!input.is_constant) bytes.push_back(input.bytes());
    }
    const auto outputs = session.run(bytes);
    const Floats y = values_of<float>(outputs.at(0));
    found.insert(found.end(), y.begin(), y.end());
    keys.reals = values_of<float>(outputs.at(1));
    values.reals = values_of<float>(outputs.at(2));
  }
  expect_near(found, expected, "words");
}

TEST(OnnxDecoder, PromptOfGroupQueryAttentionHasNoPast) {
  const Heads q = heads_of(1, 2, 3, 4, 1), k = heads_of(1, 1, 3, 4, 2), v = heads_of(1, 1, 3, 4, 3);
  const Heads room = heads_of(1, 1, 5, 4, 4);
  Given side_by_side = {.shape = {1, 3, 16}};
  for (size_t i = 0; i < 3; ++i) {
    for (const Heads* part : {&q, &k, &v}) {
      const Floats values = part->flat().reals;
      const auto row = static_cast<int64_t>(part->heads * 4), begin = static_cast<int64_t>(i) * row;
      side_by_side.reals.insert(side_by_side.reals.end(), values.begin() + begin,
                                values.begin() + begin + row);
    }
  }
  const auto found =
      outputs_of({"GroupQueryAttention",
                  {attr_int("num_heads", 2), attr_int("kv_num_heads", 1), attr_int("smooth_softmax", 1)},
                  kMicrosoft},
                 {side_by_side,
                  {},
                  {},
                  room.given(),
                  room.given(),
                  {.shape = {1}, .integers = {2}},
                  constant({.shape = {1}, .integers = {3}})},
                 {"y", "keys", "values"});
  const Score earlier = [](size_t, size_t, size_t i, size_t j, double product) {
    return j <= i ? product : -INFINITY;
  };
  expect_near(found.at(0), attended(q, k, v, earlier, 1).flat_values(), "y");
  expect_near(found.at(1), cached(room, k, {0}, 5).values, "keys");
  expect_near(found.at(2), cached(room, v, {0}, 5).values, "values");
}

TEST(OnnxDecoder, ErrorsSayWhatToDo) {
  const Heads q = heads_of(1, 2, 1, 4, 1), k = heads_of(1, 1, 1, 4, 2), past = heads_of(1, 1, 2, 4, 3);
  const auto refused = [&](std::vector<Message> attributes, const Given& total) {
    attributes.insert(attributes.end(), {attr_int("num_heads", 2), attr_int("kv_num_heads", 1)});
    return refusal(model_of(
        {"GroupQueryAttention", attributes, kMicrosoft},
        {q.flat(), k.flat(), k.flat(), past.given(), past.given(), {.shape = {1}, .integers = {2}}, total},
        {"y"}));
  };
  const Given total = {.shape = {1}, .integers = {3}};
  EXPECT_EQ(refused({}, total),
            kList +
                "com.microsoft.GroupQueryAttention with lengths (total_sequence_length) that "
                "are not constant, but input 'in6' (--bind gives it a value) ('y')");
  EXPECT_EQ(
      refused({attr_string("k_quant_type", "PER_TENSOR")}, constant(total)),
      kList +
          "com.microsoft.GroupQueryAttention with attribute 'k_quant_type'; export with keys and values of "
          "float ('y')");
  EXPECT_EQ(
      refused({}, constant({.shape = {1}, .integers = {4}})),
      kInvalid +
          "node 0 com.microsoft.GroupQueryAttention 'y': total_sequence_length is 4 for 1 new positions and "
          "a past of 2");
  EXPECT_EQ(
      refusal(model_of({"RotaryEmbedding", {attr_int("is_packed_batching", 1)}, kMicrosoft},
                       {q.given(),
                        {.shape = {1}, .integers = {1}},
                        constant({.shape = {8, 2}, .reals = kCosines}),
                        constant({.shape = {8, 2}, .reals = kSines})},
                       {"y"})),
      kList +
          "com.microsoft.RotaryEmbedding with attribute 'is_packed_batching'; export with one sequence in "
          "each row ('y')");
  EXPECT_EQ(
      refusal(model_of({"Attention", {}, {}, 23}, {q.given(), past.given(), k.given()}, {"y"})),
      kInvalid +
          "node 0 Attention 'y': queries are Tensor[(1, 2, 1, 4), float32], keys Tensor[(1, 1, 2, 4), "
          "float32], values Tensor[(1, 1, 1, 4), float32]; expected [batch, heads, positions, features] that "
          "fit one another");
}

}  // namespace
}  // namespace qplan::testing::onnx_decoder_test
