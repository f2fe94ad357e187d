// Rounds of an LSTM or a GRU that float operators compute one after another, as an unrolled loop does, become
// nn.lstm or nn.gru over the whole sequence: one step of a plan in place of a dozen for each round. A round
// continues the one before it where it reads that one's state and has the same weights. Their inputs are
// elements of one tensor in order, states of another layer in order, or values that none of the layer's
// states reaches, which are joined. Where nothing of that folds any more, each round is a layer of one step.
// Lowering: the float sums of a gate are taken in the operator's order.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"
#include "src/packer/passes/pass.h"
#include "src/packer/passes/recurrence.h"
#include "src/packer/passes/rewrite_pass.h"
#include "src/packer/pattern/pattern.h"

namespace qplan::passes {
namespace {

using ir::Function;
using ir::Node;
using ir::ValueId;

// Inputs that are joined: as many as merged concatenations have. And layers that have such inputs, each of
// which takes a run of the pass.
constexpr size_t kMaxJoined = 64;
constexpr size_t kMaxJoinedLayers = 16;

// An element of one axis of a tensor, the others whole.
struct Element {
  ValueId data;
  size_t axis = 0;
  int64_t position = 0;
};

// States of an earlier recurrence, beginning with that of the round `position`.
struct Stack {
  size_t recurrence = 0;
  int64_t position = 0;
};

struct Recurrence {
  RecurrentLayer layer;
  std::vector<Round> rounds;
  std::vector<ValueId> data;        // x of each round
  ValueId first_state;              // invalid: zeros
  std::optional<Element> sequence;  // of the first x, where all are elements of one tensor
  std::optional<Stack> stack;       // else where all are such states
  int64_t direction = 1;            // of both

  const Round& last() const { return rounds.back(); }
  ValueId first_cell() const { return rounds.front().old_cell; }
};

std::optional<Element> element_of(const Function& function, ValueId value) {
  const Node* node = function.producer(value);
  if (node == nullptr || node->op == nullptr) return std::nullopt;
  Element element{node->operands[0], 0, 0};
  const ir::Shape& shape = function.type(element.data).shape;
  if (node->op->name == "split") {
    element.axis = static_cast<size_t>(op::normalized_axis(op::attr_int(*node, "axis"), shape.size()));
    if (function.type(value).shape[element.axis] != 1) return std::nullopt;
    element.position = function.value(value).result_index;  // one element each, where the axis is cut evenly
    const bool is_even = static_cast<int64_t>(node->results.size()) == shape[element.axis];
    return is_even ? std::optional(element) : std::nullopt;
  }
  if (node->op->name == "take") {
    const ir::ConstantRef indices = function.value(node->operands[1]).constant;
    if (indices == nullptr || indices->type().num_elements() != 1) return std::nullopt;
    element.axis = static_cast<size_t>(op::normalized_axis(op::attr_int(*node, "axis"), shape.size()));
    element.position = indices->type().dtype == ir::kInt64   ? indices->as<int64_t>()[0]
                       : indices->type().dtype == ir::kInt32 ? indices->as<int32_t>()[0]
                                                             : -1;
    const bool fits = element.position >= 0 && element.position < shape[element.axis];
    return fits ? std::optional(element) : std::nullopt;
  }
  if (node->op->name != "strided_slice") return std::nullopt;
  const std::vector<op::SliceRange> ranges = op::slice_ranges(*node, shape);
  bool found = false;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].count == shape[i] && ranges[i].step == 1) continue;
    if (ranges[i].count != 1 || found) return std::nullopt;
    found = true;
    element.axis = i;
    element.position = ranges[i].begin;
  }
  return found ? std::optional(element) : std::nullopt;
}

int64_t product(const ir::Shape& shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

// Whether the axis of the sequence comes before that of the samples; nullopt: the tensor is not a sequence.
std::optional<bool> is_time_major(const Function& function, const Element& element,
                                  const RecurrentLayer& layer) {
  const ir::Shape& shape = function.type(element.data).shape;
  const int64_t before = product(shape, 0, element.axis),
                after = product(shape, element.axis + 1, shape.size());
  // With one sample both orders fit. This one keeps the axis that the inputs were taken from, along which the
  // outputs are stacked.
  if (element.axis != 0 && before == layer.batch && after == layer.channels()) return false;
  if (before == 1 && after == layer.batch * layer.channels()) return true;
  return std::nullopt;
}

// 1 or -1 where the positions follow each other so.
std::optional<int64_t> direction_of(const std::vector<int64_t>& positions) {
  const int64_t direction = positions.size() > 1 ? positions[1] - positions[0] : 1;
  if (direction != 1 && direction != -1) return std::nullopt;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != positions[0] + static_cast<int64_t>(i) * direction) return std::nullopt;
  }
  return direction;
}

// The x of all rounds as elements of one tensor, forwards or backwards.
void find_sequence(const Function& function, Recurrence* chain) {
  std::vector<Element> elements;
  std::vector<int64_t> positions;
  for (const ValueId data : chain->data) {
    const std::optional<Element> element = element_of(function, data);
    if (!element) return;
    if (!elements.empty() && (element->data != elements[0].data || element->axis != elements[0].axis)) return;
    elements.push_back(*element);
    positions.push_back(element->position);
  }
  const std::optional<int64_t> direction = direction_of(positions);
  if (!direction || !is_time_major(function, elements[0], chain->layer)) return;
  chain->sequence = elements[0];
  chain->direction = *direction;
}

// Whether an x of the chain depends on a state that the chain makes.
bool reads_itself(const Function& function, const Recurrence& chain) {
  std::vector<bool> reached(function.num_values());
  const uint32_t first = function.value(chain.rounds.front().state).producer;
  const uint32_t last = function.value(chain.last().state).producer;
  for (const Round& round : chain.rounds) {
    reached[round.state.index] = true;
    if (round.cell.valid()) reached[round.cell.index] = true;
  }
  const auto& nodes = function.nodes();
  // A cell is made before the state of its round.
  const uint32_t begin =
      chain.first_cell().valid() ? function.value(chain.rounds.front().cell).producer : first;
  for (uint32_t i = begin; i <= last; ++i) {
    // What the rounds themselves compute reads their states, as it should: only the way to an x counts.
    const bool reads = std::ranges::any_of(nodes[i].operands, [&](ValueId v) { return reached[v.index]; });
    if (!reads) continue;
    for (const ValueId result : nodes[i].results) reached[result.index] = true;
  }
  return std::ranges::any_of(chain.data, [&](ValueId data) { return reached[data.index]; });
}

// ---- finding ----

class RecurrenceFinder {
 public:
  explicit RecurrenceFinder(const Function& function)
      : function_(function), uses_(ir::count_uses(function)) {}

  std::vector<Recurrence> run() {
    for (const Node& node : function_.nodes()) {
      if (std::optional<Round> round = find_round(function_, node)) add(std::move(*round));
    }
    for (Recurrence& chain : chains_) {
      if (!chain.layer.input.empty() || begin_alone(&chain)) place(std::move(chain));
    }
    // What is folded now may make sequences of the others' inputs.
    if (!folded_.empty()) return std::move(folded_);
    // Two layers whose inputs are joined may need each other's states in turn: one at a time.
    if (waiting_.size() <= kMaxJoinedLayers) {
      for (Recurrence& chain : waiting_) {
        if (chain.rounds.size() > kMaxJoined || reads_itself(function_, chain)) continue;
        folded_.push_back(std::move(chain));
        return std::move(folded_);
      }
    }
    for (const std::vector<Recurrence>* chains : {&waiting_, &stacked_}) {
      for (const Recurrence& chain : *chains) append_apart(chain);
    }
    return std::move(folded_);
  }

 private:
  // The round of a recurrence whose state a value is.
  struct Made {
    const std::vector<Recurrence>* list;
    size_t recurrence;
    int64_t position;
  };

  // Recurrences come in the order of their first rounds, so the layer that a stack reads comes before it.
  void place(Recurrence chain) {
    find_sequence(function_, &chain);
    const std::vector<Recurrence>* below = chain.sequence ? nullptr : find_stack(&chain);
    const bool waits = !chain.sequence && below != &folded_ && chain.rounds.size() > 1;
    std::vector<Recurrence>& list = !waits ? folded_ : below != nullptr ? stacked_ : waiting_;
    for (size_t i = 0; i < chain.rounds.size(); ++i)
      made_[chain.rounds[i].state.index] = {&list, list.size(), static_cast<int64_t>(i)};
    list.push_back(std::move(chain));
  }

  // The x of all rounds as states of one recurrence, forwards or backwards. Returns its list, or null.
  const std::vector<Recurrence>* find_stack(Recurrence* chain) const {
    if (chain->rounds.size() == 1) return nullptr;
    std::vector<int64_t> positions;
    const Made* first = nullptr;
    for (const ValueId data : chain->data) {
      const auto found = made_.find(data.index);
      if (found == made_.end()) return nullptr;
      if (first == nullptr) first = &found->second;
      if (found->second.list != first->list || found->second.recurrence != first->recurrence) return nullptr;
      positions.push_back(found->second.position);
    }
    const RecurrentLayer& below = (*first->list)[first->recurrence].layer;
    const std::optional<int64_t> direction = direction_of(positions);
    if (!direction || below.batch != chain->layer.batch || below.cells != chain->layer.channels())
      return nullptr;
    chain->direction = *direction;
    if (first->list == &folded_) chain->stack = {first->recurrence, positions[0]};
    return first->list;
  }

  // Each round as a layer of one step.
  void append_apart(const Recurrence& chain) {
    for (size_t i = 0; i < chain.rounds.size(); ++i) {
      Recurrence round;
      round.layer = chain.layer;
      round.rounds = {chain.rounds[i]};
      round.data = {chain.data[i]};
      round.first_state = i == 0 ? chain.first_state : chain.rounds[i - 1].state;
      folded_.push_back(std::move(round));
    }
  }

  ValueId link_of(const Round& round) const { return round.is_gru ? round.state : round.cell; }

  void add(Round round) {
    const ValueId before = round.is_gru ? round.old_state : round.old_cell;
    const auto found = ends_.find(before.index);
    const bool continues = found != ends_.end() && append(&chains_[found->second], round);
    const size_t chain = continues ? found->second : chains_.size();
    if (continues) ends_.erase(found);
    ends_[link_of(round).index] = chain;
    if (!continues) chains_.emplace_back().rounds.push_back(std::move(round));
  }

  bool append(Recurrence* chain, const Round& round) {
    const Round& last = chain->last();
    if (last.is_gru != round.is_gru || last.batch != round.batch || last.cells != round.cells) return false;
    // Two operators of an LSTM read a cell between rounds. What else does needs it as a value of its own.
    if (!last.is_gru && uses_[last.cell.index] != 2) return false;
    const std::optional<RoundInputs> inputs = inputs_with_state(round, last.state);
    if (!inputs) return false;
    if (chain->layer.input.empty()) {
      const std::optional<RoundInputs> first = inputs_with_layer(last, inputs->layer);
      if (!first) return false;
      begin(chain, *first);
    } else if (inputs->layer != chain->layer) {
      return false;
    }
    chain->rounds.push_back(round);
    chain->data.push_back(inputs->data);
    return true;
  }

  void begin(Recurrence* chain, const RoundInputs& first) {
    chain->layer = first.layer;
    chain->data = {first.data};
    chain->first_state = first.state;
  }

  bool begin_alone(Recurrence* chain) {
    const std::optional<RoundInputs> inputs = inputs_alone(chain->last());
    if (inputs) begin(chain, *inputs);
    return inputs.has_value();
  }

  const Function& function_;
  const std::vector<uint32_t> uses_;
  std::vector<Recurrence> chains_;
  std::unordered_map<uint32_t, size_t> ends_;  // the chain whose last cell or state the value is
  // What is folded in this run, what waits, and what waits for the states of one that waits.
  std::vector<Recurrence> folded_, waiting_, stacked_;
  std::unordered_map<uint32_t, Made> made_;
};

// ---- building ----

class RecurrenceBuilder {
 public:
  RecurrenceBuilder(const Function& function, std::vector<Recurrence> chains, PassContext& context)
      : function_(function),
        chains_(std::move(chains)),
        context_(context),
        rebuild_(function),
        seen_(function.nodes().size() + chains_.size()),
        outputs_(chains_.size()) {
    for (size_t i = 0; i < chains_.size(); ++i) {
      for (const Round& round : chains_[i].rounds) made_by_[round.state.index] = i;
      if (chains_[i].last().cell.valid()) made_by_[chains_[i].last().cell.index] = i;
    }
  }

  // Nodes in the order in which a walk from the outputs finishes them, with each chain as one of them.
  std::unique_ptr<Function> run() {
    for (const ValueId output : function_.outputs()) {
      enter(output);
      while (!open_.empty()) step();
    }
    for (const size_t task : order_) {
      if (task < function_.nodes().size()) {
        rebuild_.copy(PreNode(function_, task));
      } else {
        build(task - function_.nodes().size());
      }
    }
    return rebuild_.finish();
  }

 private:
  // A node, or after all nodes a chain.
  struct Open {
    size_t task;
    std::vector<ValueId> needs;
    size_t next = 0;
  };

  void enter(ValueId value) {
    const ir::Value& known = function_.value(value);
    if (known.kind != ir::ValueKind::kResult) return;
    const auto made = made_by_.find(value.index);
    if (made != made_by_.end()) wanted_.insert(value.index);
    enter_task(made != made_by_.end() ? function_.nodes().size() + made->second : known.producer);
  }

  // A stack and then what is below it, which is finished first. All that this one needs is needed by each of
  // its states, and so by the first of the stack: no stack is below itself.
  void enter_task(size_t task) {
    const size_t num_nodes = function_.nodes().size();
    while (!seen_[task]) {
      seen_[task] = true;
      open_.push_back({task, needs_of(task)});
      if (task < num_nodes || !chains_[task - num_nodes].stack) return;
      task = num_nodes + chains_[task - num_nodes].stack->recurrence;
    }
  }

  std::vector<ValueId> needs_of(size_t task) const {
    if (task < function_.nodes().size()) return function_.nodes()[task].operands;
    const Recurrence& chain = chains_[task - function_.nodes().size()];
    std::vector<ValueId> needs = chain.data;
    if (chain.sequence) needs = {chain.sequence->data};
    if (chain.stack) needs.clear();
    if (chain.first_state.valid()) needs.push_back(chain.first_state);
    if (chain.first_cell().valid()) needs.push_back(chain.first_cell());
    return needs;
  }

  void step() {
    Open& top = open_.back();
    if (top.next < top.needs.size()) return enter(top.needs[top.next++]);
    order_.push_back(top.task);
    open_.pop_back();
  }

  PostValue reshaped(PostValue value, const ir::Shape& shape, const std::string& name) {
    if (rebuild_.post().type(value).shape == shape) return value;
    return rebuild_.post().call("reshape", {value}, {{"newshape", shape}}, name);
  }

  // What a layer makes: [steps, batch, cells], or [batch, steps, cells].
  struct Output {
    PostValue states;
    bool time_major = true;
  };

  bool is_time_major_of(const Recurrence& chain) const {
    if (chain.stack) return outputs_[chain.stack->recurrence].time_major;
    return !chain.sequence || *is_time_major(function_, *chain.sequence, chain.layer);
  }

  PostValue join(const Recurrence& chain, const std::string& name) {
    std::vector<PostValue> parts;
    for (const ValueId data : chain.data)
      parts.push_back(
          reshaped(rebuild_[PreValue{data}], {1, chain.layer.batch, chain.layer.channels()}, name));
    return parts.size() == 1 ? parts[0]
                             : rebuild_.post().call("concatenate", parts, {{"axis", int64_t{0}}}, name);
  }

  // [steps, batch, channels], or [batch, steps, channels].
  PostValue sequence_of(const Recurrence& chain, bool time_major, const std::string& name) {
    if (!chain.sequence && !chain.stack) return join(chain, name);
    const RecurrentLayer& layer = chain.layer;
    const auto steps = static_cast<int64_t>(chain.rounds.size());
    PostValue data;
    int64_t axis = time_major ? 0 : 1, first = 0;
    if (chain.stack) {
      data = outputs_[chain.stack->recurrence].states;
      first = chain.stack->position;
    } else {
      data = rebuild_[PreValue{chain.sequence->data}];
      axis = static_cast<int64_t>(chain.sequence->axis);
      first = chain.sequence->position;
    }
    const int64_t extent = rebuild_.post().type(data).shape[static_cast<size_t>(axis)];
    if (chain.direction < 0 || steps != extent) {
      const int64_t end = first + chain.direction * steps;
      data = rebuild_.post().call("strided_slice", {data},
                                  {{"begin", ir::Ints{first}},
                                   {"end", ir::Ints{end < 0 ? -extent - 1 : end}},
                                   {"strides", ir::Ints{chain.direction}},
                                   {"axes", ir::Ints{axis}}},
                                  name);
    }
    return reshaped(data,
                    time_major ? ir::Shape{steps, layer.batch, layer.channels()}
                               : ir::Shape{layer.batch, steps, layer.channels()},
                    name);
  }

  PostValue floats(ir::Shape shape, const std::vector<float>& values) {
    return rebuild_.post().constant_value(ir::make_constant(ir::kFloat32, std::move(shape), values));
  }

  // The parts of all gates, one after another.
  PostValue weights_of(const std::vector<WeightPart>& parts, int64_t cells) {
    std::vector<float> values;
    for (const WeightPart& part : parts) {
      const ir::Constant& weights = *function_.value(part.weights).constant;
      const auto width = static_cast<size_t>(weights.type().shape[1]);
      for (int64_t cell = 0; cell < cells; ++cell) {
        const std::span<const float> row = weights.as<float>().subspan(
            static_cast<size_t>(part.first_row + cell) * width + static_cast<size_t>(part.first_column),
            static_cast<size_t>(part.columns));
        values.insert(values.end(), row.begin(), row.end());
      }
    }
    return floats({static_cast<int64_t>(parts.size()) * cells, parts[0].columns}, values);
  }

  std::vector<float> bias_of(const std::vector<BiasPart>& parts, int64_t cells) const {
    std::vector<float> sums(static_cast<size_t>(cells));
    for (const BiasPart& part : parts) {
      const std::span<const float> values = function_.value(part.constant).constant->as<float>();
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += values[values.size() == 1 ? 0 : static_cast<size_t>(part.first) + i];
    }
    return sums;
  }

  std::vector<PostValue> emit(const Recurrence& chain, bool time_major, const std::string& name) {
    const RecurrentLayer& layer = chain.layer;
    const ir::Shape state = {layer.batch, layer.cells};
    const int64_t rows = layer.num_gates() * layer.cells;
    std::vector<float> bias, reset_bias(static_cast<size_t>(rows));
    for (const std::vector<BiasPart>& parts : layer.biases) {
      const std::vector<float> sums = bias_of(parts, layer.cells);
      bias.insert(bias.end(), sums.begin(), sums.end());
    }
    std::ranges::copy(bias_of(layer.reset_biases, layer.cells), reset_bias.end() - layer.cells);
    const auto first = [&](ValueId value) {
      if (value.valid()) return reshaped(rebuild_[PreValue{value}], state, name);
      return floats(state, std::vector<float>(static_cast<size_t>(layer.batch * layer.cells)));
    };
    std::vector<PostValue> operands = {sequence_of(chain, time_major, name),
                                       weights_of(layer.input, layer.cells),
                                       weights_of(layer.recurrent, layer.cells), floats({rows}, bias)};
    if (layer.is_gru) {
      operands.push_back(floats({rows}, reset_bias));
      operands.push_back(first(chain.first_state));
      return rebuild_.post().call_all("nn.gru", operands,
                                      {{"time_major", time_major}, {"reset_after", layer.reset_after}}, name);
    }
    const std::vector<float> scales(static_cast<size_t>(2 * layer.num_gates()), 1.0f);
    operands.push_back(floats({2 * layer.num_gates()}, scales));
    operands.push_back(first(chain.first_state));
    operands.push_back(first(chain.first_cell()));
    return rebuild_.post().call_all("nn.lstm", operands, {{"time_major", time_major}}, name);
  }

  void build(size_t index) {
    const Recurrence& chain = chains_[index];
    const std::string& name = function_.nodes()[function_.value(chain.last().state).producer].name;
    const bool time_major = is_time_major_of(chain);
    const std::vector<PostValue> results = emit(chain, time_major, name);
    outputs_[index] = {results[0], time_major};
    const auto replace = [&](ValueId value, PostValue replacement) {
      rebuild_.replace(PreValue{value}, reshaped(replacement, function_.type(value).shape, name));
    };
    const auto wanted = [&](const Round& round) { return wanted_.contains(round.state.index); };
    // Alone, the last state is a result of its own; beside others it is a part of the sequence.
    const bool is_alone = std::none_of(chain.rounds.begin(), chain.rounds.end() - 1, wanted);
    for (size_t i = 0; i < chain.rounds.size(); ++i) {
      if (!wanted(chain.rounds[i])) continue;
      const auto position = static_cast<int64_t>(i);
      replace(chain.rounds[i].state, is_alone ? results[1]
                                              : rebuild_.post().call("strided_slice", {results[0]},
                                                                     {{"begin", ir::Ints{position}},
                                                                      {"end", ir::Ints{position + 1}},
                                                                      {"axes", ir::Ints{time_major ? 0 : 1}}},
                                                                     name));
    }
    if (!chain.layer.is_gru) replace(chain.last().cell, results[2]);
    context_.fired(
        "fold_recurrence", name,
        cat(count_text(chain.rounds.size(), "round"), " of ",
            chain.layer.is_gru ? "a GRU, now nn.gru" : "an LSTM, now nn.lstm", "; float sums in its order"));
  }

  const Function& function_;
  const std::vector<Recurrence> chains_;
  PassContext& context_;
  Rebuild rebuild_;
  std::unordered_map<uint32_t, size_t> made_by_;  // chains, by values that they make
  std::set<uint32_t> wanted_;                     // of these, those that something else reads
  std::vector<bool> seen_;                        // tasks
  std::vector<Output> outputs_;                   // of chains
  std::vector<Open> open_;
  std::vector<size_t> order_;
};

}  // namespace

std::unique_ptr<ir::Function> run_fold_recurrence(const ir::Module&, const ir::Function& pre,
                                                  PassContext& context) {
  if (context.keep_float) return nullptr;
  std::vector<Recurrence> chains;
  std::vector<std::optional<size_t>> places;  // in chains, of all that were found
  for (Recurrence& chain : RecurrenceFinder(pre).run()) {
    std::optional<size_t>& place = places.emplace_back();
    if (chain.stack) {
      const std::optional<size_t> below = places[chain.stack->recurrence];
      if (!below) continue;
      chain.stack->recurrence = *below;
    }
    const RecurrentLayer& layer = chain.layer;
    const int64_t bytes = 4 * layer.num_gates() * layer.cells * (layer.channels() + layer.cells + 2) +
                          8 * layer.batch * layer.cells;
    if (bytes > context.fold_budget.bytes) continue;
    context.fold_budget.bytes -= bytes;
    place = chains.size();
    chains.push_back(std::move(chain));
  }
  if (chains.empty()) return nullptr;
  return RecurrenceBuilder(pre, std::move(chains), context).run();
}

}  // namespace qplan::passes
