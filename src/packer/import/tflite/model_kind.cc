#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "src/packer/error.h"
#include "src/packer/import/tflite/model_file.h"
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::tfl {
namespace {

// A custom operator that holds a program for a device in the place of the operators that became it.
struct Compiled {
  const char* custom_code;
  const char* device;
  const char* compiler;
};
constexpr Compiled kCompiled[] = {
    {"edgetpu-custom-op", "the Coral Edge TPU", "edgetpu_compiler"},
    {"NeutronGraph", "NXP's eIQ Neutron NPU", "neutron-converter"},
    {"vsi-npu", "a VeriSilicon NPU", "its compiler"},
};

// The operand that is the activation of an operator with weights; nullopt: one without.
std::optional<size_t> activation_operand(int32_t code) {
  switch (code) {
    case tflite::BuiltinOperator_CONV_2D:
    case tflite::BuiltinOperator_DEPTHWISE_CONV_2D:
    case tflite::BuiltinOperator_FULLY_CONNECTED:
    case tflite::BuiltinOperator_CONV_3D:
    case tflite::BuiltinOperator_BATCH_MATMUL:
    case tflite::BuiltinOperator_SVDF:
    case tflite::BuiltinOperator_RNN:
    case tflite::BuiltinOperator_LSTM:
    case tflite::BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_RNN:
    case tflite::BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_LSTM:
    case tflite::BuiltinOperator_BIDIRECTIONAL_SEQUENCE_RNN:
    case tflite::BuiltinOperator_BIDIRECTIONAL_SEQUENCE_LSTM:
      return 0;
    case tflite::BuiltinOperator_TRANSPOSE_CONV:
      return 2;
    default:
      return std::nullopt;
  }
}

// Operators of one kind, and the name of the first.
struct Found {
  size_t count = 0;
  std::string first;
  void add(const std::string& name) {
    if (count++ == 0) first = name;
  }
};

class Survey {
 public:
  explicit Survey(ModelFile& file) : file_(file) {}

  void look(const tflite::Operator& op) {
    const int32_t code = file_.builtin_code(op);
    if (code == tflite::BuiltinOperator_CUSTOM) look_at_custom(op);
    if (code == tflite::BuiltinOperator_DELEGATE) delegates_.add(name_of(op));
    for (const auto* operands : {op.inputs(), op.outputs()}) {
      for (size_t i = 0; operands != nullptr && i < operands->size(); ++i) {
        const TensorInfo* tensor = tensor_at(operands, i);
        if (tensor != nullptr && tensor->file_type == tflite::TensorType_STRING)
          strings_.add(in_quotes(tensor->name));
      }
    }
    if (code == tflite::BuiltinOperator_DEQUANTIZE && has_constant(op, {tflite::TensorType_FLOAT16})) {
      halves_.add(name_of(op));
    }
    if (const std::optional<size_t> operand = activation_operand(code)) look_at_weights(op, *operand);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    for (size_t i = 0; i < std::size(kCompiled); ++i) {
      if (compiled_[i].count == 0) continue;
      notes.push_back(cat("the model is compiled for ", kCompiled[i].device, ": custom operator '",
                          kCompiled[i].custom_code, "' (", compiled_[i].first,
                          ") holds a program for it; pack the .tflite file that ", kCompiled[i].compiler,
                          " was given"));
    }
    if (delegates_.count > 0) {
      notes.push_back(cat("the model was saved after a delegate had taken operators out of it (",
                          delegates_.first, "); pack the file that the delegate was given"));
    }
    if (strings_.count > 0) {
      notes.push_back(cat("the model works on strings (tensor ", strings_.first,
                          "); pack the part of it that works on numbers"));
    }
    if (flex_.count > 0) {
      notes.push_back(cat("the model needs TensorFlow itself: ", flex_.count,
                          flex_.count == 1 ? " of its operators is" : " of its operators are",
                          " TensorFlow's (first ", flex_.first, "); convert it without SELECT_TF_OPS"));
    }
    add_quantisation_notes(&notes);
    return notes;
  }

 private:
  void add_quantisation_notes(std::vector<std::string>* notes) const {
    constexpr char kHow[] =
        "; quantise it fully: give the TFLite converter a representative dataset and int8 as the type of "
        "operators, inputs and outputs";
    const auto some = [&](const Found& found) {
      if (num_weighted_ == 1) return std::string("its one operator with weights");
      if (found.count == num_weighted_) return cat("all ", num_weighted_, " operators with weights");
      return cat(found.count, " of ", num_weighted_, " operators with weights");
    };
    if (hybrid_.count > 0) {
      notes->push_back(cat("the model has dynamic range quantisation: ", some(hybrid_), " (first ",
                           hybrid_.first, ") ", hybrid_.count == 1 ? "has" : "have",
                           " integer weights and float32 activations, whose scales only the run would give",
                           kHow));
    }
    if (wide_.count > 0) {
      notes->push_back(
          cat("the model has int16 activations (16x8 quantisation) in ", some(wide_), " (first ", wide_.first,
              "), for which some of its operators have no kernel; quantise it with int8 activations"));
    }
    // Dynamic range quantisation leaves some layers as they were.
    if (real_.count > 0 && hybrid_.count == 0) {
      notes->push_back(cat("the model is ", real_.count == num_weighted_ ? "not" : "only partly",
                           " quantised: ", some(real_), " (first ", real_.first, ") ",
                           real_.count == 1 ? "computes" : "compute", " in float32",
                           halves_.count > 0 ? ", with weights stored as float16" : "", kHow));
    }
  }

  // Returns null for a tensor that is absent or broken; another check reports the fault.
  const TensorInfo* tensor_at(const flatbuffers::Vector<int32_t>* operands, size_t i) const {
    if (operands == nullptr || i >= operands->size()) return nullptr;
    try {
      return &file_.tensor(operands->Get(static_cast<flatbuffers::uoffset_t>(i)));
    } catch (const ExpandsTooMuch&) {
      throw;
    } catch (const PackError&) {
      return nullptr;
    }
  }

  std::string name_of(const tflite::Operator& op) const {
    const TensorInfo* output = tensor_at(op.outputs(), 0);
    return in_quotes(output == nullptr ? "" : output->name);
  }

  bool has_constant(const tflite::Operator& op, std::initializer_list<tflite::TensorType> types) const {
    for (size_t i = 0; op.inputs() != nullptr && i < op.inputs()->size(); ++i) {
      const TensorInfo* tensor = tensor_at(op.inputs(), i);
      if (tensor != nullptr && tensor->is_constant() &&
          std::ranges::find(types, tensor->file_type) != types.end()) {
        return true;
      }
    }
    return false;
  }

  void look_at_custom(const tflite::Operator& op) {
    const std::string_view code = file_.custom_code(op);
    for (size_t i = 0; i < std::size(kCompiled); ++i) {
      if (code == kCompiled[i].custom_code) compiled_[i].add(name_of(op));
    }
    if (code.starts_with("Flex") && !is_list_operator(code)) flex_.add(in_quotes(code));
  }

  void look_at_weights(const tflite::Operator& op, size_t operand) {
    ++num_weighted_;
    const TensorInfo* activation = tensor_at(op.inputs(), operand);
    if (activation == nullptr) return;
    if (activation->file_type == tflite::TensorType_INT16) wide_.add(name_of(op));
    if (activation->file_type != tflite::TensorType_FLOAT32) return;
    const bool integer_weights = has_constant(op, {tflite::TensorType_INT8, tflite::TensorType_UINT8,
                                                   tflite::TensorType_INT4, tflite::TensorType_INT16});
    (integer_weights ? hybrid_ : real_).add(name_of(op));
  }

  ModelFile& file_;
  Found compiled_[std::size(kCompiled)];
  Found delegates_, strings_, flex_, halves_;
  size_t num_weighted_ = 0;
  Found hybrid_, wide_, real_;  // operators with weights
};

}  // namespace

bool has_weights(int32_t builtin_code) { return activation_operand(builtin_code).has_value(); }

std::vector<std::string> model_notes(ModelFile& file) {
  Survey survey(file);
  for (size_t i = 0; i < file.num_operators(); ++i) {
    if (!file.is_in_part(i)) continue;
    try {
      survey.look(file.op(i));
    } catch (const PackError&) {  // of an operator code that is out of range
    }
  }
  return survey.notes();
}

// Operands of all operators together. Each takes four bytes of a file that does not share vectors among
// operators; one that does could make a small file take for ever.
void check_operand_count(const ModelFile& file) {
  uint64_t count = 0;
  for (size_t i = 0; i < file.num_operators(); ++i) {
    const tflite::Operator& op = file.op(i);
    count += op.inputs() == nullptr ? 0 : op.inputs()->size();
    count += op.outputs() == nullptr ? 0 : op.outputs()->size();
  }
  if (count > file.size_bytes()) invalid("the operators have more operands than the file has bytes");
}

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
  }
}

// The name of the operator's first output. Only the subgraph's place in the file was checked before.
std::string node_name(const tflite::SubGraph& graph, const tflite::Operator& op) {
  if (op.outputs() == nullptr || op.outputs()->size() == 0 || graph.tensors() == nullptr)
    return in_quotes("");
  const int32_t index = op.outputs()->Get(0);
  if (index < 0 || static_cast<uint32_t>(index) >= graph.tensors()->size()) return in_quotes("");
  const auto* name = graph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index))->name();
  return in_quotes(name == nullptr ? std::string_view() : name->string_view());
}

}  // namespace

void list_subgraph_operators(const ModelFile& file, const std::set<size_t>& imported,
                             importer::UnsupportedList* unsupported) {
  std::vector<Open> open{{0, ""}};
  std::set<size_t> seen{0};
  while (!open.empty()) {
    const auto [index, caller] = std::move(open.back());
    open.pop_back();
    const tflite::SubGraph* graph = file.subgraph(index);
    if (graph == nullptr || graph->operators() == nullptr) continue;
    std::vector<Open> callees;
    for (uint32_t i = 0; i < graph->operators()->size(); ++i) {
      if (index == 0 && !file.is_in_part(i)) continue;
      const tflite::Operator* op = graph->operators()->Get(i);
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
      if (!imported.contains(callee.first) && seen.insert(callee.first).second)
        open.push_back(std::move(callee));
    }
  }
}

}  // namespace qplan::tfl
