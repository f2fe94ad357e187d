// Whether a module is what module.h promises. Run after every pass: a pass that breaks the IR is caught where
// it did.
#ifndef QPLAN_SRC_PACKER_IR_VERIFIER_H_
#define QPLAN_SRC_PACKER_IR_VERIFIER_H_

#include "src/packer/ir/module.h"

namespace qplan::ir {

// Throws PackError naming function and node. Checked: nodes in topological order; operands, results and
// outputs are values of the function; types within ir/limits.h and equal to what inference says; constants
// have contents; parameter names are unique; callees exist, take these operands and return these types; no
// call leads back to its caller.
void verify(const Module& module);

}  // namespace qplan::ir

#endif  // QPLAN_SRC_PACKER_IR_VERIFIER_H_
