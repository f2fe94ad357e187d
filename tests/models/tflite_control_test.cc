// Loops, branches, sparse constants and operators of several results in TFLite models, from the file through
// a plan to numbers that are worked out here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::testing::tflite_control_test {
namespace {

using tflite_test::bytes_of;
using tflite_test::TfliteBuilder;

int32_t floats(TfliteBuilder& b, const char* name, std::vector<int32_t> shape,
               const std::vector<float>& values = {}) {
  return b.tensor({.name = name,
                   .type = tflite::TensorType_FLOAT32,
                   .shape = std::move(shape),
                   .data = bytes_of(values)});
}
int32_t number(TfliteBuilder& b, const char* name) {
  return b.tensor({.name = name, .type = tflite::TensorType_INT32});
}
int32_t number(TfliteBuilder& b, const char* name, int32_t value) {
  return b.tensor({.name = name, .type = tflite::TensorType_INT32, .data = bytes_of<int32_t>({value})});
}
int32_t boolean(TfliteBuilder& b, const char* name) {
  return b.tensor({.name = name, .type = tflite::TensorType_BOOL});
}

std::vector<uint8_t> packed(const std::vector<uint8_t>& model) { return pack_bytes(model, "net.tflite"); }

template <typename T>
std::vector<T> values_of(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::vector<uint8_t>> run_all(const std::vector<uint8_t>& model,
                                          const std::vector<std::vector<uint8_t>>& inputs) {
  ModelSession session(packed(model), QPLAN_ISA_AUTO, 1);
  return session.run(inputs);
}

std::vector<float> run(const std::vector<uint8_t>& model, const std::vector<std::vector<uint8_t>>& inputs) {
  return values_of<float>(run_all(model, inputs).at(0));
}

// A recurrence as TensorFlow's converter writes it: a counter, the state, and the states so far, of which one
// row is replaced in each round: h = tanh(x[i] + h), rows[i] = h. The slices before the first row and after
// the last one have no elements.
TEST(TfliteControl, ARecurrenceIsUnrolled) {
  constexpr int32_t kSteps = 4, kCells = 3;
  TfliteBuilder b;
  const int32_t x = floats(b, "x", {kSteps, kCells});
  const int32_t zero = number(b, "zero", 0);
  const int32_t state = floats(b, "state", {1, kCells}, {0.5f, 0, -0.5f});
  const int32_t rows = floats(b, "rows", {kSteps, kCells}, std::vector<float>(kSteps * kCells));
  std::vector<int32_t> results = {number(b, "i_end"), floats(b, "h_end", {1, kCells}),
                                  floats(b, "all", {kSteps, kCells}), floats(b, "x_end", {kSteps, kCells})};
  b.op(tflite::BuiltinOperator_WHILE, {zero, state, rows, x}, results, tflite::BuiltinOptions_WhileOptions,
       tflite::CreateWhileOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x}, {results[2]});

  const auto arguments = [&] {
    return std::vector<int32_t>{number(b, "i"), floats(b, "h", {1, kCells}),
                                floats(b, "so_far", {kSteps, kCells}), floats(b, "data", {kSteps, kCells})};
  };
  std::vector<int32_t> in = arguments();
  const int32_t goes_on = boolean(b, "goes_on");
  b.op(tflite::BuiltinOperator_LESS, {in[0], number(b, "steps", kSteps)}, {goes_on});
  b.end_subgraph(in, {goes_on});

  in = arguments();
  const int32_t one = number(b, "one", 1), next = number(b, "next");
  b.op(tflite::BuiltinOperator_ADD, {in[0], one}, {next}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb()).Union());
  const int32_t row = floats(b, "row", {kCells}), sum = floats(b, "sum", {1, kCells});
  b.op(tflite::BuiltinOperator_GATHER, {in[3], in[0]}, {row}, tflite::BuiltinOptions_GatherOptions,
       tflite::CreateGatherOptions(b.fbb()).Union());
  b.op(tflite::BuiltinOperator_ADD, {row, in[1]}, {sum}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb()).Union());
  const int32_t h = floats(b, "h_next", {1, kCells});
  b.op(tflite::BuiltinOperator_TANH, {sum}, {h});
  const auto pair = [&](int32_t first, int32_t second, const char* name) {
    const int32_t both = b.tensor({.name = name, .type = tflite::TensorType_INT32, .shape = {2}});
    b.op(tflite::BuiltinOperator_PACK, {first, second}, {both}, tflite::BuiltinOptions_PackOptions,
         tflite::CreatePackOptions(b.fbb(), 2, 0).Union());
    return both;
  };
  const auto open_rows = [&](const char* name) {
    return b.tensor(
        {.name = name, .type = tflite::TensorType_FLOAT32, .shape = {1, kCells}, .signature = {-1, kCells}});
  };
  const int32_t begin = number(b, "begin", 0), whole = number(b, "whole", -1);
  const int32_t before = open_rows("before"), after = open_rows("after");
  b.op(tflite::BuiltinOperator_SLICE, {in[2], b.ints("zeros", {0, 0}), pair(in[0], whole, "size")}, {before});
  b.op(tflite::BuiltinOperator_SLICE, {in[2], pair(next, begin, "from"), b.ints("rest", {-1, -1})}, {after});
  const int32_t joined = floats(b, "joined", {kSteps, kCells});
  b.op(tflite::BuiltinOperator_CONCATENATION, {before, h, after}, {joined},
       tflite::BuiltinOptions_ConcatenationOptions, tflite::CreateConcatenationOptions(b.fbb(), 0).Union());

  std::vector<float> input(kSteps * kCells), expected;
  for (size_t i = 0; i < input.size(); ++i) input[i] = 0.3f * static_cast<float>(i) - 1.5f;
  std::vector<double> cells = {0.5, 0, -0.5};
  for (int32_t i = 0; i < kSteps; ++i) {
    for (int32_t c = 0; c < kCells; ++c) {
      double& cell = cells[static_cast<size_t>(c)];
      cell = std::tanh(static_cast<double>(input[static_cast<size_t>(i * kCells + c)]) + cell);
      expected.push_back(static_cast<float>(cell));
    }
  }
  const std::vector<float> found = run(b.finish(in, {next, h, joined, in[3]}), {bytes_of(input)});
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

// The condition is known only while the network runs: both branches are computed, one is chosen.
TEST(TfliteControl, BothBranchesRunWhereTheDataDecides) {
  TfliteBuilder b;
  const int32_t x = floats(b, "x", {2}), limit = floats(b, "limit", {1}), sum = floats(b, "sum", {1});
  b.op(tflite::BuiltinOperator_SUM, {x, b.ints("axes", {0})}, {sum}, tflite::BuiltinOptions_ReducerOptions,
       tflite::CreateReducerOptions(b.fbb(), true).Union());
  const int32_t is_more = b.tensor({.name = "is_more", .type = tflite::TensorType_BOOL, .shape = {1}});
  b.op(tflite::BuiltinOperator_GREATER, {sum, limit}, {is_more});
  const int32_t y = floats(b, "y", {2});
  b.op(tflite::BuiltinOperator_IF, {is_more, x}, {y}, tflite::BuiltinOptions_IfOptions,
       tflite::CreateIfOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x, limit}, {y});
  int32_t in = floats(b, "a", {2}), out = floats(b, "square", {2});
  b.op(tflite::BuiltinOperator_SQUARE, {in}, {out});
  b.end_subgraph({in}, {out});
  in = floats(b, "b", {2}), out = floats(b, "negative", {2});
  b.op(tflite::BuiltinOperator_NEG, {in}, {out});
  const std::vector<uint8_t> model = b.finish({in}, {out});
  const std::vector<float> data = {3, 4};
  EXPECT_EQ(run(model, {bytes_of(data), bytes_of<float>({6.5f})}), (std::vector<float>{9, 16}));
  EXPECT_EQ(run(model, {bytes_of(data), bytes_of<float>({7})}), (std::vector<float>{-3, -4}));
}

// A loop that never ends is no network.
TEST(TfliteControl, ALoopWithoutEndIsRefused) {
  TfliteBuilder b;
  const int32_t x = floats(b, "x", {2}), zero = number(b, "zero", 0);
  const int32_t i_end = number(b, "i_end"), y = floats(b, "y", {2});
  b.op(tflite::BuiltinOperator_WHILE, {zero, x}, {i_end, y}, tflite::BuiltinOptions_WhileOptions,
       tflite::CreateWhileOptions(b.fbb(), 1, 2).Union());
  b.end_subgraph({x}, {y});
  int32_t i = number(b, "i"), data = floats(b, "data", {2});
  const int32_t goes_on = boolean(b, "goes_on");
  b.op(tflite::BuiltinOperator_LESS, {i, number(b, "most", 1)}, {goes_on});
  b.end_subgraph({i, data}, {goes_on});
  i = number(b, "j"), data = floats(b, "more", {2});
  const int32_t half = floats(b, "half", {2});
  b.op(tflite::BuiltinOperator_ADD, {data, data}, {half}, tflite::BuiltinOptions_AddOptions,
       tflite::CreateAddOptions(b.fbb()).Union());
  const std::vector<uint8_t> model = b.finish({i, data}, {i, half});
  try {
    packed(model);
    FAIL() << "packed";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("more rounds than are worth unrolling"), std::string::npos)
        << error.what();
  }
}

// [[0, 5, 0, 0], [0, 0, 0, -2], [7, 0, 3, 0]] by rows, of which the non-zero columns are listed.
TEST(TfliteControl, SparseWeightsAreFilledUp) {
  TfliteBuilder b;
  const auto list = [&](const std::vector<int32_t>& values) {
    return tflite::CreateInt32VectorDirect(b.fbb(), &values).Union();
  };
  const std::vector<int32_t> order = {0, 1};
  const std::vector<flatbuffers::Offset<tflite::DimensionMetadata>> levels = {
      tflite::CreateDimensionMetadata(b.fbb(), tflite::DimensionType_DENSE, 3),
      tflite::CreateDimensionMetadata(b.fbb(), tflite::DimensionType_SPARSE_CSR, 0,
                                      tflite::SparseIndexVector_Int32Vector, list({0, 1, 2, 4}),
                                      tflite::SparseIndexVector_Int32Vector, list({1, 3, 0, 2}))};
  const auto sparsity = tflite::CreateSparsityParametersDirect(b.fbb(), &order, nullptr, &levels);
  const int32_t x = floats(b, "x", {1, 4});
  const int32_t w = b.tensor({.name = "w",
                              .type = tflite::TensorType_FLOAT32,
                              .shape = {3, 4},
                              .data = bytes_of<float>({5, -2, 7, 3}),
                              .sparsity = sparsity});
  const int32_t dense = floats(b, "dense", {3, 4}), y = floats(b, "y", {1, 3});
  b.op(tflite::BuiltinOperator_DENSIFY, {w}, {dense});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, dense}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  EXPECT_EQ(run(b.finish({x}, {y}), {bytes_of<float>({1, 10, 100, 1000})}),
            (std::vector<float>{50, -2000, 307}));
}

// The first of equals comes first.
TEST(TfliteControl, TheLargestComeWithTheirPositions) {
  TfliteBuilder b;
  const int32_t x = floats(b, "x", {2, 4}), values = floats(b, "values", {2, 3});
  const int32_t positions = b.tensor({.name = "at", .type = tflite::TensorType_INT32, .shape = {2, 3}});
  b.op(tflite::BuiltinOperator_TOPK_V2, {x, number(b, "k", 3)}, {values, positions});
  const auto outputs =
      run_all(b.finish({x}, {values, positions}), {bytes_of<float>({3, 7, 7, -1, -4, -3, -9, -4})});
  EXPECT_EQ(values_of<float>(outputs.at(0)), (std::vector<float>{7, 7, 3, -3, -4, -4}));
  EXPECT_EQ(values_of<int32_t>(outputs.at(1)), (std::vector<int32_t>{1, 2, 0, 1, 0, 3}));
}

// ---- LSTM in both directions ----

constexpr size_t kGates = 4, kChannels = 3, kCells = 2, kSteps = 5;

// One direction: gates input, forget, cell, output.
struct Lstm {
  std::vector<std::vector<float>> input_weights, recurrent_weights, bias;

  explicit Lstm(int seed) {
    const auto fill = [&](size_t count) {
      std::vector<float> values(count);
      for (float& value : values) value = static_cast<float>(++seed * 29 % 17 - 8) / 8.0f;
      return values;
    };
    for (size_t gate = 0; gate < kGates; ++gate) {
      input_weights.push_back(fill(kCells * kChannels));
      recurrent_weights.push_back(fill(kCells * kCells));
      bias.push_back(fill(kCells));
    }
  }

  // Writes `steps` rows of states to rows[offset], over the sequence or from its end.
  void run(const std::vector<float>& x, bool is_backward, size_t offset, std::vector<double>& rows) const {
    std::vector<double> h(kCells), c(kCells);
    for (size_t i = 0; i < kSteps; ++i) {
      const size_t step = is_backward ? kSteps - 1 - i : i;
      std::vector<double> sums[kGates];
      for (size_t gate = 0; gate < kGates; ++gate) {
        for (size_t cell = 0; cell < kCells; ++cell) {
          double sum = static_cast<double>(bias[gate][cell]);
          for (size_t k = 0; k < kChannels; ++k)
            sum += static_cast<double>(input_weights[gate][cell * kChannels + k] * x[step * kChannels + k]);
          for (size_t k = 0; k < kCells; ++k)
            sum += static_cast<double>(recurrent_weights[gate][cell * kCells + k]) * h[k];
          sums[gate].push_back(sum);
        }
      }
      const auto logistic = [](double value) { return 1 / (1 + std::exp(-value)); };
      for (size_t cell = 0; cell < kCells; ++cell) {
        c[cell] = logistic(sums[1][cell]) * c[cell] + logistic(sums[0][cell]) * std::tanh(sums[2][cell]);
        h[cell] = logistic(sums[3][cell]) * std::tanh(c[cell]);
        rows[step * 2 * kCells + offset + cell] = h[cell];
      }
    }
  }
};

TEST(TfliteControl, AnLstmRunsInBothDirections) {
  const Lstm forward(1), backward(100);
  TfliteBuilder b;
  const int32_t cells = static_cast<int32_t>(kCells), channels = static_cast<int32_t>(kChannels);
  const int32_t x = floats(b, "x", {1, static_cast<int32_t>(kSteps), channels});
  const int32_t y = floats(b, "y", {1, static_cast<int32_t>(kSteps), 2 * cells});
  std::vector<int32_t> inputs = {x};
  for (const Lstm* lstm : {&forward, &backward}) {
    for (const auto& weights : lstm->input_weights)
      inputs.push_back(floats(b, "w", {cells, channels}, weights));
    for (const auto& weights : lstm->recurrent_weights)
      inputs.push_back(floats(b, "r", {cells, cells}, weights));
    inputs.insert(inputs.end(), 3, -1);  // peephole weights
    for (const auto& bias : lstm->bias) inputs.push_back(floats(b, "b", {cells}, bias));
    inputs.insert(inputs.end(), 2, -1);  // projection
  }
  for (int state = 0; state < 4; ++state) {
    inputs.push_back(b.tensor(
        {.name = "state", .type = tflite::TensorType_FLOAT32, .shape = {1, cells}, .is_variable = true}));
  }
  inputs.insert(inputs.end(), 9, -1);  // auxiliary
  b.op(tflite::BuiltinOperator_BIDIRECTIONAL_SEQUENCE_LSTM, inputs, {y},
       tflite::BuiltinOptions_BidirectionalSequenceLSTMOptions,
       tflite::CreateBidirectionalSequenceLSTMOptions(b.fbb(), tflite::ActivationFunctionType_TANH, 0, 0,
                                                      /*merge_outputs=*/true, /*time_major=*/false)
           .Union());

  std::vector<float> sequence(kSteps * kChannels);
  for (size_t i = 0; i < sequence.size(); ++i) sequence[i] = static_cast<float>(i * 5 % 7) / 4.0f - 0.75f;
  std::vector<double> expected(kSteps * 2 * kCells);
  forward.run(sequence, false, 0, expected);
  backward.run(sequence, true, kCells, expected);
  const std::vector<float> found = run(b.finish({x}, {y}), {bytes_of(sequence)});
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace qplan::testing::tflite_control_test
