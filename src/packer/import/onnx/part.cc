// Parts of an ONNX model, whose tensors have unique names.
#include "src/packer/import/part.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/packer/error.h"
#include "src/packer/import/onnx/model_file.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

using importer::TensorNumber;

// What subgraphs read of the graphs around them is not marked: all names in them count.
void add_reads(const NodeInfo& node, importer::TensorNames* names, std::vector<TensorNumber>* reads) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) reads->push_back(names->number(input));
  }
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph == nullptr) continue;
    for (const std::string& output : attribute.graph->outputs) reads->push_back(names->number(output));
    for (const NodeInfo& inner : attribute.graph->nodes) add_reads(inner, names, reads);
  }
}

using Infos = std::unordered_map<std::string_view, const ValueInfo*>;

Infos infos_of(const Model& model) {
  Infos infos;
  for (const auto* list : {&model.inputs, &model.values, &model.outputs}) {
    for (const ValueInfo& info : *list) infos.emplace(info.name, &info);
  }
  return infos;
}

// An input of the part. What the file does not say of it, the caller does.
ValueInfo input_info(const Infos& infos, const std::string& name, const ImportOptions& options) {
  if (const auto info = infos.find(name); info != infos.end()) return *info->second;
  const auto given = options.input_types.find(name);
  if (given == options.input_types.end()) {
    throw PackError(
        QPLAN_INVALID_ARGUMENT,
        cat("--begin-at ", in_quotes(name),
            ": the model does not say the type of this tensor; give it: "
            "--input-shape NAME=1x3x224x224:float32 with its name, shape and dtype, or write the types "
            "of all tensors into the model (onnx.shape_inference.infer_shapes)"));
  }
  ValueInfo info;
  info.name = name;
  info.is_tensor = true;
  info.data_type = file_type(given->second.dtype);
  return info;
}

// An output of the part: without a type where the file says none, which is no error.
ValueInfo output_info(const Infos& infos, const std::string& name) {
  if (const auto info = infos.find(name); info != infos.end()) return *info->second;
  ValueInfo info;
  info.name = name;
  return info;
}

}  // namespace

importer::PartGraph part_graph(const Model& model) {
  importer::PartGraph graph;
  const auto names = std::make_shared<importer::TensorNames>();
  for (const Tensor& initializer : model.initializers)
    graph.constants.insert(names->number(initializer.name));
  for (const std::string& name : model.sparse_initializers) graph.constants.insert(names->number(name));
  for (const NodeInfo& node : model.nodes) {
    importer::GraphOperator& op = graph.operators.emplace_back();
    add_reads(node, names.get(), &op.reads);
    for (const std::string& output : node.outputs) {
      if (!output.empty()) op.writes.push_back(names->number(output));
    }
  }
  for (const ValueInfo& input : model.inputs) {
    const TensorNumber tensor = names->number(input.name);
    if (!graph.constants.contains(tensor)) graph.inputs.push_back(tensor);  // older files list initializers
  }
  for (const ValueInfo& output : model.outputs) graph.outputs.push_back(names->number(output.name));
  importer::set_names(names, &graph);
  return graph;
}

void select_part(Model* model, const ImportOptions& options) {
  if (options.part.empty()) return;
  const importer::PartGraph graph = part_graph(*model);
  const importer::Selection selection = importer::select_part(graph, options.part, options.names_of_others);
  const Infos infos = infos_of(*model);
  std::vector<ValueInfo> inputs, outputs;
  for (const TensorNumber input : selection.inputs)
    inputs.push_back(input_info(infos, graph.name(input), options));
  for (const TensorNumber output : selection.outputs)
    outputs.push_back(output_info(infos, graph.name(output)));
  for (const ValueInfo& input : model->inputs) model->left_out.insert(input.name);
  model->inputs = std::move(inputs);
  model->outputs = std::move(outputs);
  std::vector<NodeInfo> nodes;
  for (size_t i = 0; i < model->nodes.size(); ++i) {
    if (selection.operators[i]) nodes.push_back(std::move(model->nodes[i]));
  }
  model->nodes = std::move(nodes);
}

}  // namespace qplan::onnx
