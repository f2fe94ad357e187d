# 64-bit RISC-V Linux (RV64GC). On Debian: g++-riscv64-linux-gnu qemu-user.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
if(NOT DEFINED QPLAN_EMULATED_CPU)
  set(QPLAN_EMULATED_CPU rv64)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/linux_gnu.cmake)
