/* A format of the device's own, in the one place that knows blobs. */
#include "tests/conformance/limited/limited.h"

#define read_blob read_list
#define run_blob run_list
#include "samples/npu_driver_skeleton/blob.c"
#undef read_blob
#undef run_blob

/* Programs of `scratch` have a line buffer at the end of theirs, which each job fills. */
static qplan_npu_status check_line_buffer(const struct program* program, qplan_npu_reason* why) {
  uint32_t i;
  for (i = 0; i < program->num_regions; ++i) {
    const struct region* region = &program->regions[i];
    if (region->usage == QPLAN_NPU_USE_SCRATCH && region->bytes >= LIMITED_LINE_BUFFER) return QPLAN_NPU_OK;
  }
  return refuse(why, QPLAN_NPU_E_BLOB, LIMITED_LINE_BUFFER, 0, "limited: no scratch for the line buffer");
}

/* Between a buffer as target.c arranges it and the packed tensor of the slot. */
static void copy_pixels(const qplan_oplist* list, uint32_t slot, uint8_t* buffer, uint8_t* packed,
                        int to_packed) {
  uint32_t t;
  for (t = 0; t < list->header.num_tensors; ++t) {
    const qplan_oplist_tensor tensor = qplan_oplist_tensor_at(list, t);
    const uint64_t element = tensor.dtype_bits / 8u;
    const uint64_t channels = tensor.rank == 0 ? 1 : (uint64_t)tensor.shape[tensor.rank - 1];
    const uint64_t count = qplan_oplist_tensor_bytes(&tensor) / element;
    const uint64_t pixels = count / channels, block = limited_block();
    const uint64_t step = (uint64_t)limited_channels((int64_t)channels);
    uint64_t i;
    if (tensor.slot != slot) continue;
    for (i = 0; i < count; ++i) {
      const uint64_t pixel = i / channels, c = i % channels;
      const uint64_t place =
          block == 0 ? step + pixel * step + c : (c / block * pixels + pixel) * block + c % block;
      uint8_t* at = buffer + place * element;
      memcpy(to_packed ? packed + i * element : at, to_packed ? at : packed + i * element, (size_t)element);
    }
    return;
  }
}

/* `blocked32` computes with what its blocks lack: other bytes than the fill would change its results. */
static int has_fill(const struct program* program, uint32_t slot, const uint8_t* buffer, uint8_t* packed) {
  const size_t bytes = (size_t)program->regions[slot].bytes;
  uint8_t* expected = (uint8_t*)malloc(bytes);
  int same = 0;
  if (expected != NULL) {
    memset(expected, LIMITED_FILL, bytes);
    copy_pixels(&program->list, slot, expected, packed, 0);
    same = memcmp(expected, buffer, bytes) == 0;
  }
  free(expected);
  return same;
}

/* On packed copies of what the jobs bind. */
static void run_arranged(const struct program* program, void* const* slots, const qplan_npu_status* stop,
                         qplan_npu_report* report) {
  void** packed = (void**)calloc(program->num_regions, sizeof(void*));
  uint32_t i;
  int complete = packed != NULL, fills = 1;
  for (i = 0; complete && i < program->num_regions; ++i) {
    const uint32_t usage = program->regions[i].usage;
    if (usage != QPLAN_NPU_USE_INPUT && usage != QPLAN_NPU_USE_OUTPUT) {
      packed[i] = slots[i];
      continue;
    }
    packed[i] = malloc((size_t)program->regions[i].bytes);
    complete = packed[i] != NULL;
    if (!complete || usage != QPLAN_NPU_USE_INPUT) continue;
    copy_pixels(&program->list, i, (uint8_t*)slots[i], (uint8_t*)packed[i], 1);
    if (limited_is("blocked32")) fills &= has_fill(program, i, (uint8_t*)slots[i], (uint8_t*)packed[i]);
  }
  if (complete) run_list(program, packed, stop, report);
  for (i = 0; packed != NULL && i < program->num_regions; ++i) {
    const uint32_t usage = program->regions[i].usage;
    if (usage != QPLAN_NPU_USE_INPUT && usage != QPLAN_NPU_USE_OUTPUT) continue;
    if (complete && usage == QPLAN_NPU_USE_OUTPUT) {
      if (limited_is("blocked32"))
        memset(slots[i], fills ? LIMITED_FILL : 0, (size_t)program->regions[i].bytes);
      if (fills) copy_pixels(&program->list, i, (uint8_t*)slots[i], (uint8_t*)packed[i], 0);
    }
    free(packed[i]);
  }
  free(packed);
}

void run_blob(const struct program* program, void* const* slots, const qplan_npu_status* stop,
              qplan_npu_report* report) {
  uint32_t i;
  if (limited_is("padded") || limited_block() != 0) {
    run_arranged(program, slots, stop, report);
    return;
  }
  /* Then outputs keep what they had, which --npu-verify finds. */
  for (i = 0; limited_is("fast") && i < program->num_regions; ++i) {
    if (program->regions[i].usage == QPLAN_NPU_USE_SCRATCH && !limited_has_in_sram(slots[i])) return;
  }
  for (i = 0; limited_is("scratch") && i < program->num_regions; ++i) {
    const struct region* region = &program->regions[i];
    if (region->usage == QPLAN_NPU_USE_SCRATCH)
      memset((uint8_t*)slots[i] + region->bytes - LIMITED_LINE_BUFFER, 0xa5, LIMITED_LINE_BUFFER);
  }
  run_list(program, slots, stop, report);
}

/* Programs of `no_scratch` carry theirs after the list. */
static qplan_npu_status carry_scratch(struct program* program, uint64_t room, qplan_npu_reason* why) {
  uint8_t* from = program->memory + program->bytes;
  uint32_t i;
  for (i = 0; i < program->num_regions; ++i) {
    struct region* region = &program->regions[i];
    if (region->usage != QPLAN_NPU_USE_SCRATCH) continue;
    if (region->bytes > room)
      return refuse(why, QPLAN_NPU_E_BLOB, (int64_t)room, (int64_t)region->bytes,
                    "limited: the program ends before its scratch");
    region->usage = QPLAN_NPU_USE_WEIGHTS;
    region->memory = from;
    from += region->bytes;
    room -= region->bytes;
  }
  return QPLAN_NPU_OK;
}

qplan_npu_status read_blob(struct program* program, uint32_t format, qplan_npu_reason* why) {
  const size_t header = sizeof(LIMITED_MAGIC) - 1;
  const uint32_t own = limited_format();
  uint64_t after = 0; /* bytes */
  qplan_npu_status status;
  uint64_t i;
  if (own == 0) return read_list(program, format, why);
  if (format != own) return refuse(why, QPLAN_NPU_E_UNSUPPORTED, own, format, "limited: another format");
  if (program->bytes < header || memcmp(program->memory, LIMITED_MAGIC, header) != 0)
    return refuse(why, QPLAN_NPU_E_BLOB, 0, 0, "limited: does not begin as a program of this device");
  program->bytes -= header;
  memmove(program->memory, program->memory + header, (size_t)program->bytes);
  for (i = 0; i < program->bytes; ++i) program->memory[i] ^= 0xff;
  if (limited_is("no_scratch")) {
    qplan_oplist_header list;
    if (program->bytes < sizeof(list)) return refuse(why, QPLAN_NPU_E_BLOB, 0, 0, "limited: no list");
    memcpy(&list, program->memory, sizeof(list));
    if (list.total_bytes > program->bytes)
      return refuse(why, QPLAN_NPU_E_BLOB, (int64_t)program->bytes, (int64_t)list.total_bytes,
                    "limited: the program ends before its list");
    after = program->bytes - list.total_bytes;
    program->bytes = list.total_bytes;
  }
  status = read_list(program, QPLAN_NPU_BLOB_OPLIST, why);
  if (status == QPLAN_NPU_OK && limited_is("one_operator") && program->instructions > 1)
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, 1, (int64_t)program->instructions,
                  "limited: the sequencer has room for one operator");
  for (i = 0; status == QPLAN_NPU_OK && limited_is("no_dense") && i < program->list.header.num_ops; ++i) {
    const qplan_oplist_op op = qplan_oplist_op_at(&program->list, (uint32_t)i);
    if (op.op == QPLAN_NPU_OP_DENSE)
      return qplan_oplist_refuse(why, QPLAN_NPU_E_UNSUPPORTED, 0, (uint32_t)i, 0, 0,
                                 "limited: the weights are too large");
  }
  if (status == QPLAN_NPU_OK && limited_is("deaf"))
    return refuse(why, QPLAN_NPU_E_BLOB, 0, 0, "limited: no such opcode");
  if (status == QPLAN_NPU_OK && limited_is("scratch")) status = check_line_buffer(program, why);
  if (status == QPLAN_NPU_OK && limited_is("no_scratch")) status = carry_scratch(program, after, why);
  return status;
}
