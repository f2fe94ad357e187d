/* Reset of a RISC-V core: stack, .data, .bss, a handler of faults, main. */
#include <stdint.h>
#include <string.h>

#include "semihosting.h"

extern uint8_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
int main(void);

__attribute__((used, aligned(4))) static void fault_handler(void) {
  semihosting_write("firmware: fault\n");
  semihosting_exit(3);
}

__attribute__((used)) static void start(void) {
  __asm volatile(".option push\n .option arch, +zicsr\n csrw mtvec, %0\n .option pop" : : "r"(fault_handler));
  memcpy(data_begin, data_load, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  semihosting_exit(main());
}

/* The first instructions of the image, where the core begins. */
__attribute__((section(".vectors"), naked, used)) void reset_handler(void) {
  __asm volatile("la sp, stack_top\n j start");
}
