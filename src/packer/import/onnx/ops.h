// The rows of ops.def.
#ifndef QPLAN_SRC_PACKER_IMPORT_ONNX_OPS_H_
#define QPLAN_SRC_PACKER_IMPORT_ONNX_OPS_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "src/packer/import/onnx/op_context.h"

namespace qplan::onnx {

struct ImportRow {
  std::string_view domain;
  std::string_view op_type;
  int64_t oldest;  // opset versions of the domain
  int64_t newest;
  void (*import_op)(const OpContext& op);
};

std::span<const ImportRow> rows();
// Null when the operator is not imported.
const ImportRow* find_row(std::string_view domain, std::string_view op_type);

#define QPLAN_ONNX_OP(domain, name, oldest, newest, function) void function(const OpContext& op);
#include "src/packer/import/onnx/ops.def"
#undef QPLAN_ONNX_OP

}  // namespace qplan::onnx

#endif  // QPLAN_SRC_PACKER_IMPORT_ONNX_OPS_H_
