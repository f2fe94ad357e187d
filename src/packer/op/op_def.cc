#include "src/packer/op/op_def.h"

#include <algorithm>

#include "src/packer/error.h"
#include "src/packer/ir/types.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

struct Table {
  std::vector<OpDef> defs;            // in the order of ops.def
  std::vector<const OpDef*> ordered;  // the same
  std::vector<const OpDef*> by_name;  // sorted
};

Table make_table() {
  Table table;
#define QPLAN_OP(function) table.defs.push_back(list::function());
#include "src/packer/op/ops.def"
#undef QPLAN_OP
  for (const OpDef& def : table.defs) table.ordered.push_back(&def);
  table.by_name = table.ordered;
  std::ranges::sort(table.by_name, {}, [](const OpDef* def) -> const std::string& { return def->name; });
  return table;
}

const Table& table() {
  static const Table kTable = make_table();
  return kTable;
}

const char* kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      return "a boolean";
    case AttrKind::kInt:
      return "an integer";
    case AttrKind::kFloat:
      return "a number";
    case AttrKind::kString:
      return "a string";
    case AttrKind::kInts:
      return "a list of integers";
    case AttrKind::kIntLists:
      return "a list of lists of integers";
    case AttrKind::kIntOrInts:
      return "an integer or a list of integers";
  }
  return "";
}

bool has_kind(const ir::AttrValue& value, AttrKind kind) {
  switch (kind) {
    case AttrKind::kBool:
      return std::holds_alternative<bool>(value);
    case AttrKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrKind::kFloat:
      return std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
    case AttrKind::kString:
      return std::holds_alternative<std::string>(value);
    case AttrKind::kInts:
      return std::holds_alternative<ir::Ints>(value);
    case AttrKind::kIntLists:
      return std::holds_alternative<std::vector<ir::Ints>>(value);
    case AttrKind::kIntOrInts:
      return std::holds_alternative<int64_t>(value) || std::holds_alternative<ir::Ints>(value);
  }
  return false;
}

const AttrDef* find_attr(const OpDef& op, std::string_view name) {
  const auto it = std::ranges::find(op.attrs, name, &AttrDef::name);
  return it == op.attrs.end() ? nullptr : &*it;
}

void check_operands(const InferInput& input) {
  const OpDef& op = *input.node.op;
  const size_t found = input.node.operands.size();
  if (op.variadic) {
    if (found == 0) invalid("there are 0 operands, expected at least 1");
  } else if (found != op.operands.size()) {
    std::string names;
    for (const OperandDef& operand : op.operands) names += (names.empty() ? "" : ", ") + operand.name;
    invalid(cat("there are ", found, " operands, expected ", op.operands.size(), " (", names, ")"));
  }
  for (size_t i = 0; i < found; ++i) {
    const std::string error = ir::type_error(input.type(i));
    if (!error.empty()) invalid(cat("operand ", operand_name(input, i), ": ", error));
  }
}

void check_attrs(const ir::Node& node) {
  const OpDef& op = *node.op;
  for (const auto& [name, value] : node.attrs) {
    const AttrDef* def = find_attr(op, name);
    if (def == nullptr) {
      std::string known;
      for (const AttrDef& attr : op.attrs) known += (known.empty() ? "" : ", ") + attr.name;
      invalid(cat("unknown attribute '", name, "'; ",
                  known.empty() ? "the operator has none" : cat("known are ", known)));
    }
    if (!has_kind(value, def->kind)) invalid(cat("attribute '", name, "' must be ", kind_name(def->kind)));
  }
  for (const AttrDef& def : op.attrs) {
    if (!def.fallback && !def.optional && !node.attrs.has(def.name)) {
      invalid(cat("attribute '", def.name, "' is missing"));
    }
  }
}

// "qnn.conv2d 'block3/conv'", or "qnn.conv2d (node 7)" where the node has no name.
std::string place_of(const ir::Function& function, const ir::Node& node) {
  if (!node.name.empty()) return cat(node.op->name, " '", node.name, "'");
  const size_t index =
      node.results.empty() ? function.nodes().size() : function.value(node.results[0]).producer;
  return cat(node.op->name, " (node ", index, ")");
}

template <typename T>
const T& typed_attr(const ir::Node& node, std::string_view name) {
  if (const T* value = std::get_if<T>(&attr(node, name))) return *value;
  throw PackError(QPLAN_INTERNAL, cat(node.op->name, " '", node.name, "': attribute '", name,
                                      "' is read as another kind than it has"));
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  const auto& ops = table().by_name;
  const auto name_of = [](const OpDef* def) -> std::string_view { return def->name; };
  const auto it = std::ranges::lower_bound(ops, name, {}, name_of);
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

const OpDef& get_op(std::string_view name) {
  const OpDef* op = find_op(name);
  if (op == nullptr) throw PackError(QPLAN_INTERNAL, cat("operator '", name, "' is not in ops.def"));
  return *op;
}

std::span<const OpDef* const> all_ops() { return table().ordered; }

std::vector<ir::TensorType> infer_types(const ir::Function& function, const ir::Node& node) {
  if (node.op == nullptr) throw PackError(QPLAN_INTERNAL, cat("node '", node.name, "' has no operator"));
  try {
    const InferInput input{function, node};
    check_operands(input);
    check_attrs(node);
    std::vector<ir::TensorType> types = node.op->infer(input);
    for (const ir::TensorType& type : types) {
      const std::string error = ir::type_error(type);
      if (!error.empty()) invalid(cat("result: ", error));
    }
    return types;
  } catch (const PackError& error) {
    throw PackError(error.status(), cat(place_of(function, node), ": ", error.what()));
  }
}

const ir::AttrValue& attr(const ir::Node& node, std::string_view name) {
  if (const ir::AttrValue* value = node.attrs.find(name)) return *value;
  const AttrDef* def = node.op != nullptr ? find_attr(*node.op, name) : nullptr;
  if (def == nullptr || !def->fallback) {
    throw PackError(QPLAN_INTERNAL, cat("node '", node.name, "' has no attribute '", name, "'"));
  }
  return *def->fallback;
}

int64_t attr_int(const ir::Node& node, std::string_view name) { return typed_attr<int64_t>(node, name); }

double attr_float(const ir::Node& node, std::string_view name) {
  if (const auto* integer = std::get_if<int64_t>(&attr(node, name))) return static_cast<double>(*integer);
  return typed_attr<double>(node, name);
}

bool attr_bool(const ir::Node& node, std::string_view name) { return typed_attr<bool>(node, name); }

const std::string& attr_string(const ir::Node& node, std::string_view name) {
  return typed_attr<std::string>(node, name);
}

const ir::Ints& attr_ints(const ir::Node& node, std::string_view name) {
  return typed_attr<ir::Ints>(node, name);
}

const std::vector<ir::Ints>& attr_int_lists(const ir::Node& node, std::string_view name) {
  return typed_attr<std::vector<ir::Ints>>(node, name);
}

namespace {

std::optional<size_t> quantization_operand(const OpDef& op, OperandRole role, size_t tensor) {
  const auto it = std::ranges::find_if(
      op.operands, [&](const OperandDef& operand) { return operand.role == role && operand.of == tensor; });
  return it == op.operands.end() ? std::nullopt
                                 : std::optional(static_cast<size_t>(it - op.operands.begin()));
}

bool is_data(const OperandDef& operand) { return operand.role == OperandRole::kData; }

}  // namespace

const AttrDef* attr_with(const OpDef* op, AttrRole role) {
  if (op == nullptr) return nullptr;
  const auto it = std::ranges::find(op->attrs, role, &AttrDef::role);
  return it == op->attrs.end() ? nullptr : &*it;
}

std::optional<size_t> operand_with(const OpDef& op, OperandRole role) {
  const auto it = std::ranges::find(op.operands, role, &OperandDef::role);
  return it == op.operands.end() ? std::nullopt
                                 : std::optional(static_cast<size_t>(it - op.operands.begin()));
}

std::optional<size_t> scale_of(const OpDef& op, size_t tensor) {
  return quantization_operand(op, OperandRole::kScale, tensor);
}

std::optional<size_t> zero_point_of(const OpDef& op, size_t tensor) {
  return quantization_operand(op, OperandRole::kZeroPoint, tensor);
}

std::vector<size_t> data_operands(const ir::Node& node) {
  std::vector<size_t> operands;
  if (node.op == nullptr) return operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.op->variadic || is_data(node.op->operands[i])) operands.push_back(i);
  }
  return operands;
}

size_t num_data_operands(const OpDef& op) {
  return static_cast<size_t>(std::ranges::count_if(op.operands, is_data));
}

bool is_product(const OpDef* op) { return op != nullptr && op->kind == OpKind::kProduct; }

bool is_quantized_product(const OpDef* op) {
  return is_product(op) && op->quantization == Quantization::kOperands;
}

bool is_float_product(const OpDef* op) { return is_product(op) && op->result_dtype == ir::kFloat32; }

bool is_float_border(const OpDef* op) {
  return op != nullptr && op->converts && op->quantization == Quantization::kOperands &&
         (op->result_dtype == ir::kFloat32 || op->operands[0].dtype == ir::kFloat32);
}

bool chooses_dtype(const OpDef* op) {
  return attr_with(op, AttrRole::kDtype) != nullptr && zero_point_of(*op, kResult).has_value();
}

bool chooses_elements(const OpDef* op) {
  return op != nullptr && op->quantization == Quantization::kShared && op->keeps_dtype &&
         (op->kind == OpKind::kMovement || op->kind == OpKind::kReduction) && num_data_operands(*op) == 1 &&
         !op->variadic && op->num_results == nullptr;
}

bool chooses_between(const OpDef* op) {
  return op != nullptr && op->quantization == Quantization::kShared && op->keeps_dtype &&
         op->kind == OpKind::kBroadcast && num_data_operands(*op) == 2;
}

bool is_real_function(const OpDef* op) {
  return op != nullptr && (op->kind == OpKind::kElementwise || op->kind == OpKind::kBroadcast) &&
         op->keeps_dtype && op->evaluate != nullptr &&
         std::ranges::all_of(op->operands,
                             [](const OperandDef& operand) { return is_data(operand) && !operand.dtype; });
}

bool passes_quantization(const OpDef* op) {
  return op != nullptr && op->quantization == Quantization::kShared && op->keeps_dtype;
}

Work work_of(const OpDef* op) {
  if (op == nullptr) return Work::kArithmetic;
  if (op->work) return *op->work;
  switch (op->kind) {
    case OpKind::kMovement:
      return Work::kMove;
    case OpKind::kReduction:
      return Work::kPool;
    case OpKind::kProduct:
      return Work::kConvolution;
    case OpKind::kElementwise:
    case OpKind::kBroadcast:
    case OpKind::kOpaque:
      break;
  }
  return Work::kArithmetic;
}

std::string_view plain_name(const OpDef& op) {
  const std::string_view name = op.name;
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::vector<std::string> names_where(bool (*property)(const OpDef* op)) {
  std::vector<std::string> names;
  for (const OpDef* op : all_ops()) {
    if (property(op)) names.push_back(op->name);
  }
  return names;
}

}  // namespace qplan::op
