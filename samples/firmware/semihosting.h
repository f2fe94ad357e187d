/* Semihosting: text and exit status through the debugger or QEMU (Arm IHI "Semihosting for AArch32 and AArch64"; "RISC-V
 * Semihosting" has the same calls, and another way to make them). */
#ifndef SAMPLES_FIRMWARE_SEMIHOSTING_H_
#define SAMPLES_FIRMWARE_SEMIHOSTING_H_

#include <stdint.h>

static inline uint32_t semihosting_call(uint32_t operation, const void* argument) {
#if defined(__riscv)
  register uint32_t a0 __asm("a0") = operation;
  register const void* a1 __asm("a1") = argument;
  __asm volatile(
      ".option push\n .option norvc\n .balign 16\n slli zero, zero, 0x1f\n ebreak\n srai zero, zero, 7\n .option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return a0;
#else
  register uint32_t r0 __asm("r0") = operation;
  register const void* r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
#endif
}

static inline void semihosting_write(const char* text) { (void)semihosting_call(0x04, text); }

static inline void semihosting_exit(int status) {
  const uint32_t block[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
  (void)semihosting_call(0x20, block);                   /* SYS_EXIT_EXTENDED */
  for (;;) {
  }
}

#endif /* SAMPLES_FIRMWARE_SEMIHOSTING_H_ */
