/* The target; it compiles where the format is the device's own. other_board: it is for another device than
 * the driver's. needs_options: it cannot be configured without. old_target: a table of an earlier header.
 * other_major: of a later one. named_vta: it has the name of a target of the packer's own. no_costs: it
 * states none when asked. boasts: it takes all, the driver is dense. confuses: it mistakes config for a device
 * of the driver. */
#include "tests/conformance/limited/limited.h"

#define qplan_npu_target_entry sample_target_entry
#include "samples/npu_driver_skeleton/target.c"
#undef qplan_npu_target_entry

/* What the operators leave to each other: of one slot, or of none. */
static uint64_t scratch_of_list(const void* oplist, uint64_t bytes) {
  qplan_oplist list;
  uint64_t sum = 0;
  uint32_t i;
  if (qplan_oplist_open(oplist, bytes, &list, NULL) != QPLAN_NPU_OK) return 0;
  for (i = 0; i < list.header.num_slots; ++i) {
    const qplan_oplist_slot slot = qplan_oplist_slot_at(&list, i);
    if (slot.usage == QPLAN_NPU_USE_SCRATCH) sum += slot.bytes;
  }
  return sum;
}

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
  if (limited_is("no_scratch")) {
    static const uint8_t zero = 0;
    const uint64_t inner = scratch_of_list(oplist, bytes);
    for (i = 0; i < inner && status == QPLAN_NPU_OK; ++i) status = write(user, &zero, 1);
  }
  return status;
}

static qplan_npu_status scratch(uint64_t config, const void* oplist, uint64_t bytes, uint64_t* scratch_bytes,
                                qplan_npu_reason* why) {
  (void)config;
  (void)why;
  *scratch_bytes = limited_is("scratch") ? scratch_of_list(oplist, bytes) + LIMITED_LINE_BUFFER : 0;
  return QPLAN_NPU_OK;
}

static qplan_npu_status configure_some(const char* options, uint64_t* config, qplan_npu_reason* why) {
  if (options == NULL || options[0] == '\0')
    return refuse(why, QPLAN_NPU_E_ARGUMENT, 0, 0, "limited: needs the option window");
  return configure(options, config, why);
}

static qplan_npu_status capabilities_of_another(uint64_t config, qplan_npu_capabilities* to) {
  const qplan_npu_status status = capabilities(config, to);
  if (status == QPLAN_NPU_OK) to->hash ^= 1;
  return status;
}

static qplan_npu_status no_costs(uint64_t config, qplan_npu_target_costs* to) {
  (void)config;
  (void)to;
  return QPLAN_NPU_E_UNSUPPORTED;
}

static qplan_npu_status flip_uint8(uint64_t config, qplan_npu_slot_layout* slot, qplan_npu_reason* why) {
  (void)config;
  (void)why;
  if (slot->tensor->dtype.code == kDLUInt) slot->flip = 0x80;
  return QPLAN_NPU_OK;
}

/* The last axis has more elements than the model, and the first element comes after one whole pixel. */
static qplan_npu_status pad_channels(uint64_t config, qplan_npu_slot_layout* slot, qplan_npu_reason* why) {
  const DLTensor* tensor = slot->tensor;
  uint64_t stride = tensor->dtype.bits / 8u;
  int32_t axis;
  (void)config;
  (void)why;
  for (axis = tensor->ndim - 1; axis >= 0; --axis) {
    const int64_t extent = tensor->shape[axis];
    slot->strides[axis] = stride;
    stride *= (uint64_t)(axis == tensor->ndim - 1 ? limited_channels(extent) : extent);
    if (axis == tensor->ndim - 1) slot->origin = stride;
  }
  slot->bytes = slot->origin + stride;
  slot->fill = LIMITED_FILL;
  return QPLAN_NPU_OK;
}

/* Blocks of channels, each with all pixels; the channels that the last one lacks are filled. */
static qplan_npu_status divide_channels(uint64_t config, qplan_npu_slot_layout* slot, qplan_npu_reason* why) {
  const DLTensor* tensor = slot->tensor;
  const uint64_t element = tensor->dtype.bits / 8u;
  const int64_t channels = tensor->ndim == 0 ? 1 : tensor->shape[tensor->ndim - 1];
  uint64_t stride = limited_block() * element;
  int32_t axis;
  for (axis = tensor->ndim - 2; axis >= 0; --axis) {
    slot->strides[axis] = stride;
    stride *= (uint64_t)tensor->shape[axis];
  }
  slot->block = limited_block();
  slot->block_stride = stride;
  slot->bytes = ((uint64_t)channels + slot->block - 1) / slot->block * stride;
  slot->fill = LIMITED_FILL;
  slot->flags = limited_is("blocked32") ? QPLAN_NPU_LAYOUT_FILLS : QPLAN_NPU_LAYOUT_ANY_FILL;
  return limited_is("blocked32") ? flip_uint8(config, slot, why) : QPLAN_NPU_OK;
}

/* Weights are read where they are; what operators leave to each other is fast. */
static qplan_npu_status choose_memories(uint64_t config, const void* oplist, uint64_t bytes,
                                        qplan_npu_memory_classes* classes, qplan_npu_reason* why) {
  (void)config;
  (void)oplist;
  (void)bytes;
  (void)why;
  classes->program = QPLAN_NPU_MEMORY_CLASS_FLASH;
  classes->scratch = limited_is("misasks") ? QPLAN_NPU_MEMORY_CLASS_FLASH : QPLAN_NPU_MEMORY_CLASS_SRAM;
  classes->inputs = classes->outputs = QPLAN_NPU_MEMORY_CLASS_DRAM;
  return QPLAN_NPU_OK;
}

static qplan_npu_status takes_all(uint64_t config, const qplan_npu_op* op, qplan_npu_reason* reasons,
                                  uint32_t* num_reasons) {
  (void)config;
  (void)op;
  (void)reasons;
  *num_reasons = 0;
  return QPLAN_NPU_OK;
}

static qplan_npu_status finds_no_device(uint64_t config, const qplan_npu_op* op, qplan_npu_reason* reasons,
                                        uint32_t* num_reasons) {
  (void)takes_all(config, op, reasons, num_reasons);
  return QPLAN_NPU_E_ARGUMENT;
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
  if (limited_is("scratch") || limited_is("no_scratch")) limited.scratch = scratch;
  if (limited_is("signed")) limited.layout = flip_uint8;
  if (limited_is("padded")) limited.layout = pad_channels;
  if (limited_block() != 0) limited.layout = divide_channels;
  if (limited_is("fast") || limited_is("slow") || limited_is("misasks"))
    limited.memory_classes = choose_memories;
  if (limited_is("other_board")) limited.capabilities = capabilities_of_another;
  if (limited_is("needs_options")) limited.configure = configure_some;
  if (limited_is("named_vta")) limited.name = "vta";
  if (limited_is("no_costs")) limited.costs = no_costs;
  if (limited_is("boasts")) limited.supported = takes_all;
  if (limited_is("confuses")) limited.supported = finds_no_device;
  if (limited_is("old_target")) limited.struct_size = offsetof(qplan_npu_target, configure);
  if (limited_is("other_major")) limited.abi += 0x00010000u;
  return &limited;
}
