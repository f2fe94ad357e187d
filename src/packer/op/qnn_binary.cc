// qnn.add, qnn.subtract, qnn.mul: elementwise on two quantised tensors, with broadcasting.
#include "src/packer/op/infer.h"
#include "src/packer/op/op_list.h"
#include "src/packer/op/shape.h"

namespace qplan::op {
namespace {

std::vector<ir::TensorType> infer(const InferInput& input) {
  check_quantized(input, 0);
  check_same_dtype(input, 1, 0);
  const ir::DType dtype = input.type(0).dtype;
  for (const size_t scale : {2, 4, 6}) check_qparams(input, scale, dtype);
  check_contract(input.node);
  return {{dtype, broadcast_shape(input.type(0).shape, input.type(1).shape)}};
}

OpDef binary(std::string name) {
  return {.name = std::move(name),
          .operands = {"lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point",
                       "output_scale", "output_zero_point"},
          .attrs = {{"contract", AttrKind::kString, "tfl2"}},
          .infer = infer};
}

}  // namespace

OpDef list::qnn_add() { return binary("qnn.add"); }
OpDef list::qnn_subtract() { return binary("qnn.subtract"); }
OpDef list::qnn_mul() { return binary("qnn.mul"); }

}  // namespace qplan::op
