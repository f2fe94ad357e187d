// Targets from outside the tree: shared libraries that describe a device (include/qplan/npu_target.h).
#ifndef QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_
#define QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_

#include <span>
#include <string>

#include "qplan/npu_target.h"
#include "src/packer/target/target.h"

namespace qplan::target::external {

// The description in a library, which stays loaded until the process ends. PackError (QPLAN_INVALID_ARGUMENT,
// or QPLAN_FILE_ERROR) where there is none that this packer can use, or where it is named as one of `own`.
const qplan_npu_target& load_library(const std::string& path, std::span<const TargetKind> own);

// The target of a description: rows for its patterns and composites, with one constraint for each of its
// rules, and a compiler that writes operator lists. options: without priority. PackError
// (QPLAN_INVALID_ARGUMENT) where the library refuses them, or contradicts itself.
Target make_target(const qplan_npu_target& library, const TargetOptions& options);

}  // namespace qplan::target::external

#endif  // QPLAN_SRC_PACKER_TARGET_EXTERNAL_EXTERNAL_H_
