// nn.bias_add: one addend per index of an axis.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_dtype(input, 0, {ir::kInt32, ir::kFloat32});
  check_same_dtype(input, 1, 0);
  check_rank(input, 1, 1);
  const ir::TensorType& data = input.type(0);
  const int64_t axis = normalized_axis(attr_int(input.node, "axis"), data.shape.size());
  const int64_t extent = data.shape[static_cast<size_t>(axis)];
  if (input.type(1).shape[0] != extent) {
    invalid(cat("'bias' is ", input.type(1), ", expected ", extent, " values for axis ", axis, " of ", data));
  }
  return {data};
}

}  // namespace

OpDef list::nn_bias_add() {
  return {.name = "nn.bias_add",
          .operands = {"data", "bias"},
          .attrs = {{"axis", AttrKind::kInt, 1}},
          .infer = infer};
}

}  // namespace qplan::op
