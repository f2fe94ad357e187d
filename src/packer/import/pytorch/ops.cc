#include "src/packer/import/pytorch/ops.h"

namespace qplan::pt {
namespace {

constexpr ImportRow kRows[] = {
#define QPLAN_PYTORCH_OP(name, function, arguments) {name, arguments, function},
#include "src/packer/import/pytorch/ops.def"
#undef QPLAN_PYTORCH_OP
};

}  // namespace

const ImportRow* find_row(std::string_view name) {
  for (const ImportRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace qplan::pt
