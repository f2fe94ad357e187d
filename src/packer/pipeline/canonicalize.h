// Runs the passes of passes.def until none of them changes anything.
#ifndef QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_
#define QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_

#include "src/packer/ir/module.h"
#include "src/packer/pipeline/observer.h"
#include "src/packer/target/profile.h"

namespace qplan::pipeline {

// Every function that a pass makes is verified before the next pass sees it.
void canonicalize(ir::Module* module, const target::TargetProfile& profile, const Observer& observer);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_
