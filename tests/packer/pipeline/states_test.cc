// Functions that keep tensors between runs: streaming networks as TFLite writes them, and the same function
// with and without states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "src/packer/error.h"
#include "src/packer/evaluate/evaluate.h"
#include "src/packer/inspect/inspect.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/text/text.h"
#include "tests/packer/import/import_helpers.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::pipeline::states_test {
namespace {

using tflite_test::bytes_of;
using tflite_test::import_body;
using tflite_test::import_error;
using tflite_test::TensorSpec;
using tflite_test::TfliteBuilder;
using Values = std::vector<int8_t>;

// ---- a wake-word network ----

constexpr int kFrames = 3, kFeatures = 4, kClasses = 2;  // kept frames of 4 features
constexpr int kInputZero = -3, kOutputZero = 7;

Values pattern(size_t count, int seed) {
  Values values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<int8_t>((static_cast<int>(i) * 7 + seed * 13) % 23 - 11);
  return values;
}

std::vector<uint8_t> raw(const Values& values) { return {values.begin(), values.end()}; }

enum class Cut { kStridedSlice, kSplitV };
enum class Variable { kResource, kIsVariable };

// A ring buffer of frames: cat = concat(buffer, x), y = fully connected of cat, buffer = cat without its
// first frame. All multipliers are 1.
std::vector<uint8_t> wake_word(Cut cut, Variable variable, const Values& first) {
  TfliteBuilder b;
  const auto frames = [&](const char* name, int count) {
    return b.activation(name, {1, count, kFeatures}, 0.5f, kInputZero);
  };
  const auto handle = [&](const char* shared_name) {
    const int32_t tensor = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE, .shape = {1}});
    const auto options = tflite::CreateVarHandleOptionsDirect(b.fbb(), "", shared_name).Union();
    b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {tensor}, tflite::BuiltinOptions_VarHandleOptions, options);
    return tensor;
  };
  const int32_t x = frames("x", 1);
  int32_t buffer = 0, variable_handle = 0;
  if (variable == Variable::kResource) {
    b.op(tflite::BuiltinOperator_CALL_ONCE, {}, {}, tflite::BuiltinOptions_CallOnceOptions,
         tflite::CreateCallOnceOptions(b.fbb(), 1).Union());
    variable_handle = handle("ring");
    buffer = frames("ring", kFrames);
    b.op(tflite::BuiltinOperator_READ_VARIABLE, {variable_handle}, {buffer});
  } else {
    buffer = b.tensor({.name = "ring",
                       .shape = {1, kFrames, kFeatures},
                       .scales = {0.5f},
                       .zero_points = {kInputZero},
                       .is_variable = true});
  }
  const int32_t cat = frames("cat", kFrames + 1);
  b.op(tflite::BuiltinOperator_CONCATENATION, {buffer, x}, {cat}, tflite::BuiltinOptions_ConcatenationOptions,
       tflite::CreateConcatenationOptions(b.fbb(), 1).Union());
  const int32_t next = variable == Variable::kResource ? frames("next", kFrames) : buffer;
  if (cut == Cut::kStridedSlice) {
    b.op(tflite::BuiltinOperator_STRIDED_SLICE,
         {cat, b.ints("begin", {0, 1, 0}), b.ints("end", {1, kFrames + 1, kFeatures}),
          b.ints("step", {1, 1, 1})},
         {next}, tflite::BuiltinOptions_StridedSliceOptions,
         tflite::CreateStridedSliceOptions(b.fbb()).Union());
  } else {
    b.op(tflite::BuiltinOperator_SPLIT_V,
         {cat, b.ints("sizes", {1, kFrames}),
          b.tensor({.name = "axis", .type = tflite::TensorType_INT32, .data = bytes_of<int32_t>({1})})},
         {frames("oldest", 1), next}, tflite::BuiltinOptions_SplitVOptions,
         tflite::CreateSplitVOptions(b.fbb(), 2).Union());
  }
  if (variable == Variable::kResource)
    b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {variable_handle, next}, {});
  const int32_t flat = b.activation("flat", {1, (kFrames + 1) * kFeatures}, 0.5f, kInputZero);
  b.op(tflite::BuiltinOperator_RESHAPE, {cat, b.ints("shape", {1, (kFrames + 1) * kFeatures})}, {flat});
  const int32_t w = b.tensor({.name = "w",
                              .shape = {kClasses, (kFrames + 1) * kFeatures},
                              .scales = {0.25f},
                              .zero_points = {0},
                              .data = raw(pattern(kClasses * (kFrames + 1) * kFeatures, 1))});
  const int32_t y = b.activation("y", {1, kClasses}, 0.125f, kOutputZero);
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {flat, w, -1}, {y},
       tflite::BuiltinOptions_FullyConnectedOptions, tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  if (variable == Variable::kResource) {
    b.end_subgraph({x}, {y});
    const int32_t inner = handle("ring");
    const int32_t value = b.tensor({.name = "value",
                                    .shape = {1, kFrames, kFeatures},
                                    .scales = {0.5f},
                                    .zero_points = {kInputZero},
                                    .data = raw(first)});
    b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {inner, value}, {});
    return b.finish({}, {});
  }
  return b.finish({x}, {y});
}

// The same in plain loops.
class Oracle {
 public:
  explicit Oracle(Values first) : frames_(std::move(first)) {}

  Values run(const Values& x) {
    frames_.insert(frames_.end(), x.begin(), x.end());
    const Values w = pattern(kClasses * (kFrames + 1) * kFeatures, 1);
    Values y;
    for (size_t o = 0; o < kClasses; ++o) {
      int sum = 0;
      for (size_t i = 0; i < frames_.size(); ++i)
        sum += (frames_[i] - kInputZero) * w[o * frames_.size() + i];
      y.push_back(static_cast<int8_t>(std::clamp(sum + kOutputZero, -128, 127)));
    }
    frames_.erase(frames_.begin(), frames_.begin() + kFeatures);
    return y;
  }

 private:
  Values frames_;
};

Values run(evaluate::ReferenceSession& session, const Values& x) {
  std::ranges::copy(x, reinterpret_cast<int8_t*>(session.io(QPLAN_INPUT, 0).data()));
  session.invoke();
  const auto bytes = session.io(QPLAN_OUTPUT, 0);
  return {bytes.begin(), bytes.end()};
}

// Frames small enough for sums that do not saturate, and not so small that they are all alike.
Values frame(int index) {
  Values x = pattern(kFeatures, index + 3);
  for (int8_t& value : x) value = static_cast<int8_t>(value / 4 + kInputZero);
  return x;
}

TEST(StreamingNetworks, FiveRunsOfARingBufferAreAsWrittenOut) {
  Values first = pattern(kFrames * kFeatures, 5);
  for (int8_t& value : first) value = static_cast<int8_t>(value / 4);
  const Values zero_points(first.size(), kInputZero);
  for (const Cut cut : {Cut::kStridedSlice, Cut::kSplitV}) {
    for (const Variable variable : {Variable::kResource, Variable::kIsVariable}) {
      const std::vector<uint8_t> model = wake_word(cut, variable, first);
      for (const char* target : {"cpu", "cpu,arch=aarch64", "cpu,arch=cortex-m4,isa=dsp"}) {
        for (const schedule::Fuse fuse : {schedule::Fuse::kOff, schedule::Fuse::kMemory}) {
          PackOptions options;
          options.target = target;
          options.fuse = fuse;
          const AlignedBytes plan = pack(model, "wake_word.tflite", options);
          evaluate::ReferenceSession session(plan.span());
          // TFLite fills is_variable tensors of int8 with their zero point.
          Oracle oracle(variable == Variable::kResource ? first : zero_points);
          bool is_constant = true;
          Values last;
          for (int i = 0; i < 5; ++i) {
            const Values expected = oracle.run(frame(i));
            EXPECT_EQ(run(session, frame(i)), expected) << target << " run " << i;
            is_constant = is_constant && (i == 0 || expected == last);
            last = expected;
          }
          EXPECT_FALSE(is_constant);
          const inspect::PlanReader reader(plan.span());
          const format::Function& main = reader.view().function(0);
          ASSERT_EQ(format::count_of(main.states()), 1u);
          EXPECT_EQ(format::count_of(main.inputs()), 1u);
          EXPECT_EQ(format::count_of(main.outputs()), 1u);
          // Everything reads the ring before it is written: nothing is copied after a run.
          const format::State& state = *main.states()->Get(0);
          EXPECT_TRUE(
              format::same_range(reader.view().tensor(state.input()), reader.view().tensor(state.output())));
        }
      }
    }
  }
}

// ---- recurrent layers ----

using Floats = std::vector<float>;

Floats lstm_values(size_t count, int* seed) {
  Floats values(count);
  for (float& value : values) value = static_cast<float>(++*seed * 29 % 17 - 8) / 8.0f;
  return values;
}

// An LSTM of two cells over so many steps of three channels; 0: one for each run, by the operator LSTM. type:
// of the sequence.
std::vector<uint8_t> float_lstm(int steps, tflite::TensorType type = tflite::TensorType_FLOAT32) {
  TfliteBuilder b;
  int seed = 0;
  const auto floats = [&](std::vector<int32_t> shape) {
    const auto count = static_cast<size_t>(shape.size() == 2 ? shape[0] * shape[1] : shape[0]);
    return b.tensor({.name = "weights",
                     .type = tflite::TensorType_FLOAT32,
                     .shape = shape,
                     .data = bytes_of(lstm_values(count, &seed))});
  };
  const auto state = [&](const char* name) {
    return b.tensor({.name = name, .type = tflite::TensorType_FLOAT32, .shape = {1, 2}, .is_variable = true});
  };
  const auto sequence = [&](const char* name, int32_t channels) {
    const std::vector<int32_t> step = {1, channels}, all = {1, steps, channels};
    return b.tensor({.name = name, .type = type, .shape = steps == 0 ? step : all});
  };
  const int32_t x = sequence("x", 3), y = sequence("y", 2);
  std::vector<int32_t> inputs = {x};
  for (int gate = 0; gate < 4; ++gate) inputs.push_back(floats({2, 3}));
  for (int gate = 0; gate < 4; ++gate) inputs.push_back(floats({2, 2}));
  for (int peephole = 0; peephole < 3; ++peephole) inputs.push_back(-1);
  for (int gate = 0; gate < 4; ++gate) inputs.push_back(floats({2}));
  for (const int32_t tensor : {-1, -1, state("h"), state("c")}) inputs.push_back(tensor);
  const auto tanh = tflite::ActivationFunctionType_TANH;
  if (steps == 0) {
    b.op(tflite::BuiltinOperator_LSTM, inputs, {y}, tflite::BuiltinOptions_LSTMOptions,
         tflite::CreateLSTMOptions(b.fbb(), tanh).Union());
  } else {
    b.op(tflite::BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, {y},
         tflite::BuiltinOptions_UnidirectionalSequenceLSTMOptions,
         tflite::CreateUnidirectionalSequenceLSTMOptions(b.fbb(), tanh).Union());
  }
  return b.finish({x}, {y});
}

// The same by the basic form of LSTM: one matrix, of the input's and the state's columns, whose gates come in
// the order input, cell, forget, output.
std::vector<uint8_t> basic_lstm() {
  TfliteBuilder b;
  int seed = 0;
  const Floats of_input = lstm_values(24, &seed), of_state = lstm_values(16, &seed),
               of_bias = lstm_values(8, &seed);
  Floats weights, bias;
  for (const int gate : {0, 2, 1, 3}) {
    for (int row = gate * 2; row < gate * 2 + 2; ++row) {
      weights.insert(weights.end(), of_input.begin() + row * 3, of_input.begin() + row * 3 + 3);
      weights.insert(weights.end(), of_state.begin() + row * 2, of_state.begin() + row * 2 + 2);
      bias.push_back(of_bias[static_cast<size_t>(row)]);
    }
  }
  const auto tensor = [&](const char* name, std::vector<int32_t> shape, const Floats& data = {},
                          bool is_variable = false) {
    return b.tensor({.name = name,
                     .type = tflite::TensorType_FLOAT32,
                     .shape = std::move(shape),
                     .data = bytes_of(data),
                     .is_variable = is_variable});
  };
  const int32_t x = tensor("x", {1, 3}), y = tensor("y", {1, 2});
  const int32_t h = tensor("h", {1, 2}, {}, true), c = tensor("c", {1, 2}, {}, true);
  b.op(tflite::BuiltinOperator_LSTM, {x, h, tensor("w", {8, 5}, weights), tensor("b", {8}, bias), c},
       {y, tensor("cell", {1, 2}), tensor("t", {1, 5}), tensor("u", {1, 8})},
       tflite::BuiltinOptions_LSTMOptions,
       tflite::CreateLSTMOptions(b.fbb(), tflite::ActivationFunctionType_TANH, 0, 0,
                                 tflite::LSTMKernelType_BASIC)
           .Union());
  return b.finish({x}, {y});
}

// As TFLite's variable tensors, which nobody resets between invokes.
TEST(TfliteVariables, AnLstmGoesOnWhereTheRunBeforeEnded) {
  const AlignedBytes whole_plan = pack(float_lstm(6), "whole.tflite", {});
  evaluate::ReferenceSession whole(whole_plan.span());
  Floats sequence(18);
  for (size_t i = 0; i < sequence.size(); ++i) sequence[i] = static_cast<float>(i * 5 % 7) / 4.0f - 0.75f;
  std::memcpy(whole.io(QPLAN_INPUT, 0).data(), sequence.data(), sequence.size() * sizeof(float));
  whole.invoke();
  const auto expected = whole.io(QPLAN_OUTPUT, 0);
  const auto expect_in_parts = [&](const std::vector<uint8_t>& model) {
    const AlignedBytes plan = pack(model, "part.tflite", {});
    evaluate::ReferenceSession part(plan.span());
    const std::span<uint8_t> input = part.io(QPLAN_INPUT, 0);
    const auto* from = reinterpret_cast<const uint8_t*>(sequence.data());
    for (size_t run = 0; run < sequence.size() * sizeof(float) / input.size(); ++run) {
      std::memcpy(input.data(), from + run * input.size(), input.size());
      part.invoke();
      const auto found = part.io(QPLAN_OUTPUT, 0);
      EXPECT_TRUE(std::ranges::equal(found, expected.subspan(run * found.size(), found.size()))) << run;
    }
  };
  expect_in_parts(float_lstm(2));
  expect_in_parts(float_lstm(0));
  expect_in_parts(basic_lstm());
}

TEST(TfliteVariables, AnLstmOf16BitsIsRefusedWithWhatToDo) {
  const std::string text = import_error(float_lstm(2, tflite::TensorType_INT16));
  for (const char* part : {"int16 activations (16x8 quantisation)", "quantise it with int8 activations",
                           "UNIDIRECTIONAL_SEQUENCE_LSTM with int16 input"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

// All multipliers are 1: what the layer computes is a product, three results of which each unit remembers.
TEST(TfliteVariables, AnSvdfSumsTheResultsOfThreeRuns) {
  TfliteBuilder b;
  const Values feature = {1, 2, -3, 4};                    // [unit][channel]
  const std::vector<int16_t> time = {1, -2, 3, 2, 0, -1};  // [unit][run], the oldest first
  const int32_t x = b.activation("x", {1, 2}, 1.0f, 0), y = b.activation("y", {1, 2}, 1.0f, 0);
  const int32_t feature_weights = b.tensor(
      {.name = "feature", .shape = {2, 2}, .scales = {1.0f}, .zero_points = {0}, .data = bytes_of(feature)});
  const int32_t time_weights = b.tensor({.name = "time",
                                         .type = tflite::TensorType_INT16,
                                         .shape = {2, 3},
                                         .scales = {1.0f},
                                         .zero_points = {0},
                                         .data = bytes_of(time)});
  const int32_t state = b.tensor({.name = "state",
                                  .type = tflite::TensorType_INT16,
                                  .shape = {1, 6},
                                  .scales = {1.0f},
                                  .zero_points = {0},
                                  .is_variable = true});
  b.op(tflite::BuiltinOperator_SVDF, {x, feature_weights, time_weights, -1, state}, {y},
       tflite::BuiltinOptions_SVDFOptions, tflite::CreateSVDFOptions(b.fbb(), 1).Union());
  const AlignedBytes plan = pack(b.finish({x}, {y}), "svdf.tflite", {});
  evaluate::ReferenceSession session(plan.span());
  int kept[2][3] = {};
  for (int i = 0; i < 5; ++i) {
    const Values frame = {static_cast<int8_t>(i + 1), static_cast<int8_t>(2 - i)};
    Values expected;
    for (size_t unit = 0; unit < 2; ++unit) {
      std::rotate(kept[unit], kept[unit] + 1, kept[unit] + 3);
      kept[unit][2] = feature[unit * 2] * frame[0] + feature[unit * 2 + 1] * frame[1];
      int sum = 0;
      for (size_t t = 0; t < 3; ++t) sum += time[unit * 3 + t] * kept[unit][t];
      expected.push_back(static_cast<int8_t>(sum));
    }
    EXPECT_EQ(run(session, frame), expected) << i;
  }
}

// ---- import ----

TEST(TfliteVariables, AreLastParametersAndResults) {
  const std::vector<uint8_t> model = wake_word(Cut::kStridedSlice, Variable::kResource, Values(12, 9));
  const ir::Module module = import_tflite(model, "net.tflite");
  const std::vector<ir::State> states = ir::states_of(module.main());
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].param, 1u);
  EXPECT_EQ(states[0].result, 1u);
  EXPECT_EQ(states[0].initial, std::vector<uint8_t>{9});
  const std::string text = text::print(module.main(), {.metadata = false, .names = false});
  EXPECT_NE(text.find("def @main(%x: Tensor[(1, 1, 4), int8], %ring: Tensor[(1, 3, 4), int8], "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("states=[[1, 1]], state_bytes=[[9]]"), std::string::npos) << text;
}

TEST(TfliteVariables, TheTextFormKeepsThem) {
  const std::vector<uint8_t> model = wake_word(Cut::kSplitV, Variable::kResource, pattern(12, 2));
  const std::string text = text::print(import_tflite(model, "net.tflite"));
  const ir::Module parsed = text::parse(text, "again");
  EXPECT_EQ(text::print(parsed), text);
  EXPECT_EQ(ir::states_of(parsed.main())[0].initial, raw(pattern(12, 2)));
}

// An assignment that nothing reads in a later run is no state; nor is a variable that never changes.
TEST(TfliteVariables, OnlyWhatALaterRunReadsIsAState) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0), y = b.activation("y", {1, 4}, 0.5f, 0),
                z = b.activation("z", {1, 4}, 0.5f, 0);
  const int32_t handle = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE, .shape = {}});
  b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {handle}, tflite::BuiltinOptions_VarHandleOptions,
       tflite::CreateVarHandleOptionsDirect(b.fbb(), "c", "v").Union());
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {handle, x}, {});
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {handle}, {y});
  b.op(tflite::BuiltinOperator_RELU, {y}, {z});
  const ir::Module module = import_tflite(b.finish({x}, {z}), "net.tflite");
  EXPECT_TRUE(ir::states_of(module.main()).empty());
  EXPECT_EQ(module.main().params().size(), 1u);
}

TEST(TfliteVariables, WithoutAFirstValueTheyAreZero) {
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 3), y = b.activation("y", {1, 4}, 0.5f, 3);
  const int32_t handle = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE, .shape = {}});
  b.op(tflite::BuiltinOperator_VAR_HANDLE, {}, {handle});
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {handle}, {y});
  b.op(tflite::BuiltinOperator_ASSIGN_VARIABLE, {handle, x}, {});
  const AlignedBytes plan = pack(b.finish({x}, {y}), "delay.tflite", {});
  evaluate::ReferenceSession session(plan.span());
  EXPECT_EQ(run(session, {1, 2, 3, 4}), (Values{0, 0, 0, 0}));
  EXPECT_EQ(run(session, {5, 6, 7, 8}), (Values{1, 2, 3, 4}));
  EXPECT_EQ(run(session, {0, 0, 0, 0}), (Values{5, 6, 7, 8}));
}

TEST(TfliteVariables, WhatCannotBeAStateIsNamed) {
  // A handle from the caller.
  TfliteBuilder b;
  const int32_t x = b.activation("x", {1, 4}, 0.5f, 0), y = b.activation("y", {1, 4}, 0.5f, 0);
  const int32_t handle = b.tensor({.name = "handle", .type = tflite::TensorType_RESOURCE, .shape = {}});
  b.op(tflite::BuiltinOperator_READ_VARIABLE, {handle}, {y});
  EXPECT_NE(import_error(b.finish({x}, {y}))
                .find("READ_VARIABLE with a resource that no VAR_HANDLE of its subgraph made"),
            std::string::npos);
  TfliteBuilder v;
  const int32_t input =
      v.tensor({.name = "v", .shape = {4}, .scales = {0.5f}, .zero_points = {0}, .is_variable = true});
  EXPECT_EQ(import_error(v.finish({input}, {input})), "-48: tflite: 'net.tflite': input 'v' is a variable");
  // An initial value that an operator computes.
  TfliteBuilder c;
  const int32_t in = c.activation("x", {1, 4}, 0.5f, 0);
  c.op(tflite::BuiltinOperator_CALL_ONCE, {}, {}, tflite::BuiltinOptions_CallOnceOptions,
       tflite::CreateCallOnceOptions(c.fbb(), 1).Union());
  c.end_subgraph({in}, {in});
  const int32_t made = c.tensor({.name = "made", .type = tflite::TensorType_FLOAT32, .shape = {4}});
  c.op(tflite::BuiltinOperator_RANDOM_UNIFORM, {}, {made});
  const std::string error = import_error(c.finish({}, {}));
  EXPECT_NE(error.find("RANDOM_UNIFORM inside CALL_ONCE ('made')"), std::string::npos) << error;
}

// ---- coverage ----

// Two convolutions of [1, 4, 4, 2] with weights [2, 3, 3, 2], and a cosine between them if it is asked for.
std::vector<uint8_t> two_convolutions(bool with_cosine) {
  TfliteBuilder b;
  const auto data = [&](const char* name) { return b.activation(name, {1, 4, 4, 2}, 0.5f, 0); };
  const int32_t w = b.tensor({.name = "w",
                              .shape = {2, 3, 3, 2},
                              .scales = {0.5f},
                              .zero_points = {0},
                              .data = raw(pattern(36, 1))});
  const auto conv = [&](int32_t from, int32_t to) {
    b.op(tflite::BuiltinOperator_CONV_2D, {from, w, -1}, {to}, tflite::BuiltinOptions_Conv2DOptions,
         tflite::CreateConv2DOptions(b.fbb(), tflite::Padding_SAME, 1, 1).Union());
  };
  const int32_t x = data("x"), a = data("a"), y = data("y");
  conv(x, a);
  const int32_t cosine = with_cosine ? data("cosine") : a;
  if (with_cosine) b.op(tflite::BuiltinOperator_COS, {a}, {cosine});
  conv(cosine, y);
  return b.finish({x}, {y});
}

TEST(Coverage, CountsOperatorsAndMacsOnBothSidesOfWhatIsMissing) {
  const std::string text = coverage_json(two_convolutions(true), "net.tflite", {});
  // 16 positions of 36 weights, twice.
  EXPECT_NE(text.find("\"operators\": {\n    \"total\": 3,\n    \"run\": 2\n  }"), std::string::npos) << text;
  EXPECT_NE(text.find("\"macs\": {\n    \"total\": 1152,\n    \"run\": 1152\n  }"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\"all_run\": false"), std::string::npos) << text;
  EXPECT_NE(text.find("\"operator\": \"COS\""), std::string::npos) << text;
}

TEST(Coverage, OfAModelThatPacksIsWhole) {
  const std::string text = coverage_json(two_convolutions(false), "net.tflite", {});
  EXPECT_NE(text.find("\"total\": 2,\n    \"run\": 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\"all_run\": true"), std::string::npos) << text;
  EXPECT_NE(text.find("\"missing\": []"), std::string::npos) << text;
}

// A layer in float16, which is not imported, counts by its weights: 3 rows of 2 x 4.
TEST(Coverage, MacsOfALayerThatIsNotImportedAreThoseOfItsWeights) {
  TfliteBuilder b;
  const int32_t x = b.tensor({.name = "x", .type = tflite::TensorType_FLOAT16, .shape = {3, 4}});
  const int32_t y = b.tensor({.name = "y", .type = tflite::TensorType_FLOAT16, .shape = {3, 2}});
  const int32_t w = b.tensor({.name = "w",
                              .type = tflite::TensorType_FLOAT16,
                              .shape = {2, 4},
                              .data = std::vector<uint8_t>(16, 0)});
  b.op(tflite::BuiltinOperator_FULLY_CONNECTED, {x, w, -1}, {y}, tflite::BuiltinOptions_FullyConnectedOptions,
       tflite::CreateFullyConnectedOptions(b.fbb()).Union());
  const std::string text = coverage_json(b.finish({x}, {y}), "net.tflite", {});
  EXPECT_NE(text.find("\"macs\": {\n    \"total\": 24,\n    \"run\": 0\n  }"), std::string::npos) << text;
}

// ---- the IR ----

std::string state_error(const std::string& attrs) {
  try {
    text::parse("def @main(%x: Tensor[(4), int8], %s: Tensor[(4), int8], " + attrs +
                    ") {\n  %0 = qnn.add(%x, %s, 1f, 0, 1f, 0, 1f, 0);\n  (%0, %0)\n}\n",
                "text");
  } catch (const PackError& error) {
    return error.what();
  }
  return "parsed";
}

TEST(StatesOfTheIr, WrongAttributesAreRefused) {
  EXPECT_EQ(state_error("states=[[1, 1]], state_bytes=[[0]]"), "parsed");
  EXPECT_EQ(state_error("states=[[1, 1]], state_bytes=[[1, 2, 3, 255]]"), "parsed");
  for (const char* attrs :
       {"states=[[1, 1]]", "state_bytes=[[1]]", "states=[[0, 1]], state_bytes=[[0]]",
        "states=[[1, 0]], state_bytes=[[0]]", "states=[[1, 1]], state_bytes=[[256]]",
        "states=[[1, 1]], state_bytes=[[-1]]", "states=[[1, 1]], state_bytes=[[1, 2]]",
        "states=[[1, 1]], state_bytes=[[0], [0]]", "states=[[0, 0], [1, 1]], state_bytes=[[0], [0]]",
        "states=1, state_bytes=[[0]]", "states=[[1, 1, 1]], state_bytes=[[0]]"}) {
    EXPECT_NE(state_error(attrs).find("function 'main': "), std::string::npos) << attrs << state_error(attrs);
  }
}

// Two convolutions over a window of rows that moves on, with a window of the first one's outputs that moves
// too, and a counter that is read after it was written: with states, and as inputs and outputs.
std::string two_layers(bool with_states) {
  const std::string conv =
      ", 0, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\", padding=[0, 1, 0, 1]);\n";
  const auto constant = [](int seed) {
    std::string text = "const(Tensor[(8, 3, 3, 8), int8], [";
    for (int i = 0; i < 8 * 9 * 8; ++i)
      text += (i == 0 ? "" : ", ") + std::to_string((i * 37 + seed) % 15 - 7);
    return text + "])";
  };
  const std::string requantize = ", 0.01f, 0, 1f, 0, out_dtype=\"int8\");\n";
  return "def @main(%x: Tensor[(1, 2, 16, 8), int8], %a: Tensor[(1, 10, 16, 8), int8], "
         "%b: Tensor[(1, 2, 16, 8), int8], %n: Tensor[(1, 2, 16, 8), int8]" +
         std::string(with_states ? ", states=[[1, 1], [2, 2], [3, 3]], state_bytes=[[0], [3], [1]]" : "") +
         ") {\n"
         "  %0 = concatenate((%a, %x), axis=1);\n"
         "  %1 = qnn.conv2d(%0, " +
         constant(1) + conv + "  %2 = qnn.requantize(%1" + requantize + "  %3 = qnn.conv2d(%2, " +
         constant(2) + conv + "  %4 = qnn.requantize(%3" + requantize +
         "  %5 = strided_slice(%0, begin=[0, 2, 0, 0], end=[1, 12, 16, 8], strides=[1, 1, 1, 1]);\n"
         "  %6 = strided_slice(%4, begin=[0, 6, 0, 0], end=[1, 8, 16, 8], strides=[1, 1, 1, 1]);\n"
         "  %7 = qnn.add(%6, %b, 1f, 0, 1f, 0, 1f, 0);\n"
         "  %8 = qnn.add(%n, %x, 1f, 0, 1f, 0, 1f, 0);\n"
         "  %9 = qnn.add(%8, %n, 1f, 0, 1f, 0, 1f, 0);\n"
         "  %10 = qnn.add(%7, %9, 1f, 0, 1f, 0, 1f, 0);\n"
         "  (%10, %5, %6, %8)\n}\n";
}

std::vector<uint8_t> bytes_of_text(const std::string& text) { return {text.begin(), text.end()}; }

TEST(StatesOfTheIr, ACallerThatCarriesTheStatesGetsTheSameBytes) {
  const std::vector<uint8_t> plain = bytes_of_text(two_layers(false)), with = bytes_of_text(two_layers(true));
  const AlignedBytes reference = pack(plain, "plain.relay", {});
  bool has_cascade = false, has_region = false;
  for (const char* target : {"cpu", "cpu,arch=cortex-m4,isa=dsp", "vta,cpu"}) {
    for (const schedule::Fuse fuse : {schedule::Fuse::kOff, schedule::Fuse::kAuto, schedule::Fuse::kMemory}) {
      PackOptions options;
      options.target = target;
      options.fuse = fuse;
      const AlignedBytes plan = pack(with, "with.relay", options);
      const inspect::PlanReader reader(plan.span());
      for (uint32_t s = 0; s < reader.view().num_steps(); ++s) {
        has_region = has_region || reader.view().npu_step(s) != nullptr;
        has_cascade =
            has_cascade || (reader.view().npu_step(s) == nullptr &&
                            reader.view().step(s).params_type() == format::KernelParams_CascadeParams);
      }
      evaluate::ReferenceSession carried(reference.span()), kept(plan.span());
      std::ranges::fill(carried.io(QPLAN_INPUT, 1), uint8_t{0});
      std::ranges::fill(carried.io(QPLAN_INPUT, 2), uint8_t{3});
      std::ranges::fill(carried.io(QPLAN_INPUT, 3), uint8_t{1});
      std::mt19937 random(7);
      for (int i = 0; i < 6; ++i) {
        for (uint8_t& byte : carried.io(QPLAN_INPUT, 0)) byte = static_cast<uint8_t>(random() % 16 - 8);
        std::ranges::copy(carried.io(QPLAN_INPUT, 0), kept.io(QPLAN_INPUT, 0).begin());
        carried.invoke();
        kept.invoke();
        ASSERT_TRUE(std::ranges::equal(carried.io(QPLAN_OUTPUT, 0), kept.io(QPLAN_OUTPUT, 0)))
            << target << " run " << i;
        for (uint32_t s = 1; s < 4; ++s)
          std::ranges::copy(carried.io(QPLAN_OUTPUT, s), carried.io(QPLAN_INPUT, s).begin());
      }
    }
  }
  EXPECT_TRUE(has_cascade);
  EXPECT_TRUE(has_region);
}

// a := b, b := a, c := a constant, d := the input: every next value has bytes of its own.
TEST(StatesOfTheIr, ValuesThatNoNodeMakesAreCopied) {
  const std::string text =
      "def @main(%x: Tensor[(4), int8], %a: Tensor[(4), int8], %b: Tensor[(4), int8], %c: Tensor[(4), int8], "
      "%d: Tensor[(4), int8], states=[[1, 1], [2, 2], [3, 3], [4, 4]], "
      "state_bytes=[[1, 2, 3, 4], [5, 6, 7, 8], [9], [0]]) {\n"
      "  %0 = qnn.add(%a, %c, 1f, 0, 1f, 0, 1f, 0);\n"
      "  %1 = qnn.add(%0, %d, 1f, 0, 1f, 0, 1f, 0);\n"
      "  (%1, %b, %a, const(Tensor[(4), int8], [0, 0, 0, 10]), %x)\n}\n";
  for (const char* target : {"cpu", "cpu,arch=cortex-m4,isa=dsp"}) {
    PackOptions options;
    options.target = target;
    const AlignedBytes plan = pack(bytes_of_text(text), "swap.relay", options);
    evaluate::ReferenceSession session(plan.span());
    EXPECT_EQ(run(session, {1, 1, 1, 1}), (Values{10, 11, 12, 13}));
    EXPECT_EQ(run(session, {20, 20, 20, 20}), (Values{6, 7, 8, 19}));
    EXPECT_EQ(run(session, {0, 0, 0, 0}), (Values{21, 22, 23, 34}));
  }
}

}  // namespace
}  // namespace qplan::pipeline::states_test
