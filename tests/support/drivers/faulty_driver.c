/* Shared libraries that are no driver, or none of ours; FAULT says in which way. */
#include <qplan/npu_driver.h>
#include <string.h>

#define NO_ENTRY 1
#define OTHER_MAJOR 2
#define REFUSES 3
#define SHORT_TABLE 4
#define MISSING_FUNCTION 5

#if FAULT != NO_ENTRY
QPLAN_API const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi);
const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) {
  static qplan_npu_driver driver;
  (void)abi;
  memset(&driver, 0, sizeof driver);
  driver.struct_size = FAULT == SHORT_TABLE ? 16 : sizeof driver;
  driver.abi = FAULT == OTHER_MAJOR ? (QPLAN_NPU_ABI + 0x10000u) : QPLAN_NPU_ABI;
  driver.name = "faulty";
  return FAULT == REFUSES ? NULL : &driver;
}
#else
int this_library_is_no_driver;
#endif
