/* Runs what `qplan emit-c` wrote, as main.c runs a plan: the same input, the same comparison. MODEL is the name that the
 * files have. C99. */
#include <stdint.h>
#include <string.h>

#include "measure.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

int32_t JOIN(MODEL, _init)(void);
void* JOIN(MODEL, _input)(uint32_t index);
int32_t JOIN(MODEL, _run)(void);
const void* JOIN(MODEL, _output)(uint32_t index);

extern const uint8_t input_bytes[], input_bytes_end[];
extern const uint8_t expected_bytes[], expected_bytes_end[];

int main(void) {
  stack_paint();
  if (JOIN(MODEL, _init)() < 0) {
    semihosting_write("firmware: init failed\n");
    return 1;
  }
  print("init_stack_bytes ", stack_used());
  memcpy(JOIN(MODEL, _input)(0), input_bytes, (size_t)(input_bytes_end - input_bytes));
  stack_paint();
  if (JOIN(MODEL, _run)() < 0) {
    semihosting_write("firmware: run failed\n");
    return 1;
  }
  const uint8_t* const bytes = JOIN(MODEL, _output)(0);
  print("run_stack_bytes ", stack_used());
  const size_t size = (size_t)(expected_bytes_end - expected_bytes);
  uint32_t different = 0;
  for (size_t i = 0; i < size; ++i) different += bytes[i] != expected_bytes[i];
  print("output_bytes ", (uint32_t)size);
  print("different ", different);
  return different == 0 ? 0 : 2;
}
