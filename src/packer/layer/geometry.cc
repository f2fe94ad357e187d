#include "src/packer/layer/quantized_layer.h"
#include "src/packer/op/op_def.h"
#include "src/packer/op/properties.h"

namespace qplan::layer {
namespace {

constexpr size_t kDataOperand = 0, kWeightOperand = 1;

bool is_convolution(const ir::Node& node) { return op::plain_name(*node.op) == "conv2d"; }
bool is_transposed(const ir::Node& node) { return node.op->name == "qnn.conv2d_transpose"; }

// Extents of the input and the output along the axes of the layout.
Geometry image_geometry(const ir::TensorType& data, const ir::TensorType& result,
                        const op::DataLayout& layout) {
  Geometry g;
  g.batch = data.shape[layout.n];
  g.in_h = data.shape[layout.h], g.in_w = data.shape[layout.w], g.in_c = data.shape[layout.c];
  g.out_h = result.shape[layout.h], g.out_w = result.shape[layout.w], g.out_c = result.shape[layout.c];
  return g;
}

}  // namespace

Geometry product_geometry(const ir::Function& function, const ir::Node& product) {
  const ir::TensorType& weight = function.type(product.operands[kWeightOperand]);
  const ir::TensorType& result = function.type(product.results[0]);
  if (is_convolution(product)) {
    Geometry g = image_geometry(function.type(product.operands[kDataOperand]), result,
                                op::data_layout(op::attr_string(product, "data_layout")));
    g.groups = op::attr_int(product, "groups");
    g.window = op::conv2d_window(product, weight);
    return g;
  }
  if (is_transposed(product)) {
    Geometry g =
        image_geometry(function.type(product.operands[kDataOperand]), result, op::data_layout("NHWC"));
    const ir::Ints &strides = op::attr_ints(product, "strides"), &crop = op::attr_ints(product, "crop");
    g.window.kernel_h = weight.shape[1], g.window.kernel_w = weight.shape[2];
    g.window.stride_h = strides[0], g.window.stride_w = strides[1];
    g.window.pad_top = crop[0], g.window.pad_left = crop[1];
    return g;
  }
  Geometry g;
  g.in_c = weight.shape[1];
  g.out_c = weight.shape[0];
  g.out_w = result.num_elements() / g.out_c;
  g.in_w = g.out_w;
  return g;
}

Geometry pool_geometry(const ir::Function& function, const ir::Node& pool) {
  Geometry g = image_geometry(function.type(pool.operands[kDataOperand]), function.type(pool.results[0]),
                              op::data_layout(op::attr_string(pool, "layout")));
  g.window = op::pool2d_window(pool);
  return g;
}

Geometry mean_geometry(const ir::Function& function, const ir::Node& mean) {
  const ir::Shape& shape = function.type(mean.operands[kDataOperand]).shape;
  Geometry g;
  if (shape.size() != 4) return g;
  g.batch = shape[0];
  g.in_h = g.window.kernel_h = shape[1];
  g.in_w = g.window.kernel_w = shape[2];
  g.in_c = g.out_c = shape[3];
  return g;
}

bool has_canonical_layout(const ir::Node& node) {
  if (op::plain_name(*node.op) == "dense" || is_transposed(node)) return true;
  if (!is_convolution(node)) return op::attr_string(node, "layout") == "NHWC";
  return op::attr_string(node, "data_layout") == "NHWC" && op::attr_string(node, "kernel_layout") == "OHWI";
}

}  // namespace qplan::layer
