// ConvTranspose: the convolution, with the weights turned around, of data that has zeros between its
// elements. Each of these steps has an integer form, so that it runs on integers between DequantizeLinear and
// QuantizeLinear.
#include <algorithm>

#include "src/base/checked.h"
#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

// The axis of the data, with the stride and the pads of the outputs. Negative pads are outputs that no window
// reaches.
struct Axis : WindowAxis {
  int64_t output_padding = 0;

  // How many outputs there are without pads.
  int64_t natural() const { return stride * (extent - 1) + output_padding + covered(); }
  // Elements of the spread data, [0, extent * stride), that outputs read before its first and after its last
  // one; negative where they read less than all.
  int64_t before() const { return covered() - 1 - pad_begin; }
  int64_t after() const { return covered() - 1 - pad_end + output_padding - (stride - 1); }
};

// Attribute output_padding.
ir::Ints output_padding_of(const OpContext& op, size_t count) {
  const ir::Ints padding = op.attr_ints("output_padding").value_or(ir::Ints(count, 0));
  if (padding.size() != count)
    invalid(cat("attribute 'output_padding' has ", padding.size(), " values, expected ", count));
  for (const int64_t value : padding) {
    if (value < 0 || value > kMaxWindow) {
      invalid(cat("attribute 'output_padding' is ", to_text(padding), ", expected values from 0 to ",
                  kMaxWindow));
    }
  }
  return padding;
}

// The extents that attribute output_shape asks for, of the `count` spatial axes; it may have all axes.
std::optional<ir::Ints> asked_extents(const OpContext& op, size_t count) {
  const auto shape = op.attr_ints("output_shape");
  if (!shape) return std::nullopt;
  if (shape->size() != count && shape->size() != count + 2) {
    invalid(
        cat("attribute 'output_shape' has ", shape->size(), " values, expected ", count, " or ", count + 2));
  }
  const ir::Ints extents(shape->end() - static_cast<int64_t>(count), shape->end());
  for (const int64_t extent : extents) {
    if (extent < 1 || extent >= kMaxWindow) {
      invalid(cat("attribute 'output_shape' is ", to_text(*shape), ", expected values from 1 to ",
                  kMaxWindow - 1));
    }
  }
  return extents;
}

// Chooses the pads that leave so many outputs. Where that is more than there are naturally, the others follow
// them, as in ONNX's conformance case convtranspose_output_shape and in ONNX Runtime; the operator's
// equations would make both pads negative.
void pad_for(int64_t outputs, bool is_odd_at_end, Axis* axis) {
  const int64_t total = axis->natural() - outputs;
  axis->split_pads(std::max<int64_t>(total, 0), is_odd_at_end);
  if (total < 0) axis->pad_end = total;
}

// Axes of height and width; of one axis the width.
std::vector<Axis> read_axes(const OpContext& op, const ir::Shape& data, const ir::Shape& weights) {
  const size_t count = data.size() - 2;
  const WindowAttributes window = read_window_attributes(op, {data.begin() + 2, data.end()},
                                                         {weights.begin() + 2, weights.end()}, -kMaxWindow);
  const ir::Ints padding = output_padding_of(op, count);
  const auto shape = asked_extents(op, count);
  const bool is_upper = window.auto_pad == AutoPad::kSameUpper;
  const bool is_same = is_upper || window.auto_pad == AutoPad::kSameLower;
  std::vector<Axis> axes;
  for (size_t i = 0; i < count; ++i) {
    Axis axis{window.axes[i], padding[i]};
    int64_t spread = 0;
    if (!checked_mul(axis.extent, axis.stride, &spread) || spread > kMaxWindow) {
      throw Unsupported{cat("an axis of ", axis.extent, " elements at stride ", axis.stride, ", more than ",
                            kMaxWindow, " with the zeros between them")};
    }
    if (axis.covered() > kMaxWindow)
      throw Unsupported{cat("a window of ", axis.covered(), ", more than ", kMaxWindow, " elements")};
    if (is_same && !shape && spread > axis.natural()) {
      throw Unsupported{cat("auto_pad SAME and a window of ", axis.covered(), " at stride ", axis.stride,
                            ", for which ONNX's operator and its shape inference have ", spread, " and ",
                            axis.natural(), " outputs; state output_shape or pads instead")};
    }
    if (shape || is_same) pad_for(shape ? (*shape)[i] : spread, is_upper, &axis);
    const int64_t outputs = axis.natural() - axis.pad_begin - axis.pad_end;
    if (outputs < 1) {
      throw Unsupported{cat("pads of ", axis.pad_begin, " and ", axis.pad_end, ", which leave nothing of ",
                            axis.natural(), " outputs")};
    }
    if (outputs >= kMaxWindow)
      throw Unsupported{cat("an output axis of ", outputs, " elements, more than ", kMaxWindow - 1)};
    axes.push_back(axis);
  }
  return axes;
}

// Zeros between the elements of the last two axes.
Value spread(const OpContext& op, const Value& data, const std::vector<Axis>& axes) {
  const ir::Shape s = op.shape(data);
  const int64_t h = axes[0].stride, w = axes[1].stride;
  if (h == 1 && w == 1) return data;
  const Value apart = op.reshape(data, {s[0], s[1], s[2], 1, s[3], 1});
  const std::vector<ir::Ints> width = {{0, 0}, {0, 0}, {0, 0}, {0, h - 1}, {0, 0}, {0, w - 1}};
  const Value padded = op.emit("nn.pad", {apart, ir::make_scalar(0.0f)}, {{"pad_width", width}});
  return op.reshape(padded, {s[0], s[1], s[2] * h, s[3] * w});
}

// [in, out / groups, h, w] as the weights [out, in / groups, h, w] of a convolution.
Value turned_weights(const OpContext& op, const Value& weights, int64_t groups) {
  const ir::Shape s = op.shape(weights);
  const Value turned = op.emit("strided_slice", {weights},
                               {{"begin", ir::Ints{s[2] - 1, s[3] - 1}},
                                {"end", ir::Ints{-s[2] - 1, -s[3] - 1}},
                                {"strides", ir::Ints{-1, -1}},
                                {"axes", ir::Ints{2, 3}}});
  if (groups == 1) return op.emit("transpose", {turned}, {{"axes", ir::Ints{1, 0, 2, 3}}});
  const Value grouped = op.reshape(turned, {groups, s[0] / groups, s[1], s[2], s[3]});
  const Value moved = op.emit("transpose", {grouped}, {{"axes", ir::Ints{0, 2, 1, 3, 4}}});
  return op.reshape(moved, {groups * s[1], s[0] / groups, s[2], s[3]});
}

}  // namespace

void import_conv_transpose(const OpContext& op) {
  op.expect_counts(2, 3);
  const size_t rank = op.shape(op.input(0)).size();
  if (rank != 3 && rank != 4) throw Unsupported{cat("data of rank ", rank, "; reshape it to rank 3 or 4")};
  if (op.shape(op.input(1)).size() != rank) invalid(cat("the weights are ", op.type(op.input(1))));
  std::vector<Axis> axes = read_axes(op, op.shape(op.input(0)), op.shape(op.input(1)));
  if (rank == 3) axes.insert(axes.begin(), Axis{});
  const Value data = with_height(op, op.input(0)), weights = with_height(op, op.input(1));
  const int64_t groups = op.attr_int("group", 1);
  if (groups < 1 || op.shape(data)[1] != op.shape(weights)[0] || op.shape(data)[1] % groups != 0)
    invalid(cat("the data is ", op.type(data), ", the weights ", op.type(weights), ", groups ", groups));
  const int64_t channels = groups * op.shape(weights)[1];

  Value wide = spread(op, data, axes);
  const auto cut = [](int64_t reach) { return std::max<int64_t>(-reach, 0); };
  const auto padded = [](int64_t reach) { return std::max<int64_t>(reach, 0); };
  const ir::Shape s = op.shape(wide);
  const ir::Ints begin = {cut(axes[0].before()), cut(axes[1].before())};
  const ir::Ints end = {s[2] - cut(axes[0].after()), s[3] - cut(axes[1].after())};
  if (begin[0] >= end[0] || begin[1] >= end[1]) throw Unsupported{"pads that leave nothing of the data"};
  if (begin != ir::Ints{0, 0} || end != ir::Ints{s[2], s[3]}) {
    wide = op.emit("strided_slice", {wide}, {{"begin", begin}, {"end", end}, {"axes", ir::Ints{2, 3}}});
  }
  Window window;
  for (const Axis& axis : axes) {
    window.axes.push_back({.kernel = axis.kernel,
                           .dilation = axis.dilation,
                           .pad_begin = padded(axis.before()),
                           .pad_end = padded(axis.after())});
  }
  ir::Attrs attrs = window.plane_attrs("kernel_size");
  attrs.set("channels", channels);
  if (groups != 1) attrs.set("groups", groups);
  Value result = op.emit("nn.conv2d", {wide, turned_weights(op, weights, groups)}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  op.define(0, without_height(op, result, op.input(0)));
}

}  // namespace qplan::onnx
