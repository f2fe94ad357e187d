# GCC for 64-bit RISC-V Linux (RV64GC), and QEMU's user mode, which runs what is built (tests). On Debian:
# g++-riscv64-linux-gnu qemu-user. QPLAN_EMULATED_CPU says what the emulated processor has.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER riscv64-linux-gnu-g++)
if(NOT DEFINED QPLAN_EMULATED_CPU)
  set(QPLAN_EMULATED_CPU rv64)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-riscv64 -cpu ${QPLAN_EMULATED_CPU} -L /usr/riscv64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/riscv64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
