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
  free(program->slots);
  free(program);
}

/* Each operator is well formed, and one that the device takes: weights and scales are looked at too. */
static qplan_npu_status check_operators(struct program* program, qplan_npu_reason* why) {
  uint32_t i;
  for (i = 0; i < program->list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_npu_reason first;
    uint32_t room = 1;
    qplan_oplist_bind(&program->list, i, program->slots, &call);
    if (skeleton_supported(0, &call.op, &first, &room) != QPLAN_NPU_OK) {
      first.place = i;
      if (why != NULL) *why = first;
      return QPLAN_NPU_E_UNSUPPORTED;
    }
    if (call.op.contract == QPLAN_NPU_F32E || call.op.num_scales == 0) {
      if (call.op.num_scales > 0 && call.op.scales == NULL)
        return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, 0, 0,
                                   "skeleton: no scales");
    } else if (call.op.multipliers == NULL || call.op.shifts == NULL) {
      return qplan_oplist_refuse(why, QPLAN_NPU_E_BLOB, QPLAN_OPLIST_BAD_OP, i, 0, 0,
                                 "skeleton: no multipliers or shifts");
    }
    program->macs += op_macs(&call.op);
  }
  return QPLAN_NPU_OK;
}

/* The list is opened on the copy: the caller's bytes may change or go. */
static qplan_npu_status make_program(struct device* device, const void* blob, uint64_t bytes,
                                     struct program* program, qplan_npu_reason* why) {
  qplan_npu_status status;
  uint32_t i;
  if (bytes < sizeof(qplan_oplist_header) || bytes > SKELETON_MAX_BUFFER)
    return refuse(why, QPLAN_NPU_E_BLOB, sizeof(qplan_oplist_header), (int64_t)bytes,
                  "skeleton: no operator list");
  program->memory = (uint8_t*)device_alloc(device, bytes);
  if (program->memory == NULL)
    return refuse(why, QPLAN_NPU_E_MEMORY, 0, (int64_t)bytes, "skeleton: no memory left");
  memcpy(program->memory, blob, (size_t)bytes);
  status = qplan_oplist_open(program->memory, bytes, &program->list, why);
  if (status != QPLAN_NPU_OK) return status;
  if (program->list.header.capabilities_hash != SKELETON_HASH)
    return refuse(why, QPLAN_NPU_E_VERSION, (int64_t)SKELETON_HASH,
                  (int64_t)program->list.header.capabilities_hash,
                  "skeleton: the blob was made for another device");
  program->slots = (void**)calloc(program->list.header.num_slots + 1u, sizeof(void*));
  if (program->slots == NULL) return QPLAN_NPU_E_MEMORY;
  for (i = 0; i < program->list.header.num_slots; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&program->list, i);
    if (slot.alignment > SKELETON_ALIGNMENT)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, QPLAN_OPLIST_BAD_SLOT, i, SKELETON_ALIGNMENT,
                                 slot.alignment, "skeleton: a slot wants a larger alignment");
    if (slot.usage == QPLAN_NPU_USE_WEIGHTS) program->slots[i] = program->memory + slot.data_offset;
  }
  return check_operators(program, why);
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
  } else if (format != QPLAN_NPU_BLOB_OPLIST) {
    status = refuse(why, QPLAN_NPU_E_UNSUPPORTED, QPLAN_NPU_BLOB_OPLIST, format,
                    "skeleton: takes blobs of format 'QOP1' only");
  } else {
    status = make_program(device, blob, bytes, program, why);
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
    all.num_regions = program->list.header.num_slots;
    all.memory_bytes = program->list.header.total_bytes;
    all.estimated_cycles = program->macs / SKELETON_MACS_PER_CYCLE + 1;
    all.instructions = program->list.header.num_ops;
    all.capabilities_hash = SKELETON_HASH;
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
  if (program != NULL && slot >= program->list.header.num_slots) program = NULL;
  if (program != NULL) {
    const qplan_oplist_slot s = qplan_oplist_slot_at(&program->list, slot);
    all.usage = s.usage;
    all.is_bound = s.usage != QPLAN_NPU_USE_WEIGHTS;
    all.alignment = s.alignment;
    all.bytes = s.bytes;
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
