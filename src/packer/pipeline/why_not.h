// Near-miss reports: where a rewrite does not apply, and why.
#ifndef QPLAN_SRC_PACKER_PIPELINE_WHY_NOT_H_
#define QPLAN_SRC_PACKER_PIPELINE_WHY_NOT_H_

#include <span>
#include <string>

#include "src/packer/ir/module.h"
#include "src/packer/passes/user_pass.h"

namespace qplan::pipeline {

// PackError (QPLAN_INVALID_ARGUMENT) with the names that are known when no pass has the rewrite.
void check_rewrite(std::string_view name, std::span<const passes::Stage> known);

// One line for each node whose operator the rewrite begins at: what its pattern, or its build, missed there.
std::string why_not_report(std::string_view rewrite, std::span<const passes::Stage> known,
                           const ir::Module& module, uint64_t num_fired);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_WHY_NOT_H_
