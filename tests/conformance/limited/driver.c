/* The driver. gone: its device went away, and it knows no options. no_listing: native, and its table ends
 * before `disassemble`. */
#define qplan_npu_driver_entry sample_driver_entry
#include "samples/npu_driver_skeleton/driver.c"
#undef qplan_npu_driver_entry
#include "tests/conformance/limited/limited.h" /* after the sample, which says which POSIX it wants */

static qplan_npu_status open_gone(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                                  qplan_npu_device* device, qplan_npu_reason* why) {
  (void)hooks;
  (void)index;
  (void)device;
  if (options != NULL && options[0] != '\0')
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "limited: there are no options");
  return refuse(why, QPLAN_NPU_E_ABSENT, 0, 0, "limited: nothing answers on the bus");
}

static qplan_npu_status list_program(uint32_t format, const void* blob, uint64_t bytes, const char* options,
                                     void (*line)(void* user, const char* text), void* user,
                                     qplan_npu_reason* why) {
  const size_t header = sizeof(LIMITED_MAGIC) - 1;
  if (format != limited_format() || bytes < header || memcmp(blob, LIMITED_MAGIC, header) != 0)
    return refuse(why, QPLAN_NPU_E_BLOB, 0, 0, "limited: no program of this device");
  line(user, "a limited program");
  line(user, options);
  return QPLAN_NPU_OK;
}

static qplan_npu_driver limited_driver;

__attribute__((visibility("default"))) const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi);
const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) {
  const qplan_npu_driver* sample = sample_driver_entry(abi);
  if (sample == NULL) return NULL;
  limited_driver = *sample;
  if (limited_is("gone")) limited_driver.open = open_gone;
  limited_driver.disassemble = list_program;
  if (limited_is("no_listing")) limited_driver.struct_size = offsetof(qplan_npu_driver, disassemble);
  return &limited_driver;
}
