// docs/supported_ops.md, written from the tables of the targets.
#ifndef QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_
#define QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_

#include <string>

namespace qplan::target {

std::string supported_ops_page();

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_SUPPORTED_OPS_H_
