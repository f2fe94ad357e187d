/* A format of the device's own, in the one place that knows blobs. */
#include "tests/conformance/limited/limited.h"

#define read_blob read_list
#include "samples/npu_driver_skeleton/blob.c"
#undef read_blob

qplan_npu_status read_blob(struct program* program, uint32_t format, qplan_npu_reason* why) {
  const size_t header = sizeof(LIMITED_MAGIC) - 1;
  const uint32_t own = limited_format();
  qplan_npu_status status;
  uint64_t i;
  if (own == 0) return read_list(program, format, why);
  if (format != own) return refuse(why, QPLAN_NPU_E_UNSUPPORTED, own, format, "limited: another format");
  if (program->bytes < header || memcmp(program->memory, LIMITED_MAGIC, header) != 0)
    return refuse(why, QPLAN_NPU_E_BLOB, 0, 0, "limited: does not begin as a program of this device");
  program->bytes -= header;
  memmove(program->memory, program->memory + header, (size_t)program->bytes);
  for (i = 0; i < program->bytes; ++i) program->memory[i] ^= 0xff;
  status = read_list(program, QPLAN_NPU_BLOB_OPLIST, why);
  if (status == QPLAN_NPU_OK && limited_is("one_operator") && program->instructions > 1)
    return refuse(why, QPLAN_NPU_E_UNSUPPORTED, 1, (int64_t)program->instructions,
                  "limited: the sequencer has room for one operator");
  return status;
}
