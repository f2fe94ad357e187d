// Sizes, numbers and conditions: everything that is known when the model is read.
#include <cmath>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// Numbers, or strings, which are only equal or not.
Ref compare(OpContext& op, bool (*holds)(double a, double b)) {
  const auto* a = op.values().get<std::string>(op.ref(0));
  const auto* b = op.values().get<std::string>(op.ref(1));
  if (a != nullptr && b != nullptr) return op.add(holds(*a == *b ? 0.0 : 1.0, 0.0));
  if (op.is_flow(0) || op.is_flow(1)) throw Unsupported{"tensors that the model computes"};
  return op.add(holds(op.number(0), op.number(1)));
}

bool is_same(OpContext& op) { return op.has(0) == op.has(1) && (!op.has(0) || op.ref(0) == op.ref(1)); }

}  // namespace

Ref import_size(OpContext& op) {
  const ir::Shape shape = op.shape(op.flow(0));
  if (op.has(1)) return op.add(shape[static_cast<size_t>(OpContext::axis_of(op.integer(1), shape.size()))]);
  List list;
  for (const int64_t extent : shape) list.items.push_back(op.add(extent));
  return op.add(std::move(list));
}

Ref import_dim(OpContext& op) { return op.add(static_cast<int64_t>(op.shape(op.flow(0)).size())); }

Ref import_eq(OpContext& op) {
  return compare(op, [](double a, double b) { return a == b; });
}
Ref import_ne(OpContext& op) {
  return compare(op, [](double a, double b) { return a != b; });
}
Ref import_lt(OpContext& op) {
  return compare(op, [](double a, double b) { return a < b; });
}
Ref import_gt(OpContext& op) {
  return compare(op, [](double a, double b) { return a > b; });
}
Ref import_le(OpContext& op) {
  return compare(op, [](double a, double b) { return a <= b; });
}
Ref import_ge(OpContext& op) {
  return compare(op, [](double a, double b) { return a >= b; });
}
Ref import_is(OpContext& op) { return op.add(is_same(op)); }
Ref import_isnot(OpContext& op) { return op.add(!is_same(op)); }
Ref import_not(OpContext& op) { return op.add(!op.boolean(0)); }

Ref import_len(OpContext& op) {
  if (op.is_flow(0)) {
    const ir::Shape& shape = op.shape(op.flow(0));
    if (shape.empty()) invalid("a tensor of rank 0 has no length");
    return op.add(shape[0]);
  }
  const std::vector<Ref>* items = items_of(op.values(), op.ref(0));
  if (items == nullptr) invalid(cat(kind_name(op.values().at(op.ref(0))), " has no length"));
  return op.add(static_cast<int64_t>(items->size()));
}

// Towards minus infinity, as Python divides.
Ref import_floordiv(OpContext& op) {
  const int64_t a = op.integer(0), b = op.integer(1);
  if (b == 0) invalid("division by zero");
  if (b == -1) return op.add(static_cast<int64_t>(0 - static_cast<uint64_t>(a)));
  const int64_t quotient = a / b;
  return op.add(a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient);
}

Ref import_int(OpContext& op) {
  const double value = std::trunc(op.number(0));
  if (!(std::fabs(value) < 9007199254740992.0)) invalid("a number does not fit an integer");
  return op.add(static_cast<int64_t>(value));
}

Ref import_float(OpContext& op) { return op.add(op.number(0)); }
Ref import_bool(OpContext& op) { return op.add(op.number(0) != 0); }

Ref import_is_quantized(OpContext& op) { return op.add(op.flow(0).quantization.has_value()); }
Ref import_warn(OpContext& op) { return op.add(None{}); }
Ref import_raise(OpContext& op) { invalid("the model raises an exception: " + in_quotes(op.text(0, ""))); }

}  // namespace qplan::pt
