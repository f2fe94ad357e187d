// nn.batch_norm as inference applies it: (data - moving_mean) / sqrt(moving_var + epsilon) * gamma + beta.
#include <cmath>

#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_dtype(input, 0, {ir::kFloat32});
  const ir::TensorType& data = input.type(0);
  const auto axis = static_cast<size_t>(normalized_axis(attr_int(input.node, "axis"), data.shape.size()));
  const ir::TensorType expected{ir::kFloat32, {data.shape[axis]}};
  for (size_t i = 1; i < input.node.operands.size(); ++i) {
    if (input.type(i) == expected) continue;
    invalid(cat(operand_name(input, i), " is ", input.type(i), ", expected ", expected, " for axis ", axis,
                " of ", data));
  }
  const double epsilon = attr_float(input.node, "epsilon");
  if (!std::isfinite(epsilon) || epsilon < 0) invalid("attribute 'epsilon' must be finite and not negative");
  return {data};
}

}  // namespace

OpDef list::nn_batch_norm() {
  return {.name = "nn.batch_norm",
          .operands = {"data", "gamma", "beta", "moving_mean", "moving_var"},
          .attrs = {{"axis", AttrKind::kInt, 1}, {"epsilon", AttrKind::kFloat, 1e-5}},
          .infer = infer};
}

}  // namespace qplan::op
