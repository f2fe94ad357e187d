// Transposed convolutions: the convolution, with the weights turned around, of data that has zeros between
// its elements. Each of these steps has an integer form, so that it runs on integers between dequantise and
// quantise.
#include <algorithm>

#include "src/packer/import/pytorch/op_context.h"
#include "src/packer/import/pytorch/weights.h"

namespace qplan::pt {
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
