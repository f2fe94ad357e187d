// Arithmetic on int32 and int64 that stand for themselves, as positions and counts after a network do. All of
// it wraps, as TFLite's does.
#include <cmath>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

void require_integers(const OpContext& op) {
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    const TensorInfo& input = op.input(i);
    if (!is_integer(input)) throw Unsupported{type_name(input.file_type) + " input"};
    if (input.dtype != op.input(0).dtype) {
      throw Unsupported{type_name(op.input(0).file_type) + " and " + type_name(input.file_type) + " inputs"};
    }
  }
}

ir::ValueId integer(OpContext& op, int64_t value, ir::DType dtype) {
  return op.constant(integers_as({value}, {}, dtype));
}

}  // namespace

bool is_integer(const TensorInfo& tensor) { return tensor.dtype == ir::kInt32 || tensor.dtype == ir::kInt64; }

void import_integers(OpContext& op, const char* ir_op, tflite::ActivationFunctionType activation) {
  op.expect_counts(2, 2, 1);
  require_integers(op);
  const ir::ValueId lhs = op.value(op.input(0)), rhs = op.value(op.input(1));
  const ir::DType dtype = op.type(lhs).dtype;
  ir::ValueId value = op.emit(ir_op, {lhs, rhs}, {});
  const RealRange range = activation_range(activation);
  const auto bound = [&](float real) { return integer(op, static_cast<int64_t>(real), dtype); };
  if (std::isfinite(range.min)) value = op.emit("maximum", {value, bound(range.min)}, {});
  if (std::isfinite(range.max)) value = op.emit("minimum", {value, bound(range.max)}, {});
  op.define(op.output(), value);
}

ir::ValueId negated_integers(OpContext& op) {
  return op.emit("subtract", {integer(op, 0, *op.input(0).dtype), op.value(op.input(0))}, {});
}

void import_integer_neg(OpContext& op) {
  op.expect_counts(1, 1, 1);
  require_integers(op);
  op.define(op.output(), negated_integers(op));
}

void import_floor_div(OpContext& op) {
  import_integers(op, "floor_divide", tflite::ActivationFunctionType_NONE);
}
void import_floor_mod(OpContext& op) {
  import_integers(op, "floor_mod", tflite::ActivationFunctionType_NONE);
}

}  // namespace qplan::tfl
