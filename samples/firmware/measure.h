/* What the samples print, and how deep the stack of a call was: the stack below the caller is painted before
 * the call, and what has another color afterwards was used. */
#ifndef SAMPLES_FIRMWARE_MEASURE_H_
#define SAMPLES_FIRMWARE_MEASURE_H_

#include <stdint.h>

#include "semihosting.h"

#define STACK_PAINTED_BYTES 16384u
#define STACK_COLOR 0xa5a5a5a5u

static inline void print_number(const char* label, uint32_t value, const char* end) {
  char digits[12];
  int at = 11;
  digits[at] = '\0';
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  semihosting_write(label);
  semihosting_write(digits + at);
  semihosting_write(end);
}

static inline void print(const char* label, uint32_t value) { print_number(label, value, "\n"); }

static inline uint32_t* stack_top_now(void) {
  uint32_t* top;
#if defined(__riscv)
  __asm volatile("mv %0, sp" : "=r"(top));
#else
  __asm volatile("mov %0, sp" : "=r"(top));
#endif
  return top;
}

/* Both are part of the caller, so that the stack pointer is the same. */
__attribute__((always_inline)) static inline void stack_paint(void) {
  volatile uint32_t* const top = stack_top_now();
  for (uint32_t i = 1; i <= STACK_PAINTED_BYTES / 4; ++i) *(top - i) = STACK_COLOR;
}

/* Bytes below the caller's frame. */
__attribute__((always_inline)) static inline uint32_t stack_used(void) {
  const volatile uint32_t* const top = stack_top_now();
  uint32_t i = STACK_PAINTED_BYTES / 4;
  while (i > 0 && *(top - i) == STACK_COLOR) --i;
  return i * 4;
}

#endif /* SAMPLES_FIRMWARE_MEASURE_H_ */
