/* Runs what `qplan emit-c` wrote, as main.c runs a plan: the same input, the same comparison. MODEL is the
 * name that the files have. C99. */
#include <stdint.h>
#include <string.h>

#ifdef FIRMWARE_AREAS /* of a plan for two memory areas */
#include "guards.h"
#endif
#include "measure.h"
#ifdef FIRMWARE_PROFILE
#include "cycles.h"
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

int32_t JOIN(MODEL, _init)(void);
void* JOIN(MODEL, _input)(uint32_t index);
int32_t JOIN(MODEL, _run)(void);
const void* JOIN(MODEL, _output)(uint32_t index);

#ifdef FIRMWARE_AREAS
GUARD(0) /* the session's memory is section 1 */
GUARD(2)
GUARD_IN(".far.0", far_guard0) /* the other area's is ".far.1" */
GUARD_IN(".far.2", far_guard2)
extern uint8_t guarded_begin[], guarded_end[], far_begin[], far_end[];
#endif

extern const uint8_t input_bytes[], input_bytes_end[];
extern const uint8_t expected_bytes[], expected_bytes_end[];

int main(void) {
#ifdef FIRMWARE_AREAS
  memset(guarded_begin, GUARD_COLOR, (size_t)(guarded_end - guarded_begin));
  memset(far_begin, GUARD_COLOR, (size_t)(far_end - far_begin));
#endif
  stack_paint();
  if (JOIN(MODEL, _init)() < 0) {
    semihosting_write("firmware: init failed\n");
    return 1;
  }
  print("init_stack_bytes ", stack_used());
  memcpy(JOIN(MODEL, _input)(0), input_bytes, (size_t)(input_bytes_end - input_bytes));
#ifdef FIRMWARE_PROFILE /* this form has no events: the cycles of a run */
  cycle_counter counter;
  cycles_start(&counter);
  const uint64_t begin = cycles_now(&counter);
  const int32_t status = JOIN(MODEL, _run)();
  print("cycles ", (uint32_t)(cycles_now(&counter) - begin));
#else
  stack_paint();
  const int32_t status = JOIN(MODEL, _run)();
#endif
  if (status < 0) {
    semihosting_write("firmware: run failed\n");
    return 1;
  }
  const uint8_t* const bytes = JOIN(MODEL, _output)(0);
#ifndef FIRMWARE_PROFILE
  print("run_stack_bytes ", stack_used());
#endif
  const size_t size = (size_t)(expected_bytes_end - expected_bytes);
  uint32_t different = 0;
  for (size_t i = 0; i < size; ++i) different += bytes[i] != expected_bytes[i];
  print("output_bytes ", (uint32_t)size);
  print("different ", different);
#ifdef FIRMWARE_AREAS
  if (!guard_is_whole(guard0) || !guard_is_whole(guard2) || !guard_is_whole(far_guard0) ||
      !guard_is_whole(far_guard2)) {
    semihosting_write("firmware: a byte beside a memory area was written\n");
    return 1;
  }
#endif
  return different == 0 ? 0 : 2;
}
