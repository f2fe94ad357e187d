// MatMul, Gemm, QLinearMatMul, QGemm: the second operand, [k, n] in ONNX, becomes the weights [n, k] of a
// dense layer by a transpose.
#include "src/packer/import/onnx/matmul_tail.h"
#include "src/packer/import/onnx/ops.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

Value transposed(const OpContext& op, const Value& matrix) {
  if (op.shape(matrix).size() != 2) invalid(cat("a matrix is ", op.type(matrix)));
  return op.emit("transpose", {matrix}, {{"axes", ir::Ints{1, 0}}});
}

// alpha and beta of Gemm.
Value scaled(const OpContext& op, const Value& value, float factor) {
  if (factor == 1.0f) return value;
  return op.emit("multiply", {value, ir::make_scalar(factor)});
}

// The addend of Gemm where it is one value per column; nothing where it is another broadcast.
Value as_bias(const OpContext& op, const Value& addend, int64_t columns) {
  const ir::Shape& shape = op.shape(addend);
  if (shape == ir::Shape{columns}) return addend;
  if (shape == ir::Shape{1, columns}) return op.reshape(addend, {columns});
  return {};
}

// The weights [n, k] for operand B, [k, n] or a vector [k].
Value dense_weights(const OpContext& op, const Value& b) {
  const ir::Shape& shape = op.shape(b);
  if (shape.size() == 1) return op.reshape(b, {1, shape[0]});
  if (shape.size() != 2) throw Unsupported{cat("a second operand of rank ", shape.size())};
  return transposed(op, b);
}

// A vector counts as a row [1, k]; its axis is not in the result.
Value as_rows(const OpContext& op, const Value& a) {
  const ir::Shape& shape = op.shape(a);
  if (shape.empty()) invalid("the first operand is a scalar");
  return shape.size() == 1 ? op.reshape(a, {1, shape[0]}) : a;
}

// Takes the axes that as_rows and dense_weights put in out of the result.
Value without_vector_axes(const OpContext& op, const Value& result, bool a_is_vector, bool b_is_vector) {
  ir::Shape shape = op.shape(result);
  if (b_is_vector) shape.pop_back();
  if (a_is_vector) shape.erase(shape.end() - (b_is_vector ? 1 : 2));
  return op.reshape(result, shape);
}

}  // namespace

void import_mat_mul(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value &a = op.input(0), &b = op.input(1);
  const Value result = op.emit("nn.dense", {as_rows(op, a), dense_weights(op, b)});
  op.define(0, without_vector_axes(op, result, op.shape(a).size() == 1, op.shape(b).size() == 1));
}

void import_gemm(const OpContext& op) {
  op.expect_counts(op.opset() < 11 ? 3 : 2, 3);
  const float alpha = op.attr_float("alpha", 1), beta = op.attr_float("beta", 1);
  const bool trans_a = op.attr_int("transA", 0) != 0, trans_b = op.attr_int("transB", 0) != 0;
  if (op.opset() < 7) op.attr_int("broadcast", 0);  // says that the addend's shape may differ
  const Value data = trans_a ? transposed(op, op.input(0)) : op.input(0);
  if (op.shape(data).size() != 2) invalid(cat("the first operand is ", op.type(data), ", expected rank 2"));
  const Value weights = trans_b ? op.input(1) : transposed(op, op.input(1));
  Value result = scaled(op, op.emit("nn.dense", {data, weights}), alpha);
  if (op.has_input(2) && beta != 0) {
    const int64_t columns = op.shape(result)[1];
    const Value addend = scaled(op, op.input(2), beta);
    const Value bias = as_bias(op, addend, columns);
    const ir::Shape shape = op.shape(result);
    result = bias.is_known() ? op.emit("nn.bias_add", {result, bias}, {{"axis", int64_t{1}}})
                             : op.emit("add", {result, addend});
    if (op.shape(result) != shape)
      invalid(cat("the addend is ", op.type(addend), ", expected to broadcast to ", to_text(shape)));
  }
  op.define(0, result);
}

void import_qlinear_mat_mul(const OpContext& op) {
  op.expect_counts(8, 8);
  const Value &a = op.input(0), &b = op.input(3);
  MatmulTail tail;
  tail.input = op.per_tensor_qparams(1);
  tail.kernel = op.qparams(4);
  tail.output = op.per_tensor_qparams(6);
  tail.out_dtype = op.zero_point_dtype(7);
  const Value data = as_rows(op, a);
  const Value accumulator =
      op.emit("qnn.dense", {data, dense_weights(op, b), tail.input.zero_point, tail.kernel.zero_point,
                            tail.input.scale, tail.kernel.scale});
  tail.channel_axis = static_cast<int64_t>(op.shape(accumulator).size()) - 1;
  const Value result = emit_tail(op, accumulator, tail);
  op.define(0, without_vector_axes(op, result, op.shape(a).size() == 1, op.shape(b).size() == 1));
}

void import_qgemm(const OpContext& op) {
  op.expect_counts(6, 9);
  if (op.attr_float("alpha", 1) != 1.0f) throw Unsupported{"attribute 'alpha'"};
  const bool trans_a = op.attr_int("transA", 0) != 0, trans_b = op.attr_int("transB", 0) != 0;
  const Value data = trans_a ? transposed(op, op.input(0)) : op.input(0);
  if (op.shape(data).size() != 2) invalid(cat("the first operand is ", op.type(data), ", expected rank 2"));
  const Value weights = trans_b ? op.input(3) : transposed(op, op.input(3));
  if (!op.has_input(7)) throw Unsupported{"float32 output"};
  MatmulTail tail;
  tail.input = op.per_tensor_qparams(1);
  tail.kernel = op.qparams(4);
  tail.output = op.per_tensor_qparams(7);
  tail.out_dtype = op.zero_point_dtype(8);
  if (op.has_input(6)) {
    const Value& addend = op.input(6);
    tail.bias = as_bias(op, addend, op.shape(weights)[0]);
    if (!tail.bias.is_known()) throw Unsupported{"an addend that is not one value per column"};
  }
  const Value accumulator = op.emit(
      "qnn.dense",
      {data, weights, tail.input.zero_point, tail.kernel.zero_point, tail.input.scale, tail.kernel.scale});
  op.define(0, emit_tail(op, accumulator, tail));
}

}  // namespace qplan::onnx
