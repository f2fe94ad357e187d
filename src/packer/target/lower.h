// From a canonical function to the steps of a program.
#ifndef QPLAN_SRC_PACKER_TARGET_LOWER_H_
#define QPLAN_SRC_PACKER_TARGET_LOWER_H_

#include "src/packer/ir/module.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/program.h"

namespace qplan::target {

// PackError (QPLAN_MODEL_UNSUPPORTED) naming every node that no kernel computes, each with its reason.
Program lower_function(const ir::Function& function, const TargetProfile& profile);

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_LOWER_H_
