// Arithmetic, comparison, logic and selection, with NumPy's broadcasting; reductions, running sums, the
// largest elements, and functions that are written by others.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/elements.h"

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

// ReduceMean, ReduceSum, ReduceProd, ReduceMax, ReduceMin, ArgMax, ArgMin. Reductions of constants are
// computed on import, those of floats here.
namespace {

enum class Kind { kMean, kSum, kMax, kMin, kProduct };

// Sorted, each once; nullopt: the data stays as it is.
std::optional<ir::Ints> reduced_axes(const OpContext& op, size_t rank, int64_t axes_input_since) {
  std::optional<ir::Ints> axes;
  if (op.opset() < axes_input_since) {
    axes = op.attr_ints("axes");
  } else if (op.has_input(1)) {
    axes = op.ints(1, "axes");
  }
  const bool noop = op.attr_int("noop_with_empty_axes", 0) != 0;
  if (!axes || axes->empty()) {
    if (noop) return std::nullopt;
    axes = ir::Ints{};
  }
  return op::normalized_axes(*axes, rank);
}

// Sums in double, in the order of the elements.
ir::ConstantRef reduce_constant(const OpContext& op, const ir::Constant& data, const ir::Ints& axes,
                                bool keepdims, Kind kind) {
  const ir::DType dtype = data.type().dtype;
  const ir::Shape& shape = data.type().shape;
  ir::Shape kept = shape, result_shape;
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool gone = std::ranges::binary_search(axes, static_cast<int64_t>(i));
    if (gone) {
      count *= shape[i];
      kept[i] = 1;
    }
    if (!gone || keepdims) result_shape.push_back(kept[i]);
  }
  op.graph().charge_work(data.bytes().size() * 8);  // doubles are made of them
  const std::vector<double> values = numbers_of(data);
  std::vector<double> results(static_cast<size_t>(ir::TensorType{dtype, kept}.num_elements()),
                              kind == Kind::kMax       ? -INFINITY
                              : kind == Kind::kMin     ? INFINITY
                              : kind == Kind::kProduct ? 1.0
                                                       : 0.0);
  const std::vector<size_t> result_of = op::broadcast_indices(kept, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    double& result = results[result_of[i]];
    if (kind == Kind::kMax) {
      result = std::isnan(value) || value > result ? value : result;
    } else if (kind == Kind::kMin) {
      result = std::isnan(value) || value < result ? value : result;
    } else if (kind == Kind::kProduct) {
      result *= value;
    } else {
      result += value;
    }
  }
  if (kind == Kind::kMean) {
    for (double& result : results) result /= static_cast<double>(count);
  }
  const Value doubles = ir::make_constant(ir::kFloat64, result_shape, results);
  return dtype == ir::kFloat64 ? doubles.constant
                               : op.emit("cast", {doubles}, {{"dtype", ir::to_string(dtype)}}).constant;
}

Value reduced(const OpContext& op, const Value& data, const ir::Ints& axes, bool keepdims, Kind kind) {
  if (axes.empty() && op.shape(data).empty()) return data;  // a number
  if (op.type(data).num_elements() == 0) throw Unsupported{"a tensor without elements"};
  if (data.is_constant() && op.type(data).dtype.is_float())
    return reduce_constant(op, *data.constant, axes, keepdims, kind);
  constexpr const char* kNames[] = {"mean", "sum", "max", "min", "prod"};
  return op.emit(kNames[static_cast<size_t>(kind)], {data}, {{"axis", axes}, {"keepdims", keepdims}});
}

void reduce(const OpContext& op, Kind kind, int64_t axes_input_since) {
  op.expect_counts(1, op.opset() < axes_input_since ? 1 : 2);
  const Value& data = op.input(0);
  const bool keepdims = op.attr_int("keepdims", 1) != 0;
  const std::optional<ir::Ints> axes = reduced_axes(op, op.shape(data).size(), axes_input_since);
  op.define(0, axes ? reduced(op, data, *axes, keepdims, kind) : data);
}

}  // namespace

void import_reduce_mean(const OpContext& op) { reduce(op, Kind::kMean, 18); }
void import_reduce_sum(const OpContext& op) { reduce(op, Kind::kSum, 13); }
void import_reduce_prod(const OpContext& op) { reduce(op, Kind::kProduct, 18); }
void import_reduce_max(const OpContext& op) { reduce(op, Kind::kMax, 18); }
void import_reduce_min(const OpContext& op) { reduce(op, Kind::kMin, 18); }

// Sums of what is computed of each element, and what is computed of the sums.
namespace {

void reduce_computed(const OpContext& op, const std::function<Value(const Value&)>& before,
                     const std::function<Value(const Value&)>& after) {
  op.expect_counts(1, op.opset() < 18 ? 1 : 2);
  const Value& data = op.input(0);
  const bool keepdims = op.attr_int("keepdims", 1) != 0;
  const std::optional<ir::Ints> axes = reduced_axes(op, op.shape(data).size(), 18);
  if (!axes) throw Unsupported{"attribute 'noop_with_empty_axes' and no axes"};
  op.define(0, after(reduced(op, before(data), *axes, keepdims, Kind::kSum)));
}

Value squared(const OpContext& op, const Value& x) { return op.emit("multiply", {x, x}); }
Value as_it_is(const Value& x) { return x; }

}  // namespace

void import_reduce_l1(const OpContext& op) {
  reduce_computed(
      op, [&](const Value& x) { return absolute(op, x); }, as_it_is);
}
void import_reduce_l2(const OpContext& op) {
  reduce_computed(
      op, [&](const Value& x) { return squared(op, x); },
      [&](const Value& sum) { return op.emit("sqrt", {sum}); });
}
void import_reduce_sum_square(const OpContext& op) {
  reduce_computed(
      op, [&](const Value& x) { return squared(op, x); }, as_it_is);
}
void import_reduce_log_sum(const OpContext& op) {
  reduce_computed(op, as_it_is, [&](const Value& sum) { return op.emit("log", {sum}); });
}
// log(sum(exp(x - m))) + m, which overflows nowhere; m: the largest element, or the largest or smallest
// number where that is infinite.
void import_reduce_log_sum_exp(const OpContext& op) {
  op.expect_counts(1, op.opset() < 18 ? 1 : 2);
  const Value& x = op.input(0);
  const bool keepdims = op.attr_int("keepdims", 1) != 0;
  const std::optional<ir::Ints> axes = reduced_axes(op, op.shape(x).size(), 18);
  if (!axes) throw Unsupported{"attribute 'noop_with_empty_axes' and no axes"};
  constexpr double kLargest = std::numeric_limits<float>::max();
  const Value m =
      op.emit("clip", {reduced(op, x, *axes, true, Kind::kMax)}, {{"a_min", -kLargest}, {"a_max", kLargest}});
  const Value sum = reduced(op, op.emit("exp", {op.emit("subtract", {x, m})}), *axes, true, Kind::kSum);
  const Value result = op.emit("add", {op.emit("log", {sum}), m});
  if (keepdims) return op.define(0, result);
  ir::Shape shape;
  for (size_t i = 0; i < op.shape(x).size(); ++i) {
    if (!std::ranges::binary_search(*axes, static_cast<int64_t>(i))) shape.push_back(op.shape(x)[i]);
  }
  op.define(0, op.reshape(result, shape));
}

namespace {

void import_position(const OpContext& op, const char* ir_op) {
  op.expect_counts(1, 1);
  if (op.attr_int("select_last_index", 0) != 0) throw Unsupported{"attribute 'select_last_index'"};
  const Value& data = op.input(0);
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", 0), op.shape(data).size());
  const bool keepdims = op.attr_int("keepdims", 1) != 0;
  op.define(
      0, op.emit(ir_op, {data}, {{"axis", axis}, {"keepdims", keepdims}, {"dtype", std::string("int64")}}));
}

}  // namespace

void import_arg_max(const OpContext& op) { import_position(op, "argmax"); }
void import_arg_min(const OpContext& op) { import_position(op, "argmin"); }

// Comparisons and logic on data, choices, running sums, the largest elements; functions that are written by
// others.
namespace {

Value bool_scalar(bool value) {
  return ir::make_constant(ir::kBool, {}, std::vector<uint8_t>{static_cast<uint8_t>(value)});
}

Value inverted(const OpContext& op, const Value& condition) {
  return op.emit("where", {condition, bool_scalar(false), bool_scalar(true)});
}

void require_bools(const OpContext& op) {
  for (size_t i = 0; i < op.num_inputs(); ++i) {
    if (op.type(op.input(i)).dtype != ir::kBool)
      throw Unsupported{ir::to_string(op.type(op.input(i)).dtype) + " operands"};
  }
}

Value number(const OpContext& op, const Value& like, double value) {
  return scalar_of(value, op.type(like).dtype);
}

}  // namespace

void import_less_or_equal(const OpContext& op) {
  op.expect_counts(2, 2);
  op.define(0, op.emit("less_equal", {op.input(0), op.input(1)}));
}
void import_greater_or_equal(const OpContext& op) {
  op.expect_counts(2, 2);
  op.define(0, op.emit("less_equal", {op.input(1), op.input(0)}));
}

void import_not(const OpContext& op) {
  op.expect_counts(1, 1);
  require_bools(op);
  op.define(0, inverted(op, op.input(0)));
}
void import_and(const OpContext& op) {
  op.expect_counts(2, 2);
  require_bools(op);
  op.define(0, op.emit("where", {op.input(0), op.input(1), bool_scalar(false)}));
}
void import_or(const OpContext& op) {
  op.expect_counts(2, 2);
  require_bools(op);
  op.define(0, op.emit("where", {op.input(0), bool_scalar(true), op.input(1)}));
}
void import_xor(const OpContext& op) {
  op.expect_counts(2, 2);
  require_bools(op);
  op.define(0, op.emit("where", {op.input(0), inverted(op, op.input(1)), op.input(1)}));
}

void import_cum_sum(const OpContext& op) {
  op.expect_counts(2, 2);
  const ir::Ints axis = op.ints(1, "axes");
  if (axis.size() != 1) invalid(cat("there are ", axis.size(), " axes, expected 1"));
  const int64_t along = OpContext::axis_of(axis[0], op.shape(op.input(0)).size());
  const bool exclusive = op.attr_int("exclusive", 0) != 0, reverse = op.attr_int("reverse", 0) != 0;
  if (const auto sums = integer_cumulative_sum(op, along, exclusive, reverse)) return op.define(0, *sums);
  op.define(
      0, op.emit("cumsum", {op.input(0)}, {{"axis", along}, {"exclusive", exclusive}, {"reverse", reverse}}));
}

// Those that come first among equal ones are the same in ONNX Runtime. The smallest elements are the largest
// ones of the data turned around, which is exact: -x of floats, -1 - x of integers.
void import_top_k(const OpContext& op) {
  op.expect_counts(2, 2, 2);
  const Value& data = op.input(0);
  const size_t rank = op.shape(data).size();
  const auto axis = static_cast<size_t>(OpContext::axis_of(op.attr_int("axis", -1), rank));
  const bool largest = op.attr_int("largest", 1) != 0;
  op.attr_int("sorted", 1);
  const ir::Ints k = op.ints(1, "k");
  if (k.size() != 1) invalid(cat("there are ", k.size(), " values of k, expected 1"));
  const ir::DType dtype = op.type(data).dtype;
  if (!largest && dtype != ir::kFloat32 && dtype != ir::kInt32)
    throw Unsupported{cat("attribute 'largest' 0 and ", dtype, " data")};
  const auto turned = [&](const Value& x) {
    if (largest) return x;
    return dtype == ir::kInt32 ? op.emit("subtract", {ir::make_scalar(int32_t{-1}), x})
                               : op.emit("negative", {x});
  };
  ir::Ints order;  // exchanges the axis and the last one
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  std::swap(order[axis], order.back());
  const auto moved = [&](const Value& x) {
    return axis + 1 == rank ? x : op.emit("transpose", {x}, {{"axes", order}});
  };
  const std::vector<Value> results = op.emit_many("topk", {moved(turned(data))}, {{"k", k[0]}});
  op.define(0, turned(moved(results[0])));
  op.define(1, op.emit("cast", {moved(results[1])}, {{"dtype", std::string("int64")}}));
}

// ---- functions ----

void import_sin(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("sin", {op.input(0)}));
}
void import_cos(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("cos", {op.input(0)}));
}
void import_elu(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0,
            op.emit("nn.elu", {op.input(0)}, {{"alpha", static_cast<double>(op.attr_float("alpha", 1.0f))}}));
}
void import_celu(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const auto alpha = static_cast<double>(op.attr_float("alpha", 1.0f));
  if (alpha == 1) return op.define(0, op.emit("nn.elu", {x}, {{"alpha", 1.0}}));
  const Value elu = op.emit("nn.elu", {op.emit("divide", {x, number(op, x, alpha)})}, {{"alpha", 1.0}});
  op.define(0, op.emit("multiply", {number(op, x, alpha), elu}));
}
void import_thresholded_relu(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const Value alpha = number(op, x, static_cast<double>(op.attr_float("alpha", 1.0f)));
  op.define(0, op.emit("where", {op.emit("less", {alpha, x}), x, number(op, x, 0)}));
}
void import_reciprocal(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("divide", {number(op, op.input(0), 1), op.input(0)}));
}
// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which overflows nowhere.
Value softplus(const OpContext& op, const Value& x) {
  const Value small = op.emit("exp", {op.emit("negative", {op.emit("abs", {x})})});
  const Value rest = op.emit("log", {op.emit("add", {small, number(op, x, 1)})});
  return op.emit("add", {op.emit("nn.relu", {x}), rest});
}
void import_softplus(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, softplus(op, op.input(0)));
}
void import_mish(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  op.define(0, op.emit("multiply", {x, op.emit("tanh", {softplus(op, x)})}));
}
void import_softsign(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  op.define(0, op.emit("divide", {x, op.emit("add", {op.emit("abs", {x}), number(op, x, 1)})}));
}

void import_selu(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const double alpha = op.attr_float("alpha", 1.67326319217681884765625f);
  const Value elu = op.emit("nn.elu", {x}, {{"alpha", alpha}});
  op.define(
      0,
      op.emit("multiply",
              {elu, number(op, x, static_cast<double>(op.attr_float("gamma", 1.05070102214813232421875f)))}));
}

// The factor broadcasts to the data from its last axis on; before opset 7 it has one value for each channel.
void import_prelu(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value& x = op.input(0);
  Value factor = op.input(1);
  const ir::Shape& shape = op.shape(x);
  if (op.opset() < 7 && op.shape(factor).size() == 1 && shape.size() > 1 && op.shape(factor)[0] == shape[1]) {
    ir::Shape channels(shape.size() - 1, 1);
    channels[0] = shape[1];
    factor = op.reshape(factor, channels);
  }
  const Value below = op.emit("minimum", {x, number(op, x, 0)});
  op.define(0, op.emit("add", {op.emit("nn.relu", {x}), op.emit("multiply", {below, factor})}));
}

// Squares and roots, as exporters write them in layer normalisations, are what they are.
void import_pow(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value &x = op.input(0), &exponent = op.input(1);
  if (const auto power = integer_power(op)) return op.define(0, *power);
  if (exponent.is_constant() && op.type(exponent).num_elements() == 1 &&
      op.type(exponent).shape.size() <= 1) {
    const double n = numbers_of(*exponent.constant)[0];
    if (n == 1) return op.define(0, x);
    if (n == 2) return op.define(0, op.emit("multiply", {x, x}));
    if (n == 3) return op.define(0, op.emit("multiply", {op.emit("multiply", {x, x}), x}));
    if (n == 0.5 && op.type(x).dtype.is_float()) return op.define(0, op.emit("sqrt", {x}));
  }
  if (op.type(x).dtype != ir::kFloat32) throw Unsupported{ir::to_string(op.type(x).dtype) + " data"};
  const Value power = op.type(exponent).dtype == ir::kFloat32
                          ? exponent
                          : op.emit("cast", {exponent}, {{"dtype", std::string("float32")}});
  op.define(0, op.emit("power", {x, power}));
}

void import_sum(const OpContext& op) {
  op.expect_counts(1, OpContext::kMaxOperands);
  Value sum = op.input(0);
  for (size_t i = 1; i < op.num_inputs(); ++i) sum = op.emit("add", {sum, op.input(i)});
  op.define(0, sum);
}

}  // namespace qplan::onnx
