// ConvTranspose: the convolution, with the weights turned around, of data that has zeros between its
// elements. Each of these steps has an integer form, so that it runs on integers between DequantizeLinear and
// QuantizeLinear.
#include <algorithm>

#include "src/packer/import/onnx/op_context.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

struct Axis {
  int64_t extent, kernel, stride, dilation, pad_begin, pad_end, output_padding;

  int64_t window() const { return (kernel - 1) * dilation + 1; }
  // Elements of the spread data, [0, extent * stride), that outputs read before its first and after its last
  // one; negative where they read less than all.
  int64_t before() const { return window() - 1 - pad_begin; }
  int64_t after() const { return window() - 1 - pad_end + output_padding - (stride - 1); }
};

int64_t entry(const std::optional<ir::Ints>& values, size_t i, size_t count, int64_t fallback,
              const char* name) {
  if (!values) return fallback;
  if (values->size() != count)
    invalid(cat("attribute '", name, "' has ", values->size(), " values, expected ", count));
  constexpr int64_t kMost = int64_t{1} << 20;
  if ((*values)[i] < -kMost || (*values)[i] > kMost) {
    invalid(cat("attribute '", name, "' is ", to_text(*values), ", expected values from ", -kMost, " to ",
                kMost));
  }
  return (*values)[i];
}

// The extents that attribute output_shape asks for, of the `count` spatial axes; it may have all axes.
std::optional<ir::Ints> asked_extents(const OpContext& op, size_t count) {
  const auto shape = op.attr_ints("output_shape");
  if (!shape) return std::nullopt;
  if (shape->size() != count && shape->size() != count + 2) {
    invalid(
        cat("attribute 'output_shape' has ", shape->size(), " values, expected ", count, " or ", count + 2));
  }
  constexpr int64_t kMost = int64_t{1} << 31;
  const ir::Ints extents(shape->end() - static_cast<int64_t>(count), shape->end());
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > kMost) {
      invalid(cat("attribute 'output_shape' is ", to_text(*shape), ", expected values from 1 to ", kMost));
    }
  }
  return extents;
}

// Axes of height and width; of one axis the width.
std::vector<Axis> read_axes(const OpContext& op, const ir::Shape& data, const ir::Shape& weights) {
  const size_t count = data.size() - 2;
  const auto strides = op.attr_ints("strides"), dilations = op.attr_ints("dilations"),
             given_pads = op.attr_ints("pads"), padding = op.attr_ints("output_padding"),
             shape = asked_extents(op, count), kernel = op.attr_ints("kernel_shape");
  const std::string mode = op.attr_string("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    invalid("attribute 'auto_pad' is " + quoted(mode));
  const auto pads = mode == "VALID" ? std::nullopt : given_pads;
  std::vector<Axis> axes;
  for (size_t i = 0; i < count; ++i) {
    Axis axis{.extent = data[i + 2],
              .kernel = weights[i + 2],
              .stride = entry(strides, i, count, 1, "strides"),
              .dilation = entry(dilations, i, count, 1, "dilations"),
              .pad_begin = entry(pads, i, 2 * count, 0, "pads"),
              .pad_end = entry(pads, i + count, 2 * count, 0, "pads"),
              .output_padding = entry(padding, i, count, 0, "output_padding")};
    if (entry(kernel, i, count, axis.kernel, "kernel_shape") != axis.kernel)
      invalid(
          cat("attribute 'kernel_shape' is ", to_text(*kernel), ", but the weights are ", to_text(weights)));
    if (axis.kernel < 1)
      invalid(cat("the weights are ", to_text(weights), ", expected extents of at least 1"));
    if (axis.stride < 1 || axis.dilation < 1 || axis.output_padding < 0) {
      invalid(cat("stride ", axis.stride, ", dilation ", axis.dilation, " and output padding ",
                  axis.output_padding, ", expected at least 1, 1 and 0"));
    }
    if (shape || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t size = shape ? (*shape)[i] : axis.extent * axis.stride;
      const int64_t total =
          std::max<int64_t>(axis.stride * (axis.extent - 1) + axis.output_padding + axis.window() - size, 0);
      const bool is_upper = mode == "SAME_UPPER" || (shape && mode != "SAME_LOWER");
      axis.pad_begin = is_upper ? total / 2 : total - total / 2;
      axis.pad_end = total - axis.pad_begin;
    }
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
  if (rank == 3) axes.insert(axes.begin(), Axis{1, 1, 1, 1, 0, 0, 0});
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
  ir::Attrs attrs{{"padding", ir::Ints{padded(axes[0].before()), padded(axes[1].before()),
                                       padded(axes[0].after()), padded(axes[1].after())}},
                  {"dilation", ir::Ints{axes[0].dilation, axes[1].dilation}},
                  {"channels", channels},
                  {"kernel_size", ir::Ints{axes[0].kernel, axes[1].kernel}}};
  if (groups != 1) attrs.set("groups", groups);
  Value result = op.emit("nn.conv2d", {wide, turned_weights(op, weights, groups)}, std::move(attrs));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  op.define(0, without_height(op, result, op.input(0)));
}

}  // namespace qplan::onnx
