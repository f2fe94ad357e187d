#include "src/packer/import/tflite/ops.h"

namespace qplan::tfl {
namespace {

#define QPLAN_TFLITE_OP(number, name, function) \
  static_assert(number == tflite::BuiltinOperator_##name, "the number is the format's");
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP

constexpr ImportRow kRows[] = {
#define QPLAN_TFLITE_OP(number, name, function) {number, #name, function},
#include "src/packer/import/tflite/ops.def"
#undef QPLAN_TFLITE_OP
};

}  // namespace

const ImportRow* find_row(int32_t builtin_code) {
  for (const ImportRow& row : kRows) {
    if (row.builtin_code == builtin_code) return &row;
  }
  return nullptr;
}

}  // namespace qplan::tfl
