#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/import/import.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/op_def.h"

namespace qplan::onnx {
namespace {

// A file keeps each constant once; a few become others by arithmetic. Integers of 4 bits become bytes,
// float32, and a transposed matrix, 19 times their own bytes. A larger file is not a network.
constexpr uint64_t kConstantBytesPerFileByte = 24;
constexpr uint64_t kConstantBytesAlways = uint64_t{64} << 20;
constexpr uint64_t kWorkBytesPerFileByte = 64;
constexpr uint64_t kWorkBytesAlways = uint64_t{1} << 30;

}  // namespace

Graph::Graph(const Model& model, ir::Function& function, const LogFunction& log)
    : model_(model), function_(function), log_(log) {
  read_names(model.nodes);
  for (const ValueInfo& output : model.outputs) read_.insert(output.name);
  for (const Function& called : model.functions) {
    read_names(called.nodes);
    read_.insert(called.outputs.begin(), called.outputs.end());
  }
}

void Graph::read_names(const std::vector<NodeInfo>& nodes) {
  for (const NodeInfo& node : nodes) {
    read_.insert(node.inputs.begin(), node.inputs.end());
    for (const Attribute& attribute : node.attributes) {
      if (attribute.graph == nullptr) continue;
      read_.insert(attribute.graph->outputs.begin(), attribute.graph->outputs.end());
      read_names(attribute.graph->nodes);
    }
  }
}

void Graph::charge(uint64_t bytes) {
  if (!checked_add(constant_bytes_, bytes, &constant_bytes_) ||
      (constant_bytes_ > kConstantBytesAlways &&
       constant_bytes_ / kConstantBytesPerFileByte > model_.size_bytes)) {
    invalid(
        cat("the model's constants take more than ", kConstantBytesPerFileByte, " times the file's size"));
  }
}

void Graph::charge_work(uint64_t bytes) {
  if (!checked_add(work_bytes_, bytes, &work_bytes_) ||
      (work_bytes_ > kWorkBytesAlways && work_bytes_ / kWorkBytesPerFileByte > model_.size_bytes)) {
    invalid("the model's calls of functions and arithmetic on constants take too long: more than " +
            std::to_string(kWorkBytesAlways >> 20) + " MiB are read and written");
  }
}

// Forgets the names of a subgraph when it ends.
class Graph::Scope {
 public:
  explicit Scope(Graph* graph) : graph_(graph), outer_(std::exchange(graph->scope_, &names_)) {}
  ~Scope() {
    for (const std::string& name : names_) graph_->entries_.erase(name);
    graph_->scope_ = outer_;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Graph* graph_;
  std::vector<std::string>* outer_;
  std::vector<std::string> names_;
};

// False where the name is taken.
bool Graph::add_entry(const std::string& name, Entry entry) {
  if (!entries_.emplace(name, std::move(entry)).second) return false;
  if (scope_ != nullptr) scope_->push_back(name);
  return true;
}

void Graph::declare(const Tensor& initializer) {
  if (initializer.name.empty()) invalid("an initializer has no name");
  Entry entry;
  entry.initializer = &initializer;
  if (!add_entry(initializer.name, std::move(entry))) {
    invalid("two initializers are called " + in_quotes(initializer.name));
  }
}

void Graph::declare_sparse(const std::string& name) {
  Entry entry;
  entry.is_sparse = true;
  add_entry(name, std::move(entry));
}

std::vector<Value> Graph::values(const std::vector<std::string>& names) {
  std::vector<Value> values;
  for (const std::string& name : names) values.push_back(value(name));
  return values;
}

std::vector<Value> Graph::import_subgraph(const Subgraph& subgraph) {
  const Scope scope(this);
  for (const Tensor& initializer : subgraph.initializers) declare(initializer);
  for (const std::string& name : subgraph.sparse_initializers) declare_sparse(name);
  import_nodes(subgraph.nodes);
  return values(subgraph.outputs);
}

std::vector<Value> Graph::import_function(const std::unordered_map<std::string, Value>& inputs,
                                          const std::vector<NodeInfo>& nodes,
                                          const std::vector<std::string>& outputs) {
  // The caller's names wait until the function ends, however it does.
  struct Hidden {
    Graph* graph;
    std::unordered_map<std::string, Entry> entries;
    explicit Hidden(Graph* g) : graph(g), entries(std::exchange(g->entries_, {})) {}
    ~Hidden() { graph->entries_ = std::move(entries); }
  };
  const Hidden hidden(this);
  const Scope scope(this);
  for (const auto& [name, value] : inputs) define(name, value);
  import_nodes(nodes);
  return values(outputs);
}

void Graph::define(const std::string& name, Value value) {
  Entry entry;
  entry.value = std::move(value);
  if (!add_entry(name, std::move(entry))) invalid("value " + in_quotes(name) + " is defined twice");
}

const Value& Graph::value(const std::string& name) {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    invalid("value " + in_quotes(name) + " is read before any node writes it");
  }
  Entry& entry = it->second;
  if (entry.is_sparse) throw Unsupported{"a sparse constant"};
  if (entry.initializer != nullptr) {
    ir::ConstantRef constant;
    try {
      constant = read_constant(*entry.initializer);
    } catch (const PackError& error) {
      throw PackError(error.status(), "initializer " + in_quotes(name) + ": " + error.what());
    }
    charge(constant->bytes().size());
    entry.value = in_float32(constant);
    entry.value.name = clean_name(name);
    entry.initializer = nullptr;
  }
  return entry.value;
}

ir::ConstantRef Graph::in_float32(const ir::ConstantRef& constant) {
  if (constant->type().dtype != ir::kFloat16) return constant;
  charge(2 * constant->bytes().size());
  return ir::widened_halves(*constant);
}

const ir::TensorType& Graph::type(const Value& value) const {
  return value.is_constant() ? value.constant->type() : function_.type(value.id);
}

ir::ValueId Graph::id(const Value& value) {
  return value.is_constant() ? function_.add_constant(value.constant, value.name) : value.id;
}

std::vector<Value> Graph::evaluate(const ir::Node& node, const std::vector<ir::ConstantRef>& operands) {
  uint64_t work = 0;
  for (const ir::ConstantRef& operand : operands) work += operand->bytes().size();
  const std::vector<ir::TensorType> types = op::result_types(node, operands);
  for (const ir::TensorType& type : types) charge(static_cast<uint64_t>(type.size_bytes()));
  for (const ir::TensorType& type : types) work += static_cast<uint64_t>(type.size_bytes());
  charge_work(work);
  const auto results = op::evaluate(node, operands);
  if (!results) return {};
  return {results->begin(), results->end()};
}

std::vector<Value> Graph::emit(std::string_view op, const std::vector<Value>& operands, ir::Attrs attrs,
                               const std::string& name) {
  const op::OpDef& def = op::get_op(op);
  for (const Value& operand : operands) {
    if (type(operand).num_elements() == 0) throw Unsupported{"a tensor without elements"};
  }
  if (def.evaluate != nullptr && std::ranges::all_of(operands, &Value::is_constant)) {
    ir::Node node;
    node.op = &def;
    node.attrs = attrs;
    node.name = name;
    std::vector<ir::ConstantRef> constants;
    for (const Value& operand : operands) constants.push_back(operand.constant);
    if (std::vector<Value> results = evaluate(node, constants); !results.empty()) return results;
  }
  std::vector<ir::ValueId> ids;
  for (const Value& operand : operands) ids.push_back(id(operand));
  const ir::Node& node = function_.add_node(def, std::move(ids), std::move(attrs), name);
  return {node.results.begin(), node.results.end()};
}

namespace {

[[noreturn]] void bad_option(const std::string& text) { throw PackError(QPLAN_INVALID_ARGUMENT, text); }

// "[1, 3, ?, N]"
std::string dims_text(const std::vector<Dim>& dims) {
  std::string text;
  for (const Dim& dim : dims) {
    text += text.empty() ? "" : ", ";
    text += dim.extent ? std::to_string(*dim.extent) : dim.symbol.empty() ? "?" : clean_name(dim.symbol);
  }
  return "[" + text + "]";
}

ir::DType dtype_of(const ValueInfo& info) {
  const std::optional<ir::DType> dtype = ir_dtype(info.data_type);
  if (!dtype) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "input " + in_quotes(info.name) + " is a " +
                                                 type_name(info.data_type) +
                                                 " tensor; qplan runs networks on numbers");
  }
  return *dtype;
}

// Whether a tensor of this shape is one that the model declares.
bool agrees(const ValueInfo& info, const ir::Shape& shape) {
  if (!info.dims) return true;
  return std::ranges::equal(
      *info.dims, shape, [](const Dim& dim, int64_t extent) { return !dim.extent || *dim.extent == extent; });
}

// The caller's type of an input, checked against the model's.
void check_given(const ValueInfo& info, const ir::TensorType& given, const char* how) {
  const ir::DType dtype = dtype_of(info);
  if (given.dtype == dtype && agrees(info, given.shape)) return;
  bad_option(cat("input ", in_quotes(info.name), " is ", how, " as ", given, ", but the model declares ",
                 dtype, " ", info.dims ? dims_text(*info.dims) : std::string("of any rank")));
}

ir::TensorType declared_type(const Graph& graph, const ValueInfo& info) {
  ir::TensorType type{dtype_of(info), {}};
  if (!info.dims) {
    bad_option("input " + in_quotes(info.name) +
               " has no shape; give it: --input-shape NAME=1x3x224x224:float32 with its name and shape");
  }
  for (size_t i = 0; i < info.dims->size(); ++i) {
    const Dim& dim = (*info.dims)[i];
    if (!dim.extent && i > 0) {
      bad_option(cat("input ", in_quotes(info.name), " has shape ", dims_text(*info.dims), ": extent ", i,
                     " is open; give it: --input-shape NAME=1x3x224x224:float32 with its name and shape"));
    }
    if (!dim.extent && graph.log()) {
      graph.log()(QPLAN_LOG_INFO,
                  "onnx: input " + in_quotes(info.name) + " has an open batch extent: 1 is taken");
    }
    type.shape.push_back(dim.extent.value_or(1));
  }
  return type;
}

// The plan has another type than the model.
void warn_of_halves(const Graph& graph, const char* what, const std::string& name) {
  if (!graph.log()) return;
  graph.log()(QPLAN_LOG_WARNING,
              cat("onnx: ", what, " ", in_quotes(name), " is float16 in the model and float32 in the plan"));
}

void define_input(Graph& graph, const ValueInfo& info, const ImportOptions& options) {
  if (!info.is_tensor) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED, "input " + in_quotes(info.name) + " is no tensor");
  }
  if (const auto bound = options.bindings.find(info.name); bound != options.bindings.end()) {
    check_given(info, bound->second->type(), "bound");
    Value value = graph.in_float32(bound->second);
    value.name = clean_name(info.name);
    return graph.define(info.name, std::move(value));
  }
  ir::TensorType type;
  if (const auto given = options.input_types.find(info.name); given != options.input_types.end()) {
    check_given(info, given->second, "given");
    type = given->second;
  } else {
    type = declared_type(graph, info);
  }
  if (std::ranges::find(type.shape, 0) != type.shape.end()) {
    throw PackError(QPLAN_MODEL_UNSUPPORTED,
                    "input " + in_quotes(info.name) + " has shape " + to_text(type.shape) + ": no elements");
  }
  if (type.dtype == ir::kFloat16) {
    type.dtype = ir::kFloat32;
    warn_of_halves(graph, "input", info.name);
  }
  if (const std::string error = ir::type_error(type); !error.empty()) {
    invalid("input " + in_quotes(info.name) + ": " + error);
  }
  graph.define(info.name, graph.function().add_param(clean_name(info.name), std::move(type)));
}

// Options that name no input are mistakes.
template <typename Map>
void check_names(const Map& named, const std::vector<const ValueInfo*>& inputs,
                 const std::set<std::string>& left_out, const char* what,
                 std::set<std::string>* names_of_others) {
  for (const auto& [name, unused] : named) {
    if (left_out.contains(name)) continue;
    if (std::ranges::any_of(inputs, [&name = name](const ValueInfo* info) { return info->name == name; }))
      continue;
    if (names_of_others != nullptr) {
      names_of_others->insert(name);
      continue;
    }
    std::string known;
    constexpr size_t kMaxShown = 16;
    for (size_t i = 0; i < inputs.size() && i < kMaxShown; ++i) {
      known += (i == 0 ? "" : ", ") + in_quotes(inputs[i]->name);
    }
    if (inputs.size() > kMaxShown) known += ", ...";
    bad_option(
        cat(what, " names ", in_quotes(name), ", but the model has no such input; inputs are ", known));
  }
}

}  // namespace

void define_inputs(Graph& graph, const ImportOptions& options) {
  const Model& model = graph.model();
  std::unordered_set<std::string_view> initialized;
  for (const Tensor& initializer : model.initializers) {
    graph.declare(initializer);
    initialized.insert(initializer.name);
  }
  for (const std::string& name : model.sparse_initializers) graph.declare_sparse(name);
  // Before IR version 4 the inputs include initializers.
  std::vector<const ValueInfo*> inputs;
  for (const ValueInfo& input : model.inputs) {
    if (!initialized.contains(input.name)) inputs.push_back(&input);
  }
  check_names(options.bindings, inputs, model.left_out, "a binding", options.names_of_others);
  check_names(options.input_types, inputs, model.left_out, "an input type", options.names_of_others);
  std::unordered_set<std::string> clean_names;
  for (const ValueInfo* input : inputs) {
    if (input->name.empty()) invalid("an input has no name");
    if (!clean_names.insert(clean_name(input->name)).second) {
      invalid("two inputs are called " + in_quotes(input->name));
    }
    define_input(graph, *input, options);
  }
}

void define_outputs(Graph& graph) {
  if (graph.model().outputs.empty()) invalid("the model has no outputs");
  std::vector<ir::ValueId> outputs;
  std::vector<std::string> names;
  for (const ValueInfo& info : graph.model().outputs) {
    const Value& value = graph.value(info.name);
    if (!value.is_known()) invalid("output " + in_quotes(info.name) + " is written by no operator");
    if (value.is_shifted) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED,
                      "output " + in_quotes(info.name) + " is uint16; let a DequantizeLinear give it");
    }
    const ir::TensorType& type = graph.type(value);
    if (type.num_elements() == 0) {
      throw PackError(QPLAN_MODEL_UNSUPPORTED, "output " + in_quotes(info.name) + " has no elements");
    }
    const bool is_half = info.is_tensor && ir_dtype(info.data_type) == ir::kFloat16;
    if (is_half && type.dtype == ir::kFloat32) {
      warn_of_halves(graph, "output", info.name);
    } else if (info.is_tensor && ir_dtype(info.data_type) != type.dtype) {
      invalid(cat("output ", in_quotes(info.name), " is declared as ", type_name(info.data_type),
                  ", but its node gives ", type));
    }
    if (!agrees(info, type.shape) && graph.log()) {
      graph.log()(QPLAN_LOG_WARNING, cat("onnx: output ", in_quotes(info.name), " is declared with shape ",
                                         dims_text(*info.dims), ", but its node gives ", type));
    }
    outputs.push_back(graph.id(value));
    names.push_back(clean_name(info.name));
  }
  graph.function().set_outputs(std::move(outputs), std::move(names));
  set_io_quantization(graph.function(), /*canonical=*/false);
}

}  // namespace qplan::onnx
