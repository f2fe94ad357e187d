#include <utility>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/exported_program.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::pt {
namespace {

constexpr std::string_view kHigherOrder = "higher_order::";

// "aten::conv2d" of "torch.ops.aten.conv2d.default": the overloads of an operator are one row. Functions of
// Python on extents are called like TorchScript's: "_operator.mul" is "aten::mul".
std::string operator_name(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.", kFunctions = "_operator.";
  if (target.starts_with(kFunctions)) return "aten::" + std::string(target.substr(kFunctions.size()));
  if (!target.starts_with(kOps)) return importer::clean_name(target);
  target.remove_prefix(kOps.size());
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) return importer::clean_name(target);
  const std::string_view name = target.substr(dot + 1);
  return importer::clean_name(cat(target.substr(0, dot), "::", name.substr(0, name.find('.'))));
}

bool is_higher_order(std::string_view name) { return name.starts_with(kHigherOrder); }

// What the first result of a node is called, or the operator.
std::string name_of(const ir::Json& node, const std::string& operator_name) {
  const ir::Json& outputs = list_member(node, "outputs");
  if (outputs.empty()) return operator_name;
  const UnionMember first = union_member(outputs[0]);
  const ir::Json* named = &first.value;
  if (named->is_array() && !named->empty()) named = &named->front();
  for (const char* key : {"name", "as_name"}) {
    if (named->is_object() && named->contains(key)) return importer::clean_name(text_member(*named, key));
  }
  return operator_name;
}

}  // namespace

void ExportedGraph::run(const ir::Json& graph) {
  if (operators_ != nullptr) {
    for (const auto& [name, type] : object_member(graph, "tensor_values").items()) types_[name] = &type;
  }
  for (const ir::Json& node : list_member(graph, "nodes")) {
    const size_t before = calls_.unsupported().size();
    run_node(node);
    refused_.push_back(calls_.unsupported().size() > before);
  }
}

Ref ExportedGraph::call(const std::string& name, const ir::Json& node, const std::string& node_name) {
  try {
    if (is_higher_order(name)) return call_higher_order(name, node, node_name);
    std::vector<Argument> arguments;
    for (const ir::Json& input : list_member(node, "inputs"))
      arguments.push_back({text_member(input, "name"), argument(object_member(input, "arg"))});
    return sharing_.call(name, arguments, node_name);
  } catch (const Unsupported& use) {
    return calls_.not_imported(name + " with " + use.reason, node_name);
  }
}

void ExportedGraph::run_node(const ir::Json& node) {
  const std::string name = operator_name(text_member(node, "target"));
  const std::string node_name = name_of(node, name);
  const ir::Json& outputs = list_member(node, "outputs");
  calls_.charge(1 + list_member(node, "inputs").size() + outputs.size());
  calls_.take_missing();
  Ref result = call(name, node, node_name);
  if (operators_ != nullptr) note(name, node_name, outputs, &result);
  if (const auto* one = calls_.values().get<Tuple>(result); one != nullptr && one->items.size() == 1)
    result = one->items[0];
  if (outputs.size() == 1) return define(outputs[0], result);
  const std::vector<Ref>* found = items_of(calls_.values(), result);
  const bool is_unknown = calls_.values().get<Unknown>(result) != nullptr;
  if (!is_unknown && (found == nullptr ? !outputs.empty() : found->size() < outputs.size()))
    invalid(
        cat("node ", in_quotes(node_name), " has ", outputs.size(), " results, which ", name, " has not"));
  const std::vector<Ref> items = found == nullptr ? std::vector<Ref>(outputs.size(), result) : *found;
  for (size_t i = 0; i < outputs.size(); ++i) define(outputs[i], items[i]);
}

Ref ExportedGraph::call_higher_order(const std::string& name, const ir::Json& node,
                                     const std::string& node_name) {
  const std::string short_name = name.substr(kHigherOrder.size());
  const ir::Json& inputs = list_member(node, "inputs");
  // A block without gradients: (enabled, graph, what the graph reads...).
  if (short_name == "wrap_with_set_grad_enabled" && inputs.size() >= 2) {
    const UnionMember block = union_member(object_member(inputs[1], "arg"));
    if (block.kind == "as_graph") {
      const ir::Json& graph = object_member(block.value, "graph");
      const ir::Json& parameters = list_member(graph, "inputs");
      if (parameters.size() != inputs.size() - 2)
        invalid(cat("node ", in_quotes(node_name), " has ", inputs.size() - 2, " operands, its graph ",
                    parameters.size(), " inputs"));
      ExportedNames inner;
      for (size_t i = 0; i < parameters.size(); ++i) {
        const UnionMember parameter = union_member(parameters[i]);
        if (parameter.kind != "as_tensor") throw Unsupported{"an input of a graph that is no tensor"};
        inner[text_member(parameter.value, "name")] = argument(object_member(inputs[i + 2], "arg"));
      }
      if (depth_ == kMaxGraphDepth) invalid("graphs are nested too deeply");
      ExportedGraph follower(calls_, sharing_, std::move(inner), operators_, depth_ + 1);
      follower.run(graph);
      Tuple results;
      for (const ir::Json& output : list_member(graph, "outputs"))
        results.items.push_back(follower.argument(output));
      return calls_.values().add(std::move(results));
    }
  }
  for (const ir::Json& input : inputs) {
    const UnionMember operand = union_member(object_member(input, "arg"));
    if (operand.kind == "as_graph") add_missing_inside(object_member(operand.value, "graph"), short_name, 0);
  }
  return calls_.not_imported(name, node_name);
}

void ExportedGraph::add_missing_inside(const ir::Json& graph, const std::string& name, size_t depth) {
  if (depth == kMaxGraphDepth) return;
  for (const ir::Json& node : list_member(graph, "nodes")) {
    const std::string inner = operator_name(text_member(node, "target"));
    calls_.charge(1);
    if (find_row(inner) == nullptr && !is_higher_order(inner))
      calls_.not_imported(inner + " inside " + name, name_of(node, inner));
    for (const ir::Json& input : list_member(node, "inputs")) {
      const UnionMember operand = union_member(object_member(input, "arg"));
      if (operand.kind == "as_graph")
        add_missing_inside(object_member(operand.value, "graph"), name, depth + 1);
    }
  }
}

void ExportedGraph::note(const std::string& name, const std::string& node_name, const ir::Json& outputs,
                         Ref* result) {
  const std::string missing = calls_.take_missing(), with = name + " with ";
  const bool is_unknown = calls_.values().get<Unknown>(*result) != nullptr;
  std::string reason;
  if (is_unknown) {
    reason = missing.empty()             ? "it needs what an operator that is not imported computes"
             : missing.starts_with(with) ? missing.substr(with.size())
                                         : "not imported";
  }
  operators_->push_back({name, node_name, reason, 0});
  if (!is_unknown || outputs.size() != 1 || union_member(outputs[0]).kind != "as_tensor") return;
  const std::string tensor_name = text_member(union_member(outputs[0]).value, "name");
  const auto known = types_.find(tensor_name);
  if (known == types_.end()) return;
  try {
    ir::TensorType type{dtype_of(exported_scalar_type(integer_member(*known->second, "dtype"))), {}};
    for (const ir::Json& size : list_member(*known->second, "sizes")) {
      const UnionMember extent = union_member(size);
      if (extent.kind != "as_int" || type.shape.size() == ir::kMaxRank) return;
      type.shape.push_back(as_integer(extent.value));
    }
    if (!ir::type_error(type).empty() || type.num_elements() == 0) return;
    *result = calls_.values().add(
        Flow{calls_.function().add_param(importer::clean_name(tensor_name), std::move(type))});
  } catch (const Unsupported&) {  // a type that qplan has not
  }
}

// -- arguments

Ref ExportedGraph::named(const std::string& name) const {
  const auto it = names_.find(name);
  if (it == names_.end()) invalid("value " + in_quotes(name) + " is read before any node writes it");
  sharing_.expect_fresh(it->second);
  return it->second;
}

Ref ExportedGraph::tensor(const ir::Json& item) { return named(text_member(item, "name")); }
Ref ExportedGraph::integer(const ir::Json& item) { return calls_.values().add(as_integer(item)); }
Ref ExportedGraph::number(const ir::Json& item) { return calls_.values().add(as_double(item)); }
Ref ExportedGraph::text(const ir::Json& item) { return calls_.values().add(as_text(item)); }
Ref ExportedGraph::boolean(const ir::Json& item) {
  if (!item.is_boolean()) invalid("the program has something else than a boolean");
  return calls_.values().add(item.get<bool>());
}
Ref ExportedGraph::named_or(const ir::Json& item) {
  const UnionMember value = union_member(item);
  return value.kind == "as_name" ? named(as_text(value.value)) : argument(item);
}
Ref ExportedGraph::optional_tensor(const ir::Json& item) {
  const UnionMember value = union_member(item);
  return value.kind == "as_tensor" ? tensor(value.value) : calls_.values().add(None{});
}

Ref ExportedGraph::list_of(const ir::Json& items, Ref (ExportedGraph::*convert)(const ir::Json& item)) {
  if (!items.is_array()) invalid("the program has something else than a list");
  calls_.charge(items.size());
  List list;
  for (const ir::Json& item : items) list.items.push_back((this->*convert)(item));
  return calls_.values().add(std::move(list));
}

Ref ExportedGraph::argument(const ir::Json& json) {
  const auto [kind, value] = union_member(json);
  using Self = ExportedGraph;
  if (kind == "as_none") return calls_.values().add(None{});
  if (kind == "as_tensor") return tensor(value);
  if (kind == "as_tensors") return list_of(value, &Self::tensor);
  if (kind == "as_int" || kind == "as_memory_format" || kind == "as_layout") return integer(value);
  if (kind == "as_ints") return list_of(value, &Self::integer);
  if (kind == "as_float") return number(value);
  if (kind == "as_floats") return list_of(value, &Self::number);
  if (kind == "as_bool") return boolean(value);
  if (kind == "as_bools") return list_of(value, &Self::boolean);
  if (kind == "as_string") return text(value);
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return named_or(value);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools")
    return list_of(value, &Self::named_or);
  if (kind == "as_optional_tensor") return optional_tensor(value);
  if (kind == "as_optional_tensors") return list_of(value, &Self::optional_tensor);
  if (kind == "as_scalar_type")
    return calls_.values().add(static_cast<int64_t>(exported_scalar_type(as_integer(value))));
  if (kind == "as_device") return calls_.values().add(text_member(value, "type"));
  throw Unsupported{"an argument of kind " + in_quotes(kind)};
}

// -- results

void ExportedGraph::define_name(const std::string& name, Ref value) {
  if (const Flow* flow = calls_.values().get<Flow>(value)) {
    ir::Function& function = calls_.function();
    const ir::Value& known = function.value(flow->value);
    if (known.kind == ir::ValueKind::kResult && known.name.empty())
      function.set_value_name(flow->value, importer::clean_name(name));
  }
  if (!names_.insert_or_assign(name, value).second) invalid("value " + in_quotes(name) + " is defined twice");
}

void ExportedGraph::define(const ir::Json& output, Ref value) {
  const auto [kind, named] = union_member(output);
  if (kind == "as_none") return;
  if (kind == "as_tensor") return define_name(text_member(named, "name"), value);
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    const UnionMember symbol = union_member(named);
    if (symbol.kind == "as_name") define_name(as_text(symbol.value), value);
    return;
  }
  if (kind != "as_tensors") invalid("a node has a result of kind " + in_quotes(kind));
  if (!named.is_array()) invalid("the program has something else than a list");
  const std::vector<Ref>* found = items_of(calls_.values(), value);
  if (found == nullptr && calls_.values().get<Unknown>(value) == nullptr)
    invalid("a node whose result is one tensor has a list of results");
  if (found != nullptr && found->size() != named.size())
    invalid(cat("a node has ", named.size(), " results, expected ", found->size()));
  const std::vector<Ref> items = found == nullptr ? std::vector<Ref>(named.size(), value) : *found;
  for (size_t i = 0; i < named.size(); ++i) define_name(text_member(named[i], "name"), items[i]);
}

std::vector<Ref> ExportedGraph::outputs(const ir::Json& signature) {
  std::vector<Ref> refs;
  for (const ir::Json& spec : list_member(signature, "output_specs")) {
    const auto [kind, output] = union_member(spec);
    if (kind == "user_output") {
      refs.push_back(argument(object_member(output, "arg")));
    } else if (kind == "buffer_mutation") {
      calls_.not_imported("a buffer that the model changes", text_member(output, "buffer_name"));
    } else if (kind == "user_input_mutation") {
      calls_.not_imported("an input that the model changes", text_member(output, "user_input_name"));
    } else {
      calls_.not_imported("an output of kind " + in_quotes(kind), "the program");
    }
  }
  return refs;
}

}  // namespace qplan::pt
