// Under which conditions VTA computes a matched layer, to the bit: the rows of docs/supported_ops.md. Limits
// come from the fields of instructions, from the sizes of the memories, and from the ALU's sequence for TFL2.
#ifndef QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_H_
#define QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_H_

#include <vector>

#include "src/packer/target/target.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

std::vector<Constraint> conv2d_constraints(const Config& config);
std::vector<Constraint> depthwise_constraints(const Config& config);
std::vector<Constraint> dense_constraints(const Config& config);
// The same layers with int32 results, which the CPU requantises.
std::vector<Constraint> conv2d_acc32_constraints(const Config& config);
std::vector<Constraint> dense_acc32_constraints(const Config& config);
std::vector<Constraint> add_constraints(const Config& config);
std::vector<Constraint> max_pool2d_constraints(const Config& config);
std::vector<Constraint> avg_pool2d_constraints(const Config& config);
std::vector<Constraint> mean_constraints(const Config& config);
std::vector<Constraint> clip_constraints();

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_CONSTRAINTS_H_
