// Functions of one tensor: Relu and its kin, Clip, Gelu, Swish, Softmax.
#include <algorithm>
#include <limits>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

void unary(const OpContext& op, std::string_view ir_op, ir::Attrs attrs = {}) {
  op.expect_counts(1, 1);
  op.define(0, op.emit(ir_op, {op.input(0)}, std::move(attrs)));
}

// An absent bound is the end of the dtype's range, as in ONNX Runtime, for floats too.
double lowest(ir::DType dtype) {
  if (dtype == ir::kFloat64) return std::numeric_limits<double>::lowest();
  if (dtype.is_float()) return static_cast<double>(std::numeric_limits<float>::lowest());
  return dtype.bits > 32 ? -std::numeric_limits<double>::infinity() : static_cast<double>(dtype.min());
}
double highest(ir::DType dtype) {
  if (dtype == ir::kFloat64) return std::numeric_limits<double>::max();
  if (dtype.is_float()) return static_cast<double>(std::numeric_limits<float>::max());
  return dtype.bits > 32 ? std::numeric_limits<double>::infinity() : static_cast<double>(dtype.max());
}

// Doubles hold every value of the narrower dtypes.
bool fits_clip(ir::DType dtype) {
  return dtype.is_float() || (dtype.bits <= 32 && !dtype.is_unsigned_int()) || dtype == ir::kUint8;
}

Value clip(const OpContext& op, const Value& data, double min, double max) {
  // The upper bound wins where they cross.
  return op.emit("clip", {data}, {{"a_min", std::min(min, max)}, {"a_max", max}});
}

Value scalar_input(const OpContext& op, size_t i) {
  const Value& bound = op.input(i);
  if (op.type(bound).num_elements() != 1) invalid(cat("a bound is ", op.type(bound), ", expected a scalar"));
  return op.reshape(bound, {});
}

// Bounds that are inputs; both optional. Bounds that are not constant become maximum and minimum.
void clip_to_inputs(const OpContext& op) {
  op.expect_counts(1, 3);
  Value data = op.input(0);
  const ir::DType dtype = op.type(data).dtype;
  Value bounds[2];
  bool constant = fits_clip(dtype);
  for (size_t i = 0; i < 2; ++i) {
    if (!op.has_input(i + 1)) continue;
    bounds[i] = scalar_input(op, i + 1);
    if (op.type(bounds[i]).dtype != dtype) {
      invalid(cat("a bound is ", op.type(bounds[i]), ", but the data is ", op.type(data)));
    }
    constant = constant && bounds[i].is_constant();
  }
  if (constant) {
    const double min = bounds[0].is_known() ? numbers_of(*bounds[0].constant)[0] : lowest(dtype);
    const double max = bounds[1].is_known() ? numbers_of(*bounds[1].constant)[0] : highest(dtype);
    op.define(0, clip(op, data, min, max));
    return;
  }
  if (bounds[0].is_known()) data = op.emit("maximum", {data, bounds[0]});
  if (bounds[1].is_known()) data = op.emit("minimum", {data, bounds[1]});
  op.define(0, data);
}

// 0 - x of int32 and int64, which have no operator of their own.
Value negated_integers(const OpContext& op, const Value& x) {
  return op.emit("subtract", {scalar_of(0, op.type(x).dtype), x});
}

bool is_wide_integer(ir::DType dtype) { return dtype == ir::kInt32 || dtype == ir::kInt64; }

}  // namespace

Value absolute(const OpContext& op, const Value& x) {
  if (!is_wide_integer(op.type(x).dtype)) return op.emit("abs", {x});
  return op.emit("maximum", {x, negated_integers(op, x)});
}

void import_abs(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, absolute(op, op.input(0)));
}
void import_neg(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  op.define(0, is_wide_integer(op.type(x).dtype) ? negated_integers(op, x) : op.emit("negative", {x}));
}
// Whether x is above 0, less whether it is below. NaN gives 0.
void import_sign(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const ir::DType dtype = op.type(x).dtype;
  if (!x.is_constant() && dtype != ir::kFloat32 && !is_wide_integer(dtype))
    throw Unsupported{ir::to_string(dtype) + " data; cast it to float32 or int32"};
  const Value zero = scalar_of(0, dtype);
  const auto count = [&](const Value& a, const Value& b) {
    return op.emit("cast", {op.emit("less", {a, b})}, {{"dtype", ir::to_string(dtype)}});
  };
  op.define(0, op.emit("subtract", {count(zero, x), count(x, zero)}));
}
void import_ceil(const OpContext& op) { unary(op, "ceil"); }
void import_erf(const OpContext& op) { unary(op, "erf"); }
void import_exp(const OpContext& op) { unary(op, "exp"); }
void import_floor(const OpContext& op) { unary(op, "floor"); }
void import_log(const OpContext& op) { unary(op, "log"); }
void import_relu(const OpContext& op) { unary(op, "nn.relu"); }
void import_round(const OpContext& op) { unary(op, "round"); }
void import_sigmoid(const OpContext& op) { unary(op, "sigmoid"); }
void import_sqrt(const OpContext& op) { unary(op, "sqrt"); }
void import_tanh(const OpContext& op) { unary(op, "tanh"); }

void import_leaky_relu(const OpContext& op) {
  unary(op, "nn.leaky_relu", {{"alpha", static_cast<double>(op.attr_float("alpha", 0.01f))}});
}

void import_hard_sigmoid(const OpContext& op) {
  unary(op, "hard_sigmoid",
        {{"alpha", static_cast<double>(op.attr_float("alpha", 0.2f))},
         {"beta", static_cast<double>(op.attr_float("beta", 0.5f))}});
}

Value activated(const OpContext& op, const Value& x) {
  const std::string name = op.attr_string("activation", "");
  const Attribute* list = op.find_attr("activation_params", AttributeKind::kFloats);
  const auto parameter = [&](size_t i, const char* attribute, float fallback) {
    const float given = list != nullptr && i < list->floats.size() ? list->floats[i] : fallback;
    return static_cast<double>(op.attr_float(attribute, given));
  };
  const double alpha = parameter(0, "activation_alpha", name == "LeakyRelu" ? 0.01f : 0.2f),
               beta = parameter(1, "activation_beta", 0.5f);
  if (name.empty()) return x;
  if (name == "Relu") return op.emit("nn.relu", {x});
  if (name == "Sigmoid") return op.emit("sigmoid", {x});
  if (name == "Tanh") return op.emit("tanh", {x});
  if (name == "LeakyRelu") return op.emit("nn.leaky_relu", {x}, {{"alpha", alpha}});
  if (name == "HardSigmoid") return op.emit("hard_sigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
  if (name == "Clip") return clip(op, x, alpha, beta);
  throw Unsupported{cat("activation ", in_quotes(name))};
}

namespace {

// x / 2 * (1 + erf(x / sqrt(2))), or with tanh in the place of erf.
Value gelu(const OpContext& op, const Value& x, const std::string& approximate) {
  const ir::DType dtype = op.type(x).dtype;
  const auto number = [&](double value) { return Value{scalar_of(value, dtype)}; };
  Value gate;
  if (approximate == "none") {
    gate = op.emit("erf", {op.emit("multiply", {x, number(0.7071067811865476)})});
  } else if (approximate == "tanh") {
    const Value cube = op.emit("multiply", {op.emit("multiply", {x, x}), x});
    const Value sum = op.emit("add", {x, op.emit("multiply", {cube, number(0.044715)})});
    gate = op.emit("tanh", {op.emit("multiply", {sum, number(0.7978845608028654)})});
  } else {
    throw Unsupported{"attribute 'approximate' '" + approximate + "'"};
  }
  const Value half = op.emit("multiply", {x, number(0.5)});
  return op.emit("multiply", {half, op.emit("add", {gate, number(1)})});
}

}  // namespace

void import_gelu(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, gelu(op, op.input(0), op.attr_string("approximate", "none")));
}
void import_bias_gelu(const OpContext& op) {
  op.expect_counts(2, 2);
  op.define(0, gelu(op, with_addend(op, op.input(0), 1), "none"));
}
void import_fast_gelu(const OpContext& op) {
  op.expect_counts(1, 2);
  op.define(0, gelu(op, with_addend(op, op.input(0), 1), "tanh"));
}

// x * sigmoid(alpha * x).
namespace {

void swish(const OpContext& op, float alpha) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const Value scaled =
      alpha == 1 ? x : op.emit("multiply", {x, scalar_of(static_cast<double>(alpha), op.type(x).dtype)});
  op.define(0, op.emit("multiply", {x, op.emit("sigmoid", {scaled})}));
}

}  // namespace

void import_swish(const OpContext& op) { swish(op, op.attr_float("alpha", 1)); }
void import_quick_gelu(const OpContext& op) { swish(op, op.attr_float("alpha", 1.702f)); }

void import_hard_swish(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& data = op.input(0);
  const Value gate =
      op.emit("hard_sigmoid", {data}, {{"alpha", static_cast<double>(1.0f / 6.0f)}, {"beta", 0.5}});
  op.define(0, op.emit("multiply", {data, gate}));
}

void import_clip(const OpContext& op) {
  if (op.opset() >= 11) return clip_to_inputs(op);
  op.expect_counts(1, 1);
  const float min = op.attr_float("min", std::numeric_limits<float>::lowest());
  const float max = op.attr_float("max", std::numeric_limits<float>::max());
  op.define(0, clip(op, op.input(0), static_cast<double>(min), static_cast<double>(max)));
}

SoftmaxShape softmax_shape(const OpContext& op, const ir::Shape& shape, int64_t opset) {
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", opset >= 13 ? -1 : 1), shape.size());
  if (opset >= 13) return {shape, axis};
  int64_t outer = 1, inner = 1, behind = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    (at < axis ? outer : inner) *= shape[i];
    if (at > axis) behind *= shape[i];
  }
  if (behind == 1) return {shape, axis};
  return {{outer, inner}, 1};
}

void import_softmax(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& data = op.input(0);
  if (op.shape(data).empty()) invalid("the data is a scalar");
  const SoftmaxShape shape = softmax_shape(op, op.shape(data), op.opset());
  const Value result = op.emit("nn.softmax", {op.reshape(data, shape.shape)}, {{"axis", shape.axis}});
  op.define(0, op.reshape(result, op.shape(data)));
}

void import_log_softmax(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& data = op.input(0);
  if (op.shape(data).empty()) invalid("the data is a scalar");
  const SoftmaxShape shape = softmax_shape(op, op.shape(data), op.opset());
  const Value result = op.emit("nn.log_softmax", {op.reshape(data, shape.shape)}, {{"axis", shape.axis}});
  op.define(0, op.reshape(result, op.shape(data)));
}

// 1 at the first of the largest elements, 0 elsewhere.
void import_hardmax(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& data = op.input(0);
  if (op.shape(data).empty()) invalid("the data is a scalar");
  const SoftmaxShape shape = softmax_shape(op, op.shape(data), op.opset());
  const auto axis = static_cast<size_t>(shape.axis);
  const Value first = op.emit("argmax", {op.reshape(data, shape.shape)},
                              {{"axis", shape.axis}, {"keepdims", true}, {"dtype", std::string("int64")}});
  ir::Shape along(shape.shape.size() - axis, 1);
  along[0] = shape.shape[axis];
  op.graph().charge(static_cast<uint64_t>(along[0]) * sizeof(int64_t));
  ir::Ints places(static_cast<size_t>(along[0]));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  const Value is_first = op.emit("equal", {first, ir::make_constant(ir::kInt64, along, places)});
  const Value ones = op.emit("cast", {is_first}, {{"dtype", ir::to_string(op.type(data).dtype)}});
  op.define(0, op.reshape(ones, op.shape(data)));
}

}  // namespace qplan::onnx
