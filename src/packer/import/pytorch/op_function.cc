// Functions of float32 tensors that have no form on quantised ones: element by element, and normalisations
// composed of these. The arithmetic is docs/numerics/float32.md's.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {
namespace {

// One operator of the IR.
template <size_t kSize>
Ref unary(OpContext& op, const char (&ir_op)[kSize]) {
  return op.result(op.emit(ir_op, {op.float_flow(0).value}, {}));
}

ir::ValueId multiplied(OpContext& op, ir::ValueId a, ir::ValueId b) {
  return op.emit("multiply", {a, b}, {});
}
ir::ValueId scaled(OpContext& op, ir::ValueId x, double factor) {
  return multiplied(op, x, op.scale(static_cast<float>(factor)));
}
ir::ValueId plus(OpContext& op, ir::ValueId x, double addend) {
  return op.emit("add", {x, op.scale(static_cast<float>(addend))}, {});
}

// x / 2 * (1 + erf(x / sqrt(2))), or with tanh in the place of erf.
ir::ValueId gelu(OpContext& op, ir::ValueId x, const std::string& approximate) {
  ir::ValueId gate;
  if (approximate == "none") {
    gate = op.emit("erf", {scaled(op, x, 0.7071067811865476)}, {});
  } else if (approximate == "tanh") {
    const ir::ValueId cube = multiplied(op, multiplied(op, x, x), x);
    const ir::ValueId sum = op.emit("add", {x, scaled(op, cube, 0.044715)}, {});
    gate = op.emit("tanh", {scaled(op, sum, 0.7978845608028654)}, {});
  } else {
    throw Unsupported{"approximate=" + in_quotes(approximate)};
  }
  const ir::ValueId half = scaled(op, x, 0.5);
  return multiplied(op, half, plus(op, gate, 1));
}

// (x - mean) / sqrt(variance + epsilon), over these axes.
ir::ValueId normalised(OpContext& op, ir::ValueId x, const ir::Ints& axes, double epsilon) {
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const ir::ValueId centred = op.emit("subtract", {x, op.emit("mean", {x}, over)}, {});
  const ir::ValueId variance = op.emit("mean", {multiplied(op, centred, centred)}, over);
  const ir::ValueId deviation = op.emit("sqrt", {plus(op, variance, epsilon)}, {});
  return op.emit("divide", {centred, deviation}, {});
}

// Times the argument `scale` and plus `bias`, where the call has them, in a shape that broadcasts.
ir::ValueId with_affine(OpContext& op, ir::ValueId value, size_t scale, size_t bias,
                        const std::optional<ir::Shape>& shape = std::nullopt) {
  const auto operand = [&](size_t i) {
    const ir::ValueId given = op.float_flow(i).value;
    return shape ? op.reshape(given, *shape) : given;
  };
  if (op.has(scale)) value = multiplied(op, value, operand(scale));
  if (op.has(bias)) value = op.emit("add", {value, operand(bias)}, {});
  return value;
}

// Over the last axes, as many as `normalized_shape` has.
Ref layer_norm(OpContext& op, size_t epsilon) {
  const Flow input = op.float_flow(0);
  const ir::Shape& shape = op.shape(input);
  const std::vector<int64_t> over = op.integers(1);
  if (over.empty() || over.size() > shape.size() || !std::equal(over.rbegin(), over.rend(), shape.rbegin()))
    invalid(cat("normalized_shape ", to_text(over), " is not the end of ", to_text(shape)));
  ir::Ints axes(over.size());
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(shape.size() - over.size()));
  return op.result(with_affine(op, normalised(op, input.value, axes, op.number(epsilon, 1e-5)), 2, 3));
}

// The channels in groups, each with all positions.
ir::ValueId group_norm(OpContext& op, int64_t groups, size_t weight, size_t bias, double epsilon) {
  const Flow input = op.float_flow(0);
  const ir::Shape shape = op.shape(input);
  if (shape.size() < 2) throw Unsupported{"a tensor without a channel axis"};
  if (groups < 1 || shape[1] % groups != 0) invalid(cat(shape[1], " channels are not ", groups, " groups"));
  const int64_t rest = ir::TensorType{ir::kFloat32, shape}.num_elements() / (shape[0] * groups);
  const ir::ValueId flat = op.reshape(input.value, ir::Ints{shape[0], groups, rest});
  const ir::ValueId value = normalised(op, flat, {2}, epsilon);
  ir::Shape per_channel(shape.size(), 1);
  per_channel[1] = shape[1];
  return with_affine(op, op.reshape(value, shape), weight, bias, per_channel);
}

Ref softmax(OpContext& op, const char* ir_op) {
  const Flow input = op.float_flow(0);
  return op.result(
      op.emit(ir_op, {input.value}, {{"axis", OpContext::axis_of(op.integer(1), op.shape(input).size())}}));
}

// Over axes, which may be absent for all of them.
Ref reduction(OpContext& op, const char* ir_op) {
  const Flow input = op.float_flow(0);
  const size_t rank = op.shape(input).size();
  ir::Ints axes;
  if (op.has(1)) axes = op.integers(1);
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, rank);
  std::ranges::sort(axes);
  return op.result(op.emit(ir_op, {input.value}, {{"axis", axes}, {"keepdims", op.boolean(2, false)}}));
}

// A constant of one value: the first state of a recurrent layer, for example.
Ref filled(OpContext& op, double value, size_t dtype) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  op.expect_float_result(dtype);
  const ir::Shape shape = op.integers(0);
  const ir::TensorType type{ir::kFloat32, shape};
  if (const std::string error = ir::type_error(type); !error.empty()) invalid(error);
  if (type.num_elements() > kMostElements)
    throw Unsupported{cat(type.num_elements(), " elements of one value")};
  op.charge_elements(type.num_elements());
  const std::vector<float> values(static_cast<size_t>(type.num_elements()), static_cast<float>(value));
  return op.result(op.constant(ir::make_constant(ir::kFloat32, shape, values)));
}

}  // namespace

Ref import_zeros(OpContext& op) { return filled(op, 0, 1); }
Ref import_ones(OpContext& op) { return filled(op, 1, 1); }
Ref import_full(OpContext& op) { return filled(op, op.number(1), 2); }

Ref import_exp(OpContext& op) { return unary(op, "exp"); }
Ref import_sqrt(OpContext& op) { return unary(op, "sqrt"); }
Ref import_rsqrt(OpContext& op) { return unary(op, "rsqrt"); }
Ref import_log(OpContext& op) { return unary(op, "log"); }
Ref import_neg(OpContext& op) { return unary(op, "negative"); }
Ref import_abs(OpContext& op) { return unary(op, "abs"); }
Ref import_erf(OpContext& op) { return unary(op, "erf"); }

Ref import_elu(OpContext& op) {
  if (op.number(2, 1.0) != 1.0 || op.number(3, 1.0) != 1.0)
    throw Unsupported{"scale or input_scale other than 1"};
  return op.result(op.emit("nn.elu", {op.float_flow(0).value}, {{"alpha", op.number(1, 1.0)}}));
}

Ref import_silu(OpContext& op) {
  const ir::ValueId x = op.float_flow(0).value;
  return op.result(multiplied(op, x, op.emit("sigmoid", {x}, {})));
}

Ref import_gelu(OpContext& op) { return op.result(gelu(op, op.float_flow(0).value, op.text(1, "none"))); }

// Squares and roots by their own operators, which are exact.
Ref import_pow(OpContext& op) {
  if (!op.is_flow(0) && op.values().get<Tensor>(op.ref(0)) == nullptr) {
    const ir::ValueId base = op.scale(static_cast<float>(op.number(0)));
    return op.result(op.emit("power", {base, op.float_flow(1).value}, {}));
  }
  const ir::ValueId x = op.float_flow(0).value;
  const std::optional<double> number = op.scalar_beside(1, 0);
  if (!number) return op.result(op.emit("power", {x, op.float_flow(1).value}, {}));
  const double exponent = *number;
  if (exponent == 2) return op.result(multiplied(op, x, x));
  if (exponent == 0.5) return op.result(op.emit("sqrt", {x}, {}));
  return op.result(op.emit("power", {x, op.scale(static_cast<float>(exponent))}, {}));
}

Ref import_reciprocal(OpContext& op) {
  return op.result(op.emit("divide", {op.scale(1.0f), op.float_flow(0).value}, {}));
}

Ref import_log_softmax(OpContext& op) {
  op.expect_float_result(2);
  return softmax(op, "nn.log_softmax");
}
// half_to_float in the place of a dtype.
Ref import_core_softmax(OpContext& op) { return softmax(op, "nn.softmax"); }
Ref import_core_log_softmax(OpContext& op) { return softmax(op, "nn.log_softmax"); }

Ref import_sum(OpContext& op) {
  op.expect_float_result(3);
  return reduction(op, "sum");
}
Ref import_amax(OpContext& op) { return reduction(op, "max"); }
Ref import_amin(OpContext& op) { return reduction(op, "min"); }

Ref import_layer_norm(OpContext& op) { return layer_norm(op, 4); }

// The result, and two statistics, which only training reads.
Ref import_native_layer_norm(OpContext& op) {
  const Ref result = layer_norm(op, 4);
  return op.add(Tuple{{result, op.add(None{}), op.add(None{})}});
}

Ref import_group_norm(OpContext& op) {
  return op.result(group_norm(op, op.integer(1), 2, 3, op.number(4, 1e-5)));
}

// Arguments 3 to 5 are extents. The result, and two statistics, which only training reads.
Ref import_native_group_norm(OpContext& op) {
  const Ref result = op.result(group_norm(op, op.integer(6), 1, 2, op.number(7)));
  return op.add(Tuple{{result, op.add(None{}), op.add(None{})}});
}

// Normalises each sample and each channel by itself, with the statistics of the data.
Ref import_instance_norm(OpContext& op) {
  if (op.has(3) || op.has(4)) throw Unsupported{"statistics that were collected"};
  const Flow input = op.float_flow(0);
  if (op.shape(input).size() < 2) throw Unsupported{"a tensor without a channel axis"};
  return op.result(group_norm(op, op.shape(input)[1], 1, 2, op.number(7, 1e-5)));
}

// softmax(query x key' * scale + mask) x value
Ref import_attention(OpContext& op) {
  const Flow query = op.float_flow(0), key = op.float_flow(1), value = op.float_flow(2);
  const ir::Shape& shape = op.shape(query);
  if (shape.size() < 2) throw Unsupported{cat("a tensor of rank ", shape.size())};
  if (op.number(4, 0.0) != 0.0) throw Unsupported{"dropout"};
  if (op.boolean(5, false)) throw Unsupported{"is_causal=True"};
  if (op.boolean(7, false)) throw Unsupported{"enable_gqa=True"};
  const double scale = op.number(6, 1.0 / std::sqrt(static_cast<double>(shape.back())));
  const ir::ValueId product = op.emit("nn.batch_matmul", {query.value, key.value}, {{"transpose_b", true}});
  ir::ValueId scores = scaled(op, product, scale);
  if (op.has(3)) scores = op.emit("add", {scores, op.float_flow(3).value}, {});
  const auto last = static_cast<int64_t>(op.shape(Flow{scores}).size()) - 1;
  const ir::ValueId weights = op.emit("nn.softmax", {scores}, {{"axis", last}});
  return op.result(op.emit("nn.batch_matmul", {weights, value.value}, {}));
}

}  // namespace qplan::pt
