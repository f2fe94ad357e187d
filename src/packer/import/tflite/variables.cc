// Variables become states of the function (ir::State): TFLite's resource variables (VAR_HANDLE,
// READ_VARIABLE, ASSIGN_VARIABLE), whose first values CALL_ONCE assigns in a subgraph of its own, and tensors
// with is_variable, which operators read and write themselves.
#include <set>

#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/tflite/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::tfl {
namespace {

constexpr size_t kMaxStates = 256;  // a function of a plan has no more

// The name by which handles refer to one variable.
std::string key_of_handle(const OpContext& op) {
  const auto* options = op.optional_options<tflite::VarHandleOptions>();
  const auto text = [](const flatbuffers::String* name) {
    return name == nullptr ? std::string() : clean_name(name->string_view());
  };
  // A clean name holds no control character: "a/b" with "c" and "a" with "b/c" stay apart.
  constexpr char kBetween[] = "\n";
  if (options == nullptr) return cat("resource ", kBetween);
  return cat("resource ", text(options->container()), kBetween, text(options->shared_name()));
}

std::string key_of_tensor(const TensorInfo& tensor) { return cat("tensor ", tensor.index); }

// Bytes of tensors with is_variable before the first run: TFLite fills int8 with its zero point and all
// others with 0.
uint8_t first_byte(const TensorInfo& tensor) {
  if (tensor.dtype != ir::kInt8 || tensor.num_scales() != 1) return 0;
  return static_cast<uint8_t>(checked_quantization(tensor).zero_point);
}

// Operators of a subgraph that CALL_ONCE runs: all that they compute must be known on import.
void run_once(Graph& graph, size_t subgraph, importer::UnsupportedList* unsupported) {
  ModelFile file(graph.file(), subgraph);
  check_operand_count(file);
  ir::Function computed("init");
  Graph inner(file, computed, graph.log());
  // Subgraphs may share buffers: all of them together are limited as one.
  const uint64_t before = graph.charged_bytes();
  inner.charge(before);
  for (size_t i = 0; i < file.num_operators(); ++i) {
    const tflite::Operator& op = file.op(i);
    const std::string name = file.operator_name(op);
    const std::string place = name + " inside CALL_ONCE";
    OpContext context(inner, op, name, i);
    const int32_t code = file.builtin_code(op);
    try {
      if (code == tflite::BuiltinOperator_VAR_HANDLE) {
        import_var_handle(context);
      } else if (code == tflite::BuiltinOperator_ASSIGN_VARIABLE) {
        context.expect_counts(2, 2, 0);
        const ir::ConstantRef value = inner.known_contents(context.input(1));
        if (value == nullptr) throw Unsupported{"a first value that is not constant"};
        graph.set_first_value(inner.variable_key(context.input(0)), value);
      } else if (!fold_integers(context, code)) {
        const ImportRow* row = find_row(code);
        if (row == nullptr || code == tflite::BuiltinOperator_CALL_ONCE) throw Unsupported{""};
        row->import_op(context);
      }
    } catch (const Unsupported& use) {
      unsupported->add(use.reason.empty() ? place : place + " with " + use.reason,
                       importer::in_quotes(context.name()));
      break;
    } catch (const PackError& error) {
      throw PackError(error.status(), cat("operator ", i, " ", place, ": ", error.what()));
    }
  }
  graph.charge(inner.charged_bytes() - before);
}

}  // namespace

std::string Graph::variable_key(const TensorInfo& handle) const {
  const auto known = handles_.find(handle.index);
  if (known == handles_.end()) {
    if (handle.file_type != tflite::TensorType_RESOURCE)
      invalid("input 0 is " + type_name(handle.file_type) + ", expected a resource");
    throw Unsupported{"a resource that no VAR_HANDLE of its subgraph made"};
  }
  return known->second;
}

void Graph::set_first_value(const std::string& key, ir::ConstantRef value) {
  variables_[key].first_value = std::move(value);
}

// A subgraph that WHILE or IF runs has variables of its own here, which nothing carries to the next round or
// run.
void Graph::refuse_variables_of_subgraphs() const {
  if (caller_ != nullptr) throw Unsupported{"a variable of a subgraph"};
}

ir::ValueId Graph::read_variable(const std::string& key, const TensorInfo& as) {
  refuse_variables_of_subgraphs();
  Variable& variable = variables_[key];
  if (variable.value.valid()) return variable.value;
  if (!as.dtype || as.is_empty || !as.has_shape) throw Unsupported{"a variable without dtype and shape"};
  const ir::ConstantRef& first = variable.first_value;
  if (first != nullptr && !variable.is_assigned) return variable.value = function_.add_constant(first);
  const ir::TensorType type = first != nullptr ? first->type() : ir::TensorType{*as.dtype, as.shape};
  if (states_.size() == kMaxStates) throw Unsupported{cat("more than ", kMaxStates, " variables")};
  if (param_names_.empty()) {
    for (const ir::ValueId param : function_.params()) param_names_.insert(function_.value(param).name);
  }
  const std::string base = as.name.empty() ? "state" : as.name;
  std::string name = base;
  for (size_t suffix = 1; !param_names_.insert(name).second; ++suffix) name = cat(base, "_", suffix);
  ir::State state;
  state.param = function_.params().size();
  if (first != nullptr) {
    charge(first->bytes().size());
    state.initial.assign(first->bytes().begin(), first->bytes().end());
  } else {
    state.initial = {variable.first_byte};
  }
  variable.value = function_.add_param(name, type);
  states_.push_back({&variable, std::move(state)});
  if (as.num_scales() == 1 && as.dtype->bits <= 32 && !as.dtype->is_float()) {
    const QuantParams params = checked_quantization(as);
    set_input_quantization(function_, states_.back().second.param, {params.scale, params.zero_point});
  }
  return variable.value;
}

void Graph::assign_variable(const std::string& key, ir::ValueId value) {
  refuse_variables_of_subgraphs();
  Variable& variable = variables_[key];
  variable.is_assigned = true;
  if (variable.value.valid() && function_.type(variable.value) != function_.type(value)) {
    throw Unsupported{cat("a variable that is ", ir::to_string(function_.type(variable.value)),
                          " and becomes ", ir::to_string(function_.type(value)))};
  }
  variable.value = value;
}

std::vector<ir::State> Graph::finish_states(std::vector<ir::ValueId>* outputs,
                                            std::vector<std::string>* names) {
  std::vector<ir::State> states;
  for (auto& [variable, state] : states_) {
    state.result = outputs->size();
    const std::string& name = function_.value(function_.params()[state.param]).name;
    if (variable->first_value != nullptr &&
        variable->first_value->type() != function_.type(variable->value)) {
      throw Unsupported{cat("variable ", importer::in_quotes(name), " that begins as ",
                            ir::to_string(variable->first_value->type()), " and becomes ",
                            ir::to_string(function_.type(variable->value)))};
    }
    outputs->push_back(variable->value);
    names->push_back(name + ".next");
    states.push_back(std::move(state));
  }
  return states;
}

ir::ValueId Graph::variable_tensor(const TensorInfo& tensor) {
  refuse_variables_of_subgraphs();
  const std::string key = key_of_tensor(tensor);
  Variable& variable = variables_[key];
  variable.is_assigned = true;  // by the operator that reads it, which is about to be imported
  variable.first_byte = first_byte(tensor);
  return read_variable(key, tensor);
}

void Graph::set_variable_tensor(const TensorInfo& tensor, ir::ValueId value) {
  (void)variable_tensor(tensor);
  assign_variable(key_of_tensor(tensor), value);
}

void prepare_variables(Graph& graph, importer::UnsupportedList* unsupported) {
  std::set<int32_t> done;
  const ModelFile& file = graph.file();
  for (size_t i = 0; i < file.num_operators(); ++i) {
    if (!file.is_in_part(i)) continue;
    const tflite::Operator& op = file.op(i);
    const int32_t code = file.builtin_code(op);
    if (code != tflite::BuiltinOperator_VAR_HANDLE && code != tflite::BuiltinOperator_ASSIGN_VARIABLE &&
        code != tflite::BuiltinOperator_CALL_ONCE) {
      continue;
    }
    const std::string name = file.operator_name(op);
    OpContext context(graph, op, name, i);
    try {
      if (code == tflite::BuiltinOperator_VAR_HANDLE) {
        import_var_handle(context);
      } else if (code == tflite::BuiltinOperator_ASSIGN_VARIABLE) {
        context.expect_counts(2, 2, 0);
        graph.will_be_assigned(graph.variable_key(context.input(0)));
      } else {
        const int32_t subgraph = context.options<tflite::CallOnceOptions>().init_subgraph_index();
        if (subgraph <= 0 || file.subgraph(static_cast<size_t>(subgraph)) == nullptr)
          invalid(cat("CALL_ONCE of subgraph ", subgraph, " of ", file.num_subgraphs()));
        if (done.insert(subgraph).second) run_once(graph, static_cast<size_t>(subgraph), unsupported);
      }
    } catch (const Unsupported&) {  // reported where the operator is imported
    }
  }
}

void import_var_handle(OpContext& op) {
  op.graph().refuse_variables_of_subgraphs();
  op.expect_counts(0, 0, 1);
  op.graph().add_handle(op.output(), key_of_handle(op));
}

void import_read_variable(OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.define(op.output(), op.graph().read_variable(op.graph().variable_key(op.input(0)), op.output()));
}

void import_assign_variable(OpContext& op) {
  op.expect_counts(2, 2, 0);
  op.graph().assign_variable(op.graph().variable_key(op.input(0)), op.value(op.input(1)));
}

// prepare_variables has run what it names, where it is an operator of subgraph 0.
void import_call_once(OpContext& op) { op.graph().refuse_variables_of_subgraphs(); }

}  // namespace qplan::tfl
