// WHILE and IF. A loop whose condition is known on import, as that of a recurrent layer over a known number
// of steps is, is unrolled: its body is imported once for each round, with the values of the round before. Of
// IF the branch that is meant is imported, or both, between whose results the condition chooses.
#include <algorithm>
#include <memory>

#include "src/packer/import/tflite/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::tfl {
namespace {

// Loops in loops, and operators in all rounds of all loops: a small file could ask for any number. A round
// counts as an operator, too, since loops may have none.
constexpr uint32_t kMaxLoopDepth = 8;
constexpr uint64_t kMaxOperators = uint64_t{1} << 18;

[[noreturn]] void refuse_inside(const std::string& name, const std::string& caller,
                                const std::string& reason) {
  throw Unsupported{cat(name, " inside ", caller, reason.empty() ? "" : " with ", reason)};
}

void count_operators(Graph& graph, uint64_t count) {
  if (graph.count_operators(count) <= kMaxOperators) return;
  throw Unsupported{"more rounds than are worth unrolling; export the loop's body as the model"};
}

void import_operator(Graph& graph, size_t index, const std::string& caller) {
  const tflite::Operator& op = graph.file().op(index);
  const std::string name = graph.file().operator_name(op);
  count_operators(graph, 1);
  try {
    OpContext context(graph, op, name, index);
    const int32_t code = graph.file().builtin_code(op);
    if (fold_integers(context, code)) return;
    const ImportRow* row = find_float_row(context, code);
    if (row == nullptr) row = find_row(code);
    if (row == nullptr && import_list(context, graph.file().custom_code(op))) return;
    if (row == nullptr) throw Unsupported{""};
    row->import_op(context);
  } catch (const Unsupported& use) {
    // The reason names the inner loop already if the operator is in a loop inside a loop.
    if (use.reason.find(" inside ") != std::string::npos) throw;
    refuse_inside(name, caller, use.reason);
  }
}

// What passes into a subgraph and out of it: a value, or a list of tensors.
struct Passed {
  ir::ValueId value;
  Graph::ListRef list;
};

Passed passed_from(Graph& graph, const TensorInfo& tensor) {
  Graph::ListRef list = graph.find_list(tensor);
  if (list != nullptr) return {{}, std::move(list)};
  return {graph.value(tensor), nullptr};
}

// The operators of a subgraph as they are run with one list of inputs.
class Body {
 public:
  Body(OpContext& op, int32_t index, const char* caller)
      : op_(op), caller_(caller), file_(op.graph().file(), checked(op, index)) {
    check_operand_count(file_);
  }

  std::vector<Passed> run(const std::vector<Passed>& inputs) {
    if (file_.inputs().size() != inputs.size()) {
      invalid(cat("a subgraph has ", file_.inputs().size(), " inputs, expected ", inputs.size()));
    }
    constexpr uint64_t kTensorsPerOperator =
        16;  // about as much work: each round has a value for each tensor
    count_operators(op_.graph(), 1 + file_.num_tensors() / kTensorsPerOperator);
    Graph graph(op_.graph(), file_);
    if (constants_) graph.take_constants(*constants_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorInfo& tensor = file_.tensor(file_.inputs()[i]);
      if (inputs[i].list != nullptr) {
        graph.define_list(tensor, inputs[i].list);
        continue;
      }
      const ir::TensorType& type = graph.function().type(inputs[i].value);
      if (tensor.dtype != type.dtype || !tensor.may_have(type.shape)) {
        throw Unsupported{cat("a subgraph whose input ", tfl::in_quotes(tensor.name), " is ",
                              type_name(tensor.file_type), " ", importer::to_text(tensor.shape),
                              ", but is given ", ir::to_string(type))};
      }
      if (!graph.is_defined(tensor)) graph.define(tensor, inputs[i].value);
    }
    for (size_t i = 0; i < file_.num_operators(); ++i) import_operator(graph, i, caller_);
    std::vector<Passed> outputs;
    for (const int32_t output : file_.outputs()) outputs.push_back(passed_from(graph, file_.tensor(output)));
    constants_ = graph.constants();
    return outputs;
  }

 private:
  static size_t checked(OpContext& op, int32_t index) {
    if (index <= 0 || op.graph().file().subgraph(static_cast<size_t>(index)) == nullptr)
      invalid(cat("there is no subgraph ", index));
    if (op.graph().depth() >= kMaxLoopDepth) throw Unsupported{"so many loops inside one another"};
    return static_cast<size_t>(index);
  }

  OpContext& op_;
  const char* caller_;
  ModelFile file_;
  std::optional<std::vector<ir::ValueId>> constants_;  // that the rounds share
};

// The condition, one bool; nullopt: its value is not known on import.
std::optional<bool> known_condition(const OpContext& op, ir::ValueId condition) {
  if (!condition.valid()) invalid("the condition is a list of tensors, expected one bool");
  if (op.type(condition).dtype != ir::kBool || op.type(condition).num_elements() != 1)
    invalid(cat("the condition is ", ir::to_string(op.type(condition)), ", expected one bool"));
  const ir::ConstantRef known = op.constant_of(condition);
  if (known == nullptr) return std::nullopt;
  return known->bytes()[0] != 0;
}

std::vector<Passed> inputs_from(OpContext& op, size_t first) {
  std::vector<Passed> values;
  for (size_t i = first; i < op.num_inputs(); ++i) values.push_back(passed_from(op.graph(), op.input(i)));
  return values;
}

void define_outputs(OpContext& op, const std::vector<Passed>& values) {
  if (values.size() != op.num_outputs())
    invalid(cat("there are ", op.num_outputs(), " outputs, expected ", values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].list != nullptr) {
      op.graph().define_list(op.output(i), values[i].list);
    } else {
      op.define(op.output(i), values[i].value);
    }
  }
}

}  // namespace

void import_while(OpContext& op) {
  const auto& options = op.options<tflite::WhileOptions>();
  Body condition(op, options.cond_subgraph_index(), "WHILE");
  Body body(op, options.body_subgraph_index(), "WHILE");
  std::vector<Passed> values = inputs_from(op, 0);
  while (true) {
    const std::vector<Passed> result = condition.run(values);
    if (result.size() != 1) invalid(cat("the condition has ", result.size(), " outputs, expected 1"));
    const std::optional<bool> goes_on = known_condition(op, result[0].value);
    if (!goes_on) throw Unsupported{"a number of rounds that the data decides"};
    if (!*goes_on) break;
    values = body.run(values);
  }
  op.graph().mark_imported(options.cond_subgraph_index());
  op.graph().mark_imported(options.body_subgraph_index());
  define_outputs(op, values);
}

void import_if(OpContext& op) {
  const auto& options = op.options<tflite::IfOptions>();
  const ir::ValueId condition = op.value(op.input(0));
  const std::optional<bool> known = known_condition(op, condition);
  const std::vector<Passed> inputs = inputs_from(op, 1);
  const auto branch = [&](int32_t index) { return Body(op, index, "IF").run(inputs); };
  std::vector<Passed> values;
  if (known) {
    values = branch(*known ? options.then_subgraph_index() : options.else_subgraph_index());
  } else {
    values = branch(options.then_subgraph_index());
    const std::vector<Passed> others = branch(options.else_subgraph_index());
    if (others.size() != values.size()) invalid("the branches have different numbers of outputs");
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].list != nullptr || others[i].list != nullptr)
        throw Unsupported{"branches that make lists of tensors"};
      if (op.type(values[i].value) != op.type(others[i].value))
        throw Unsupported{"branches of different shapes"};
      values[i].value = op.emit("where", {op.reshaped(condition, {}), values[i].value, others[i].value}, {});
    }
  }
  op.graph().mark_imported(options.then_subgraph_index());
  op.graph().mark_imported(options.else_subgraph_index());
  define_outputs(op, values);
}

// ---- Graph ----

Graph::Graph(Graph& caller, ModelFile& file)
    : file_(file),
      function_(caller.function_),
      log_(caller.log_),
      caller_(&caller),
      depth_(caller.depth_ + 1),
      values_(file.num_tensors()) {}

uint64_t Graph::count_operators(uint64_t count) {
  return caller_ != nullptr ? caller_->count_operators(count) : num_unrolled_ += count;
}

void Graph::mark_imported(int32_t subgraph) {
  if (caller_ != nullptr) return caller_->mark_imported(subgraph);
  imported_subgraphs_.insert(static_cast<size_t>(subgraph));
}

std::vector<ir::ValueId> Graph::constants() {
  std::vector<ir::ValueId> constants(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].valid() && file_.tensor(static_cast<int32_t>(i)).is_constant()) constants[i] = values_[i];
  }
  return constants;
}

// Lists of tensors, which TensorFlow's loops fill row by row: TensorListReserve and its like. A converter
// that does not lower them to slices leaves them as custom operators, with "Flex" before their names where
// TensorFlow's own kernels shall run. A list is no value of the IR: it is known on import what it holds.
namespace {

// Limits of the elements of one list, and of all lists together. Each operator that changes a list makes a
// new one.
constexpr int64_t kMaxElements = int64_t{1} << 14;
constexpr uint64_t kMaxAllElements = uint64_t{1} << 27;

using List = Graph::List;

Graph::ListRef list_input(OpContext& op) {
  const Graph::ListRef list = op.graph().find_list(op.input(0));
  if (list == nullptr) throw Unsupported{"a list that no operator of the file makes"};
  return list;
}

void define_list(OpContext& op, List list) {
  if (op.graph().count_list_elements(list.elements.size()) > kMaxAllElements)
    throw Unsupported{"more elements of lists than are worth unrolling; export the loop's body as the model"};
  op.graph().define_list(op.output(), std::make_shared<const List>(std::move(list)));
}

int64_t checked_count(int64_t count) {
  if (count < 0) invalid("a list of " + std::to_string(count) + " elements");
  if (count > kMaxElements)
    throw Unsupported{"a list of " + std::to_string(count) + " elements, more than " +
                      std::to_string(kMaxElements)};
  return count;
}

size_t checked_index(OpContext& op, const List& list) {
  const int64_t index = op.constant_int(op.input(1), "an index");
  if (index < 0 || index >= std::ssize(list.elements))
    invalid("element " + std::to_string(index) + " of a list of " + std::to_string(list.elements.size()));
  return static_cast<size_t>(index);
}

// ---- the operators ----

// Shape of the elements, which may be open; number.
void reserve(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const int64_t count = checked_count(op.constant_int(op.input(1), "a number of elements"));
  define_list(op, {std::vector<ir::ValueId>(static_cast<size_t>(count))});
}

// Shape, the most that it will have.
void empty(OpContext& op) {
  op.expect_counts(2, 2, 1);
  define_list(op, {});
}

// Tensor, shape of the elements: along the first axis.
void from_tensor(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const ir::ValueId data = op.value(op.input(0));
  const ir::Shape shape = op.shape(data);
  if (shape.empty()) invalid("the tensor is a number");
  const ir::Shape element(shape.begin() + 1, shape.end());
  List list;
  for (int64_t i = 0; i < checked_count(shape[0]); ++i) {
    const ir::ValueId part = op.emit(
        "strided_slice", {data},
        {{"begin", ir::Ints{i}}, {"end", ir::Ints{i + 1}}, {"strides", ir::Ints{1}}, {"axes", ir::Ints{0}}});
    list.elements.push_back(op.reshaped(part, element));
  }
  define_list(op, std::move(list));
}

// List, index, element.
void set_item(OpContext& op) {
  op.expect_counts(3, 3, 1);
  List list = *list_input(op);
  list.elements[checked_index(op, list)] = op.value(op.input(2));
  define_list(op, std::move(list));
}

// List, element.
void push_back(OpContext& op) {
  op.expect_counts(2, 2, 1);
  List list = *list_input(op);
  list.elements.push_back(op.value(op.input(1)));
  checked_count(std::ssize(list.elements));
  define_list(op, std::move(list));
}

// List, index, shape.
void get_item(OpContext& op) {
  op.expect_counts(3, 3, 1);
  const Graph::ListRef list = list_input(op);
  const ir::ValueId element = list->elements[checked_index(op, *list)];
  if (!element.valid()) throw Unsupported{"an element that is read before it is set"};
  op.define(op.output(), element);
}

// List, shape: one tensor with an axis more.
void stack(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const Graph::ListRef list = list_input(op);
  std::vector<ir::ValueId> parts;
  for (const ir::ValueId element : list->elements) {
    if (!element.valid()) throw Unsupported{"an element that is never set"};
    ir::Shape shape = op.shape(element);
    shape.insert(shape.begin(), 1);
    parts.push_back(op.reshaped(element, shape));
  }
  if (parts.empty()) throw Unsupported{"a list without elements"};
  op.define(op.output(), op.emit("concatenate", parts, {{"axis", int64_t{0}}}));
}

void length(OpContext& op) {
  op.expect_counts(1, 1, 1);
  const auto count = static_cast<int32_t>(list_input(op)->elements.size());
  op.define(op.output(), op.constant(ir::make_scalar(count)));
}

struct ListRow {
  std::string_view name;
  void (*import_op)(OpContext& op);
};
constexpr ListRow kListRows[] = {
    {"TensorListReserve", reserve},  {"EmptyTensorList", empty},      {"TensorListFromTensor", from_tensor},
    {"TensorListSetItem", set_item}, {"TensorListGetItem", get_item}, {"TensorListPushBack", push_back},
    {"TensorListStack", stack},      {"TensorListLength", length},
};

const ListRow* find_list_row(std::string_view custom_code) {
  constexpr std::string_view kFlex = "Flex";
  if (custom_code.starts_with(kFlex)) custom_code.remove_prefix(kFlex.size());
  const auto row = std::ranges::find(kListRows, custom_code, &ListRow::name);
  return row == std::end(kListRows) ? nullptr : row;
}

}  // namespace

bool is_list_operator(std::string_view custom_code) { return find_list_row(custom_code) != nullptr; }

bool import_list(OpContext& op, std::string_view custom_code) {
  const ListRow* row = find_list_row(custom_code);
  if (row != nullptr) row->import_op(op);
  return row != nullptr;
}

}  // namespace qplan::tfl
