/* Runs a plan for Ethos-U in place from flash, the NPU through Arm's driver, and compares the output with the
 * bytes that the framework gave. Exit status 0: equal, and every region ran on the NPU. C99. */
#include <qplan/qplan.h>
#include <string.h>

#include "../firmware/image_files.h"
#include "../firmware/measure.h"
#include "board.h"
#include "ethosu_driver_shim.h"

extern const uint8_t plan_bytes[], plan_bytes_end[];

/* `qplan inspect PLAN` prints what a plan needs; a product would put the exact figures here, and both arrays
 * where they belong: what the plan wants in SRAM into the SRAM that the NPU reaches fastest, the rest into
 * any memory that it reaches. */
#define SRAM_BYTES (512u * 1024u)
#define ARENA_BYTES (128u * 1024u)
static uint8_t sram[SRAM_BYTES] __attribute__((aligned(64)));
static uint8_t arena[ARENA_BYTES] __attribute__((aligned(64)));
static uint32_t sram_used, arena_used;

static void* take(uint32_t memory_class, uint32_t size) {
  const int is_fast = memory_class == QPLAN_NPU_MEMORY_CLASS_SRAM;
  uint8_t* memory = is_fast ? sram : arena;
  uint32_t* used = is_fast ? &sram_used : &arena_used;
  const uint32_t begin = (*used + 63u) & ~63u;
  if (size > (is_fast ? SRAM_BYTES : ARENA_BYTES) - begin) return NULL;
  *used = begin + size;
  return memory + begin;
}

/* What the driver asks for: its bookkeeping, and for some programs an arena. Nothing is given back before the
 * device is closed. */
#define DRIVER_BYTES (128u * 1024u)
static uint8_t driver_memory[DRIVER_BYTES] __attribute__((aligned(64)));
static uint32_t driver_bytes;

static void* driver_alloc(void* user, size_t size, size_t alignment) {
  const uint32_t begin = (driver_bytes + (uint32_t)alignment - 1) & ~((uint32_t)alignment - 1);
  (void)user;
  if (begin > DRIVER_BYTES || size > DRIVER_BYTES - begin) return NULL;
  driver_bytes = begin + (uint32_t)size;
  return driver_memory + begin;
}
static void driver_free(void* user, void* memory) {
  (void)user;
  (void)memory;
}

/* Which memory is which, for the driver: it refuses a bank that is not where the plan wants it. All that it
 * allocates itself is ordinary memory. */
static void* driver_alloc_class(void* user, size_t size, size_t alignment, uint32_t memory_class) {
  return memory_class == QPLAN_NPU_MEMORY_CLASS_DRAM ? driver_alloc(user, size, alignment) : NULL;
}
static uint32_t driver_memory_class(void* user, const void* memory) {
  const uintptr_t at = (uintptr_t)memory;
  (void)user;
  if (at - (uintptr_t)sram < SRAM_BYTES) return QPLAN_NPU_MEMORY_CLASS_SRAM;
  if (at - (uintptr_t)plan_bytes < (uintptr_t)plan_bytes_end - (uintptr_t)plan_bytes)
    return QPLAN_NPU_MEMORY_CLASS_FLASH;
  return QPLAN_NPU_MEMORY_CLASS_DRAM;
}

static int fail(const char* what, const char* text) {
  semihosting_write("firmware: ");
  semihosting_write(what);
  semihosting_write(": ");
  semihosting_write(text);
  semihosting_write("\n");
  return 1;
}

static int fail_session(const char* what, qplan_session* session) {
  qplan_error error;
  memset(&error, 0, sizeof(error));
  error.struct_size = sizeof(error);
  qplan_session_last_error(session, &error);
  return fail(what, error.text);
}

/* How many regions did not run on the NPU alone. */
static uint32_t regions_elsewhere(const qplan_session* session) {
  uint32_t elsewhere = 0;
  const uint32_t count = qplan_session_num_regions(session);
  print("regions ", count);
  for (uint32_t i = 0; i < count; ++i) {
    qplan_region_info region;
    memset(&region, 0, sizeof(region));
    region.struct_size = sizeof(region);
    if (qplan_session_region_info(session, i, &region) < 0) return count;
    if (region.device_runs == 1 && region.cpu_runs == 0) continue;
    ++elsewhere;
    fail(region.name, region.text);
  }
  return elsewhere;
}

static int run(qplan_session* session) {
  DLTensor tensor;
  if (qplan_session_view(session, QPLAN_INPUT, 0, &tensor) < 0) return fail_session("input", session);
  if (!read_input(&tensor)) return 1;
  if (qplan_session_invoke(session) < 0) return fail_session("invoke", session);
  if (qplan_session_view(session, QPLAN_OUTPUT, 0, &tensor) < 0) return fail_session("output", session);
  const uint32_t elsewhere = regions_elsewhere(session);
  uint32_t different;
  if (!compare_output(&tensor, &different)) return 1;
  return different == 0 && elsewhere == 0 ? 0 : 2;
}

int main(void) {
  qplan_error error;
  qplan_device_hooks hooks;
  qplan_npu_reason why;
  qplan_npu_capabilities capabilities;
  qplan_npu_device device;
  memset(&error, 0, sizeof(error));
  error.struct_size = sizeof(error);
  if (board_npu_init() != 0) return fail("board", "no NPU");

  /* With data caches: cache_clean and cache_invalidate too. Where jobs shall time out: a platform with a
   * clock. */
  memset(&hooks, 0, sizeof(hooks));
  hooks.struct_size = sizeof(hooks);
  hooks.alloc = driver_alloc;
  hooks.free = driver_free;
  hooks.alloc_class = driver_alloc_class;
  hooks.memory_class = driver_memory_class;
  const qplan_npu_driver* driver = qplan_ethosu_driver(QPLAN_NPU_ABI);
  memset(&why, 0, sizeof(why));
  if (driver->open(&hooks, 0, "", &device, &why) < 0) return fail("device", why.text);
  memset(&capabilities, 0, sizeof(capabilities));
  capabilities.struct_size = sizeof(capabilities);
  if (driver->capabilities(device, &capabilities) < 0) return fail("device", "no capabilities");

  qplan_plan plan;
  if (qplan_plan_open(&plan, plan_bytes, (size_t)(plan_bytes_end - plan_bytes), QPLAN_PLAN_DIGEST, &error) <
      0)
    return fail("open", error.text);

  qplan_npu_device_config device_config;
  memset(&device_config, 0, sizeof(device_config));
  device_config.struct_size = sizeof(device_config);
  device_config.target = capabilities.target; /* "ethos-u55-128" */
  device_config.driver = driver;
  device_config.device = device;
  qplan_session_config config;
  memset(&config, 0, sizeof(config));
  config.struct_size = sizeof(config);
  config.kernels = qplan_kernels_integer(); /* of what stays on the CPU */
  config.npu = qplan_npu_client_default();
  config.devices = &device_config;
  config.num_devices = 1;
  config.on_npu_failure = QPLAN_NPU_FAIL;

  qplan_memory_need needs[4];
  uint32_t num_banks = 4;
  if (qplan_session_memory_needs(&plan, &config, needs, &num_banks, &error) < 0)
    return fail("memory", error.text);
  qplan_memory memories[4];
  for (uint32_t b = 0; b < num_banks; ++b) {
    memories[b].base = take(qplan_plan_memory_class(&plan, needs[b].bank), (uint32_t)needs[b].size);
    memories[b].size = (size_t)needs[b].size;
    if (memories[b].base == NULL) return fail("memory", "the arena or the SRAM is too small");
  }
  print("session_bytes ", arena_used + sram_used);
  print("sram_bytes ", sram_used);
  qplan_session* session;
  if (qplan_session_init(&plan, &config, memories, num_banks, &session, &error) < 0)
    return fail("init", error.text);
  print("driver_bytes ", driver_bytes);
  const int status = run(session);
  board_npu_report();
  qplan_session_deinit(session);
  driver->close(device);
  return status;
}
