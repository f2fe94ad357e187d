/* Compiled as C99, C11 and C++17 with warnings as errors; the records of operator lists are a file format. */
#include <qplan/npu_oplist.h>
#include <qplan/npu_target.h>

typedef char header_size[sizeof(qplan_oplist_header) == 64 ? 1 : -1];
typedef char slot_size[sizeof(qplan_oplist_slot) == 32 ? 1 : -1];
typedef char tensor_size[sizeof(qplan_oplist_tensor) == 72 ? 1 : -1];
typedef char op_size[sizeof(qplan_oplist_op) == 160 ? 1 : -1];

const qplan_npu_target* header_npu_target(uint32_t abi);
const qplan_npu_target* header_npu_target(uint32_t abi) {
  static qplan_npu_target target;
  qplan_npu_target_entry_fn entry = header_npu_target;
  qplan_oplist list;
  if (abi >> 16 != QPLAN_NPU_TARGET_ABI >> 16 || entry == NULL) return NULL;
  target.struct_size = (uint32_t)sizeof(target);
  target.name = qplan_oplist_open(NULL, 0, &list, NULL) == QPLAN_NPU_E_BLOB ? "header" : "";
  return &target;
}
