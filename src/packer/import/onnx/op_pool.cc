// Pools over height and width, float and quantised.
#include <algorithm>

#include "src/packer/import/onnx/ops.h"
#include "src/packer/import/onnx/window.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {
namespace {

ir::Attrs pool_attrs(const OpContext& op, const Value& data, Layout layout) {
  const Window window = read_window(op, spatial(op.shape(data), layout), {});
  if (window.dilations != ir::Ints{1, 1}) throw Unsupported{"dilations"};
  ir::Attrs attrs{{"pool_size", window.kernel}, {"strides", window.strides}, {"padding", window.padding}};
  if (layout != Layout::kNchw) attrs.set("layout", layout_name(layout));
  return attrs;
}

// As pool_attrs; count_include_pad counts the padding that the file names, not what ceil_mode adds.
ir::Attrs average_attrs(const OpContext& op, const Value& data, Layout layout) {
  const bool include = op.attr_int("count_include_pad", 0) != 0;
  const Window window = read_window(op, spatial(op.shape(data), layout), {});
  if (include && window.ceil_padding) throw Unsupported{"count_include_pad together with ceil_mode"};
  ir::Attrs attrs = pool_attrs(op, data, layout);
  const bool padded = std::ranges::any_of(window.padding, [](int64_t pad) { return pad != 0; });
  if (include && padded) attrs.set("count_include_pad", true);
  return attrs;
}

ir::Attrs global_attrs(const OpContext& op, const Value& data, Layout layout) {
  const ir::Ints whole = spatial(op.shape(data), layout);
  ir::Attrs attrs{{"pool_size", whole}};
  if (layout != Layout::kNchw) attrs.set("layout", layout_name(layout));
  return attrs;
}

void quantized_average(const OpContext& op, ir::Attrs attrs) {
  const QParams input = op.per_tensor_qparams(1), output = op.per_tensor_qparams(3);
  attrs.set("contract", std::string("f32e"));
  op.define(0, op.emit("qnn.avg_pool2d",
                       {op.input(0), input.scale, input.zero_point, output.scale, output.zero_point},
                       std::move(attrs)));
}

}  // namespace

void import_max_pool(const OpContext& op) {
  op.expect_counts(1, 1, 1);
  op.attr_int("storage_order", 0);  // of the indices, which are refused
  op.define(0, op.emit("nn.max_pool2d", {op.input(0)}, pool_attrs(op, op.input(0), Layout::kNchw)));
}

void import_average_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("nn.avg_pool2d", {op.input(0)}, average_attrs(op, op.input(0), Layout::kNchw)));
}

void import_global_average_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  spatial(op.shape(op.input(0)), Layout::kNchw);
  op.define(0, op.emit("nn.global_avg_pool2d", {op.input(0)}));
}

void import_global_max_pool(const OpContext& op) {
  op.expect_counts(1, 1);
  op.define(0, op.emit("nn.max_pool2d", {op.input(0)}, global_attrs(op, op.input(0), Layout::kNchw)));
}

void import_qlinear_average_pool(const OpContext& op) {
  op.expect_counts(4, 5);
  quantized_average(op, average_attrs(op, op.input(0), layout_of(op)));
}

void import_qlinear_global_average_pool(const OpContext& op) {
  op.expect_counts(4, 5);
  quantized_average(op, global_attrs(op, op.input(0), layout_of(op)));
}

}  // namespace qplan::onnx
