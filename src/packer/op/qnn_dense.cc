// qnn.dense: data [..., k] times weight [n, k] transposed.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"

namespace qplan::op {
namespace {

enum Operand { kData, kWeight, kInputZeroPoint, kKernelZeroPoint, kInputScale, kKernelScale };

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_rank(input, kWeight, 2);
  check_quantized(input, kData);
  check_quantized(input, kWeight);
  const ir::TensorType& data = input.type(kData);
  const ir::TensorType& weight = input.type(kWeight);
  if (data.shape.empty()) invalid(cat("'data' is ", data, ", expected rank 1 or more"));
  if (data.shape.back() != weight.shape[1]) {
    invalid(cat("'data' is ", data, " and 'weight' is ", weight, ": last extents ", data.shape.back(),
                " and ", weight.shape[1], " differ"));
  }
  const int64_t units = attr_int(input.node, "units");
  const int64_t out_channels = weight.shape[0];
  if (units != 0 && units != out_channels) {
    invalid(cat("attribute 'units' is ", units, ", but 'weight' has ", out_channels, " rows"));
  }
  check_zero_point(input, kInputZeroPoint, data.dtype);
  check_zero_point(input, kKernelZeroPoint, weight.dtype, out_channels);
  check_scale(input, kInputScale);
  check_scale(input, kKernelScale, out_channels);
  ir::TensorType out{dtype_attr(input.node, "out_dtype", {ir::kInt32}), data.shape};
  out.shape.back() = out_channels;
  return {std::move(out)};
}

}  // namespace

OpDef list::qnn_dense() {
  return {
      .name = "qnn.dense",
      .operands = {"data", "weight", "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale"},
      .attrs = {{"units", AttrKind::kInt, 0}, {"out_dtype", AttrKind::kString, "int32"}},
      .infer = infer};
}

}  // namespace qplan::op
