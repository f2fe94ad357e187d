/* The sample's device with less in it: real devices that take a few things only. The environment
 * (QPLAN_LIMITED) says which: one library for the suite, the packer and the runtime. Each file here includes
 * the sample's of the same name and replaces a function of it, as a vendor would. */
#ifndef QPLAN_TESTS_CONFORMANCE_LIMITED_LIMITED_H_
#define QPLAN_TESTS_CONFORMANCE_LIMITED_LIMITED_H_

#include <qplan/npu_driver.h>
#include <stdlib.h>
#include <string.h>

/* A blob of the device's own: these eight bytes, then an operator list with all bits turned over. */
#define LIMITED_MAGIC "limited\n"

static inline int limited_is(const char* kind) {
  const char* named = getenv("QPLAN_LIMITED");
  return named != NULL && strcmp(named, kind) == 0;
}

/* Bytes that each program of `scratch` writes beside what its operators leave to each other. */
#define LIMITED_LINE_BUFFER 4096u

/* Fast memory of `fast`, and of `slow`, which has none: scratch is asked there. */
#define LIMITED_SRAM_BYTES 65536u
int limited_has_in_sram(const void* memory); /* driver.c */

/* What `padded` makes of the number of channels. */
static inline int64_t limited_channels(int64_t channels) { return (channels + 15) / 16 * 16; }

/* Bytes of arranged buffers that no element has. */
#define LIMITED_FILL 0x5a

/* Channels of a block: `blocked16` and `blocked32`; 0: others. */
static inline uint32_t limited_block(void) {
  return limited_is("blocked16") ? 16 : limited_is("blocked32") ? 32 : 0;
}

/* 0: operator lists. */
static inline uint32_t limited_format(void) {
  if (limited_is("native") || limited_is("one_operator") || limited_is("no_dense") || limited_is("deaf") ||
      limited_is("scratch") || limited_is("no_scratch") || limited_is("no_listing") || limited_is("padded") ||
      limited_block() != 0)
    return QPLAN_NPU_FOURCC('L', 'I', 'M', '1');
  return limited_is("binary") ? QPLAN_NPU_FOURCC('L', 'I', 'M', 1) : 0;
}

#endif /* QPLAN_TESTS_CONFORMANCE_LIMITED_LIMITED_H_ */
