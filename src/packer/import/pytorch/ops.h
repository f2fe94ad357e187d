// The rows of ops.def.
#ifndef QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPS_H_
#define QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPS_H_

#include <string_view>

#include "src/packer/import/pytorch/op_context.h"

namespace qplan::pt {

struct ImportRow {
  const char* name;       // "quantized::conv2d"
  const char* arguments;  // names in order, separated by spaces
  Ref (*import_op)(OpContext& op);
};

// Null when the operator is not imported.
const ImportRow* find_row(std::string_view name);

#define QPLAN_PYTORCH_OP(name, function, arguments) Ref function(OpContext& op);
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP

}  // namespace qplan::pt

#endif  // QPLAN_SRC_PACKER_IMPORT_PYTORCH_OPS_H_
