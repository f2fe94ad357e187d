// Parts of a network: which of its operators lie between the tensors where a part begins and those where it
// ends. Importers read no others, so that a part can be packed of a network that has operators which are not
// imported.
#ifndef QPLAN_SRC_PACKER_IMPORT_PART_H_
#define QPLAN_SRC_PACKER_IMPORT_PART_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/packer/import/import.h"

namespace qplan::importer {

// A tensor of a file, by a number that its importer chooses.
using TensorNumber = uint32_t;

// An operator of a graph. The operators of a graph stand behind those whose results they read; what a
// variable becomes may also be read before.
struct GraphOperator {
  std::vector<TensorNumber> reads, writes;
};

// A graph as this file needs it. Inputs and outputs are the model's.
struct PartGraph {
  std::vector<GraphOperator> operators;
  std::vector<TensorNumber> inputs, outputs;
  std::set<TensorNumber> constants;  // and variables, with their handles
  // Returns the name by which `find` finds this tensor and no other. Returns "" if the tensor has no such
  // name, or if a part cannot begin or end at it.
  std::function<std::string(TensorNumber)> name;
  // The tensors that are called so; several where names of the file are not unique.
  std::function<std::vector<TensorNumber>(const std::string& name)> find;
};

// Numbers for tensors whose names are unique in their file.
class TensorNames {
 public:
  TensorNumber number(const std::string& name) {
    const auto [found, is_new] = numbers_.emplace(name, static_cast<TensorNumber>(names_.size()));
    if (is_new) names_.push_back(&found->first);
    return found->second;
  }
  std::vector<TensorNumber> find(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? std::vector<TensorNumber>() : std::vector<TensorNumber>{found->second};
  }
  const std::string& name(TensorNumber tensor) const { return *names_.at(tensor); }

 private:
  std::unordered_map<std::string, TensorNumber> numbers_;
  std::vector<const std::string*> names_;  // keys of numbers_, which stay where they are
};

// The graph finds its tensors by these names from now on.
void set_names(std::shared_ptr<const TensorNames> names, PartGraph* graph);

// What a part takes of a graph.
struct Selection {
  std::vector<bool> operators;
  std::vector<TensorNumber> inputs, outputs;
};

// The part that the options ask for: it begins at the tensors of part.begin_at, or at the inputs of the model
// that it reads, and ends at those of part.end_at, or at the model's outputs. names_of_others: as in
// ImportOptions. PackError (QPLAN_INVALID_ARGUMENT): a name is unknown or means several tensors; a tensor is
// a constant or a variable, is named twice, or begins a part that does not read it; the part reads an input
// of the model as well, at which it should not begin.
Selection select_part(const PartGraph& graph, const Part& part, std::set<std::string>* names_of_others);

// PackError (QPLAN_INVALID_ARGUMENT) where a part is asked for. format: one whose tensors have no names.
void refuse_part(const Part& part, const char* format, const char* advice);

// Lines about the parts before and after operators that are not imported, for the error that lists these:
// "the part before them, 310 of 314 operators: --end-at 'boxes'". "" where no part is worth it. refused: one
// for each operator.
std::string parts_without(PartGraph graph, const std::vector<bool>& refused);

}  // namespace qplan::importer

#endif  // QPLAN_SRC_PACKER_IMPORT_PART_H_
