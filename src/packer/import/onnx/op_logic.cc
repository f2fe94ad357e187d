// Comparisons and logic on data, choices, running sums, the largest elements; functions that are written by
// others.
#include <cmath>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
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
  op.define(0, op.emit("cumsum", {op.input(0)},
                       {{"axis", OpContext::axis_of(axis[0], op.shape(op.input(0)).size())},
                        {"exclusive", op.attr_int("exclusive", 0) != 0},
                        {"reverse", op.attr_int("reverse", 0) != 0}}));
}

// Along the last axis. Those that come first among equal ones are the same in ONNX Runtime.
void import_top_k(const OpContext& op) {
  op.expect_counts(2, 2, 2);
  const Value& data = op.input(0);
  const size_t rank = op.shape(data).size();
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", -1), rank);
  if (axis + 1 != static_cast<int64_t>(rank)) throw Unsupported{"another axis than the last one"};
  if (op.attr_int("largest", 1) != 1) throw Unsupported{"attribute 'largest' 0"};
  op.attr_int("sorted", 1);
  const ir::Ints k = op.ints(1, "k");
  if (k.size() != 1) invalid(cat("there are ", k.size(), " values of k, expected 1"));
  const std::vector<Value> results = op.emit_many("topk", {data}, {{"k", k[0]}});
  op.define(0, results[0]);
  op.define(1, op.emit("cast", {results[1]}, {{"dtype", std::string("int64")}}));
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
void import_reciprocal(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("divide", {number(op, op.input(0), 1), op.input(0)}));
}
// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which overflows nowhere.
void import_softplus(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const Value small = op.emit("exp", {op.emit("negative", {op.emit("abs", {x})})});
  const Value rest = op.emit("log", {op.emit("add", {small, number(op, x, 1)})});
  op.define(0, op.emit("add", {op.emit("nn.relu", {x}), rest}));
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

// (x - mean) / sqrt(variance + epsilon) * scale + bias, over all axes after the channels.
void import_instance_normalization(const OpContext& op) {
  op.expect_counts(3, 3);
  const Value& x = op.input(0);
  const ir::Shape& shape = op.shape(x);
  if (shape.size() < 3) throw Unsupported{cat("data of rank ", shape.size())};
  ir::Ints axes;
  ir::Shape channels = {shape[1]};
  for (size_t axis = 2; axis < shape.size(); ++axis) {
    axes.push_back(static_cast<int64_t>(axis));
    channels.push_back(1);
  }
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const Value centred = op.emit("subtract", {x, op.emit("mean", {x}, over)});
  const Value variance = op.emit("mean", {op.emit("multiply", {centred, centred})}, over);
  const Value epsilon = number(op, x, static_cast<double>(op.attr_float("epsilon", 1e-5f)));
  const Value deviation = op.emit("sqrt", {op.emit("add", {variance, epsilon})});
  const Value scaled =
      op.emit("multiply", {op.emit("divide", {centred, deviation}), op.reshape(op.input(1), channels)});
  op.define(0, op.emit("add", {scaled, op.reshape(op.input(2), channels)}));
}

}  // namespace qplan::onnx
