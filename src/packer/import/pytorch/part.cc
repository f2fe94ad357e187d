// Parts of an exported program, whose tensors have unique names.
#include "src/packer/import/part.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "src/packer/import/pytorch/exported_program.h"

namespace qplan::pt {
namespace {

using importer::TensorNumber;

constexpr char kUserInput[] = "user_input", kUserOutput[] = "user_output";

// What an argument, an output or a list of them names, at any depth: {"as_tensor": {"name": "x"}},
// {"as_sym_int": {"as_name": "n"}}.
void add_names(const ir::Json& json, importer::TensorNames* names, std::vector<TensorNumber>* list) {
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) {
    if (json.is_object() && (key == "name" || key == "as_name") && value.is_string()) {
      list->push_back(names->number(value.get<std::string>()));
    } else {
      add_names(value, names, list);
    }
  }
}

// The name of what a specification of an input or output is about, where it is one of the user's: "" else.
std::string user_name_of(const ir::Json& spec, std::string_view kind) {
  const UnionMember member = union_member(spec);
  if (member.kind != kind) return "";
  const UnionMember argument = union_member(object_member(member.value, "arg"));
  for (const char* key : {"name", "as_name"}) {
    if (argument.value.is_object() && argument.value.contains(key)) return text_member(argument.value, key);
  }
  return "";
}

// is_known: what is no activation, though a node makes it.
importer::PartGraph part_graph(const ir::Json& program,
                               const std::function<bool(const std::string&)>& is_known = {}) {
  const ir::Json& module = object_member(program, "graph_module");
  const ir::Json& signature = object_member(module, "signature");
  importer::PartGraph graph;
  const auto names = std::make_shared<importer::TensorNames>();
  for (const ir::Json& spec : list_member(signature, "input_specs")) {
    const std::string name = user_name_of(spec, kUserInput);
    if (!name.empty()) {
      graph.inputs.push_back(names->number(name));
    } else if (const UnionMember member = union_member(spec); member.value.contains("arg")) {
      std::vector<TensorNumber> constants;
      add_names(member.value["arg"], names.get(), &constants);
      graph.constants.insert(constants.begin(), constants.end());
    }
  }
  for (const ir::Json& node : list_member(object_member(module, "graph"), "nodes")) {
    importer::GraphOperator& op = graph.operators.emplace_back();
    for (const ir::Json& input : list_member(node, "inputs"))
      add_names(object_member(input, "arg"), names.get(), &op.reads);
    add_names(list_member(node, "outputs"), names.get(), &op.writes);
    for (const TensorNumber tensor : op.writes) {
      if (is_known && is_known(names->name(tensor))) graph.constants.insert(tensor);
    }
  }
  for (const ir::Json& spec : list_member(signature, "output_specs")) {
    const std::string name = user_name_of(spec, kUserOutput);
    if (!name.empty()) graph.outputs.push_back(names->number(name));
  }
  importer::set_names(names, &graph);
  return graph;
}

// Buffers and inputs that the program changes, by the names that its graph has for them, with what says so.
std::map<std::string, const ir::Json*> mutations_of(const ir::Json& signature) {
  std::map<std::string, std::string> buffers;
  for (const ir::Json& spec : list_member(signature, "input_specs")) {
    const UnionMember member = union_member(spec);
    if (member.kind == "buffer")
      buffers[text_member(member.value, "buffer_name")] =
          text_member(object_member(member.value, "arg"), "name");
  }
  std::map<std::string, const ir::Json*> mutations;
  for (const ir::Json& spec : list_member(signature, "output_specs")) {
    const UnionMember member = union_member(spec);
    if (member.kind == "buffer_mutation")
      mutations[buffers[text_member(member.value, "buffer_name")]] = &spec;
    if (member.kind == "user_input_mutation") mutations[text_member(member.value, "user_input_name")] = &spec;
  }
  return mutations;
}

ir::Json spec_of(const char* kind, const std::string& name) {
  return {{kind, {{"arg", {{"as_tensor", {{"name", name}}}}}}}};
}

}  // namespace

std::set<std::string> select_part(const ImportOptions& options, ir::Json* program) {
  if (options.part.empty()) return {};
  const importer::PartGraph graph = part_graph(*program);
  const importer::Selection selection = importer::select_part(graph, options.part, options.names_of_others);
  ir::Json& module = (*program)["graph_module"];
  ir::Json& signature = module["signature"];
  ir::Json inputs = ir::Json::array(), outputs = ir::Json::array(), nodes = ir::Json::array();
  std::set<std::string> left_out;
  for (const ir::Json& spec : signature["input_specs"]) {
    const std::string name = user_name_of(spec, kUserInput);
    if (name.empty()) inputs.push_back(spec);
    if (!name.empty()) left_out.insert(name);
  }
  for (const TensorNumber input : selection.inputs) inputs.push_back(spec_of(kUserInput, graph.name(input)));
  for (const TensorNumber output : selection.outputs)
    outputs.push_back(spec_of(kUserOutput, graph.name(output)));
  // What the part reads and the program changes: the importer says that it does not import this.
  std::set<TensorNumber> read;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (selection.operators[i]) read.insert(graph.operators[i].reads.begin(), graph.operators[i].reads.end());
  }
  for (const auto& [name, spec] : mutations_of(signature)) {
    const std::vector<TensorNumber> tensor = graph.find(name);
    if (!tensor.empty() && read.contains(tensor[0])) outputs.push_back(*spec);
  }
  ir::Json& all = module["graph"]["nodes"];
  for (size_t i = 0; i < all.size(); ++i) {
    if (selection.operators[i]) nodes.push_back(std::move(all[i]));
  }
  signature["input_specs"] = std::move(inputs);
  signature["output_specs"] = std::move(outputs);
  all = std::move(nodes);
  return left_out;
}

std::string parts_without(const ir::Json& program, const std::vector<bool>& refused,
                          const std::function<bool(const std::string&)>& is_known) {
  // Where the program changes what it reads, a part has the same fault.
  if (!mutations_of(object_member(object_member(program, "graph_module"), "signature")).empty()) return "";
  return importer::parts_without(part_graph(program, is_known), refused);
}

}  // namespace qplan::pt
