#include "src/packer/passes/recurrence.h"

#include <array>
#include <functional>
#include <utility>

#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::passes {
namespace {

using ir::Function;
using ir::Node;
using ir::ValueId;

const Node* producer(const Function& function, ValueId value, std::string_view op) {
  const Node* node = function.producer(value);
  return node != nullptr && node->op != nullptr && node->op->name == op ? node : nullptr;
}

// The operand of the function that makes the value; invalid: another operator makes it.
ValueId argument(const Function& function, ValueId value, std::string_view op) {
  const Node* node = producer(function, value, op);
  return node != nullptr ? node->operands[0] : ValueId{};
}

// The two operands in either order, until `matches` holds for one.
bool either_order(const Node& node, const std::function<bool(ValueId, ValueId)>& matches) {
  return matches(node.operands[0], node.operands[1]) || matches(node.operands[1], node.operands[0]);
}

// ---- what enters a gate ----

class SumReader {
 public:
  SumReader(const Function& function, int64_t batch, int64_t cells)
      : function_(function), batch_(batch), cells_(cells) {}

  std::optional<GateSum> read(ValueId value) {
    if (!visit_all(value)) return std::nullopt;
    take_apart();
    return sum_;
  }
  // The same of a sum over the data alone, or over the state alone.
  std::optional<GateSum> read_whole(ValueId value) {
    return visit_all(value) ? std::optional(sum_) : std::nullopt;
  }

 private:
  // A gate is a sum of a handful of terms; longer sums are not gates.
  static constexpr int kMaxVisited = 32;

  bool visit_all(ValueId value) {
    sum_ = {};
    num_visited_ = 0;
    return visit(value, 0);
  }

  // The columns [first, first + cells) of the value.
  bool visit(ValueId value, int64_t first) {
    if (++num_visited_ > kMaxVisited) return false;
    const ir::TensorType& type = function_.type(value);
    if (type.dtype != ir::kFloat32) return false;
    if (function_.is_constant(value)) return add_bias(value, first);
    const Node* node = function_.producer(value);
    if (node == nullptr || node->op == nullptr || type.shape.empty()) return false;
    const int64_t width = type.shape.back();
    if (type.num_elements() != batch_ * width || first + cells_ > width) return false;
    const std::string& name = node->op->name;
    if (name == "nn.dense") return add_product(*node, first);
    if (name == "add") return visit_term(*node, 0, width, first) && visit_term(*node, 1, width, first);
    if (name == "nn.bias_add") {
      const size_t rank = type.shape.size();
      return op::normalized_axis(op::attr_int(*node, "axis"), rank) == static_cast<int64_t>(rank) - 1 &&
             visit(node->operands[0], first) && function_.is_constant(node->operands[1]) &&
             add_bias(node->operands[1], first);
    }
    if (name == "reshape") {
      const ir::Shape& shape = function_.type(node->operands[0]).shape;
      return !shape.empty() && shape.back() == width && visit(node->operands[0], first);
    }
    if (name == "strided_slice") return visit_slice(*node, first);
    if (name == "split") return visit_split(*node, function_.value(value).result_index, first);
    return false;
  }

  // An operand of an addition: as wide as the sum, or a constant.
  bool visit_term(const Node& node, size_t operand, int64_t width, int64_t first) {
    const ValueId term = node.operands[operand];
    const ir::TensorType& type = function_.type(term);
    if (function_.is_constant(term)) return visit(term, first);
    return !type.shape.empty() && type.shape.back() == width && visit(term, first);
  }

  bool visit_slice(const Node& node, int64_t first) {
    const ir::Shape& shape = function_.type(node.operands[0]).shape;
    const std::vector<op::SliceRange> ranges = op::slice_ranges(node, shape);
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].step != 1) return false;
      if (i + 1 < ranges.size() && ranges[i].count != shape[i]) return false;
    }
    return visit(node.operands[0], first + ranges.back().begin);
  }

  bool visit_split(const Node& node, uint32_t part, int64_t first) {
    const size_t rank = function_.type(node.operands[0]).shape.size();
    if (op::normalized_axis(op::attr_int(node, "axis"), rank) != static_cast<int64_t>(rank) - 1) return false;
    for (uint32_t i = 0; i < part; ++i) first += function_.type(node.results[i]).shape.back();
    return visit(node.operands[0], first);
  }

  bool add_bias(ValueId constant, int64_t first) {
    const ir::TensorType& type = function_.type(constant);
    const bool is_one = type.num_elements() == 1;
    if (!is_one && (type.shape.back() != type.num_elements() || first + cells_ > type.num_elements()))
      return false;
    sum_.biases.push_back({constant, is_one ? 0 : first});
    return true;
  }

  bool add_product(const Node& dense, int64_t first) {
    const ValueId weights = dense.operands[1];
    if (!function_.is_constant(weights) || function_.type(weights).dtype != ir::kFloat32) return false;
    const ValueId data = without_reshapes(function_, dense.operands[0]);
    const int64_t columns = function_.type(weights).shape[1];
    if (function_.type(data).num_elements() != batch_ * columns) return false;
    sum_.products.push_back({{weights, first, 0, columns}, data, {}});
    return true;
  }

  // The only product of a sum is one of data and state side by side.
  void take_apart() {
    if (sum_.products.size() != 1) return;
    const GateSum::Product whole = sum_.products[0];
    const Node* joined = producer(function_, whole.data, "concatenate");
    if (joined == nullptr) return;
    const ir::Shape& shape = function_.type(whole.data).shape;
    const bool is_last = op::normalized_axis(op::attr_int(*joined, "axis"), shape.size()) ==
                         static_cast<int64_t>(shape.size()) - 1;
    if (!is_last || shape.back() != whole.part.columns || joined->operands.size() != 2) return;
    sum_.products.clear();
    int64_t column = 0;
    for (const ValueId part : joined->operands) {
      const int64_t width = function_.type(part).shape.back();
      sum_.products.push_back(
          {{whole.part.weights, whole.part.first_row, column, width}, without_reshapes(function_, part), {}});
      column += width;
    }
  }

  const Function& function_;
  int64_t batch_, cells_;
  GateSum sum_;
  int num_visited_ = 0;
};

// ---- rounds ----

// A state has a row of cells for each sample.
bool read_extents(const Function& function, ValueId state, Round* round) {
  const ir::TensorType& type = function.type(state);
  if (type.dtype != ir::kFloat32 || type.shape.empty()) return false;
  round->cells = type.shape.back();
  round->batch = type.num_elements() / round->cells;
  return true;
}

// logistic(first gate) * other; gets the gate.
bool is_gated(const Function& function, ValueId gate, ValueId other, const ir::TensorType& type,
              SumReader& reader, GateSum* sum) {
  const ValueId value = argument(function, gate, "sigmoid");
  if (!value.valid() || function.type(gate) != type || function.type(other) != type) return false;
  std::optional<GateSum> found = reader.read(value);
  if (found) *sum = std::move(*found);
  return found.has_value();
}

// h = o * tanh(c), c = f * old c + i * g.
std::optional<Round> find_lstm(const Function& function, const Node& node) {
  Round round;
  round.state = node.results[0];
  if (!read_extents(function, round.state, &round)) return std::nullopt;
  const ir::TensorType& type = function.type(round.state);
  SumReader reader(function, round.batch, round.cells);
  std::array<GateSum, 4> gates;
  const auto is_candidate = [&](ValueId input, ValueId candidate) {
    const ValueId value = argument(function, candidate, "tanh");
    if (!value.valid() || !is_gated(function, input, candidate, type, reader, &gates[0])) return false;
    std::optional<GateSum> found = reader.read(value);
    if (found) gates[2] = std::move(*found);
    return found.has_value();
  };
  const auto is_kept = [&](ValueId forget, ValueId old_cell) {
    if (!is_gated(function, forget, old_cell, type, reader, &gates[1])) return false;
    round.old_cell = without_reshapes(function, old_cell);
    return true;
  };
  const auto is_cell = [&](ValueId kept, ValueId added) {
    const Node* first = producer(function, kept, "multiply");
    const Node* second = producer(function, added, "multiply");
    return first != nullptr && second != nullptr && either_order(*first, is_kept) &&
           either_order(*second, is_candidate);
  };
  const bool found = either_order(node, [&](ValueId output, ValueId bounded) {
    round.cell = argument(function, bounded, "tanh");
    if (!round.cell.valid() || !is_gated(function, output, bounded, type, reader, &gates[3])) return false;
    const Node* sum = producer(function, round.cell, "add");
    return sum != nullptr && either_order(*sum, is_cell);
  });
  if (!found) return std::nullopt;
  round.gates.assign(std::make_move_iterator(gates.begin()), std::make_move_iterator(gates.end()));
  return round;
}

// 1 - z, of this z.
bool is_complement(const Function& function, ValueId value, ValueId gate) {
  const Node* node = producer(function, value, "subtract");
  if (node == nullptr || node->operands[1] != gate || !function.is_constant(node->operands[0])) return false;
  const ir::Constant& one = *function.value(node->operands[0]).constant;
  for (const float element : one.as<float>()) {
    if (element != 1.0f) return false;
  }
  return true;
}

class GruReader {
 public:
  GruReader(const Function& function, Round* round)
      : function_(function), round_(*round), sums_(function, round->batch, round->cells) {}

  // z * old h + (1 - z) * n
  bool read(ValueId kept, ValueId added) {
    const Node* first = producer(function_, kept, "multiply");
    const Node* second = producer(function_, added, "multiply");
    if (first == nullptr || second == nullptr) return false;
    const ir::TensorType& type = function_.type(round_.state);
    round_.gates.assign(3, {});
    return either_order(*first, [&](ValueId update, ValueId old_state) {
      if (!is_gated(function_, update, old_state, type, sums_, &round_.gates[0])) return false;
      round_.old_state = without_reshapes(function_, old_state);
      return either_order(*second, [&](ValueId complement, ValueId candidate) {
        const ValueId value = argument(function_, candidate, "tanh");
        return value.valid() && function_.type(candidate) == type &&
               is_complement(function_, complement, update) && read_candidate(value);
      });
    });
  }

 private:
  bool read_candidate(ValueId value) { return read_reset_after(value) || read_reset_before(value); }

  // in n + r * (what the state contributes)
  bool read_reset_after(ValueId value) {
    const Node* sum = producer(function_, value, "add");
    if (sum == nullptr) return false;
    return either_order(*sum, [&](ValueId of_input, ValueId of_state) {
      const Node* product = producer(function_, of_state, "multiply");
      if (product == nullptr || !is_state(function_.type(of_state))) return false;
      const bool found = either_order(*product, [&](ValueId gate, ValueId inner) {
        return is_gated(function_, gate, inner, function_.type(round_.state), sums_, &round_.gates[1]) &&
               assign(sums_.read_whole(inner), &round_.reset);
      });
      if (!found || !assign(sums_.read_whole(of_input), &round_.gates[2])) return false;
      if (round_.gates[2].products.size() != 1 || round_.reset.products.size() != 1) return false;
      round_.reset.products[0].reset_state = round_.reset.products[0].data;
      round_.reset_after = true;
      return true;
    });
  }

  // in n + (product of r * old h)
  bool read_reset_before(ValueId value) {
    if (!assign(sums_.read(value), &round_.gates[2])) return false;
    for (GateSum::Product& product : round_.gates[2].products) {
      const Node* reset = producer(function_, product.data, "multiply");
      if (reset == nullptr) continue;
      const bool found = either_order(*reset, [&](ValueId gate, ValueId old_state) {
        return without_reshapes(function_, old_state) == round_.old_state &&
               is_gated(function_, gate, old_state, function_.type(round_.state), sums_, &round_.gates[1]);
      });
      if (!found) continue;
      product.reset_state = round_.old_state;
      round_.reset_after = false;
      return true;
    }
    return false;
  }

  bool is_state(const ir::TensorType& type) const { return type == function_.type(round_.state); }
  static bool assign(std::optional<GateSum> found, GateSum* sum) {
    if (found) *sum = std::move(*found);
    return found.has_value();
  }

  const Function& function_;
  Round& round_;
  SumReader sums_;
};

std::optional<Round> find_gru(const Function& function, const Node& node) {
  Round round;
  round.is_gru = true;
  round.state = node.results[0];
  if (!read_extents(function, round.state, &round)) return std::nullopt;
  GruReader reader(function, &round);
  const bool found =
      either_order(node, [&](ValueId kept, ValueId added) { return reader.read(kept, added); });
  return found ? std::optional(std::move(round)) : std::nullopt;
}

// ---- layers ----

// A gate's two products; that of the state may be missing.
struct GateParts {
  const GateSum::Product* input = nullptr;
  const GateSum::Product* recurrent = nullptr;
};

ValueId state_read_by(const GateSum::Product& product) {
  return product.reset_state.valid() ? product.reset_state : product.data;
}

// Which of a gate's two products is that of the state.
std::optional<GateParts> parts_with_state(const std::array<const GateSum::Product*, 2>& products,
                                          ValueId state) {
  const auto parts = [&](size_t recurrent) {
    return GateParts{products[1 - recurrent], products[recurrent]};
  };
  std::optional<GateParts> found;
  if (products[0]->reset_state.valid() || products[1]->reset_state.valid()) {
    found = parts(products[1]->reset_state.valid() ? 1 : 0);
    if (found->input->reset_state.valid()) return std::nullopt;
  } else {
    found = parts(products[1]->data == state ? 1 : 0);
  }
  return state_read_by(*found->recurrent) == state ? found : std::nullopt;
}

std::optional<RoundInputs> inputs_of(const Round& round, const std::vector<GateParts>& gates) {
  RoundInputs inputs;
  RecurrentLayer& layer = inputs.layer;
  layer.is_gru = round.is_gru;
  layer.reset_after = round.reset_after;
  layer.batch = round.batch;
  layer.cells = round.cells;
  inputs.data = gates[0].input->data;
  for (size_t i = 0; i < gates.size(); ++i) {
    const GateParts& gate = gates[i];
    if (gate.input->data != inputs.data || gate.input->part.columns != gates[0].input->part.columns)
      return std::nullopt;
    layer.input.push_back(gate.input->part);
    layer.biases.push_back(round.gates[i].biases);
    if (gate.recurrent == nullptr) continue;
    layer.recurrent.push_back(gate.recurrent->part);
    inputs.state = state_read_by(*gate.recurrent);
  }
  if (round.reset_after) layer.reset_biases = round.reset.biases;
  return inputs;
}

// A GRU adds its h to the new one. That of an LSTM is one of the values that its gates read.
std::vector<ValueId> possible_states(const Round& round) {
  if (round.is_gru) return {round.old_state};
  std::vector<ValueId> states;
  for (const GateSum::Product& product : round.gates[0].products) states.insert(states.begin(), product.data);
  return states;
}

bool has_data_alone(const Round& round) {
  for (const GateSum& gate : round.gates) {
    if (gate.products.size() != 1) return false;
  }
  return true;
}

}  // namespace

ir::ValueId without_reshapes(const Function& function, ValueId value) {
  // Longer chains become one reshape sooner or later; walking them for each reader would cost too much.
  constexpr int kMaxReshapes = 8;
  for (int i = 0; i < kMaxReshapes; ++i) {
    const Node* node = producer(function, value, "reshape");
    if (node == nullptr) break;
    value = node->operands[0];
  }
  return value;
}

std::optional<Round> find_round(const Function& function, const Node& node) {
  if (node.op == nullptr) return std::nullopt;
  if (node.op->name == "multiply") return find_lstm(function, node);
  if (node.op->name == "add") return find_gru(function, node);
  return std::nullopt;
}

std::optional<RoundInputs> inputs_with_state(const Round& round, ValueId state) {
  std::vector<GateParts> gates;
  for (const GateSum& gate : round.gates) {
    std::vector<const GateSum::Product*> products;
    for (const GateSum::Product& product : gate.products) products.push_back(&product);
    // What the gate r acts on is a sum of its own where it comes after the product.
    if (round.reset_after && &gate == &round.gates.back()) products.push_back(round.reset.products.data());
    if (products.size() != 2) return std::nullopt;
    const std::optional<GateParts> parts = parts_with_state({products[0], products[1]}, state);
    if (!parts || parts->recurrent->part.columns != round.cells) return std::nullopt;
    gates.push_back(*parts);
  }
  return inputs_of(round, gates);
}

std::optional<RoundInputs> inputs_alone(const Round& round) {
  for (const ValueId state : possible_states(round)) {
    if (std::optional<RoundInputs> inputs = inputs_with_state(round, state)) return inputs;
  }
  return std::nullopt;
}

std::optional<RoundInputs> inputs_with_layer(const Round& round, const RecurrentLayer& layer) {
  if (round.is_gru != layer.is_gru || round.gates.size() != layer.input.size()) return std::nullopt;
  if (!round.is_gru && has_data_alone(round)) {
    std::vector<GateParts> gates;
    for (const GateSum& gate : round.gates) gates.push_back({gate.products.data(), nullptr});
    std::optional<RoundInputs> inputs = inputs_of(round, gates);
    if (!inputs) return std::nullopt;
    // The biases tell that nothing else was folded into them.
    inputs->layer.recurrent = layer.recurrent;
    return inputs->layer == layer ? inputs : std::nullopt;
  }
  for (const ValueId state : possible_states(round)) {
    std::optional<RoundInputs> inputs = inputs_with_state(round, state);
    if (inputs && inputs->layer == layer) return inputs;
  }
  return std::nullopt;
}

}  // namespace qplan::passes
