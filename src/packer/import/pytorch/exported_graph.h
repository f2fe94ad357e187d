// Walks the graph of an exported program, node by node: operators go to the rows of ops.def, which write the
// IR. The graph has no code: a node names an operator, its arguments and what its results are called.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_GRAPH_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_GRAPH_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/exported_archive.h"
#include "src/packer/import/pytorch/operator_calls.h"
#include "src/packer/import/pytorch/sharing.h"

namespace qplan::pt {

// Values by the names that a graph gives them.
using ExportedNames = std::map<std::string, Ref, std::less<>>;

// The parameters of main, and the tensors of the archive, by the names that the program's graph gives its
// inputs. PackError: QPLAN_INVALID_ARGUMENT for options that name no input or contradict the program, and for
// extents that are open beyond the batch.
ExportedNames exported_inputs(ExportedArchive& archive, OperatorCalls& calls, const ImportOptions& options);

class ExportedGraph {
 public:
  // names: the graph's inputs. sharing: of all graphs of the program. operators: where every operator is
  // noted (ImportOptions), or null. depth: graphs that this one is in.
  ExportedGraph(OperatorCalls& calls, Sharing& sharing, ExportedNames names,
                std::vector<SourceOperator>* operators = nullptr, size_t depth = 0)
      : calls_(calls), sharing_(sharing), names_(std::move(names)), operators_(operators), depth_(depth) {}

  // Follows the nodes of the graph.
  void run(const ir::Json& graph);
  // What the program returns to its caller. Outputs that are something else are not imported.
  std::vector<Ref> outputs(const ir::Json& signature);

 private:
  void run_node(const ir::Json& node);
  Ref call(const std::string& name, const ir::Json& node, const std::string& node_name);
  // Notes the operator. The tensors of one that is not imported become parameters, where their type is known.
  void note(const std::string& name, const std::string& node_name, const ir::Json& outputs, Ref* result);
  Ref call_higher_order(const std::string& name, const ir::Json& node, const std::string& node_name);
  // Adds the operators of a graph that is not followed and which are not imported, "aten::x inside cond".
  void add_missing_inside(const ir::Json& graph, const std::string& name, size_t depth);
  Ref argument(const ir::Json& argument);
  Ref list_of(const ir::Json& items, Ref (ExportedGraph::*convert)(const ir::Json& item));
  Ref tensor(const ir::Json& item);
  Ref integer(const ir::Json& item);
  Ref number(const ir::Json& item);
  Ref boolean(const ir::Json& item);
  Ref text(const ir::Json& item);
  Ref named_or(const ir::Json& item);  // {"as_name": ...}, or the value itself
  Ref optional_tensor(const ir::Json& item);
  Ref named(const std::string& name) const;
  void define(const ir::Json& output, Ref value);
  void define_name(const std::string& name, Ref value);

  OperatorCalls& calls_;
  Sharing& sharing_;  // of this graph and those that it is in
  ExportedNames names_;
  std::vector<SourceOperator>* operators_;
  std::map<std::string_view, const ir::Json*> types_;  // of the graph's tensors, where operators are noted
  size_t depth_;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_GRAPH_H_
