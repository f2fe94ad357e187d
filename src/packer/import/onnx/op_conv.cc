// Conv and QLinearConv over height and width. Weights are OIHW, whatever the layout of the data.
#include <cmath>

#include "src/packer/import/onnx/matmul_tail.h"
#include "src/packer/import/onnx/ops.h"
#include "src/packer/import/onnx/window.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

ir::Attrs conv_attrs(const OpContext& op, const Value& data, const Value& weights, Layout layout) {
  const ir::Ints input = spatial(op.shape(data), layout);
  const ir::Shape& kernel = op.shape(weights);
  if (kernel.size() != 4) invalid(cat("the weights have rank ", kernel.size(), ", expected 4"));
  const Window window = read_window(op, input, {kernel[2], kernel[3]});
  ir::Attrs attrs{{"strides", window.strides}, {"padding", window.padding}};
  if (window.dilations != ir::Ints{1, 1}) attrs.set("dilation", window.dilations);
  if (const int64_t groups = op.attr_int("group", 1); groups != 1) attrs.set("groups", groups);
  attrs.set("channels", kernel[0]);
  attrs.set("kernel_size", window.kernel);
  if (layout != Layout::kNchw) attrs.set("data_layout", layout_name(layout));
  return attrs;
}

}  // namespace

void import_conv(const OpContext& op) {
  op.expect_counts(2, 3);
  const Value &data = op.input(0), &weights = op.input(1);
  Value result = op.emit("nn.conv2d", {data, weights}, conv_attrs(op, data, weights, Layout::kNchw));
  if (op.has_input(2)) result = op.emit("nn.bias_add", {result, op.input(2)}, {{"axis", int64_t{1}}});
  op.define(0, result);
}

void import_qlinear_conv(const OpContext& op) {
  op.expect_counts(8, 9);
  const Value &data = op.input(0), &weights = op.input(3);
  const Layout layout = layout_of(op);
  const QParams input = op.per_tensor_qparams(1), kernel = op.qparams(4);
  const Value accumulator =
      op.emit("qnn.conv2d", {data, weights, input.zero_point, kernel.zero_point, input.scale, kernel.scale},
              conv_attrs(op, data, weights, layout));
  MatmulTail tail;
  tail.input = input;
  tail.kernel = kernel;
  tail.output = op.per_tensor_qparams(6);
  tail.out_dtype = op.zero_point_dtype(7);
  tail.channel_axis = layout == Layout::kNchw ? 1 : 3;
  if (op.has_input(8)) tail.bias = op.input(8);
  op.define(0, emit_tail(op, accumulator, tail));
}

}  // namespace qplan::onnx
