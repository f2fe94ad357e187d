// One function per operator of ops.def: op_def.cc calls them to build the table, the family files define
// them.
#ifndef QPLAN_SRC_PACKER_OP_OP_LIST_H_
#define QPLAN_SRC_PACKER_OP_OP_LIST_H_

#include "src/packer/op/op_def.h"

namespace qplan::op::list {

#define QPLAN_OP(function) OpDef function();
#include "src/packer/op/ops.def"
#undef QPLAN_OP

}  // namespace qplan::op::list

#endif  // QPLAN_SRC_PACKER_OP_OP_LIST_H_
