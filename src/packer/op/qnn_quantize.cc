// qnn.quantize, qnn.dequantize, qnn.requantize.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer_quantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const ir::DType out = dtype_attr(input.node, "out_dtype", {ir::kInt8, ir::kUint8, ir::kInt32});
  check_qparams(input, 1, out, per_axis_extent(input, 1, data));
  check_contract(input.node);
  choice_attr(input.node, "rule", {"", "div_away", "div_even", "mul_even"});
  return {{out, data.shape}};
}

std::vector<ir::TensorType> infer_dequantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt8, ir::kUint8, ir::kInt32});
  const ir::TensorType& data = input.type(0);
  check_qparams(input, 1, data.dtype, per_axis_extent(input, 1, data));
  check_contract(input.node);
  return {{ir::kFloat32, data.shape}};
}

std::vector<ir::TensorType> infer_requantize(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kInt8, ir::kUint8});
  const ir::TensorType& data = input.type(0);
  const ir::DType out = dtype_attr(input.node, "out_dtype", {ir::kInt8, ir::kUint8, ir::kInt32});
  check_qparams(input, 1, data.dtype, per_axis_extent(input, 1, data));
  check_qparams(input, 3, out, per_axis_extent(input, 3, data));
  check_contract(input.node);
  choice_attr(input.node, "multiplier", {"product_f64", "product_f32"});
  return {{out, data.shape}};
}

}  // namespace

OpDef list::qnn_quantize() {
  return {.name = "qnn.quantize",
          .operands = {"data", "output_scale", "output_zero_point"},
          .attrs = {{"out_dtype", AttrKind::kString, "int8"},
                    {"axis", AttrKind::kInt, -1},
                    {"contract", AttrKind::kString, "tfl2"},
                    {"rule", AttrKind::kString, ""}},
          .infer = infer_quantize};
}

OpDef list::qnn_dequantize() {
  return {.name = "qnn.dequantize",
          .operands = {"data", "input_scale", "input_zero_point"},
          .attrs = {{"axis", AttrKind::kInt, -1}, {"contract", AttrKind::kString, "tfl2"}},
          .infer = infer_dequantize};
}

OpDef list::qnn_requantize() {
  return {.name = "qnn.requantize",
          .operands = {"data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"},
          .attrs = {{"axis", AttrKind::kInt, -1},
                    {"out_dtype", AttrKind::kString, "int8"},
                    {"contract", AttrKind::kString, "tfl2"},
                    {"multiplier", AttrKind::kString, "product_f64"}},
          .infer = infer_requantize};
}

}  // namespace qplan::op
