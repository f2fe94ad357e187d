#include "src/packer/op/properties.h"

#include <algorithm>

namespace qplan::op {
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
