#include "src/packer/ir/module.h"

#include "src/packer/error.h"
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

}  // namespace

Constant::Constant(TensorType type, std::vector<uint8_t> bytes)
    : type_(std::move(type)), bytes_(std::move(bytes)), hash_(hash_bytes(bytes_, type_.dtype.bits)) {
  if (static_cast<int64_t>(bytes_.size()) != type_.size_bytes()) {
    throw PackError(QPLAN_MODEL_INVALID, "constant of type " + to_string(type_) + " has " +
                                             std::to_string(bytes_.size()) + " bytes, expected " +
                                             std::to_string(type_.size_bytes()));
  }
}

ConstantRef make_scalar(float value) { return make_constant<float>(kFloat32, {}, {value}); }
ConstantRef make_scalar(int32_t value) { return make_constant<int32_t>(kInt32, {}, {value}); }

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

Node& Function::add_call(std::string callee, std::vector<ValueId> operands, std::vector<TensorType> result_types,
                         std::string name) {
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

}  // namespace qplan::ir
