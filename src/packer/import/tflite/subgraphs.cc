#include "src/packer/import/tflite/subgraphs.h"

#include <set>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/tflite/text.h"

namespace qplan::tfl {
namespace {

// A subgraph to look through, and the operator that runs it.
using Open = std::pair<size_t, std::string>;

void add_callees(const tflite::Operator& op, const std::string& name, std::vector<Open>* open) {
  const auto add = [&](int32_t index) {
    if (index > 0) open->emplace_back(static_cast<size_t>(index), name);
  };
  if (const auto* either = op.builtin_options_as<tflite::IfOptions>()) {
    add(either->then_subgraph_index());
    add(either->else_subgraph_index());
  } else if (const auto* loop = op.builtin_options_as<tflite::WhileOptions>()) {
    add(loop->cond_subgraph_index());
    add(loop->body_subgraph_index());
  } else if (const auto* once = op.builtin_options_as<tflite::CallOnceOptions>()) {
    add(once->init_subgraph_index());
  }
}

// The name of the operator's first output. Only the subgraph's place in the file was checked before.
std::string node_name(const tflite::SubGraph& graph, const tflite::Operator& op) {
  if (op.outputs() == nullptr || op.outputs()->size() == 0 || graph.tensors() == nullptr) return quoted("");
  const int32_t index = op.outputs()->Get(0);
  if (index < 0 || static_cast<uint32_t>(index) >= graph.tensors()->size()) return quoted("");
  const auto* name = graph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index))->name();
  return quoted(name == nullptr ? std::string_view() : name->string_view());
}

}  // namespace

void list_subgraph_operators(const ModelFile& file, importer::UnsupportedList* unsupported) {
  std::vector<Open> open{{0, ""}};
  std::set<size_t> seen{0};
  while (!open.empty()) {
    const auto [index, caller] = std::move(open.back());
    open.pop_back();
    const tflite::SubGraph* graph = file.subgraph(index);
    if (graph == nullptr || graph->operators() == nullptr) continue;
    std::vector<Open> callees;
    for (const tflite::Operator* op : *graph->operators()) {
      std::string name;
      try {
        name = file.operator_name(*op);
      } catch (const PackError&) {  // the code is out of range
        name = "an unknown operator";
      }
      if (index != 0) unsupported->add(name + " inside " + caller, node_name(*graph, *op));
      add_callees(*op, name, &callees);
    }
    for (Open& callee : callees) {
      if (seen.insert(callee.first).second) open.push_back(std::move(callee));
    }
  }
}

}  // namespace qplan::tfl
