#include "src/packer/import/onnx/graph.h"

#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/op_def.h"

namespace qplan::onnx {
namespace {

// A file keeps each constant once; a few become others by arithmetic. A larger file is not a network.
constexpr uint64_t kConstantBytesPerFileByte = 16;
constexpr uint64_t kConstantBytesAlways = uint64_t{64} << 20;
constexpr uint64_t kWorkBytesPerFileByte = 64;
constexpr uint64_t kWorkBytesAlways = uint64_t{1} << 30;

}  // namespace

Graph::Graph(const Model& model, ir::Function& function, const LogFunction& log)
    : model_(model), function_(function), log_(log) {
  read_names(model.nodes);
  for (const ValueInfo& output : model.outputs) read_.insert(output.name);
}

void Graph::read_names(const std::vector<NodeInfo>& nodes) {
  for (const NodeInfo& node : nodes) {
    read_.insert(node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      read_.insert(attribute.graph->outputs.begin(), attribute.graph->outputs.end());
      read_names(attribute.graph->nodes);
    }
  }
}

void Graph::charge(uint64_t bytes) {
  if (!checked_add(constant_bytes_, bytes, &constant_bytes_) ||
      (constant_bytes_ > kConstantBytesAlways &&
       constant_bytes_ / kConstantBytesPerFileByte > model_.size_bytes)) {
    invalid(
        cat("the model's constants take more than ", kConstantBytesPerFileByte, " times the file's size"));
  }
}

void Graph::charge_work(uint64_t bytes) {
  if (!checked_add(work_bytes_, bytes, &work_bytes_) ||
      (work_bytes_ > kWorkBytesAlways && work_bytes_ / kWorkBytesPerFileByte > model_.size_bytes)) {
    invalid("the model's arithmetic on constants takes too long: more than " +
            std::to_string(kWorkBytesAlways >> 20) + " MiB are read and written");
  }
}

void Graph::declare(const Tensor& initializer) {
  if (initializer.name.empty()) invalid("an initializer has no name");
  Entry entry;
  entry.initializer = &initializer;
  if (!entries_.emplace(initializer.name, std::move(entry)).second) {
    invalid("two initializers are called " + quoted(initializer.name));
  }
}

void Graph::declare_sparse(const std::string& name) { entries_[name].is_sparse = true; }

void Graph::import_subgraph(const Subgraph& subgraph) {
  for (const Tensor& initializer : subgraph.initializers) declare(initializer);
  for (const std::string& name : subgraph.sparse_initializers) declare_sparse(name);
  import_nodes(subgraph.nodes);
}

void Graph::define(const std::string& name, Value value) {
  Entry entry;
  entry.value = std::move(value);
  if (!entries_.emplace(name, std::move(entry)).second) {
    invalid("value " + quoted(name) + " is defined twice");
  }
}

const Value& Graph::value(const std::string& name) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    invalid("value " + quoted(name) + " is read before any node writes it");
  }
  Entry& entry = it->second;
  if (entry.is_sparse) throw Unsupported{"a sparse constant"};
  if (entry.initializer != nullptr) {
    ir::ConstantRef constant;
    try {
      constant = read_constant(*entry.initializer);
    } catch (const PackError& error) {
      throw PackError(error.status(), "initializer " + quoted(name) + ": " + error.what());
    }
    charge(constant->bytes().size());
    entry.value = std::move(constant);
    entry.value.name = clean_name(name);
    entry.initializer = nullptr;
  }
  return entry.value;
}

const ir::TensorType& Graph::type(const Value& value) const {
  return value.is_constant() ? value.constant->type() : function_.type(value.id);
}

ir::ValueId Graph::id(const Value& value) {
  return value.is_constant() ? function_.add_constant(value.constant, value.name) : value.id;
}

std::vector<Value> Graph::evaluate(const ir::Node& node, const std::vector<ir::ConstantRef>& operands) {
  uint64_t work = 0;
  for (const ir::ConstantRef& operand : operands) work += operand->bytes().size();
  const std::vector<ir::TensorType> types = op::result_types(node, operands);
  for (const ir::TensorType& type : types) charge(static_cast<uint64_t>(type.size_bytes()));
  for (const ir::TensorType& type : types) work += static_cast<uint64_t>(type.size_bytes());
  charge_work(work);
  const auto results = op::evaluate(node, operands);
  if (!results) return {};
  return {results->begin(), results->end()};
}

std::vector<Value> Graph::emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                               const std::string& name) {
  const op::OpDef& def = op::get_op(op);
  for (const Value& operand : operands) {
    if (type(operand).num_elements() == 0) throw Unsupported{"a tensor without elements"};
  }
  if (def.evaluate != nullptr && std::ranges::all_of(operands, &Value::is_constant)) {
    ir::Node node;
    node.op = &def;
    node.attrs = attrs;
    node.name = name;
    std::vector<ir::ConstantRef> constants;
    for (const Value& operand : operands) constants.push_back(operand.constant);
    if (std::vector<Value> results = evaluate(node, constants); !results.empty()) return results;
  }
  std::vector<ir::ValueId> ids;
  for (const Value& operand : operands) ids.push_back(id(operand));
  const ir::Node& node = function_.add_node(def, std::move(ids), std::move(attrs), name);
  return {node.results.begin(), node.results.end()};
}

}  // namespace qplan::onnx
