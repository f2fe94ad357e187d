/* Programs: a blob is looked at once, as a whole; what load takes, jobs run without looking again. */
#include <stdlib.h>

#include "skeleton.h"

struct program* find_program(struct device* device, uint64_t handle) {
  struct program* program = device->programs;
  while (program != NULL && program->handle != handle) program = program->next;
  return program;
}

void free_program(struct device* device, struct program* program) {
  device_free(device, program->memory);
  free(program->regions);
  free(program);
}

/* The blob is read from a copy: the caller's bytes may change or go. */
static qplan_npu_status make_program(struct device* device, uint32_t format, const void* blob, uint64_t bytes,
                                     struct program* program, qplan_npu_reason* why) {
  if (bytes > SKELETON_MAX_BUFFER)
    return refuse(why, QPLAN_NPU_E_BLOB, (int64_t)SKELETON_MAX_BUFFER, (int64_t)bytes,
                  "skeleton: the blob is too large");
  program->memory = (uint8_t*)device_alloc(device, bytes == 0 ? 1 : bytes, QPLAN_NPU_MEMORY_CLASS_ANY);
  if (program->memory == NULL)
    return refuse(why, QPLAN_NPU_E_MEMORY, 0, (int64_t)bytes, "skeleton: no memory left");
  if (bytes > 0) memcpy(program->memory, blob, (size_t)bytes);
  program->bytes = bytes;
  program->max_window = device->max_window;
  return read_blob(program, format, why);
}

qplan_npu_status skeleton_load(qplan_npu_device handle, uint32_t format, const void* blob, uint64_t bytes,
                               qplan_npu_program* result, qplan_npu_reason* why) {
  qplan_npu_status status;
  struct program* program;
  struct device* device;
  if (result == NULL || (blob == NULL && bytes > 0)) return QPLAN_NPU_E_ARGUMENT;
  program = (struct program*)calloc(1, sizeof(*program));
  if (program == NULL) return QPLAN_NPU_E_MEMORY;
  lock();
  device = find_device(handle);
  if (device == NULL) {
    status = QPLAN_NPU_E_ARGUMENT;
  } else {
    status = make_program(device, format, blob, bytes, program, why);
  }
  if (status == QPLAN_NPU_OK) {
    program->handle = *result = device->next_handle++;
    program->next = device->programs;
    device->programs = program;
  } else if (device != NULL) {
    free_program(device, program);
  } else {
    free(program);
  }
  unlock();
  return status;
}

qplan_npu_status skeleton_program_info(qplan_npu_device handle, qplan_npu_program which,
                                       qplan_npu_program_info* to) {
  qplan_npu_program_info all;
  struct device* device;
  struct program* program;
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  memset(&all, 0, sizeof(all));
  lock();
  device = find_device(handle);
  program = device == NULL ? NULL : find_program(device, which);
  if (program != NULL) {
    all.num_regions = program->num_regions;
    all.memory_bytes = program->bytes;
    all.estimated_cycles = program->macs / SKELETON_MACS_PER_CYCLE + 1;
    all.instructions = program->instructions;
    all.capabilities_hash = hash_of(program->max_window);
  }
  unlock();
  if (program == NULL) return QPLAN_NPU_E_ARGUMENT;
  copy_out(to, &all, sizeof(all));
  return QPLAN_NPU_OK;
}

qplan_npu_status skeleton_region_info(qplan_npu_device handle, qplan_npu_program which, uint32_t slot,
                                      qplan_npu_region_info* to) {
  qplan_npu_region_info all;
  struct device* device;
  struct program* program;
  if (!can_fill(to)) return QPLAN_NPU_E_ARGUMENT;
  memset(&all, 0, sizeof(all));
  lock();
  device = find_device(handle);
  program = device == NULL ? NULL : find_program(device, which);
  if (program != NULL && slot >= program->num_regions) program = NULL;
  if (program != NULL) {
    const struct region* region = &program->regions[slot];
    all.usage = region->usage;
    all.is_bound = region->usage != QPLAN_NPU_USE_WEIGHTS;
    all.alignment = region->alignment;
    all.bytes = region->bytes;
  }
  unlock();
  if (program == NULL) return QPLAN_NPU_E_ARGUMENT;
  copy_out(to, &all, sizeof(all));
  return QPLAN_NPU_OK;
}

qplan_npu_status skeleton_unload(qplan_npu_device handle, qplan_npu_program which) {
  qplan_npu_status status = QPLAN_NPU_E_ARGUMENT;
  struct device* device;
  struct program **at, *program;
  lock();
  device = find_device(handle);
  if (device != NULL) {
    for (at = &device->programs; *at != NULL && (*at)->handle != which; at = &(*at)->next) continue;
    program = *at;
    if (program != NULL) status = program->users > 0 ? QPLAN_NPU_E_BUSY : QPLAN_NPU_OK;
    if (status == QPLAN_NPU_OK) {
      *at = program->next;
      free_program(device, program);
    }
  }
  unlock();
  return status;
}
