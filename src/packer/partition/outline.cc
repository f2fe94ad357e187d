#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/partition/partition.h"
#include "src/packer/partition/stages.h"

namespace qplan::partition {
namespace {

// Values of the old function in a new one.
class ValueMap {
 public:
  ValueMap(const ir::Function& from, ir::Function* to) : from_(from), to_(*to) {}

  bool has(ir::ValueId value) const { return map_.contains(value.index); }
  void set(ir::ValueId value, ir::ValueId mapped) { map_[value.index] = mapped; }
  // Constants come along when they are asked for.
  ir::ValueId operator[](ir::ValueId value) {
    const auto it = map_.find(value.index);
    if (it != map_.end()) return it->second;
    const ir::Value& old = from_.value(value);
    if (old.kind != ir::ValueKind::kConstant)
      throw PackError(QPLAN_INTERNAL,
                      cat("outline: value ", value.index, " of '", from_.name(), "' is not defined yet"));
    return map_[value.index] = to_.add_constant(old.constant, old.name);
  }
  void copy_node(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId operand : node.operands) operands.push_back((*this)[operand]);
    if (node.op != nullptr) {
      finish(node.results, to_.add_node(*node.op, std::move(operands), node.attrs, node.name).results);
      return;
    }
    std::vector<ir::TensorType> types;
    for (const ir::ValueId result : node.results) types.push_back(from_.type(result));
    ir::Node& call = to_.add_call(node.callee, std::move(operands), std::move(types), node.name);
    call.attrs = node.attrs;
    finish(node.results, call.results);
  }
  // A call of a function that takes these values and returns those.
  void call(const std::string& callee, const std::vector<ir::ValueId>& inputs,
            const std::vector<ir::ValueId>& outputs, const std::string& name) {
    std::vector<ir::ValueId> operands;
    for (const ir::ValueId input : inputs) operands.push_back((*this)[input]);
    std::vector<ir::TensorType> types;
    for (const ir::ValueId output : outputs) types.push_back(from_.type(output));
    finish(outputs, to_.add_call(callee, std::move(operands), std::move(types), name).results);
  }
  void add_params(const std::vector<ir::ValueId>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      set(values[i], to_.add_param(cat("i", i), from_.type(values[i])));
  }
  std::vector<ir::ValueId> operator()(std::span<const ir::ValueId> values) {
    std::vector<ir::ValueId> mapped;
    for (const ir::ValueId value : values) mapped.push_back((*this)[value]);
    return mapped;
  }

 private:
  void finish(std::span<const ir::ValueId> old, const std::vector<ir::ValueId>& results) {
    for (size_t i = 0; i < old.size(); ++i) {
      set(old[i], results[i]);
      to_.set_value_name(results[i], from_.value(old[i]).name);
    }
  }

  const ir::Function& from_;
  ir::Function& to_;
  std::unordered_map<uint32_t, ir::ValueId> map_;
};

// "qconv2d" of "qplan.qconv2d".
std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

class Outliner {
 public:
  Outliner(const ir::Function& main, const Annotation& annotation, const Islands& islands)
      : old_(main), annotation_(annotation), islands_(islands) {}

  Outlined run() {
    result_.function_name.resize(islands_.islands.size());
    ir::Function& main = result_.module.add_function(old_.name());
    main.attrs() = old_.attrs();
    ValueMap map(old_, &main);
    for (const ir::ValueId param : old_.params()) {
      map.set(param, main.add_param(old_.value(param).name, old_.type(param)));
    }
    for (const uint32_t item : order_of_items()) {
      const uint32_t island = island_of(item);
      if (island == kNoRegion) {
        map.copy_node(old_.nodes()[item]);
      } else {
        add_region(island, &map);
      }
    }
    main.set_outputs(map(old_.outputs()), old_.output_names());
    return std::move(result_);
  }

 private:
  uint32_t island_of(uint32_t node) const {
    const uint32_t island = islands_.island_of[annotation_.unit_of[node]];
    return island != kNoRegion && islands_.islands[island].alive ? island : kNoRegion;
  }
  // Returns a node of main; the first node of an island represents the whole island.
  uint32_t item_of(uint32_t node) const {
    const uint32_t island = island_of(node);
    return island == kNoRegion ? node : annotation_.units[islands_.islands[island].units[0]].nodes[0];
  }

  // A topological order that takes, among the nodes that could come next, the one that came first in the old
  // main.
  std::vector<uint32_t> order_of_items() const {
    const size_t size = old_.nodes().size();
    std::vector<std::vector<uint32_t>> next(size);
    std::vector<uint32_t> waits(size, 0);
    for (uint32_t n = 0; n < size; ++n) {
      for (const ir::ValueId operand : old_.nodes()[n].operands) {
        const ir::Value& value = old_.value(operand);
        if (value.kind != ir::ValueKind::kResult) continue;
        const uint32_t from = item_of(value.producer), to = item_of(n);
        if (from == to) continue;
        next[from].push_back(to);
        ++waits[to];
      }
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    size_t num_items = 0;
    for (uint32_t n = 0; n < size; ++n) {
      if (item_of(n) != n) continue;
      ++num_items;
      if (waits[n] == 0) ready.push(n);
    }
    std::vector<uint32_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const uint32_t to : next[order.back()]) {
        if (--waits[to] == 0) ready.push(to);
      }
    }
    if (order.size() != num_items)
      throw PackError(QPLAN_INTERNAL, "outline: regions read each other in a circle");
    return order;
  }

  void add_region(uint32_t i, ValueMap* main_map) {
    const Island& island = islands_.islands[i];
    const std::string& target = annotation_.units[island.units[0]].target->name;
    const bool is_program = annotation_.units[island.units[0]].is_program;
    std::string name =
        cat("qplan_", target, "_", is_program ? "program" : old_.name(), "_", count_[target]++);
    std::ranges::replace(name, '-', '_');  // names are identifiers, targets may be "ethos-u55-128"
    result_.order.push_back(i);
    result_.function_name[i] = name;
    ir::Function& region = result_.module.add_function(name);
    region.attrs() = {{"Compiler", target}, {"Primitive", int64_t{1}}, {"global_symbol", name}};
    ValueMap map(old_, &region);
    map.add_params(island.inputs);
    size_t num_composites = 0;
    for (const uint32_t u : island.units) {
      const Unit& unit = annotation_.units[u];
      if (unit.row->is_operator()) {
        for (const uint32_t n : unit.nodes) map.copy_node(old_.nodes()[n]);
      } else {
        add_composite(unit, cat(name, "_", last_part(unit.row->name), "_", num_composites++), &map);
      }
    }
    region.set_outputs(map(island.outputs));
    main_map->call(name, island.inputs, island.outputs, name);
  }

  void add_composite(const Unit& unit, const std::string& name, ValueMap* region_map) {
    ir::Function& composite = result_.module.add_function(name);
    composite.attrs() = {{"Composite", unit.row->name}, {"Primitive", int64_t{1}}};
    std::vector<ir::ValueId> inputs;
    std::unordered_map<uint32_t, bool> known;
    for (const uint32_t n : unit.nodes) {
      for (const ir::ValueId operand : old_.nodes()[n].operands) {
        if (old_.is_constant(operand) || !known.emplace(operand.index, true).second) continue;
        inputs.push_back(operand);
      }
      for (const ir::ValueId result : old_.nodes()[n].results) known.emplace(result.index, true);
    }
    ValueMap map(old_, &composite);
    map.add_params(inputs);
    for (const uint32_t n : unit.nodes) map.copy_node(old_.nodes()[n]);
    const ir::Node& root = old_.nodes()[unit.root()];
    composite.set_outputs(map(root.results));
    region_map->call(name, inputs, root.results, root.name);
  }

  const ir::Function& old_;
  const Annotation& annotation_;
  const Islands& islands_;
  std::unordered_map<std::string, uint32_t> count_;  // regions by target
  Outlined result_;
};

}  // namespace

Outlined outline(const ir::Function& main, const Annotation& annotation, const Islands& islands) {
  return Outliner(main, annotation, islands).run();
}

namespace {

// One function whose body is being copied.
struct Frame {
  const ir::Function* function;
  std::unordered_map<uint32_t, ir::ValueId> map;  // its values in the result
  size_t next = 0;                                // node
  const ir::Node* call = nullptr;                 // of the frame below
};

}  // namespace

// With a stack of its own: calls may be nested as deep as there are functions.
std::unique_ptr<ir::Function> inline_calls(const ir::Module& module, const ir::Function& function) {
  auto result = std::make_unique<ir::Function>(function.name());
  result->attrs() = function.attrs();
  std::vector<Frame> stack(1);
  stack[0].function = &function;
  for (const ir::ValueId param : function.params()) {
    stack[0].map[param.index] = result->add_param(function.value(param).name, function.type(param));
  }
  const auto mapped = [&](Frame& frame, ir::ValueId value) {
    const auto it = frame.map.find(value.index);
    if (it != frame.map.end()) return it->second;
    const ir::Value& constant = frame.function->value(value);
    if (constant.kind != ir::ValueKind::kConstant)
      throw PackError(QPLAN_INTERNAL, "inline: a value is not defined yet");
    return frame.map[value.index] = result->add_constant(constant.constant, constant.name);
  };
  while (true) {
    Frame& frame = stack.back();
    if (frame.next < frame.function->nodes().size()) {
      const ir::Node& node = frame.function->nodes()[frame.next++];
      std::vector<ir::ValueId> operands;
      for (const ir::ValueId operand : node.operands) operands.push_back(mapped(frame, operand));
      if (node.op != nullptr) {
        const ir::Node& copy = result->add_node(*node.op, std::move(operands), node.attrs, node.name);
        const std::vector<ir::ValueId> results = copy.results;
        for (size_t i = 0; i < results.size(); ++i) {
          frame.map[node.results[i].index] = results[i];
          result->set_value_name(results[i], frame.function->value(node.results[i]).name);
        }
        continue;
      }
      Frame inner;
      inner.function = module.find(node.callee);
      if (inner.function == nullptr)
        throw PackError(QPLAN_INTERNAL, cat("inline: there is no function '", node.callee, "'"));
      for (size_t i = 0; i < operands.size(); ++i) inner.map[inner.function->params()[i].index] = operands[i];
      inner.call = &node;
      stack.push_back(std::move(inner));
      continue;
    }
    if (stack.size() == 1) break;
    Frame done = std::move(stack.back());
    stack.pop_back();
    for (size_t i = 0; i < done.call->results.size(); ++i) {
      stack.back().map[done.call->results[i].index] = mapped(done, done.function->outputs()[i]);
    }
  }
  std::vector<ir::ValueId> outputs;
  for (const ir::ValueId output : function.outputs()) outputs.push_back(mapped(stack[0], output));
  result->set_outputs(std::move(outputs), function.output_names());
  return result;
}

}  // namespace qplan::partition
