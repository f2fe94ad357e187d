// Layers with a state: LSTM, GRU, and DynamicQuantizeLSTM of ONNX Runtime. Each direction becomes a layer of
// the IR on float32, whose rows are put in the order of its gates.
#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

constexpr const char* kPlain =
    "; use PyTorch's nn.LSTM or nn.GRU, or Keras' LSTM or GRU, with the default options, or write its steps "
    "with MatMul, Sigmoid and Tanh";

// What a kind of layer has: its gates in the file, as their places in the IR's operator, and its states.
struct RecurrentKind {
  const char* name;
  std::vector<int64_t> gates;
  std::vector<const char*> activations;
  size_t num_states;
};
const RecurrentKind& lstm_kind() {
  // The file has i, o, f, c; the operator i, f, c, o.
  static const RecurrentKind kFound = {"LSTM", {0, 2, 3, 1}, {"sigmoid", "tanh", "tanh"}, 2};
  return kFound;
}
const RecurrentKind& gru_kind() {
  static const RecurrentKind kFound = {"GRU", {0, 1, 2}, {"sigmoid", "tanh"}, 1};
  return kFound;
}

// Places of operands, which all kinds share; the second state is the LSTM's.
enum : size_t { kData, kWeights, kRecurrent, kBias, kLengths, kState, kCell, kPeepholes };

struct RecurrentLayer {
  const OpContext& op;
  const RecurrentKind& kind;
  Value input_weights, recurrent_weights;  // [directions, gates * cells, k], float32
  std::vector<bool> is_reverse;            // of each direction
  int64_t steps, batch, channels, cells;
  bool batch_first;

  int64_t gates() const { return static_cast<int64_t>(kind.gates.size()); }
  int64_t rows() const { return gates() * cells; }
  int64_t directions() const { return std::ssize(is_reverse); }
};

std::vector<bool> directions_of(const OpContext& op) {
  const std::string direction = op.attr_string("direction", "forward");
  if (direction == "forward") return {false};
  if (direction == "reverse") return {true};
  if (direction == "bidirectional") return {false, true};
  invalid("attribute 'direction' is " + in_quotes(direction) +
          ", expected 'forward', 'reverse' or 'bidirectional'");
}

void check_activations(const OpContext& op, const RecurrentKind& kind, size_t num_directions) {
  // Sigmoid and Tanh have no parameters.
  op.find_attr("activation_alpha");
  op.find_attr("activation_beta");
  const Attribute* found = op.find_attr("activations", AttributeKind::kStrings);
  if (found == nullptr) return;
  const size_t expected = num_directions * kind.activations.size();
  if (found->strings.size() != expected)
    invalid(cat("attribute 'activations' has ", found->strings.size(), " values, expected ", expected));
  for (size_t i = 0; i < expected; ++i) {
    std::string name = found->strings[i];
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::string_view usual = kind.activations[i % kind.activations.size()];
    if (name != usual)
      throw Unsupported{cat("activation ", in_quotes(found->strings[i]), " in the place of ", usual, kPlain)};
  }
}

void check_lengths(const OpContext& op, int64_t steps) {
  if (!op.has_input(kLengths)) return;
  for (const int64_t length : op.ints(kLengths, "sequence lengths")) {
    if (length != steps)
      throw Unsupported{cat("a sequence of ", length, " of ", steps,
                            " steps; export the model for one length, without packed or masked sequences")};
  }
}

bool is_zero(const OpContext& op, size_t i) {
  const Value& value = op.input(i);
  if (!value.is_constant()) return false;
  const std::vector<double> numbers = numbers_of(*value.constant);
  return std::ranges::all_of(numbers, [](double number) { return number == 0; });
}

void expect_shape(const OpContext& op, const Value& value, const char* what, const ir::Shape& shape) {
  if (op.shape(value) != shape)
    invalid(cat("the ", what, " are ", op.type(value), ", expected shape ", to_text(shape)));
}

void expect_floats(const OpContext& op, const Value& value, const char* what) {
  if (op.type(value).dtype != ir::kFloat32)
    throw Unsupported{cat(ir::to_string(op.type(value).dtype), " ", what, "; export it in float32")};
}

// Reads what all kinds share, and refuses what none of them has. The weights are given.
RecurrentLayer read_layer(const OpContext& op, const RecurrentKind& kind, const Value& input_weights,
                          const Value& recurrent_weights) {
  RecurrentLayer layer{op, kind, input_weights, recurrent_weights, directions_of(op), 0, 0, 0, 0, false};
  check_activations(op, kind, layer.is_reverse.size());
  if (op.attr_float("clip", 0) != 0)
    throw Unsupported{cat("attribute 'clip', a bound of what enters the activations", kPlain)};
  layer.batch_first = op.attr_int("layout", 0) != 0;
  expect_floats(op, op.input(kData), "data");
  const ir::Shape& data = op.shape(op.input(kData));
  const ir::Shape& recurrent = op.shape(recurrent_weights);
  if (data.size() != 3) invalid(cat("the data is ", op.type(op.input(kData)), ", expected rank 3"));
  if (recurrent.size() != 3)
    invalid(cat("the weights are ", op.type(recurrent_weights), ", expected rank 3"));
  layer.steps = data[layer.batch_first ? 1 : 0];
  layer.batch = data[layer.batch_first ? 0 : 1];
  layer.channels = data[2];
  layer.cells = recurrent[2];
  if (layer.cells > kMaxPositions) invalid(cat("there are ", layer.cells, " cells"));
  if (op.attr_int("hidden_size", layer.cells) != layer.cells)
    invalid(cat("attribute 'hidden_size' is ", op.attr_int("hidden_size", 0), ", but the weights have ",
                layer.cells, " cells"));
  const int64_t directions = layer.directions();
  expect_shape(op, input_weights, "weights", {directions, layer.rows(), layer.channels});
  expect_shape(op, recurrent_weights, "recurrent weights", {directions, layer.rows(), layer.cells});
  for (const Value& weights : {input_weights, recurrent_weights}) {
    expect_floats(op, weights, "weights");
    if (!depends_on_constants(op, weights))
      throw Unsupported{
          "weights that are not constant; run the model through a constant folder, or give "
          "them with --bind"};
  }
  if (op.has_input(kBias)) expect_shape(op, op.input(kBias), "biases", {directions, 2 * layer.rows()});
  check_lengths(op, layer.steps);
  return layer;
}

// Index `i` of the axis, which goes.
Value part_of(const OpContext& op, const Value& value, size_t axis, int64_t i) {
  ir::Shape shape = op.shape(value);
  const auto a = static_cast<int64_t>(axis);
  const Value part = shape[axis] == 1 ? value
                                      : op.emit("strided_slice", {value},
                                                {{"begin", ir::Ints{i}},
                                                 {"end", ir::Ints{i + 1}},
                                                 {"strides", ir::Ints{1}},
                                                 {"axes", ir::Ints{a}}});
  shape.erase(shape.begin() + a);
  return op.reshape(part, shape);
}

// The rows [first, first + rows) of the first axis in the order of the IR's gates.
Value gates_of(const RecurrentLayer& layer, const Value& value, int64_t first) {
  ir::Ints positions;
  for (const int64_t gate : layer.kind.gates) {
    for (int64_t i = 0; i < layer.cells; ++i) positions.push_back(first + gate * layer.cells + i);
  }
  return taken(layer.op, value, 0, positions);
}

Value zeros(const OpContext& op, const ir::Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (!checked_mul(count, extent, &count) || count > kMaxPositions)
      invalid(cat("a state or bias of shape ", to_text(shape)));
  }
  op.graph().charge(static_cast<uint64_t>(count) * sizeof(float));
  return ir::make_constant(ir::kFloat32, shape, std::vector<float>(static_cast<size_t>(count)));
}

// The biases of the input and of the state, for one direction.
std::array<Value, 2> biases(const RecurrentLayer& layer, int64_t direction) {
  const OpContext& op = layer.op;
  if (!op.has_input(kBias)) return {zeros(op, {layer.rows()}), zeros(op, {layer.rows()})};
  const Value both = part_of(op, op.input(kBias), 0, direction);
  return {gates_of(layer, both, 0), gates_of(layer, both, layer.rows())};
}

// A state before the first step, [batch, cells].
Value first_state(const RecurrentLayer& layer, size_t place, int64_t direction) {
  const OpContext& op = layer.op;
  if (!op.has_input(place)) return zeros(op, {layer.batch, layer.cells});
  const Value& all = op.input(place);
  const int64_t directions = layer.directions();
  const ir::Shape shape = layer.batch_first ? ir::Shape{layer.batch, directions, layer.cells}
                                            : ir::Shape{directions, layer.batch, layer.cells};
  expect_shape(op, all, "first states", shape);
  return part_of(op, all, layer.batch_first ? 1 : 0, direction);
}

Value backwards(const RecurrentLayer& layer, const Value& sequence) {
  if (layer.steps == 1) return sequence;
  return layer.op.emit("strided_slice", {sequence},
                       {{"begin", ir::Ints{layer.steps - 1}},
                        {"end", ir::Ints{-layer.steps - 1}},
                        {"strides", ir::Ints{-1}},
                        {"axes", ir::Ints{layer.batch_first ? 1 : 0}}});
}

// The sequence and the states that the directions made, as the operator's outputs.
void define_outputs_of(const RecurrentLayer& layer, const std::vector<std::vector<Value>>& results) {
  const OpContext& op = layer.op;
  for (size_t output = 0; output <= layer.kind.num_states; ++output) {
    // The directions' axis: of a sequence before the batch's or after the steps'.
    const size_t axis = output == 0 ? (layer.batch_first ? 2 : 1) : (layer.batch_first ? 1 : 0);
    std::vector<Value> parts;
    for (const std::vector<Value>& of_direction : results) {
      ir::Shape shape = op.shape(of_direction[output]);
      shape.insert(shape.begin() + static_cast<int64_t>(axis), 1);
      parts.push_back(op.reshape(of_direction[output], shape));
    }
    op.define(output, parts.size() == 1
                          ? parts[0]
                          : op.emit("concatenate", parts, {{"axis", static_cast<int64_t>(axis)}}));
  }
}

// run: one direction's results from its sequence, the operands of the IR's operator being told.
template <typename Run>
void import_directions(const RecurrentLayer& layer, const Run& run) {
  std::vector<std::vector<Value>> results;
  for (int64_t d = 0; d < layer.directions(); ++d) {
    const bool is_reverse = layer.is_reverse[static_cast<size_t>(d)];
    const Value& data = layer.op.input(kData);
    std::vector<Value> made = run(is_reverse ? backwards(layer, data) : data, d);
    if (is_reverse) made[0] = backwards(layer, made[0]);
    results.push_back(std::move(made));
  }
  define_outputs_of(layer, results);
}

void import_lstm_layer(const OpContext& op, const Value& input_weights, const Value& recurrent_weights) {
  const RecurrentLayer layer = read_layer(op, lstm_kind(), input_weights, recurrent_weights);
  if (op.attr_int("input_forget", 0) != 0)
    throw Unsupported{cat("attribute 'input_forget', coupled gates", kPlain)};
  if (op.has_input(kPeepholes) && !is_zero(op, kPeepholes))
    throw Unsupported{cat("peephole weights", kPlain)};
  const Value scales = ir::make_constant(ir::kFloat32, {2 * layer.gates()},
                                         std::vector<float>(2 * layer.kind.gates.size(), 1));
  import_directions(layer, [&](const Value& sequence, int64_t d) {
    const auto [input_bias, recurrent_bias] = biases(layer, d);
    return op.emit_many("nn.lstm",
                        {sequence, gates_of(layer, part_of(op, layer.input_weights, 0, d), 0),
                         gates_of(layer, part_of(op, layer.recurrent_weights, 0, d), 0),
                         op.emit("add", {input_bias, recurrent_bias}), scales, first_state(layer, kState, d),
                         first_state(layer, kCell, d)},
                        {{"time_major", !layer.batch_first}});
  });
}

// Weights of DynamicQuantizeLSTM: [directions, k, rows] of 8 bits, and scales and zero points of each
// direction, or of each of its rows; as the float32 weights of an LSTM.
Value dequantized_weights(const OpContext& op, size_t weights_at, size_t scales_at, size_t zero_points_at) {
  const ir::ConstantRef weights = op.constant(weights_at, "weights");
  const ir::TensorType& type = weights->type();
  if (type.dtype != ir::kInt8 && type.dtype != ir::kUint8) invalid(cat("the weights are ", type));
  if (type.shape.size() != 3) invalid(cat("the weights are ", type, ", expected rank 3"));
  const auto scales = numbers_of(*op.constant(scales_at, "scales"));
  const auto zero_points = numbers_of(*op.constant(zero_points_at, "zero points"));
  const auto directions = static_cast<size_t>(type.shape[0]), num_k = static_cast<size_t>(type.shape[1]),
             rows = static_cast<size_t>(type.shape[2]);
  for (const size_t count : {scales.size(), zero_points.size()}) {
    if (count != directions && count != directions * rows)
      invalid(cat("there are ", count, " scales or zero points for ", directions, " directions of ", rows,
                  " rows"));
  }
  const std::vector<double> values = numbers_of(*weights);
  op.graph().charge(values.size() * (sizeof(float) + sizeof(double)));
  std::vector<float> reals(values.size());
  for (size_t d = 0; d < directions; ++d) {
    for (size_t k = 0; k < num_k; ++k) {
      for (size_t row = 0; row < rows; ++row) {
        const auto of_row = [&](const std::vector<double>& list) {
          return list[list.size() == directions ? d : d * rows + row];
        };
        reals[(d * rows + row) * num_k + k] =
            static_cast<float>(values[(d * num_k + k) * rows + row] - of_row(zero_points)) *
            static_cast<float>(of_row(scales));
      }
    }
  }
  return ir::make_constant(ir::kFloat32, {type.shape[0], type.shape[2], type.shape[1]}, reals);
}

}  // namespace

// X, W, R, B, sequence lengths, first output, first cell, peepholes.
void import_lstm(const OpContext& op) {
  op.expect_counts(3, 8, 3);
  import_lstm_layer(op, op.input(kWeights), op.input(kRecurrent));
}

// The same, then scales and zero points of W and of R.
void import_dynamic_quantize_lstm(const OpContext& op) {
  op.expect_counts(3, 12, 3);
  constexpr size_t kScales = 8;
  import_lstm_layer(op, dequantized_weights(op, kWeights, kScales, kScales + 1),
                    dequantized_weights(op, kRecurrent, kScales + 2, kScales + 3));
}

// X, W, R, B, sequence lengths, first state.
void import_gru(const OpContext& op) {
  op.expect_counts(3, 6, 2);
  const RecurrentLayer layer = read_layer(op, gru_kind(), op.input(kWeights), op.input(kRecurrent));
  const bool reset_after = op.attr_int("linear_before_reset", 0) != 0;
  import_directions(layer, [&](const Value& sequence, int64_t d) {
    const auto [input_bias, recurrent_bias] = biases(layer, d);
    return op.emit_many("nn.gru",
                        {sequence, gates_of(layer, part_of(op, layer.input_weights, 0, d), 0),
                         gates_of(layer, part_of(op, layer.recurrent_weights, 0, d), 0), input_bias,
                         recurrent_bias, first_state(layer, kState, d)},
                        {{"time_major", !layer.batch_first}, {"reset_after", reset_after}});
  });
}

}  // namespace qplan::onnx
