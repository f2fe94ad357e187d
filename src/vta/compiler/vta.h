// VTA, the Versatile Tensor Accelerator, as a target: patterns and what the device executes exactly of them.
#ifndef QPLAN_SRC_VTA_COMPILER_VTA_H_
#define QPLAN_SRC_VTA_COMPILER_VTA_H_

#include "src/packer/target/target.h"
#include "src/vta/compiler/config.h"

namespace qplan::target::vta {

// The rows name what they capture: "data", "pad", "product", "weight", "bias_add", "bias", "requantize",
// "sum", "lhs", "rhs", "pool", "mean", "clip".
std::vector<PatternRow> pattern_table(const Config& config);
// The costs are the configuration's, the priority is the default.
Target make_target(const Config& config);

}  // namespace qplan::target::vta

#endif  // QPLAN_SRC_VTA_COMPILER_VTA_H_
