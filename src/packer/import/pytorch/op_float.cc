// Operators on float32 tensors that have no form on quantised ones: functions element by element,
// normalisations composed of these, LSTM and GRU. The arithmetic of functions is docs/numerics/float32.md's.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// One operator of the IR.
template <size_t kSize>
Ref unary(OpContext& op, const char (&ir_op)[kSize]) {
  return op.result(op.emit(ir_op, {op.float_flow(0).value}, {}));
}

ir::ValueId multiplied(OpContext& op, ir::ValueId a, ir::ValueId b) {
  return op.emit("multiply", {a, b}, {});
}
ir::ValueId scaled(OpContext& op, ir::ValueId x, double factor) {
  return multiplied(op, x, op.scale(static_cast<float>(factor)));
}
ir::ValueId plus(OpContext& op, ir::ValueId x, double addend) {
  return op.emit("add", {x, op.scale(static_cast<float>(addend))}, {});
}

// x / 2 * (1 + erf(x / sqrt(2))), or with tanh in the place of erf.
ir::ValueId gelu(OpContext& op, ir::ValueId x, const std::string& approximate) {
  ir::ValueId gate;
  if (approximate == "none") {
    gate = op.emit("erf", {scaled(op, x, 0.7071067811865476)}, {});
  } else if (approximate == "tanh") {
    const ir::ValueId cube = multiplied(op, multiplied(op, x, x), x);
    const ir::ValueId sum = op.emit("add", {x, scaled(op, cube, 0.044715)}, {});
    gate = op.emit("tanh", {scaled(op, sum, 0.7978845608028654)}, {});
  } else {
    throw Unsupported{"approximate=" + in_quotes(approximate)};
  }
  const ir::ValueId half = scaled(op, x, 0.5);
  return multiplied(op, half, plus(op, gate, 1));
}

// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which overflows nowhere.
ir::ValueId softplus(OpContext& op, ir::ValueId x) {
  const ir::ValueId small = op.emit("exp", {op.emit("negative", {op.emit("abs", {x}, {})}, {})}, {});
  return op.emit("add", {op.emit("nn.relu", {x}, {}), op.emit("log", {plus(op, small, 1)}, {})}, {});
}

// (x - mean) / sqrt(variance + epsilon), over these axes.
ir::ValueId normalised(OpContext& op, ir::ValueId x, const ir::Ints& axes, double epsilon) {
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const ir::ValueId centred = op.emit("subtract", {x, op.emit("mean", {x}, over)}, {});
  const ir::ValueId variance = op.emit("mean", {multiplied(op, centred, centred)}, over);
  const ir::ValueId deviation = op.emit("sqrt", {plus(op, variance, epsilon)}, {});
  return op.emit("divide", {centred, deviation}, {});
}

// Times the argument `scale` and plus `bias`, where the call has them, in a shape that broadcasts.
ir::ValueId with_affine(OpContext& op, ir::ValueId value, size_t scale, size_t bias,
                        const std::optional<ir::Shape>& shape = std::nullopt) {
  const auto operand = [&](size_t i) {
    const ir::ValueId given = op.float_flow(i).value;
    return shape ? op.reshape(given, *shape) : given;
  };
  if (op.has(scale)) value = multiplied(op, value, operand(scale));
  if (op.has(bias)) value = op.emit("add", {value, operand(bias)}, {});
  return value;
}

// Over the last axes, as many as `normalized_shape` has.
Ref layer_norm(OpContext& op, size_t epsilon) {
  const Flow input = op.float_flow(0);
  const ir::Shape& shape = op.shape(input);
  const std::vector<int64_t> over = op.integers(1);
  if (over.empty() || over.size() > shape.size() || !std::equal(over.rbegin(), over.rend(), shape.rbegin()))
    invalid(cat("normalized_shape ", to_text(over), " is not the end of ", to_text(shape)));
  ir::Ints axes(over.size());
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(shape.size() - over.size()));
  return op.result(with_affine(op, normalised(op, input.value, axes, op.number(epsilon, 1e-5)), 2, 3));
}

// The channels in groups, each with all positions.
ir::ValueId group_norm(OpContext& op, int64_t groups, size_t weight, size_t bias, double epsilon) {
  const Flow input = op.float_flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.size() < 2) throw Unsupported{"a tensor without a channel axis"};
  if (groups < 1 || shape[1] % groups != 0) invalid(cat(shape[1], " channels are not ", groups, " groups"));
  const int64_t rest = ir::TensorType{ir::kFloat32, shape}.num_elements() / (shape[0] * groups);
  const ir::ValueId flat = op.reshape(input.value, ir::Ints{shape[0], groups, rest});
  const ir::ValueId value = normalised(op, flat, {2}, epsilon);
  ir::Shape per_channel(shape.size(), 1);
  per_channel[1] = shape[1];
  return with_affine(op, op.reshape(value, shape), weight, bias, per_channel);
}

Ref softmax(OpContext& op, const char* ir_op) {
  const Flow input = op.float_flow(0);
  return op.result(
      op.emit(ir_op, {input.value}, {{"axis", OpContext::axis_of(op.integer(1), op.shape(input).size())}}));
}

// Over axes, which may be absent for all of them. Integers keep their dtype.
Ref reduction(OpContext& op, const char* ir_op, const Flow& input) {
  const size_t rank = op.shape(input).size();
  ir::Ints axes;
  if (op.has(1)) axes = op.integers(1);
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  std::ranges::sort(axes);
  return op.result(op.emit(ir_op, {input.value}, {{"axis", axes}, {"keepdims", op.boolean(2, false)}}));
}

Flow number_flow(OpContext& op) {
  const Flow input = op.flow(0);
  return is_wide_integer(op.dtype(input)) && !input.quantization ? input : op.float_flow(0);
}

// Sums and products of integers are int64.
Ref accumulated(OpContext& op, const char* ir_op) {
  const Flow input = number_flow(op);
  const ir::DType dtype = op.dtype(input);
  if (dtype == ir::kFloat32) {
    op.expect_float_result(3);
    return reduction(op, ir_op, input);
  }
  constexpr auto kInt64 = static_cast<int64_t>(ScalarType::kInt64);
  if (op.integer(3, kInt64) != kInt64) throw Unsupported{"a result other than int64"};
  if (dtype == ir::kInt64) return reduction(op, ir_op, input);
  return reduction(op, ir_op, {op.emit("cast", {input.value}, {{"dtype", std::string("int64")}})});
}

// A constant of one value: the first state of a recurrent layer, for example.
Ref filled(OpContext& op, double value, size_t dtype) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  op.expect_float_result(dtype);
  const ir::Shape shape = op.integers(0);
  const ir::TensorType type{ir::kFloat32, shape};
  if (const std::string error = ir::type_error(type); !error.empty()) invalid(error);
  if (type.num_elements() > kMostElements)
    throw Unsupported{cat(type.num_elements(), " elements of one value")};
  op.charge_elements(type.num_elements());
  const std::vector<float> values(static_cast<size_t>(type.num_elements()), static_cast<float>(value));
  return op.result(op.constant(ir::make_constant(ir::kFloat32, shape, values)));
}

}  // namespace

Ref import_zeros(OpContext& op) { return filled(op, 0, 1); }
Ref import_ones(OpContext& op) { return filled(op, 1, 1); }
Ref import_full(OpContext& op) { return filled(op, op.number(1), 2); }

Ref import_exp(OpContext& op) { return unary(op, "exp"); }
Ref import_sqrt(OpContext& op) {
  if (op.plain_number(0)) return op.add(std::sqrt(op.number(0)));
  return unary(op, "sqrt");
}
Ref import_rsqrt(OpContext& op) { return unary(op, "rsqrt"); }
Ref import_log(OpContext& op) { return unary(op, "log"); }
Ref import_neg(OpContext& op) {
  if (const std::optional<PlainNumber> number = op.plain_number(0)) return number_negative(op, *number);
  return unary(op, "negative");
}
Ref import_abs(OpContext& op) { return unary(op, "abs"); }
Ref import_erf(OpContext& op) { return unary(op, "erf"); }

Ref import_elu(OpContext& op) {
  if (op.number(2, 1.0) != 1.0 || op.number(3, 1.0) != 1.0)
    throw Unsupported{"scale or input_scale other than 1"};
  return op.result(op.emit("nn.elu", {op.float_flow(0).value}, {{"alpha", op.number(1, 1.0)}}));
}

Ref import_silu(OpContext& op) {
  const ir::ValueId x = op.float_flow(0).value;
  return op.result(multiplied(op, x, op.emit("sigmoid", {x}, {})));
}

// scale * (x, and alpha * (exp(x) - 1) of negative ones), with the numbers of the paper as PyTorch has them.
Ref import_selu(OpContext& op) {
  const ir::ValueId elu =
      op.emit("nn.elu", {op.float_flow(0).value}, {{"alpha", 1.6732632423543772848170429916717}});
  return op.result(scaled(op, elu, 1.0507009873554804934193349852946));
}

// log(1 / (1 + exp(-x)))
Ref import_log_sigmoid(OpContext& op) {
  const ir::ValueId x = op.emit("negative", {op.float_flow(0).value}, {});
  return op.result(op.emit("negative", {softplus(op, x)}, {}));
}

Ref import_square(OpContext& op) {
  const ir::ValueId x = op.float_flow(0).value;
  return op.result(multiplied(op, x, x));
}

// log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold.
Ref import_softplus(OpContext& op) {
  constexpr double kExactFrom = 17;  // log(1 + exp(x)) is x in float32
  const ir::ValueId x = op.float_flow(0).value;
  const double beta = op.number(1, 1.0), threshold = op.number(2, 20.0);
  const ir::ValueId inner = beta == 1 ? x : scaled(op, x, beta);
  ir::ValueId value = softplus(op, inner);
  if (beta != 1) value = op.emit("divide", {value, op.scale(static_cast<float>(beta))}, {});
  if (threshold >= kExactFrom) return op.result(value);
  const ir::ValueId above = op.emit("less", {op.scale(static_cast<float>(threshold)), inner}, {});
  return op.result(emit_choice(op, above, x, value));
}

Ref import_mish(OpContext& op) {
  const ir::ValueId x = op.float_flow(0).value;
  return op.result(multiplied(op, x, op.emit("tanh", {softplus(op, x)}, {})));
}

Ref import_gelu(OpContext& op) { return op.result(gelu(op, op.float_flow(0).value, op.text(1, "none"))); }

// Squares and roots by their own operators, which are exact.
Ref import_pow(OpContext& op) {
  if (const std::optional<Ref> power = number_power(op)) return *power;
  if (!op.is_flow(0) && op.values().get<Tensor>(op.ref(0)) == nullptr) {
    const ir::ValueId base = op.scale(static_cast<float>(op.number(0)));
    return op.result(op.emit("power", {base, op.float_flow(1).value}, {}));
  }
  const ir::ValueId x = op.float_flow(0).value;
  const std::optional<double> number = op.scalar_beside(1, 0);
  if (!number) return op.result(op.emit("power", {x, op.float_flow(1).value}, {}));
  const double exponent = *number;
  if (exponent == 2) return op.result(multiplied(op, x, x));
  if (exponent == 0.5) return op.result(op.emit("sqrt", {x}, {}));
  return op.result(op.emit("power", {x, op.scale(static_cast<float>(exponent))}, {}));
}

Ref import_reciprocal(OpContext& op) {
  return op.result(op.emit("divide", {op.scale(1.0f), op.float_flow(0).value}, {}));
}

Ref import_log_softmax(OpContext& op) {
  op.expect_float_result(2);
  return softmax(op, "nn.log_softmax");
}
// half_to_float in the place of a dtype.
Ref import_core_softmax(OpContext& op) { return softmax(op, "nn.softmax"); }
Ref import_core_log_softmax(OpContext& op) { return softmax(op, "nn.log_softmax"); }

Ref import_sum(OpContext& op) { return accumulated(op, "sum"); }
Ref import_prod(OpContext& op) { return accumulated(op, "prod"); }
Ref import_amax(OpContext& op) { return reduction(op, "max", number_flow(op)); }
Ref import_amin(OpContext& op) { return reduction(op, "min", number_flow(op)); }

Ref import_layer_norm(OpContext& op) { return layer_norm(op, 4); }

// The result, and two statistics, which only training reads.
Ref import_native_layer_norm(OpContext& op) {
  const Ref result = layer_norm(op, 4);
  return op.add(Tuple{{result, op.add(None{}), op.add(None{})}});
}

Ref import_group_norm(OpContext& op) {
  return op.result(group_norm(op, op.integer(1), 2, 3, op.number(4, 1e-5)));
}

// Arguments 3 to 5 are extents. The result, and two statistics, which only training reads.
Ref import_native_group_norm(OpContext& op) {
  const Ref result = op.result(group_norm(op, op.integer(6), 1, 2, op.number(7)));
  return op.add(Tuple{{result, op.add(None{}), op.add(None{})}});
}

// Normalises each sample and each channel by itself, with the statistics of the data.
Ref import_instance_norm(OpContext& op) {
  if (op.has(3) || op.has(4)) throw Unsupported{"statistics that were collected"};
  const Flow input = op.float_flow(0);
  if (op.shape(input).size() < 2) throw Unsupported{"a tensor without a channel axis"};
  return op.result(group_norm(op, op.shape(input)[1], 1, 2, op.number(7, 1e-5)));
}

// softmax(query x key' * scale + mask) x value
Ref import_attention(OpContext& op) {
  const Flow query = op.float_flow(0), key = op.float_flow(1), value = op.float_flow(2);
  const ir::Shape& shape = op.shape(query);
  if (shape.size() < 2) throw Unsupported{cat("a tensor of rank ", shape.size())};
  if (op.number(4, 0.0) != 0.0) throw Unsupported{"dropout"};
  if (op.boolean(5, false)) throw Unsupported{"is_causal=True"};
  if (op.boolean(7, false)) throw Unsupported{"enable_gqa=True"};
  const double scale = op.number(6, 1.0 / std::sqrt(static_cast<double>(shape.back())));
  const ir::ValueId product = op.emit("nn.batch_matmul", {query.value, key.value}, {{"transpose_b", true}});
  ir::ValueId scores = scaled(op, product, scale);
  if (op.has(3)) scores = op.emit("add", {scores, op.float_flow(3).value}, {});
  const auto last = static_cast<int64_t>(op.shape(Flow{scores}).size()) - 1;
  const ir::ValueId weights = op.emit("nn.softmax", {scores}, {{"axis", last}});
  return op.result(op.emit("nn.batch_matmul", {weights, value.value}, {}));
}

// ---- LSTM and GRU: layers one after the other, in one direction or both ----

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
