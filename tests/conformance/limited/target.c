/* The target; `native` compiles. */
#include "tests/conformance/limited/limited.h"

#define qplan_npu_target_entry sample_target_entry
#include "samples/npu_driver_skeleton/target.c"
#undef qplan_npu_target_entry

static qplan_npu_status compile(uint64_t config, const void* oplist, uint64_t bytes, qplan_npu_write_fn write,
                                void* user, qplan_npu_reason* why) {
  const uint8_t* from = (const uint8_t*)oplist;
  qplan_npu_status status = write(user, LIMITED_MAGIC, sizeof(LIMITED_MAGIC) - 1);
  uint64_t i;
  (void)config;
  (void)why;
  for (i = 0; i < bytes && status == QPLAN_NPU_OK; ++i) {
    const uint8_t turned = (uint8_t)~from[i];
    status = write(user, &turned, 1);
  }
  return status;
}

static qplan_npu_target limited;

__attribute__((visibility("default"))) const qplan_npu_target* qplan_npu_target_entry(uint32_t abi);
const qplan_npu_target* qplan_npu_target_entry(uint32_t abi) {
  const qplan_npu_target* sample = sample_target_entry(abi);
  if (sample == NULL) return NULL;
  limited = *sample;
  if (limited_format() != 0) {
    limited.compile = compile;
    limited.blob_format = limited_format();
  }
  return &limited;
}
