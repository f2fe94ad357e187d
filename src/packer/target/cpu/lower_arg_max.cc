// argmax: family arg_max.
#include "src/packer/op/shape.h"
#include "src/packer/target/cpu/families.h"

namespace qplan::target::cpu {

Chain match_arg_max(const Lowering& lowering, uint32_t node) {
  return lowering.is(node, "argmax") ? Chain{node} : Chain{};
}

void lower_arg_max(Lowering& lowering, const Chain& chain) {
  const ir::Node& node = lowering.node(chain.front());
  const ir::TensorType& input = lowering.type(node.operands[0]);
  if (!is_8_bit(input.dtype) && input.dtype != ir::kFloat32) {
    refuse("its dtype is " + ir::to_string(input.dtype) + ", expected int8, uint8 or float32");
  }
  const auto axis =
      static_cast<uint32_t>(op::normalized_axis(op::attr_int(node, "axis"), input.shape.size()));
  ProgramStep step = make_step(kKernel_arg_max, node);
  step.inputs = {lowering.tensor(node.operands[0])};
  step.outputs = {lowering.define(node.results[0])};
  step.params = ArgMaxParams{.axis = axis};
  lowering.add_step(std::move(step));
}

}  // namespace qplan::target::cpu
