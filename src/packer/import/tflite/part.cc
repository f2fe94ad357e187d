// Parts of a .tflite file, whose tensors have numbers and, mostly, names.
#include "src/packer/import/part.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "src/packer/import/tflite/model_file.h"

namespace qplan::tfl {
namespace {

using importer::TensorNumber;

// A number below count.
std::optional<TensorNumber> parse_number(const std::string& text, size_t count) {
  TensorNumber number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || number >= count) return std::nullopt;
  return number;
}

class GraphOfFile {
 public:
  // is_known: what is known on import beside the file's constants.
  explicit GraphOfFile(ModelFile& file, std::function<bool(const TensorInfo&)> is_known = {})
      : file_(file), is_known_(std::move(is_known)) {
    // What variables become is one more tensor: a part that reads any of them has the operators that set
    // them.
    const auto variables = static_cast<TensorNumber>(file.num_tensors());
    for (size_t i = 0; i < file.num_operators(); ++i) {
      graph_.operators.emplace_back();
      if (file.is_in_part(i)) add_operator(file.op(i), variables);
    }
    for (const int32_t input : file.inputs()) graph_.inputs.push_back(static_cast<TensorNumber>(input));
    for (const int32_t output : file.outputs()) graph_.outputs.push_back(static_cast<TensorNumber>(output));
    for (const auto* list : {&graph_.inputs, &graph_.outputs})
      std::ranges::for_each(*list, [&](TensorNumber tensor) { note(tensor); });
    graph_.name = [this, variables](TensorNumber tensor) {
      return tensor == variables ? std::string() : name_of(tensor);
    };
    graph_.find = [this](const std::string& name) { return find(name); };
  }
  GraphOfFile(const GraphOfFile&) = delete;
  GraphOfFile& operator=(const GraphOfFile&) = delete;

  const importer::PartGraph& graph() const { return graph_; }

 private:
  void add_operator(const tflite::Operator& op, TensorNumber variables) {
    importer::GraphOperator& added = graph_.operators.back();
    const auto add_tensors = [&](const flatbuffers::Vector<int32_t>* tensors,
                                 std::vector<TensorNumber>* list) {
      for (uint32_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
        const int32_t tensor = tensors->Get(i);
        if (tensor < 0 || static_cast<size_t>(tensor) >= file_.num_tensors()) continue;
        list->push_back(static_cast<TensorNumber>(tensor));
        note(list->back());
      }
    };
    add_tensors(op.inputs(), &added.reads);
    add_tensors(op.outputs(), &added.writes);
    // Whoever reads a tensor with is_variable may write it.
    for (const TensorNumber tensor : added.reads) {
      if (variables_.contains(tensor)) added.writes.push_back(tensor);
    }
    int32_t code = -1;
    try {
      code = file_.builtin_code(op);
    } catch (const PackError&) {  // out of range, which counts only in the part
    }
    if (code == tflite::BuiltinOperator_READ_VARIABLE) added.reads.push_back(variables);
    if (code == tflite::BuiltinOperator_ASSIGN_VARIABLE || code == tflite::BuiltinOperator_CALL_ONCE)
      added.writes.push_back(variables);
  }

  void note(TensorNumber tensor) {
    if (names_.contains(tensor)) return;
    std::string name;
    try {
      const TensorInfo& info = file_.tensor(static_cast<int32_t>(tensor));
      name = info.name;
      if (info.is_variable) variables_.insert(tensor);
      const bool is_handle = info.file_type == tflite::TensorType_RESOURCE;
      const bool is_known = info.is_constant() || (is_known_ && is_known_(info));
      if (is_known || info.is_variable || is_handle) graph_.constants.insert(tensor);
      if (!info.dtype) unfit_.insert(tensor);
    } catch (const PackError&) {  // damaged, which counts only where the tensor is used
      unfit_.insert(tensor);
    }
    if (!name.empty()) by_name_[name].push_back(tensor);
    names_.emplace(tensor, std::move(name));
  }

  // The name, or else the number, where that means this tensor alone.
  std::string name_of(TensorNumber tensor) const {
    if (unfit_.contains(tensor)) return "";
    const auto name = names_.find(tensor);
    const std::vector<TensorNumber> alone = {tensor};
    if (name != names_.end() && find(name->second) == alone) return name->second;
    const std::string number = std::to_string(tensor);
    return find(number) == alone ? number : "";
  }

  std::vector<TensorNumber> find(const std::string& name) const {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    const std::optional<TensorNumber> number = parse_number(name, file_.num_tensors());
    return number ? std::vector<TensorNumber>{*number} : std::vector<TensorNumber>();
  }

  ModelFile& file_;
  const std::function<bool(const TensorInfo&)> is_known_;
  importer::PartGraph graph_;
  std::set<TensorNumber> variables_;  // tensors with is_variable
  std::set<TensorNumber> unfit_;      // of types that a plan has not
  std::map<TensorNumber, std::string> names_;
  std::map<std::string, std::vector<TensorNumber>, std::less<>> by_name_;
};

std::vector<int32_t> indices_of(const std::vector<TensorNumber>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

void select_part(ModelFile& file, const Part& part, std::set<std::string>* names_of_others) {
  if (part.empty()) return;
  const GraphOfFile of_file(file);
  importer::Selection selection = importer::select_part(of_file.graph(), part, names_of_others);
  file.set_part(indices_of(selection.inputs), indices_of(selection.outputs), std::move(selection.operators));
}

std::string parts_without(ModelFile& file, const std::set<size_t>& refused,
                          const std::function<bool(const TensorInfo&)>& is_known) {
  const GraphOfFile of_file(file, is_known);
  std::vector<bool> is_refused(file.num_operators());
  for (const size_t i : refused) is_refused[i] = true;
  return importer::parts_without(of_file.graph(), is_refused);
}

}  // namespace qplan::tfl
