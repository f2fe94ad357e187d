// Normalisations, by the arithmetic that ONNX defines them with, and batch normalisation.
#include <limits>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {

Value with_addend(const OpContext& op, const Value& x, size_t i) {
  return op.has_input(i) ? op.emit("add", {x, op.input(i)}) : x;
}

namespace {

ir::Ints axes_from(const OpContext& op, const Value& x, int64_t first) {
  ir::Ints axes;
  for (int64_t axis = first; axis < static_cast<int64_t>(op.shape(x).size()); ++axis) axes.push_back(axis);
  return axes;
}

// x / sqrt(mean(spread * spread) + epsilon) over these axes.
Value divided_by_deviation(const OpContext& op, const Value& x, const Value& spread, const ir::Ints& axes,
                           double epsilon) {
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const Value variance = op.emit("mean", {op.emit("multiply", {spread, spread})}, over);
  const Value deviation =
      op.emit("sqrt", {op.emit("add", {variance, Value{scalar_of(epsilon, op.type(x).dtype)}})});
  return op.emit("divide", {x, deviation});
}

// (x - mean) / sqrt(variance + epsilon) over these axes.
Value normalized(const OpContext& op, const Value& x, const ir::Ints& axes, double epsilon) {
  const Value mean = op.emit("mean", {x}, {{"axis", axes}, {"keepdims", true}});
  const Value centred = op.emit("subtract", {x, mean});
  return divided_by_deviation(op, centred, centred, axes, epsilon);
}

double epsilon_of(const OpContext& op, float fallback) {
  return static_cast<double>(op.attr_float("epsilon", fallback));
}

}  // namespace

// ---- over the last axes ----

namespace {

// The first of the axes, attribute axis.
int64_t first_axis(const OpContext& op) {
  if (op.attr_int("stash_type", 1) != 1) throw Unsupported{"attribute 'stash_type' other than 1"};
  return OpContext::axis_of(op.attr_int("axis", -1), op.shape(op.input(0)).size());
}

}  // namespace

void import_layer_normalization(const OpContext& op) {
  op.expect_counts(2, 3);
  const Value& x = op.input(0);
  const Value all = normalized(op, x, axes_from(op, x, first_axis(op)), epsilon_of(op, 1e-5f));
  op.define(0, with_addend(op, op.emit("multiply", {all, op.input(1)}), 2));
}

void import_rms_normalization(const OpContext& op) {
  op.expect_counts(2, 2);
  const Value& x = op.input(0);
  const ir::Ints axes = axes_from(op, x, first_axis(op));
  const Value all = divided_by_deviation(op, x, x, axes, epsilon_of(op, 1e-5f));
  op.define(0, op.emit("multiply", {all, op.input(1)}));
}

Value normalized_rows(const OpContext& op, const Value& x, float epsilon) {
  const auto last = static_cast<int64_t>(op.shape(x).size()) - 1;
  return normalized(op, x, {last}, static_cast<double>(epsilon));
}

namespace {

// The data and what skipped a layer, with a bias at input i, which is the fourth output. The second and the
// third are statistics of training.
Value sum_of_skipped(const OpContext& op, size_t i) {
  for (const size_t statistic : {1, 2}) {
    if (op.has_output(statistic)) throw Unsupported{"outputs of training"};
  }
  const Value sum = with_addend(op, op.emit("add", {op.input(0), op.input(1)}), i);
  if (op.has_output(3)) op.define(3, sum);
  return sum;
}

}  // namespace

// The data, what skipped a layer, scale, bias of the normalisation, bias of the sum.
void import_skip_layer_normalization(const OpContext& op) {
  op.expect_counts(3, 5, 4);
  const Value all = normalized_rows(op, sum_of_skipped(op, 4), op.attr_float("epsilon", 1e-12f));
  op.define(0, with_addend(op, op.emit("multiply", {all, op.input(2)}), 3));
}

// The data, what skipped a layer, scale, bias of the sum.
void import_skip_rms_normalization(const OpContext& op) {
  op.expect_counts(3, 4, 4);
  const Value sum = sum_of_skipped(op, 3);
  const auto last = static_cast<int64_t>(op.shape(sum).size()) - 1;
  const Value all = divided_by_deviation(op, sum, sum, {last}, epsilon_of(op, 1e-12f));
  op.define(0, op.emit("multiply", {all, op.input(2)}));
}

// ---- over all axes after the channels ----

void import_instance_normalization(const OpContext& op) {
  op.expect_counts(3, 3);
  const Value& x = op.input(0);
  const ir::Shape& shape = op.shape(x);
  if (shape.size() < 3) throw Unsupported{cat("data of rank ", shape.size())};
  ir::Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  const Value all = normalized(op, x, axes_from(op, x, 2), epsilon_of(op, 1e-5f));
  const Value scaled = op.emit("multiply", {all, op.reshape(op.input(1), channels)});
  op.define(0, op.emit("add", {scaled, op.reshape(op.input(2), channels)}));
}

// Groups of channels are normalised together. Scale and bias are one per channel, before opset 21 one per
// group.
void import_group_normalization(const OpContext& op) {
  op.expect_counts(3, 3);
  const Value& x = op.input(0);
  const ir::Shape shape = op.shape(x);
  const int64_t groups = op.attr_int("num_groups", 0);
  if (op.attr_int("stash_type", 1) != 1) throw Unsupported{"attribute 'stash_type' other than 1"};
  if (op.type(x).num_elements() == 0) throw Unsupported{"a tensor without elements"};
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    invalid(cat("attribute 'num_groups' is ", groups, " for data ", op.type(x)));
  const double epsilon = epsilon_of(op, 1e-5f);
  const bool by_group = op.opset() < 21;
  const ir::Shape grouped = {shape[0], groups, op.type(x).num_elements() / shape[0] / groups};
  ir::Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  for (const size_t i : {1, 2}) {
    if (op.shape(op.input(i)) != ir::Shape{by_group ? groups : shape[1]})
      invalid(cat("input ", i, " is ", op.type(op.input(i)), ", expected ", by_group ? groups : shape[1],
                  " values"));
  }
  const auto factor = [&](size_t i) {
    return op.reshape(op.input(i), by_group ? ir::Shape{groups, 1} : channels);
  };
  Value all = normalized(op, op.reshape(x, grouped), {2}, epsilon);
  if (!by_group) all = op.reshape(all, shape);
  all = op.emit("add", {op.emit("multiply", {all, factor(1)}), factor(2)});
  op.define(0, op.reshape(all, shape));
}

// ---- others ----

// x / (bias + alpha * the mean of the squares of `size` channels around)^beta.
void import_lrn(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const ir::Shape shape = op.shape(x);
  const int64_t size = op.attr_int("size", 0);
  if (shape.size() < 2) throw Unsupported{cat("data of rank ", shape.size())};
  if (size < 1 || size > kMaxWindow) invalid(cat("attribute 'size' is ", size));
  const ir::DType dtype = op.type(x).dtype;
  const auto attribute = [&](const char* name, float fallback) {
    return Value{scalar_of(static_cast<double>(op.attr_float(name, fallback)), dtype)};
  };
  // Channels as the height of an image, whose width is all the rest.
  const int64_t rest = num_elements(shape, 2, shape.size());
  WindowAxis channels = {.extent = shape[1], .kernel = size};
  channels.split_pads(size - 1, true);
  const Value squares = op.reshape(op.emit("multiply", {x, x}), {shape[0], 1, shape[1], rest});
  const Value mean = average_plane(op, squares, channels, {.extent = rest}, true);
  const Value scaled = op.emit("multiply", {op.reshape(mean, shape), attribute("alpha", 1e-4f)});
  const Value base = op.emit("add", {scaled, attribute("bias", 1)});
  op.define(0, op.emit("divide", {x, op.emit("power", {base, attribute("beta", 0.75f)})}));
}

// (x - mean) / (deviation + 1e-9).
void import_mean_variance_normalization(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  ir::Ints axes = op.attr_ints("axes").value_or(ir::Ints{0, 2, 3});
  for (int64_t& axis : axes) axis = OpContext::axis_of(axis, op.shape(x).size());
  const ir::Attrs over = {{"axis", axes}, {"keepdims", true}};
  const Value centred = op.emit("subtract", {x, op.emit("mean", {x}, over)});
  const Value variance = op.emit("mean", {op.emit("multiply", {centred, centred})}, over);
  const Value least{scalar_of(1e-9, op.type(x).dtype)};
  op.define(0, op.emit("divide", {centred, op.emit("add", {op.emit("sqrt", {variance}), least})}));
}

// x / the sum of its absolute values or the root of that of its squares, along an axis; 0 where all are 0.
void import_lp_normalization(const OpContext& op) {
  op.expect_counts(1, 1);
  const Value& x = op.input(0);
  const int64_t p = op.attr_int("p", 2);
  if (p != 1 && p != 2) invalid(cat("attribute 'p' is ", p, ", expected 1 or 2"));
  const int64_t axis = OpContext::axis_of(op.attr_int("axis", -1), op.shape(x).size());
  const Value parts = p == 1 ? op.emit("abs", {x}) : op.emit("multiply", {x, x});
  const Value sum = op.emit("sum", {parts}, {{"axis", ir::Ints{axis}}, {"keepdims", true}});
  const Value norm = p == 1 ? sum : op.emit("sqrt", {sum});
  const auto least = static_cast<double>(std::numeric_limits<float>::min());
  const Value above = op.emit("maximum", {norm, Value{scalar_of(least, op.type(x).dtype)}});
  op.define(0, op.emit("divide", {x, above}));
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
