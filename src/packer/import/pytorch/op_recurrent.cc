// LSTM and GRU on float32: layers one after the other, in one direction or both.
#include <algorithm>
#include <array>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// The arguments of both, by their positions in the row.
enum : size_t {
  kData,
  kStates,
  kWeights,
  kHasBiases,
  kLayers,
  kDropout,
  kTrain,
  kBidirectional,
  kBatchFirst
};

constexpr int64_t kMostLayers = 64;
constexpr int64_t kMostElements = int64_t{1} << 20;  // of a bias of zeros

struct Recurrent {
  OpContext& op;
  const char* ir_op;
  std::vector<int64_t> gates;  // which of PyTorch's the IR's are, in the IR's order
  size_t num_states;
  std::vector<Flow> weights = {};
  int64_t layers = 0, directions = 0, batch = 0, cells = 0;
  bool batch_first = false, has_biases = false;

  int64_t rows() const { return std::ssize(gates) * cells; }
  size_t sequence_axis() const { return batch_first ? 1 : 0; }
};

void read(Recurrent* layer, const Flow& data, const Flow& states) {
  OpContext& op = layer->op;
  const ir::Shape shape = op.shape(data);
  if (shape.size() != 3) throw Unsupported{cat("data of rank ", shape.size())};
  if (op.boolean(kTrain, false) && op.number(kDropout, 0.0) != 0) throw Unsupported{"train=True"};
  layer->batch_first = op.boolean(kBatchFirst);
  layer->has_biases = op.boolean(kHasBiases);
  layer->layers = op.integer(kLayers);
  layer->directions = op.boolean(kBidirectional) ? 2 : 1;
  layer->batch = shape[layer->batch_first ? 0 : 1];
  if (layer->layers < 1 || layer->layers > kMostLayers) throw Unsupported{cat(layer->layers, " layers")};
  layer->weights = op.flows(kWeights);
  const int64_t each = layer->has_biases ? 4 : 2, expected = layer->layers * layer->directions * each;
  if (std::ssize(layer->weights) != expected)
    throw Unsupported{
        cat(layer->weights.size(), " weights and biases in the place of ", expected, " (a projection?)")};
  const ir::Shape state = op.shape(states);
  layer->cells = state.empty() ? 0 : state.back();
  if (state != ir::Shape{layer->layers * layer->directions, layer->batch, layer->cells})
    invalid(cat("the states are ", to_text(state), " for ", layer->layers, " layers and a batch of ",
                layer->batch));
}

ir::ValueId sliced(OpContext& op, ir::ValueId value, size_t axis, int64_t begin, int64_t end, int64_t step) {
  return op.emit("strided_slice", {value},
                 {{"begin", ir::Ints{begin}},
                  {"end", ir::Ints{end}},
                  {"strides", ir::Ints{step}},
                  {"axes", ir::Ints{static_cast<int64_t>(axis)}}});
}

// The rows of weights or biases in the order of the IR's gates.
ir::ValueId gates_of(const Recurrent& layer, const Flow& weights, const ir::Shape& expected) {
  OpContext& op = layer.op;
  if (!op.is_constant(weights)) throw Unsupported{"weights that the model computes"};
  if (op.dtype(weights) != ir::kFloat32) throw Unsupported{ir::to_string(op.dtype(weights)) + " weights"};
  if (op.shape(weights) != expected)
    invalid(cat("weights or biases are ", to_text(op.shape(weights)), ", expected ", to_text(expected)));
  if (std::ranges::is_sorted(layer.gates)) return weights.value;
  std::vector<ir::ValueId> parts;
  for (const int64_t gate : layer.gates)
    parts.push_back(sliced(op, weights.value, 0, gate * layer.cells, (gate + 1) * layer.cells, 1));
  return op.emit("concatenate", std::move(parts), {{"axis", int64_t{0}}});
}

// A state of one direction of one layer before the first step, [batch, cells].
ir::ValueId first_state(const Recurrent& layer, const Flow& states, int64_t index) {
  const ir::ValueId part = sliced(layer.op, states.value, 0, index, index + 1, 1);
  return layer.op.reshape(part, {layer.batch, layer.cells});
}

ir::ValueId backwards(const Recurrent& layer, ir::ValueId sequence) {
  const int64_t steps = layer.op.shape(Flow{sequence})[layer.sequence_axis()];
  return sliced(layer.op, sequence, layer.sequence_axis(), steps - 1, -steps - 1, -1);
}

// The sequence and the states after its last step, of one direction of one layer.
std::vector<ir::ValueId> run(const Recurrent& layer, ir::ValueId data, const std::vector<Flow>& states,
                             int64_t index) {
  OpContext& op = layer.op;
  const auto first = static_cast<size_t>(index * (layer.has_biases ? 4 : 2));
  const int64_t channels = op.shape(Flow{data})[2], rows = layer.rows();
  std::vector<ir::ValueId> operands = {data, gates_of(layer, layer.weights[first], {rows, channels}),
                                       gates_of(layer, layer.weights[first + 1], {rows, layer.cells})};
  std::array<ir::ValueId, 2> biases;
  if (layer.has_biases) {
    for (size_t i = 0; i < 2; ++i) biases[i] = gates_of(layer, layer.weights[first + 2 + i], {rows});
  } else {
    if (rows > kMostElements) throw Unsupported{cat(rows, " rows")};
    biases[0] =
        op.constant(ir::make_constant(ir::kFloat32, {rows}, std::vector<float>(static_cast<size_t>(rows))));
    biases[1] = biases[0];
  }
  ir::Attrs attrs = {{"time_major", !layer.batch_first}};
  if (layer.num_states == 2) {
    operands.push_back(op.emit("add", {biases[0], biases[1]}, {}));
    const std::vector<float> scales(2 * layer.gates.size(), 1);
    operands.push_back(op.constant(ir::make_constant(ir::kFloat32, {std::ssize(scales)}, scales)));
  } else {
    operands.insert(operands.end(), biases.begin(), biases.end());
    attrs.set("reset_after", true);
  }
  for (const Flow& state : states) operands.push_back(first_state(layer, state, index));
  return op.emit_many(layer.ir_op, std::move(operands), std::move(attrs));
}

// Values side by side along an axis that each of them has with extent 1, or whole.
ir::ValueId side_by_side(OpContext& op, std::vector<ir::ValueId> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : op.emit("concatenate", std::move(parts), {{"axis", axis}});
}

Ref import_layers(Recurrent layer, const std::vector<Flow>& states) {
  OpContext& op = layer.op;
  const Flow data = op.float_flow(kData);
  for (const Flow& state : states) read(&layer, data, state);
  std::vector<std::vector<ir::ValueId>> last(layer.num_states);  // of each state, by layer and direction
  ir::ValueId sequence = data.value;
  for (int64_t l = 0; l < layer.layers; ++l) {
    std::vector<ir::ValueId> of_directions;
    for (int64_t d = 0; d < layer.directions; ++d) {
      const ir::ValueId forwards = d == 0 ? sequence : backwards(layer, sequence);
      const std::vector<ir::ValueId> results = run(layer, forwards, states, l * layer.directions + d);
      of_directions.push_back(d == 0 ? results[0] : backwards(layer, results[0]));
      for (size_t s = 0; s < layer.num_states; ++s)
        last[s].push_back(op.reshape(results[1 + s], {1, layer.batch, layer.cells}));
    }
    sequence = side_by_side(op, std::move(of_directions), 2);
  }
  Tuple results{{op.result(sequence)}};
  for (std::vector<ir::ValueId>& state : last)
    results.items.push_back(op.result(side_by_side(op, std::move(state), 0)));
  return op.add(std::move(results));
}

}  // namespace

// The sequence, the states and the cells after the last step.
Ref import_lstm(OpContext& op) {
  const std::vector<Flow> states = op.flows(kStates);
  if (states.size() != 2) invalid(cat("there are ", states.size(), " states, expected 2"));
  return import_layers({.op = op, .ir_op = "nn.lstm", .gates = {0, 1, 2, 3}, .num_states = 2}, states);
}

// PyTorch's gates are r, z, n; the IR's z, r, n.
Ref import_gru(OpContext& op) {
  return import_layers({.op = op, .ir_op = "nn.gru", .gates = {1, 0, 2}, .num_states = 1},
                       {op.float_flow(kStates)});
}

}  // namespace qplan::pt
