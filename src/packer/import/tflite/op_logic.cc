// Comparisons, logic and choices by conditions that the network computes: LESS and its kin, LOGICAL_AND, OR,
// NOT, SELECT, SELECT_V2, ONE_HOT; TOPK_V2 and CUMSUM.
#include <algorithm>
#include <cmath>

#include "kernels/numeric/requantize.h"
#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {
namespace {

ir::ValueId bool_scalar(OpContext& op, bool value) {
  return op.constant(ir::make_constant(ir::kBool, {}, std::vector<uint8_t>{static_cast<uint8_t>(value)}));
}

// ---- quantised comparisons ----

// What TFLite's reference compares in the place of each 8-bit value: the value shifted left by 8 bits, times
// the scale as a fixed point number, rounded (docs/numerics/data_movement.md).
std::vector<int32_t> compared_values(const QuantParams& quantization, ir::DType dtype) {
  constexpr int32_t kLeftShift = 8;
  if (quantization.scale >= 1.0f) throw Unsupported{"a scale of 1 or more, which TFLite cannot compare"};
  const QuantizedMultiplier scale = quantize_multiplier(static_cast<double>(quantization.scale));
  std::vector<int32_t> values;
  for (int64_t x = dtype.min(); x <= dtype.max(); ++x) {
    const int32_t shifted = (static_cast<int32_t>(x) - quantization.zero_point) * (1 << kLeftShift);
    values.push_back(requantize_tfl2(shifted, scale.multiplier, scale.shift));
  }
  return values;
}

// These values of the data: the entry of a table at its byte, to which a negative index comes from the end.
ir::ValueId as_compared(OpContext& op, ir::ValueId data, const std::vector<int32_t>& values) {
  const int64_t least = op.type(data).dtype.min();
  std::vector<int32_t> table(256);
  for (size_t i = 0; i < values.size(); ++i) {
    table[static_cast<uint8_t>(least + static_cast<int64_t>(i))] = values[i];
  }
  const ir::ValueId entries = op.constant(ir::make_constant(ir::kInt32, {256}, table), op.name() + "/values");
  const ir::ValueId index = op.emit("cast", {data}, {{"dtype", std::string("int32")}});
  return op.emit("take", {entries, index}, {{"axis", int64_t{0}}});
}

// Both operands as integers that compare as TFLite compares them.
void to_comparable(OpContext& op, ir::ValueId* lhs, ir::ValueId* rhs) {
  const TensorInfo &a = op.input(0), &b = op.input(1);
  op.require_8bit(a, "input");
  const QuantParams left = op.quantization(a), right = op.quantization(b);
  const std::vector<int32_t> of_a = compared_values(left, *a.dtype), of_b = compared_values(right, *b.dtype);
  const auto is_not_less = [](int32_t x, int32_t y) { return x >= y; };
  if (left == right && std::ranges::adjacent_find(of_a, is_not_less) == of_a.end()) return;
  *lhs = as_compared(op, *lhs, of_a);
  *rhs = as_compared(op, *rhs, of_b);
}

ir::ValueId inverted(OpContext& op, ir::ValueId condition) {
  return op.emit("where", {condition, bool_scalar(op, false), bool_scalar(op, true)}, {});
}

// swapped: of b and a.
void import_comparison(OpContext& op, const char* ir_op, bool swapped, bool inverts) {
  op.expect_counts(2, 2, 1);
  const std::optional<ir::DType> dtype = op.input(0).dtype;
  if (!dtype || dtype != op.input(1).dtype) {
    throw Unsupported{type_name(op.input(0).file_type) + " and " + type_name(op.input(1).file_type) +
                      " inputs"};
  }
  ir::ValueId lhs = op.value(op.input(0)), rhs = op.value(op.input(1));
  if (dtype->bits == 8) to_comparable(op, &lhs, &rhs);
  if (swapped) std::swap(lhs, rhs);
  const ir::ValueId result = op.emit(ir_op, {lhs, rhs}, {});
  op.define(op.output(), inverts ? inverted(op, result) : result);
}

void require_bools(OpContext& op) {
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.input(i).dtype != ir::kBool) throw Unsupported{type_name(op.input(i).file_type) + " input"};
  }
}

}  // namespace

void import_less(OpContext& op) { import_comparison(op, "less", false, false); }
void import_less_equal(OpContext& op) { import_comparison(op, "less_equal", false, false); }
void import_greater(OpContext& op) { import_comparison(op, "less", true, false); }
void import_greater_equal(OpContext& op) { import_comparison(op, "less_equal", true, false); }
void import_equal(OpContext& op) { import_comparison(op, "equal", false, false); }
void import_not_equal(OpContext& op) { import_comparison(op, "equal", false, true); }

void import_logical_and(OpContext& op) {
  op.expect_counts(2, 2, 1);
  require_bools(op);
  op.define(op.output(),
            op.emit("where", {op.value(op.input(0)), op.value(op.input(1)), bool_scalar(op, false)}, {}));
}

void import_logical_or(OpContext& op) {
  op.expect_counts(2, 2, 1);
  require_bools(op);
  op.define(op.output(),
            op.emit("where", {op.value(op.input(0)), bool_scalar(op, true), op.value(op.input(1))}, {}));
}

void import_logical_not(OpContext& op) {
  op.expect_counts(1, 1, 1);
  require_bools(op);
  op.define(op.output(), inverted(op, op.value(op.input(0))));
}

// A condition of one axis chooses whole indices of the first axis.
void import_select(OpContext& op) {
  op.expect_counts(3, 3, 1);
  for (size_t i = 1; i < 3; ++i) {
    op.require_movable(op.input(i), op.output());
    op.require_one_quantization(op.input(i), op.output());
  }
  if (op.input(0).dtype != ir::kBool) throw Unsupported{type_name(op.input(0).file_type) + " condition"};
  ir::ValueId condition = op.value(op.input(0));
  const ir::ValueId a = op.value(op.input(1));
  const size_t rank = op.shape(a).size();
  if (op.shape(condition).size() == 1 && rank > 1) {
    ir::Shape shape(rank, 1);
    shape[0] = op.shape(condition)[0];
    condition = op.reshaped(condition, shape);
  }
  op.define(op.output(), op.emit("where", {condition, a, op.value(op.input(2))}, {}));
}

void import_select_v2(OpContext& op) {
  op.expect_counts(3, 3, 1);
  for (size_t i = 1; i < 3; ++i) {
    op.require_movable(op.input(i), op.output());
    op.require_one_quantization(op.input(i), op.output());
  }
  if (op.input(0).dtype != ir::kBool) throw Unsupported{type_name(op.input(0).file_type) + " condition"};
  op.define(op.output(),
            op.emit("where", {op.value(op.input(0)), op.value(op.input(1)), op.value(op.input(2))}, {}));
}

// `on` where an index is the position along the new axis, `off` elsewhere.
void import_one_hot(OpContext& op) {
  op.expect_counts(4, 4, 1);
  const ir::ValueId indices = op.value(op.input(0));
  const ir::DType dtype = op.type(indices).dtype;
  if (dtype != ir::kInt32 && dtype != ir::kInt64) throw Unsupported{ir::to_string(dtype) + " indices"};
  const int64_t depth = op.constant_int(op.input(1), "depth");
  constexpr int64_t kMaxDepth = int64_t{1} << 20;
  if (depth < 1 || depth > kMaxDepth) invalid("depth " + std::to_string(depth));
  for (size_t i = 2; i < 4; ++i) op.require_movable(op.input(i), op.output());
  const auto* options = op.optional_options<tflite::OneHotOptions>();
  ir::Shape shape = op.shape(indices);
  const int64_t axis = OpContext::axis_of(options == nullptr ? -1 : options->axis(), shape.size() + 1);
  shape.insert(shape.begin() + axis, 1);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < depth; ++i) positions.push_back(i);
  ir::Shape along(shape.size() - static_cast<size_t>(axis), 1);
  along[0] = depth;
  const ir::ValueId places = op.constant(integers_as(positions, along, dtype));
  const ir::ValueId is_there = op.emit("equal", {op.reshaped(indices, shape), places}, {});
  op.define(op.output(), op.emit("where", {is_there, op.value(op.input(2)), op.value(op.input(3))}, {}));
}

void import_topk_v2(OpContext& op) {
  op.expect_counts(2, 2, 2);
  op.require_movable(op.input(0), op.output());
  if (op.output(1).dtype != ir::kInt32) throw Unsupported{type_name(op.output(1).file_type) + " positions"};
  const int64_t k = op.constant_int(op.input(1), "k");
  const std::vector<ir::ValueId> results = op.emit_many("topk", {op.value(op.input(0))}, {{"k", k}});
  op.define(op.output(0), results[0]);
  op.define(op.output(1), results[1]);
}

void import_cumsum(OpContext& op) {
  op.expect_counts(2, 2, 1);
  const ir::ValueId data = op.value(op.input(0));
  if (op.type(data).dtype != ir::kInt32 && op.type(data).dtype != ir::kFloat32)
    throw Unsupported{type_name(op.input(0).file_type) + " input"};
  const auto* options = op.optional_options<tflite::CumsumOptions>();
  op.define(op.output(), op.emit("cumsum", {data},
                                 {{"axis", op.constant_axis(op.input(1), op.shape(data).size())},
                                  {"exclusive", options != nullptr && options->exclusive()},
                                  {"reverse", options != nullptr && options->reverse()}}));
}

}  // namespace qplan::tfl
