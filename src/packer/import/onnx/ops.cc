#include "src/packer/import/onnx/ops.h"

namespace qplan::onnx {
namespace {

constexpr ImportRow kRows[] = {
#define QPLAN_ONNX_OP(domain, name, oldest, newest, function) {domain, #name, oldest, newest, function},
#include "src/packer/import/onnx/ops.def"
#undef QPLAN_ONNX_OP
};

}  // namespace

std::span<const ImportRow> rows() { return kRows; }

const ImportRow* find_row(std::string_view domain, std::string_view op_type) {
  for (const ImportRow& row : kRows) {
    if (row.domain == domain && row.op_type == op_type) return &row;
  }
  return nullptr;
}

}  // namespace qplan::onnx
