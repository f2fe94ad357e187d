/* Reset: stack, .data, .bss, FPU, main. */
#include <stdint.h>
#include <string.h>

#include "semihosting.h"

extern uint8_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_top[];
int main(void);

void reset_handler(void) {
  volatile uint32_t* const cpacr = (volatile uint32_t*)0xE000ED88u;
  *cpacr |= 0xFu << 20; /* full access to coprocessors 10 and 11: the FPU */
  __asm volatile("dsb\n isb" ::: "memory");
  memcpy(data_begin, data_load, (size_t)(data_end - data_begin));
  memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
  semihosting_exit(main());
}

static void fault_handler(void) {
  semihosting_write("firmware: fault\n");
  semihosting_exit(3);
}

typedef void (*vector)(void);
__attribute__((section(".vectors"), used)) static const struct {
  void* stack;
  vector handlers[15];
} vectors = {stack_top,
             {reset_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, 0, 0, 0, 0,
              fault_handler, fault_handler, 0, fault_handler, fault_handler}};
