#include "src/packer/ir/module.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "src/packer/error.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/op_def.h"

namespace qplan::ir {
namespace {

// FNV-1a over eight bytes at a time: only equality of contents is decided by comparing them.
uint64_t hash_bytes(std::span<const uint8_t> bytes, uint64_t seed) {
  uint64_t hash = seed ^ 0xcbf29ce484222325u;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  for (; i < bytes.size(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

bool same_content(const Constant& a, const Constant& b) {
  return a.type() == b.type() && std::ranges::equal(a.bytes(), b.bytes());
}

// IEEE 754's binary16.
float widened(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0) {  // subnormal: fraction * 2^-24
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 112;
  const uint32_t bits = sign << 31 | wide_exponent << 23 | fraction << 13;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

Constant::Constant(TensorType type, std::vector<uint8_t> bytes)
    : type_(std::move(type)), bytes_(std::move(bytes)), hash_(hash_bytes(bytes_, type_.dtype.bits)) {
  if (static_cast<int64_t>(bytes_.size()) != type_.size_bytes()) {
    throw PackError(QPLAN_MODEL_INVALID, "constant of type " + to_string(type_) + " has " +
                                             std::to_string(bytes_.size()) + " bytes, expected " +
                                             std::to_string(type_.size_bytes()));
  }
}

void Constant::check_read_as(size_t element_bytes, bool is_float) const {
  if (element_bytes == (type_.dtype.bits + 7u) / 8 && is_float == type_.dtype.is_float()) return;
  throw PackError(QPLAN_INTERNAL, "a constant of type " + to_string(type_) + " is read as " +
                                      (is_float ? "floats of " : "integers of ") +
                                      std::to_string(element_bytes) + " bytes");
}

ConstantRef make_scalar(float value) { return make_constant<float>(kFloat32, {}, {value}); }
ConstantRef make_scalar(int32_t value) { return make_constant<int32_t>(kInt32, {}, {value}); }

ConstantRef widened_halves(const Constant& halves) {
  std::vector<float> values;
  const std::span<const uint8_t> bytes = halves.bytes();
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i, sizeof(half));
    values.push_back(widened(half));
  }
  return make_constant(kFloat32, halves.type().shape, values);
}

const Node* Function::producer(ValueId id) const {
  const Value& v = value(id);
  return v.kind == ValueKind::kResult ? &nodes_[v.producer] : nullptr;
}

ValueId Function::add_param(std::string name, TensorType type) {
  const ValueId id{static_cast<uint32_t>(values_.size())};
  Value value;
  value.kind = ValueKind::kParam;
  value.type = std::move(type);
  value.name = std::move(name);
  values_.push_back(std::move(value));
  params_.push_back(id);
  return id;
}

ValueId Function::add_constant(ConstantRef constant, std::string name) {
  const auto [first, last] = constants_.equal_range(constant->content_hash());
  for (auto it = first; it != last; ++it) {
    if (same_content(*values_[it->second.index].constant, *constant)) return it->second;
  }
  const ValueId id{static_cast<uint32_t>(values_.size())};
  Value value;
  value.kind = ValueKind::kConstant;
  value.type = constant->type();
  value.name = std::move(name);
  value.constant = std::move(constant);
  constants_.emplace(value.constant->content_hash(), id);
  values_.push_back(std::move(value));
  return id;
}

Node& Function::append(Node node, std::vector<TensorType> result_types) {
  for (const ValueId operand : node.operands) {
    if (operand.index >= values_.size()) {
      throw PackError(QPLAN_INTERNAL, "node '" + node.name + "' has an operand of another function");
    }
  }
  const auto index = static_cast<uint32_t>(nodes_.size());
  for (uint32_t i = 0; i < result_types.size(); ++i) {
    node.results.push_back(ValueId{static_cast<uint32_t>(values_.size())});
    Value value;
    value.kind = ValueKind::kResult;
    value.type = std::move(result_types[i]);
    value.producer = index;
    value.result_index = i;
    values_.push_back(std::move(value));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

Node& Function::add_node(const op::OpDef& op, std::vector<ValueId> operands, Attrs attrs, std::string name) {
  Node node;
  node.op = &op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  node.name = std::move(name);
  for (const ValueId operand : node.operands) {
    if (operand.index >= values_.size()) {
      throw PackError(QPLAN_INTERNAL, "node '" + node.name + "' has an operand of another function");
    }
  }
  std::vector<TensorType> types = op::infer_types(*this, node);
  return append(std::move(node), std::move(types));
}

Node& Function::add_call(std::string callee, std::vector<ValueId> operands,
                         std::vector<TensorType> result_types, std::string name) {
  Node node;
  node.callee = std::move(callee);
  node.operands = std::move(operands);
  node.name = std::move(name);
  return append(std::move(node), std::move(result_types));
}

void Function::set_outputs(std::vector<ValueId> outputs, std::vector<std::string> names) {
  outputs_ = std::move(outputs);
  output_names_ = std::move(names);
}

namespace {

constexpr char kStates[] = "states";
constexpr char kStateBytes[] = "state_bytes";

[[noreturn]] void bad_states(const Function& function, const std::string& text) {
  throw PackError(QPLAN_MODEL_INVALID, "function '" + function.name() + "': " + text);
}

size_t num_states(const Function& function) {
  const AttrValue* states = function.attrs().find(kStates);
  const auto* lists = states == nullptr ? nullptr : std::get_if<std::vector<Ints>>(states);
  return lists == nullptr ? 0 : lists->size();
}

}  // namespace

std::vector<State> states_of(const Function& function) {
  std::vector<State> states;
  if (!function.attrs().has(kStates) && !function.attrs().has(kStateBytes)) return states;
  const auto lists = [&](const char* name) -> const std::vector<Ints>& {
    const AttrValue* value = function.attrs().find(name);
    const auto* found = value == nullptr ? nullptr : std::get_if<std::vector<Ints>>(value);
    if (found == nullptr)
      bad_states(function, std::string("expected '") + name + "' as a list of lists of integers");
    return *found;
  };
  const std::vector<Ints>&pairs = lists(kStates), &bytes = lists(kStateBytes);
  const size_t count = pairs.size(), params = function.params().size(), results = function.outputs().size();
  if (bytes.size() != count || count > params || count >= results) {
    bad_states(function, std::to_string(count) + " states with " + std::to_string(bytes.size()) +
                             " initial values, " + std::to_string(params) + " parameters and " +
                             std::to_string(results) +
                             " results; expected an initial value, a parameter and a result for each, and "
                             "one result more");
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t param = params - count + i, result = results - count + i;
    const std::string place = "state " + std::to_string(i) + ": ";
    if (pairs[i] != Ints{static_cast<int64_t>(param), static_cast<int64_t>(result)}) {
      bad_states(function, place + "expected parameter " + std::to_string(param) + " and result " +
                               std::to_string(result) + ": states are the last of both, in their order");
    }
    const TensorType& type = function.type(function.params()[param]);
    if (type != function.type(function.outputs()[result])) {
      bad_states(function, place + "the parameter is " + to_string(type) + ", but the result " +
                               to_string(function.type(function.outputs()[result])));
    }
    const auto size = static_cast<size_t>(type.size_bytes());
    if ((bytes[i].size() != 1 && bytes[i].size() != size) ||
        !std::ranges::all_of(bytes[i], [](int64_t byte) { return byte >= 0 && byte <= 255; })) {
      bad_states(function, place + std::to_string(bytes[i].size()) + " initial bytes, expected 1 or " +
                               std::to_string(size) + " from 0 to 255");
    }
    states.push_back({param, result, {bytes[i].begin(), bytes[i].end()}});
  }
  return states;
}

void set_states(Function& function, const std::vector<State>& states) {
  if (states.empty()) return;
  std::vector<Ints> pairs, bytes;
  for (const State& state : states) {
    pairs.push_back({static_cast<int64_t>(state.param), static_cast<int64_t>(state.result)});
    const bool all_equal =
        std::ranges::all_of(state.initial, [&](uint8_t b) { return b == state.initial[0]; });
    bytes.emplace_back(state.initial.begin(), all_equal ? state.initial.begin() + 1 : state.initial.end());
  }
  function.attrs().set(kStates, std::move(pairs));
  function.attrs().set(kStateBytes, std::move(bytes));
}

size_t num_inputs(const Function& function) { return function.params().size() - num_states(function); }
size_t num_outputs(const Function& function) { return function.outputs().size() - num_states(function); }

std::vector<uint32_t> count_uses(const Function& function) {
  std::vector<uint32_t> uses(function.num_values(), 0);
  for (const Node& node : function.nodes()) {
    for (const ValueId operand : node.operands) ++uses[operand.index];
  }
  for (const ValueId output : function.outputs()) ++uses[output.index];
  return uses;
}

Function& Module::add_function(std::string name) {
  if (find(name) != nullptr) {
    throw PackError(QPLAN_MODEL_INVALID, "module: function '" + name + "' is defined twice");
  }
  functions_.push_back(std::make_unique<Function>(std::move(name)));
  return *functions_.back();
}

void Module::replace_function(std::unique_ptr<Function> function) {
  for (auto& known : functions_) {
    if (known->name() == function->name()) {
      known = std::move(function);
      return;
    }
  }
  throw PackError(QPLAN_INTERNAL, "module: no function '" + function->name() + "' to replace");
}

const Function* Module::find(std::string_view name) const {
  for (const auto& function : functions_) {
    if (function->name() == name) return function.get();
  }
  return nullptr;
}

const Function& Module::main() const {
  const Function* function = find("main");
  if (function == nullptr) throw PackError(QPLAN_MODEL_INVALID, "module: there is no function 'main'");
  return *function;
}

namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Module& module, const Function& function)
      : module_(module), function_(function), defined_(function.num_values(), false) {}

  void run() {
    check_params();
    for (uint32_t i = 0; i < function_.num_values(); ++i) check_value(ValueId{i});
    for (size_t i = 0; i < function_.nodes().size(); ++i) check_node(i);
    check_outputs();
  }

 private:
  [[noreturn]] void fail(qplan_status status, const std::string& text) const {
    throw PackError(status, "function '" + function_.name() + "': " + text);
  }
  // The IR is not what the code around it promises: our bug, not the model's.
  [[noreturn]] void broken(const std::string& text) const { fail(QPLAN_INTERNAL, text); }

  std::string place(size_t index) const {
    const Node& node = function_.nodes()[index];
    const std::string what = node.op != nullptr ? node.op->name : "call of '@" + node.callee + "'";
    return node.name.empty() ? what + " (node " + std::to_string(index) + ")" : what + " '" + node.name + "'";
  }

  bool in_range(ValueId id) const { return id.index < function_.num_values(); }

  void check_params() {
    std::unordered_set<std::string> names;
    for (const ValueId id : function_.params()) {
      if (!in_range(id) || function_.value(id).kind != ValueKind::kParam)
        broken("a parameter is not a value");
      const Value& value = function_.value(id);
      if (defined_[id.index]) broken("parameter '" + value.name + "' is listed twice");
      defined_[id.index] = true;
      if (!names.insert(value.name).second) {
        fail(QPLAN_MODEL_INVALID, "two parameters have the name '" + value.name + "'");
      }
    }
  }

  void check_value(ValueId id) {
    const Value& value = function_.value(id);
    const std::string error = type_error(value.type);
    if (!error.empty()) fail(QPLAN_MODEL_INVALID, "value '" + value.name + "': " + error);
    if (value.kind == ValueKind::kParam && !defined_[id.index]) {
      broken("parameter '" + value.name + "' is not in the list of parameters");
    }
    if (value.kind != ValueKind::kConstant) return;
    if (value.constant == nullptr || value.constant->type() != value.type) {
      broken("constant '" + value.name + "' has no contents of its type " + to_string(value.type));
    }
    defined_[id.index] = true;
  }

  void check_node(size_t index) {
    const Node& node = function_.nodes()[index];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId id = node.operands[i];
      if (!in_range(id))
        broken(place(index) + ": operand " + std::to_string(i) + " is not a value of the function");
      if (!defined_[id.index]) {
        broken(place(index) + ": operand " + std::to_string(i) + " is used before the node that makes it");
      }
    }
    std::vector<TensorType> found;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ValueId id = node.results[i];
      if (!in_range(id))
        broken(place(index) + ": result " + std::to_string(i) + " is not a value of the function");
      const Value& value = function_.value(id);
      if (value.kind != ValueKind::kResult || value.producer != index || value.result_index != i ||
          defined_[id.index]) {
        broken(place(index) + ": result " + std::to_string(i) + " is the value of something else");
      }
      defined_[id.index] = true;
      found.push_back(value.type);
    }
    if (found.empty()) broken(place(index) + ": there are no results");
    if ((node.op != nullptr) == !node.callee.empty()) {
      broken(place(index) + ": expected either an operator or a callee");
    }
    check_types(index, found, node.op != nullptr ? op::infer_types(function_, node) : call_types(index));
  }

  void check_types(size_t index, const std::vector<TensorType>& found,
                   const std::vector<TensorType>& expected) {
    if (found.size() != expected.size()) {
      broken(place(index) + ": there are " + std::to_string(found.size()) + " results, expected " +
             std::to_string(expected.size()));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      broken(place(index) + ": result " + std::to_string(i) + " is " + to_string(found[i]) + ", expected " +
             to_string(expected[i]));
    }
  }

  std::vector<TensorType> call_types(size_t index) const {
    const Node& node = function_.nodes()[index];
    const Function* callee = module_.find(node.callee);
    if (callee == nullptr) fail(QPLAN_MODEL_INVALID, place(index) + ": there is no such function");
    if (node.operands.size() != callee->params().size()) {
      fail(QPLAN_MODEL_INVALID, place(index) + ": there are " + std::to_string(node.operands.size()) +
                                    " operands, expected " + std::to_string(callee->params().size()));
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const TensorType& operand = function_.type(node.operands[i]);
      const TensorType& param = callee->type(callee->params()[i]);
      if (operand != param) {
        fail(QPLAN_MODEL_INVALID, place(index) + ": operand " + std::to_string(i) + " is " +
                                      to_string(operand) + ", expected " + to_string(param));
      }
    }
    std::vector<TensorType> types;
    for (const ValueId output : callee->outputs()) types.push_back(callee->type(output));
    return types;
  }

  void check_outputs() const {
    if (function_.outputs().empty()) fail(QPLAN_MODEL_INVALID, "there are no outputs");
    for (const ValueId id : function_.outputs()) {
      if (!in_range(id) || !defined_[id.index]) broken("an output is not a value of the function");
    }
    const size_t names = function_.output_names().size();
    if (names != 0 && names != function_.outputs().size()) {
      broken("there are " + std::to_string(names) + " output names for " +
             std::to_string(function_.outputs().size()) + " outputs");
    }
    (void)states_of(function_);
  }

  const Module& module_;
  const Function& function_;
  std::vector<bool> defined_;  // by value: made by what was checked so far
};

// Removes functions all of whose callers are removed, until none is left or only circles are.
void check_recursion(const Module& module) {
  std::map<std::string, size_t, std::less<>> calls_of;  // how many nodes call the function
  for (const auto& function : module.functions()) {
    for (const Node& node : function->nodes()) {
      if (node.op == nullptr) ++calls_of[node.callee];
    }
  }
  std::vector<const Function*> open;
  for (const auto& function : module.functions()) {
    if (calls_of[function->name()] == 0) open.push_back(function.get());
  }
  while (!open.empty()) {
    const Function* function = open.back();
    open.pop_back();
    for (const Node& node : function->nodes()) {
      if (node.op == nullptr && --calls_of[node.callee] == 0) open.push_back(module.find(node.callee));
    }
  }
  for (const auto& [name, calls] : calls_of) {
    if (calls == 0) continue;
    throw PackError(QPLAN_MODEL_INVALID,
                    "function '" + name + "': it is part of, or called from, a circle of calls");
  }
}

}  // namespace

void verify(const Module& module) {
  for (const auto& function : module.functions()) FunctionVerifier(module, *function).run();
  check_recursion(module);
}

}  // namespace qplan::ir
