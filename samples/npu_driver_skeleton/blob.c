/* What a blob is: the two functions that know it. For a format of the device's own, replace read_blob and
 * run_blob (and give the target in target.c a `compile` that writes the format): the rest of the driver sees
 * regions and numbers. */
#include <stdlib.h>

#include "skeleton.h"

/* Each operator is well formed, and one that the device takes: weights and scales are looked at too. */
static qplan_npu_status check_operators(struct program* program, void* const* slots, qplan_npu_reason* why) {
  uint32_t i;
  for (i = 0; i < program->list.header.num_ops; ++i) {
    qplan_oplist_call call;
    qplan_npu_reason first;
    uint32_t room = 1;
    qplan_oplist_bind(&program->list, i, slots, &call);
    if (check_op(program->max_window, &call.op, &first, &room) != QPLAN_NPU_OK) {
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

/* The slots of the list as regions. */
static qplan_npu_status read_slots(struct program* program, qplan_npu_reason* why) {
  const uint32_t count = program->list.header.num_slots;
  void** carried = (void**)calloc(count + 1u, sizeof(void*));
  qplan_npu_status status = QPLAN_NPU_OK;
  uint32_t i;
  program->regions = (struct region*)calloc(count + 1u, sizeof(*program->regions));
  if (program->regions == NULL || carried == NULL) status = QPLAN_NPU_E_MEMORY;
  for (i = 0; i < count && status == QPLAN_NPU_OK; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&program->list, i);
    struct region* region = &program->regions[i];
    if (slot.alignment > SKELETON_ALIGNMENT)
      status = qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, QPLAN_OPLIST_BAD_SLOT, i, SKELETON_ALIGNMENT,
                                   slot.alignment, "skeleton: a slot wants a larger alignment");
    region->usage = slot.usage;
    region->alignment = slot.alignment;
    region->bytes = slot.bytes;
    if (slot.usage == QPLAN_NPU_USE_WEIGHTS) region->memory = program->memory + slot.data_offset;
    carried[i] = region->memory;
  }
  if (status == QPLAN_NPU_OK) {
    program->num_regions = count;
    status = check_operators(program, carried, why);
  }
  free(carried);
  return status;
}

qplan_npu_status read_blob(struct program* program, uint32_t format, qplan_npu_reason* why) {
  qplan_npu_status status;
  if (format != QPLAN_NPU_BLOB_OPLIST)
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, QPLAN_NPU_BLOB_OPLIST, format,
                  "skeleton: takes blobs of format 'QOP1' only");
  status = qplan_oplist_open(program->memory, program->bytes, &program->list, why);
  if (status != QPLAN_NPU_OK) return status;
  if (program->list.header.capabilities_hash != hash_of(program->max_window))
    return refuse(why, QPLAN_NPU_E_VERSION, (int64_t)hash_of(program->max_window),
                  (int64_t)program->list.header.capabilities_hash,
                  "skeleton: the blob was made for another device, or for other options");
  program->instructions = program->list.header.num_ops;
  return read_slots(program, why);
}

static uint64_t tensor_bytes(const DLTensor* t) {
  return t == NULL ? 0 : (uint64_t)qplan_npu_op_elements(t) * (t->dtype.bits / 8u);
}

void run_blob(const struct program* program, void* const* slots, const qplan_npu_status* stop,
              qplan_npu_report* report) {
  const qplan_oplist* list = &program->list;
  uint32_t i, k;
  for (i = 0; i < list->header.num_ops && __atomic_load_n(stop, __ATOMIC_RELAXED) == 0; ++i) {
    qplan_oplist_call call;
    qplan_oplist_bind(list, i, slots, &call);
    compute(&call.op, stop);
    report->macs += op_macs(&call.op);
    for (k = 0; k < qplan_npu_op_num_inputs(&call.op); ++k)
      report->bytes_read += tensor_bytes(qplan_npu_op_input(&call.op, k));
    report->bytes_read += tensor_bytes(call.op.weights) + tensor_bytes(call.op.bias);
    report->bytes_written += tensor_bytes(call.op.output);
  }
  report->cycles = report->busy_cycles = report->macs / SKELETON_MACS_PER_CYCLE + report->bytes_written + 1;
}
