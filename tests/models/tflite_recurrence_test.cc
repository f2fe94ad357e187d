// Recurrent layers that TFLite's converter leaves as WHILE: a counter, the list of states, of which one row
// is replaced in each round, and the state. They run as one step over the sequence. The expected numbers are
// Keras's equations in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/models/model_session.h"
#include "tests/packer/import/tflite_builder.h"

namespace qplan::testing::tflite_recurrence_test {
namespace {

using tflite_test::bytes_of;
using tflite_test::TfliteBuilder;

enum class Kind { kLstm, kGruResetAfter, kGruResetBefore };

// keras.layers.LSTM(cells, return_sequences=True) or GRU; kernels as Keras has them: [k, gates * cells].
struct Layer {
  Kind kind = Kind::kLstm;
  size_t batch = 1, steps = 6, channels = 3, cells = 5;

  size_t gates() const { return kind == Kind::kLstm ? 4 : 3; }
  size_t columns() const { return gates() * cells; }

  static std::vector<float> numbers(size_t count, uint32_t seed, float scale) {
    std::vector<float> values(count);
    for (float& value : values) {
      seed = seed * 1664525u + 1013904223u;
      value = (static_cast<float>(seed >> 8) / 8388608.0f - 1.0f) * scale;
    }
    return values;
  }
  std::vector<float> kernel() const { return numbers(channels * columns(), 1, 0.9f); }
  std::vector<float> recurrent_kernel() const { return numbers(cells * columns(), 2, 0.7f); }
  std::vector<float> bias() const { return numbers(columns(), 3, 0.5f); }
  std::vector<float> recurrent_bias() const { return numbers(columns(), 4, 0.5f); }
  std::vector<float> data() const { return numbers(batch * steps * channels, 5, 2.0f); }

  // The states after each step, [batch, steps, cells].
  std::vector<double> run() const {
    const std::vector<float> w = kernel(), r = recurrent_kernel(), b = bias(), rb = recurrent_bias();
    const std::vector<float> x = data();
    const auto product = [&](const std::vector<float>& matrix, const auto& row, size_t column) {
      double sum = 0;
      for (size_t k = 0; k < row.size(); ++k)
        sum += static_cast<double>(matrix[k * columns() + column]) * static_cast<double>(row[k]);
      return sum;
    };
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    std::vector<double> result;
    for (size_t sample = 0; sample < batch; ++sample) {
      std::vector<double> h(cells), c(cells);
      for (size_t step = 0; step < steps; ++step) {
        const float* first = x.data() + (sample * steps + step) * channels;
        const std::vector<float> row(first, first + channels);
        const std::vector<double> old = h;
        std::vector<double> reset(cells);  // r * h of a GRU
        for (size_t i = 0; i < cells; ++i) {
          const size_t column = cells + i;
          reset[i] = old[i] * sigmoid(product(w, row, column) + static_cast<double>(b[column]) +
                                      product(r, old, column) + recurrent(rb, column));
        }
        for (size_t i = 0; i < cells; ++i) {
          const auto gate = [&](size_t g) {
            const size_t column = g * cells + i;
            return product(w, row, column) + static_cast<double>(b[column]) + product(r, old, column) +
                   recurrent(rb, column);
          };
          if (kind == Kind::kLstm) {
            c[i] = sigmoid(gate(1)) * c[i] + sigmoid(gate(0)) * std::tanh(gate(2));
            h[i] = sigmoid(gate(3)) * std::tanh(c[i]);
            continue;
          }
          const size_t column = 2 * cells + i;
          const double of_input = product(w, row, column) + static_cast<double>(b[column]);
          const double of_state = kind == Kind::kGruResetAfter
                                      ? sigmoid(gate(1)) * (product(r, old, column) + recurrent(rb, column))
                                      : product(r, reset, column);
          const double z = sigmoid(gate(0));
          h[i] = z * old[i] + (1 - z) * std::tanh(of_input + of_state);
        }
        result.insert(result.end(), h.begin(), h.end());
      }
    }
    return result;
  }

 private:
  // Keras has a second bias where the gate resets after the product.
  double recurrent(const std::vector<float>& rb, size_t column) const {
    return kind == Kind::kGruResetAfter ? static_cast<double>(rb[column]) : 0.0;
  }
};

// How the model writes the layer. Only the last field changes what it computes.
struct Form {
  bool updates_slices = false;  // the list by DYNAMIC_UPDATE_SLICE
  bool has_lists = false;       // lists of tensors by TensorFlow's operators
  bool last_only = false;       // return_sequences=False
  bool squares_state = false;   // an operator more in the body: the state that is kept is squared
};

std::vector<float> transposed(const std::vector<float>& matrix, size_t columns) {
  std::vector<float> result;
  for (size_t column = 0; column < columns; ++column) {
    for (size_t k = 0; k < matrix.size() / columns; ++k) result.push_back(matrix[k * columns + column]);
  }
  return result;
}

class LoopModel {
 public:
  LoopModel(const Layer& layer, const Form& form) : layer_(layer), form_(form) {}

  std::vector<uint8_t> build() {
    const int32_t x = floats("x", {batch_, steps_, channels_}), order = b_.ints("order", {1, 0, 2});
    const int32_t rows = floats("rows", {steps_, batch_, channels_});
    b_.op(tflite::BuiltinOperator_TRANSPOSE, {x, order}, {rows});
    std::vector<int32_t> arguments = {number("zero", 0), number("none", 0), first_list(), first_rows(rows),
                                      floats("state", {batch_, cells_}, zeros(1))};
    if (is_lstm()) arguments.push_back(floats("cell", {batch_, cells_}, zeros(1)));
    const std::vector<int32_t> results = loop_values("end");
    b_.op(tflite::BuiltinOperator_WHILE, arguments, results, tflite::BuiltinOptions_WhileOptions,
          tflite::CreateWhileOptions(b_.fbb(), 1, 2).Union());
    int32_t y = results[4];
    if (!form_.last_only) {
      y = floats("y", {batch_, steps_, cells_});
      b_.op(tflite::BuiltinOperator_TRANSPOSE, {stacked(results[2]), order}, {y});
    }
    b_.end_subgraph({x}, {y});
    add_condition();
    const std::vector<int32_t> in = loop_values("in");
    const std::vector<int32_t> out = body(in);
    return b_.finish(in, out);
  }

 private:
  bool is_lstm() const { return layer_.kind == Kind::kLstm; }
  std::vector<float> zeros(size_t rows) const {
    return std::vector<float>(rows * layer_.batch * layer_.cells);
  }
  int32_t floats(const char* name, std::vector<int32_t> shape, const std::vector<float>& values = {}) {
    return b_.tensor({.name = name,
                      .type = tflite::TensorType_FLOAT32,
                      .shape = std::move(shape),
                      .data = bytes_of(values)});
  }
  int32_t number(const char* name) { return b_.tensor({.name = name, .type = tflite::TensorType_INT32}); }
  int32_t number(const char* name, int32_t value) {
    return b_.tensor({.name = name, .type = tflite::TensorType_INT32, .data = bytes_of<int32_t>({value})});
  }

  // ---- what is a list of tensors, or one tensor ----

  int32_t list_tensor() { return b_.tensor({.name = "list", .type = tflite::TensorType_VARIANT}); }
  int32_t list_op(const char* name, const std::vector<int32_t>& inputs, int32_t output) {
    b_.op(tflite::BuiltinOperator_CUSTOM, inputs, {output}, tflite::BuiltinOptions_NONE, 0, name);
    return output;
  }
  int32_t element_shape(int32_t width) { return b_.ints("element_shape", {batch_, width}); }

  int32_t first_list() {
    if (!form_.has_lists) return floats("list", {steps_, batch_, cells_}, zeros(layer_.steps));
    return list_op("FlexTensorListReserve", {element_shape(cells_), number("count", steps_)}, list_tensor());
  }
  int32_t first_rows(int32_t rows) {
    if (!form_.has_lists) return rows;
    return list_op("FlexTensorListFromTensor", {rows, element_shape(channels_)}, list_tensor());
  }
  int32_t stacked(int32_t list) {
    if (!form_.has_lists) return list;
    return list_op("FlexTensorListStack", {list, element_shape(cells_)},
                   floats("stacked", {steps_, batch_, cells_}));
  }
  int32_t row_of(int32_t rows, int32_t position) {
    const int32_t x = floats("x", {batch_, channels_});
    if (form_.has_lists) return list_op("TensorListGetItem", {rows, position, element_shape(channels_)}, x);
    b_.op(tflite::BuiltinOperator_GATHER, {rows, position}, {x}, tflite::BuiltinOptions_GatherOptions,
          tflite::CreateGatherOptions(b_.fbb()).Union());
    return x;
  }

  // Round, step, list, rows, state, cell.
  std::vector<int32_t> loop_values(const char* name) {
    std::vector<int32_t> values = {
        number(name), number(name), form_.has_lists ? list_tensor() : floats(name, {steps_, batch_, cells_}),
        form_.has_lists ? list_tensor() : floats(name, {steps_, batch_, channels_}),
        floats(name, {batch_, cells_})};
    if (is_lstm()) values.push_back(floats(name, {batch_, cells_}));
    return values;
  }

  void add_condition() {
    const std::vector<int32_t> in = loop_values("c");
    std::vector<int32_t> both;
    for (size_t i = 0; i < 2; ++i) {
      both.push_back(b_.tensor({.name = "less", .type = tflite::TensorType_BOOL}));
      b_.op(tflite::BuiltinOperator_LESS, {in[i], number("steps", steps_)}, {both.back()});
    }
    const int32_t goes_on = b_.tensor({.name = "goes_on", .type = tflite::TensorType_BOOL});
    b_.op(tflite::BuiltinOperator_LOGICAL_AND, both, {goes_on});
    b_.end_subgraph(in, {goes_on});
  }

  int32_t binary(tflite::BuiltinOperator code, int32_t left, int32_t right, std::vector<int32_t> shape) {
    const int32_t result = floats("value", std::move(shape));
    if (code == tflite::BuiltinOperator_ADD) {
      b_.op(code, {left, right}, {result}, tflite::BuiltinOptions_AddOptions,
            tflite::CreateAddOptions(b_.fbb()).Union());
    } else if (code == tflite::BuiltinOperator_SUB) {
      b_.op(code, {left, right}, {result}, tflite::BuiltinOptions_SubOptions,
            tflite::CreateSubOptions(b_.fbb()).Union());
    } else {
      b_.op(code, {left, right}, {result}, tflite::BuiltinOptions_MulOptions,
            tflite::CreateMulOptions(b_.fbb()).Union());
    }
    return result;
  }
  int32_t add(int32_t left, int32_t right) {
    return binary(tflite::BuiltinOperator_ADD, left, right, {batch_, cells_});
  }
  int32_t multiply(int32_t left, int32_t right) {
    return binary(tflite::BuiltinOperator_MUL, left, right, {batch_, cells_});
  }
  int32_t function(tflite::BuiltinOperator code, int32_t of) {
    const int32_t result = floats("function", {batch_, cells_});
    b_.op(code, {of}, {result});
    return result;
  }
  int32_t sigmoid(int32_t of) { return function(tflite::BuiltinOperator_LOGISTIC, of); }
  int32_t tanh(int32_t of) { return function(tflite::BuiltinOperator_TANH, of); }

  // data * [k, columns], whose transpose the file has.
  int32_t dense(int32_t data, const std::vector<float>& kernel, size_t columns) {
    const auto units = static_cast<int32_t>(columns), k = static_cast<int32_t>(kernel.size() / columns);
    const int32_t result = floats("product", {batch_, units});
    b_.op(tflite::BuiltinOperator_FULLY_CONNECTED,
          {data, floats("weights", {units, k}, transposed(kernel, columns)), -1}, {result},
          tflite::BuiltinOptions_FullyConnectedOptions,
          tflite::CreateFullyConnectedOptions(b_.fbb()).Union());
    return result;
  }
  int32_t biased(int32_t data, const std::vector<float>& bias) {
    const auto columns = static_cast<int32_t>(bias.size());
    return binary(tflite::BuiltinOperator_ADD, data, floats("bias", {columns}, bias), {batch_, columns});
  }
  std::vector<int32_t> split(int32_t value, int32_t parts) {
    std::vector<int32_t> results;
    for (int32_t i = 0; i < parts; ++i) results.push_back(floats("gate", {batch_, cells_}));
    b_.op(tflite::BuiltinOperator_SPLIT, {number("axis", 1), value}, results,
          tflite::BuiltinOptions_SplitOptions, tflite::CreateSplitOptions(b_.fbb(), parts).Union());
    return results;
  }

  // h and, of an LSTM, c after a step.
  std::vector<int32_t> lstm(int32_t x, int32_t h, int32_t c) {
    const size_t columns = layer_.columns();
    const auto all = static_cast<int32_t>(columns);
    int32_t z = binary(tflite::BuiltinOperator_ADD, dense(x, layer_.kernel(), columns),
                       dense(h, layer_.recurrent_kernel(), columns), {batch_, all});
    const std::vector<int32_t> gates = split(biased(z, layer_.bias()), 4);
    const int32_t cell = add(multiply(sigmoid(gates[1]), c), multiply(sigmoid(gates[0]), tanh(gates[2])));
    return {multiply(sigmoid(gates[3]), tanh(cell)), cell};
  }

  int32_t gru(int32_t x, int32_t h) {
    const size_t columns = layer_.columns(), cells = layer_.cells;
    const std::vector<int32_t> in = split(biased(dense(x, layer_.kernel(), columns), layer_.bias()), 3);
    int32_t z = 0, candidate = 0;
    if (layer_.kind == Kind::kGruResetAfter) {
      const std::vector<int32_t> inner =
          split(biased(dense(h, layer_.recurrent_kernel(), columns), layer_.recurrent_bias()), 3);
      z = sigmoid(add(in[0], inner[0]));
      const int32_t r = sigmoid(add(in[1], inner[1]));
      candidate = tanh(add(in[2], multiply(r, inner[2])));
    } else {
      std::vector<float> first, last;  // columns of z and r, and of n
      const std::vector<float> kernel = layer_.recurrent_kernel();
      for (size_t i = 0; i < kernel.size(); ++i)
        (i % columns < 2 * cells ? first : last).push_back(kernel[i]);
      const std::vector<int32_t> inner = split(dense(h, first, 2 * cells), 2);
      z = sigmoid(add(in[0], inner[0]));
      const int32_t r = sigmoid(add(in[1], inner[1]));
      candidate = tanh(add(in[2], dense(multiply(r, h), last, cells)));
    }
    const int32_t rest = binary(tflite::BuiltinOperator_SUB, floats("one", {}, {1.0f}), z, {batch_, cells_});
    return add(multiply(z, h), multiply(rest, candidate));
  }

  int32_t next(int32_t value) {
    const int32_t result = number("next");
    b_.op(tflite::BuiltinOperator_ADD, {value, number("one", 1)}, {result}, tflite::BuiltinOptions_AddOptions,
          tflite::CreateAddOptions(b_.fbb()).Union());
    return result;
  }
  int32_t packed(const std::vector<int32_t>& numbers) {
    const auto count = static_cast<int32_t>(numbers.size());
    const int32_t list = b_.tensor({.name = "list", .type = tflite::TensorType_INT32, .shape = {count}});
    b_.op(tflite::BuiltinOperator_PACK, numbers, {list}, tflite::BuiltinOptions_PackOptions,
          tflite::CreatePackOptions(b_.fbb(), count, 0).Union());
    return list;
  }

  int32_t with_row(int32_t list, int32_t position, int32_t after, int32_t h) {
    if (form_.has_lists) return list_op("FlexTensorListSetItem", {list, position, h}, list_tensor());
    const int32_t row = floats("row", {1, batch_, cells_}), result = floats("list", {steps_, batch_, cells_});
    b_.op(tflite::BuiltinOperator_EXPAND_DIMS, {h, number("axis", 0)}, {row});
    const int32_t zero = number("zero", 0), whole = number("whole", -1);
    if (form_.updates_slices) {
      b_.op(tflite::BuiltinOperator_DYNAMIC_UPDATE_SLICE, {list, row, packed({position, zero, zero})},
            {result});
      return result;
    }
    const auto open = [&](const char* name) {
      return b_.tensor({.name = name,
                        .type = tflite::TensorType_FLOAT32,
                        .shape = {1, batch_, cells_},
                        .signature = {-1, batch_, cells_}});
    };
    const int32_t before = open("before"), rest = open("rest");
    b_.op(tflite::BuiltinOperator_SLICE,
          {list, b_.ints("zeros", {0, 0, 0}), packed({position, whole, whole})}, {before});
    b_.op(tflite::BuiltinOperator_SLICE, {list, packed({after, zero, zero}), b_.ints("all", {-1, -1, -1})},
          {rest});
    b_.op(tflite::BuiltinOperator_CONCATENATION, {before, row, rest}, {result},
          tflite::BuiltinOptions_ConcatenationOptions,
          tflite::CreateConcatenationOptions(b_.fbb(), 0).Union());
    return result;
  }

  std::vector<int32_t> body(const std::vector<int32_t>& in) {
    const int32_t round = next(in[0]), after = next(in[1]), x = row_of(in[3], in[1]);
    std::vector<int32_t> states = is_lstm() ? lstm(x, in[4], in[5]) : std::vector{gru(x, in[4])};
    const int32_t list = with_row(in[2], in[1], after, states[0]);
    if (form_.squares_state) states[0] = multiply(states[0], states[0]);
    std::vector<int32_t> out = {round, after, list, in[3]};
    out.insert(out.end(), states.begin(), states.end());
    return out;
  }

  const Layer layer_;
  const Form form_;
  const int32_t batch_ = static_cast<int32_t>(layer_.batch), steps_ = static_cast<int32_t>(layer_.steps),
                channels_ = static_cast<int32_t>(layer_.channels),
                cells_ = static_cast<int32_t>(layer_.cells);
  TfliteBuilder b_;
};

struct Outcome {
  std::vector<float> values;
  uint32_t num_steps = 0;
};

Outcome run(const Layer& layer, const Form& form, bool folds) {
  const std::vector<uint8_t> model = LoopModel(layer, form).build();
  const char* skip[] = {"fold_recurrence"};
  qplan_pack_options options = pack_options("cpu");
  options.skip = skip;
  options.num_skip = folds ? 0 : 1;
  ModelSession session(pack_bytes(model, "loop.tflite", options), QPLAN_ISA_AUTO, 1);
  qplan_session_info info{};
  info.struct_size = sizeof(info);
  qplan_session_get_info(session.get(), &info);
  const std::vector<uint8_t> bytes = session.run({bytes_of(layer.data())}).at(0);
  Outcome result;
  result.num_steps = info.num_steps;
  result.values.resize(bytes.size() / sizeof(float));
  std::memcpy(result.values.data(), bytes.data(), bytes.size());
  return result;
}

std::vector<double> last_states(const Layer& layer, const std::vector<double>& sequence) {
  std::vector<double> last;
  for (size_t sample = 0; sample < layer.batch; ++sample) {
    const size_t first = ((sample + 1) * layer.steps - 1) * layer.cells;
    last.insert(last.end(), sequence.begin() + static_cast<ptrdiff_t>(first),
                sequence.begin() + static_cast<ptrdiff_t>(first + layer.cells));
  }
  return last;
}

template <typename Expected>
void expect_near(const std::vector<float>& found, const std::vector<Expected>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(TfliteRecurrence, LoopsOfKerasLayersAreOneStep) {
  for (const Kind kind : {Kind::kLstm, Kind::kGruResetAfter, Kind::kGruResetBefore}) {
    for (const size_t batch : {1, 2}) {
      for (Form form : {Form{}, Form{.updates_slices = true}, Form{.has_lists = true}}) {
        for (const bool last_only : {false, true}) {
          SCOPED_TRACE(::testing::Message()
                       << static_cast<int>(kind) << " batch " << batch << " updates " << form.updates_slices
                       << " lists " << form.has_lists << " last " << last_only);
          const Layer layer = {.kind = kind, .batch = batch};
          form.last_only = last_only;
          const Outcome folded = run(layer, form, true), unrolled = run(layer, form, false);
          const std::vector<double> sequence = layer.run();
          expect_near(folded.values, last_only ? last_states(layer, sequence) : sequence);
          expect_near(folded.values, unrolled.values);
          // Samples and steps are exchanged before the layer and after it, where both are more than one.
          EXPECT_EQ(folded.num_steps, batch == 1 ? 1u : last_only ? 2u : 3u);
          EXPECT_GT(unrolled.num_steps, 8 * layer.steps);
        }
      }
    }
  }
}

// Long enough that a step for each round would be a plan of thousands.
TEST(TfliteRecurrence, ALongLoopIsOneStep) {
  const Layer layer = {.kind = Kind::kLstm, .steps = 600, .channels = 2, .cells = 3};
  for (const bool has_lists : {false, true}) {
    const Outcome folded = run(layer, {.has_lists = has_lists}, true);
    expect_near(folded.values, layer.run());
    EXPECT_EQ(folded.num_steps, 1u);
  }
}

// The state that the next round reads is not the layer's: the rounds stay steps of their own.
TEST(TfliteRecurrence, AnOperatorMoreInTheBodyKeepsTheRoundsApart) {
  for (const Kind kind : {Kind::kLstm, Kind::kGruResetAfter, Kind::kGruResetBefore}) {
    const Layer layer = {.kind = kind};
    const Form form = {.squares_state = true};
    const Outcome folded = run(layer, form, true);
    expect_near(folded.values, run(layer, form, false).values);
    EXPECT_GE(folded.num_steps, 2 * layer.steps - 1);
    const std::vector<double> plain = layer.run();
    EXPECT_GT(std::abs(static_cast<double>(folded.values.back()) - plain.back()), 1e-3);
  }
}

}  // namespace
}  // namespace qplan::testing::tflite_recurrence_test
