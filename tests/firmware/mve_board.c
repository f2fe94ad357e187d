/* Runs a test program of newlib's on QEMU's Arm MPS3 with the image AN547 (Cortex-M55), over semihosting: mve_test.py. All is in
 * the board's data memory, by its secure alias, but the vectors. */
#include <stdint.h>
#include <stdlib.h>

#define RAM_END 0x31400000u /* 4 MiB from 0x31000000 on */
#define STACK_BYTES 0x40000u

extern char end[]; /* of the program */
extern void initialise_monitor_handles(void);
extern void __libc_init_array(void);
extern int main(int argc, char** argv);

void reset_handler(void) {
  /* What is refused before any kernel runs is the host's to test: some of it takes more memory than the board has. */
  static char name[] = "mve_test", filter[] = "--gtest_filter=-*.BindRefuses*";
  static char* arguments[] = {name, filter, NULL};
  volatile uint32_t* const cpacr = (volatile uint32_t*)0xE000ED88u;
  *cpacr |= 0xFu << 20; /* full access to coprocessors 10 and 11: floats and vectors */
  __asm volatile("dsb\n isb" ::: "memory");
  initialise_monitor_handles();
  __libc_init_array();
  exit(main(2, arguments));
}

static void fault_handler(void) { _Exit(3); }

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const struct {
  uintptr_t stack;
  vector handlers[15];
} vectors = {RAM_END,
             {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, 0, 0, 0, 0,
              fault_handler, fault_handler, 0, fault_handler, fault_handler}};

/* In the place of newlib's, which asks the debugger where memory is. */
void* __wrap__sbrk(intptr_t bytes) {
  static uintptr_t at = 0;
  if (at == 0) at = ((uintptr_t)end + 63) / 64 * 64;
  if (at + (uintptr_t)bytes > RAM_END - STACK_BYTES) return (void*)-1;
  at += (uintptr_t)bytes;
  return (void*)(at - (uintptr_t)bytes);
}

/* What googletest and the C++ library refer to and the tests do not call. */
int mkdir(const char* path, unsigned mode) { return (void)path, (void)mode, -1; }
char* getcwd(char* to, size_t bytes) { return (void)to, (void)bytes, NULL; }
int getentropy(void* to, size_t bytes) { return (void)to, (void)bytes, -1; }
