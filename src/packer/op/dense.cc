// qnn.dense and nn.dense: data [..., k] times weight [n, k] transposed.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

enum Operand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };

// The shape of the result.
ir::Shape multiplied(const InferInput& input) {
  check_rank(input, kWeight, 2);
  const ir::TensorType& data = input.type(kData);
  const ir::TensorType& weight = input.type(kWeight);
  if (data.shape.empty()) invalid(cat("'data' is ", data, ", expected rank 1 or more"));
  if (data.shape.back() != weight.shape[1]) {
    invalid(cat("'data' is ", data, " and 'weight' is ", weight, ": last extents ", data.shape.back(),
                " and ", weight.shape[1], " differ"));
  }
  const int64_t units = attr_int(input.node, "units");
  if (units != 0 && units != weight.shape[0]) {
    invalid(cat("attribute 'units' is ", units, ", but 'weight' has ", weight.shape[0], " rows"));
  }
  ir::Shape shape = data.shape;
  shape.back() = weight.shape[0];
  return shape;
}

std::vector<ir::TensorType> infer_quantized(const InferInput& input) {
  check_quantized(input, kData);
  check_quantized(input, kWeight);
  ir::Shape shape = multiplied(input);
  const int64_t out_channels = shape.back();
  check_zero_point(input, kInputZeroPoint, input.type(kData).dtype);
  check_zero_point(input, kKernelZeroPoint, input.type(kWeight).dtype, out_channels);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, out_channels);
  return {{dtype_attr(input.node, "out_dtype", {ir::kInt32}), std::move(shape)}};
}

std::vector<ir::TensorType> infer_float(const InferInput& input) {
  check_dtype(input, kData, {ir::kFloat32});
  check_dtype(input, kWeight, {ir::kFloat32});
  return {{ir::kFloat32, multiplied(input)}};
}

}  // namespace

OpDef list::qnn_dense() {
  return {
      .name = "qnn.dense",
      .operands = {"data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale"},
      .attrs = {{"units", AttrKind::kInt, 0}, {"out_dtype", AttrKind::kString, "int32"}},
      .infer = infer_quantized};
}

OpDef list::nn_dense() {
  return {.name = "nn.dense",
          .operands = {"data", "weight"},
          .attrs = {{"units", AttrKind::kInt, 0}},
          .infer = infer_float};
}

}  // namespace qplan::op
