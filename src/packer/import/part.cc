#include "src/packer/import/part.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/packer/error.h"
#include "src/packer/ir/cat.h"

namespace qplan::importer {
namespace {

using Tensors = std::vector<TensorNumber>;
using TensorSet = std::set<TensorNumber>;

constexpr size_t kMaxShown = 8;  // names in a line

[[noreturn]] void bad_part(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

bool has_any(const TensorSet& set, const Tensors& tensors) {
  return std::ranges::any_of(tensors, [&](TensorNumber tensor) { return set.contains(tensor); });
}

// "'a', 'b', ..."
std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i)
    text += (i == 0 ? "" : ", ") + quoted_path(names[i]);
  return names.size() > kMaxShown ? text + ", ..." : text;
}

std::vector<std::string> names_of(const PartGraph& graph, const Tensors& tensors) {
  std::vector<std::string> names;
  for (const TensorNumber tensor : tensors) names.push_back(graph.name(tensor));
  return names;
}

// Tensors whose names have the text in them, as the names of operators are often a part of those of their
// results; else the tensors that are offered.
std::string names_like(const PartGraph& graph, const std::string& text, const Tensors& offered) {
  std::vector<std::string> near;
  for (const GraphOperator& op : graph.operators) {
    for (const TensorNumber tensor : op.writes) {
      if (!text.empty() && graph.name(tensor).find(text) != std::string::npos)
        near.push_back(graph.name(tensor));
    }
  }
  return near.empty() ? "it has " + quoted_list(names_of(graph, offered))
                      : "did you mean " + quoted_list(near);
}

Tensors read_names(const PartGraph& graph, const std::vector<std::string>& names, const char* option,
                   const Tensors& offered, std::set<std::string>* names_of_others) {
  Tensors tensors;
  for (const std::string& name : names) {
    const Tensors found = graph.find(name);
    if (found.empty() && names_of_others != nullptr) {
      names_of_others->insert(name);
      continue;
    }
    if (found.empty())
      bad_part(cat(option, " ", in_quotes(name), ": the model has no such tensor; ",
                   names_like(graph, name, offered)));
    if (found.size() > 1) {
      std::string numbers;
      for (const TensorNumber tensor : found)
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(tensor);
      bad_part(cat(option, " ", in_quotes(name), ": ", found.size(),
                   " tensors have this name; give the number of the one that is meant: ", numbers));
    }
    if (graph.constants.contains(found[0]))
      bad_part(cat(option, " ", in_quotes(name),
                   ": the tensor is a constant or a variable, expected one that is computed"));
    if (std::ranges::find(tensors, found[0]) != tensors.end())
      bad_part(cat(option, " ", in_quotes(name), ": the tensor is named twice"));
    tensors.push_back(found[0]);
  }
  return tensors;
}

// Operators stand behind those whose results they read, but for variables, which earlier operators read in
// the next run: a second pass follows them.
constexpr int kPasses = 2;

// The operators that make the tensors `ends`, from the tensors `begins` on. Adds to read what they read.
std::vector<bool> operators_between(const PartGraph& graph, const TensorSet& begins, const Tensors& ends,
                                    TensorSet* read) {
  std::vector<bool> taken(graph.operators.size());
  read->insert(ends.begin(), ends.end());
  const auto is_needed = [&](TensorNumber tensor) {
    return read->contains(tensor) && !begins.contains(tensor);
  };
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = graph.operators.size(); i-- > 0;) {
      const GraphOperator& op = graph.operators[i];
      if (taken[i] || std::ranges::none_of(op.writes, is_needed)) continue;
      taken[i] = true;
      read->insert(op.reads.begin(), op.reads.end());
    }
  }
  return taken;
}

// A part that begins at some results of an operator but reads others of them would compute the first again.
void check_results(const PartGraph& graph, const GraphOperator& op, const TensorSet& begins,
                   const TensorSet& read) {
  std::vector<std::string> begun, others;
  for (const TensorNumber tensor : op.writes) {
    if (begins.contains(tensor)) begun.push_back(graph.name(tensor));
    if (!begins.contains(tensor) && read.contains(tensor)) others.push_back(graph.name(tensor));
  }
  if (!begun.empty())
    bad_part(cat("--begin-at ", quoted_list(begun), ": the part also reads ", quoted_list(others),
                 ", which the same operator computes; begin at all of its results that are read"));
}

// "--end-at 'a' --end-at 'b'", as a shell takes it; "" where it is too long, or where a shell would not.
std::string options_text(const PartGraph& graph, const char* option, const Tensors& tensors) {
  std::string text;
  if (tensors.size() > kMaxShown) return "";
  for (const TensorNumber tensor : tensors) {
    const std::string name = graph.name(tensor);
    if (name.empty() || printable(clean_name(name)) != name || name.find('\'') != std::string::npos)
      return "";
    text += cat(text.empty() ? "" : " ", option, " '", name, "'");
  }
  return text;
}

std::string part_text(const PartGraph& graph, const char* which, size_t count, const std::string& options) {
  // Fewer operators are not worth a plan of their own.
  const size_t all = graph.operators.size();
  if (options.empty() || 4 * count < all) return "";
  return cat("\nthe part ", which, " them, ", count, " of ", all, " operators: ", options);
}

// What can be computed without them: it ends where others read it, and at outputs of the model.
std::string part_before(const PartGraph& graph, const std::vector<bool>& refused) {
  TensorSet unknown, made;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const GraphOperator& op = graph.operators[i];
      if (refused[i] || has_any(unknown, op.reads)) unknown.insert(op.writes.begin(), op.writes.end());
    }
  }
  std::vector<bool> is_before(graph.operators.size());
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const GraphOperator& op = graph.operators[i];
    is_before[i] = !refused[i] && !has_any(unknown, op.reads);
    if (is_before[i]) made.insert(op.writes.begin(), op.writes.end());
  }
  Tensors ends;
  TensorSet seen;
  const auto add_end = [&](TensorNumber tensor) {
    const bool is_end = made.contains(tensor) && !graph.constants.contains(tensor);
    if (is_end && seen.insert(tensor).second) ends.push_back(tensor);
  };
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (!is_before[i]) std::ranges::for_each(graph.operators[i].reads, add_end);
  }
  std::ranges::for_each(graph.outputs, add_end);
  TensorSet read;
  const auto count = std::ranges::count(operators_between(graph, {}, ends, &read), true);
  return part_text(graph, "before", static_cast<size_t>(count), options_text(graph, "--end-at", ends));
}

// What none of them needs. Where it does not make all outputs of the model, there is no such part.
std::string part_after(const PartGraph& graph, const std::vector<bool>& refused) {
  TensorSet needed, made, read;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = graph.operators.size(); i-- > 0;) {
      const GraphOperator& op = graph.operators[i];
      if (refused[i] || has_any(needed, op.writes)) needed.insert(op.reads.begin(), op.reads.end());
    }
  }
  std::vector<bool> taken = operators_between(graph, {}, graph.outputs, &read);
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const GraphOperator& op = graph.operators[i];
    taken[i] = taken[i] && !refused[i] && !has_any(needed, op.writes);
    if (taken[i]) made.insert(op.writes.begin(), op.writes.end());
  }
  if (!std::ranges::all_of(graph.outputs, [&](TensorNumber output) { return made.contains(output); }))
    return "";
  Tensors begins;
  TensorSet seen;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (!taken[i]) continue;
    for (const TensorNumber tensor : graph.operators[i].reads) {
      const bool is_begin = !made.contains(tensor) && !graph.constants.contains(tensor);
      if (is_begin && seen.insert(tensor).second) begins.push_back(tensor);
    }
  }
  TensorSet read_of_part;
  const TensorSet begin_set(begins.begin(), begins.end());
  const auto count =
      std::ranges::count(operators_between(graph, begin_set, graph.outputs, &read_of_part), true);
  return part_text(graph, "after", static_cast<size_t>(count), options_text(graph, "--begin-at", begins));
}

}  // namespace

void set_names(std::shared_ptr<const TensorNames> names, PartGraph* graph) {
  graph->name = [names](TensorNumber tensor) { return names->name(tensor); };
  graph->find = [names](const std::string& name) { return names->find(name); };
}

Selection select_part(const PartGraph& graph, const Part& part, std::set<std::string>* names_of_others) {
  Selection selection;
  selection.inputs = read_names(graph, part.begin_at, "--begin-at", graph.inputs, names_of_others);
  selection.outputs = read_names(graph, part.end_at, "--end-at", graph.outputs, names_of_others);
  const bool has_begin = !selection.inputs.empty();
  if (selection.outputs.empty()) selection.outputs = graph.outputs;
  const TensorSet begins(selection.inputs.begin(), selection.inputs.end());
  TensorSet read;
  selection.operators = operators_between(graph, begins, selection.outputs, &read);
  for (const TensorNumber output : selection.outputs) {
    if (begins.contains(output))
      bad_part(cat("the part begins and ends at ", in_quotes(graph.name(output)), ": nothing is left of it"));
  }
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    if (selection.operators[i]) check_results(graph, graph.operators[i], begins, read);
  }
  Tensors also_read;
  for (const TensorNumber input : graph.inputs) {
    if (read.contains(input) && !begins.contains(input)) also_read.push_back(input);
  }
  if (!has_begin) {
    selection.inputs = also_read;
    return selection;
  }
  for (const TensorNumber begin : selection.inputs) {
    if (!read.contains(begin))
      bad_part(cat("--begin-at ", in_quotes(graph.name(begin)),
                   ": nothing between it and the end of the part reads it"));
  }
  if (!also_read.empty())
    bad_part(cat("--begin-at ", quoted_list(names_of(graph, selection.inputs)), ": the part also reads ",
                 also_read.size() == 1 ? "the input " : "the inputs ",
                 quoted_list(names_of(graph, also_read)), " of the model; name all tensors where it begins"));
  return selection;
}

void refuse_part(const Part& part, const char* format, const char* advice) {
  if (part.empty()) return;
  bad_part(cat(part.end_at.empty() ? "--begin-at" : "--end-at", ": ", format, " has no names of tensors; ",
               advice));
}

std::string parts_without(PartGraph graph, const std::vector<bool>& refused) {
  // What is made of constants alone, such as a transposed matrix of weights, is no place to begin or to end
  // at.
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const GraphOperator& op = graph.operators[i];
    const auto is_constant = [&](TensorNumber tensor) { return graph.constants.contains(tensor); };
    if (!refused[i] && std::ranges::all_of(op.reads, is_constant))
      graph.constants.insert(op.writes.begin(), op.writes.end());
  }
  if (std::ranges::find(refused, true) == refused.end()) return "";  // it is no operator that is at fault
  return part_before(graph, refused) + part_after(graph, refused);
}

}  // namespace qplan::importer
