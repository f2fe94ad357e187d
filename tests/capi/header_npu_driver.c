/* Compiled as C99, C11 and C++17 with warnings as errors. */
#include <qplan/npu_sim.h>

static qplan_npu_status enumerate(const qplan_device_hooks* hooks, uint32_t* count) {
  *count = hooks != NULL && hooks->platform != NULL ? 1u : 0u;
  return QPLAN_NPU_OK;
}

const qplan_npu_driver* header_npu_driver(uint32_t abi);
const qplan_npu_driver* header_npu_driver(uint32_t abi) {
  static qplan_npu_driver driver;
  qplan_npu_driver_entry_fn entry = header_npu_driver;
  if (abi >> 16 != QPLAN_NPU_ABI >> 16 || entry == NULL) return NULL;
  driver.struct_size = (uint32_t)sizeof(driver);
  driver.abi = QPLAN_NPU_ABI;
  driver.name = QPLAN_NPU_CLASS(QPLAN_NPU_E_LOST) == QPLAN_NPU_CLASS_GONE ? "header" : "";
  driver.enumerate = enumerate;
  return &driver;
}
