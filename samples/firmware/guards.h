/* Bytes before and after a model's memory that nothing may write. CMakeLists.txt gives each memory a section
 * of its own, ".guarded.1" and so on, which the linker's script sorts by name: the guards are the sections
 * between. */
#ifndef SAMPLES_FIRMWARE_GUARDS_H_
#define SAMPLES_FIRMWARE_GUARDS_H_

#include <stdint.h>

#define GUARD_BYTES 64
#define GUARD_COLOR 0xa5
#define GUARD_IN(section_name, name) \
  __attribute__((section(section_name), aligned(GUARD_BYTES))) static uint8_t name[GUARD_BYTES];
#define GUARD(n) GUARD_IN(".guarded." #n, guard##n)

static inline int guard_is_whole(const uint8_t* guard) {
  for (int i = 0; i < GUARD_BYTES; ++i) {
    if (guard[i] != GUARD_COLOR) return 0;
  }
  return 1;
}

#endif /* SAMPLES_FIRMWARE_GUARDS_H_ */
