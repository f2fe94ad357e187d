// What --skip left undone.
#ifndef QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_
#define QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_

#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/passes/pass.h"

namespace qplan::pipeline {

// One line for each pass and rewrite of context.skip that would change the module as it is now: its name and
// the first place. The module is only read.
std::vector<std::string> left_out(const ir::Module& module, const passes::PassContext& context);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_LEFT_OUT_H_
