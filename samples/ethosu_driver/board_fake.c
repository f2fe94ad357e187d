/* A board without an NPU: the fake core driver, and the heap that the simulator takes its memory from. */
#include <errno.h>
#include <stddef.h>

#include "../firmware/measure.h"
#include "board.h"
#include "fake_core_driver.h"

static void log_line(const char* text) {
  semihosting_write("npu: ");
  semihosting_write(text);
  semihosting_write("\n");
}

int board_npu_init(void) {
  const int status = fake_ethosu_init(ETHOSU_CONFIG);
  fake_ethosu()->log = log_line;
  return status;
}

void board_npu_report(void) {
  print("npu_jobs ", fake_ethosu()->jobs);
  print("npu_cycles ", (uint32_t)fake_ethosu()->cycles);
}

/* ---- what newlib asks for. The heap is between .bss and the stack. ---- */
extern uint8_t bss_end[], stack_top[];
#define STACK_BYTES (64u * 1024u)

void* _sbrk(ptrdiff_t bytes);
void* _sbrk(ptrdiff_t bytes) {
  static uintptr_t used;
  const uintptr_t room = (uintptr_t)stack_top - STACK_BYTES - (uintptr_t)bss_end, begin = used;
  if (bytes > (ptrdiff_t)(room - used)) {
    errno = ENOMEM;
    return (void*)-1;
  }
  used += (uintptr_t)bytes;
  return bss_end + begin;
}

void _exit(int status);
void _exit(int status) { semihosting_exit(status); }
int _kill(int process, int signal);
int _kill(int process, int signal) {
  (void)process;
  log_line("the simulator was aborted");
  semihosting_exit(100 + signal);
  return -1;
}
int _getpid(void);
int _getpid(void) { return 1; }
