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

/* `fast`: memory on the chip, one block at a time. The sample asks the platform; here the platform is asked
 * for nothing, and the device has a memory of its own. */
static uint8_t sram[LIMITED_SRAM_BYTES] __attribute__((aligned(SKELETON_ALIGNMENT)));
static int sram_is_taken;

static void* alloc_class(void* user, size_t size, size_t alignment, uint32_t memory_class) {
  void* memory = NULL;
  (void)user;
  if (memory_class == QPLAN_NPU_MEMORY_CLASS_SRAM) {
    if (!limited_is("fast") || sram_is_taken || size > sizeof(sram)) return NULL;
    sram_is_taken = 1;
    return sram;
  }
  return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}
static void* alloc_any(void* user, size_t size, size_t alignment) {
  return alloc_class(user, size, alignment, QPLAN_NPU_MEMORY_CLASS_DRAM);
}
static void free_class(void* user, void* memory) {
  (void)user;
  if (memory == sram) {
    sram_is_taken = 0;
  } else {
    free(memory);
  }
}
int limited_has_in_sram(const void* memory) {
  return (const uint8_t*)memory >= sram && (const uint8_t*)memory < sram + sizeof(sram);
}
static uint32_t class_of_memory(void* user, const void* memory) {
  (void)user;
  return limited_has_in_sram(memory) ? QPLAN_NPU_MEMORY_CLASS_SRAM : QPLAN_NPU_MEMORY_CLASS_DRAM;
}

static qplan_npu_status open_with_sram(const qplan_device_hooks* hooks, uint32_t index, const char* options,
                                       qplan_npu_device* device, qplan_npu_reason* why) {
  qplan_device_hooks own;
  if (!copy_in(&own, sizeof(own), hooks)) own.struct_size = sizeof(own);
  own.struct_size = sizeof(own);
  own.alloc = alloc_any;
  own.free = free_class;
  own.alloc_class = alloc_class;
  own.memory_class = class_of_memory;
  return sample_driver_entry(QPLAN_NPU_ABI)->open(&own, index, options, device, why);
}

static qplan_npu_driver limited_driver;

__attribute__((visibility("default"))) const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi);
const qplan_npu_driver* qplan_npu_driver_entry(uint32_t abi) {
  const qplan_npu_driver* sample = sample_driver_entry(abi);
  if (sample == NULL) return NULL;
  limited_driver = *sample;
  if (limited_is("gone")) limited_driver.open = open_gone;
  if (limited_is("fast") || limited_is("slow")) limited_driver.open = open_with_sram;
  limited_driver.disassemble = list_program;
  if (limited_is("no_listing")) limited_driver.struct_size = offsetof(qplan_npu_driver, disassemble);
  return &limited_driver;
}
