// Lists of tensors, which TensorFlow's loops fill row by row: TensorListReserve and its like. A converter
// that does not lower them to slices leaves them as custom operators, with "Flex" before their names where
// TensorFlow's own kernels shall run. A list is no value of the IR: it is known on import what it holds.
#include <algorithm>
#include <memory>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
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
