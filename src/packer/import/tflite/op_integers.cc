// int32 and int64 that stand for themselves, as positions and counts after a network do: arithmetic and
// reductions. All of it wraps, as TFLite's does.
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

// a / b towards zero.
ir::ValueId quotient(OpContext& op, ir::ValueId a, ir::ValueId b) {
  const ir::DType dtype = op.type(a).dtype;
  const ir::ValueId zero = integer(op, 0, dtype);
  const ir::ValueId below = op.emit("floor_divide", {a, b}, {});
  const ir::ValueId above = op.emit("add", {below, integer(op, 1, dtype)}, {});
  const ir::ValueId is_exact = op.emit("equal", {op.emit("floor_mod", {a, b}, {}), zero}, {});
  const ir::ValueId nearer = op.emit("where", {op.emit("less", {below, zero}, {}), above, below}, {});
  return op.emit("where", {is_exact, below, nearer}, {});
}

// The elements along an axis as one: of two halves, again and again; an odd one is left for the end.
ir::ValueId combined_along(OpContext& op, const char* ir_op, ir::ValueId data, int64_t axis) {
  const auto part = [&](int64_t begin, int64_t end) {
    return op.emit("strided_slice", {data},
                   {{"begin", ir::Ints{begin}}, {"end", ir::Ints{end}}, {"axes", ir::Ints{axis}}});
  };
  ir::ValueId odd;
  for (int64_t extent = op.shape(data)[static_cast<size_t>(axis)]; extent > 1; extent /= 2) {
    if (extent % 2 != 0) {
      const ir::ValueId last = part(extent - 1, extent);
      odd = odd.valid() ? op.emit(ir_op, {odd, last}, {}) : last;
    }
    data = op.emit(ir_op, {part(0, extent / 2), part(extent / 2, extent / 2 * 2)}, {});
  }
  return odd.valid() ? op.emit(ir_op, {data, odd}, {}) : data;
}

ir::ValueId combined(OpContext& op, const char* ir_op, ir::ValueId data) {
  ir::Shape shape = op.shape(data);
  const auto* options = op.optional_options<tflite::ReducerOptions>();
  const ir::Ints axes = reduced_axes(op, shape.size());
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    data = combined_along(op, ir_op, data, *axis);
    if (options == nullptr || !options->keep_dims()) shape.erase(shape.begin() + *axis);
  }
  return options != nullptr && options->keep_dims() ? data : op.reshaped(data, shape);
}

ir::ValueId as_dtype(OpContext& op, ir::ValueId data, ir::DType dtype) {
  return op.type(data).dtype == dtype ? data : op.emit("cast", {data}, {{"dtype", ir::to_string(dtype)}});
}

}  // namespace

bool is_integer(const TensorInfo& tensor) { return tensor.dtype == ir::kInt32 || tensor.dtype == ir::kInt64; }

void import_integers(OpContext& op, const char* ir_op, tflite::ActivationFunctionType activation) {
  op.expect_counts(2, 2, 1);
  require_integers(op);
  const ir::ValueId lhs = op.value(op.input(0)), rhs = op.value(op.input(1));
  const ir::DType dtype = op.type(lhs).dtype;
  const bool divides = std::string_view(ir_op) == "divide";
  ir::ValueId value = divides ? quotient(op, lhs, rhs) : op.emit(ir_op, {lhs, rhs}, {});
  const RealRange range = activation_range(activation);
  const auto bound = [&](float real) { return integer(op, static_cast<int64_t>(real), dtype); };
  if (std::isfinite(range.min)) value = op.emit("maximum", {value, bound(range.min)}, {});
  if (std::isfinite(range.max)) value = op.emit("minimum", {value, bound(range.max)}, {});
  op.define(op.output(), value);
}

void reduce_integers(OpContext& op, const char* ir_op) {
  op.expect_counts(2, 2, 1);
  op.define(op.output(), combined(op, ir_op, op.value(op.input(0))));
}

// The sum in int64, divided towards zero.
void import_integer_mean(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const ir::ValueId data = op.value(op.input(0));
  const ir::TensorType type = op.type(data);  // not a reference: values that are made move the others
  const ir::ValueId sum = combined(op, "add", as_dtype(op, data, ir::kInt64));
  const int64_t count = type.num_elements() / op.type(sum).num_elements();
  const ir::ValueId mean = quotient(op, sum, integer(op, count, ir::kInt64));
  op.define(op.output(), as_dtype(op, mean, type.dtype));
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
