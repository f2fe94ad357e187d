// One result from many elements: pools over windows (qnn.avg_pool2d, nn.max_pool2d, nn.avg_pool2d,
// nn.global_avg_pool2d), reductions over axes (qnn.mean, mean, argmax), and image.resize2d.
#include <algorithm>

#include "src/packer/op/attributes.h"
#include "src/packer/op/evaluate.h"
#include "src/packer/op/infer.h"

namespace qplan::op {
namespace {

// ---- pools ----

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

std::vector<ir::TensorType> infer_qnn_avg_pool2d(const InferInput& input) {
  check_quantized(input, 0);
  check_qparams(input, 1, input.type(0).dtype);
  check_qparams(input, 3, input.type(0).dtype);
  check_contract(input.node);
  return {pooled(input)};
}

std::vector<ir::TensorType> infer_max_pool2d(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kFloat32});
  return {pooled(input)};
}

std::vector<ir::TensorType> infer_nn_avg_pool2d(const InferInput& input) {
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

void normalize_pool2d(const InferInput& input, ir::Attrs* attrs) {
  const Window2d window = pool2d_window(input.node);
  write_window(window, "pool_size", attrs);
  if (!window.is_padded()) attrs->erase("count_include_pad");
}

// ---- whole axes: they disappear, or keep extent 1 ----

ir::Shape reduced(const ir::Shape& shape, const ir::Ints& axes, bool keepdims) {
  ir::Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::ranges::binary_search(axes, static_cast<int64_t>(i))) {
      out.push_back(shape[i]);
    } else if (keepdims) {
      out.push_back(1);
    }
  }
  return out;
}

std::vector<ir::TensorType> infer_qnn_mean(const InferInput& input) {
  check_quantized(input, 0);
  const ir::TensorType& data = input.type(0);
  check_qparams(input, 1, data.dtype);
  check_qparams(input, 3, data.dtype);
  check_contract(input.node);
  const ir::Ints axes = normalized_axes(attr_ints(input.node, "axis"), data.shape.size());
  return {{data.dtype, reduced(data.shape, axes, attr_bool(input.node, "keepdims"))}};
}

std::vector<ir::TensorType> infer_mean(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt64, ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const ir::Ints axes = normalized_axes(attr_ints(input.node, "axis"), data.shape.size());
  return {{data.dtype, reduced(data.shape, axes, attr_bool(input.node, "keepdims"))}};
}

std::vector<ir::TensorType> infer_extremum(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kInt32, ir::kInt64, ir::kFloat32, ir::kBool});
  const ir::TensorType& data = input.type(0);
  const ir::Ints axes = normalized_axes(attr_ints(input.node, "axis"), data.shape.size());
  return {{data.dtype, reduced(data.shape, axes, attr_bool(input.node, "keepdims"))}};
}

std::vector<ir::TensorType> infer_argmax(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt32, ir::kInt64, ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  const ir::DType dtype = dtype_attr(input.node, "dtype", {ir::kInt32, ir::kInt64});
  return {{dtype, reduced(data.shape, {axis}, attr_bool(input.node, "keepdims"))}};
}

// ---- resizing ----

std::vector<ir::TensorType> infer_resize2d(const InferInput& input) {
  check_rank(input, 0, 4);
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt16, ir::kFloat32});
  choice_attr(input.node, "method", {"linear"});
  choice_attr(input.node, "coordinate_transformation_mode", {"half_pixel", "align_corners", "asymmetric"});
  check_contract(input.node);
  const ir::Ints& size = attr_ints(input.node, "size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) {
    invalid(cat("attribute 'size' is ", to_text(size), ", expected height and width of at least 1"));
  }
  const DataLayout d = data_layout(attr_string(input.node, "layout"));
  ir::TensorType out = input.type(0);
  out.shape[d.h] = size[0];
  out.shape[d.w] = size[1];
  return {std::move(out)};
}

// ---- rows ----

AttrDef layout_attr() { return with_role(AttrRole::kLayout, {"layout", AttrKind::kString, "NCHW"}); }

std::vector<AttrDef> window_attrs() {
  return {with_role(AttrRole::kWindow, {"pool_size", AttrKind::kInts}),
          {"strides", AttrKind::kInts, ir::Ints{1, 1}},
          {"padding", AttrKind::kInts, ir::Ints{0, 0, 0, 0}},
          layout_attr()};
}

std::vector<RelayAttrDef> pool_relay_attrs() {
  return {{"ceil_mode", {"False", "0"}}, {"dilation", {"1", "[1]", "[1, 1]"}}};
}

OpDef pool(std::string name, std::vector<AttrDef> attrs,
           std::vector<ir::TensorType> (*infer)(const InferInput&)) {
  return {.name = std::move(name),
          .operands = {{"data"}},
          .attrs = std::move(attrs),
          .kind = OpKind::kReduction,
          .keeps_dtype = true,
          .relay_attrs = pool_relay_attrs(),
          .infer = infer,
          .complete = complete_out_layout};
}

}  // namespace

OpDef list::qnn_avg_pool2d() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back({"count_include_pad", AttrKind::kBool, false});
  attrs.push_back(contract_attr());
  OpDef op = pool("qnn.avg_pool2d", std::move(attrs), infer_qnn_avg_pool2d);
  op.operands = quantized_unary();
  op.quantization = Quantization::kOperands;
  op.normalize = normalize_pool2d;
  return op;
}

OpDef list::nn_max_pool2d() {
  OpDef op = pool("nn.max_pool2d", window_attrs(), infer_max_pool2d);
  op.quantization = Quantization::kShared;
  op.normalize = normalize_pool2d;
  return op;
}

OpDef list::nn_avg_pool2d() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back({"count_include_pad", AttrKind::kBool, false});
  OpDef op = pool("nn.avg_pool2d", std::move(attrs), infer_nn_avg_pool2d);
  op.quantized_form = "qnn.avg_pool2d";
  return op;
}

OpDef list::nn_global_avg_pool2d() {
  OpDef op = pool("nn.global_avg_pool2d", {layout_attr()}, infer_global_avg_pool2d);
  op.relay_names = {{"nn.adaptive_avg_pool2d",
                     {{.name = "output_size", .ignored = {"1", "[1]", "[1, 1]"}, .is_required = true}}}};
  return op;
}

OpDef list::qnn_mean() {
  return {.name = "qnn.mean",
          .operands = quantized_unary(),
          .attrs = {axis_attr(ir::Ints{}, AttrKind::kInts),
                    {"keepdims", AttrKind::kBool, false},
                    contract_attr()},
          .kind = OpKind::kReduction,
          .quantization = Quantization::kOperands,
          .keeps_dtype = true,
          .follows_layout = true,
          .relay_attrs = {{"exclude", {"False", "0"}}},
          .infer = infer_qnn_mean};
}

OpDef list::qnn_sum() {
  OpDef op = qnn_mean();
  op.name = "qnn.sum";
  return op;
}

OpDef list::qnn_prod() {
  OpDef op = qnn_mean();
  op.name = "qnn.prod";
  op.follows_layout = false;  // rounds after each factor: the order of the data means something
  return op;
}

namespace {

OpDef reduced_extremum(std::string name) {
  return {.name = std::move(name),
          .operands = {{"data"}},
          .attrs = {axis_attr(ir::Ints{}, AttrKind::kInts), {"keepdims", AttrKind::kBool, false}},
          .kind = OpKind::kReduction,
          .quantization = Quantization::kShared,
          .keeps_dtype = true,
          .follows_layout = true,
          .relay_attrs = {{"exclude", {"False", "0"}}},
          .infer = infer_extremum,
          .evaluate = evaluate_reduction};
}

}  // namespace

OpDef list::max() { return reduced_extremum("max"); }
OpDef list::min() { return reduced_extremum("min"); }

OpDef list::mean() {
  return {.name = "mean",
          .operands = {{"data"}},
          .attrs = {axis_attr(ir::Ints{}, AttrKind::kInts), {"keepdims", AttrKind::kBool, false}},
          .kind = OpKind::kReduction,
          .keeps_dtype = true,
          .follows_layout = true,
          .quantized_form = "qnn.mean",
          .relay_attrs = {{"exclude", {"False", "0"}}},
          .infer = infer_mean,
          .evaluate = evaluate_reduction};
}

OpDef list::sum() {
  OpDef op = mean();
  op.name = "sum";
  op.quantized_form = "";
  return op;
}

OpDef list::prod() {
  OpDef op = sum();
  op.name = "prod";
  return op;
}

// follows_layout: not yet; its data is transposed back to the model's order.
OpDef list::argmax() {
  return {.name = "argmax",
          .operands = {{"data"}},
          .attrs = {with_role(AttrRole::kAxis, {"axis", AttrKind::kInt}),
                    {"keepdims", AttrKind::kBool, false},
                    with_role(AttrRole::kDtype, {"dtype", AttrKind::kString, "int32"})},
          .kind = OpKind::kReduction,
          .quantization = Quantization::kShared,
          .work = Work::kConvert,
          .relay_attrs = {{"exclude", {"False", "0"}}, {"select_last_index", {"False", "0"}}},
          .infer = infer_argmax};
}

OpDef list::argmin() {
  OpDef op = argmax();
  op.name = "argmin";
  return op;
}

OpDef list::image_resize2d() {
  return {.name = "image.resize2d",
          .operands = {{"data"}},
          .attrs = {{"size", AttrKind::kInts},
                    layout_attr(),
                    {"method", AttrKind::kString, "linear"},
                    {"coordinate_transformation_mode", AttrKind::kString, "half_pixel"},
                    contract_attr()},
          .quantization = Quantization::kShared,
          .keeps_dtype = true,
          .work = Work::kResize,
          .relay_attrs = {{"rounding_method", {"*"}},
                          {"cubic_alpha", {"*"}},
                          {"cubic_exclude", {"*"}},
                          {"extrapolation_value", {"*"}},
                          {"roi", {"*"}},
                          {"out_dtype", {""}}},
          .infer = infer_resize2d};
}

}  // namespace qplan::op
