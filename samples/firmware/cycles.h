/* A counter of the processor's cycles, for a single core without an operating system:
 *
 *   Cortex-M3, M4, M7, M33   DWT->CYCCNT, 32 bits (Armv7-M and Armv8-M Architecture Reference Manuals)
 *   Cortex-M55, M85          PMU->CCNTR, 32 bits (Armv8.1-M, Performance Monitoring Extension)
 *   Cortex-M0+, and where a core or an emulator has neither: SysTick, 24 bits
 *   RISC-V                   mcycle (in machine mode)
 *
 * Counting twice within the counter's range (24 bits: 16.7 million cycles) keeps the total right. Counters of
 * the debug unit stop while a debugger holds the core, and SysTick belongs to the operating system where
 * there is one. */
#ifndef SAMPLES_FIRMWARE_CYCLES_H_
#define SAMPLES_FIRMWARE_CYCLES_H_

#include <stdint.h>

typedef struct cycle_counter {
  const char* name; /* of what counts */
  uint32_t mask;    /* the counter's bits */
  uint32_t last;    /* what it was when it was read last */
  uint64_t total;   /* cycles from cycles_start to then */
  int counts_down;
  volatile const uint32_t* value; /* NULL: mcycle */
} cycle_counter;

/* Armv8.1-M, which GCC tells from Armv8-M only by the vector instructions. Without them a Cortex-M55 counts
 * by its DWT. */
#if defined(__ARM_ARCH_8_1M_MAIN__) || defined(__ARM_FEATURE_MVE)
#define CYCLES_HAS_PMU 1
#endif

#define CYCLES_REGISTER(address) (*(volatile uint32_t*)(uintptr_t)(address))

static inline uint32_t cycles_read(const cycle_counter* counter) {
#if defined(__riscv)
  uint32_t cycles;
  __asm volatile(".option push\n .option arch, +zicsr\n csrr %0, mcycle\n .option pop" : "=r"(cycles));
  (void)counter;
  return cycles;
#else
  return *counter->value;
#endif
}

/* Cycles since cycles_start. */
static inline uint64_t cycles_now(cycle_counter* counter) {
  const uint32_t value = cycles_read(counter);
  const uint32_t passed = counter->counts_down ? counter->last - value : value - counter->last;
  counter->last = value;
  counter->total += passed & counter->mask;
  return counter->total;
}

static inline void cycles_use(cycle_counter* counter, const char* name, uint32_t address, uint32_t mask) {
  counter->name = name;
  counter->mask = mask;
  counter->value = (volatile const uint32_t*)(uintptr_t)address;
  counter->total = 0;
  counter->last = cycles_read(counter);
}

static inline void cycles_start(cycle_counter* counter) {
  counter->counts_down = 0;
#if defined(__riscv)
  cycles_use(counter, "mcycle", 0, 0xFFFFFFFFu);
#else
#if !defined(__ARM_ARCH_6M__)
  CYCLES_REGISTER(0xE000EDFCu) |= 1u << 24; /* DEMCR.TRCENA: the debug units have a clock */
#if defined(CYCLES_HAS_PMU)
  CYCLES_REGISTER(0xE0003C00u) = 1u << 31;  /* PMU_CNTENSET: the counter of cycles */
  CYCLES_REGISTER(0xE0003E04u) |= 1u;       /* PMU_CTRL.E */
  cycles_use(counter, "PMU", 0xE000307Cu, 0xFFFFFFFFu);
#else
  CYCLES_REGISTER(0xE0001FB0u) = 0xC5ACCE55u; /* DWT_LAR: Cortex-M7 locks its unit; others ignore it */
  CYCLES_REGISTER(0xE0001000u) |= 1u;         /* DWT_CTRL.CYCCNTENA */
  cycles_use(counter, "DWT", 0xE0001004u, 0xFFFFFFFFu);
#endif
  for (volatile int i = 0; i < 16; ++i) {
  }
  if (cycles_now(counter) != 0) return;
    /* It stands still: the core was made without it, or QEMU runs the image. */
#endif
  CYCLES_REGISTER(0xE000E014u) = 0xFFFFFFu; /* SYST_RVR: from there down to 0, and again */
  CYCLES_REGISTER(0xE000E018u) = 0;         /* SYST_CVR */
  CYCLES_REGISTER(0xE000E010u) = 5;         /* SYST_CSR: on, the processor's clock, no interrupt */
  counter->counts_down = 1;
  cycles_use(counter, "SysTick", 0xE000E018u, 0xFFFFFFu);
#endif
}

#endif /* SAMPLES_FIRMWARE_CYCLES_H_ */
