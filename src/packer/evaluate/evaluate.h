// Runs IR on the reference kernels: constant folding, and an interpreter for tests.
#ifndef QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_
#define QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_

#include <optional>
#include <span>
#include <vector>

#include "src/packer/ir/module.h"

namespace qplan::evaluate {

// The function's outputs for these inputs, one per parameter and of its type: packed for the reference
// profile and run. PackError (QPLAN_MODEL_UNSUPPORTED) where a node has no kernel.
std::vector<ir::ConstantRef> run_function(const ir::Function& function,
                                          std::span<const ir::ConstantRef> inputs);

// The results of one node whose operands are these constants; nullopt when no kernel computes it alone.
std::optional<std::vector<ir::ConstantRef>> evaluate_node(const ir::Node& node,
                                                          std::span<const ir::ConstantRef> operands);

}  // namespace qplan::evaluate

#endif  // QPLAN_SRC_PACKER_EVALUATE_EVALUATE_H_
