// If with a known condition: the branch that it chooses replaces it.
#include "src/packer/import/onnx/ops.h"
#include "src/packer/ir/cat.h"

namespace qplan::onnx {

void import_if(const OpContext& op) {
  constexpr size_t kMaxOutputs = 4096;
  op.expect_counts(1, 1, kMaxOutputs);
  const Attribute* then_branch = op.find_attr("then_branch", AttributeKind::kGraph);
  const Attribute* else_branch = op.find_attr("else_branch", AttributeKind::kGraph);
  if (then_branch == nullptr || else_branch == nullptr) invalid("a branch is missing");
  const ir::ConstantRef condition = op.constant(0, "conditions");
  if (condition->type().dtype != ir::kBool || condition->type().num_elements() != 1) {
    invalid(cat("the condition is ", condition->type(), ", expected one bool"));
  }
  const Subgraph& branch = *(condition->bytes()[0] != 0 ? then_branch : else_branch)->graph;
  if (branch.outputs.size() != op.num_outputs()) {
    invalid(cat("the number of outputs of the branch is ", branch.outputs.size(), ", expected ",
                op.num_outputs()));
  }
  op.graph().import_subgraph(branch);
  for (size_t i = 0; i < branch.outputs.size(); ++i) {
    const Value& value = op.graph().value(branch.outputs[i]);
    if (value.is_known()) op.define(i, value);
  }
}

}  // namespace qplan::onnx
