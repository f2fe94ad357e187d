// Functions of one tensor: Relu and its kin, Clip, Softmax, batch normalisation.
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

// 0 - x of int32, which has no operator of its own.
Value negated_integers(const OpContext& op, const Value& x) {
  return op.emit("subtract", {ir::make_scalar(int32_t{0}), x});
}

bool is_int32(const OpContext& op) { return op.has_input(0) && op.type(op.input(0)).dtype == ir::kInt32; }

}  // namespace

void import_abs(const OpContext& op) {
  if (!is_int32(op)) return unary(op, "abs");
  op.expect_counts(1, 1);
  op.define(0, op.emit("maximum", {op.input(0), negated_integers(op, op.input(0))}));
}
void import_neg(const OpContext& op) {
  if (!is_int32(op)) return unary(op, "negative");
  op.expect_counts(1, 1);
  op.define(0, negated_integers(op, op.input(0)));
}
// Whether x is above 0, less whether it is below. NaN gives 0.
void import_sign(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const ir::DType dtype = op.type(x).dtype;
  if (dtype != ir::kFloat32 && dtype != ir::kInt32)
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

// The sum of the data and the operand at `i`, where there is one.
Value with_addend(const OpContext& op, const Value& x, size_t i) {
  return op.has_input(i) ? op.emit("add", {x, op.input(i)}) : x;
}

// (x - mean) / sqrt(variance + epsilon) * scale + bias, over the axes from `first` on.
Value layer_normalized(const OpContext& op, const Value& x, int64_t first, double epsilon, size_t scale,
                       size_t bias) {
  ir::Ints axes;
  for (int64_t axis = first; axis < static_cast<int64_t>(op.shape(x).size()); ++axis) axes.push_back(axis);
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const Value centred = op.emit("subtract", {x, op.emit("mean", {x}, over)});
  const Value variance = op.emit("mean", {op.emit("multiply", {centred, centred})}, over);
  const Value deviation =
      op.emit("sqrt", {op.emit("add", {variance, Value{scalar_of(epsilon, op.type(x).dtype)}})});
  return with_addend(op, op.emit("multiply", {op.emit("divide", {centred, deviation}), op.input(scale)}),
                     bias);
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

void import_layer_normalization(const OpContext& op) {
  op.expect_counts(2, 3);
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", -1), op.shape(op.input(0)).size());
  const double epsilon = static_cast<double>(op.attr_float("epsilon", 1e-5f));
  if (op.attr_int("stash_type", 1) != 1) throw Unsupported{"attribute 'stash_type' other than 1"};
  op.define(0, layer_normalized(op, op.input(0), axis, epsilon, 1, 2));
}

// The data, what skipped a layer, scale, bias of the normalisation, bias of the sum.
void import_skip_layer_normalization(const OpContext& op) {
  op.expect_counts(3, 5);
  const Value sum = with_addend(op, op.emit("add", {op.input(0), op.input(1)}), 4);
  const auto last = static_cast<int64_t>(op.shape(sum).size()) - 1;
  op.define(0, layer_normalized(op, sum, last, static_cast<double>(op.attr_float("epsilon", 1e-12f)), 2, 3));
}

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

// Batch normalisation as in inference; the later outputs are statistics of training.
void import_batch_normalization(const OpContext& op) {
  if (op.attr_int("training_mode", 0) != 0) throw Unsupported{"attribute 'training_mode'"};
  if (op.opset() < 7 && op.attr_int("is_test", 0) == 0) throw Unsupported{"statistics of training"};
  op.expect_counts(5, 5, 1);
  op.attr_float("momentum", 0.9f);  // of training
  if (op.opset() < 9 && op.attr_int("spatial", 1) == 0) throw Unsupported{"attribute 'spatial'"};
  const double epsilon = op.attr_float("epsilon", 1e-5f);
  if (op.shape(op.input(0)).size() < 2) throw Unsupported{"data without a channel axis"};
  op.define(0, op.emit("nn.batch_norm", {op.input(0), op.input(1), op.input(2), op.input(3), op.input(4)},
                       {{"axis", int64_t{1}}, {"epsilon", epsilon}}));
}

}  // namespace qplan::onnx
