// Functions of a model: the nodes that a call of one stands for.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// A few calls could ask for any number of names, nodes and attributes: roughly what each of them takes.
constexpr uint64_t kNodeBytes = 4096;
constexpr uint64_t kNameBytes = 64;

// The nodes of a function for one call.
class Body {
 public:
  Body(Graph& graph, const Function& function, const NodeInfo& call, const std::string& name)
      : graph_(graph), function_(function), call_(call), prefix_(name.substr(0, kMaxPrefix) + "/") {
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      if (i >= call.inputs.size() || call.inputs[i].empty()) absent_.insert(function.inputs[i]);
    }
  }

  std::vector<NodeInfo> nodes(const std::vector<NodeInfo>& nodes) {
    std::vector<NodeInfo> result;
    for (const NodeInfo& node : nodes) result.push_back(copy(node));
    return result;
  }

 private:
  static constexpr size_t kMaxPrefix = 200;

  NodeInfo copy(const NodeInfo& node) {
    graph_.charge_work(work_of(node));
    NodeInfo result = node;
    result.attributes.clear();
    result.name = prefix_ + (!node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0]);
    for (std::string& input : result.inputs) {
      if (absent_.contains(input)) input.clear();
    }
    for (const Attribute& attribute : node.attributes) {
      const Attribute* given = attribute.reference.empty() ? &attribute : find(attribute.reference);
      if (given == nullptr) continue;  // the operator's own default
      result.attributes.push_back(*given);
      Attribute& copied = result.attributes.back();
      copied.name = attribute.name;
      if (copied.graph != nullptr && given == &attribute) copied.graph = copy(*copied.graph);
    }
    return result;
  }

  // The bytes that a copy takes, and those that a search for what its references stand for reads.
  uint64_t work_of(const NodeInfo& node) const {
    uint64_t bytes = kNodeBytes + node.name.size();
    for (const auto* names : {&node.inputs, &node.outputs})
      for (const std::string& name : *names) bytes += kNameBytes + name.size();
    for (const Attribute& attribute : node.attributes) {
      const bool is_reference = !attribute.reference.empty();
      if (is_reference) bytes += kNameBytes * (call_.attributes.size() + function_.defaults.size());
      const Attribute* given = is_reference ? find(attribute.reference) : &attribute;
      if (given == nullptr) continue;
      bytes += kNodeBytes + given->s.size() + sizeof(float) * given->floats.size() +
               sizeof(int64_t) * given->ints.size();
      for (const std::string& text : given->strings) bytes += kNameBytes + text.size();
    }
    return bytes;
  }

  std::shared_ptr<const Subgraph> copy(const Subgraph& graph) {
    auto result = std::make_shared<Subgraph>(graph);
    result->nodes = nodes(graph.nodes);
    return result;
  }

  // What the call gives an attribute of the function, or the function's default; null: nothing.
  const Attribute* find(const std::string& name) const {
    for (const auto* attributes : {&call_.attributes, &function_.defaults}) {
      const auto found = std::ranges::find(*attributes, name, &Attribute::name);
      if (found != attributes->end()) return &*found;
    }
    return nullptr;
  }

  Graph& graph_;
  const Function& function_;
  const NodeInfo& call_;
  std::string prefix_;
  std::unordered_set<std::string> absent_;  // inputs
};

}  // namespace

FunctionCall read_call(Graph& graph, const Function& function, const NodeInfo& node,
                       const std::string& name) {
  const uint64_t num_attributes = function.attributes.size() + function.defaults.size();
  graph.charge_work(kNameBytes *
                    (function.inputs.size() + node.outputs.size() + node.attributes.size() * num_attributes));
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
    invalid(cat("it has ", node.inputs.size(), " inputs and ", node.outputs.size(),
                " outputs; the function of the model has ", function.inputs.size(), " and ",
                function.outputs.size()));
  }
  for (const Attribute& attribute : node.attributes) {
    const bool is_known =
        std::ranges::find(function.attributes, attribute.name) != function.attributes.end() ||
        std::ranges::find(function.defaults, attribute.name, &Attribute::name) != function.defaults.end();
    if (!is_known)
      throw Unsupported{"attribute " + in_quotes(attribute.name) + ", which the function does not have"};
  }
  FunctionCall call;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    if (!call.inputs.emplace(function.inputs[i], graph.value(node.inputs[i])).second) {
      invalid("the function has two inputs " + in_quotes(function.inputs[i]));
    }
  }
  call.nodes = Body(graph, function, node, name).nodes(function.nodes);
  call.outputs.assign(function.outputs.begin(),
                      function.outputs.begin() + static_cast<std::ptrdiff_t>(node.outputs.size()));
  return call;
}

}  // namespace qplan::onnx
