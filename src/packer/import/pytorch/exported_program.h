// Exported programs: the archive, checked access to its JSON, the inputs, and the walk through the graph.
//
// An archive of torch.export.save (.pt2): a zip with the program as JSON, and the weights. Two forms exist:
//   PyTorch 2.6 and 2.7: serialized_exported_program.json, serialized_state_dict.pt, serialized_constants.pt
//   from 2.8 on, in one folder: archive_format ("pt2"), archive_version, models/<model>.json, and for weights
//     and constants data/weights/<model>.pt, or data/weights/<model>_weights_config.json, which says where
//     each tensor is in the files beside it
// A .pt file in the archive is a zip of torch.save: data.pkl and storages. The file is untrusted.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_PROGRAM_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/packer/import/import.h"
#include "src/packer/import/pytorch/archive.h"
#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/zip_archive.h"
#include "src/packer/ir/json.h"

namespace qplan::pt {

// Whether the zip is such an archive, or another file of the same family that ExportedArchive refuses.
bool is_exported(const importer::ZipArchive& zip);

class ExportedArchive {
 public:
  // Reads the program and the pickles. PackError: QPLAN_MODEL_INVALID for damage, QPLAN_MODEL_UNSUPPORTED for
  // versions that are not known and for archives without one program.
  explicit ExportedArchive(importer::ZipArchive zip);
  ExportedArchive(const ExportedArchive&) = delete;
  ExportedArchive& operator=(const ExportedArchive&) = delete;

  const ir::Json& program() const { return program_; }
  // Makes the part of the options the program's graph.
  void select_part(const ImportOptions& options);
  // Inputs of the whole program, where its graph is a part.
  const std::set<std::string>& left_out() const { return left_out_; }
  ValueTable& values() { return values_; }
  TensorReader& tensors() { return tensors_; }
  // The tensor of that name: a parameter or persistent buffer, or a constant. Throws PackError if the program
  // has no such tensor.
  Ref weight(const std::string& name) const { return find(weights_, name, "the state dict"); }
  Ref constant(const std::string& name) const { return find(constants_, name, "the constants"); }

 private:
  using Tensors = std::map<std::string, Ref, std::less<>>;
  struct Saved {
    Saved(std::span<const uint8_t> bytes, importer::ZipArchive* outer) : zip(bytes, outer) {}
    importer::ZipArchive zip;
    Ref value;  // of its pickle, which many names may name
  };

  static Ref find(const Tensors& tensors, const std::string& name, const char* where);
  void read_program(const std::string& entry);
  // A file of torch.save with a dict of tensors.
  Tensors read_dict(const std::string& entry);
  // <model>_weights_config.json and the files that it names.
  Tensors read_config(const std::string& config, const std::string& folder);
  Ref read_saved(const std::string& entry);
  std::span<const uint8_t> storage(const std::string& key);

  importer::ZipArchive zip_;
  std::string prefix_;
  ir::Json program_;
  std::set<std::string> left_out_;
  ValueTable values_;
  TensorReader tensors_;
  std::map<std::string, Saved, std::less<>> saved_;  // zips in the zip, by entry
  Tensors weights_, constants_;
};

// Checked access to the JSON of exported programs, which is untrusted: a member that is missing or of another
// kind is an error that names it.

// The document of an entry. PackError where it is larger than kMaxJsonBytes or kMaxJsonValues, or no JSON.
ir::Json parse_entry(std::span<const uint8_t> bytes, const std::string& entry);

// PackError (QPLAN_MODEL_INVALID) unless the object has the member, of that kind.
const ir::Json& member(const ir::Json& object, const char* name);
const ir::Json& object_member(const ir::Json& object, const char* name);
const ir::Json& list_member(const ir::Json& object, const char* name);
std::string text_member(const ir::Json& object, const char* name);
int64_t integer_member(const ir::Json& object, const char* name);
bool boolean_member(const ir::Json& object, const char* name);
// The member that a union has, the only one: {"as_int": 3}.
struct UnionMember {
  std::string kind;
  const ir::Json& value;
};
UnionMember union_member(const ir::Json& object);

int64_t as_integer(const ir::Json& value);
std::string as_text(const ir::Json& value);
// JSON has no infinities: they are strings.
double as_double(const ir::Json& value);
// The numbers that exported programs have for element types, which are other ones than code has. Unsupported
// for a type that qplan does not read.
ScalarType exported_scalar_type(int64_t number);

// The program with the part of the options (importer::select_part) as its graph. Returns the names of the
// whole program's inputs. Changes of buffers and inputs that the part reads stay in the program.
std::set<std::string> select_part(const ImportOptions& options, ir::Json* program);
// Which parts have none of the nodes that are refused (importer::parts_without). is_known: whether a value is
// no activation.
std::string parts_without(const ir::Json& program, const std::vector<bool>& refused,
                          const std::function<bool(const std::string&)>& is_known);

// Walks the graph of an exported program, node by node: operators go to the rows of ops.def, which write the
// IR. The graph has no code: a node names an operator, its arguments and what its results are called. Its
// inputs have extents that may be symbols.

// Values by the names that a graph gives them.
using ExportedNames = std::map<std::string, Ref, std::less<>>;

// The parameters of main, and the tensors of the archive, by the names that the program's graph gives its
// inputs. PackError: QPLAN_INVALID_ARGUMENT for options that name no input or contradict the program, and for
// extents that are open beyond the batch.
ExportedNames exported_inputs(ExportedArchive& archive, OperatorCalls& calls, const ImportOptions& options);

// The extents that an exported program derives from symbols: "2*s0 + 1" as later versions of PyTorch print
// them, "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))" as 2.6 does.

using FindSymbol = std::function<std::optional<int64_t>(const std::string& name)>;

// Sums, products and quotients rounded down, of integers and symbols. None where a symbol is not known, where
// the text has something else, or where a number is no possible extent.
std::optional<int64_t> evaluate_extent(std::string_view expression, const FindSymbol& find);

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
  // By node: whether it, or something inside of it, is not imported.
  const std::vector<bool>& refused() const { return refused_; }
  // Whether a node, or the program, has made a value of this name that is no activation: a number, a
  // constant.
  bool is_known(const std::string& name) const {
    const auto it = names_.find(name);
    return it != names_.end() && calls_.values().get<Flow>(it->second) == nullptr &&
           calls_.values().get<Unknown>(it->second) == nullptr;
  }

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
  std::vector<bool> refused_;
};

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_EXPORTED_PROGRAM_H_
