// qnn.avg_pool2d, nn.max_pool2d, nn.avg_pool2d, nn.global_avg_pool2d.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

ir::TensorType pooled(const InferInput& input) {
  check_rank(input, 0, 4);
  const ir::TensorType& data = input.type(0);
  const DataLayout d = data_layout(attr_string(input.node, "layout"));
  const Window2d window = pool2d_window(input.node);
  // Then every window covers at least one element of the input: no maximum of nothing, no division by zero.
  if (window.pad_top >= window.kernel_h || window.pad_bottom >= window.kernel_h ||
      window.pad_left >= window.kernel_w || window.pad_right >= window.kernel_w) {
    invalid(cat("attribute 'padding' ", to_text(attr_ints(input.node, "padding")),
                " must be smaller than 'pool_size' ", to_text(attr_ints(input.node, "pool_size"))));
  }
  ir::TensorType out = data;
  out.shape[d.h] = window.out_h(data.shape[d.h]);
  out.shape[d.w] = window.out_w(data.shape[d.w]);
  return out;
}

std::vector<ir::TensorType> infer_avg_pool2d(const InferInput& input) {
  check_quantized(input, 0);
  check_qparams(input, 1, input.type(0).dtype);
  check_qparams(input, 3, input.type(0).dtype);
  check_contract(input.node);
  return {pooled(input)};
}

std::vector<ir::TensorType> infer_max_pool2d(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kFloat32});
  return {pooled(input)};
}

std::vector<ir::TensorType> infer_float_avg_pool2d(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  return {pooled(input)};
}

std::vector<ir::TensorType> infer_global_avg_pool2d(const InferInput& input) {
  check_rank(input, 0, 4);
  check_dtype(input, 0, {ir::kFloat32});
  const DataLayout d = data_layout(attr_string(input.node, "layout"));
  ir::TensorType out = input.type(0);
  out.shape[d.h] = out.shape[d.w] = 1;
  return {std::move(out)};
}

std::vector<AttrDef> window_attrs() {
  return {{"pool_size", AttrKind::kInts},
          {"strides", AttrKind::kInts, ir::Ints{1, 1}},
          {"padding", AttrKind::kInts, ir::Ints{0, 0, 0, 0}},
          {"layout", AttrKind::kString, "NCHW"}};
}

}  // namespace

OpDef list::qnn_avg_pool2d() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back({"count_include_pad", AttrKind::kBool, false});
  attrs.push_back({"contract", AttrKind::kString, "tfl2"});
  return {.name = "qnn.avg_pool2d",
          .operands = {"data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"},
          .attrs = std::move(attrs),
          .infer = infer_avg_pool2d};
}

OpDef list::nn_max_pool2d() {
  return {.name = "nn.max_pool2d", .operands = {"data"}, .attrs = window_attrs(), .infer = infer_max_pool2d};
}

OpDef list::nn_avg_pool2d() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back({"count_include_pad", AttrKind::kBool, false});
  return {.name = "nn.avg_pool2d",
          .operands = {"data"},
          .attrs = std::move(attrs),
          .infer = infer_float_avg_pool2d};
}

OpDef list::nn_global_avg_pool2d() {
  return {.name = "nn.global_avg_pool2d",
          .operands = {"data"},
          .attrs = {{"layout", AttrKind::kString, "NCHW"}},
          .infer = infer_global_avg_pool2d};
}

}  // namespace qplan::op
