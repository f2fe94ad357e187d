#include "src/packer/op/evaluate.h"

#include "src/base/checked.h"
#include "src/packer/error.h"
#include "src/packer/op/infer.h"

namespace qplan::op {

std::vector<ir::TensorType> result_types(const ir::Node& node, Operands operands) {
  ir::Function function("evaluate");
  ir::Node on_constants = node;
  on_constants.operands.clear();
  on_constants.results.clear();
  for (const ir::ConstantRef& operand : operands) {
    on_constants.operands.push_back(function.add_constant(operand));
  }
  return infer_types(function, on_constants);
}

std::optional<Results> evaluate(const ir::Node& node, Operands operands) {
  if (node.op == nullptr || node.op->evaluate == nullptr) return std::nullopt;
  int64_t bytes = 0;
  for (const ir::TensorType& type : result_types(node, operands)) {
    if (!checked_add(bytes, type.size_bytes(), &bytes)) return std::nullopt;
  }
  if (bytes > kMaxEvaluatedBytes) return std::nullopt;
  return node.op->evaluate(node, operands);
}

}  // namespace qplan::op
