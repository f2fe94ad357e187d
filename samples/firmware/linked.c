/* Runs two models that `qplan link` wrote, in turn in one arena, and compares the outputs of both. FIRST and
 * SECOND are their names. CMakeLists.txt gives the memory of each model and the arena a section of its own,
 * with the guards below before, between and after them. C99. */
#include <stdint.h>
#include <string.h>

#include "guards.h"
#include "measure.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define DECLARE(name)                       \
  int32_t JOIN(name, _init)(void);          \
  void* JOIN(name, _input)(uint32_t index); \
  int32_t JOIN(name, _run)(void);           \
  const void* JOIN(name, _output)(uint32_t index);
DECLARE(FIRST)
DECLARE(SECOND)

extern const uint8_t input_bytes[], input_bytes_end[];
extern const uint8_t expected_bytes[], expected_bytes_end[];
extern const uint8_t second_input_bytes[], second_input_bytes_end[];
extern const uint8_t second_expected_bytes[], second_expected_bytes_end[];

GUARD(0) /* the sections between are the models' and the arena's: 1, 3 and 5 */
GUARD(2)
GUARD(4)
GUARD(6)
extern uint8_t guarded_begin[], guarded_end[];

static uint32_t count_different(const uint8_t* bytes, const uint8_t* expected, const uint8_t* end) {
  uint32_t different = 0;
  for (; expected < end; ++expected, ++bytes) different += *bytes != *expected;
  return different;
}

static int fail(const char* what) {
  semihosting_write("firmware: ");
  semihosting_write(what);
  semihosting_write("\n");
  return 1;
}

int main(void) {
  uint32_t different = 0;
  memset(guarded_begin, GUARD_COLOR, (size_t)(guarded_end - guarded_begin)); /* nothing relies on zeros */
  if (JOIN(FIRST, _init)() < 0 || JOIN(SECOND, _init)() < 0) return fail("init failed");
  for (int turn = 0; turn < 2; ++turn) {
    void* input = JOIN(FIRST, _input)(0);
    if (input == NULL) return fail("the first model does not get the arena");
    memcpy(input, input_bytes, (size_t)(input_bytes_end - input_bytes));
    if (JOIN(FIRST, _run)() < 0) return fail("the first model failed");
    different += count_different(JOIN(FIRST, _output)(0), expected_bytes, expected_bytes_end);

    if (JOIN(SECOND, _run)() >= 0) return fail("the second model ran on what the first left");
    input = JOIN(SECOND, _input)(0);
    if (input == NULL) return fail("the second model does not get the arena");
    if (JOIN(FIRST, _run)() >= 0) return fail("the first model ran where the second's input is");
    if (JOIN(FIRST, _output)(0) != NULL) return fail("the first model has outputs that are gone");
    memcpy(input, second_input_bytes, (size_t)(second_input_bytes_end - second_input_bytes));
    if (JOIN(SECOND, _run)() < 0) return fail("the second model failed");
    different += count_different(JOIN(SECOND, _output)(0), second_expected_bytes, second_expected_bytes_end);
  }
  if (!guard_is_whole(guard0) || !guard_is_whole(guard2) || !guard_is_whole(guard4) ||
      !guard_is_whole(guard6)) {
    return fail("a byte beside a model's memory or the arena was written");
  }
  print("output_bytes ", (uint32_t)((expected_bytes_end - expected_bytes) +
                                    (second_expected_bytes_end - second_expected_bytes)));
  print("memory_bytes ", (uint32_t)(guarded_end - guarded_begin) - 4 * GUARD_BYTES);
  print("different ", different);
  return different == 0 ? 0 : 2;
}
