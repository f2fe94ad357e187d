// Runs the passes of passes.def until none of them changes anything.
#ifndef QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_
#define QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_

#include <string>
#include <vector>

#include "src/packer/ir/module.h"
#include "src/packer/pipeline/observer.h"
#include "src/packer/target/profile.h"

namespace qplan::pipeline {

enum class Border {
  kAsAsked,    // what options.io, options.io_layout and options.contract say, else the model's
  kOfTheBody,  // the one that all forms of a network share: canonical_body.h
};

// The module in canonical form, with the contract and the border that the options ask for. Every function
// that a pass makes is verified before the next pass sees it. Returns what options.skip left undone
// (left_out.h), which is logged too: a reason when the target then refuses the module.
std::vector<std::string> canonicalize(ir::Module* module, const target::TargetProfile& profile,
                                      const Observer& observer, Border border = Border::kAsAsked);

}  // namespace qplan::pipeline

#endif  // QPLAN_SRC_PACKER_PIPELINE_CANONICALIZE_H_
