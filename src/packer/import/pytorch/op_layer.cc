// Convolutions, transposed ones too, linear layers and products of matrices on float32, and batch
// normalisation: between dequantisations and a quantisation the passes turn them into integer layers.
#include <algorithm>
#include <numeric>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/op/attributes.h"
#include "src/packer/op/op_def.h"

namespace qplan::pt {
namespace {

constexpr int64_t kMostPadding = 1 << 20;

ir::ValueId with_bias(OpContext& op, ir::ValueId value, size_t bias, int64_t axis) {
  if (!op.has(bias)) return value;
  return op.emit("nn.bias_add", {value, op.float_flow(bias).value}, {{"axis", axis}});
}

// The operands of a convolution. Data with one axis less than the weights has no batch.
struct ConvPlane : Plane {
  Flow weights;

  ConvPlane(OpContext& op, const Flow& input, const Flow& kernel)
      : Plane(op, input, spatial_axes(op.shape(kernel).size())), weights(kernel) {
    const ir::Shape k = op.shape(weights);
    if (is_sequence()) weights.value = op.reshape(weights.value, {k[0], k[1], 1, k[2]});
  }
  // With the bias, argument 2.
  Ref result(OpContext& op, ir::ValueId value) const { return Plane::result(op, with_bias(op, value, 2, 1)); }

 private:
  static size_t spatial_axes(size_t rank) {
    if (rank != 3 && rank != 4) throw Unsupported{cat("weights of rank ", rank)};
    return rank - 2;
  }
};

ConvPlane conv_plane(OpContext& op) {
  const Flow input = op.float_flow(0), weights = op.float_flow(1);
  return {op, input, weights};
}

// [top, left, bottom, right] of numbers, or of "same" and "valid".
ir::Ints padding_of(OpContext& op, const ConvPlane& plane, const std::vector<int64_t>& dilation) {
  if (op.has(4) && op.values().get<std::string>(op.ref(4)) != nullptr) {
    const std::string mode = op.text(4, "");
    if (mode == "valid") return {0, 0, 0, 0};
    if (mode != "same") throw Unsupported{"padding " + in_quotes(mode)};
    const ir::Shape& kernel = op.shape(plane.weights);
    // The odd row or column is after the data.
    const int64_t rows = dilation[0] * (kernel[2] - 1), columns = dilation[1] * (kernel[3] - 1);
    return {rows / 2, columns / 2, rows - rows / 2, columns - columns / 2};
  }
  const std::vector<int64_t> p = plane.numbers(op, 4, {0, 0});
  for (const int64_t padding : p) {
    if (padding < 0 || padding > kMostPadding) invalid(cat("padding ", padding));
  }
  return {p[0], p[1], p[0], p[1]};
}

Ref conv_transpose(OpContext& op, const ConvPlane& plane, size_t output_padding, size_t dilation,
                   size_t groups) {
  return plane.result(op, emit_conv_transpose(op, plane.input(), plane.weights,
                                              {.stride = plane.numbers(op, 3, {1, 1}),
                                               .padding = plane.numbers(op, 4, {0, 0}),
                                               .output_padding = plane.numbers(op, output_padding, {0, 0}),
                                               .dilation = plane.numbers(op, dilation, {1, 1}),
                                               .groups = op.integer(groups, 1)}));
}

Ref convolution(OpContext& op, const ConvPlane& plane, size_t groups) {
  const std::vector<int64_t> dilation = plane.numbers(op, 5, {1, 1});
  for (const int64_t step : dilation) {
    if (step < 1 || step > kMostPadding) invalid(cat("dilation ", step));
  }
  ir::Attrs attrs{{"strides", plane.numbers(op, 3, {1, 1})},
                  {"padding", padding_of(op, plane, dilation)},
                  {"dilation", dilation},
                  {"groups", op.integer(groups, 1)},
                  {"data_layout", std::string("NCHW")},
                  {"kernel_layout", std::string("OIHW")}};
  if (const std::optional<ir::ValueId> sums = emit_dynamic_conv(op, plane.input(), plane.weights, attrs))
    return plane.result(op, *sums);
  return plane.result(op, op.emit("nn.conv2d", {plane.input().value, plane.weights.value}, std::move(attrs)));
}

// [..., k] by weights [o, k].
ir::ValueId dense(OpContext& op, const Flow& data, const Flow& weights) {
  if (const std::optional<ir::ValueId> sums = emit_dynamic_dense(op, data, weights)) return *sums;
  return op.emit("nn.dense", {data.value, weights.value}, {});
}

// What the matrix was before it was transposed, or the transpose of what it is.
ir::ValueId swapped(OpContext& op, const Flow& matrix) {
  const ir::Node* node = op.function().producer(matrix.value);
  const bool is_swapped = node != nullptr && node->op != nullptr && node->op->name == "transpose" &&
                          op::attr_ints(*node, "axes") == ir::Ints{1, 0};
  if (is_swapped) return node->operands[0];
  const size_t rank = op.shape(matrix).size();
  ir::Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return op.emit("transpose", {matrix.value}, {{"axes", axes}});
}

// The product with a matrix that is constant is a linear layer.
ir::ValueId product(OpContext& op, const Flow& a, const Flow& b) {
  const size_t rank_a = op.shape(a).size(), rank_b = op.shape(b).size();
  if (rank_a == 0 || rank_b == 0) invalid("an operand is a scalar");
  if (rank_a == 1 || rank_b == 1) throw Unsupported{"a vector as an operand"};
  if (rank_b == 2 && op.is_constant(b)) return dense(op, a, Flow{swapped(op, b)});
  return op.emit("nn.batch_matmul", {a.value, b.value}, {});
}

// gamma, beta, mean and variance, of which the first two may be absent.
Ref batch_norm(OpContext& op, size_t epsilon) {
  const Flow input = op.float_flow(0);
  if (op.shape(input).size() < 2) throw Unsupported{"a tensor without a channel axis"};
  if (!op.has(3) || !op.has(4)) throw Unsupported{"statistics of the batch"};
  const int64_t channels = op.shape(input)[1];
  const Flow mean = op.float_flow(3), variance = op.float_flow(4);
  if (!op.is_constant(mean)) throw Unsupported{"statistics that the model computes"};
  if (op.shape(mean) != ir::Shape{channels})
    invalid(cat("the statistics are ", to_text(op.shape(mean)), " of ", channels, " channels"));
  const auto constant_or = [&](size_t i, float fallback) {
    if (op.has(i)) return op.float_flow(i).value;
    const std::vector<float> values(static_cast<size_t>(channels), fallback);
    return op.constant(ir::make_constant(ir::kFloat32, {channels}, values));
  };
  const ir::ValueId gamma = constant_or(1, 1.0f), beta = constant_or(2, 0.0f);
  return op.result(op.emit("nn.batch_norm", {input.value, gamma, beta, mean.value, variance.value},
                           {{"axis", int64_t{1}}, {"epsilon", op.number(epsilon, 1e-5)}}));
}

}  // namespace

Ref import_float_conv(OpContext& op) { return convolution(op, conv_plane(op), 6); }
Ref import_conv_transpose(OpContext& op) { return conv_transpose(op, conv_plane(op), 5, 7, 6); }
Ref import_convolution(OpContext& op) {
  const ConvPlane plane = conv_plane(op);
  return op.boolean(6, false) ? conv_transpose(op, plane, 7, 5, 8) : convolution(op, plane, 8);
}

Ref import_float_linear(OpContext& op) {
  const Flow input = op.float_flow(0), weights = op.float_flow(1);
  if (op.shape(weights).size() != 2) throw Unsupported{cat("weights of rank ", op.shape(weights).size())};
  const ir::ValueId value = dense(op, input, weights);
  return op.result(with_bias(op, value, 2, static_cast<int64_t>(op.shape(input).size()) - 1));
}

// self + mat1 x mat2
Ref import_addmm(OpContext& op) {
  if (op.number(3, 1.0) != 1.0 || op.number(4, 1.0) != 1.0) throw Unsupported{"beta or alpha other than 1"};
  const Flow addend = op.float_flow(0), a = op.float_flow(1), b = op.float_flow(2);
  const ir::ValueId value = product(op, a, b);
  const ir::Shape& shape = op.shape(Flow{value});
  if (op.shape(addend) == ir::Shape{shape.back()})
    return op.result(op.emit("nn.bias_add", {value, addend.value}, {{"axis", int64_t{1}}}));
  return op.result(op.emit("add", {value, addend.value}, {}));
}

Ref import_matmul(OpContext& op) {
  const Flow a = op.float_flow(0), b = op.float_flow(1);
  return op.result(product(op, a, b));
}

Ref import_batch_norm(OpContext& op) {
  if (op.boolean(5, false)) throw Unsupported{"training=True"};
  return batch_norm(op, 7);
}

// The result, and two statistics that are empty.
Ref import_batch_norm_no_training(OpContext& op) {
  const Ref result = batch_norm(op, 6);
  return op.add(Tuple{{result, op.add(None{}), op.add(None{})}});
}

// Transposed convolutions: the convolution, with the weights turned around, of data that has zeros between
// its elements. Each of these steps has an integer form, so that it runs on integers between dequantise and
// quantise.
namespace {

constexpr int64_t kMostExtent = 1 << 20;

// One axis of the data and the window.
struct SpreadAxis {
  int64_t extent, kernel, stride, padding, output_padding, dilation;

  int64_t covered() const { return dilation * (kernel - 1) + 1; }
  // Elements of the spread data, [0, extent * stride), that outputs read before its first and after its last
  // one; negative where they read less than all.
  int64_t before() const { return covered() - 1 - padding; }
  int64_t after() const { return covered() - 1 - padding + output_padding - (stride - 1); }
};

SpreadAxis checked(SpreadAxis axis) {
  for (const int64_t size : {axis.stride, axis.dilation, axis.kernel}) {
    if (size < 1 || size > kMostExtent) invalid(cat("a stride, dilation or window of ", size));
  }
  for (const int64_t size : {axis.padding, axis.output_padding}) {
    if (size < 0 || size > kMostExtent) invalid(cat("a padding of ", size));
  }
  // Factors of at most 2^40 and 2^20: the products fit.
  if (axis.extent > kMostExtent || axis.extent * axis.stride > kMostExtent || axis.covered() > kMostExtent)
    throw Unsupported{cat("an axis of more than ", kMostExtent, " elements with the zeros between them")};
  if (axis.before() + axis.extent * axis.stride + axis.after() < axis.covered())
    throw Unsupported{"a padding that leaves no output"};
  return axis;
}

// Zeros between the elements of the last two axes.
ir::ValueId spread(OpContext& op, const Flow& data, const SpreadAxis& rows, const SpreadAxis& columns) {
  const ir::Shape s = op.shape(data);
  const int64_t h = rows.stride, w = columns.stride;
  if (h == 1 && w == 1) return data.value;
  const ir::ValueId apart = op.reshape(data.value, {s[0], s[1], s[2], 1, s[3], 1});
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {0, 0}, {0, h - 1}, {0, 0}, {0, w - 1}};
  const ir::ValueId padded = op.emit("nn.pad", {apart, op.scale(0.0f)}, {{"pad_width", width}});
  return op.reshape(padded, {s[0], s[1], s[2] * h, s[3] * w});
}

// [in, out / groups, h, w] as the weights [out, in / groups, h, w] of a convolution.
ir::ValueId turned_weights(OpContext& op, const Flow& weights, int64_t groups) {
  const ir::Shape s = op.shape(weights);
  const ir::ValueId turned = op.emit("strided_slice", {weights.value},
                                     {{"begin", ir::Ints{s[2] - 1, s[3] - 1}},
                                      {"end", ir::Ints{-s[2] - 1, -s[3] - 1}},
                                      {"strides", ir::Ints{-1, -1}},
                                      {"axes", ir::Ints{2, 3}}});
  if (groups == 1) return op.emit("transpose", {turned}, {{"axes", ir::Ints{1, 0, 2, 3}}});
  const ir::ValueId grouped = op.reshape(turned, {groups, s[0] / groups, s[1], s[2], s[3]});
  const ir::ValueId moved = op.emit("transpose", {grouped}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
  return op.reshape(moved, {groups * s[1], s[0] / groups, s[2], s[3]});
}

}  // namespace

ir::ValueId emit_conv_transpose(OpContext& op, const Flow& input, const Flow& weights,
                                const TransposedConv& conv) {
  const ir::Shape shape = op.shape(input), kernel = op.shape(weights);
  if (conv.groups < 1 || shape[1] != kernel[0] || shape[1] % conv.groups != 0)
    invalid(cat("the data is ", to_text(shape), ", the weights ", to_text(kernel), ", groups ", conv.groups));
  const auto axis = [&](size_t i) {
    return checked({shape[2 + i], kernel[2 + i], conv.stride[i], conv.padding[i], conv.output_padding[i],
                    conv.dilation[i]});
  };
  const SpreadAxis rows = axis(0), columns = axis(1);
  ir::ValueId wide = spread(op, input, rows, columns);
  const auto cut = [](int64_t reach) { return std::max<int64_t>(-reach, 0); };
  const auto padded = [](int64_t reach) { return std::max<int64_t>(reach, 0); };
  const ir::Shape s = op.shape(Flow{wide});
  const ir::Ints begin = {cut(rows.before()), cut(columns.before())};
  const ir::Ints end = {s[2] - cut(rows.after()), s[3] - cut(columns.after())};
  if (begin[0] >= end[0] || begin[1] >= end[1])
    throw Unsupported{"a padding that leaves nothing of the data"};
  if (begin != ir::Ints{0, 0} || end != ir::Ints{s[2], s[3]})
    wide = op.emit("strided_slice", {wide}, {{"begin", begin}, {"end", end}, {"axes", ir::Ints{2, 3}}});
  return op.emit("nn.conv2d", {wide, turned_weights(op, weights, conv.groups)},
                 {{"padding", ir::Ints{padded(rows.before()), padded(columns.before()), padded(rows.after()),
                                       padded(columns.after())}},
                  {"dilation", conv.dilation},
                  {"groups", conv.groups},
                  {"data_layout", std::string("NCHW")},
                  {"kernel_layout", std::string("OIHW")}});
}

}  // namespace qplan::pt
