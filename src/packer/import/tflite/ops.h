// The rows of ops.def.
#ifndef QPLAN_SRC_PACKER_IMPORT_TFLITE_OPS_H_
#define QPLAN_SRC_PACKER_IMPORT_TFLITE_OPS_H_

#include <cstdint>

#include "src/packer/import/tflite/op_context.h"

namespace qplan::tfl {

struct ImportRow {
  int32_t builtin_code;
  const char* name;
  void (*import_op)(OpContext& op);
};

// Null when the operator is not imported.
const ImportRow* find_row(int32_t builtin_code);

#define QPLAN_TFLITE_OP(number, name, function) void function(OpContext& op);
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP

}  // namespace qplan::tfl

#endif  // QPLAN_SRC_PACKER_IMPORT_TFLITE_OPS_H_
