// Conditions that tensors make, what they choose, and positions of the largest and smallest elements.
#include <string>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

ir::ValueId bool_scalar(OpContext& op, bool value) {
  return op.constant(ir::make_constant(ir::kBool, {}, std::vector<uint8_t>{static_cast<uint8_t>(value)}));
}

ir::ValueId inverted(OpContext& op, ir::ValueId condition) {
  return emit_choice(op, condition, bool_scalar(op, false), bool_scalar(op, true));
}

ir::ValueId condition_at(OpContext& op, size_t i) {
  const Flow condition = op.flow(i);
  if (op.dtype(condition) != ir::kBool)
    throw Unsupported{"a condition of " + ir::to_string(op.dtype(condition))};
  return condition.value;
}

// The position of the largest element of data, over one axis or over all elements as one.
Ref position(OpContext& op, ir::ValueId data) {
  const ir::Shape shape = op.shape(Flow{data});
  const auto found = [&](ir::ValueId value, int64_t axis, bool keeps_axis) {
    return op.emit("argmax", {value},
                   {{"axis", axis}, {"keepdims", keeps_axis}, {"dtype", std::string("int64")}});
  };
  const bool keeps_axis = op.boolean(2, false);
  if (op.has(1)) return op.result(found(data, OpContext::axis_of(op.integer(1), shape.size()), keeps_axis));
  const ir::Shape flat = {ir::TensorType{ir::kFloat32, shape}.num_elements()};
  const ir::ValueId value = found(op.reshape(data, flat), 0, false);
  return op.result(keeps_axis ? op.reshape(value, ir::Shape(shape.size(), 1)) : value);
}

}  // namespace

ir::ValueId emit_choice(OpContext& op, ir::ValueId condition, ir::ValueId yes, ir::ValueId no) {
  return op.emit("where", {condition, yes, no}, {});
}

ir::ValueId emit_ones_where(OpContext& op, ir::ValueId condition) {
  return emit_choice(op, condition, op.scale(1.0f), op.scale(0.0f));
}

Ref compare_tensors(OpContext& op, Comparison comparison) {
  const auto [a, b] = two_operands(op);
  switch (comparison) {
    case Comparison::kLess:
      return op.result(op.emit("less", {a, b}, {}));
    case Comparison::kGreater:
      return op.result(op.emit("less", {b, a}, {}));
    case Comparison::kLessEqual:
      return op.result(op.emit("less_equal", {a, b}, {}));
    case Comparison::kGreaterEqual:
      return op.result(op.emit("less_equal", {b, a}, {}));
    case Comparison::kEqual:
      return op.result(op.emit("equal", {a, b}, {}));
    case Comparison::kNotEqual:
      break;
  }
  return op.result(inverted(op, op.emit("equal", {a, b}, {})));
}

Ref import_where(OpContext& op) {
  if (!op.has(1)) throw Unsupported{"a condition alone: as many positions as the data has"};
  const ir::ValueId condition = condition_at(op, 0);
  const std::optional<PlainNumber> numbers[] = {op.plain_number(1), op.plain_number(2)};
  if (numbers[0] && numbers[1] && numbers[0]->index() == 0 && numbers[1]->index() == 0)
    throw Unsupported{"two integers, of which int64 comes"};
  const ir::ValueId yes = float_operand(op, 1, 2), no = float_operand(op, 2, 1);
  return op.result(emit_choice(op, condition, yes, no));
}

Ref import_masked_fill(OpContext& op) {
  const ir::ValueId data = op.float_flow(0).value, mask = condition_at(op, 1);
  return op.result(emit_choice(op, mask, op.scale(static_cast<float>(op.number(2))), data));
}

Ref import_logical_not(OpContext& op) { return op.result(inverted(op, condition_at(op, 0))); }

Ref import_argmax(OpContext& op) { return position(op, op.float_flow(0).value); }
// The smallest element is the largest one of the data turned around.
Ref import_argmin(OpContext& op) { return position(op, op.emit("negative", {op.float_flow(0).value}, {})); }

}  // namespace qplan::pt
