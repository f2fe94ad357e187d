// Arithmetic, comparison and selection, with NumPy's broadcasting.
#include <algorithm>
#include <functional>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/shape.h"

namespace qplan::onnx {
namespace {

// Before opset 7 arithmetic broadcasts where attribute broadcast says so, from attribute axis on.
Value aligned(const OpContext& op, const Value& lhs, const Value& rhs) {
  const bool broadcast = op.attr_int("broadcast", 0) != 0;
  const ir::Shape &to = op.shape(lhs), &from = op.shape(rhs);
  if (!broadcast && from != to) invalid(cat("the operands are ", op.type(lhs), " and ", op.type(rhs)));
  if (!op.has_attr("axis")) return rhs;
  const auto axis = static_cast<size_t>(OpContext::axis_of(op.attr_int("axis", 0), to.size()));
  if (from.size() > to.size() - axis)
    invalid(cat("axis ", axis, " for ", op.type(lhs), " and ", op.type(rhs)));
  ir::Shape shape = from;
  shape.resize(to.size() - axis, 1);
  return op.reshape(rhs, shape);
}

void binary(const OpContext& op, std::string_view ir_op) {
  op.expect_counts(2, 2);
  const Value &lhs = op.input(0), &rhs = op.input(1);
  op.define(0, op.emit(ir_op, {lhs, op.opset() < 7 ? aligned(op, lhs, rhs) : rhs}));
}

// Any number of operands, the first two first.
void variadic(const OpContext& op, std::string_view ir_op) {
  op.expect_counts(1, OpContext::kMaxOperands);
  Value result = op.input(0);
  for (size_t i = 1; i < op.num_inputs(); ++i) result = op.emit(ir_op, {result, op.input(i)});
  op.define(0, result);
}

}  // namespace

void import_add(const OpContext& op) { binary(op, "add"); }
void import_sub(const OpContext& op) { binary(op, "subtract"); }
void import_mul(const OpContext& op) { binary(op, "multiply"); }
void import_div(const OpContext& op) { binary(op, "divide"); }
void import_max(const OpContext& op) { variadic(op, "maximum"); }
void import_min(const OpContext& op) { variadic(op, "minimum"); }
void import_less(const OpContext& op) { binary(op, "less"); }
void import_equal(const OpContext& op) { binary(op, "equal"); }

void import_greater(const OpContext& op) {
  op.expect_counts(2, 2);
  op.define(0, op.emit("less", {op.input(1), op.input(0)}));
}

// A condition that is known and the same everywhere leaves one of the two operands, unless that is to be
// broadcast.
void import_where(const OpContext& op) {
  op.expect_counts(3, 3);
  if (op.input(0).is_constant() && op.type(op.input(0)).dtype == ir::kBool) {
    const auto condition = op.input(0).constant->bytes();
    const bool same =
        !condition.empty() && std::ranges::adjacent_find(condition, std::not_equal_to()) == condition.end();
    if (same) {
      const Value &chosen = op.input(condition[0] != 0 ? 1 : 2), &other = op.input(condition[0] != 0 ? 2 : 1);
      const ir::Shape whole =
          op::broadcast_shape(op.shape(op.input(0)), op::broadcast_shape(op.shape(chosen), op.shape(other)));
      if (op.shape(chosen) == whole && op.type(chosen).dtype == op.type(other).dtype)
        return op.define(0, chosen);
    }
  }
  op.define(0, op.emit("where", {op.input(0), op.input(1), op.input(2)}));
}

}  // namespace qplan::onnx
